// SPDX-License-Identifier: Apache-2.0
//! What the loops remember in memory between two reconciles: failures, last statuses, repairs, unhealthy drivers.
//!
//! All of this may be lost without harm: it saves requests.

use crate::cluster::version_number;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use vdo_api::api::{VDOConfigStatus, VsphereCloudConfig, VsphereCloudConfigStatus};
use vdo_api::retry::REAPPLY;
use vdo_core::plan::RepairHistory;
use vdo_vsphere::vsphere::Coverage;
use vdo_vsphere::vsphere::login_retry::Key;

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
    /// The status that was written last, or read after a write that failed, and its resource version.
    pub status: Option<(u64, VsphereCloudConfigStatus)>,
    /// Whether a write of the status has failed since: the write may have arrived although its answer did not, and the watch may show the
    /// status before that.
    pub unconfirmed: bool,
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

impl Connection {
    /// Remembers what was read after a write that failed. The watch may still show the older status when the next result comes.
    pub(super) fn confirm(&mut self, read: &VsphereCloudConfig) {
        let version = read.metadata.resource_version.as_deref().map_or(0, version_number);
        self.status = Some((version, read.status.clone().unwrap_or_default()));
        self.unconfirmed = false;
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
    let version = shown_version.map_or(0, version_number);
    match written {
        Some((own, status)) if *own > version => status.clone(),
        _ => shown.cloned().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use vdo_api::api::VsphereCloudConfigSpec;

    /// The write of `read` arrived and its answer did not: from then on a result is compared with that, although the watch is behind.
    #[test]
    fn status_read_after_a_lost_answer_is_newer_than_that_of_the_watch() {
        let status = |nodes| VsphereCloudConfigStatus {
            observed_generation: Some(nodes),
            ..VsphereCloudConfigStatus::default()
        };
        let mut memory = Connection {
            status: Some((5, status(4))),
            unconfirmed: true,
            ..Connection::default()
        };
        let mut read = VsphereCloudConfig::new("vc1", VsphereCloudConfigSpec::default());
        read.metadata.resource_version = Some("7".to_owned());
        read.status = Some(status(5));
        memory.confirm(&read);
        assert!(!memory.unconfirmed);
        let watched = |version, shown| newest(Some(&status(shown)), Some(version), memory.status.as_ref());
        assert_eq!(watched("5", 4), status(5), "the watch is behind");
        assert_eq!(watched("7", 5), status(5), "the watch has caught up");
        assert_eq!(watched("9", 4), status(4), "the watch is ahead");
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
