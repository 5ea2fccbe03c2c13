// SPDX-License-Identifier: Apache-2.0
//! Registers and encodes the operator's Prometheus metrics.
//!
//! The labels are names that a person chose (drivers, connections, condition types) or words of a closed list; no label is a value that a
//! server or a user can invent without limit.

mod vcenters;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vcenters::Vcenters;
use vdo_api::api::VsphereCloudConfigStatus;
use vdo_vsphere::vsphere::Figures;

/// The media type of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How a reconcile ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[allow(non_camel_case_types, reason = "the variants are the words of the label")]
enum Outcome {
    success,
    waiting,
    error,
}

/// How a reconcile ended, as counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconcileResult {
    /// Everything is as it should be.
    Success,
    /// A step was made, or something is waited for.
    Waiting,
    /// It failed.
    Error,
}

/// The state of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionValue {
    /// `True`
    True,
    /// `False`
    False,
    /// `Unknown`
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    result: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByStage {
    stage: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByDriver {
    driver: String,
    version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByConnection {
    connection: String,
}

impl ByConnection {
    fn new(connection: &str) -> Self {
        Self {
            connection: connection.to_owned(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCheck {
    connection: String,
    check: String,
}

impl ByCheck {
    fn new(connection: &str, check: &str) -> Self {
        Self {
            connection: connection.to_owned(),
            check: check.to_owned(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByWrite {
    verb: String,
    kind: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCondition {
    r#type: String,
    status: &'static str,
}

/// Everything that is counted. One per process, shared by reference; every method is cheap and never waits.
pub struct Metrics {
    registry: Registry,
    reconciles: Family<ByResult, Counter>,
    durations: Family<ByStage, Histogram, fn() -> Histogram>,
    drivers: Family<ByDriver, Gauge>,
    shown: Mutex<BTreeMap<String, String>>,
    connections: Family<ByConnection, Gauge>,
    checks: Family<ByCheck, Gauge>,
    checked: Mutex<BTreeMap<String, BTreeSet<String>>>,
    vcenters: Vcenters,
    sessions: Gauge,
    writes: Family<ByWrite, Counter>,
    conditions: Family<ByCondition, Gauge>,
    events: Family<ByOutcome, Counter>,
    matrix_age: Family<Vec<(&'static str, &'static str)>, Gauge>,
    leader: Gauge,
    lease_failures: Counter,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// A fresh registry with every metric at nothing.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("vdo");
        let metrics = Self {
            reconciles: Family::default(),
            // From 5 ms, a reconcile that finds nothing to do, to 40 s, the timeout of one reconcile.
            durations: Family::new_with_constructor(|| Histogram::new([0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 40.0])),
            drivers: Family::default(),
            shown: Mutex::default(),
            connections: Family::default(),
            checks: Family::default(),
            checked: Mutex::default(),
            vcenters: Vcenters::default(),
            sessions: Gauge::default(),
            writes: Family::default(),
            conditions: Family::default(),
            events: Family::default(),
            matrix_age: Family::default(),
            leader: Gauge::default(),
            lease_failures: Counter::default(),
            registry: Registry::default(),
        };
        registry.register("reconcile", "Reconciles by result", metrics.reconciles.clone());
        registry.register(
            "reconcile_duration_seconds",
            "How long each stage of a reconcile took",
            metrics.durations.clone(),
        );
        registry.register("driver_info", "The installed version of each driver", metrics.drivers.clone());
        registry.register(
            "connection_up",
            "1 when the vCenter of a connection passed its last check",
            metrics.connections.clone(),
        );
        registry.register(
            "check_errors",
            "1 while a check of a vCenter connection fails",
            metrics.checks.clone(),
        );
        registry.register_collector(Box::new(metrics.vcenters.clone()));
        registry.register("vcenter_sessions", "Open sessions with vCenters", metrics.sessions.clone());
        registry.register("writes", "Writes to the cluster by verb and kind", metrics.writes.clone());
        registry.register(
            "condition",
            "1 for the current status of each condition",
            metrics.conditions.clone(),
        );
        registry.register(
            "events",
            "Events that were published, or held back because the same event was published a moment ago",
            metrics.events.clone(),
        );
        registry.register(
            "matrix_age_seconds",
            "The age of the compatibility matrix in use, by the time at which it was generated",
            metrics.matrix_age.clone(),
        );
        registry.register("leader", "1 while this operator holds the Lease and acts", metrics.leader.clone());
        registry.register(
            "lease_failures",
            "Checks of the Lease that found no leader",
            metrics.lease_failures.clone(),
        );
        let build: Family<Vec<(&'static str, &'static str)>, Gauge> = Family::default();
        build.get_or_create(&vec![("version", env!("CARGO_PKG_VERSION"))]).set(1);
        registry.register("build_info", "The version of the operator", build);
        Self { registry, ..metrics }
    }

    /// A check of the Lease ended: whether this operator leads, and whether the check found no leader.
    pub fn lease(&self, leads: bool, leaderless: bool) {
        self.leader.set(leads.into());
        if leaderless {
            self.lease_failures.inc();
        }
    }

    /// A reconcile ended.
    pub fn reconciled(&self, result: ReconcileResult) {
        let result = match result {
            ReconcileResult::Success => Outcome::success,
            ReconcileResult::Waiting => Outcome::waiting,
            ReconcileResult::Error => Outcome::error,
        };
        self.reconciles.get_or_create(&ByResult { result }).inc();
    }

    /// A stage of a reconcile took this long. The stages are those of the pipeline: observe, resolve, fetch, …
    pub fn stage(&self, stage: &'static str, took: Duration) {
        self.durations
            .get_or_create(&ByStage { stage: stage.to_owned() })
            .observe(took.as_secs_f64());
    }

    /// A driver runs in this version, or in none. The version before disappears.
    pub fn driver(&self, driver: &str, version: Option<&str>) {
        let label = |version: &str| ByDriver {
            driver: driver.to_owned(),
            version: version.to_owned(),
        };
        let mut shown = lock(&self.shown);
        if let Some(before) = shown.remove(driver) {
            self.drivers.remove(&label(&before));
        }
        if let Some(version) = version {
            self.drivers.get_or_create(&label(version)).set(1);
            shown.insert(driver.to_owned(), version.to_owned());
        }
    }

    /// A vCenter answered as it should, or not.
    pub fn connection(&self, connection: &str, up: bool) {
        self.connections.get_or_create(&ByConnection::new(connection)).set(i64::from(up));
    }

    /// What the status of a connection says of its vCenter, and the numbers of a new look at it.
    pub fn vcenter(&self, connection: &str, status: &VsphereCloudConfigStatus, figures: Option<Figures>) {
        self.vcenters.set(connection, status, figures);
    }

    /// A connection is gone.
    pub fn forget_connection(&self, connection: &str) {
        self.vcenters.forget(connection);
        self.connections.remove(&ByConnection::new(connection));
        for check in lock(&self.checked).remove(connection).into_iter().flatten() {
            self.checks.remove(&ByCheck::new(connection, &check));
        }
    }

    /// A check of a connection fails, or not.
    pub fn check(&self, connection: &str, check: &str, fails: bool) {
        self.checks.get_or_create(&ByCheck::new(connection, check)).set(i64::from(fails));
        lock(&self.checked)
            .entry(connection.to_owned())
            .or_default()
            .insert(check.to_owned());
    }

    /// A session with a vCenter is open for as long as this is kept.
    #[must_use]
    pub fn session(&self) -> OpenSession {
        self.sessions.inc();
        OpenSession(self.sessions.clone())
    }

    /// Something was written to the cluster.
    pub fn wrote(&self, verb: &'static str, kind: &str) {
        self.writes
            .get_or_create(&ByWrite {
                verb: verb.to_owned(),
                kind: kind.to_owned(),
            })
            .inc();
    }

    /// An event was published or held.
    pub fn event(&self, outcome: &'static str) {
        self.events.get_or_create(&ByOutcome { outcome }).inc();
    }

    /// The compatibility matrix in use was made so long ago, or does not say when.
    pub fn matrix_age(&self, age: Option<Duration>) {
        match age {
            Some(age) => {
                let seconds = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
                self.matrix_age.get_or_create(&Vec::new()).set(seconds);
            }
            None => self.matrix_age.clear(),
        }
    }

    /// A condition of the VDOConfig has this value.
    pub fn condition(&self, r#type: &str, value: ConditionValue) {
        for (status, is) in [
            ("true", value == ConditionValue::True),
            ("false", value == ConditionValue::False),
            ("unknown", value == ConditionValue::Unknown),
        ] {
            self.conditions
                .get_or_create(&ByCondition {
                    r#type: r#type.to_owned(),
                    status,
                })
                .set(i64::from(is));
        }
    }

    /// Everything, as text.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut out = String::new();
        // Writing into a String cannot fail.
        let _ = text::encode(&mut out, &self.registry);
        out
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// Counts a session until it is dropped.
#[derive(Debug)]
pub struct OpenSession(Gauge);

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_text_contains_recorded_values_only() {
        let metrics = Metrics::new();
        metrics.reconciled(ReconcileResult::Waiting);
        metrics.reconciled(ReconcileResult::Success);
        metrics.reconciled(ReconcileResult::Success);
        metrics.stage("plan", Duration::from_millis(30));
        metrics.driver("vsphere-csi", Some("3.7.2"));
        metrics.driver("vsphere-csi", Some("3.7.3"));
        metrics.driver("vsphere-cpi", Some("1.34.0"));
        metrics.driver("vsphere-cpi", None);
        metrics.connection("vc1", true);
        metrics.connection("vc2", false);
        metrics.check("vc1", "Trusted", false);
        metrics.check("vc1", "Authenticated", true);
        metrics.check("vc2", "Trusted", true);
        metrics.forget_connection("vc2");
        let sessions = [metrics.session(), metrics.session(), metrics.session()];
        drop(sessions);
        let _open = metrics.session();
        metrics.wrote("apply", "DaemonSet");
        metrics.lease(false, true);
        metrics.lease(true, false);
        metrics.condition("Ready", ConditionValue::True);
        metrics.condition("Ready", ConditionValue::Unknown);
        let text = metrics.encode();
        for line in [
            "vdo_reconcile_total{result=\"waiting\"} 1",
            "vdo_reconcile_total{result=\"success\"} 2",
            "vdo_reconcile_duration_seconds_bucket{le=\"0.1\",stage=\"plan\"} 1",
            "vdo_driver_info{driver=\"vsphere-csi\",version=\"3.7.3\"} 1",
            "vdo_connection_up{connection=\"vc1\"} 1",
            "vdo_check_errors{connection=\"vc1\",check=\"Authenticated\"} 1",
            "vdo_check_errors{connection=\"vc1\",check=\"Trusted\"} 0",
            "vdo_leader 1",
            "vdo_lease_failures_total 1",
            "vdo_vcenter_sessions 1",
            "vdo_writes_total{verb=\"apply\",kind=\"DaemonSet\"} 1",
            "vdo_condition{type=\"Ready\",status=\"unknown\"} 1",
            "vdo_condition{type=\"Ready\",status=\"true\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
        }
        for gone in ["3.7.2", "vsphere-cpi", "vc2"] {
            assert!(!text.contains(gone), "{gone} is still in\n{text}");
        }
        assert!(text.contains("vdo_build_info{version="));
    }
}
