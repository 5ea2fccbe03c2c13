//! The Lease by which one operator of several acts (coordination.k8s.io).

use super::{ClusterError, Fence};
use crate::types::ObjectId;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use std::time::{Duration, Instant};

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

/// Campaigns for the Lease and holds it.
///
/// # Guarantees
/// * The fence is open only while the Lease is held, and shuts by itself [`MARGIN`] before anyone else may take it.
/// * Time is measured by this machine's steady clock from before each request; no wall clock matters.
pub struct Election {
    api: Api<Lease>,
    /// Its name.
    lease: &'static str,
    identity: String,
    fence: Fence,
    /// The Lease as it was read or written last, and when that state was seen first.
    seen: Option<(Lease, Instant)>,
    /// When we took it, as it stands in the Lease; another holder of the same name wrote another time.
    taken: Option<MicroTime>,
    held_before: bool,
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

/// Decides from the Lease alone. `taken` is when we took it, if we hold it; `fresh`: we have never held one, so a holder of
/// our name is the process that ran before us in this pod.
fn turn(own: &str, lease: Option<&LeaseSpec>, unchanged: Duration, taken: Option<&MicroTime>, fresh: bool) -> Turn {
    let Some(lease) = lease else { return Turn::Create };
    let holder = lease.holder_identity.as_deref().unwrap_or_default();
    let duration = lease
        .lease_duration_seconds
        .and_then(|s| u64::try_from(s).ok())
        .map_or(DURATION, Duration::from_secs);
    if holder == own && taken.is_some() && lease.acquire_time.as_ref() == taken {
        Turn::Renew
    } else if holder.is_empty() || (holder == own && fresh) || unchanged >= duration {
        Turn::Take
    } else {
        Turn::Follow
    }
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
            held_before: false,
        }
    }

    /// Campaigns until it is dropped; calls `won` each time the fence opens.
    pub async fn run(&mut self, won: impl Fn()) {
        let (mut failing, mut leading) = (false, false);
        loop {
            let asked = Instant::now();
            let result = tokio::time::timeout(RENEW, self.round(asked)).await;
            let pause = match result {
                Ok(Ok(true)) => {
                    if self.fence.open_until(asked + DURATION - MARGIN) {
                        tracing::info!(identity = self.identity, "leading");
                        won();
                    }
                    failing = false;
                    RENEW
                }
                Ok(Ok(false)) => {
                    self.lost();
                    failing = false;
                    RETRY
                }
                Ok(Err(error)) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(error = %crate::api::chain(&error), "the Lease cannot be renewed; writes stop when it runs out");
                    }
                    RETRY
                }
                Err(_) => RETRY,
            };
            if leading && !self.fence.is_open() {
                tracing::warn!("the Lease is lost or has run out; nothing is written until it is held again");
            }
            leading = self.fence.is_open();
            tokio::time::sleep_until((asked + pause).into()).await;
        }
    }

    fn lost(&mut self) {
        if self.taken.take().is_some() {
            let holder = self
                .seen
                .as_ref()
                .and_then(|(lease, _)| lease.spec.as_ref()?.holder_identity.clone());
            tracing::warn!(holder, "another operator leads now");
        }
        self.fence.close();
    }

    /// One look, and one write if it is our turn. Whether we hold the Lease.
    async fn round(&mut self, now: Instant) -> Result<bool, ClusterError> {
        // What we wrote last is what is there, unless another operator wrote; then the write is refused.
        if self.taken.is_none() {
            self.check(now).await?;
        }
        for _ in 0..2 {
            let (spec, since) = self
                .seen
                .as_ref()
                .map_or((None, now), |(lease, since)| (lease.spec.as_ref(), *since));
            let turn = turn(
                &self.identity,
                spec,
                now.duration_since(since),
                self.taken.as_ref(),
                !self.held_before,
            );
            if turn == Turn::Follow {
                return Ok(false);
            }
            if self.write(turn).await? {
                self.held_before = true;
                return Ok(true);
            }
            self.check(now).await?;
        }
        Ok(false)
    }

    async fn check(&mut self, now: Instant) -> Result<(), ClusterError> {
        let found = self
            .api
            .get_opt(self.lease)
            .await
            .map_err(|error| failed("get", self.lease, error))?;
        let known = self.seen.take();
        self.seen = found.map(|lease| match known {
            Some((old, since)) if old.resource_version() == lease.resource_version() => (old, since),
            _ => (lease, now),
        });
        Ok(())
    }

    /// Writes what our turn asks for; `false` when another operator was faster.
    async fn write(&mut self, turn: Turn) -> Result<bool, ClusterError> {
        let time = MicroTime(now());
        let (mut lease, existed) = match &self.seen {
            Some((lease, _)) if turn != Turn::Create => (lease.clone(), true),
            _ => (Lease::default(), false),
        };
        lease.metadata.name = Some(self.lease.into());
        lease.metadata.managed_fields = None;
        let spec = lease.spec.get_or_insert_default();
        if turn != Turn::Renew {
            spec.acquire_time = Some(time.clone());
            spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |n| n.saturating_add(1)));
        }
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = i32::try_from(DURATION.as_secs()).ok();
        spec.renew_time = Some(time);
        let written = if existed {
            self.api.replace(self.lease, &PostParams::default(), &lease).await
        } else {
            self.api.create(&PostParams::default(), &lease).await
        };
        match written {
            Ok(lease) => {
                // As the API server keeps it, which is not to the nanosecond.
                self.taken = lease.spec.as_ref().and_then(|spec| spec.acquire_time.clone());
                self.seen = Some((lease, Instant::now()));
                Ok(true)
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
            Err(error) => Err(failed("update", self.lease, error)),
        }
    }

    /// Lets the Lease go, so that another operator need not wait for it to run out. Only after the last write.
    ///
    /// # Errors
    /// When it cannot be written; it runs out by itself then.
    pub async fn release(&mut self) -> Result<(), ClusterError> {
        let Some(taken) = self.taken.take() else { return Ok(()) };
        self.check(Instant::now()).await?;
        let ours = |spec: &LeaseSpec| spec.holder_identity.as_ref() == Some(&self.identity) && spec.acquire_time.as_ref() == Some(&taken);
        let Some((lease, _)) = self.seen.take().filter(|(lease, _)| lease.spec.as_ref().is_some_and(ours)) else {
            return Ok(());
        };
        let mut free = lease;
        let spec = free.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        self.api
            .replace(self.lease, &PostParams::default(), &free)
            .await
            .map_err(|error| failed("update", self.lease, error))?;
        tracing::info!("the Lease is released");
        Ok(())
    }
}

