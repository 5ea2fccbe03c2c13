// SPDX-License-Identifier: Apache-2.0
//! Limits the size of the pages of a list in bytes, in a layer of the client: requests fewer objects where a page is too large.
//!
//! An API server limits a page by the number of objects, and an object may have megabytes.

use futures::FutureExt;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Either};
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use hyper::http::request::Parts;
use hyper::{Request, Response, Uri};
use kube::client::Body;
use std::collections::HashMap;
use std::convert::Infallible;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{BoxError, Layer, Service, ServiceExt};

/// Bytes of a page. A hundred nodes have 2 MiB; one object may have 3.
const PAGE: usize = 6 << 20;
/// Bytes of a page with one object, which cannot be smaller.
const OBJECT: usize = 16 << 20;
/// From how many bytes on a page is large.
const LARGE: usize = 512 << 10;
/// Large pages that are read at the same time.
const AT_ONCE: usize = 2;

/// Asks for fewer objects where a page is too large, and remembers for how many it was not.
#[derive(Clone)]
pub(super) struct Pages {
    /// Objects of a page, by the path of the list.
    sizes: Arc<Mutex<HashMap<String, u32>>>,
    turns: Arc<Semaphore>,
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            sizes: Arc::default(),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

/// A client whose lists come in pages that fit.
#[derive(Clone)]
pub(super) struct Paged<S> {
    inner: S,
    pages: Pages,
}

impl<S> Layer<S> for Pages {
    type Service = Paged<S>;

    fn layer(&self, inner: S) -> Paged<S> {
        Paged {
            inner,
            pages: self.clone(),
        }
    }
}

/// The content of a page. Until it was taken, no more than one other is read.
pub(super) struct Page {
    bytes: Option<Bytes>,
    _turn: Option<OwnedSemaphorePermit>,
}

impl HttpBody for Page {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

impl<S, B> Service<Request<Body>> for Paged<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Either<B, Page>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Some(limit) = limit(request.uri()) else {
            let response = self.inner.call(request);
            return async move { Ok(response.await.map_err(Into::into)?.map(Either::Left)) }.boxed();
        };
        // The clone is not ready yet; the one that was asked is.
        let other = self.inner.clone();
        let inner = mem::replace(&mut self.inner, other);
        let (asked, _) = request.into_parts();
        self.pages.clone().list(inner, asked, limit).boxed()
    }
}

impl Pages {
    async fn list<S, B>(self, mut inner: S, asked: Parts, limit: u32) -> Result<Response<Either<B, Page>>, BoxError>
    where
        S: Service<Request<Body>, Response = Response<B>>,
        S::Error: Into<BoxError>,
        B: HttpBody<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let path = asked.uri.path().to_owned();
        loop {
            let count = self.size(&path).map_or(limit, |known| known.min(limit));
            let mut parts = asked.clone();
            parts.uri = with_limit(&parts.uri, count)?;
            let response = inner.call(Request::from_parts(parts, Body::empty())).await.map_err(Into::into)?;
            if !response.status().is_success() {
                return Ok(response.map(Either::Left));
            }
            let (head, body) = response.into_parts();
            let most = if count > 1 { PAGE } else { OBJECT };
            match self.read(body, most).await? {
                Some(page) => {
                    // As many as would have fitted, but not many more than before.
                    let bytes = page.bytes.as_ref().map_or(0, Bytes::len);
                    if count < limit && bytes < PAGE / 4 {
                        self.learn(path, count * 2);
                    }
                    return Ok(Response::from_parts(head, Either::Right(page)));
                }
                None if count == 1 => return Err(format!("an object of {path} has more than {} MiB", OBJECT >> 20).into()),
                None => self.learn(path.clone(), (count / 4).max(1)),
            }
            inner.ready().await.map_err(Into::into)?;
        }
    }

    fn size(&self, path: &str) -> Option<u32> {
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied()
    }

    fn learn(&self, path: String, count: u32) {
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner).insert(path, count);
    }

    /// Reads a page; `None` when it has more bytes.
    async fn read<B>(&self, body: B, most: usize) -> Result<Option<Page>, BoxError>
    where
        B: HttpBody<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let mut body = pin!(body);
        let (mut bytes, mut turn) = (Vec::new(), None);
        loop {
            let frame = body.frame().await.transpose().map_err(Into::into)?;
            let Some(frame) = frame else {
                return Ok(Some(Page {
                    bytes: Some(bytes.into()),
                    _turn: turn,
                }));
            };
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > most {
                return Ok(None);
            }
            bytes.extend_from_slice(&data);
            if bytes.len() > LARGE && turn.is_none() {
                turn = Some(self.turns.clone().acquire_owned().await?);
            }
        }
    }
}

