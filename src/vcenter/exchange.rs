//! HTTP over a connection that was opened and judged before.

use super::method::Place;
use super::{Endpoint, ProbeError};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

/// What the endpoint answered.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Bytes,
    /// The first part of `Set-Cookie`, word for word, to be sent back.
    pub(super) cookie: Option<HeaderValue>,
}

/// A connection for one exchange after the other. Dropping it closes it.
pub(super) struct Pipe {
    sender: SendRequest<Full<Bytes>>,
    _driver: JoinSet<Result<(), hyper::Error>>,
}

impl Pipe {
    pub(super) async fn open<S>(endpoint: &Endpoint, stream: S) -> Result<Self, ProbeError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|source| broken(endpoint, source))?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        Ok(Self { sender, _driver: driver })
    }

    /// Whether the other side has closed it while nothing was asked.
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// One POST to a SOAP service.
    pub(super) async fn post(
        &mut self,
        endpoint: &Endpoint,
        place: &Place,
        body: impl Into<Bytes>,
        cookie: Option<&HeaderValue>,
        limit: usize,
    ) -> Result<Answer, ProbeError> {
        let headers = [
            (header::CONTENT_TYPE, Some(HeaderValue::from_static("text/xml; charset=\"utf-8\""))),
            (HeaderName::from_static("soapaction"), Some(HeaderValue::from_static(place.action))),
            (header::COOKIE, cookie.cloned()),
        ];
        self.send(endpoint, hyper::Method::POST, place.path, headers, body, limit).await
    }

    /// One request. The answer is read up to `limit` bytes; a redirect is an answer like any other.
    pub(super) async fn send(
        &mut self,
        endpoint: &Endpoint,
        method: hyper::Method,
        path: &str,
        headers: impl IntoIterator<Item = (HeaderName, Option<HeaderValue>)>,
        body: impl Into<Bytes>,
        limit: usize,
    ) -> Result<Answer, ProbeError> {
        let malformed = |because: String| ProbeError::Malformed {
            address: endpoint.address(),
            because,
        };
        let mut request = hyper::Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, endpoint.address())
            .header(header::USER_AGENT, concat!("vdo/", env!("CARGO_PKG_VERSION")));
        for (name, value) in headers {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let request = request.body(Full::new(body.into())).map_err(|error| malformed(error.to_string()))?;
        self.sender.ready().await.map_err(|source| broken(endpoint, source))?;
        let response = self.sender.send_request(request).await.map_err(|source| broken(endpoint, source))?;
        let status = response.status().as_u16();
        let cookie = response.headers().get(header::SET_COOKIE).and_then(|value| {
            let first = value.as_bytes().split(|byte| *byte == b';').next()?;
            let mut value = HeaderValue::from_bytes(first).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        let body = Limited::new(response.into_body(), limit)
            .collect()
            .await
            .map_err(|error| match error.downcast::<hyper::Error>() {
                Ok(error) => broken(endpoint, *error),
                Err(error) if error.is::<LengthLimitError>() => ProbeError::TooLarge {
                    address: endpoint.address(),
                    limit,
                },
                Err(error) => malformed(error.to_string()),
            })?;
        Ok(Answer {
            status,
            body: body.to_bytes(),
            cookie,
        })
    }
}

fn broken(endpoint: &Endpoint, source: hyper::Error) -> ProbeError {
    ProbeError::Broken {
        address: endpoint.address(),
        source,
    }
}
