// SPDX-License-Identifier: Apache-2.0
//! The fields that are read of claims, volumes, classes, attachments, snapshots, pods, events and quotas, as serde types.
//! All other fields are dropped.

use crate::drivers::{DEFAULT_ANNOTATIONS, DEFAULT_SNAPSHOT_ANNOTATION};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// The beta form of `spec.storageClassName`, which Kubernetes still reads.
pub(super) const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// The node that the scheduler has chosen for a claim.
pub(super) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The built-in drivers whose volumes the kubelet hands to CSI, as it notes in the CSINode.
pub(super) const MIGRATED_PLUGINS: &str = "storage.alpha.kubernetes.io/migrated-plugins";

/// The name of an object and what keeps it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Meta {
    /// The name.
    pub name: String,
    /// The namespace; empty for objects of the cluster.
    pub namespace: String,
    /// The identity, by which an object differs from its predecessor of the same name.
    pub uid: String,
    /// The annotations that are of interest.
    #[serde(deserialize_with = "of_interest")]
    pub annotations: BTreeMap<String, String>,
    /// What must happen before the object is deleted.
    pub finalizers: Vec<String>,
    /// When it was created.
    pub creation_timestamp: Option<String>,
    /// Since when it is to be deleted.
    pub deletion_timestamp: Option<String>,
}

/// The annotations that something is concluded from; others may have any size.
fn of_interest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    const NAMES: [&str; 6] = [
        BETA_CLASS,
        SELECTED_NODE,
        MIGRATED_PLUGINS,
        DEFAULT_ANNOTATIONS[0],
        DEFAULT_ANNOTATIONS[1],
        DEFAULT_SNAPSHOT_ANNOTATION,
    ];
    let mut all = Option::<BTreeMap<String, String>>::deserialize(deserializer)?.unwrap_or_default();
    all.retain(|name, _| NAMES.contains(&name.as_str()));
    Ok(all)
}

impl Meta {
    /// The seconds since a time that the API server wrote; `None` for one that cannot be read.
    pub(super) fn age(now: Timestamp, time: Option<&str>) -> Option<i64> {
        Some(now.duration_since(time?.parse().ok()?).as_secs())
    }

    pub(super) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).map(String::as_str)
    }
}

/// Defines structures of fields that may all be missing.
macro_rules! read {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Default, Deserialize)]
            #[serde(default, rename_all = "camelCase")]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }
        )*
    };
}

