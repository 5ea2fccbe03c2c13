// SPDX-License-Identifier: Apache-2.0
//! A proxy in front of the API server that numbers writes and makes requests fail.
//!
//! It ends TLS with the API server's own certificate and passes everything on as it is, bearer tokens included; a client
//! certificate does not get through. HTTP/1.1, which is what kube speaks; other clients learn it in the handshake.

mod answer;
mod call;
mod connection;
mod stream;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::cluster::Cluster;
use crate::ports::Port;
use crate::wait::{Probe, until};

pub use call::Call;
pub use stream::Cut;

/// What is done with a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Act {
    /// It is passed on.
    #[default]
    Pass,
    /// It is passed on after a while.
    Delay(Duration),
    /// It is passed on and carried out at once; the answer comes after a while.
    Late(Duration),
    /// It is not passed on; the proxy answers with this status.
    Answer {
        /// The status code.
        code: u16,
        /// What the header `Retry-After` says.
        retry_after: Option<Duration>,
    },
    /// It is passed on and carried out; instead of the answer the client sees its connection reset.
    LoseAnswer,
    /// A list is answered as it would have been at this resource version.
    At(u64),
    /// It is passed on when [`Proxy::pass_held`] is called; everything else goes on meanwhile.
    Hold,
    /// It is not passed on, and from this instant nothing is: the moment to kill the client.
    StopBefore,
    /// It is passed on and carried out, and from this instant nothing else is passed on and nothing is answered.
    StopAfter,
}

/// A request that the proxy is through with.
#[derive(Clone, Debug)]
pub struct Handled {
    /// What was asked.
    pub call: Call,
    /// What was done with it.
    pub act: Act,
    /// The status code of the answer, whether or not the client saw it; none if the API server gave none.
    pub code: Option<u16>,
}

type Judge = dyn Fn(&Call) -> Act + Send + Sync;

#[derive(Default)]
struct Book {
    calls: usize,
    writes: usize,
    under_way: usize,
    handled: Vec<Handled>,
}

struct Shared {
    server: SocketAddr,
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    judge: Mutex<Arc<Judge>>,
    /// What it says the version of the API server is.
    version: Mutex<Option<String>>,
    book: Mutex<Book>,
    /// Nothing is passed on.
    closed: Mutex<bool>,
    /// A request that was to stop everything has been dealt with.
    stopped: watch::Sender<bool>,
    /// Changes when requests that are held are passed on.
    passing: watch::Sender<()>,
    streams: stream::Streams,
}

