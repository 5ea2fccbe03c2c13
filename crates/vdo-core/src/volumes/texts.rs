//! What the driver, its sidecars and Kubernetes write when something fails, by the words of their code.
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
    (&["authorization service filtered out all"], Cause::PermissionDenied),
    // pkg/csi/service/common/vsphereutil.go, CreateBlockVolumeUtil.
    (&["specified in the storage class is not found"], Cause::DatastoreNotFound),
    (&["is not accessible to all nodes"], Cause::DatastoreNotShared),
    (&["not accessible to all nodes"], Cause::DatastoreNotShared),
    // pkg/common/cns-lib/vsphere: ErrNoSharedDSFound, ErrNoSharedDatastoresFound.
    (&["no shared datastores found"], Cause::DatastoreNotShared),
    // pkg/csi/service/vanilla/controller.go, createFileVolume.
    (&["vsan file service may be disabled"], Cause::FileServiceMissing),
    (&["fileshare volume creation is not supported"], Cause::FileServiceMissing),
    (&["vsanfileservicedisabled"], Cause::FileServiceMissing),
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
    // external-provisioner pkg/controller/controller.go, getVolumeContentSource.
    (&["error getting snapshot"], Cause::SourceUnusable),
    (&["is not ready"], Cause::SourceUnusable),
    (&["not bound", "snapshot"], Cause::SourceUnusable),
    (&["claim in datasource not bound"], Cause::SourceUnusable),
    (&["must have a status of bound"], Cause::SourceUnusable),
    (&["is less than the size", "source snapshot"], Cause::SourceUnusable),
    (&["snapshot size mismatch"], Cause::SourceUnusable),
    (&["error getting handle for datasource"], Cause::SourceUnusable),
    // govmomi vim25/types: NoDiskSpace, InsufficientStorageSpace, and their texts in vSphere.
    (&["nodiskspace"], Cause::DatastoreFull),
    (&["insufficientstoragespace"], Cause::DatastoreFull),
    (&["insufficient disk space"], Cause::DatastoreFull),
    (&["not enough", "space"], Cause::DatastoreFull),
    // pkg/common/fault/constants.go: VimFaultInvalidHostState, VimFaultHostNotConnected.
    (&["invalidhoststate"], Cause::DatastoreUnavailable),
    (&["hostnotconnected"], Cause::DatastoreUnavailable),
    (&["maintenance mode"], Cause::DatastoreUnavailable),
    (&["inaccessibledatastore"], Cause::DatastoreUnavailable),
    // govmomi: InvalidLogin, NoPermission, NotAuthenticated.
    (&["invalidlogin"], Cause::LoginRefused),
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
    (&["vmnotfound"], Cause::VmNotFound),
    (&["volumeid", "not found in queryvolume"], Cause::VolumeNotFound),
    (&["cns query volume", "did not return the volume"], Cause::VolumeNotFound),
    (&["not found. cannot expand volume"], Cause::VolumeNotFound),
    // pkg/csi/service/osutils/linux_os_utils.go: the disk of the publish context is not below /dev/disk/by-id.
    (&["disk:", "not attached to node"], Cause::DiskUuidOff),
    // govmomi vim25/types: TooManyDevices, InvalidPowerState, TaskInProgress of snapshots.
    (&["toomanydevices"], Cause::TooManyDisks),
    (&["maximum number of device"], Cause::TooManyDisks),
    (&["no free", "controller"], Cause::TooManyDisks),
    (&["node(s) exceed max volume count"], Cause::TooManyDisks),
    (&["invalidpowerstate"], Cause::VmPoweredOff),
    (&["(powered off)"], Cause::VmPoweredOff),
    (&["virtual machine", "has a snapshot"], Cause::VmHasSnapshot),
    (&["vm has snapshot"], Cause::VmHasSnapshot),
    (&["snapshots of the virtual machine"], Cause::VmHasSnapshot),
    // Kubernetes pkg/volume/util/operationexecutor: GenerateError of Multi-Attach; CNS: the disk is in use.
    (&["multi-attach error"], Cause::AttachedElsewhere),
    (&["csi.fault.nonstorage.disknotdetached"], Cause::AttachedElsewhere),
    (&["resourceinuse"], Cause::AttachedElsewhere),
    // external-snapshotter pkg/common-controller: SnapshotClass.
    (&["failed to get snapshot class"], Cause::SnapshotClassMissing),
    (&["cannot find default snapshot class"], Cause::SnapshotClassMissing),
    // Kubernetes plugin/pkg/admission/resourcequota.
    (&["exceeded quota"], Cause::QuotaReached),
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

