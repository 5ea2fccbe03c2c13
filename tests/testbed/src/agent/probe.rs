// SPDX-License-Identifier: Apache-2.0
//! Probes of a container, as a kubelet makes them.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use futures::future::{Either, select};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::net::TcpStream;

/// How often a probe is made, and how many answers of one kind count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    delay: Duration,
    period: Duration,
    pub(super) patience: Duration,
    successes: u32,
    failures: u32,
}

impl Terms {
    /// What a probe says; the API server has filled in what it does not say.
    pub(super) fn of(probe: &Probe) -> Self {
        let seconds = |value: Option<i32>, default| Duration::from_secs(value.map_or(default, |value| u64::from(value.unsigned_abs())));
        let count = |value: Option<i32>, default| value.map_or(default, i32::unsigned_abs);
        Self {
            delay: seconds(probe.initial_delay_seconds, 0),
            period: seconds(probe.period_seconds, 10),
            patience: seconds(probe.timeout_seconds, 1),
            successes: count(probe.success_threshold, 1),
            failures: count(probe.failure_threshold, 3),
        }
    }
}

/// The answers to one probe of one run of a container.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    terms: Terms,
    next: Instant,
    run: (bool, u32),
    verdict: Option<bool>,
    eager: bool,
}

/// A kubelet asks about the readiness of a container that has not been ready yet whenever it looks at its pod, too.
const EAGER: Duration = Duration::from_secs(1);

impl Tally {
    /// No answers yet. An eager probe does not wait its whole period until the first success.
    pub(super) fn new(terms: Terms, started: Instant, eager: bool) -> Self {
        Self {
            terms,
            next: started + terms.delay,
            run: (false, 0),
            verdict: None,
            eager,
        }
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// What the answers so far say; nothing while neither threshold was reached.
    pub(super) fn verdict(&self) -> Option<bool> {
        self.verdict
    }

    /// Counts an answer.
    pub(super) fn count(&mut self, success: bool, now: Instant) {
        self.eager &= !success;
        self.next = now
            + if self.eager {
                self.terms.period.min(EAGER)
            } else {
                self.terms.period
            };
        self.run = match self.run {
            (kind, count) if kind == success => (kind, count + 1),
            _ => (success, 1),
        };
        let threshold = if success { self.terms.successes } else { self.terms.failures };
        if self.run.1 >= threshold {
            self.verdict = Some(success);
        }
    }
}

/// What a probe asks.
#[derive(Clone, Debug)]
pub(super) enum Question {
    Http {
        address: SocketAddr,
        path: String,
        headers: Vec<(String, String)>,
    },
    Tcp(SocketAddr),
}

impl Question {
    /// The question of a probe; `address` gives the place of a port, by its number or its name.
    pub(super) fn of(probe: &Probe, address: impl Fn(&IntOrString) -> Option<SocketAddr>) -> Result<Self> {
        let place = |port| address(port).with_context(|| format!("the container has no port {port:?}"));
        if let Some(get) = &probe.http_get {
            return Self::http(get, place(&get.port)?);
        }
        match &probe.tcp_socket {
            Some(socket) => Ok(Self::Tcp(place(&socket.port)?)),
            None => bail!("the test bed knows probes with httpGet and tcpSocket only"),
        }
    }

    fn http(get: &HTTPGetAction, address: SocketAddr) -> Result<Self> {
        if get.scheme.as_deref().is_some_and(|scheme| scheme != "HTTP") {
            bail!("the test bed knows probes over HTTP only");
        }
        let headers = get.http_headers.iter().flatten();
        Ok(Self::Http {
            address,
            path: get.path.clone().unwrap_or_else(|| "/".into()),
            headers: headers.map(|header| (header.name.clone(), header.value.clone())).collect(),
        })
    }

    /// Asks once; why the answer is none of a healthy container.
    pub(super) async fn ask(&self, patience: Duration) -> Result<()> {
        tokio::time::timeout(patience, self.asked())
            .await
            .with_context(|| format!("no answer within {patience:?}"))?
    }

    async fn asked(&self) -> Result<()> {
        let (address, path, headers) = match self {
            Self::Tcp(address) => {
                TcpStream::connect(address).await?;
                return Ok(());
            }
            Self::Http { address, path, headers } => (address, path, headers),
        };
        let stream = TokioIo::new(
            TcpStream::connect(address)
                .await
                .with_context(|| format!("connection to {address}"))?,
        );
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
        let mut request = http::Request::get(path)
            .header("Host", address.to_string())
            .header("User-Agent", "kube-probe/1.34");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let answer = pin!(sender.send_request(request.body(Empty::<Bytes>::new())?));
        // A server that closes the connection has answered before.
        let answer = match select(answer, pin!(connection)).await {
            Either::Left((answer, _)) => answer,
            Either::Right((_, answer)) => answer.await,
        };
        let status = answer.context("the answer")?.status();
        match status.as_u16() {
            200..=399 => Ok(()),
            code => bail!("HTTP probe failed with statuscode: {code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tally_verdict_changes_at_the_thresholds() {
        let terms = Terms {
            delay: Duration::from_secs(5),
            period: Duration::from_secs(10),
            patience: Duration::from_secs(1),
            successes: 2,
            failures: 3,
        };
        let begin = Instant::now();
        let mut tally = Tally::new(terms, begin, false);
        assert!(!tally.is_due(begin + Duration::from_secs(4)) && tally.is_due(begin + Duration::from_secs(5)));
        let answers = [true, true, false, false, true, false, false, false, true, true];
        let wanted = [
            None,
            Some(true),
            Some(true),
            Some(true),
            Some(true),
            Some(true),
            Some(true),
            Some(false),
            Some(false),
            Some(true),
        ];
        for (place, (answer, verdict)) in answers.into_iter().zip(wanted).enumerate() {
            tally.count(answer, begin);
            assert_eq!(tally.verdict(), verdict, "after answer {place}");
        }
        assert!(!tally.is_due(begin + Duration::from_secs(9)) && tally.is_due(begin + Duration::from_secs(10)));
    }

    #[test]
    fn tally_eager_probe_asks_each_second_until_its_first_success() {
        let begin = Instant::now();
        let mut tally = Tally::new(Terms::of(&Probe::default()), begin, true);
        let second = Duration::from_secs(1);
        tally.count(false, begin);
        assert!(tally.is_due(begin + second));
        tally.count(true, begin);
        tally.count(false, begin);
        assert!(!tally.is_due(begin + 9 * second) && tally.is_due(begin + 10 * second));
    }

    #[test]
    fn terms_of_a_probe_without_numbers_are_those_of_the_api() {
        let wanted = Terms {
            delay: Duration::ZERO,
            period: Duration::from_secs(10),
            patience: Duration::from_secs(1),
            successes: 1,
            failures: 3,
        };
        assert_eq!(Terms::of(&Probe::default()), wanted);
    }
}
