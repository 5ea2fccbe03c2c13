//! The port for probes and scrapes: `/healthz`, `/readyz`, `/metrics`, and nothing else.
//!
//! It shows no object, no configuration and no secret, so it needs no authentication.

use super::metrics::{CONTENT_TYPE, Metrics};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// A kubelet and a few scrapers; whoever opens more connections waits.
const MAX_CONNECTIONS: usize = 64;
/// A client that sends no request for this long is dropped.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether the operator is ready: its caches are filled, or it waits for its turn as a leader. Cheap to clone and share.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// From now on ready, or not.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Release);
    }

    /// Whether it is ready.
    #[must_use]
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The port cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for probes and metrics; choose a free port with --listen")]
pub struct ListenError {
    address: SocketAddr,
    #[source]
    source: std::io::Error,
}

/// An open port that is not served yet.
#[derive(Debug)]
pub struct Admin {
    listener: TcpListener,
    readiness: Readiness,
    metrics: Arc<Metrics>,
}

impl Admin {
    /// Opens the port.
    ///
    /// # Errors
    /// When it is taken or may not be opened.
    pub async fn bind(address: SocketAddr, readiness: Readiness, metrics: Arc<Metrics>) -> Result<Self, ListenError> {
        let listener = TcpListener::bind(address).await.map_err(|source| ListenError { address, source })?;
        Ok(Self {
            listener,
            readiness,
            metrics,
        })
    }

    /// The address, with the port the system chose when none was given.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Serves until it is dropped.
    pub async fn run(self) {
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = tokio::task::JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let Ok(slot) = slots.clone().acquire_owned().await else { return };
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, most likely: waiting is all that helps.
                    tracing::warn!(%error, "cannot accept a connection for probes and metrics");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    continue;
                }
            };
            let (readiness, metrics) = (self.readiness.clone(), self.metrics.clone());
            connections.spawn(async move {
                let answer = service_fn(|request| {
                    let response = answer(&request, &readiness, &metrics);
                    async { Ok::<_, Infallible>(response) }
                });
                let mut server = hyper::server::conn::http1::Builder::new();
                server.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
                if let Err(error) = server.serve_connection(TokioIo::new(stream), answer).await {
                    tracing::debug!(%error, "a connection for probes and metrics ended early");
                }
                drop(slot);
            });
        }
    }
}

fn answer(request: &Request<Incoming>, readiness: &Readiness, metrics: &Metrics) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return respond(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET and HEAD\n".to_owned());
    }
    match request.uri().path() {
        "/healthz" => respond(StatusCode::OK, "text/plain", "ok\n".to_owned()),
        "/readyz" if readiness.get() => respond(StatusCode::OK, "text/plain", "ready\n".to_owned()),
        "/readyz" => respond(StatusCode::SERVICE_UNAVAILABLE, "text/plain", "not ready\n".to_owned()),
        "/metrics" => respond(StatusCode::OK, CONTENT_TYPE, metrics.encode()),
        _ => respond(StatusCode::NOT_FOUND, "text/plain", "/healthz, /readyz or /metrics\n".to_owned()),
    }
}

fn respond(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    async fn get(address: SocketAddr, head: &str) -> String {
        let mut stream = tokio::net::TcpStream::connect(address).await.expect("the port");
        stream
            .write_all(format!("{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())
            .await
            .expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("an answer");
        text
    }

    #[tokio::test]
    async fn admin_server_port_in_use_names_listen_flag() {
        let admin = Admin::bind(([127, 0, 0, 1], 0).into(), Readiness::default(), Arc::new(Metrics::new()))
            .await
            .expect("a port");
        let address = admin.address().expect("an address");
        let taken = Admin::bind(address, Readiness::default(), Arc::new(Metrics::new()))
            .await
            .expect_err("the port is taken");
        assert!(taken.to_string().contains("--listen"));
    }

    #[tokio::test]
    async fn admin_server_health_ready_and_metrics_paths_answer() {
        let readiness = Readiness::default();
        let admin = Admin::bind(([127, 0, 0, 1], 0).into(), readiness.clone(), Arc::new(Metrics::new()))
            .await
            .expect("a port");
        let address = admin.address().expect("an address");
        let server = tokio::spawn(admin.run());
        assert!(get(address, "GET /healthz").await.starts_with("HTTP/1.1 200"));
        assert!(get(address, "GET /readyz").await.starts_with("HTTP/1.1 503"));
        readiness.set(true);
        assert!(get(address, "GET /readyz?verbose").await.starts_with("HTTP/1.1 200"));
        let metrics = get(address, "GET /metrics").await;
        assert!(
            metrics.contains("vdo_build_info{version=") && metrics.ends_with("# EOF\n"),
            "{metrics}"
        );
        assert!(metrics.contains(CONTENT_TYPE));
        assert!(get(address, "POST /metrics").await.starts_with("HTTP/1.1 405"));
        assert!(get(address, "GET /plan").await.starts_with("HTTP/1.1 404"));
        assert!(get(address, "nonsense").await.starts_with("HTTP/1.1 400"));
        server.abort();
        let _ = server.await;
        assert!(
            tokio::net::TcpStream::connect(address).await.is_err(),
            "still served after it was dropped"
        );
    }
}
