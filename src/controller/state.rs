// SPDX-License-Identifier: Apache-2.0
//! What the loops remember from one run to the next. All of it may be lost without harm: it saves requests, nothing else.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vdo_api::api::{VDOConfigStatus, VsphereCloudConfigStatus};
use vdo_api::retry::{REAPPLY, VCENTER};
use vdo_core::plan::RepairHistory;
use vdo_vsphere::vsphere::Coverage;
use vdo_vsphere::vsphere::lockout::Key;

/// In-memory state of both loops, by UID.
#[derive(Default)]
pub(super) struct ControllerState {
    configs: Mutex<HashMap<String, Config>>,
    connections: Mutex<HashMap<String, Connection>>,
}

/// What is remembered of a VDOConfig.
#[derive(Default, Clone)]
pub(super) struct Config {
    /// Failures in a row.
    pub failures: u32,
    /// The status that was written last, and the resource version it led to.
    pub status: Option<(u64, VDOConfigStatus)>,
    /// When that was.
    pub written: Option<Instant>,
    /// The repairs of what another manager had changed.
    pub history: RepairHistory,
    /// The drivers that metrics speak of.
    pub drivers: Vec<String>,
    /// Drivers that do not get well: since when, how often they were applied again, and when last.
    pub unhealthy: BTreeMap<String, Unhealthy>,
}

/// What is remembered of a vSphere connection.
#[derive(Default, Clone)]
pub(super) struct Connection {
    /// What the vCenter was asked with: when it changes, it is asked again.
    pub asked_with: String,
    /// When it was asked.
    pub asked: Option<Instant>,
    /// Whether it answered as it should.
    pub well: bool,
    /// Failures in a row.
    pub failures: u32,
    /// The status that was written last, and the resource version it led to.
    pub status: Option<(u64, VsphereCloudConfigStatus)>,
    /// The login that it uses.
    pub login: Option<Key>,
    /// The nodes that it was asked about.
    pub crowd: u64,
    /// Those of them that wait for the cloud provider.
    pub waiting: BTreeSet<u64>,
    /// The cluster id that it was asked about.
    pub claim: Option<String>,
    /// What it covers, to be held against others.
    pub coverage: Option<Arc<Coverage>>,
}

/// What a vCenter would be asked with now.
pub(super) struct Asking {
    /// When it changes, the vCenter is asked again at once.
    pub with: String,
    /// A mark of the nodes: when it changes, the vCenter is asked again soon.
    pub crowd: u64,
    /// A mark of each node that waits for the cloud provider: for one that it was not asked about yet, the vCenter is asked at once.
    pub waiting: BTreeSet<u64>,
    /// The cluster id that is about to be used: when it was not asked about yet, the vCenter is asked at once.
    pub claim: Option<String>,
    /// How often it is asked when nothing changes.
    pub interval: Duration,
}

/// How long nodes that come and go are waited for before the vCenter is asked about them.
const SOON: Duration = Duration::from_secs(30);

/// The same for a new node that waits for the cloud provider, for which its machine may be the cause. Nodes that join one after the other
/// are asked about together.
const AT_ONCE: Duration = Duration::from_secs(3);

/// A driver that does not get well.
#[derive(Clone, Copy)]
pub(super) struct Unhealthy {
    since: Instant,
    times: u32,
    last: Option<Instant>,
}

impl Config {
    /// The drivers that are to be applied once more, of those that are not well now: a minute after one became unhealthy or was applied again, then
    /// two, four … up to half an hour. Each one returned is counted as applied.
    pub(super) fn force_reapply(&mut self, unhealthy: &BTreeSet<String>, now: Instant) -> BTreeSet<String> {
        self.unhealthy.retain(|driver, _| unhealthy.contains(driver));
        let mut due = BTreeSet::new();
        for driver in unhealthy {
            let known = self.unhealthy.entry(driver.clone()).or_insert(Unhealthy {
                since: now,
                times: 0,
                last: None,
            });
            if now.saturating_duration_since(known.last.unwrap_or(known.since)) >= REAPPLY.after(known.times.saturating_add(1)) {
                (known.times, known.last) = (known.times.saturating_add(1), Some(now));
                due.insert(driver.clone());
            }
        }
        due
    }
}

impl ControllerState {
    pub(super) fn config(&self, uid: &str) -> Config {
        lock(&self.configs).get(uid).cloned().unwrap_or_default()
    }

    pub(super) fn keep_config(&self, uid: &str, memory: Config) {
        lock(&self.configs).insert(uid.to_owned(), memory);
    }

    pub(super) fn forget_config(&self, uid: &str) -> Option<Config> {
        lock(&self.configs).remove(uid)
    }

    pub(super) fn connection(&self, uid: &str) -> Connection {
        lock(&self.connections).get(uid).cloned().unwrap_or_default()
    }

    pub(super) fn keep_connection(&self, uid: &str, memory: Connection) {
        lock(&self.connections).insert(uid.to_owned(), memory);
    }

    /// Forgets a connection; gives the login that it used.
    pub(super) fn forget_connection(&self, uid: &str) -> Option<Key> {
        lock(&self.connections).remove(uid)?.login
    }

    /// What all connections cover, as far as it is known.
    pub(super) fn coverages(&self) -> Vec<Arc<Coverage>> {
        lock(&self.connections)
            .values()
            .filter_map(|memory| memory.coverage.clone())
            .collect()
    }

