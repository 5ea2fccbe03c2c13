// SPDX-License-Identifier: Apache-2.0
//! One connection: the client's half, and behind it one of our own to the API server.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, Notify};

use super::call::Call;
use super::{Act, Shared, answer, stream};

type Body = UnsyncBoxBody<Bytes, hyper::Error>;

/// The client's connection, as something that can be reset from the midst of an answer.
pub(super) struct Line {
    reset: Notify,
    upstream: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

impl Line {
    pub(super) fn reset(&self) {
        self.reset.notify_one();
    }
}

/// Serves a client until it or the proxy is gone.
pub(super) async fn serve(client: TcpStream, shared: Arc<Shared>) -> Result<()> {
    client.set_nodelay(true)?;
    let tls = shared.acceptor.accept(client).await?;
    let line = Arc::new(Line {
        reset: Notify::new(),
        upstream: Mutex::default(),
    });
    let service = service_fn(|request| answer_one(request, shared.clone(), line.clone()));
    let mut connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(tls), service);
    tokio::select! {
        ended = &mut connection => return ended.context("connection of a client"),
        () = line.reset.notified() => {}
    }
    // Linger of zero: closing sends RST, and nothing that is still in a buffer.
    let tls = connection.into_parts().io.into_inner();
    tls.get_ref().0.set_zero_linger()?;
    Ok(())
}

async fn answer_one(request: Request<Incoming>, shared: Arc<Shared>, line: Arc<Line>) -> Result<Response<Body>> {
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    // Before it is judged, so that what comes after is not missed.
    let mut passing = shared.passing.subscribe();
    let (call, act) = shared.take(Call::of(&parts.method, &parts.uri));
    match act {
        Act::Pass | Act::Delay(_) | Act::Late(_) | Act::LoseAnswer | Act::StopAfter => {}
        Act::Hold => drop(passing.changed().await),
        Act::At(version) => parts.uri = answer::at(&parts.uri, version),
        Act::Answer { code, retry_after } => {
            shared.done(&call, act, Some(code));
            return Ok(answer::response(code, retry_after).map(boxed));
        }
        Act::StopBefore => {
            shared.done(&call, act, None);
            return std::future::pending().await;
        }
    }
    let request = Request::from_parts(parts, Full::new(body));
    // What is on its way arrives, even when the client dies now; as it would on the way through a network.
    let sent = tokio::spawn(forward(request, call, act, shared.clone(), line.clone()));
    let response = sent.await.context("a request on its way")??;
    match act {
        Act::LoseAnswer => {
            line.reset();
            std::future::pending().await
        }
        Act::StopAfter => std::future::pending().await,
        Act::Late(time) => {
            tokio::time::sleep(time).await;
            Ok(response)
        }
        _ => Ok(response),
    }
}

async fn forward(mut request: Request<Full<Bytes>>, call: Call, act: Act, shared: Arc<Shared>, line: Arc<Line>) -> Result<Response<Body>> {
    if let Act::Delay(time) = act {
        tokio::time::sleep(time).await;
    }
    request.headers_mut().remove("connection");
    let version = super::lock(&shared.version).clone().filter(|_| request.uri().path() == "/version");
    let mut upstream = line.upstream.lock().await;
    if upstream.as_ref().is_none_or(SendRequest::is_closed) {
        *upstream = shared.connect().await.ok();
    }
    let response = match upstream.as_mut() {
        Some(sender) => sender.send_request(request).await.ok(),
        None => None,
    };
    drop(upstream);
    let Some(response) = response else {
        // No server, no answer: the client sees what it would see without us.
        shared.done(&call, act, None);
        line.reset();
        bail!("the API server does not answer");
    };
    let (mut parts, body) = response.into_parts();
    for header in ["connection", "transfer-encoding"] {
        parts.headers.remove(header);
    }
    if version.is_some() {
        parts.headers.remove("content-length");
    }
    let code = parts.status.as_u16();
    if call.verb == "watch" && parts.status == StatusCode::OK {
        shared.done(&call, act, Some(code));
        let body = StreamBody::new(stream::relay(body, call, shared, line));
        return Ok(Response::from_parts(parts, BodyExt::boxed_unsync(body)));
    }
    let bytes = body.collect().await;
    shared.done(&call, act, bytes.is_ok().then_some(code));
    let bytes = bytes.context("the answer of the API server")?.to_bytes();
    let bytes = version.map_or(Ok(bytes.clone()), |version| answer::version(&bytes, &version))?;
    Ok(Response::from_parts(parts, boxed(bytes)))
}

fn boxed(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}
