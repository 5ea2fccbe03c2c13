// SPDX-License-Identifier: Apache-2.0
//! Opens the TCP connection to a vCenter: resolves the name, connects directly or through an HTTP proxy, with one deadline.

use super::Endpoint;
use super::inspection_limits::{Budget, refused};
use crate::vsphere::{ProbeError, ProbeStage};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout, timeout_at};

/// A connection to the endpoint, direct or through a proxy.
pub(super) type Stream = TcpStream;

/// The deadline of one connection attempt.
pub(super) struct Deadline<'a> {
    endpoint: &'a Endpoint,
    budget: &'a Budget,
    until: Instant,
}

impl<'a> Deadline<'a> {
    /// Starts now.
    pub(super) fn start(endpoint: &'a Endpoint, budget: &'a Budget) -> Self {
        Self {
            endpoint,
            budget,
            until: budget.end_of_call(),
        }
    }

    /// Waits no longer than the deadline; passing it means that `stage` was not reached.
    pub(super) async fn within<T>(&self, stage: ProbeStage, future: impl Future<Output = T>) -> Result<T, ProbeError> {
        timeout_at(self.until, future).await.map_err(|_| self.passed(stage))
    }

    fn passed(&self, stage: ProbeStage) -> ProbeError {
        match self.budget.go_on() {
            Err(excess) => refused(self.endpoint, excess),
            Ok(()) => ProbeError::TimedOut {
                address: self.endpoint.address(),
                stage,
                after: self.budget.limits().call,
            },
        }
    }
}

/// Opens a connection, through the proxy of the environment where there is one for this address.
pub(super) async fn connect(endpoint: &Endpoint, clock: &Deadline<'_>) -> Result<Stream, ProbeError> {
    match proxy_for(endpoint, &Matcher::from_env()) {
        None => dial(&endpoint.server, endpoint.port, clock).await,
        Some(proxy) => tunnel(endpoint, &proxy, clock).await,
    }
}

/// A proxy never serves loopback addresses: from there they would mean another machine.
fn proxy_for(endpoint: &Endpoint, matcher: &Matcher) -> Option<Intercept> {
    let host = endpoint.server.trim_end_matches('.').to_ascii_lowercase();
    let loopback =
        host == "localhost" || host.ends_with(".localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
    let uri = format!("https://{}/", endpoint.address()).parse().ok()?;
    if loopback { None } else { matcher.intercept(&uri) }
}

async fn dial(host: &str, port: u16, clock: &Deadline<'_>) -> Result<TcpStream, ProbeError> {
    let unresolvable = |source| ProbeError::Unresolvable {
        server: host.to_owned(),
        source,
    };
    let addresses: Vec<SocketAddr> = clock
        .within(ProbeStage::Resolved, lookup_host((host, port)))
        .await?
        .map_err(|error| unresolvable(Some(error)))?
        .collect();
    let mut last = None;
    for (i, address) in addresses.iter().enumerate() {
        // A first address that swallows packets must leave time for the others.
        let left = clock.until.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - i).unwrap_or(u32::MAX);
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => last = Some(Ok(error)),
            Err(_) => last = last.or(Some(Err(()))),
        }
    }
    Err(match last {
        None => unresolvable(None),
        Some(Err(())) => clock.passed(ProbeStage::Connected),
        Some(Ok(error)) if error.kind() == io::ErrorKind::ConnectionRefused => ProbeError::Refused {
            address: clock.endpoint.address(),
        },
        Some(Ok(source)) => ProbeError::Unreachable {
            address: clock.endpoint.address(),
            source,
        },
    })
}

