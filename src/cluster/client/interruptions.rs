//! Notices watches that end before their time: when they are back, the API server may be another one.

use futures::FutureExt;
use futures::future::BoxFuture;
use http_body_util::Either;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::{Request, Response};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tower::{BoxError, Layer, Service};
use vdo_api::types::Later as _;

/// A server may end a watch a little before its time is over.
const EARLY: Duration = Duration::from_secs(5);

/// Sends when a watch is accepted after one has ended before its time.
///
/// The errors of watches would not do: an API server that is shut down properly ends them without one, and behind a load balancer
/// the next server takes them at once.
#[derive(Debug, Clone, Default)]
pub(super) struct Interruptions {
    lost: Arc<AtomicBool>,
    back: watch::Sender<()>,
}

/// A client whose watches are timed.
#[derive(Debug)]
pub(super) struct Timed<S> {
    inner: S,
    interruptions: Interruptions,
}

/// The answer to a watch.
pub(super) struct Events<B> {
    inner: Pin<Box<B>>,
    until: Instant,
    lost: Arc<AtomicBool>,
}

impl Interruptions {
    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.back.subscribe()
    }

    fn accepted<B>(&self, body: B, lasts: Duration) -> Events<B> {
        if self.lost.swap(false, Ordering::Relaxed) {
            self.back.send_replace(());
        }
        Events {
            inner: Box::pin(body),
            until: Instant::now().later(lasts.saturating_sub(EARLY)),
            lost: self.lost.clone(),
        }
    }
}

impl<S> Layer<S> for Interruptions {
    type Service = Timed<S>;

    fn layer(&self, inner: S) -> Timed<S> {
        Timed {
            inner,
            interruptions: self.clone(),
        }
    }
}

impl<S, R, B> Service<Request<R>> for Timed<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Either<B, Events<B>>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let lasts = watch_time(request.uri().query().unwrap_or_default());
        let interruptions = self.interruptions.clone();
        let response = self.inner.call(request);
        async move {
            let response = response.await.map_err(Into::into)?;
            let accepted = response.status().is_success();
            Ok(response.map(|body| match lasts.filter(|_| accepted) {
                Some(lasts) => Either::Right(interruptions.accepted(body, lasts)),
                None => Either::Left(body),
            }))
        }
        .boxed()
    }
}

impl<B: Body> Body for Events<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let frame = ready!(self.inner.as_mut().poll_frame(context));
        if !matches!(frame, Some(Ok(_))) && Instant::now() < self.until {
            self.lost.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    // Else an answer whose length is known would not be read to its end.
    fn is_end_stream(&self) -> bool {
        false
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// How long a watch lasts; `None` for other requests.
fn watch_time(query: &str) -> Option<Duration> {
    let pairs = || query.split('&').filter_map(|pair| pair.split_once('='));
    let value = |key: &str| pairs().find(|(own, _)| *own == key).map(|(_, value)| value);
    value("watch").filter(|value| matches!(*value, "true" | "1"))?;
    Some(Duration::from_secs(value("timeoutSeconds")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt, Full};

    /// What a server answers: a status, and a body that ends at once.
    async fn ask(interruptions: &Interruptions, status: u16, query: &str) -> impl Body {
        let server = tower::service_fn(move |_: Request<()>| async move {
            let answer = Response::builder().status(status);
            answer.body(Full::new(Bytes::from_static(b"{}")))
        });
        let request = Request::get(format!("http://server/api/v1/nodes?{query}")).body(());
        let request = request.expect("a request");
        interruptions.layer(server).call(request).await.expect("an answer").into_body()
    }

    #[tokio::test]
    async fn interrupted_watch_is_sent_when_a_watch_is_accepted_again() {
        const WATCH: &str = "watch=true&timeoutSeconds=290";
        let interruptions = Interruptions::default();
        let mut back = interruptions.subscribe();
        let mut sent = || {
            std::mem::replace(&mut back, interruptions.subscribe())
                .has_changed()
                .expect("a sender")
        };
        let first = ask(&interruptions, 200, WATCH).await;
        let _other = ask(&interruptions, 200, WATCH).await;
        assert!(!sent(), "two watches of the same are no interruption");
        drop(first);
        let ended = ask(&interruptions, 200, WATCH).await;
        assert!(!sent(), "a watch that was dropped has not ended by itself");
        let _ = ended.collect().await;
        let _ = ask(&interruptions, 503, WATCH).await;
        assert!(!sent(), "none is back yet");
        let _list = ask(&interruptions, 200, "limit=500").await;
        assert!(!sent(), "a list is no watch");
        let _again = ask(&interruptions, 200, WATCH).await;
        assert!(sent(), "one is back");
        let _and_another = ask(&interruptions, 200, WATCH).await;
        assert!(!sent(), "the others come back after the same interruption");
    }

    #[tokio::test]
    async fn watch_that_ended_in_time_was_not_interrupted() {
        let interruptions = Interruptions::default();
        let back = interruptions.subscribe();
        let ended = ask(&interruptions, 200, "watch=true&timeoutSeconds=1").await;
        let _ = ended.collect().await;
        let _ = ask(&interruptions, 200, "watch=true&timeoutSeconds=1").await;
        assert!(!back.has_changed().expect("a sender"));
    }

    #[test]
    fn watch_time_is_read_from_the_query() {
        for (query, seconds) in [
            ("watch=true&timeoutSeconds=290&resourceVersion=7", Some(290)),
            ("labelSelector=a%3Db&watch=1&timeoutSeconds=30", Some(30)),
            ("watch=true", None),
            ("watch=false&timeoutSeconds=290", None),
            ("labelSelector=watch%3Dtrue&timeoutSeconds=290", None),
            ("", None),
        ] {
            assert_eq!(watch_time(query), seconds.map(Duration::from_secs), "{query}");
        }
    }
}
