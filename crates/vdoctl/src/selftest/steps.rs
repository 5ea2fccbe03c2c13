// SPDX-License-Identifier: Apache-2.0
//! Decides which steps of a selftest are made or skipped, and when a step has passed or failed. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A step of the test. The steps are made in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, strum::EnumIter, strum::IntoStaticStr)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Step {
    /// A claim is bound to a volume.
    Claim,
    /// The volume is attached to the node of a pod.
    Attach,
    /// The pod writes data to the volume and reads the data.
    Write,
    /// The volume is expanded.
    Expand,
    /// A snapshot of the volume is ready.
    Snapshot,
    /// A pod reads the data in a volume that was created from the snapshot.
    Restore,
    /// A pod on another node reads the data.
    Move,
    /// All objects of the test are deleted.
    Delete,
}

impl Step {
    /// The steps that must have passed before it.
    fn needs(self) -> &'static [Self] {
        match self {
            Self::Claim | Self::Delete => &[],
            Self::Attach => &[Self::Claim],
            Self::Write => &[Self::Attach],
            Self::Expand | Self::Snapshot | Self::Move => &[Self::Write],
            Self::Restore => &[Self::Snapshot],
        }
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}

/// The result of a step or of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Outcome {
    /// The step or the test passed.
    Passed,
    /// The step or the test failed, or a step took too long.
    Failed,
    /// The step was not made.
    Skipped,
}

/// What is known of the cluster before the first step.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// The StorageClass.
    pub class: String,
    /// Whether volumes of the class may grow.
    pub expands: bool,
    /// Whether pods of several nodes share the volume.
    pub shared: bool,
    /// The VolumeSnapshotClass, or why there is none.
    pub snapshots: Result<String, String>,
    /// How many nodes may run the pods.
    pub nodes: usize,
}

/// The driver of file volumes does neither (`volume expansion is only supported for block volume type` is its answer).
const BLOCK_ONLY: &str = "the driver supports this step for block volumes only (ReadWriteOnce)";

/// Why a step is not made; `None` where it is.
pub(super) fn skipped(step: Step, known: &Known, done: &[(Step, Outcome)]) -> Option<String> {
    for need in step.needs() {
        let outcome = done.iter().find(|(of, _)| of == need).map(|(_, outcome)| *outcome);
        match outcome {
            Some(Outcome::Passed) => {}
            Some(Outcome::Skipped) => return Some(format!("step {} was skipped", need.name())),
            _ => return Some(format!("step {} has not passed", need.name())),
        }
    }
    match step {
        Step::Expand | Step::Snapshot if known.shared => Some(BLOCK_ONLY.to_owned()),
        Step::Expand if !known.expands => Some(format!("StorageClass {} does not set allowVolumeExpansion", known.class)),
        Step::Snapshot => known.snapshots.as_ref().err().cloned(),
        Step::Move => match known.nodes {
            0 | 1 => Some("no other node can run the pod with this volume".to_owned()),
            _ => None,
        },
        _ => None,
    }
}

/// What is seen of the objects of a step.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// The claim's phase, its volume and the size in its status.
    pub claim: ClaimSeen,
    /// The size of the PersistentVolume.
    pub volume_size: String,
    /// Whether the volume is attached to the pod's node, or why not; `None` without an attachment.
    pub attachment: Option<Result<bool, String>>,
    /// The pod.
    pub pod: PodSeen,
    /// Whether the snapshot is ready, or why it failed; `None` without a status.
    pub snapshot: Option<Result<bool, String>>,
}

/// What is seen of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ClaimSeen {
    /// Pending, Bound or Lost.
    pub phase: String,
    /// Its PersistentVolume.
    pub volume: String,
    /// How large it is for pods.
    pub size: String,
}

/// What is seen of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PodSeen {
    /// Pending, Running, Succeeded or Failed.
    pub phase: String,
    /// Its node.
    pub node: String,
    /// Why it does not run, or what it ended with.
    pub message: String,
}

