// SPDX-License-Identifier: Apache-2.0
//! Rewrites two answers of the API server before kube reads them: `Retry-After`, and the status 410 of a watch.

use futures::FutureExt;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Bytes};
use hyper::header::RETRY_AFTER;
use hyper::{HeaderMap, Request, Response, StatusCode};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::time::Sleep;
use tower::{BoxError, Layer, Service};
use vdo_api::retry::{API_SERVER, retry_after};
use vdo_api::types::{Later as _, from_json};

/// Reads answers before kube's client does.
///
/// # Guarantees
/// * After an answer with `Retry-After` nothing is asked until that time has passed, five seconds at most.
/// * A watch whose place is too old starts over with a list, whether the server answers with an event or by the status 410.
///   After the status alone kube's watcher would ask for the same place for ever.
#[derive(Debug, Clone, Default)]
pub(super) struct ResponseFilter {
    not_before: Arc<Mutex<Option<Instant>>>,
}

/// A client whose answers are filtered.
#[derive(Debug)]
pub(super) struct Filtered<S> {
    inner: S,
    filter: ResponseFilter,
    pausing: Option<Pin<Box<Sleep>>>,
}

impl<S> Layer<S> for ResponseFilter {
    type Service = Filtered<S>;

    fn layer(&self, inner: S) -> Filtered<S> {
        Filtered {
            inner,
            filter: self.clone(),
            pausing: None,
        }
    }
}

impl<S, R, B> Service<Request<R>> for Filtered<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Either<B, Full<Bytes>>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        loop {
            if let Some(pausing) = &mut self.pausing {
                ready!(pausing.as_mut().poll(context));
                self.pausing = None;
            }
            // Another answer may have asked for more in the meantime.
            match self.filter.pause() {
                Duration::ZERO => return self.inner.poll_ready(context).map_err(Into::into),
                pause => self.pausing = Some(Box::pin(tokio::time::sleep(pause))),
            }
        }
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let filter = self.filter.clone();
        let watches = is_watch(request.uri().query().unwrap_or_default());
        let response = self.inner.call(request);
        async move {
            let response = response.await.map_err(Into::into)?;
            if let Some(pause) = asked_to_wait(response.headers()) {
                filter.wait(pause);
            }
            if watches && response.status() == StatusCode::GONE {
                let said = response.into_body().collect().await.map_err(Into::into)?.to_bytes();
                return Ok(Response::new(Either::Right(Full::from(error_event(&said)))));
            }
            Ok(response.map(Either::Left))
        }
        .boxed()
    }
}

impl ResponseFilter {
    fn pause(&self) -> Duration {
        let not_before = *self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        not_before.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()))
    }

    fn wait(&self, pause: Duration) {
        let until = Instant::now().later(pause.min(API_SERVER.granted));
        let mut not_before = self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        *not_before = Some(not_before.map_or(until, |known| known.max(until)));
    }
}

fn is_watch(query: &str) -> bool {
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

#[expect(clippy::disallowed_methods, reason = "the clock enters here, for a date in Retry-After")]
fn asked_to_wait(headers: &HeaderMap) -> Option<Duration> {
    retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?, jiff::Timestamp::now())
}

/// The line of a watch that says what the status said.
fn error_event(said: &[u8]) -> Vec<u8> {
    let status = from_json(said).unwrap_or_else(|_| {
        serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410,
            "message": "the place in the watch is too old"})
    });
    let mut line = serde_json::json!({"type": "ERROR", "object": status}).to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_header_in_seconds_is_parsed() {
        let headers = |text: &str| HeaderMap::from_iter([(RETRY_AFTER, text.parse().expect("a value"))]);
        assert_eq!(asked_to_wait(&headers("7")), Some(Duration::from_secs(7)));
        assert_eq!(asked_to_wait(&headers("Fri, 31 Dec 1999 23:59:59 GMT")), None);
        assert_eq!(asked_to_wait(&HeaderMap::new()), None);
    }

    #[test]
    fn watch_query_parameter_is_recognized() {
        for (query, watch) in [
            ("watch=true&x=1", true),
            ("a=b&watch=1", true),
            ("labelSelector=watch%3Dtrue", false),
            ("", false),
        ] {
            assert_eq!(is_watch(query), watch, "{query}");
        }
    }

    #[test]
    fn backoff_several_retry_after_uses_longest_and_is_bounded() {
        let filter = ResponseFilter::default();
        assert_eq!(filter.pause(), Duration::ZERO);
        filter.wait(Duration::from_secs(3));
        filter.wait(Duration::from_secs(1));
        assert!(filter.pause() > Duration::from_secs(2));
        for longest in [Duration::from_secs(3600), Duration::from_secs(u64::MAX)] {
            filter.wait(longest);
            assert!(filter.pause() <= API_SERVER.granted);
        }
    }

    #[test]
    fn watch_error_status_becomes_error_event() {
        for said in [&br#"{"kind":"Status","code":410,"reason":"Expired"}"#[..], b"no JSON"] {
            let line = error_event(said);
            assert_eq!(line.last(), Some(&b'\n'));
            let event: serde_json::Value = serde_json::from_slice(&line).expect("JSON");
            assert_eq!((&event["type"], &event["object"]["code"]), (&"ERROR".into(), &410.into()));
        }
    }
}
