// SPDX-License-Identifier: Apache-2.0
//! Connects to the API server through a proxy: HTTP CONNECT or SOCKS; `ProxyError` says why the proxy refused.

use super::cause;
use super::proxy::{Proxy, ProxyOrigin};
use futures::FutureExt;
use futures::future::BoxFuture;
use hyper::rt::{Read, Write};
use hyper::{StatusCode, Uri};
use hyper_util::client::legacy::connect::proxy::SocksV5;
use hyper_util::rt::TokioIo;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tower::{BoxError, Service, ServiceExt as _, service_fn};
use vdo_api::types::Remedy;

/// A proxy does not lead to the API server.
#[derive(Debug)]
pub struct ProxyError {
    /// The address of the proxy, without a login.
    proxy: String,
    /// Where it is named.
    origin: ProxyOrigin,
    failure: Failure,
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "proxy {} ({}) {}", self.proxy, self.origin, self.failure)
    }
}

impl Error for ProxyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.failure.source()
    }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("cannot be reached")]
    Unreachable(#[source] BoxError),
    #[error("ended the connection to {target}")]
    Ended {
        target: String,
        #[source]
        source: io::Error,
    },
    #[error("does not connect to {target}: it answers with HTTP status {status}")]
    Refused { target: String, status: StatusCode },
    #[error("does not answer in HTTP")]
    NotHttp,
    #[error("does not connect to {target}")]
    Socks {
        target: String,
        #[source]
        source: BoxError,
    },
}

impl ProxyError {
    /// The one among the causes of an error.
    #[must_use]
    pub fn among<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        cause(error)
    }
}

impl Remedy for ProxyError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        let origin = self.origin;
        let direct = match origin {
            ProxyOrigin::Kubeconfig => "remove proxy-url from the cluster of the kubeconfig",
            ProxyOrigin::Variable(_) => "add the API server to NO_PROXY",
        };
        Some(match &self.failure {
            Failure::Refused { status, .. } if *status == StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                format!("The proxy requires a valid user and password: write them into {origin} as SCHEME://USER:PASSWORD@HOST:PORT.")
                    .into()
            }
            Failure::Refused { .. } => {
                format!("Ask the administrator of the proxy to allow connections to that address. If no proxy is needed, {direct}.").into()
            }
            Failure::NotHttp => format!("Name an HTTP or SOCKS proxy in {origin}; if no proxy is needed, {direct}.").into(),
            Failure::Socks { .. } => format!(
                "Check user and password in {origin}, and whether the proxy may connect to that address. If no proxy is needed, {direct}."
            )
            .into(),
            Failure::Unreachable(_) | Failure::Ended { .. } => {
                format!("Check that the proxy runs, and its address in {origin}. If no proxy is needed, {direct}.").into()
            }
        })
    }
}

/// Connects to servers through a proxy; `dial` connects to the proxy itself.
#[derive(Debug, Clone)]
pub(super) struct Through<C> {
    proxy: Arc<Proxy>,
    dial: C,
}

impl<C> Through<C> {
    pub(super) fn new(proxy: Proxy, dial: C) -> Self {
        Self {
            proxy: Arc::new(proxy),
            dial,
        }
    }
}

impl<C> Service<Uri> for Through<C>
where
    C: Service<Uri> + Clone + Send + 'static,
    C::Response: Read + Write + Unpin + Send + 'static,
    C::Future: Send,
    C::Error: Into<BoxError> + Send,
{
    type Response = C::Response;
    type Error = ProxyError;
    type Future = BoxFuture<'static, Result<C::Response, ProxyError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ProxyError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let (proxy, dial) = (self.proxy.clone(), self.dial.clone());
        async move {
            let connected = reach(&proxy, dial, &server).await;
            connected.map_err(|failure| ProxyError {
                proxy: proxy.to_string(),
                origin: proxy.origin,
                failure,
            })
        }
        .boxed()
    }
}

