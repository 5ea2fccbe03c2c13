// SPDX-License-Identifier: Apache-2.0
//! Finds the causes for VolumeAttachments that fail or hang, and for pods that wait for a volume to be attached or mounted.

use super::index::{Index, is_ours};
use super::objects::{Attachment, Event, Meta};
use super::texts::{Stage, classify};
use super::{Cause, Finding, Names, Observed, kept, quoted};
use crate::drivers::CSI_DRIVER;

const ATTACHMENT: &str = "VolumeAttachment";

pub(super) fn findings(observed: &Observed, index: &Index<'_>) -> Vec<Finding> {
    let own = observed
        .attachments
        .iter()
        .flatten()
        .filter(|attachment| attachment.spec.attacher == CSI_DRIVER);
    let mut all: Vec<Finding> = own.flat_map(|attachment| of_attachment(observed, index, attachment)).collect();
    all.extend(observed.events.iter().flatten().filter_map(|event| of_pod(observed, index, event)));
    all
}

fn of_attachment(observed: &Observed, index: &Index<'_>, attachment: &Attachment) -> Vec<Finding> {
    let (spec, status) = (&attachment.spec, &attachment.status);
    let node = spec.node_name.as_str();
    let volume = spec.source.persistent_volume_name.as_str();
    let names = Names {
        node,
        volume,
        ..Names::default()
    };
    let place = format!("PersistentVolume {volume} on node {node}");
    let both = sides(observed, index, attachment);
    let found = |cause: Cause, detail: &str| Finding::new(cause, ATTACHMENT, &attachment.metadata, detail, names).and(&both);
    let failed = |stage: Stage, text: &str| found(classify(stage, text), &format!("{place}: {text}"));
    if observed.nodes.is_some() && !index.nodes.contains_key(node) {
        return vec![found(Cause::NodeGone, &place)];
    }
    let is_leaving = attachment.metadata.deletion_timestamp.is_some();
    let state = match (&status.attach_error, &status.detach_error) {
        (_, Some(error)) if is_leaving => Some(failed(Stage::Detach, &error.message)),
        (Some(error), _) if !status.attached => Some(failed(Stage::Attach, &error.message)),
        _ if status.attached || is_leaving || observed.csi_nodes.is_none() || index.registered.contains_key(node) => None,
        _ => Some(found(Cause::NodeNotRegistered, &place)),
    };
    let kept = kept(observed.now, ATTACHMENT, &attachment.metadata).filter(|_| state.is_none());
    state.into_iter().chain(kept).collect()
}

/// What the cluster has of an attachment, and what is known of its volume and its node in the vCenter; empty where that is nothing.
fn sides(observed: &Observed, index: &Index<'_>, attachment: &Attachment) -> String {
    let (node, volume) = (&attachment.spec.node_name, &attachment.spec.source.persistent_volume_name);
    let handle = index.volumes.get(volume.as_str()).and_then(|volume| volume.spec.csi.as_ref());
    let handle = handle.map(|csi| csi.volume_handle.as_str());
    let listed = handle.zip(observed.registered.as_ref());
    let listed = listed.map(|(handle, registered)| match registered.get(handle) {
        Some(listed) => format!("the volume has the name {:?}", quoted(&listed.name)),
        None => "no volume has this handle".to_owned(),
    });
    let machine = observed.machines.get(node).map(|machine| format!("the node is {}", machine.text()));
    let vcenter: Vec<String> = listed.into_iter().chain(machine).collect();
    if vcenter.is_empty() {
        return String::new();
    }
    let state = if attachment.status.attached { "attached" } else { "not attached" };
    let handle = handle
        .map(|handle| format!(", and the volume has the handle {}", quoted(handle)))
        .unwrap_or_default();
    format!(
        "in the cluster, the VolumeAttachment has the status {state}{handle}; in the vCenter, {}",
        vcenter.join(", and ")
    )
}

/// The names in a message: Kubernetes writes volume "NAME".
pub(super) fn in_quotes(message: &str) -> impl Iterator<Item = &str> {
    message.split('"').skip(1).step_by(2)
}

/// What a pod waits for, if its volume belongs to the driver and the VolumeAttachment does not show the cause.
fn of_pod(observed: &Observed, index: &Index<'_>, event: &Event) -> Option<Finding> {
    let about = &event.involved_object;
    if about.kind != "Pod" || !matches!(&*event.reason, "FailedAttachVolume" | "FailedMount") {
        return None;
    }
    // The event stays for an hour after the pod has started.
    if observed.pods.is_some() && !index.is_pending(&about.namespace, &about.name) {
        return None;
    }
    let volume = in_quotes(&event.message).find_map(|name| index.volumes.get(name).filter(|volume| is_ours(volume)))?;
    let cause = classify(Stage::Attach, &event.message);
    if cause == Cause::AttachFailed && observed.attachments.is_some() {
        return None;
    }
    let meta = Meta {
        name: about.name.clone(),
        namespace: about.namespace.clone(),
        ..Meta::default()
    };
    let names = Names {
        volume: &volume.metadata.name,
        ..Names::default()
    };
    Some(Finding::new(cause, "Pod", &meta, &event.message, names))
}
