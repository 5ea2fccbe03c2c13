// SPDX-License-Identifier: Apache-2.0
//! Leader election: acquires, renews and releases the Lease `kube-system/vdo-operator` (coordination.k8s.io).

use super::{ClusterError, Fence};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use std::time::{Duration, Instant};
use vdo_api::types::{Later as _, ObjectId};

/// Where the Lease is: in one place for the whole cluster, whichever namespace an operator runs in.
pub const LEASE_NAMESPACE: &str = "kube-system";
/// Its name.
pub const LEASE_NAME: &str = "vdo-operator";

/// How long a Lease is respected after its last change.
const DURATION: Duration = Duration::from_secs(15);
/// How much earlier the holder stops writing: what was sent must have arrived before anyone else writes.
const MARGIN: Duration = Duration::from_secs(3);
/// How often the holder renews it.
const RENEW: Duration = Duration::from_secs(5);
/// How often the others look at it, and the holder when a renewal failed.
const RETRY: Duration = Duration::from_secs(2);
/// How long one request may take. Whether a write was made that is not answered by then is read afterwards.
const REQUEST: Duration = Duration::from_secs(6);

/// Campaigns for the Lease and holds it.
///
/// # Guarantees
/// * The fence is open only while the Lease is held, and shuts by itself [`MARGIN`] before anyone else may take it.
/// * Time is measured by this machine's steady clock from before each write; no wall clock matters.
/// * A process whose writes are answered too late to lead by them lets the Lease run out, and lets others go first.
pub struct Election {
    api: Api<Lease>,
    /// Its name.
    lease: &'static str,
    identity: String,
    fence: Fence,
    /// The Lease as it was read or written last, and when that state was seen first.
    seen: Option<(Lease, Instant)>,
    /// When we took it or asked for it, as it stands in the Lease; another holder of the same name wrote another time.
    taken: Option<MicroTime>,
    /// The last write, of which it is not known whether it was made: its time of renewal, and when it was sent.
    unanswered: Option<(MicroTime, Instant)>,
    /// Whether that write may still arrive: its connection was not broken, only its time was over.
    in_flight: bool,
    /// Whether this process has ever asked for it.
    asked: bool,
    /// Whether what we wrote last was confirmed too late to lead by it.
    late: bool,
}

/// How the campaign stands after a look at the Lease.
#[derive(Debug)]
pub enum Standing {
    /// This process leads from now on.
    Won,
    /// It leads as before.
    Leads,
    /// Another one leads.
    Follows,
    /// No one is known to lead: the Lease cannot be read or written in time, or its holder lets it run out.
    Leaderless,
    /// The same, because the rights on the Lease are missing: only an administrator can change that.
    Forbidden(ClusterError),
}

/// What to do about the Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// There is none: make it.
    Create,
    /// It is ours: renew it.
    Renew,
    /// Its holder is gone or has let go: take it.
    Take,
    /// Another process holds it.
    Follow,
}

/// What decides about the turn of a process, beside the Lease.
#[derive(Debug, Clone, Copy)]
struct Own<'a> {
    identity: &'a str,
    /// When we took the Lease, if we hold it.
    taken: Option<&'a MicroTime>,
    /// We have never asked for it, so a holder of our name is the process that ran before us in this pod.
    fresh: bool,
    /// We took it and could not lead, so everyone else goes first.
    late: bool,
}

/// How long this state of the Lease is respected by everyone.
fn respected(lease: &LeaseSpec) -> Duration {
    let seconds = lease.lease_duration_seconds.and_then(|s| u64::try_from(s).ok());
    seconds.map_or(DURATION, Duration::from_secs)
}

/// Decides from the Lease alone.
fn turn(own: Own<'_>, lease: Option<&LeaseSpec>, unchanged: Duration) -> Turn {
    let Some(lease) = lease else { return Turn::Create };
    let holder = lease.holder_identity.as_deref().unwrap_or_default();
    if holder == own.identity && own.taken.is_some() && lease.acquire_time.as_ref() == own.taken {
        return Turn::Renew;
    }
    let is_free = holder.is_empty() || (holder == own.identity && own.fresh);
    let respected = if is_free { Duration::ZERO } else { respected(lease) };
    let behind = if own.late { DURATION } else { Duration::ZERO };
    match unchanged >= respected.saturating_add(behind) {
        true => Turn::Take,
        false => Turn::Follow,
    }
}

/// What a round has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    /// The Lease is ours as it was written at this moment.
    Held(Instant),
    /// Our last write may still arrive.
    Waits,
    /// It did not arrive in time.
    Missed,
    /// It is another's turn.
    Follows,
}

/// Until when writes may be made by a Lease that was written at `sent`.
fn open_until(sent: Instant) -> Instant {
    sent.later(DURATION.saturating_sub(MARGIN))
}