fn failed(verb: &str, lease: &str, error: kube::Error) -> ClusterError {
    let id = ObjectId::new("coordination.k8s.io", "Lease", LEASE_NAMESPACE, lease);
    ClusterError::of(verb, "coordination.k8s.io/v1", &id, error)
}

/// For people who look at the Lease; nothing is decided by it.
#[expect(clippy::disallowed_methods, reason = "the clock enters the Lease here")]
fn now() -> Timestamp {
    Timestamp::now()
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
        for (spec, unchanged, taken, first, expected) in [
            (None, 0, None, fresh, Turn::Create),
            (Some(&ours), 0, Some(time(1)), false, Turn::Renew),
            // However long it took us: no other operator has written.
            (Some(&ours), 99, Some(time(1)), false, Turn::Renew),
            (Some(&free), 0, None, fresh, Turn::Take),
            (Some(&free), 0, None, false, Turn::Take),
            (Some(&theirs), 0, None, fresh, Turn::Follow),
            (Some(&theirs), 14, Some(time(1)), false, Turn::Follow),
            (Some(&theirs), 15, None, fresh, Turn::Take),
            // Our predecessor in this pod is dead, so there is no one to wait for.
            (Some(&ours), 0, None, fresh, Turn::Take),
            // A process with our identity took it while we held it: a twin, which is alive.
            (Some(&ours), 0, Some(time(0)), false, Turn::Follow),
            (Some(&ours), 0, None, false, Turn::Follow),
            (Some(&ours), 15, None, false, Turn::Take),
        ] {
            assert_eq!(
                turn("a", spec, seconds(unchanged), taken.as_ref(), first),
                expected,
                "{spec:?} unchanged for {unchanged} s, taken {taken:?}"
            );
        }
    }

    #[test]
    fn leader_election_one_failed_renewal_fits_lease_duration() {
        assert!(RENEW + RETRY < DURATION - MARGIN, "one failed renewal must not stop the work");
    }
}