    /// Whether any connection uses this login.
    pub(super) fn uses(&self, key: &Key) -> bool {
        lock(&self.connections).values().any(|memory| memory.login.as_ref() == Some(key))
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The newer of what the watch shows and what was written last.
pub(super) fn newest<T: Clone + Default>(shown: Option<&T>, shown_version: Option<&str>, written: Option<&(u64, T)>) -> T {
    let version = shown_version.and_then(|v| v.parse().ok()).unwrap_or(0);
    match written {
        Some((own, status)) if *own > version => status.clone(),
        _ => shown.cloned().unwrap_or_default(),
    }
}

impl Connection {
    /// How long until the vCenter is asked again: the interval when all is well, else 10 s, 20 s … up to five minutes.
    pub(super) fn due_in(&self, asking: &Asking) -> Duration {
        let Some(asked) = self.asked else { return Duration::ZERO };
        if self.asked_with != asking.with || asking.claim.is_some() && asking.claim != self.claim {
            return Duration::ZERO;
        }
        let pause = if !self.well {
            VCENTER.after(self.failures)
        } else if !asking.waiting.is_subset(&self.waiting) {
            AT_ONCE
        } else if self.crowd != asking.crowd {
            SOON
        } else {
            asking.interval
        };
        pause.min(asking.interval).saturating_sub(asked.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An outage costs an attempt every five minutes, once it has lasted that long; nodes that come are seen within half a minute.
    #[test]
    fn connection_check_backoff_grows_to_five_minutes() {
        let asking = |with: &str, crowd| Asking {
            with: with.into(),
            crowd,
            waiting: BTreeSet::new(),
            claim: None,
            interval: Duration::from_secs(600),
        };
        for (well, failures, with, crowd, expected) in [
            (true, 0, "a", 1, 600),
            (true, 0, "a", 2, 30),
            (true, 0, "b", 1, 0),
            (false, 1, "a", 1, 10),
            (false, 2, "a", 2, 20),
            (false, 5, "a", 1, 160),
            (false, 6, "a", 1, 300),
            (false, 1000, "a", 1, 300),
            (false, 1000, "b", 1, 0),
        ] {
            let memory = Connection {
                asked_with: "a".into(),
                crowd: 1,
                asked: Some(Instant::now()),
                well,
                failures,
                ..Connection::default()
            };
            let due = memory.due_in(&asking(with, crowd)).as_secs_f64();
            assert!(
                (due - f64::from(expected)).abs() < 2.0,
                "{due} instead of {expected} after {failures} failures"
            );
        }
        assert_eq!(Connection::default().due_in(&asking("a", 1)), Duration::ZERO);
    }

    /// Once for each new node, and never instead of the pauses after a failure: a login is not tried more often.
    #[test]
    fn connection_check_of_new_waiting_node_is_at_once() {
        let second = |due: Duration| due.as_secs_f64().round();
        for (well, known, waiting, expected) in [
            (true, vec![], vec![7], 3.0),
            (true, vec![7], vec![7], 600.0),
            (true, vec![7], vec![7, 8], 3.0),
            (true, vec![7, 8], vec![8], 600.0),
            (false, vec![], vec![7], 20.0),
        ] {
            let asking = Asking {
                with: "a".into(),
                crowd: 1,
                waiting: waiting.iter().copied().collect(),
                claim: None,
                interval: Duration::from_secs(600),
            };
            let memory = Connection {
                asked_with: "a".into(),
                crowd: 1,
                waiting: known.into_iter().collect(),
                asked: Some(Instant::now()),
                well,
                failures: 2,
                ..Connection::default()
            };
            assert_eq!(second(memory.due_in(&asking)), expected, "{well} {waiting:?}");
        }
    }

    /// An id is asked about once. One that is in use by now needs no answer.
    #[test]
    fn connection_check_of_new_cluster_id_is_at_once() {
        for (asked, claim, expected) in [
            (None, Some("demo"), true),
            (Some("demo"), Some("demo"), false),
            (Some("demo"), Some("other"), true),
            (Some("demo"), None, false),
        ] {
            let asking = Asking {
                with: "a".into(),
                crowd: 1,
                waiting: BTreeSet::new(),
                claim: claim.map(str::to_owned),
                interval: Duration::from_secs(600),
            };
            let memory = Connection {
                asked_with: "a".into(),
                crowd: 1,
                claim: asked.map(str::to_owned),
                asked: Some(Instant::now()),
                well: true,
                ..Connection::default()
            };
            assert_eq!(memory.due_in(&asking).is_zero(), expected, "{asked:?} {claim:?}");
        }
    }

    /// An hour of reconciles every second applies a driver that stays unhealthy six times, and a healthy one never.
    #[test]
    fn reapply_backoff_unhealthy_driver_grows_and_resets() {
        let (mut memory, start) = (Config::default(), Instant::now());
        let unhealthy = BTreeSet::from(["vsphere-csi".to_owned()]);
        let mut at = Vec::new();
        for second in 0..3600 {
            if !memory.force_reapply(&unhealthy, start + Duration::from_secs(second)).is_empty() {
                at.push(second);
            }
        }
        assert_eq!(at, [60, 180, 420, 900, 1860]);
        let later = start + Duration::from_secs(3600);
        assert!(memory.force_reapply(&BTreeSet::new(), later).is_empty());
        // It was well in between: the pauses begin again.
        assert!(memory.force_reapply(&unhealthy, later).is_empty());
        assert!(memory.force_reapply(&unhealthy, later + Duration::from_secs(59)).is_empty());
        assert_eq!(memory.force_reapply(&unhealthy, later + Duration::from_secs(60)), unhealthy);
    }
}
