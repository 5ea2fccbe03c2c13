// SPDX-License-Identifier: Apache-2.0
//! Serves `/healthz`, `/readyz` and `/metrics` on one port, with its limits for clients and scrapes.
//!
//! A probe is always answered, whatever other clients do: connections are short, one request each; when there are too many the oldest
//! ends; and scrapes, whose answers are large, have a few slots of their own.

mod connections;

use super::heartbeat::Heartbeats;
use super::metrics::{CONTENT_TYPE, Metrics};
use super::metrics_access::{MetricsAccess, Refusal};
use connections::{Connections, Listener};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Answers with metrics that may be under way at the same time.
const MAX_SCRAPES: usize = 4;
/// How long a connection lasts at most: a request that does not come and an answer that is not read end with it.
const DEADLINE: Duration = Duration::from_secs(5);
/// A request with its headers, of which a token is the largest; hyper accepts nothing below 8 KiB.
const MAX_HEAD: usize = 16 * 1024;

/// How long an operator stays ready after it last knew who leads: longer than a Lease takes to pass on.
const LEADERLESS: Duration = Duration::from_secs(30);

/// Whether the operator is ready: its caches are filled, and it leads or knows that another one does. Cheap to clone and share.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<Mutex<ReadinessState>>);

#[derive(Debug, Default)]
struct ReadinessState {
    synced: bool,
    /// When it was last known that an operator leads.
    led: Option<Instant>,
}

/// Why an operator is not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// It has not read its objects yet.
    #[error("the caches are not filled yet")]
    Caches,
    /// No one acts.
    #[error("no operator is known to hold the Lease kube-system/vdo-operator")]
    Leaderless,
}

impl Readiness {
    fn known(&self) -> MutexGuard<'_, ReadinessState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caches are filled.
    pub fn synced(&self) {
        self.known().synced = true;
    }

    /// An operator leads at this moment: this one or another.
    pub fn led(&self) {
        self.known().led = Some(Instant::now());
    }

    /// Whether it is ready.
    ///
    /// # Errors
    /// With the reason when it is not.
    pub fn get(&self) -> Result<(), NotReady> {
        self.known().judge(Instant::now())
    }
}

impl ReadinessState {
    fn judge(&self, now: Instant) -> Result<(), NotReady> {
        match (self.synced, self.led) {
            (false, _) => Err(NotReady::Caches),
            (true, Some(led)) if now.saturating_duration_since(led) < LEADERLESS => Ok(()),
            (true, _) => Err(NotReady::Leaderless),
        }
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
    heartbeats: Heartbeats,
    metrics: Arc<Metrics>,
    deadline: Duration,
}

impl Admin {
    /// Opens the port. It is alive as long as nothing in `heartbeats` is overdue.
    ///
    /// # Errors
    /// When it is taken or may not be opened.
    pub async fn bind(
        address: SocketAddr,
        readiness: Readiness,
        heartbeats: Heartbeats,
        metrics: Arc<Metrics>,
    ) -> Result<Self, ListenError> {
        let listener = TcpListener::bind(address).await.map_err(|source| ListenError { address, source })?;
        Ok(Self {
            listener,
            readiness,
            heartbeats,
            metrics,
            deadline: DEADLINE,
        })
    }

    /// The address, with the port the system chose when none was given.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Serves until it is dropped.
    pub async fn run(self, access: MetricsAccess) {
        let site = Arc::new(Site {
            readiness: self.readiness,
            heartbeats: self.heartbeats,
            metrics: self.metrics,
            access,
            scrapes: Arc::new(Semaphore::new(MAX_SCRAPES)),
            deadline: self.deadline,
        });
        let mut listener = Listener::new(self.listener);
        let mut connections = Connections::default();
        loop {
            let stream = listener.accept(&mut connections).await;
            connections.serve(site.clone().serve(stream)).await;
        }
    }
}

/// What there is to show.
struct Site {
    readiness: Readiness,
    heartbeats: Heartbeats,
    metrics: Arc<Metrics>,
    access: MetricsAccess,
    scrapes: Arc<Semaphore>,
    deadline: Duration,
}

impl Site {
    /// Answers the one request of a connection.
    async fn serve(self: Arc<Self>, stream: TcpStream) {
        // Held until the answer is written, so that clients who do not read occupy no more than these.
        let slot = OnceLock::new();
        let (site, place) = (&self, &slot);
        let answer = service_fn(async |request| Ok::<_, Infallible>(site.answer(request, place).await));
        let mut server = http1::Builder::new();
        server.keep_alive(false).max_buf_size(MAX_HEAD);
        let served = server.serve_connection(TokioIo::new(stream), answer);
        match tokio::time::timeout(self.deadline, served).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a connection for probes and metrics ended early"),
            Err(_) => tracing::debug!("a connection for probes and metrics took too long"),
        }
    }

    async fn answer(&self, request: Request<Incoming>, slot: &OnceLock<OwnedSemaphorePermit>) -> Response<Full<Bytes>> {
        let (head, _) = request.into_parts();
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        }
        match head.uri.path() {
            "/healthz" => match self.heartbeats.verdict() {
                Ok(()) => text(StatusCode::OK, "ok\n"),
                Err(overdue) => {
                    tracing::error!("not alive: {overdue}");
                    respond(StatusCode::SERVICE_UNAVAILABLE, "text/plain", format!("{overdue}\n"))
                }
            },
            "/readyz" => match self.readiness.get() {
                Ok(()) => text(StatusCode::OK, "ready\n"),
                Err(why) => respond(StatusCode::SERVICE_UNAVAILABLE, "text/plain", format!("not ready: {why}\n")),
            },
            "/metrics" => self.scrape(&head.headers, slot).await,
            _ => text(StatusCode::NOT_FOUND, "/healthz, /readyz or /metrics\n"),
        }
    }

    async fn scrape(&self, headers: &HeaderMap, slot: &OnceLock<OwnedSemaphorePermit>) -> Response<Full<Bytes>> {
        if let Err(refusal) = self.access.check(headers).await {
            return refused(refusal);
        }
        let Ok(permit) = self.scrapes.clone().try_acquire_owned() else {
            return text(StatusCode::SERVICE_UNAVAILABLE, "too many scrapes at once\n");
        };
        let _ = slot.set(permit);
        respond(StatusCode::OK, CONTENT_TYPE, self.metrics.encode())
    }
}

fn refused(refusal: Refusal) -> Response<Full<Bytes>> {
    match refusal {
        Refusal::Unauthenticated => {
            let mut response = text(StatusCode::UNAUTHORIZED, "a bearer token is needed\n");
            let bearer = header::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
            response
        }
        Refusal::Forbidden => text(StatusCode::FORBIDDEN, "this account may not get /metrics\n"),
        Refusal::Busy => text(StatusCode::SERVICE_UNAVAILABLE, "too many tokens to review at once\n"),
        Refusal::Unknown => text(StatusCode::SERVICE_UNAVAILABLE, "the API server did not review the token\n"),
    }
}

fn text(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    respond(status, "text/plain", text)
}

fn respond(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests;