/// How many objects a list asks for; `None` for anything else.
fn limit(uri: &Uri) -> Option<u32> {
    let query = uri.query()?;
    let is_watch = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"));
    let limit = query.split('&').find_map(|pair| pair.strip_prefix("limit="))?;
    limit.parse().ok().filter(|limit| *limit > 0 && !is_watch)
}

fn with_limit(uri: &Uri, count: u32) -> Result<Uri, BoxError> {
    let pairs = uri.query().unwrap_or_default().split('&');
    let pairs: Vec<String> = pairs
        .map(|pair| match pair.starts_with("limit=") {
            true => format!("limit={count}"),
            false => pair.to_owned(),
        })
        .collect();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(format!("{}?{}", uri.path(), pairs.join("&")).parse()?);
    Ok(Uri::from_parts(parts)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;
    use tower::service_fn;

    /// A server with objects of so many bytes, and how many were asked for each time.
    async fn asked(object: usize, times: usize) -> (Vec<u32>, Result<usize, String>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = seen.clone();
        let server = service_fn(move |request: Request<Body>| {
            let count = limit(request.uri()).expect("a list");
            noted.lock().expect("a lock").push(count);
            let bytes = Bytes::from(vec![b' '; object * count as usize]);
            std::future::ready(Ok::<_, BoxError>(Response::new(Full::from(bytes))))
        });
        let mut client = Pages::default().layer(server);
        let mut last = Err("nothing was asked".to_owned());
        for _ in 0..times {
            let request = Request::get("/api/v1/pods?&labelSelector=a%3Db&limit=100&continue=x");
            let request = request.body(Body::empty()).expect("a request");
            last = match client.ready().await.expect("ready").call(request).await {
                Ok(page) => Ok(page.into_body().collect().await.expect("a page").to_bytes().len()),
                Err(error) => Err(error.to_string()),
            };
        }
        let seen = seen.lock().expect("a lock").clone();
        (seen, last)
    }

    #[tokio::test]
    async fn page_of_large_objects_is_asked_for_with_fewer() {
        assert_eq!(asked(20_000, 2).await, (vec![100, 100], Ok(2_000_000)));
        assert_eq!(
            asked(1 << 20, 2).await,
            (vec![100, 25, 6, 6], Ok(6 << 20)),
            "it remembers how many fit"
        );
        assert_eq!(asked(3 << 20, 1).await, (vec![100, 25, 6, 1], Ok(3 << 20)));
        let (seen, error) = asked(20 << 20, 1).await;
        assert_eq!(seen, [100, 25, 6, 1]);
        assert_eq!(error, Err("an object of /api/v1/pods has more than 16 MiB".to_owned()));
    }

    #[test]
    fn other_requests_are_no_lists() {
        for (address, expected) in [
            ("/api/v1/pods?limit=7", Some(7)),
            ("/api/v1/pods?&watch=true&limit=7", None),
            ("/api/v1/pods", None),
            ("/api/v1/namespaces/n/pods/p/log?&limitBytes=7", None),
            ("/api/v1/pods?limit=0", None),
        ] {
            assert_eq!(limit(&address.parse().expect("an address")), expected, "{address}");
        }
        let uri = with_limit(&"/api/v1/pods?&a=b%20c&limit=7&continue=d".parse().expect("an address"), 3).expect("an address");
        assert_eq!(uri, "/api/v1/pods?&a=b%20c&limit=3&continue=d");
    }
}
