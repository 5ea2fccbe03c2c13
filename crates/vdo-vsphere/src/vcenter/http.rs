// SPDX-License-Identifier: Apache-2.0
//! HTTP/1.1 requests and bounded answers over an open TLS connection to a vCenter; redirects are not followed.

use super::Endpoint;
use super::identifiers::proof;
use super::inspection_limits::{Budget, Held, refused};
use super::requests::Place;
use crate::vsphere::ProbeError;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;

/// What the endpoint answered.
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// The body, whole.
    pub body: Vec<u8>,
    /// The first part of `Set-Cookie`, word for word, to be sent back.
    pub cookie: Option<HeaderValue>,
    _held: Held,
}

impl Answer {
    /// The body as a text.
    pub fn text(&self) -> Result<&str, &'static str> {
        std::str::from_utf8(&self.body).map_err(|_| "it is not UTF-8 text")
    }
}

/// What is read ahead of an answer, and all that may stand in its head.
const MAX_BUFFER: usize = 64 << 10;

/// A connection for one exchange after the other. Dropping it closes it.
pub struct Http1 {
    sender: SendRequest<Full<Bytes>>,
    _driver: JoinSet<Result<(), hyper::Error>>,
}

impl Http1 {
    pub async fn open<S>(endpoint: &Endpoint, stream: S) -> Result<Self, ProbeError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, connection) = Builder::new()
            .max_buf_size(MAX_BUFFER)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|source| broken(endpoint, source))?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        Ok(Self { sender, _driver: driver })
    }

    /// Whether the other side has closed it while nothing was asked.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// One POST to a SOAP service.
    pub async fn post(
        &mut self,
        endpoint: &Endpoint,
        place: &Place,
        body: impl Into<Bytes>,
        cookie: Option<&HeaderValue>,
        bounds: Bounds<'_>,
    ) -> Result<Answer, ProbeError> {
        let headers = [
            (header::CONTENT_TYPE, Some(HeaderValue::from_static("text/xml; charset=\"utf-8\""))),
            (HeaderName::from_static("soapaction"), Some(HeaderValue::from_static(place.action))),
            (header::COOKIE, cookie.cloned()),
        ];
        self.send(endpoint, hyper::Method::POST, &place.path, headers, body, bounds).await
    }

    /// One request. The answer is read within its bounds; a redirect is an answer like any other.
    pub async fn send(
        &mut self,
        endpoint: &Endpoint,
        method: hyper::Method,
        path: &str,
        headers: impl IntoIterator<Item = (HeaderName, Option<HeaderValue>)>,
        body: impl Into<Bytes>,
        bounds: Bounds<'_>,
    ) -> Result<Answer, ProbeError> {
        bounds.budget.go_on().map_err(|excess| refused(endpoint, excess))?;
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
        let cookie = response
            .headers()
            .get(header::SET_COOKIE)
            .and_then(|value| proof(value.as_bytes().split(|byte| *byte == b';').next()?));
        let (body, held) = collect(endpoint, response.into_body(), bounds).await?;
        Ok(Answer {
            status,
            body,
            cookie,
            _held: held,
        })
    }
}

/// How much of an answer is read.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    /// Of this answer, so many bytes.
    pub answer: usize,
    /// Of all.
    pub budget: &'a Budget,
}

async fn collect(endpoint: &Endpoint, mut body: Incoming, bounds: Bounds<'_>) -> Result<(Vec<u8>, Held), ProbeError> {
    let (mut all, mut held) = (Vec::new(), bounds.budget.hold());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|source| broken(endpoint, source))?;
        let Some(data) = frame.data_ref() else { continue };
        if all.len() + data.len() > bounds.answer {
            return Err(ProbeError::TooLarge {
                address: endpoint.address(),
                limit: bounds.answer,
            });
        }
        // A vector that grows stands in memory twice.
        let room = bounds.budget.receive(data.len()).and_then(|()| held.grow(2 * data.len()));
        room.map_err(|excess| refused(endpoint, excess))?;
        all.extend_from_slice(data);
    }
    Ok((all, held))
}

fn broken(endpoint: &Endpoint, source: hyper::Error) -> ProbeError {
    ProbeError::Broken {
        address: endpoint.address(),
        source: source.into(),
    }
}