/// A running proxy; it ends when it is dropped.
pub struct Proxy {
    port: Port,
    folder: PathBuf,
    server: String,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Proxy {
    /// Starts one in front of a cluster; it passes everything on.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let certificate = CertificateDer::from_pem_file(cluster.dir().join("server.crt"))?;
        let key = PrivateKeyDer::from_pem_file(cluster.dir().join("server.key"))?;
        let mut ends = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        ends.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(cluster.ca_pem().as_bytes())?)?;
        let mut begins = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        begins.alpn_protocols = vec![b"http/1.1".to_vec()];
        let server = cluster.server_url();
        let shared = Arc::new(Shared {
            server: server.trim_start_matches("https://").parse().context("the API server's address")?,
            acceptor: TlsAcceptor::from(Arc::new(ends)),
            connector: TlsConnector::from(Arc::new(begins)),
            judge: Mutex::new(Arc::new(|_| Act::Pass)),
            version: Mutex::default(),
            book: Mutex::default(),
            closed: Mutex::new(false),
            stopped: watch::Sender::new(false),
            passing: watch::Sender::new(()),
            streams: stream::Streams::new(),
        });
        let port = Port::claim()?;
        let listener = TcpListener::bind(("127.0.0.1", port.number())).await?;
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Ok(Self {
            port,
            folder: cluster.dir().to_owned(),
            server,
            shared,
            accepting,
        })
    }

    /// A copy of a kubeconfig that leads through the proxy. It must hold a token.
    pub fn kubeconfig(&self, direct: &Path) -> Result<PathBuf> {
        let text = std::fs::read_to_string(direct).with_context(|| format!("kubeconfig {}", direct.display()))?;
        let own = format!("https://127.0.0.1:{}", self.port.number());
        let name = direct.file_name().unwrap_or_default().to_string_lossy();
        let path = self.folder.join(format!("proxied-{}-{name}", self.port.number()));
        std::fs::write(&path, text.replace(&self.server, &own))?;
        Ok(path)
    }

    /// Counts from one again, forgets what was handled, and judges by `judge` from now on.
    pub fn begin(&self, judge: impl Fn(&Call) -> Act + Send + Sync + 'static) {
        let mut closed = lock(&self.shared.closed);
        *closed = false;
        self.shared.stopped.send_replace(false);
        *lock(&self.shared.judge) = Arc::new(judge);
        let mut book = lock(&self.shared.book);
        *book = Book {
            under_way: book.under_way,
            ..Book::default()
        };
    }

    /// Judges by another function without starting the count again.
    pub fn judge(&self, judge: impl Fn(&Call) -> Act + Send + Sync + 'static) {
        *lock(&self.shared.judge) = Arc::new(judge);
    }

    /// Waits until a request has stopped everything and what was passed on before has arrived.
    pub async fn stopped(&self, patience: Duration) -> Result<()> {
        until("the proxy to stop everything", patience, async || {
            let book = lock(&self.shared.book);
            let stopped = *self.shared.stopped.borrow() && book.under_way == 0;
            Ok(Probe::when(
                stopped,
                format!("{} writes were seen, {} requests are under way", book.writes, book.under_way),
            ))
        })
        .await
    }

    /// Whether a request has stopped everything.
    pub fn is_stopped(&self) -> bool {
        *self.shared.stopped.borrow()
    }

    /// Passes everything on again; numbers go on.
    pub fn resume(&self) {
        self.judge(|_| Act::Pass);
        *lock(&self.shared.closed) = false;
        self.shared.stopped.send_replace(false);
    }

    /// Passes on the requests that are held.
    pub fn pass_held(&self) {
        self.shared.passing.send_replace(());
    }

    /// What was handled since [`Self::begin`], in the order in which it ended.
    pub fn handled(&self) -> Vec<Handled> {
        lock(&self.shared.book).handled.clone()
    }

    /// How many writes were seen since [`Self::begin`].
    pub fn writes(&self) -> usize {
        lock(&self.shared.book).writes
    }

    /// Ends running watches that `filter` wants; how many.
    pub fn cut(&self, how: Cut, filter: impl Fn(&Call) -> bool) -> usize {
        self.shared.streams.cut(how, filter)
    }

    /// From now on the watches that `filter` wants, running or new, say nothing.
    pub fn hold(&self, filter: impl Fn(&Call) -> bool + Send + Sync + 'static) {
        self.shared.streams.hold(Some(Arc::new(filter)));
    }

    /// Lets all watches say what they have held back, and go on.
    pub fn release(&self) {
        self.shared.streams.hold(None);
    }

    /// Says that the API server is another version from now on, and ends all watches, as a load balancer does that leads to another server.
    pub fn report_version(&self, version: &str) {
        self.report_version_to_questions(version);
        self.cut(Cut::End, |_| true);
    }

    /// Says that the API server is another version from now on; watches go on.
    pub fn report_version_to_questions(&self, version: &str) {
        *lock(&self.shared.version) = Some(version.to_owned());
    }

    /// How many watches run of those that `filter` wants.
    pub fn watches(&self, filter: impl Fn(&Call) -> bool) -> usize {
        self.shared.streams.count(filter)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("port", &self.port).finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { return };
                let shared = shared.clone();
                connections.spawn(async move {
                    if let Err(error) = connection::serve(client, shared).await {
                        tracing::debug!(%error, "a connection through the proxy ended");
                    }
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

impl Shared {
    /// Numbers a request and says what becomes of it.
    fn take(&self, mut call: Call) -> (Call, Act) {
        let mut closed = lock(&self.closed);
        if *closed {
            return (call, Act::StopBefore);
        }
        let mut book = lock(&self.book);
        book.calls += 1;
        call.number = book.calls;
        if call.counts() {
            book.writes += 1;
            call.write = Some(book.writes);
        }
        let act = lock(&self.judge)(&call);
        *closed = matches!(act, Act::StopBefore | Act::StopAfter);
        book.under_way += 1;
        (call, act)
    }

    /// Notes how it ended.
    fn done(&self, call: &Call, act: Act, code: Option<u16>) {
        // It came when everything was stopped already, and has no number.
        if call.number == 0 {
            return;
        }
        let mut book = lock(&self.book);
        book.under_way -= 1;
        book.handled.push(Handled {
            call: call.clone(),
            act,
            code,
        });
        if matches!(act, Act::StopBefore | Act::StopAfter) {
            self.stopped.send_replace(true);
        }
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect(self.server).await?;
        stream.set_nodelay(true)?;
        let tls = self.connector.connect(ServerName::from(self.server.ip()), stream).await?;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(tls)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }
}