read! {
    /// A PersistentVolumeClaim.
    Claim {
        /// Its name.
        metadata: Meta,
        /// What it asks for.
        spec: ClaimSpec,
        /// What it has.
        status: ClaimStatus,
    }
    /// What a claim asks for.
    ClaimSpec {
        /// The class; `None` means the default one, an empty name an existing volume.
        storage_class_name: Option<String>,
        /// The volume that it is bound to, or wants to be.
        volume_name: String,
        /// Who may mount it.
        access_modes: Vec<String>,
        /// What it is filled from.
        data_source: Option<Source>,
        /// How much it asks for.
        resources: Resources,
    }
    /// How much a claim asks for.
    Resources {
        /// By resource; `storage` is the one of claims.
        requests: BTreeMap<String, String>,
    }
    /// What a claim is filled from.
    Source {
        /// PersistentVolumeClaim or VolumeSnapshot.
        kind: String,
        /// Its name.
        name: String,
    }
    /// The state of a claim.
    ClaimStatus {
        /// Pending, Bound or Lost.
        phase: String,
        /// How much it has, by resource.
        capacity: BTreeMap<String, String>,
        /// What happens to it.
        conditions: Vec<Condition>,
    }
    /// A condition of a claim or a pod.
    Condition {
        /// Its type.
        r#type: String,
        /// True, False or Unknown.
        status: String,
        /// Its reason.
        reason: String,
        /// Its message.
        message: String,
    }
    /// A PersistentVolume.
    Volume {
        /// Its name.
        metadata: Meta,
        /// What it is.
        spec: VolumeSpec,
        /// Its state.
        status: VolumeStatus,
    }
    /// What a volume is.
    VolumeSpec {
        /// The claim that it is for.
        claim_ref: Option<ClaimRef>,
        /// The CSI driver that serves it.
        csi: Option<CsiVolume>,
        /// A volume of the driver that was built into Kubernetes.
        vsphere_volume: Option<BuiltIn>,
        /// What happens when its claim is deleted.
        persistent_volume_reclaim_policy: String,
        /// The nodes that reach it.
        node_affinity: NodeAffinity,
        /// How large it is, by resource.
        capacity: BTreeMap<String, String>,
    }
    /// A claim by its name.
    ClaimRef {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    }
    /// A volume of a CSI driver.
    CsiVolume {
        /// The driver.
        driver: String,
        /// The identity under which the driver knows it.
        volume_handle: String,
    }
    /// A volume of the driver that was built into Kubernetes.
    BuiltIn {
        /// The path of its disk.
        volume_path: String,
    }
    /// The state of a volume.
    VolumeStatus {
        /// Available, Bound, Released or Failed.
        phase: String,
        /// Why it is as it is.
        message: String,
    }
    /// A StorageClass.
    Class {
        /// Its name.
        metadata: Meta,
        /// The driver that makes volumes of it.
        provisioner: String,
        /// The parameters for the driver.
        parameters: BTreeMap<String, String>,
        /// Immediate or WaitForFirstConsumer.
        volume_binding_mode: String,
        /// Where volumes may be.
        allowed_topologies: Vec<Term>,
    }
    /// Places, each of which has all of these labels: of a class, or of a volume.
    Term {
        /// The labels, as a class has them.
        match_label_expressions: Vec<Label>,
        /// The labels, as a volume has them.
        match_expressions: Vec<Label>,
    }
    /// The nodes that reach a volume.
    NodeAffinity {
        /// One of the places.
        required: Places,
    }
    /// Places of which one is enough.
    Places {
        /// Each of them.
        node_selector_terms: Vec<Term>,
    }
    /// A label with the values that it may have.
    Label {
        /// Its key.
        key: String,
        /// Its values.
        values: Vec<String>,
    }
    /// A VolumeAttachment.
    Attachment {
        /// Its name.
        metadata: Meta,
        /// What is attached where.
        spec: AttachmentSpec,
        /// Whether it is.
        status: AttachmentStatus,
    }
    /// What is attached where.
    AttachmentSpec {
        /// The driver that attaches.
        attacher: String,
        /// The node.
        node_name: String,
        /// The volume.
        source: AttachmentSource,
    }
    /// The volume of an attachment.
    AttachmentSource {
        /// Its PersistentVolume.
        persistent_volume_name: String,
    }
    /// The state of an attachment.
    AttachmentStatus {
        /// Whether the volume is attached.
        attached: bool,
        /// Why it could not be attached.
        attach_error: Option<Failure>,
        /// Why it could not be detached.
        detach_error: Option<Failure>,
    }
    /// What a driver answered instead.
    Failure {
        /// Its text.
        message: String,
    }
    /// A CSINode.
    CsiNode {
        /// The name of the node.
        metadata: Meta,
        /// The drivers that are registered on it.
        spec: CsiNodeSpec,
    }
    /// The drivers of a node.
    CsiNodeSpec {
        /// Each of them.
        drivers: Vec<Registered>,
    }
    /// A driver on a node.
    Registered {
        /// Its name.
        name: String,
        /// The labels by which it places volumes.
        topology_keys: Option<Vec<String>>,
    }
    /// Any object of which only the name and the labels are of interest: a Node, a CSIDriver.
    Named {
        /// Its name and labels.
        metadata: Labelled,
    }
    /// A name with labels.
    Labelled {
        /// The name.
        name: String,
        /// The labels.
        labels: BTreeMap<String, String>,
    }
    /// A Pod that does not run yet.
    Pod {
        /// Its name.
        metadata: Meta,
        /// What it uses.
        spec: PodSpec,
        /// Its state.
        status: PodStatus,
    }
    /// What a pod uses.
    PodSpec {
        /// Its node; empty before it is placed.
        node_name: String,
        /// Its volumes.
        volumes: Vec<PodVolume>,
    }
    /// A volume of a pod.
    PodVolume {
        /// The name inside the pod.
        name: String,
        /// The claim.
        persistent_volume_claim: Option<PodClaim>,
        /// A claim that is made for the pod.
        ephemeral: Option<Ephemeral>,
    }
    /// A claim of a pod.
    PodClaim {
        /// Its name.
        claim_name: String,
    }
    /// A claim that is made for a pod, and is called after it.
    Ephemeral {}
    /// The state of a pod.
    PodStatus {
        /// Its conditions.
        conditions: Vec<Condition>,
    }
    /// An Event.
    Event {
        /// When it was created.
        metadata: Meta,
        /// What it is about.
        involved_object: Involved,
        /// Its reason.
        reason: String,
        /// Its message.
        message: String,
        /// Who wrote it.
        source: EventSource,
        /// When it was seen last.
        last_timestamp: Option<String>,
        /// When it was seen first, in the newer form.
        event_time: Option<String>,
    }
    /// Who wrote an event.
    EventSource {
        /// The component.
        component: String,
    }
    /// What an event is about.
    Involved {
        /// The kind.
        kind: String,
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
        /// The identity.
        uid: String,
    }
    /// A VolumeSnapshot.
    Snapshot {
        /// Its name.
        metadata: Meta,
        /// What it is of.
        spec: SnapshotSpec,
        /// Its state; `None` before a snapshot controller has seen it.
        status: Option<SnapshotStatus>,
    }
    /// What a snapshot is of.
    SnapshotSpec {
        /// Its class; `None` means the default one.
        volume_snapshot_class_name: Option<String>,
        /// The claim.
        source: SnapshotSource,
    }
    /// The claim of a snapshot.
    SnapshotSource {
        /// Its name.
        persistent_volume_claim_name: Option<String>,
    }
    /// The state of a snapshot.
    SnapshotStatus {
        /// Whether volumes can be made from it.
        ready_to_use: Option<bool>,
        /// Why it could not be taken.
        error: Option<Failure>,
    }
    /// A VolumeSnapshotClass.
    SnapshotClass {
        /// Its name.
        metadata: Meta,
        /// The driver that takes snapshots of it.
        driver: String,
    }
    /// A ResourceQuota.
    Quota {
        /// Its name.
        metadata: Meta,
        /// Its state.
        status: QuotaStatus,
    }
    /// The state of a quota.
    QuotaStatus {
        /// The most of each resource.
        hard: BTreeMap<String, String>,
        /// How much of it is used.
        used: BTreeMap<String, String>,
    }
}
