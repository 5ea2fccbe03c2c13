// SPDX-License-Identifier: Apache-2.0
//! The type `Report`: the failures, drivers, preconditions, waits and drift that a reconcile reports for the status.

use crate::health::DriverHealth;
use crate::plan::{Contention, Drift, Skip, Wait};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;
use std::time::Duration;
use vdo_api::api::{Class, Classify, ConditionType, MatrixStatus, PlanStatus, Reason, chain};
use vdo_api::facts::{Cluster, Connection};

/// A failure, reduced to what is published of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The reason of the condition.
    pub reason: Reason,
    /// What can be done about it.
    pub class: Class,
    /// What object, what happened, what to do.
    pub message: String,
    /// The drivers that it keeps from being installed, where it is of single ones.
    pub drivers: BTreeSet<String>,
}

impl Failure {
    /// A failure that is not of single drivers.
    #[must_use]
    pub fn new(reason: Reason, class: Class, message: impl Into<String>) -> Self {
        Self {
            reason,
            class,
            message: message.into(),
            drivers: BTreeSet::new(),
        }
    }

    /// What is waited for, as a failure.
    #[must_use]
    pub fn of_wait(wait: &Wait, class: Class) -> Self {
        Self::new(wait.reason, class, wait.message.clone())
    }
}

impl<F: Classify> From<&F> for Failure {
    fn from(failure: &F) -> Self {
        Self::new(failure.reason(), failure.class(), chain(failure))
    }
}

/// A driver that is asked for or still there.
#[derive(Debug, Clone)]
pub struct DriverReport {
    /// Its name in the matrix.
    pub name: String,
    /// The version that is wanted.
    pub version: String,
    /// The version of the workloads that are there, if any are.
    pub installed: Option<String>,
    /// The number of the state that was applied last, if any was.
    pub revision: Option<u64>,
    /// The newest version that would fit.
    pub available: String,
    /// The digest of its chart.
    pub chart: String,
    /// Why this version.
    pub because: String,
    /// How many objects it has.
    pub objects: usize,
    /// How it is; `None` while nothing of it exists.
    pub health: Option<DriverHealth>,
}

/// What was found of one thing that must hold before the drivers can work: one entry is one condition of the status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Precondition {
    /// One of [`ConditionType::PRECONDITIONS`].
    pub kind: ConditionType,
    /// Whether it holds; `None` when that is unknown, which is never taken for a no.
    pub holds: Option<bool>,
    /// Why.
    pub reason: Reason,
    /// What object, what happened, what to do.
    pub message: String,
}

impl Precondition {
    /// It holds.
    #[must_use]
    pub fn holds(kind: ConditionType, message: impl Into<String>) -> Self {
        Self {
            kind,
            holds: Some(true),
            reason: Reason::Healthy,
            message: message.into(),
        }
    }

    /// Whether it holds is unknown, or it is not requested.
    #[must_use]
    pub fn unknown(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            kind,
            holds: None,
            reason,
            message: message.into(),
        }
    }

    /// It does not hold.
    #[must_use]
    pub fn fails(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            kind,
            holds: Some(false),
            reason,
            message: message.into(),
        }
    }
}

/// Whether the next Kubernetes minor fits, in the words of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upgradeable {
    /// Whether it fits.
    pub fits: bool,
    /// Why not.
    pub reason: Reason,
    /// The sentence.
    pub message: String,
}

/// A newer version of a driver that fits and is not installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVersion {
    /// Why it is not installed.
    pub reason: Reason,
    /// Which version, which one stays, and what to do.
    pub message: String,
}