/// Whether a write of that moment was confirmed early enough that the next one is, too, before the fence shuts.
fn is_in_time(sent: Instant, now: Instant) -> bool {
    now.duration_since(sent) <= REQUEST.saturating_add(RETRY)
}

impl Election {
    /// A campaign for this Lease, under a name that no other process has at the same time.
    #[must_use]
    pub fn new(client: Client, lease: &'static str, identity: String, fence: Fence) -> Self {
        Self {
            api: Api::namespaced(client, LEASE_NAMESPACE),
            lease,
            identity,
            fence,
            seen: None,
            taken: None,
            unanswered: None,
            in_flight: false,
            asked: false,
            late: false,
        }
    }

    /// Campaigns until it is dropped; calls `on` after every look at the Lease.
    pub async fn run(&mut self, on: impl Fn(Standing)) {
        let (mut failing, mut leading) = (false, false);
        loop {
            let begun = Instant::now();
            let (standing, pause) = match self.round().await {
                Ok(Round::Held(sent)) => {
                    failing = false;
                    (self.held(sent), RENEW)
                }
                Ok(Round::Follows) => {
                    self.lost(leading);
                    failing = false;
                    (self.followed(), RETRY)
                }
                Ok(Round::Missed) => (self.missed(), RETRY),
                Ok(Round::Waits) => (self.unchanged(), RETRY),
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        let error = vdo_api::api::chain(&error);
                        tracing::warn!(
                            error,
                            "the Lease cannot be read or written; the operator writes nothing without the Lease"
                        );
                    }
                    let standing = match error {
                        ClusterError::Forbidden { .. } if !self.fence.is_open() => Standing::Forbidden(error),
                        _ => self.unchanged(),
                    };
                    (standing, RETRY)
                }
            };
            if leading && !self.fence.is_open() {
                tracing::warn!(
                    "this operator has lost the Lease, or the Lease has expired; the operator writes nothing until it holds the Lease again"
                );
            }
            leading = self.fence.is_open();
            on(standing);
            tokio::time::sleep_until(begun.later(pause).into()).await;
        }
    }

    /// What was written at `sent` is in the Lease.
    fn held(&mut self, sent: Instant) -> Standing {
        if !self.fence.is_open() && !is_in_time(sent, Instant::now()) {
            return self.missed();
        }
        self.late = false;
        match self.fence.open_until(open_until(sent)) {
            true => {
                tracing::info!(identity = self.identity, "leading");
                Standing::Won
            }
            false => Standing::Leads,
        }
    }

    /// To write it once more would keep everyone else out, and be as late.
    fn missed(&mut self) -> Standing {
        (self.taken, self.unanswered, self.late) = (None, None, true);
        tracing::warn!(
            "the API server confirmed the write to the Lease too late, so this operator does not lead and lets another operator try first"
        );
        Standing::Leaderless
    }

    /// Nothing is known that was not known before.
    fn unchanged(&self) -> Standing {
        if self.fence.is_open() {
            Standing::Leads
        } else {
            Standing::Leaderless
        }
    }

    fn lost(&mut self, leading: bool) {
        self.taken = None;
        self.unanswered = None;
        if leading {
            let holder = self.spec().and_then(|spec| spec.holder_identity.clone());
            tracing::warn!(holder, "another operator leads now");
        }
        self.fence.close();
    }

    /// Whether the one who holds it still renews it.
    fn followed(&self) -> Standing {
        let holds = |spec: &LeaseSpec| {
            spec.holder_identity
                .as_deref()
                .is_some_and(|holder| !holder.is_empty() && holder != self.identity)
        };
        let alive = self.seen.as_ref().is_some_and(|(lease, since)| {
            let spec = lease.spec.as_ref().filter(|spec| holds(spec));
            spec.is_some_and(|spec| since.elapsed() < respected(spec).saturating_add(RETRY))
        });
        if alive { Standing::Follows } else { Standing::Leaderless }
    }

    fn spec(&self) -> Option<&LeaseSpec> {
        self.seen.as_ref()?.0.spec.as_ref()
    }

    /// One look, and one write if it is our turn.
    async fn round(&mut self) -> Result<Round, ClusterError> {
        // What we wrote last is what is there, unless another operator wrote; then the write is refused.
        if self.taken.is_none() || self.unanswered.is_some() {
            self.check().await?;
        }
        for _ in 0..2 {
            if let Some(sent) = self.confirmed() {
                return Ok(Round::Held(sent));
            }
            if let Some((_, sent)) = self.unanswered.as_ref().filter(|_| self.in_flight && !self.fence.is_open()) {
                // It may still arrive. With another one behind it we would hold the Lease, and never know it in time.
                let over = open_until(*sent) <= Instant::now();
                return Ok(if over { Round::Missed } else { Round::Waits });
            }
            let own = Own {
                identity: &self.identity,
                taken: self.taken.as_ref(),
                fresh: !self.asked,
                late: self.late,
            };
            let unchanged = self.seen.as_ref().map_or(Duration::ZERO, |(_, since)| since.elapsed());
            let turn = turn(own, self.spec(), unchanged);
            if turn == Turn::Follow {
                return Ok(Round::Follows);
            }
            let sent = Instant::now();
            if self.write(turn, sent).await? {
                return Ok(Round::Held(sent));
            }
            self.check().await?;
        }
        Ok(self.confirmed().map_or(Round::Follows, Round::Held))
    }

    /// When the last write was sent, if it was not answered and the Lease shows that it was made.
    fn confirmed(&mut self) -> Option<Instant> {
        let (renewed, sent) = self.unanswered.as_ref()?;
        let spec = self.spec()?;
        let ours = spec.holder_identity.as_ref() == Some(&self.identity) && spec.acquire_time == self.taken;
        let sent = (ours && spec.renew_time.as_ref() == Some(renewed)).then_some(*sent);
        if sent.is_some() {
            self.unanswered = None;
        }
        sent
    }

    async fn check(&mut self) -> Result<(), ClusterError> {
        let found = answered("get", self.lease, self.api.get_opt(self.lease)).await?;
        let found = found.map_err(|error| failed("get", self.lease, error))?;
        let known = self.seen.take();
        self.seen = found.map(|lease| match known {
            Some((old, since)) if old.resource_version() == lease.resource_version() => (old, since),
            // It may have been written while the answer was on its way.
            _ => (lease, Instant::now()),
        });
        Ok(())
    }

    /// Writes what our turn asks for; `false` when another operator was faster.
    async fn write(&mut self, turn: Turn, sent: Instant) -> Result<bool, ClusterError> {
        let time = MicroTime(now());
        let (mut lease, existed) = match &self.seen {
            Some((lease, _)) if turn != Turn::Create => (lease.clone(), true),
            _ => (Lease::default(), false),
        };
        lease.metadata.name = Some(self.lease.into());
        lease.metadata.managed_fields = None;
        let spec = lease.spec.get_or_insert_default();
        if turn != Turn::Renew {
            // A write that was not answered may still arrive, and is known by this time.
            let pending = self.taken.take().filter(|_| self.unanswered.is_some());
            let taken = pending.unwrap_or_else(|| time.clone());
            spec.acquire_time = Some(taken.clone());
            self.taken = Some(taken);
            spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |n| n.saturating_add(1)));
        }
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = i32::try_from(DURATION.as_secs()).ok();
        spec.renew_time = Some(time.clone());
        (self.asked, self.unanswered, self.in_flight) = (true, Some((time, sent)), true);
        let options = PostParams::default();
        let written = match existed {
            true => answered("update", self.lease, self.api.replace(self.lease, &options, &lease)).await?,
            false => answered("create", self.lease, self.api.create(&options, &lease)).await?,
        };
        self.in_flight = false;
        match written {
            Ok(lease) => {
                self.unanswered = None;
                self.seen = Some((lease, Instant::now()));
                Ok(true)
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                self.unanswered = None;
                Ok(false)
            }
            Err(error) => Err(failed("update", self.lease, error)),
        }
    }

    /// Lets the Lease go, so that another operator need not wait for it to run out. Only after the last write.
    ///
    /// # Errors
    /// When it cannot be written; it then expires later.
    pub async fn release(&mut self) -> Result<(), ClusterError> {
        let Some(taken) = self.taken.take() else { return Ok(()) };
        self.check().await?;
        let ours = |spec: &LeaseSpec| spec.holder_identity.as_ref() == Some(&self.identity) && spec.acquire_time.as_ref() == Some(&taken);
        let Some((lease, _)) = self.seen.take().filter(|(lease, _)| lease.spec.as_ref().is_some_and(ours)) else {
            return Ok(());
        };
        let mut free = lease;
        let spec = free.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        let written = answered("update", self.lease, self.api.replace(self.lease, &PostParams::default(), &free)).await?;
        written.map_err(|error| failed("update", self.lease, error))?;
        tracing::info!("the Lease is released");
        Ok(())
    }
}

