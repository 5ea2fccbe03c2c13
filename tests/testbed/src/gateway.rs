// SPDX-License-Identifier: Apache-2.0
//! A proxy for connections: by CONNECT, over TLS as well, and by SOCKS 5, all at one port.

use crate::pki::{Authority, Validity};
use crate::ports::Port;
use anyhow::{Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// User and password of a gateway that wants them.
const PASSENGER: (&str, &str) = ("passenger", "let-m3-by");

/// A running proxy; it ends when it is dropped. It leads to this machine, whatever the name of the server is.
pub struct Gateway {
    port: Port,
    authority: Authority,
    desk: Arc<Desk>,
    accepting: JoinHandle<()>,
}

struct Desk {
    wants_login: bool,
    tls: TlsAcceptor,
    passed: Mutex<Vec<String>>,
}

impl Gateway {
    /// Starts one, which may want a user and a password.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(wants_login: bool) -> Result<Self> {
        let port = Port::claim()?;
        let authority = Authority::new("authority of a gateway")?;
        let leaf = authority.server(&["127.0.0.1"], Validity::Good)?;
        let chain = CertificateDer::pem_slice_iter(leaf.cert.as_bytes()).collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes())?;
        let config = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
        let desk = Arc::new(Desk {
            wants_login,
            tls: Arc::new(config).into(),
            passed: Mutex::default(),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.number())).await?;
        let shared = desk.clone();
        let accepting = tokio::spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let desk = shared.clone();
                open.spawn(async move {
                    if let Err(error) = serve(&desk, stream).await {
                        tracing::debug!("gateway: {error:#}");
                    }
                });
            }
        });
        Ok(Self {
            port,
            authority,
            desk,
            accepting,
        })
    }

    /// Its address by this scheme, with a login that is right, wrong or not there.
    pub fn url(&self, scheme: &str, login: Option<bool>) -> String {
        let login = match login {
            None => String::new(),
            Some(true) => format!("{}:{}@", PASSENGER.0, PASSENGER.1),
            Some(false) => format!("{}:wr0ng@", PASSENGER.0),
        };
        format!("{scheme}://{login}127.0.0.1:{}", self.port.number())
    }

    /// The authority that has signed its certificate.
    pub fn authority(&self) -> String {
        self.authority.pem()
    }

    /// The servers to which it has connected: how it was asked, and host and port.
    pub fn passed(&self) -> Vec<String> {
        self.desk.passed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Serves a connection by what its first byte says that it is.
async fn serve(desk: &Desk, stream: TcpStream) -> Result<()> {
    let mut first = [0];
    stream.peek(&mut first).await?;
    match first {
        [0x16] => connect(desk, desk.tls.accept(stream).await?, "tls").await,
        [5] => socks(desk, stream).await,
        _ => connect(desk, stream, "connect").await,
    }
}

async fn connect(desk: &Desk, mut stream: impl AsyncRead + AsyncWrite + Unpin, how: &str) -> Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head)?;
    let login = format!(
        "\r\nproxy-authorization: basic {}\r\n",
        STANDARD.encode(format!("{}:{}", PASSENGER.0, PASSENGER.1))
    );
    if desk.wants_login && !head.to_lowercase().contains(&login.to_lowercase()) {
        stream
            .write_all(
                b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"gateway\"\r\nContent-Length: 0\r\n\r\n",
            )
            .await?;
        return Ok(stream.shutdown().await?);
    }
    let Some(server) = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()) else {
        bail!("not CONNECT: {head}");
    };
    let there = desk.lead(how, server).await?;
    stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    both_ways(stream, there).await
}

async fn socks(desk: &Desk, mut stream: TcpStream) -> Result<()> {
    ensure!(stream.read_u8().await? == 5, "not version 5");
    let methods = counted(&mut stream).await?;
    let method = if desk.wants_login { 2 } else { 0 };
    let offered = methods.contains(&method);
    stream.write_all(&[5, if offered { method } else { 0xff }]).await?;
    ensure!(offered, "no such method is offered");
    if desk.wants_login {
        ensure!(stream.read_u8().await? == 1, "not version 1 of logins");
        let (user, password) = (counted(&mut stream).await?, counted(&mut stream).await?);
        let is_right = (user.as_slice(), password.as_slice()) == (PASSENGER.0.as_bytes(), PASSENGER.1.as_bytes());
        stream.write_all(&[1, u8::from(!is_right)]).await?;
        ensure!(is_right, "a wrong password");
    }
    let mut request = [0; 4];
    stream.read_exact(&mut request).await?;
    ensure!(request[..3] == [5, 1, 0], "not a request to connect");
    let host = match request[3] {
        1 => {
            let mut address = [0; 4];
            stream.read_exact(&mut address).await?;
            Ipv4Addr::from(address).to_string()
        }
        3 => String::from_utf8(counted(&mut stream).await?)?,
        kind => bail!("addresses of kind {kind} are not known"),
    };
    let port = stream.read_u16().await?;
    let there = desk.lead("socks", &format!("{host}:{port}")).await?;
    stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    both_ways(stream, there).await
}

/// Bytes behind their number.
async fn counted(stream: &mut TcpStream) -> Result<Vec<u8>> {
    let mut bytes = vec![0; usize::from(stream.read_u8().await?)];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

impl Desk {
    async fn lead(&self, how: &str, server: &str) -> Result<TcpStream> {
        let port = server.rsplit(':').next().unwrap_or_default().parse::<u16>()?;
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        passed.push(format!("{how} {server}"));
        Ok(stream)
    }
}

async fn both_ways(mut here: impl AsyncRead + AsyncWrite + Unpin, mut there: TcpStream) -> Result<()> {
    copy_bidirectional(&mut here, &mut there).await?;
    Ok(())
}
