// SPDX-License-Identifier: Apache-2.0
//! Computes the steps of a reconcile as data: desired objects × live objects × inventory → writes, with what each of them waits for.
//!
//! [`plan`] makes the complete plan once. Gates define which steps must not start yet, and why: they never add or reorder a step. [`Plan::run`]
//! returns the steps that may be carried out now. Every function depends only on its arguments, so a plan can be printed, tested and compared.

mod adopted;
mod approval_target;
mod changed_by_others;
mod check;
mod conflict;
mod dependencies;
mod kept_after_uninstall;

mod foreign_driver_rules;

mod inventory;
mod last_applied;
mod managed_fields;
mod outline;
mod ownership;
mod packed_objects;
mod planner;
mod prune;
mod recreate;
mod repair_pauses;
mod revision;
mod rollback;
mod rollback_needs;
mod run;
mod schedule;
mod step_gates;
mod stored_history;
mod termination;
mod volumes_block_uninstall;
mod waves;
mod workload_references;

pub use adopted::{OWN_ANNOTATIONS, OWN_LABELS, adopted_from, left_running, remember_adoption, unmarked};
pub use approval_target::{RandomContent, hash, target};
pub use changed_by_others::{Drift, attribute};
pub use check::{PlanRejected, check};
pub use dependencies::dependencies;
pub use foreign_driver_rules::{Claim, Foreigner, ORIGINAL_OPERATOR, foreigners, moved, rivals};
pub use inventory::{Entry, Inventory, InventoryError, InventoryTooLarge, Stored, applied};
pub use kept_after_uninstall::StorageData;
pub use managed_fields::is_own_spelling;
pub use outline::{Action, Because, Item, masked, outline};
pub use ownership::{Adoption, Ownership, ownership};
pub use packed_objects::PackedObjects;
pub use planner::{Input, NO_RECORD, Record, plan};
pub use prune::{Lookup, deleting, lookups, may_go};
pub use recreate::replaceable;
pub use repair_pauses::{Contention, RepairHistory};
pub use revision::{About, Failed, Outcome, Revision, RevisionFailure, Rollback};
pub use rollback::{Sight, brought_back, given_up_at, reopens, verdict, way_back};
pub use rollback_needs::{Kind, images_on, needed_images, needed_kinds, unpullable};
pub use run::Last;
pub use schedule::Schedule;
pub use step_gates::{Closed, Extent, Gate, Needs};
pub use termination::blocker;
pub use volumes_block_uninstall::{REMOVE_DESPITE_VOLUMES, Volumes};
pub use waves::wave;
pub use workload_references::users;

use crate::manifest::{Difference, Object};
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use vdo_api::api::Reason;
use vdo_api::types::{ById, DriverName, Ids, ObjectId};

/// An object as it should be.
#[derive(Debug, Clone)]
pub struct Desired {
    /// The whole object, stamped.
    pub object: Object,
    /// The driver it belongs to.
    pub driver: Arc<str>,
    /// When it is applied, see [`wave`].
    pub wave: u8,
}

/// What was found in the cluster.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// Live objects, of those wanted and those in the inventory.
    pub live: Arc<ById<Object>>,
    /// Objects of which the API server has said, in the very state that is in `live`, that they are in sync. It writes
    /// some values in its own way (quantities, defaults), so that a comparison alone would see a difference for ever.
    pub in_sync: Ids,
    /// Drivers that do not get well. What is known of their objects is not believed: all of them are applied once more, which
    /// changes nothing where the API server finds them as they should be.
    pub force_reapply: BTreeSet<String>,
    /// Objects of which the API server has said that a field differs which cannot be changed.
    pub immutable: Ids,
    /// Storage classes and definitions that nothing wants any more: what holds each of them, or `None` when it was looked up and
    /// nothing does. One that is not in here is not deleted.
    pub held: BTreeMap<ObjectId, Option<String>>,
    /// What workloads of others use of configuration and accounts that nothing of ours wants any more, each with one of these workloads.
    pub used: ById<String>,
    /// The volumes of the storage driver; `None` while they were not looked up, and then the driver is not deleted.
    pub volumes: Option<Volumes>,
    /// When all this was seen.
    pub at: Timestamp,
    /// How long a deletion may take before the status says what blocks it.
    pub timeout: Duration,
}

/// Why an object is applied.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It does not exist.
    Create,
    /// Another manager deleted it, and the same is wanted again.
    Restore,
    /// It is there and ours, and something else is wanted now.
    Update(Vec<Difference>),
    /// It is there and ours, and another manager changed it.
    Repair(Vec<Difference>),
    /// It is there and not marked as ours: it is taken over.
    Adopt(Vec<Difference>),
}

