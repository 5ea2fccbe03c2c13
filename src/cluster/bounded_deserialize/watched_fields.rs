// SPDX-License-Identifier: Apache-2.0
//! The table of the fields that the operator reads of each kind, with the limit of memory for one object of the kind.

/// What is read of a kind.
pub(in crate::cluster) struct Fields {
    /// The kind; empty for what is not about one.
    pub kind: &'static str,
    /// The fields, as JSON pointers that pass through lists; none: all but the record of field managers.
    pub fields: &'static [&'static str],
    /// How much memory they may take, in bytes by [`weight`].
    pub most: usize,
}

/// Everything but the record of field managers, which is as large as the object.
pub(in crate::cluster) const WHOLE: usize = 0;
/// Everything.
pub(in crate::cluster) const MANAGED: usize = 1;
/// The metadata.
pub(in crate::cluster) const METADATA: usize = 2;
/// The metadata, and who wrote it.
pub(in crate::cluster) const APPLIED: usize = 3;
/// Which storage class a claim or a volume has.
pub(in crate::cluster) const CLASS: usize = 4;
/// From here on what the cache keeps of a kind.
pub(in crate::cluster) const KINDS: usize = 5;

/// Kinds with many objects, or with objects that many may write (controller-runtime calls this a transform).
pub(in crate::cluster) const TABLE: [Fields; 14] = [
    fields("", &[], 8 << 20),
    fields("", &[], 24 << 20),
    fields(
        "",
        &["/metadata/labels", "/metadata/annotations", "/metadata/ownerReferences"],
        SMALL,
    ),
    fields(
        "",
        &[
            "/metadata/labels",
            "/metadata/annotations",
            "/metadata/ownerReferences",
            "/metadata/managedFields/manager",
            "/metadata/managedFields/operation",
        ],
        SMALL,
    ),
    fields(
        "",
        &[
            "/spec/storageClassName",
            "/spec/volumeSnapshotClassName",
            "/metadata/annotations/volume.beta.kubernetes.io~1storage-class",
        ],
        SMALL,
    ),
    fields(
        "Node",
        &[
            "/metadata/labels",
            "/spec/taints",
            "/spec/unschedulable",
            "/spec/providerID",
            "/status/nodeInfo/systemUUID",
            "/status/nodeInfo/kubeletVersion",
            "/status/addresses",
            "/status/conditions",
        ],
        SMALL,
    ),
    fields(
        "Pod",
        &[
            "/metadata/labels",
            "/spec/nodeName",
            "/status/phase",
            "/status/containerStatuses",
            "/status/initContainerStatuses",
            "/status/conditions",
        ],
        SMALL,
    ),
    fields("CSINode", &["/metadata/labels", "/spec/drivers"], SMALL),
    // Its status is written by the operator, which need not be woken by it, but for whether the connections have to ask for volumes.
    fields("VDOConfig", &["/metadata/labels", "/spec", "/status/clusterId"], 2 * SMALL),
    fields(
        "PersistentVolume",
        &[
            "/metadata/labels",
            "/spec/csi",
            "/spec/vsphereVolume",
            "/spec/claimRef",
            "/spec/accessModes",
            "/spec/nodeAffinity",
        ],
        SMALL,
    ),
    fields(
        "VolumeAttachment",
        &["/metadata/labels", "/spec/attacher", "/spec/nodeName", "/spec/source"],
        SMALL,
    ),
    fields(
        "VolumeSnapshotContent",
        &["/metadata/labels", "/spec/driver", "/spec/source", "/spec/volumeSnapshotRef"],
        SMALL,
    ),
    fields(
        "PersistentVolumeClaim",
        &[
            "/metadata/annotations",
            "/spec/storageClassName",
            "/spec/volumeName",
            "/spec/dataSource",
            "/status/phase",
            "/status/conditions",
        ],
        SMALL,
    ),
    // How often it was repeated is no news.
    fields("Event", &["/involvedObject", "/reason", "/message", "/source/component"], SMALL),
];

/// Of an object of which a few fields are read. A pod of the CSI driver with the status of its containers has 140 KiB.
pub(in crate::cluster) const SMALL: usize = 256 << 10;

const fn fields(kind: &'static str, fields: &'static [&'static str], most: usize) -> Fields {
    Fields { kind, fields, most }
}

/// The place of a kind in [`TABLE`]; [`WHOLE`] for one that is not there.
pub(in crate::cluster) fn place(kind: &str) -> usize {
    let known = TABLE.iter().skip(KINDS).position(|fields| fields.kind == kind);
    known.map_or(WHOLE, |at| KINDS + at)
}

/// Evaluates an expression with the place of a kind in [`TABLE`] as a constant.
macro_rules! for_kind {
    ($kind:expr, $fields:ident => $evaluated:expr) => {
        for_kind!(@ $kind, $fields, $evaluated, 5, 6, 7, 8, 9, 10, 11, 12, 13)
    };
    (@ $kind:expr, $fields:ident, $evaluated:expr, $($at:literal),*) => {
        match crate::cluster::bounded_deserialize::place($kind) {
            $($at => {
                const $fields: usize = $at;
                $evaluated
            })*
            _ => {
                const $fields: usize = crate::cluster::bounded_deserialize::WHOLE;
                $evaluated
            }
        }
    };
}
pub(in crate::cluster) use for_kind;