/// A text of others on one line, and no longer than a person reads: of a fault that was printed in full, the beginning.
#[must_use]
pub fn quoted(text: &str) -> String {
    const MOST: usize = 300;
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts as the code writes them, filled in.
    #[test]
    fn texts_of_the_drivers_lead_to_their_causes() {
        use Stage::{Attach, Detach, Provision, Reclaim, Resize, Snapshot};
        let failed =
            |desc: &str| format!("failed to provision volume with StorageClass \"fast\": rpc error: code = Internal desc = {desc}");
        for (stage, text, expected) in [
            (Provision, failed("failed to create volume. Error: no pbm profile found with name: \"gold\""), Cause::PolicyNotFound),
            (Provision, failed("Storage policy name \"gold\" not found in VC \"vc.example.com\""), Cause::PolicyNotFound),
            (
                Provision,
                failed("none of compatible datastores for given storage policy ID \"aa\", is in the list of shared datastore accessible to all nodes"),
                Cause::NoCompatibleDatastore,
            ),
            (
                Provision,
                failed("No compatible datastores found for accessibility requirements [map[zone:a]] pertaining to vCenter \"vc\""),
                Cause::TopologyUnsatisfied,
            ),
            (Provision, failed("DatastoreURL: ds:///x/ specified in the storage class is not found."), Cause::DatastoreNotFound),
            (
                Provision,
                failed("Datastore: ds:///x/ specified in the storage class is not accessible to all nodes."),
                Cause::DatastoreNotShared,
            ),
            (Provision, failed("no shared datastores found among given NodeVMs"), Cause::DatastoreNotShared),
            (Provision, failed("failed to create volume with fault: \"(*types.LocalizedMethodFault)({ Fault: (types.NoDiskSpace)"), Cause::DatastoreFull),
            (Provision, failed("fault type \"vim.fault.InvalidHostState\""), Cause::DatastoreUnavailable),
            (
                Provision,
                failed("no datastores found to create file volume, vSAN file service may be disabled"),
                Cause::FileServiceMissing,
            ),
            (Provision, failed("VC \"vc\" does not support snapshot operations"), Cause::FeatureOff),
            (Provision, "error generating accessibility requirements: no topology key found on CSINode w-1".into(), Cause::NoNodeRegistered),
            (Provision, "error getting handle for DataSource Type VolumeSnapshot by Name s: snapshot s is not Ready".into(), Cause::SourceUnusable),
            (Provision, failed("ServerFaultCode: Cannot complete login due to an incorrect user name or password."), Cause::LoginRefused),
            (Provision, failed("ServerFaultCode: Permission to perform this operation was denied."), Cause::PermissionDenied),
            (Provision, failed("ServerFaultCode: The session is not authenticated."), Cause::SessionEnded),
            (Provision, failed("Post \"https://vc/sdk\": dial tcp 10.0.0.1:443: connect: connection refused"), Cause::VcenterUnreachable),
            (Provision, "rpc error: code = DeadlineExceeded desc = context deadline exceeded".into(), Cause::TimedOut),
            (Provision, "rpc error: code = ResourceExhausted desc = x".into(), Cause::ResourceExhausted),
            (Provision, "rpc error: code = InvalidArgument desc = Invalid parameter".into(), Cause::InvalidRequest),
            (Provision, failed("x"), Cause::ProvisioningFailed),
            (Attach, "rpc error: code = Internal desc = failed to find VirtualMachine for node:\"4237\". Error: node wasn't found".into(), Cause::VmNotFound),
            (Attach, "volumeID 4e1c not found in QueryVolume".into(), Cause::VolumeNotFound),
            (Attach, "rpc error: code = NotFound desc = disk: 6000c29 not attached to node".into(), Cause::DiskUuidOff),
            (Attach, "failed to attach cns volume: \"a\" to node vm: \"b\". fault: (types.TooManyDevices)".into(), Cause::TooManyDisks),
            (
                Attach,
                "The attempted operation cannot be performed in the current state (Powered off).".into(),
                Cause::VmPoweredOff,
            ),
            (Attach, "the virtual machine w-1 has a snapshot".into(), Cause::VmHasSnapshot),
            (
                Attach,
                "Multi-Attach error for volume \"pvc-1\" Volume is already exclusively attached to one node and can't be attached to another".into(),
                Cause::AttachedElsewhere,
            ),
            (Attach, "x".into(), Cause::AttachFailed),
            (Detach, "x".into(), Cause::DetachFailed),
            (
                Resize,
                "volume: a with existing snapshots [b] cannot be expanded. Please delete snapshots before expanding the volume".into(),
                Cause::ResizeBlockedBySnapshot,
            ),
            (Resize, "x".into(), Cause::ResizeFailed),
            (
                Snapshot,
                "the number of snapshots on the source volume a reaches the configured maximum (3)".into(),
                Cause::SnapshotLimit,
            ),
            (Snapshot, "failed to get snapshot class daily".into(), Cause::SnapshotClassMissing),
            (Snapshot, "x".into(), Cause::SnapshotFailed),
            (Reclaim, "x".into(), Cause::ReclaimFailed),
            (Provision, "exceeded quota: small, requested: persistentvolumeclaims=1".into(), Cause::QuotaReached),
        ] {
            assert_eq!(classify(stage, &text), expected, "{text}");
        }
    }

    #[test]
    fn text_of_others_is_one_short_line() {
        assert_eq!(quoted("a\n\tb  c"), "a b c");
        assert_eq!(quoted(&"ä".repeat(400)).chars().count(), 301);
    }
}
