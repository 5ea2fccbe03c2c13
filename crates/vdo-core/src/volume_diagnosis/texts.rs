// SPDX-License-Identifier: Apache-2.0
//! Maps error messages of the CSI driver, its sidecars and Kubernetes to causes, by the words that their code writes.
//!
//! A driver's error is one text in an event or a status. The words are those of vsphere-csi-driver 3.7.0, external-provisioner 5.3.0,
//! govmomi 0.53 (names of faults, which the driver prints with `spew`) and Kubernetes 1.34; a row names its file.

use super::cause::Cause;

/// What was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// A volume was made.
    Provision,
    /// It was attached, or mounted.
    Attach,
    /// It was detached.
    Detach,
    /// It was made larger.
    Resize,
    /// A snapshot was taken.
    Snapshot,
    /// It was deleted.
    Reclaim,
}

/// Words that come together, in small letters, and what they mean. The first row counts.
pub const WORDS: &[(&[&str], Cause)] = &[
    // pkg/csi/service/vanilla/controller.go, CreateSnapshot.
    (
        &["number of snapshots on the source volume", "reaches the configured maximum"],
        Cause::SnapshotLimit,
    ),
    // pkg/csi/service/vanilla/controller.go, ControllerExpandVolume.
    (&["with existing snapshots", "cannot be expanded"], Cause::ResizeBlockedBySnapshot),
    // govmomi pbm/client.go, ProfileIDByName; pkg/csi/service/vanilla/controller.go with several vCenters.
    (&["no pbm profile found with name"], Cause::PolicyNotFound),
    (&["storage policy name", "not found in vc"], Cause::PolicyNotFound),
    // pkg/csi/service/common/vsphereutil.go, isDataStoreCompatible.
    (
        &["none of compatible datastores for given storage policy"],
        Cause::NoCompatibleDatastore,
    ),
    // pkg/csi/service/vanilla/controller.go, createBlockVolumeWithPlacementEngineForMultiVC.
    (
        &["no compatible datastores found for accessibility requirements"],
        Cause::TopologyUnsatisfied,
    ),
    (&["no compatible datastores found for storage policy"], Cause::NoCompatibleDatastore),
    (&["authorization service filtered out all"], Cause::PermissionDenied),
    (&["auth service", "for block volume provisioning"], Cause::PermissionDenied),
    (&["failed to get datastore object", "for datastoreurl"], Cause::DatastoreNotFound),
    // pkg/csi/service/common/vsphereutil.go, CreateBlockVolumeUtil.
    (&["specified in the storage class is not found"], Cause::DatastoreNotFound),
    // CreateBlockVolumeUtilForMultiVC reports the same of a URL that no datastore has.
    (&["not accessible to all nodes"], Cause::DatastoreNotShared),
    (&["failed to get the compatible shared datastore"], Cause::DatastoreNotShared),
    // pkg/common/cns-lib/vsphere: ErrNoSharedDSFound, ErrNoSharedDatastoresFound.
    (&["no shared datastores found"], Cause::DatastoreNotShared),
    // pkg/csi/service/vanilla/controller.go, createFileVolume.
    (&["vsan file service may be disabled"], Cause::FileServiceMissing),
    (&["fileshare volume creation is not supported"], Cause::FileServiceMissing),
    // pkg/csi/service/vanilla/controller.go: feature states.
    (&["feature switch is disabled"], Cause::FeatureOff),
    (&["volume topology feature for file volumes is not supported"], Cause::FeatureOff),
    (&["does not support snapshot operations"], Cause::FeatureOff),
    // external-provisioner pkg/controller/topology.go, GenerateAccessibilityRequirements.
    (&["no topology key found on csinode"], Cause::NoNodeRegistered),
    (&["no available topology found"], Cause::NoNodeRegistered),
    (&["is not in allowed topologies"], Cause::TopologyUnsatisfied),
    (
        &["topology labels from selected node", "does not match"],
        Cause::TopologyUnsatisfied,
    ),
    (&["were not found on any nodes"], Cause::TopologyUnsatisfied),
    (&["is not in requisite"], Cause::TopologyUnsatisfied),
    // external-provisioner pkg/controller/controller.go, around getVolumeContentSource: it begins every failure with these.
    (&["error getting handle for datasource"], Cause::SourceUnusable),
    // pkg/csi/service/vanilla/controller.go, createBlockVolume.
    (&["snapshot size mismatch"], Cause::SourceUnusable),
    // govmomi vim25/types: NoDiskSpace, InsufficientStorageSpace, and their texts in vSphere.
    (&["nodiskspace"], Cause::DatastoreFull),
    (&["insufficientstoragespace"], Cause::DatastoreFull),
    (&["insufficient disk space"], Cause::DatastoreFull),
    (&["not enough", "space"], Cause::DatastoreFull),
    // pkg/common/fault/constants.go: VimFaultInvalidHostState, VimFaultHostNotConnected.
    (&["invalidhoststate"], Cause::DatastoreUnavailable),
    (&["hostnotconnected"], Cause::DatastoreUnavailable),
    (&["inaccessibledatastore"], Cause::DatastoreUnavailable),
    // vSphere: InvalidLogin, NoPermission, NotAuthenticated, by their texts and, where the driver prints a fault, by their names.
    (&["incorrect user name or password"], Cause::LoginRefused),
    (&["nopermission"], Cause::PermissionDenied),
    (&["permission to perform this operation was denied"], Cause::PermissionDenied),
    (&["code = permissiondenied"], Cause::PermissionDenied),
    (&["notauthenticated"], Cause::SessionEnded),
    (&["session is not authenticated"], Cause::SessionEnded),
    (&["nil session obtained"], Cause::SessionEnded),
    (&["code = unauthenticated"], Cause::SessionEnded),
    // Go's net package.
    (&["no such host"], Cause::VcenterUnreachable),
    (&["connection refused"], Cause::VcenterUnreachable),
    (&["no route to host"], Cause::VcenterUnreachable),
    (&["i/o timeout"], Cause::VcenterUnreachable),
    (&["x509:"], Cause::VcenterUnreachable),
    // pkg/csi/service/vanilla/controller.go, ControllerPublishVolume.
    (&["failed to find virtualmachine for node"], Cause::VmNotFound),
    (&["node wasn't found"], Cause::VmNotFound),
    (&["virtual machine wasn't found"], Cause::VmNotFound),
    (&["volumeid", "not found in queryvolume"], Cause::VolumeNotFound),
    (&["cns query volume", "did not return the volume"], Cause::VolumeNotFound),
    (&["not found. cannot expand volume"], Cause::VolumeNotFound),
    // pkg/csi/service/osutils/linux_os_utils.go: the disk of the publish context is not below /dev/disk/by-id.
    (&["disk:", "not attached to node"], Cause::DiskUuidOff),
    // govmomi vim25/types: TooManyDevices, InvalidPowerState, TaskInProgress of snapshots.
    (&["toomanydevices"], Cause::TooManyDisks),
    (&["missing scsi controller"], Cause::TooManyDisks),
    (&["node(s) exceed max volume count"], Cause::TooManyDisks),
    (&["invalidpowerstate"], Cause::VmPoweredOff),
    (&["(powered off)"], Cause::VmPoweredOff),
    (&["virtual machine", "has a snapshot"], Cause::VmHasSnapshot),
    // Kubernetes pkg/volume/util/operationexecutor: GenerateError of Multi-Attach; CNS: the disk is in use.
    (&["multi-attach error"], Cause::AttachedElsewhere),
    (&["resourceinuse"], Cause::AttachedElsewhere),
    // external-snapshotter pkg/common-controller: SnapshotClass.
    (&["failed to get snapshot class"], Cause::SnapshotClassMissing),
    // For the rest the code of gRPC.
    (&["deadlineexceeded"], Cause::TimedOut),
    (&["context deadline exceeded"], Cause::TimedOut),
    (&["code = resourceexhausted"], Cause::ResourceExhausted),
    (&["code = invalidargument"], Cause::InvalidRequest),
    (&["code = unimplemented"], Cause::FeatureOff),
];

/// The cause that a text names. What no row knows is that the stage failed.
#[must_use]
pub fn classify(stage: Stage, text: &str) -> Cause {
    let text = text.to_lowercase();
    let known = WORDS.iter().find(|(words, _)| words.iter().all(|word| text.contains(word)));
    known.map_or_else(
        || match stage {
            Stage::Provision => Cause::ProvisioningFailed,
            Stage::Attach => Cause::AttachFailed,
            Stage::Detach => Cause::DetachFailed,
            Stage::Resize => Cause::ResizeFailed,
            Stage::Snapshot => Cause::SnapshotFailed,
            Stage::Reclaim => Cause::ReclaimFailed,
        },
        |(_, cause)| *cause,
    )
}

/// A text of others on one line, without what moves a cursor, and no longer than a person reads: of a fault that was printed in full, the beginning.
#[must_use]
pub fn quoted(text: &str) -> String {
    const MOST: usize = 300;
    let plain = text.replace(char::is_control, " ");
    let words: Vec<&str> = plain.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests;
