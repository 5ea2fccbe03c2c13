// SPDX-License-Identifier: Apache-2.0
//! One container: its state, and what comes next.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Container;
use k8s_openapi::jiff::Timestamp;

use super::address::Address;
use super::pods::Key;
use super::probe::{Question, Tally, Terms};
use super::status::{Backoff, End, Shown, State};
use k8s_openapi::api::core::v1::Probe;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::net::SocketAddr;

/// The kinds of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Startup,
    Liveness,
    Readiness,
}

/// A probe of a container and its answers.
#[derive(Debug)]
pub(super) struct Probed {
    pub(super) kind: Kind,
    pub(super) question: Result<Question, String>,
    pub(super) terms: Terms,
    pub(super) tally: Tally,
    /// The last failure that an event reports.
    pub(super) said: String,
}

/// A container of a pod.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) key: Key,
    pub(super) spec: Container,
    /// Whether it is run or fails; others are only said to run.
    pub(super) claimed: bool,
    pub(super) state: State,
    pub(super) last: Option<End>,
    pub(super) restarts: u32,
    pub(super) image_id: String,
    pub(super) begun: bool,
    pub(super) probes: Vec<Probed>,
    backoff: Backoff,
    /// When it may be started.
    pub(super) next: Instant,
    /// Since when it is being stopped, and until when it has time.
    pub(super) stopping: Option<Instant>,
}

impl Run {
    pub(super) fn new(key: Key, spec: &Container, claimed: bool) -> Self {
        let state = if claimed {
            State::Waiting {
                reason: "ContainerCreating",
                message: String::new(),
            }
        } else {
            State::Running { since: Timestamp::now() }
        };
        Self {
            key,
            spec: spec.clone(),
            claimed,
            state,
            last: None,
            restarts: 0,
            image_id: String::new(),
            begun: !claimed,
            probes: Vec::new(),
            backoff: Backoff::default(),
            next: Instant::now(),
            stopping: None,
        }
    }

    pub(super) fn image(&self) -> &str {
        self.spec.image.as_deref().unwrap_or_default()
    }

    /// Notes a start, and sets up the probes of this run.
    pub(super) fn started(&mut self, address: &Address) {
        if self.begun {
            self.restarts += 1;
        }
        self.begun = true;
        self.stopping = None;
        self.state = State::Running { since: Timestamp::now() };
        let now = Instant::now();
        let all = [
            (Kind::Startup, &self.spec.startup_probe),
            (Kind::Liveness, &self.spec.liveness_probe),
            (Kind::Readiness, &self.spec.readiness_probe),
        ];
        self.probes = all
            .into_iter()
            .filter_map(|(kind, probe)| Some((kind, probe.as_ref()?)))
            .map(|(kind, probe)| Probed {
                kind,
                question: self.question(probe, address),
                terms: Terms::of(probe),
                tally: Tally::new(Terms::of(probe), now, kind == Kind::Readiness),
                said: String::new(),
            })
            .collect();
    }

    fn question(&self, probe: &Probe, address: &Address) -> Result<Question, String> {
        let number = |port: &IntOrString| match port {
            IntOrString::Int(number) => u16::try_from(*number).ok(),
            IntOrString::String(name) => {
                let mut ports = self.spec.ports.iter().flatten();
                let port = ports.find(|port| port.name.as_ref() == Some(name))?;
                u16::try_from(port.container_port).ok()
            }
        };
        let place = |port: &IntOrString| {
            let number = number(port)?;
            let elsewhere = SocketAddr::new(address.ip, number);
            Some(address.ports.get(&number).copied().unwrap_or(elsewhere))
        };
        Question::of(probe, place).map_err(|error| format!("{error:#}"))
    }

    /// Notes an end. A container that is restarted waits as the kubelet lets it wait.
    pub(super) fn ended(&mut self, code: i32, restarts: bool) {
        let State::Running { since } = self.state else { return };
        let end = End {
            code,
            started: since,
            finished: Timestamp::now(),
        };
        self.probes.clear();
        self.stopping = None;
        self.state = State::Terminated(end.clone());
        if !restarts {
            return;
        }
        let now = Instant::now();
        let pause = self.backoff.pause(now);
        self.next = now + pause;
        self.last = Some(end);
        if pause > Duration::ZERO {
            let message = format!("back-off {}s restarting failed container={}", pause.as_secs(), self.spec.name);
            self.state = State::Waiting {
                reason: "CrashLoopBackOff",
                message,
            };
        }
    }

    /// Notes why it cannot be started, and whether that is news.
    pub(super) fn refused(&mut self, reason: &'static str, message: String, retry: Duration) -> bool {
        let state = State::Waiting { reason, message };
        let news = self.state != state;
        self.state = state;
        self.next = Instant::now() + retry;
        news
    }

    /// Whether the container is to be started now.
    pub(super) fn is_due(&self, restarts: bool) -> bool {
        let waits = match self.state {
            State::Waiting { .. } => true,
            State::Terminated(_) => restarts,
            State::Running { .. } => false,
        };
        self.claimed && waits && self.next <= Instant::now()
    }

    /// Whether the startup probe, if there is one, has succeeded.
    pub(super) fn is_started(&self) -> bool {
        let startup = self.probes.iter().find(|probe| probe.kind == Kind::Startup);
        matches!(self.state, State::Running { .. }) && startup.is_none_or(|probe| probe.tally.verdict() == Some(true))
    }

    fn is_ready(&self) -> bool {
        let readiness = self.probes.iter().find(|probe| probe.kind == Kind::Readiness);
        self.is_started() && self.stopping.is_none() && readiness.is_none_or(|probe| probe.tally.verdict() == Some(true))
    }

    pub(super) fn shown(&self) -> Shown {
        Shown {
            name: self.spec.name.clone(),
            image: self.image().to_owned(),
            image_id: self.image_id.clone(),
            state: self.state.clone(),
            last: self.last.clone(),
            restarts: self.restarts,
            started: self.is_started(),
            ready: self.is_ready(),
        }
    }
}