/// One write.
#[derive(Debug, Clone)]
pub enum Step {
    /// Set the finalizer of the VDOConfig, before anything of it may exist.
    SetFinalizer,
    /// Write an object of the operator's own, which is in no inventory: the state of the webhook's certificate.
    Store {
        /// The whole object.
        object: Object,
        /// The driver whose objects are rendered from it.
        driver: String,
        /// It has never been there.
        first: bool,
    },
    /// Write the inventory as a superset, before anything in it may exist.
    Record(Inventory),
    /// Server-side apply.
    Apply {
        /// The whole object.
        object: Object,
        /// Why.
        change: Change,
        /// The wave; after a failure nothing of a later wave of the same driver is started any more.
        wave: u8,
        /// The driver it belongs to.
        driver: String,
        /// Whether fields are taken from other managers.
        take: bool,
    },
    /// Delete an object that is wanted, because a field differs that cannot be changed; the next plan creates it again.
    Replace {
        /// What it is called.
        id: ObjectId,
        /// At which version the API is asked.
        api_version: String,
        /// The instance that was seen.
        uid: String,
        /// Whether its pods stay and are taken over by its successor; otherwise they go with it.
        keep_pods: bool,
        /// The digest of what it is replaced by.
        digest: String,
        /// What differs.
        fields: Vec<Difference>,
        /// As for an apply.
        wave: u8,
        /// The driver it belongs to.
        driver: String,
    },
    /// Delete exactly this instance.
    Delete {
        /// What it is called.
        id: ObjectId,
        /// At which version the API is asked.
        api_version: String,
        /// The instance that was seen; another one of the same name is left alone.
        uid: String,
        /// The wave it was applied in.
        wave: u8,
        /// The driver it belongs to.
        driver: String,
    },
    /// Take our marks off an object whose annotation asks to keep it.
    Release {
        /// What it is called.
        id: ObjectId,
        /// At which version the API is asked.
        api_version: String,
        /// The instance that was seen.
        uid: String,
        /// The driver it belongs to.
        driver: String,
    },
    /// Narrow the inventory to what is really there, after everything else.
    Commit(Inventory),
    /// Delete the inventory, and then let the VDOConfig go: nothing of it is left.
    Finish,
}

impl Step {
    /// The wave of a write to an object that is wanted.
    #[must_use]
    pub fn wave(&self) -> Option<u8> {
        match self {
            Self::Apply { wave, .. } | Self::Replace { wave, .. } => Some(*wave),
            _ => None,
        }
    }

    /// Whether it leads to another state than the one that was reached before: a repair does not.
    #[must_use]
    pub fn is_transition(&self) -> bool {
        match self {
            Self::Apply { change, .. } => matches!(change, Change::Create | Change::Update(_) | Change::Adopt(_)),
            Self::Store { first, .. } => *first,
            Self::Delete { .. } | Self::Replace { .. } | Self::Release { .. } => true,
            Self::SetFinalizer | Self::Record(_) | Self::Commit(_) | Self::Finish => false,
        }
    }

    /// Whether something that exists is deleted, or is no longer ours.
    #[must_use]
    pub fn removes(&self) -> bool {
        matches!(
            self,
            Self::Delete { .. } | Self::Replace { .. } | Self::Release { .. } | Self::Finish
        )
    }

    /// The driver whose object is written; empty for what belongs to all.
    #[must_use]
    pub fn driver(&self) -> &str {
        match self {
            Self::Store { driver, .. }
            | Self::Apply { driver, .. }
            | Self::Replace { driver, .. }
            | Self::Delete { driver, .. }
            | Self::Release { driver, .. } => driver,
            Self::SetFinalizer | Self::Record(_) | Self::Commit(_) | Self::Finish => "",
        }
    }

    /// The object of a driver that is written; the inventory is none.
    #[must_use]
    pub fn id(&self) -> Option<ObjectId> {
        match self {
            Self::Apply { object, .. } | Self::Store { object, .. } => Some(object.id()),
            Self::Replace { id, .. } | Self::Delete { id, .. } | Self::Release { id, .. } => Some(id.clone()),
            Self::SetFinalizer | Self::Record(_) | Self::Commit(_) | Self::Finish => None,
        }
    }
}

/// What the plan waits for before it can go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The driver that waits.
    pub driver: String,
    /// For what, as a reason.
    pub reason: Reason,
    /// For what, as a sentence.
    pub message: String,
}

/// What is left alone although something could be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// The object.
    pub id: ObjectId,
    /// Why.
    pub message: String,
}

/// A step of the whole way.
#[derive(Debug, Clone)]
pub struct PlannedStep {
    /// The write.
    pub step: Step,
    /// The places of the steps that come first.
    pub depends_on: Vec<usize>,
    /// Whether it may start.
    pub gate: Gate,
}

/// The whole way to what is wanted.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Every write to an object of a driver, in order.
    pub steps: Vec<PlannedStep>,
    /// What is left alone.
    pub skipped: Vec<Skip>,
    /// What is waited for.
    pub waiting: Vec<Wait>,
    /// What cannot go on before a person does something, with the reason of the condition.
    pub blocked: Vec<Wait>,
    /// The drivers that do not go on as a whole. A driver that is not in here is open.
    gates: BTreeMap<DriverName, Gate>,
    /// The drivers that have not reached what is wanted, whether or not a step is left to do.
    unfinished: BTreeSet<DriverName>,
}

impl Plan {
    /// The writes, without what each waits for.
    pub fn writes(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().map(|planned| &planned.step)
    }

    /// Whether it leads to another state than the one that was reached before: a repair does not.
    #[must_use]
    pub fn is_transition(&self) -> bool {
        self.writes().any(Step::is_transition)
    }

    /// How many objects it touches.
    #[must_use]
    pub fn changes(&self) -> usize {
        self.writes().filter(|step| step.id().is_some()).count()
    }
}
