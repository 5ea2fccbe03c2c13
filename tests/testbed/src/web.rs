// SPDX-License-Identifier: Apache-2.0
//! A web server with TLS: files that a test puts there, and everything that a server can do wrong.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::{StreamExt as _, stream};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::body::{Body, streamed, trickle, whole};
use crate::pki::{Authority, Validity};
use crate::ports::Port;

/// A request, and the status that it was answered with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The path.
    pub path: String,
    /// The header `Authorization`.
    pub authorization: Option<String>,
    /// The header `If-None-Match`.
    pub if_none_match: Option<String>,
    /// The header `If-Modified-Since`.
    pub if_modified_since: Option<String>,
    /// The header `Range`.
    pub range: Option<String>,
    /// Whether the client showed a certificate.
    pub certificate: bool,
    /// What was answered.
    pub status: u16,
}

/// How a request is answered.
#[derive(Clone, Debug)]
pub enum WebAnswer {
    /// With the file or the part of it that was asked for, or with 404; with 304 where the client has it already.
    File,
    /// With the whole file, whatever part was asked for.
    Whole,
    /// With the file, compressed.
    Gzip,
    /// With this status, these headers and this body.
    Status(u16, Vec<(&'static str, String)>, String),
    /// With bytes that never end.
    Endless,
    /// With zeros that are small on the way and large here.
    Bomb(usize),
    /// With the file, a byte at a time.
    Trickle(Duration),
    /// With half of the file, and a broken connection.
    Cut,
    /// With so many bytes of the file, and a broken connection.
    CutAt(usize),
    /// With a part of the file, and then nothing any more.
    Stall,
    /// Not at all.
    Silence,
}

/// Whether clients have to show a certificate.
#[derive(Clone, Copy)]
enum Clients {
    NotAsked,
    Asked,
    Needed,
}

type Judge = dyn Fn(&Asked) -> WebAnswer + Send + Sync;

struct Shared {
    files: Mutex<BTreeMap<String, Bytes>>,
    judge: Mutex<Arc<Judge>>,
    asked: Mutex<Vec<Asked>>,
}

/// A running server; it ends when it is dropped.
pub struct WebServer {
    port: Port,
    authority: Authority,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WebServer {
    /// Starts one with a certificate of an authority of its own.
    pub async fn start() -> Result<Self> {
        Self::start_with(Validity::Good, false).await
    }

    /// Starts one with such a certificate. It may want one from its clients, by the same authority.
    pub async fn start_with(validity: Validity, wants_client: bool) -> Result<Self> {
        let port = Port::claim()?;
        let authority = Authority::new(&format!("authority of the server at port {}", port.number()))?;
        let clients = if wants_client { Clients::Needed } else { Clients::NotAsked };
        Self::begin(port, authority, validity, clients).await
    }

    /// Starts one with a certificate of this authority, which asks its clients for one by the same authority and serves them without one, too.
    pub async fn start_asking_for_certificates(authority: &Authority) -> Result<Self> {
        Self::begin(Port::claim()?, authority.clone(), Validity::Good, Clients::Asked).await
    }

    async fn begin(port: Port, authority: Authority, validity: Validity, clients: Clients) -> Result<Self> {
        let leaf = authority.server(&["localhost", "127.0.0.1"], validity)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes())?)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let builder = match clients {
            Clients::Needed => builder.with_client_cert_verifier(verifier.build()?),
            Clients::Asked => builder.with_client_cert_verifier(verifier.allow_unauthenticated().build()?),
            Clients::NotAsked => builder.with_no_client_auth(),
        };
        let certificate = CertificateDer::from_pem_slice(leaf.cert.as_bytes())?;
        let config = builder.with_single_cert(vec![certificate], PrivateKeyDer::from_pem_slice(leaf.key.as_bytes())?)?;
        let listener = TcpListener::bind(("127.0.0.1", port.number())).await?;
        let shared = Arc::new(Shared {
            files: Mutex::default(),
            judge: Mutex::new(Arc::new(|_| WebAnswer::File)),
            asked: Mutex::default(),
        });
        let accepting = tokio::spawn(accept(listener, TlsAcceptor::from(Arc::new(config)), shared.clone()));
        Ok(Self {
            port,
            authority,
            shared,
            accepting,
        })
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port.number())
    }

    /// Who has signed its certificate.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Puts a file there.
    pub fn put(&self, path: &str, content: impl Into<Bytes>) {
        lock(&self.shared.files).insert(path.to_owned(), content.into());
    }

    /// Takes a file away.
    pub fn remove(&self, path: &str) {
        lock(&self.shared.files).remove(path);
    }

    /// Decides from now on how requests are answered.
    pub fn answer(&self, judge: impl Fn(&Asked) -> WebAnswer + Send + Sync + 'static) {
        *lock(&self.shared.judge) = Arc::new(judge);
    }

