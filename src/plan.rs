//! What to do next, as data: wanted objects × live objects × inventory → ordered steps with reasons.
//!
//! Everything here is a function of its arguments. A plan can be printed, tested and compared; carrying it out decides
//! nothing. A plan is one increment: what a later wave needs is waited for and named, and the next plan goes on from there.
//!
//! Layer 1: may use `types`, `api`, `manifest` and `health`; it does not know where objects came from.

mod approval;
mod build;
mod check;
mod chunks;
mod conflict;
mod drift;
mod foreign;
mod held;
mod inventory;
mod maintain;
mod obstacle;
mod order;
mod outline;
mod ownership;
mod precedence;
mod remove;
mod replace;
mod schedule;
mod volumes;
mod whole;
mod written;

pub use approval::{Drawn, hash, target};
pub use build::{Hold, Input, build};
pub use check::{PlanRejected, check};
pub use chunks::{CHUNK, Keep, Kept};
pub use drift::{Drift, Fight, History, blame, hold_fire};
pub use foreign::{Foreigner, ORIGINAL_OPERATOR, foreigners};
pub use held::{Held, Needs, held, without};
pub use inventory::{Entry, Inventory, InventoryError, applied};
pub use obstacle::{Obstacle, deferral, obstacle};
pub use order::wave;
pub use outline::{Action, Because, Item, outline};
pub use ownership::{Adoption, Ownership, ownership};
pub use precedence::precedence;
pub use remove::{Question, may_go, remove};
pub use schedule::Schedule;
pub use volumes::{REMOVE_DESPITE_VOLUMES, Volumes};
pub use whole::{whole, whole_removal};
pub use written::is_own_spelling;

use crate::api::Reason;
use crate::manifest::{Difference, Object};
use crate::types::{ById, Ids, ObjectId};
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

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
    /// Objects of which the API server has said, in the very state that is in `live`, that they are as wanted. It writes
    /// some values in its own way (quantities, defaults), so that a comparison alone would see a difference for ever.
    pub settled: Arc<Ids>,
    /// Drivers that do not get well. What is known of their objects is not believed: all of them are applied once more, which
    /// changes nothing where the API server finds them as they should be.
    pub suspect: BTreeSet<String>,
    /// Objects of which the API server has said that a field differs which cannot be changed.
    pub immutable: Ids,
    /// Namespaces, storage classes and definitions that are about to go: what holds each of them, or `None` when it was
    /// looked up and nothing does. One that is not in here does not go.
    pub held: BTreeMap<ObjectId, Option<String>>,
    /// The volumes of the storage driver; `None` while nobody has looked, and then the driver does not go.
    pub volumes: Option<Volumes>,
    /// When all this was seen.
    pub at: Timestamp,
    /// How long a deletion may take before the status says what blocks it.
    pub patience: Duration,
}

impl Observed {
    /// The same if the storage driver had no volumes, for people who ask what a removal that waits for them leads to.
    #[must_use]
    pub fn without_volumes(&self) -> Self {
        Self {
            volumes: self.volumes.as_ref().map(|_| Volumes::default()),
            ..self.clone()
        }
    }
}

/// Why an object is applied.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It does not exist.
    Create,
    /// Somebody deleted it, and the same is wanted again.
    Restore,
    /// It is there and ours, and something else is wanted now.
    Update(Vec<Difference>),
    /// It is there and ours, and somebody changed it.
    Repair(Vec<Difference>),
    /// It is there and not marked as ours: it is taken over.
    Adopt(Vec<Difference>),
}

/// One write.
#[derive(Debug, Clone)]
pub enum Step {
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
    /// Delete an object that is wanted, because a field differs that cannot be changed; the next plan makes it anew.
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
    },
    /// Take our marks off an object that somebody asked to keep, and leave it to him.
    Release {
        /// What it is called.
        id: ObjectId,
        /// At which version the API is asked.
        api_version: String,
        /// The instance that was seen.
        uid: String,
    },
    /// Narrow the inventory to what is really there, after everything else.
    Commit(Inventory),
}

impl Step {
    /// The wave of a write to an object that is wanted.
    #[must_use]
    pub fn wave(&self) -> Option<u8> {
        match self {
            Self::Apply { wave, .. } | Self::Replace { wave, .. } => Some(*wave),
            Self::Record(_) | Self::Delete { .. } | Self::Release { .. } | Self::Commit(_) => None,
        }
    }

    /// Whether it leads to another state than the one that was reached before: a repair does not.
    #[must_use]
    pub fn is_transition(&self) -> bool {
        match self {
            Self::Apply { change, .. } => matches!(change, Change::Create | Change::Update(_) | Change::Adopt(_)),
            Self::Delete { .. } | Self::Replace { .. } | Self::Release { .. } => true,
            Self::Record(_) | Self::Commit(_) => false,
        }
    }

    /// The driver whose object is written; empty where nobody knows.
    #[must_use]
    pub fn driver<'a>(&'a self, inventory: &'a Inventory) -> &'a str {
        match self {
            Self::Apply { driver, .. } | Self::Replace { driver, .. } => driver,
            Self::Delete { id, .. } | Self::Release { id, .. } => inventory.objects.get(id).map_or("", |entry| entry.driver.as_str()),
            Self::Record(_) | Self::Commit(_) => "",
        }
    }

    /// The object that is written; the inventory is none.
    #[must_use]
    pub fn id(&self) -> Option<ObjectId> {
        match self {
            Self::Apply { object, .. } => Some(object.id()),
            Self::Replace { id, .. } | Self::Delete { id, .. } | Self::Release { id, .. } => Some(id.clone()),
            Self::Record(_) | Self::Commit(_) => None,
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

/// The next increment.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Writes, in order.
    pub steps: Vec<Step>,
    /// What is left alone.
    pub skipped: Vec<Skip>,
    /// What is waited for.
    pub waiting: Vec<Wait>,
    /// What cannot go on before a person does something, with the reason of the condition.
    pub blocked: Vec<Wait>,
    /// What must be looked up before this plan may be carried out as a whole.
    pub questions: BTreeSet<Question>,
}

impl Plan {
    /// Whether it leads to another state than the one that was reached before: a repair does not.
    #[must_use]
    pub fn is_transition(&self) -> bool {
        self.steps.iter().any(Step::is_transition)
    }

    /// How many objects it touches.
    #[must_use]
    pub fn changes(&self) -> usize {
        let touches = |step: &&Step| !matches!(step, Step::Record(_) | Step::Commit(_));
        self.steps.iter().filter(touches).count()
    }

    /// Whether something that exists would go, or no longer be ours.
    #[must_use]
    pub fn removes(&self) -> bool {
        self.steps
            .iter()
            .any(|step| matches!(step, Step::Delete { .. } | Step::Replace { .. } | Step::Release { .. }))
    }

    /// Whether nothing is to be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}