/// The answer to a request about the Lease, which has to come in time.
async fn answered<T>(verb: &str, lease: &str, request: impl Future<Output = T>) -> Result<T, ClusterError> {
    let answer = tokio::time::timeout(REQUEST, request).await;
    answer.map_err(|_| ClusterError::TimedOut {
        verb: verb.to_owned(),
        what: ObjectId::new("coordination.k8s.io", "Lease", LEASE_NAMESPACE, lease).to_string(),
        after: REQUEST,
    })
}

fn failed(verb: &str, lease: &str, error: kube::Error) -> ClusterError {
    let id = ObjectId::new("coordination.k8s.io", "Lease", LEASE_NAMESPACE, lease);
    ClusterError::of(verb, "coordination.k8s.io/v1", &id, error)
}

/// For people who look at the Lease, and to recognise what we wrote; the API server keeps microseconds.
#[expect(clippy::disallowed_methods, reason = "the clock enters the Lease here")]
fn now() -> Timestamp {
    Timestamp::from_microsecond(Timestamp::now().as_microsecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leader_election_each_lease_state_decides_turn() {
        let time = |second: i64| MicroTime(Timestamp::from_second(second).expect("a time"));
        let lease = |holder: &str, taken: i64| LeaseSpec {
            holder_identity: Some(holder.into()),
            acquire_time: Some(time(taken)),
            lease_duration_seconds: Some(15),
            ..LeaseSpec::default()
        };
        let (ours, theirs, free) = (lease("a", 1), lease("b", 1), lease("", 1));
        let seconds = Duration::from_secs;
        let fresh = true;
        for (spec, unchanged, taken, first, late, expected) in [
            (None, 0, None, fresh, false, Turn::Create),
            (Some(&ours), 0, Some(time(1)), false, false, Turn::Renew),
            // However long it took us: no other operator has written.
            (Some(&ours), 99, Some(time(1)), false, false, Turn::Renew),
            (Some(&free), 0, None, fresh, false, Turn::Take),
            (Some(&free), 0, None, false, false, Turn::Take),
            (Some(&theirs), 0, None, fresh, false, Turn::Follow),
            (Some(&theirs), 14, Some(time(1)), false, false, Turn::Follow),
            (Some(&theirs), 15, None, fresh, false, Turn::Take),
            // Our predecessor in this pod is dead, so there is no one to wait for.
            (Some(&ours), 0, None, fresh, false, Turn::Take),
            // A process with our identity took it while we held it: a twin, which is alive.
            (Some(&ours), 0, Some(time(0)), false, false, Turn::Follow),
            (Some(&ours), 0, None, false, false, Turn::Follow),
            (Some(&ours), 15, None, false, false, Turn::Take),
            // We took it and could not lead: others go first.
            (Some(&ours), 15, None, false, true, Turn::Follow),
            (Some(&ours), 29, None, false, true, Turn::Follow),
            (Some(&ours), 30, None, false, true, Turn::Take),
            (Some(&theirs), 29, None, false, true, Turn::Follow),
            (Some(&free), 14, None, false, true, Turn::Follow),
            (Some(&free), 15, None, false, true, Turn::Take),
        ] {
            let own = Own {
                identity: "a",
                taken: taken.as_ref(),
                fresh: first,
                late,
            };
            assert_eq!(
                turn(own, spec, seconds(unchanged)),
                expected,
                "{spec:?} unchanged for {unchanged} s, taken {taken:?}, late {late}"
            );
        }
    }

    #[test]
    fn leader_election_any_duration_in_the_lease_is_waited_for() {
        for (duration, unchanged, expected) in [
            (Some(i32::MAX), 1_000_000, Turn::Follow),
            (Some(i32::MIN), 14, Turn::Follow),
            (Some(-1), 15, Turn::Take),
            (Some(0), 0, Turn::Take),
            (None, 15, Turn::Take),
        ] {
            let lease = LeaseSpec {
                holder_identity: Some("b".into()),
                lease_duration_seconds: duration,
                ..LeaseSpec::default()
            };
            let own = Own {
                identity: "a",
                taken: None,
                fresh: true,
                late: false,
            };
            assert_eq!(turn(own, Some(&lease), Duration::from_secs(unchanged)), expected, "{duration:?}");
        }
    }

    #[test]
    fn leader_election_late_confirmation_does_not_lead() {
        let sent = Instant::now();
        let after = |seconds| is_in_time(sent, sent.later(Duration::from_secs(seconds)));
        assert_eq!([0, 6, 8, 9, 12, u64::MAX].map(after), [true, true, true, false, false, false]);
        assert!(REQUEST + RETRY < DURATION - MARGIN, "what was confirmed in time opens the fence");
    }

    #[test]
    fn leader_election_one_renewal_that_is_not_answered_fits_lease_duration() {
        assert!(
            RENEW + REQUEST < DURATION - MARGIN,
            "one renewal without an answer must not stop the work"
        );
        assert!(RENEW + RETRY < DURATION - MARGIN, "one failed renewal must not stop the work");
    }
}