/// Everything a reconcile has to say. Parts that were not reached stay empty.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The generation that was acted upon.
    pub generation: Option<i64>,
    /// The annotation by which a person asked for this reconcile or an earlier one.
    pub reconcile_at: Option<String>,
    /// The cluster.
    pub cluster: Option<Cluster>,
    /// The connections in use.
    pub connections: Vec<Connection>,
    /// The matrix in use.
    pub matrix: Option<MatrixStatus>,
    /// Whether the next Kubernetes minor fits.
    pub upgradeable: Option<Upgradeable>,
    /// The newer versions that fit and are not installed, where that is known of every driver.
    pub newer: Option<Vec<NewVersion>>,
    /// The drivers asked for.
    pub drivers: Vec<DriverReport>,
    /// The drivers that are installed and not asked for: they are kept.
    pub unrequested: Vec<String>,
    /// The drivers that are to be removed, as the specification says.
    pub removing: Vec<String>,
    /// The options that are set and that the chosen versions cannot use, where that is known.
    pub ignored: Option<Vec<String>>,
    /// What is waited for.
    pub waiting: Vec<Wait>,
    /// What was left alone.
    pub skipped: Vec<Skip>,
    /// What is about to be changed.
    pub plan: Option<PlanStatus>,
    /// Name and size of the inventory.
    pub inventory: Option<(String, usize)>,
    /// The identity under which volumes are registered.
    pub cluster_id: Option<String>,
    /// What was found of the preconditions. Of those that are not here, the last report stays true.
    pub preconditions: Vec<Precondition>,
    /// What another manager had changed and was brought back.
    pub drift: Vec<Drift>,
    /// What another manager keeps changing and is left alone for now.
    pub contentions: Vec<Contention>,
    /// What went wrong, worst first.
    pub failures: Vec<Failure>,
    /// The object is being removed.
    pub deleting: bool,
    /// Management is paused; this many writes would be made.
    pub paused: Option<usize>,
    /// The drivers are removed, and that is what is asked for.
    pub removed: bool,
    /// The object was let go: there is nothing left to report on.
    pub gone: bool,
    /// How long each stage took that was reached, by its name.
    pub stages: Vec<(&'static str, Duration)>,
    /// When the next attempt is made, where that is known.
    pub next_attempt: Option<Time>,
    /// How long nothing may move on while something is waited for, as the specification has it.
    pub deadline: Option<SignedDuration>,
    /// How the maintenance windows are, where there are any.
    pub window: Option<Precondition>,
    /// When something has to be decided although nothing happens.
    pub look_again: Option<Timestamp>,
}

impl Report {
    /// Adds what was found later. What can be said once only is what was said last.
    pub fn join(&mut self, later: Self) {
        fn newest<T>(old: &mut Option<T>, new: Option<T>) {
            *old = new.or_else(|| old.take());
        }
        let Self {
            generation,
            reconcile_at,
            cluster,
            connections,
            matrix,
            upgradeable,
            newer,
            drivers,
            unrequested,
            removing,
            ignored,
            waiting,
            skipped,
            plan,
            inventory,
            cluster_id,
            preconditions,
            drift,
            contentions,
            failures,
            deleting,
            paused,
            removed,
            gone,
            stages,
            next_attempt,
            deadline,
            window,
            look_again,
        } = later;
        newest(&mut self.generation, generation);
        newest(&mut self.reconcile_at, reconcile_at);
        newest(&mut self.cluster, cluster);
        newest(&mut self.matrix, matrix);
        newest(&mut self.upgradeable, upgradeable);
        newest(&mut self.newer, newer);
        newest(&mut self.plan, plan);
        newest(&mut self.inventory, inventory);
        newest(&mut self.cluster_id, cluster_id);
        newest(&mut self.ignored, ignored);
        newest(&mut self.paused, paused);
        newest(&mut self.next_attempt, next_attempt);
        newest(&mut self.deadline, deadline);
        newest(&mut self.window, window);
        self.look_again = self.look_again.into_iter().chain(look_again).min();
        if !drivers.is_empty() {
            self.drivers = drivers;
        }
        self.connections.extend(connections);
        self.unrequested.extend(unrequested);
        self.removing.extend(removing);
        self.waiting.extend(waiting);
        self.skipped.extend(skipped);
        self.preconditions.extend(preconditions);
        self.drift.extend(drift);
        self.contentions.extend(contentions);
        self.failures.extend(failures);
        self.stages.extend(stages);
        self.deleting |= deleting;
        self.removed |= removed;
        self.gone |= gone;
    }

    /// Whether the drivers go, or are gone, because that is what is asked for.
    pub(super) fn uninstalling(&self) -> bool {
        self.deleting || self.removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_joined_keeps_what_is_known_and_takes_what_is_newer() {
        let found = |number: i64| Report {
            generation: Some(number),
            cluster_id: Some(format!("id {number}")),
            unrequested: vec![format!("driver {number}")],
            drivers: vec![DriverReport {
                name: "d".into(),
                version: format!("{number}.0.0"),
                installed: None,
                revision: None,
                available: String::new(),
                chart: String::new(),
                because: String::new(),
                objects: 0,
                health: None,
            }],
            deleting: true,
            removed: true,
            gone: true,
            ..Report::default()
        };
        let mut report = Report::default();
        report.join(found(1));
        assert_eq!(format!("{report:?}"), format!("{:?}", found(1)), "it is all that is known");
        report.join(found(2));
        let expected = Report {
            unrequested: vec!["driver 1".into(), "driver 2".into()],
            ..found(2)
        };
        assert_eq!(
            format!("{report:?}"),
            format!("{expected:?}"),
            "lists grow, and the rest is replaced"
        );
        report.join(Report::default());
        assert_eq!(format!("{report:?}"), format!("{expected:?}"), "nothing is forgotten");
    }
}
