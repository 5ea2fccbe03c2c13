// SPDX-License-Identifier: Apache-2.0
//! Finds out why volumes do not work, with cause and remedy, from objects of the cluster and its vCenters, for `vdoctl doctor volumes`.
//!
//! `vdoctl selftest` and the operator's condition VolumesHealthy use the same findings.
//! A kind of object that could not be read is `None`. Nothing is concluded from its absence, and all other findings are still reported.

mod attachments;
mod built_in;
mod cause;
mod claims;
mod finalizers;
mod index;
mod object_accessors;
mod objects;
mod persistent_volumes;
mod quantity;
mod quotas;
mod snapshots;
mod texts;
mod volume_zones;
mod vsphere;
mod warned_objects;

pub use cause::{ABOUT, About, Cause};
pub use objects::{Attachment, Claim, Class, CsiNode, Event, Meta, Named, Pod, Quota, Snapshot, SnapshotClass, Volume};
pub use texts::{Stage, WORDS, classify, quoted};
pub use vsphere::{Listed, NodeMachine, Reached, machines};
pub use warned_objects::{Named as NamedObject, concerned, of_others};

use index::Index;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// How many seconds something may take before it counts as late.
const LATE: i64 = 120;
/// How many seconds a deletion may take: Kubernetes itself waits six minutes for a node that is gone.
const DELETED: i64 = 360;

/// What was read.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// The time.
    pub now: Timestamp,
    /// The PersistentVolumeClaims.
    pub claims: Option<Vec<Claim>>,
    /// The PersistentVolumes.
    pub volumes: Option<Vec<Volume>>,
    /// The StorageClasses.
    pub classes: Option<Vec<Class>>,
    /// The VolumeAttachments.
    pub attachments: Option<Vec<Attachment>>,
    /// The CSINodes.
    pub csi_nodes: Option<Vec<CsiNode>>,
    /// The Nodes.
    pub nodes: Option<Vec<Named>>,
    /// The CSIDrivers.
    pub drivers: Option<Vec<Named>>,
    /// The pods that do not run yet.
    pub pods: Option<Vec<Pod>>,
    /// The warnings about claims, volumes, pods and StatefulSets.
    pub events: Option<Vec<Event>>,
    /// The VolumeSnapshots; none where the API server does not serve them.
    pub snapshots: Option<Vec<Snapshot>>,
    /// The VolumeSnapshotClasses.
    pub snapshot_classes: Option<Vec<SnapshotClass>>,
    /// The ResourceQuotas.
    pub quotas: Option<Vec<Quota>>,
    /// The feature states that the VDOConfig sets and the installed version of the driver reads.
    pub features: BTreeMap<String, bool>,
    /// The volumes that the vCenters have registered for this cluster, by identity. `None` where a vCenter was not asked, or has no
    /// service for container volumes.
    pub registered: Option<BTreeMap<String, Listed>>,
    /// The identity under which they are registered.
    pub cluster_id: String,
    /// The machines of nodes that the operator has found, by node.
    pub machines: BTreeMap<String, NodeMachine>,
    /// The datastores that can be used. `None` where they were not asked for.
    pub reached: Option<Vec<Reached>>,
}

impl Observed {
    /// Whether the VDOConfig switches a feature of the driver off.
    fn is_off(&self, feature: &str) -> bool {
        self.features.get(feature) == Some(&false)
    }

    /// That it does.
    fn off(feature: &str) -> String {
        format!("the VDOConfig switches the feature {feature} off")
    }
}

/// What is wrong with an object, why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The cause.
    pub cause: Cause,
    /// Whether the finding is a fault, which needs an action; false for a note.
    pub is_fault: bool,
    /// The kind of the object.
    pub kind: String,
    /// Its namespace; empty for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// What happened.
    pub message: String,
    /// What to do.
    pub remedy: String,
    /// A command that applies the remedy or shows details; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
}

/// What the command of a finding is about, beside its object.
#[derive(Debug, Clone, Copy, Default)]
struct Names<'a> {
    class: &'a str,
    node: &'a str,
    volume: &'a str,
}