/// What was seen before a step.
#[derive(Debug, Clone, Default)]
pub(super) struct Before {
    /// The size that the volume had.
    pub size: String,
    /// The node of the first pod.
    pub node: String,
    /// Whether the volume has grown, so that its file system must, too.
    pub grown: bool,
}

/// Whether a step is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As it should be, with what is worth to be shown.
    Passed(String),
    /// It cannot pass any more.
    Failed(String),
    /// What it waits for.
    Waits(String),
}

/// Judges a step by what is seen.
pub(super) fn judge(step: Step, seen: &Seen, before: &Before) -> Verdict {
    match step {
        Step::Claim => claim(seen),
        Step::Attach => attach(seen),
        Step::Write => pod(&seen.pod, "wrote and read data"),
        Step::Expand => match seen.volume_size.as_str() {
            "" => Verdict::Waits("the PersistentVolume cannot be read".to_owned()),
            size if size == before.size => Verdict::Waits(format!("the volume still has {size}")),
            size => Verdict::Passed(format!("expanded from {} to {size}", before.size)),
        },
        Step::Snapshot => match &seen.snapshot {
            Some(Ok(true)) => Verdict::Passed(String::new()),
            Some(Err(error)) => Verdict::Waits(format!("the snapshot is not ready: {error}")),
            _ => Verdict::Waits("the snapshot is not ready".to_owned()),
        },
        Step::Restore => pod(&seen.pod, "read the data of the snapshot"),
        Step::Move => moved(seen, before),
        Step::Delete => Verdict::Passed(String::new()),
    }
}

fn claim(seen: &Seen) -> Verdict {
    match (seen.claim.phase.as_str(), seen.pod.message.as_str()) {
        ("Bound", _) => Verdict::Passed(format!("bound to {}", seen.claim.volume)),
        ("Lost", _) => Verdict::Failed("the claim has lost its volume".to_owned()),
        (_, "") => Verdict::Waits("the claim is Pending".to_owned()),
        (_, message) => Verdict::Waits(format!("the claim is Pending; the pod of the claim: {message}")),
    }
}

/// A pod that runs or has run had its volume: kube-controller-manager may have detached it since.
fn attach(seen: &Seen) -> Verdict {
    let started = ["Running", "Succeeded", "Failed"].contains(&seen.pod.phase.as_str());
    match &seen.attachment {
        _ if started => Verdict::Passed(format!("attached to node {}", seen.pod.node)),
        Some(Ok(true)) => Verdict::Passed(format!("attached to node {}", seen.pod.node)),
        Some(Err(error)) => Verdict::Waits(format!("not attached to node {}: {error}", seen.pod.node)),
        _ if seen.pod.node.is_empty() => Verdict::Waits(format!("the pod has no node: {}", seen.pod.message)),
        _ => Verdict::Waits(format!("not attached to node {}", seen.pod.node)),
    }
}

fn pod(pod: &PodSeen, what: &str) -> Verdict {
    let state = || match pod.message.as_str() {
        "" => format!("the pod is {}", if pod.phase.is_empty() { "missing" } else { &pod.phase }),
        message => format!("the pod is {}: {message}", pod.phase),
    };
    match pod.phase.as_str() {
        "Succeeded" => Verdict::Passed(format!("{what} on node {}", pod.node)),
        "Failed" => Verdict::Failed(state()),
        _ => Verdict::Waits(state()),
    }
}

fn moved(seen: &Seen, before: &Before) -> Verdict {
    match pod(&seen.pod, "read") {
        Verdict::Passed(_) if seen.pod.node == before.node => Verdict::Failed(format!("the pod ran on node {} again", before.node)),
        Verdict::Passed(_) if before.grown && seen.claim.size == before.size => {
            Verdict::Waits(format!("the disk has grown, but its file system still has {}", before.size))
        }
        Verdict::Passed(_) => Verdict::Passed(format!("moved from node {} to {}", before.node, seen.pod.node)),
        other => other,
    }
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