    /// The requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.shared.asked).clone()
    }

    /// Forgets them.
    pub fn forget(&self) {
        lock(&self.shared.asked).clear();
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl fmt::Debug for WebServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebServer").field("port", &self.port).finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, shared) = (acceptor.clone(), shared.clone());
        connections.spawn(async move {
            // A client that does not trust us, or goes away, is nothing to speak of.
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let certificate = stream.get_ref().1.peer_certificates().is_some();
            let service = service_fn(|request| reply(shared.clone(), request, certificate));
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn reply(shared: Arc<Shared>, request: Request<Incoming>, certificate: bool) -> io::Result<Response<Body>> {
    let header = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let mut asked = Asked {
        path: request.uri().path().to_owned(),
        authorization: header(header::AUTHORIZATION),
        if_none_match: header(header::IF_NONE_MATCH),
        if_modified_since: header(header::IF_MODIFIED_SINCE),
        range: header(header::RANGE),
        certificate,
        status: 0,
    };
    let judge = lock(&shared.judge).clone();
    let answer = judge(&asked);
    let file = lock(&shared.files).get(&asked.path).cloned();
    let response = answered(answer, file, &asked).await?;
    asked.status = response.status().as_u16();
    lock(&shared.asked).push(asked);
    Ok(response)
}

async fn answered(answer: WebAnswer, file: Option<Bytes>, asked: &Asked) -> io::Result<Response<Body>> {
    let built = |status: u16| Response::builder().status(StatusCode::from_u16(status).unwrap_or_default());
    let done = |response: http::Result<Response<Body>>| response.map_err(io::Error::other);
    match (answer.clone(), file) {
        (WebAnswer::Status(status, headers, body), _) => {
            let mut response = done(built(status).body(whole(body.into())))?;
            for (name, value) in headers {
                let value = HeaderValue::from_str(&value).map_err(io::Error::other)?;
                response.headers_mut().insert(name, value);
            }
            Ok(response)
        }
        (WebAnswer::Endless, _) => {
            let more = Bytes::from(vec![b'#'; 64 * 1024]);
            done(built(200).body(streamed(stream::repeat(more).map(Ok))))
        }
        (WebAnswer::Bomb(bytes), _) => done(
            built(200)
                .header(header::CONTENT_ENCODING, "gzip")
                .body(whole(zipped(&vec![0; bytes])?)),
        ),
        (WebAnswer::Silence, _) => std::future::pending().await,
        (_, None) => done(built(404).body(whole("not found".into()))),
        (WebAnswer::Gzip, Some(file)) => done(built(200).header(header::CONTENT_ENCODING, "gzip").body(whole(zipped(&file)?))),
        (WebAnswer::Trickle(pause), Some(file)) => done(
            built(200)
                .header(header::CONTENT_LENGTH, file.len())
                .body(streamed(trickle(file, pause))),
        ),
        (WebAnswer::Cut | WebAnswer::CutAt(_), Some(file)) => {
            let at = if let WebAnswer::CutAt(at) = answer { at } else { file.len() / 2 };
            let parts = [Ok(file.slice(..at)), Err(io::ErrorKind::ConnectionAborted.into())];
            done(
                built(200)
                    .header(header::CONTENT_LENGTH, file.len())
                    .body(streamed(stream::iter(parts))),
            )
        }
        (WebAnswer::Stall, Some(file)) => {
            let half = stream::iter([Ok(file.slice(..file.len() / 2))]);
            done(
                built(200)
                    .header(header::CONTENT_LENGTH, file.len())
                    .body(streamed(half.chain(stream::pending()))),
            )
        }
        (WebAnswer::Whole, Some(file)) => done(built(200).body(whole(file))),
        (WebAnswer::File, Some(file)) if asked.range.is_some() => {
            let from = asked
                .range
                .as_deref()
                .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
            match from.filter(|from| *from < file.len()) {
                Some(from) => done(
                    built(206)
                        .header(header::CONTENT_RANGE, format!("bytes {from}-{}/{}", file.len() - 1, file.len()))
                        .body(whole(file.slice(from..))),
                ),
                None => done(built(416).body(whole(Bytes::new()))),
            }
        }
        (WebAnswer::File, Some(file)) => {
            let digest: String = Sha256::digest(&file).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            let etag = format!("\"{digest}\"");
            match asked.if_none_match.as_ref() == Some(&etag) {
                true => done(built(304).header(header::ETAG, etag).body(whole(Bytes::new()))),
                false => done(built(200).header(header::ETAG, etag).body(whole(file))),
            }
        }
    }
}

fn zipped(bytes: &[u8]) -> io::Result<Bytes> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes)?;
    Ok(packer.finish()?.into())
}