impl Finding {
    fn new(cause: Cause, kind: &str, meta: &Meta, detail: &str, names: Names<'_>) -> Self {
        let about = cause.about();
        let message = match detail {
            "" => about.what.to_owned(),
            detail => format!("{}: {}", about.what, quoted(detail)),
        };
        Self {
            cause,
            is_fault: about.is_fault,
            kind: kind.to_owned(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            message,
            remedy: about.remedy.to_owned(),
            command: command(about.command, kind, meta, names),
        }
    }

    /// With more of our own to say, of which nothing is cut.
    fn and(mut self, more: &str) -> Self {
        if !more.is_empty() {
            let separator = if self.message == self.cause.about().what { ": " } else { "; " };
            self.message.push_str(separator);
            self.message.push_str(more);
        }
        self
    }

    /// `PersistentVolumeClaim default/data`.
    #[must_use]
    pub fn object(&self) -> String {
        match self.namespace.as_str() {
            "" => format!("{} {}", self.kind, self.name),
            namespace => format!("{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// The command with its names. A name that a shell could read as something else gives no command.
fn command(template: &str, kind: &str, meta: &Meta, names: Names<'_>) -> String {
    let kind = kind.to_lowercase();
    let values = [
        ("NAMESPACE", meta.namespace.as_str()),
        ("NAME", meta.name.as_str()),
        ("CLASS", names.class),
        ("NODE", names.node),
        ("VOLUME", names.volume),
        ("KIND", kind.as_str()),
    ];
    let is_plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    let mut words = Vec::new();
    for word in template.split(' ') {
        match values.iter().find(|(name, _)| *name == word) {
            Some((_, value)) if is_plain(value) && !value.starts_with('-') => words.push((*value).to_owned()),
            Some(_) => return String::new(),
            None => words.push(word.to_owned()),
        }
    }
    // An object of a namespace needs it, in a command for all kinds.
    if template.contains("KIND") && !meta.namespace.is_empty() {
        if !is_plain(&meta.namespace) {
            return String::new();
        }
        words.extend(["--namespace".to_owned(), meta.namespace.clone()]);
    }
    words.join(" ")
}

/// Everything that is wrong, faults first, in the order of the table of causes.
#[must_use]
pub fn findings(observed: &Observed) -> Vec<Finding> {
    let index = Index::of(observed);
    let mut all = claims::findings(observed, &index);
    all.extend(persistent_volumes::findings(observed, &index));
    all.extend(attachments::findings(observed, &index));
    all.extend(snapshots::findings(observed, &index));
    all.extend(quotas::findings(observed, &index));
    all.sort_by(|a, b| {
        let key = |finding: &Finding| (!finding.is_fault, finding.cause);
        key(a)
            .cmp(&key(b))
            .then_with(|| (&a.kind, &a.namespace, &a.name).cmp(&(&b.kind, &b.namespace, &b.name)))
    });
    let mut seen = BTreeSet::new();
    all.retain(|finding| seen.insert((finding.cause, finding.kind.clone(), finding.namespace.clone(), finding.name.clone())));
    all
}

/// Whether a finding depends on which hosts reach which datastores, so that it is worth to ask a vCenter for that.
#[must_use]
pub fn needs_datastores(observed: &Observed) -> bool {
    findings(observed).iter().any(|finding| finding.cause.is_of_places())
}

/// The object is to be deleted for longer than that takes, and who keeps it.
fn kept(now: Timestamp, kind: &str, meta: &Meta) -> Option<Finding> {
    let age = Meta::age(now, meta.deletion_timestamp.as_deref())?;
    if age < DELETED || meta.finalizers.is_empty() {
        return None;
    }
    let keepers: Vec<String> = meta
        .finalizers
        .iter()
        .map(|finalizer| match finalizers::keeper(finalizer) {
            "" => finalizer.clone(),
            keeper => format!("{finalizer} ({keeper})"),
        })
        .collect();
    Some(Finding::new(
        Cause::FinalizerLeft,
        kind,
        meta,
        &keepers.join(", "),
        Names::default(),
    ))
}

#[cfg(test)]
mod tests;