/// Asks an HTTP proxy to connect us.
async fn tunnel(endpoint: &Endpoint, proxy: &Intercept, clock: &Deadline<'_>) -> Result<TcpStream, ProbeError> {
    let uri = proxy.uri();
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let failed = |because: String| ProbeError::Proxy {
        address: endpoint.address(),
        proxy: format!("{}://{host}:{}", uri.scheme_str().unwrap_or_default(), uri.port_u16().unwrap_or(80)),
        because,
    };
    if uri.scheme_str() != Some("http") {
        return Err(failed("only http:// proxies are supported".to_owned()));
    }
    let mut stream = match dial(host, uri.port_u16().unwrap_or(80), clock).await {
        Ok(stream) => stream,
        Err(ProbeError::Unresolvable { .. }) => return Err(failed("its name does not resolve".to_owned())),
        Err(ProbeError::Refused { .. }) => return Err(failed("it refuses connections".to_owned())),
        Err(ProbeError::Unreachable { source, .. }) => return Err(failed(source.to_string())),
        Err(other) => return Err(other),
    };
    let address = endpoint.address();
    let mut request = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n").into_bytes();
    if let Some(auth) = proxy.basic_auth() {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(auth.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    let status = clock
        .within(ProbeStage::Connected, exchange_head(&mut stream, &request))
        .await?
        .map_err(|error| failed(error.to_string()))?;
    if (200..300).contains(&status) {
        Ok(stream)
    } else {
        Err(failed(format!("it answers with HTTP status {status}")))
    }
}

/// Sends a request and reads the head of the answer byte by byte, so that nothing of the tunnel is read with it.
async fn exchange_head(stream: &mut TcpStream, request: &[u8]) -> io::Result<u16> {
    const MAX_HEAD: usize = 16 << 10;
    stream.write_all(request).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == MAX_HEAD {
            return Err(io::Error::other("the header of its answer is too long"));
        }
        head.push(stream.read_u8().await?);
    }
    let text = String::from_utf8_lossy(&head);
    let status = text
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1))
        .and_then(|code| code.trim().parse().ok());
    status.ok_or_else(|| io::Error::other("it does not answer in HTTP"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_api::types::Trust;

    #[test]
    fn proxy_loopback_or_excluded_host_is_direct() {
        let matcher = Matcher::builder()
            .https("http://proxy.example.com:3128")
            .no("direct.example.com")
            .build();
        for (server, proxied) in [
            ("vcenter.example.com", true),
            ("fd01::1", true),
            ("direct.example.com", false),
            ("localhost", false),
            ("vc.LOCALHOST.", false),
            ("127.8.9.10", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
        ] {
            let endpoint = Endpoint {
                server: server.into(),
                port: 443,
                trust: Trust::SystemRoots,
            };
            assert_eq!(proxy_for(&endpoint, &matcher).is_some(), proxied, "{server}");
        }
    }

    /// The proxy gets a name, which is never resolved here; its refusal is shown in its words, without its password.
    #[tokio::test]
    async fn proxy_tunnel_each_answer_connects_or_fails() {
        for (answer, expected) in [
            ("HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nhello", Ok(())),
            (
                "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
                Err("it answers with HTTP status 407"),
            ),
            ("SSH-2.0\r\n\r\n", Err("it does not answer in HTTP")),
            ("HTTP/1.1 200", Err("unexpected end of file")),
        ] {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let proxy = format!("http://me:hunter2@{}", listener.local_addr().expect("an address"));
            let server = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.expect("a client");
                let mut seen = vec![];
                while !seen.ends_with(b"\r\n\r\n") {
                    seen.push(stream.read_u8().await.expect("a request"));
                }
                stream.write_all(answer.as_bytes()).await.expect("a reader");
                String::from_utf8(seen).expect("text")
            });
            let endpoint = Endpoint {
                server: "vcenter.invalid".into(),
                port: 8443,
                trust: Trust::SystemRoots,
            };
            let budget = Budget::default();
            let clock = Deadline::start(&endpoint, &budget);
            let chosen = proxy_for(&endpoint, &Matcher::builder().https(proxy).build()).expect("a proxy");
            let outcome = tunnel(&endpoint, &chosen, &clock).await;
            assert!(
                server
                    .await
                    .expect("the proxy")
                    .starts_with("CONNECT vcenter.invalid:8443 HTTP/1.1\r\nHost: vcenter.invalid:8443\r\nProxy-Authorization: Basic ")
            );
            match (outcome, expected) {
                (Ok(mut stream), Ok(())) => {
                    let mut rest = String::new();
                    stream.read_to_string(&mut rest).await.expect("the tunnel");
                    assert_eq!(rest, "hello", "bytes of the tunnel were lost");
                }
                (Err(error), Err(expected)) => {
                    assert!(error.to_string().contains(expected), "{error} does not say {expected:?}");
                    assert!(!format!("{error:?}").contains("hunter2") && error.stage() == ProbeStage::Connected);
                }
                (outcome, _) => assert_eq!(outcome.is_ok(), expected.is_ok(), "{outcome:?} instead of {expected:?}"),
            }
        }
    }
}