async fn reach<C>(proxy: &Proxy, dial: C, server: &Uri) -> Result<C::Response, Failure>
where
    C: Service<Uri> + Send + 'static,
    C::Response: Read + Write + Unpin + Send + 'static,
    C::Future: Send,
    C::Error: Into<BoxError> + Send,
{
    // Only its transport matters to the connector: the scheme of SOCKS is unknown to it.
    let scheme = if proxy.is_socks() {
        Some("http")
    } else {
        proxy.address.scheme_str()
    };
    let address = format!(
        "{}://{}/",
        scheme.unwrap_or_default(),
        proxy.address.authority().map_or("", |a| a.as_str())
    );
    let address: Uri = address.parse().map_err(|error| Failure::Unreachable(Box::new(error)))?;
    let stream = dial.oneshot(address).await.map_err(|error| Failure::Unreachable(error.into()))?;
    let port = server
        .port_u16()
        .unwrap_or(if server.scheme_str() == Some("http") { 80 } else { 443 });
    let target = format!("{}:{port}", server.host().unwrap_or_default());
    if !proxy.is_socks() {
        return tunnel(proxy, stream, target).await;
    }
    let server = format!("https://{target}/")
        .parse()
        .map_err(|error| Failure::Unreachable(Box::new(error)))?;
    let mut only = Some(stream);
    // The stream is there already, so that its own errors are known.
    let dialled = service_fn(move |_: Uri| {
        let stream = only.take().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected));
        std::future::ready(stream)
    });
    let socks = SocksV5::new(proxy.address.clone(), dialled);
    let mut socks = match proxy.login.clone() {
        Some((user, password)) => socks.with_auth(user, password),
        None => socks,
    };
    socks.call(server).await.map_err(|error| Failure::Socks {
        target,
        source: error.to_string().into(),
    })
}

/// Asks an HTTP proxy to connect.
async fn tunnel<T: Read + Write + Unpin>(proxy: &Proxy, stream: T, target: String) -> Result<T, Failure> {
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(login) = &proxy.basic {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(login.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    let mut stream = TokioIo::new(stream);
    match exchange(&mut stream, &request).await {
        Ok(Some(status)) if status.is_success() => Ok(stream.into_inner()),
        Ok(Some(status)) => Err(Failure::Refused { target, status }),
        Ok(None) => Err(Failure::NotHttp),
        Err(source) => Err(Failure::Ended { target, source }),
    }
}

/// The most bytes of an answer that are read.
const HEAD: usize = 16 << 10;

/// Sends a request and reads the head of the answer byte by byte, so that nothing of the tunnel is read with it; `None` where it is not HTTP.
async fn exchange(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &[u8]) -> io::Result<Option<StatusCode>> {
    stream.write_all(request).await?;
    stream.flush().await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let is_http = head.len() < 5 || head.starts_with(b"HTTP/");
        if head.len() == HEAD || !is_http {
            return Ok(None);
        }
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head);
    let code = head.split([' ', '\r']).nth(1).and_then(|code| code.parse::<u16>().ok());
    Ok(code.and_then(|code| StatusCode::from_u16(code).ok()))
}

#[cfg(test)]
mod tests {
    use super::super::proxy::proxy_for;
    use super::*;
    use hyper_util::client::legacy::connect::HttpConnector;
    use tokio::net::TcpListener;
    use vdo_api::api::chain;

    /// A proxy that answers once with these bytes and ends; what it was asked comes back, up to as many bytes as are given.
    async fn answering(login: &str, scheme: &str, asked: usize, answer: &'static [u8]) -> (Result<Vec<u8>, ProxyError>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let named = format!("{scheme}://{login}{}", listener.local_addr().expect("an address"));
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a client");
            let mut seen = vec![];
            while !seen.ends_with(b"\r\n\r\n") && seen.len() < asked {
                seen.push(stream.read_u8().await.expect("a request"));
            }
            stream.write_all(answer).await.expect("a reader");
            seen
        });
        let to: Uri = "https://api.invalid:6443".parse().expect("an address");
        let proxy = proxy_for(&to, Some(&named), None).expect("an address").expect("a proxy");
        let mut dial = HttpConnector::new();
        dial.enforce_http(false);
        let connected = Through::new(proxy, dial).oneshot(to).await;
        let rest = match connected {
            Ok(stream) => {
                let mut rest = vec![];
                TokioIo::new(stream).read_to_end(&mut rest).await.expect("the tunnel");
                Ok(rest)
            }
            Err(error) => Err(error),
        };
        (rest, server.await.expect("the proxy"))
    }

    #[tokio::test]
    async fn tunnel_each_answer_connects_or_names_the_proxy_without_its_login() {
        for (answer, expected, remedy) in [
            (&b"HTTP/1.1 200 OK\r\nVia: x\r\n\r\nhello"[..], Ok("hello"), ""),
            (
                b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
                Err("does not connect to api.invalid:6443: it answers with HTTP status 407 Proxy Authentication Required"),
                "write them into proxy-url in the kubeconfig",
            ),
            (
                b"HTTP/1.1 403\r\n\r\n",
                Err("HTTP status 403 Forbidden"),
                "Ask the administrator of the proxy",
            ),
            (
                b"HTTP/1.1 999999\r\n\r\n",
                Err("does not answer in HTTP"),
                "Name an HTTP or SOCKS proxy",
            ),
            (b"SSH-2.0-x", Err("does not answer in HTTP"), "Name an HTTP or SOCKS proxy"),
            (
                b"HTTP/1.1 200",
                Err("ended the connection to api.invalid:6443"),
                "Check that the proxy runs",
            ),
        ] {
            let (outcome, asked) = answering("me:hunter2@", "http", usize::MAX, answer).await;
            let asked = String::from_utf8(asked).expect("text");
            assert!(
                asked.starts_with("CONNECT api.invalid:6443 HTTP/1.1\r\nHost: api.invalid:6443\r\nProxy-Authorization: Basic "),
                "{asked}"
            );
            match (outcome, expected) {
                (Ok(rest), Ok(expected)) => assert_eq!(rest, expected.as_bytes(), "bytes of the tunnel were lost"),
                (Err(error), Err(expected)) => {
                    let (said, todo) = (chain(&error), error.remedy().unwrap_or_default());
                    assert!(said.contains(expected) && said.contains("http://127.0.0.1:"), "{said}");
                    assert!(todo.contains(remedy), "{todo}");
                    assert!(!format!("{error:?}{said}{todo}").contains("hunter2"));
                }
                (outcome, _) => panic!("{outcome:?} instead of {expected:?}"),
            }
        }
    }

    #[tokio::test]
    async fn tunnel_without_a_proxy_names_its_address() {
        let gone = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port")
            .local_addr()
            .expect("an address");
        let to: Uri = "https://api.invalid".parse().expect("an address");
        let named = format!("http://me:hunter2@{gone}");
        let proxy = proxy_for(&to, Some(&named), None).expect("an address").expect("a proxy");
        let error = Through::new(proxy, HttpConnector::new())
            .oneshot(to)
            .await
            .expect_err("nothing listens");
        let said = chain(&error);
        assert!(
            said.starts_with(&format!("proxy http://{gone} (proxy-url in the kubeconfig) cannot be reached")),
            "{said}"
        );
    }

    /// The name of the server is sent to the proxy, which resolves it.
    #[tokio::test]
    async fn socks_names_the_server_and_reports_a_refusal() {
        let refused = b"\x05\x00\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00";
        let (outcome, asked) = answering("", "socks5", 3, refused).await;
        assert_eq!(asked, b"\x05\x01\x00");
        let said = chain(&outcome.expect_err("it refuses"));
        assert!(
            said.contains("socks5://127.0.0.1:") && said.contains("does not connect to api.invalid:6443: SOCKS error"),
            "{said}"
        );
        let (outcome, asked) = answering("me:hunter2@", "socks5h", 3, b"\x05\xff").await;
        assert_eq!(asked, b"\x05\x01\x02");
        assert!(!format!("{:?}", outcome.expect_err("it takes no passwords")).contains("hunter2"));
    }
}
