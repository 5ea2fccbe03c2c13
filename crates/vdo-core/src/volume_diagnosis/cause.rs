// SPDX-License-Identifier: Apache-2.0
//! The table of causes: each with its meaning, its remedy and its command. docs/volumes.md shows this table.

use strum::{Display, EnumIter};

/// Why a volume does not work, or will not work.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumIter, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[allow(missing_docs, reason = "ABOUT says what each of them is")]
pub enum Cause {
    NoDefaultClass,
    ClassNotFound,
    SeveralDefaultClasses,
    NoVolumeFits,
    UnknownProvisioner,
    DriverNotInstalled,
    NoNodeRegistered,
    WaitsForPod,
    PodNotPlaced,
    TopologyUnsatisfied,
    PolicyNotFound,
    NoCompatibleDatastore,
    DatastoreNotFound,
    DatastoreNotShared,
    DatastoreFull,
    DatastoreUnavailable,
    FileServiceMissing,
    FeatureOff,
    QuotaReached,
    LoginRefused,
    PermissionDenied,
    SessionEnded,
    VcenterUnreachable,
    TimedOut,
    ResourceExhausted,
    SourceUnusable,
    InvalidRequest,
    ProvisioningFailed,
    ProvisionerSilent,
    ClaimLost,
    VmNotFound,
    DiskUuidOff,
    TooManyDisks,
    VmPoweredOff,
    VmHasSnapshot,
    VolumeNotFound,
    AttachedElsewhere,
    AttachFailed,
    DetachFailed,
    NodeGone,
    NodeNotRegistered,
    ResizeWaitsForPod,
    ResizeBlockedBySnapshot,
    ResizeFailed,
    SnapshotLimit,
    SnapshotClassMissing,
    SnapshotControllerSilent,
    SnapshotFailed,
    FinalizerLeft,
    VolumeReleased,
    ReclaimFailed,
    BuiltInVolume,
    BuiltInNotServed,
    NotInVcenter,
    NotInCluster,
}

/// What a cause means.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// The cause.
    pub cause: Cause,
    /// Whether something has to be done; the others are shown and are not a fault.
    pub is_fault: bool,
    /// What it is.
    pub what: &'static str,
    /// What to do.
    pub remedy: &'static str,
    /// The command to paste; `NAMESPACE`, `NAME`, `CLASS`, `NODE` and `VOLUME` are filled in. May be empty.
    pub command: &'static str,
}

const fn fault(cause: Cause, what: &'static str, remedy: &'static str, command: &'static str) -> About {
    About {
        cause,
        is_fault: true,
        what,
        remedy,
        command,
    }
}

const fn note(cause: Cause, what: &'static str, remedy: &'static str, command: &'static str) -> About {
    About {
        is_fault: false,
        ..fault(cause, what, remedy, command)
    }
}

/// The events of a claim.
const DESCRIBE_CLAIM: &str = "kubectl describe persistentvolumeclaim NAME --namespace NAMESPACE";
const DESCRIBE_CLASS: &str = "kubectl get storageclass CLASS --output yaml";
const DESCRIBE_ATTACHMENT: &str = "kubectl describe volumeattachment NAME";
const DESCRIBE_SNAPSHOT: &str = "kubectl describe volumesnapshot NAME --namespace NAMESPACE";
const DOCTOR: &str = "vdoctl doctor";
const STATUS: &str = "vdoctl status";

/// Every cause, in the order in which they are shown.
#[rustfmt::skip]
pub const ABOUT: [About; 55] = [
    fault(Cause::NoDefaultClass, "the claim names no StorageClass, and no class is the default",
        "Let the operator create a default class, or mark one of your classes as the default with the annotation storageclass.kubernetes.io/is-default-class.",
        "vdoctl configure drivers --set storageProvider.defaultStorageClass.mode=Auto"),
    fault(Cause::ClassNotFound, "the StorageClass that the claim names does not exist",
        "Create the class. Or delete the claim and create a new claim with another class, because the class of a claim cannot be changed.", "kubectl get storageclass"),
    fault(Cause::SeveralDefaultClasses, "more than one StorageClass is the default; claims without a class get the newest of them",
        "Keep one default class, and set the annotation storageclass.kubernetes.io/is-default-class of the other classes to false.", "kubectl annotate storageclass NAME storageclass.kubernetes.io/is-default-class=false --overwrite"),
    note(Cause::NoVolumeFits, "the claim requests an existing volume (its storageClassName is empty), and no volume is bound to the claim",
        "Create a PersistentVolume that fits, or recreate the claim without the field storageClassName, so that it uses the default StorageClass.", DESCRIBE_CLAIM),
    note(Cause::UnknownProvisioner, "the StorageClass names a provisioner, but no CSI driver of this cluster has this name",
        "Install the driver, or create a class with the right provisioner. Ignore this note if the provisioner is not a CSI driver.", "kubectl get csidriver"),
    fault(Cause::DriverNotInstalled, "the cluster has no CSIDriver object csi.vsphere.vmware.com",
        "Install the CSI driver, or find out why it is not installed.", STATUS),
    fault(Cause::NoNodeRegistered, "the CSI driver is not registered on any node",
        "Find out why the node plugin does not run.", STATUS),
    note(Cause::WaitsForPod, "the volume is created when a pod that uses the claim is scheduled (WaitForFirstConsumer), and no pod uses the claim",
        "Create the pod. Nothing is wrong with the claim.", ""),
    fault(Cause::PodNotPlaced, "the volume waits for its pod, and the scheduler finds no node for the pod",
        "Free resources on a node, or change the requests of the pod.", "kubectl describe pod NAME --namespace NAMESPACE"),
    fault(Cause::TopologyUnsatisfied, "no node satisfies the topology that the volume requests, or the hosts of a requested zone have no datastore in common",
        "Compare allowedTopologies of the class, and the zones of the nodes, with the tags and datastores in vSphere.", "vdoctl doctor topology"),
    fault(Cause::PolicyNotFound, "the storage policy that the class names does not exist in the vCenter",
        "Create the policy in vSphere, or create a class that names an existing policy; names are case-sensitive.", DESCRIBE_CLASS),
    fault(Cause::NoCompatibleDatastore, "no datastore that all nodes reach is compatible with the storage policy",
        "Make a datastore that all nodes reach compatible with the policy, or use a class with another policy.", DESCRIBE_CLASS),
    fault(Cause::DatastoreNotFound, "the datastore in the parameter datastoreurl of the class does not exist in the datacenters of the connection",
        "Create a class with the right datastoreurl, or add the datacenter to the connection.", DESCRIBE_CLASS),
    fault(Cause::DatastoreNotShared, "some hosts of the nodes cannot reach the datastore, or no datastore has the URL in the parameter datastoreurl of the class",
        "Compare datastoreurl of the class with the datastore's URL in vSphere. Mount the datastore on every host of the nodes, or configure topology.",
        DESCRIBE_CLASS),
    fault(Cause::DatastoreFull, "the datastore does not have enough free space",
        "Free or add space in vSphere, or use a class with another datastore; the driver retries automatically.", DOCTOR),
    fault(Cause::DatastoreUnavailable, "the datastore or its host is in maintenance mode, suspended or disconnected",
        "End the maintenance mode in vSphere; the driver retries automatically.", DOCTOR),
    fault(Cause::FileServiceMissing, "the volume is shared by pods of several nodes (ReadWriteMany), and no vSAN cluster of the vCenter has the file service enabled",
        "Enable the vSAN file service in vSphere, or use ReadWriteOnce.", DOCTOR),
    fault(Cause::FeatureOff, "the volume needs a feature of the driver, and this feature is switched off or not supported",
        "Switch the feature on in spec.storageProvider.features or values.featureStates. Or remove the setting of the feature: then the default of the driver version applies.", "kubectl get vdoconfig --all-namespaces --output yaml"),
    note(Cause::QuotaReached, "a ResourceQuota of the namespace has no room for further claims",
        "Raise the quota, or delete claims that are not needed.", "kubectl describe resourcequota --namespace NAMESPACE"),
    fault(Cause::LoginRefused, "the vCenter refuses the driver's user or password",
        "Set the right password.", "vdoctl secrets set"),
    fault(Cause::PermissionDenied, "the driver's account lacks a privilege in vSphere",
        "Give the account the missing privilege.", "vdoctl doctor privileges"),
    fault(Cause::SessionEnded, "the vCenter has ended the driver's session",
        "The driver logs in again automatically. If the login fails repeatedly, check the account and the clock of the vCenter.", DOCTOR),
    fault(Cause::VcenterUnreachable, "the driver cannot reach the vCenter",
        "On the nodes of the driver's controller, check the network, the name resolution and the certificate of the vCenter.", DOCTOR),
    fault(Cause::TimedOut, "the vCenter did not finish the task in time",
        "Check the recent tasks in the vCenter. The driver retries automatically.", DESCRIBE_CLAIM),
    fault(Cause::ResourceExhausted, "the driver reports that a resource is exhausted",
        "Free the resource that the driver names. If topology is configured, Kubernetes may then choose another node.", DESCRIBE_CLAIM),
    fault(Cause::SourceUnusable, "the source of the volume's data (a snapshot or a claim) does not exist, is not ready or is larger than the volume",
        "Wait until the source is ready, or create a new claim with the right dataSource and size.", DESCRIBE_CLAIM),
    fault(Cause::InvalidRequest, "the driver rejects a setting of the claim or of its class",
        "Create a new class with correct parameters, or correct the claim.", DESCRIBE_CLASS),
    fault(Cause::ProvisioningFailed, "the driver could not create the volume",
        "Read the message and the log of the driver.", DESCRIBE_CLAIM),
    fault(Cause::ProvisionerSilent, "the claim waits for a volume, and the driver has not reported anything about the claim",
        "Check whether the controller of the CSI driver runs.", STATUS),
    fault(Cause::ClaimLost, "the PersistentVolume of the claim was deleted",
        "To keep the data, create a new PersistentVolume with the same volume handle. If you do not need the data, delete the claim.", DESCRIBE_CLAIM),
    fault(Cause::VmNotFound, "the vCenter has no virtual machine for the node",
        "Compare the UUID of the machine with the provider ID of the node.", "vdoctl doctor nodes"),
    fault(Cause::DiskUuidOff, "the disk is attached, but the node does not see it; disk.EnableUUID of the machine is probably not TRUE",
        "Set disk.EnableUUID while the machine is powered off.", "vdoctl doctor nodes"),
    fault(Cause::TooManyDisks, "the machine of the node has no free slot for a disk",
        "Move pods with volumes to other nodes, or give the machine further paravirtual SCSI controllers.", "vdoctl doctor nodes"),
    fault(Cause::VmPoweredOff, "the machine of the node is not powered on",
        "Power on the machine, or delete the node.", "kubectl get node NODE"),
    fault(Cause::VmHasSnapshot, "the machine of the node has a snapshot in vSphere, so its disks cannot be changed",
        "Delete the snapshots of the machine in vSphere.", "vdoctl doctor nodes"),
    fault(Cause::VolumeNotFound, "the volume does not exist in the vCenter any more",
        "Check whether the disk of the volume was deleted or moved in vSphere; restore a deleted disk from a backup.", "kubectl get persistentvolume VOLUME --output yaml"),
    fault(Cause::AttachedElsewhere, "the volume is still attached to another node",
        "The volume is detached when the pod that uses it on that node has ended. If that node is down and will not return, set the taint node.kubernetes.io/out-of-service on the node.", "kubectl get volumeattachment"),
    fault(Cause::AttachFailed, "the driver could not attach the volume",
        "Read the message of the driver.", DESCRIBE_ATTACHMENT),
    fault(Cause::DetachFailed, "the driver could not detach the volume",
        "Read the message of the driver.", DESCRIBE_ATTACHMENT),
    fault(Cause::NodeGone, "the volume is attached to a node that does not exist any more",
        "Check in vSphere that the machine no longer exists or no longer has the disk. Kubernetes detaches the volume after six minutes. If the VolumeAttachment still exists after this time, delete it.",
        "kubectl delete volumeattachment NAME"),
    fault(Cause::NodeNotRegistered, "the volume is to be attached to a node on which the CSI driver is not registered",
        "Find out why the node plugin does not run on this node.", "kubectl get csinode NODE --output yaml"),
    note(Cause::ResizeWaitsForPod, "the disk has the new size, but its file system grows only when a pod mounts the volume",
        "Start the pod that uses the claim, or wait for the kubelet of its node.", DESCRIBE_CLAIM),
    fault(Cause::ResizeBlockedBySnapshot, "the volume cannot grow while it has snapshots",
        "Delete the snapshots of the claim.", "kubectl get volumesnapshot --namespace NAMESPACE"),
    fault(Cause::ResizeFailed, "the driver could not enlarge the volume",
        "Read the message of the driver.", DESCRIBE_CLAIM),
    fault(Cause::SnapshotLimit, "the volume has the maximum number of snapshots",
        "Delete snapshots, or raise the limit.", "vdoctl configure drivers --set storageProvider.snapshots.maxPerVolume=10"),
    fault(Cause::SnapshotClassMissing, "the VolumeSnapshotClass that the snapshot names does not exist, or the snapshot names no class and the driver has no default class",
        "Let the operator create a default class, or name a VolumeSnapshotClass of the driver csi.vsphere.vmware.com in the snapshot.",
        "vdoctl configure drivers --set storageProvider.defaultVolumeSnapshotClass.mode=Auto"),
    fault(Cause::SnapshotControllerSilent, "no snapshot controller has processed the snapshot",
        "Install a snapshot controller: the message of the condition SnapshotsSupported contains the command.", STATUS),
    fault(Cause::SnapshotFailed, "the snapshot could not be taken",
        "Read the message of the driver.", DESCRIBE_SNAPSHOT),
    fault(Cause::FinalizerLeft, "the object is being deleted, and a finalizer blocks the deletion",
        "Find out why the component that the finalizer names has not removed the finalizer yet.", "kubectl get KIND NAME --output yaml"),
    note(Cause::VolumeReleased, "the claim of the volume was deleted, and the volume was kept (reclaim policy Retain)",
        "If you do not need the data, delete the PersistentVolume; its disk stays in vSphere. To use the PersistentVolume again, remove its field spec.claimRef.", "kubectl get persistentvolume NAME --output yaml"),
    fault(Cause::ReclaimFailed, "the volume could not be deleted after the deletion of its claim",
        "Read the message of the driver.", "kubectl describe persistentvolume NAME"),
    note(Cause::BuiltInVolume, "the volume belongs to the vSphere driver that was built into Kubernetes, and the CSI driver serves it by CSI migration",
        "No action is needed. Do not switch off the feature csi-migration.", ""),
    fault(Cause::BuiltInNotServed, "the volume belongs to the vSphere driver that was built into Kubernetes, and is not migrated to the CSI driver",
        "Switch the feature csi-migration on. Kubelets older than 1.26 also need their feature gate CSIMigrationvSphere.", "vdoctl configure drivers --set storageProvider.features.csi-migration=true"),
    fault(Cause::NotInVcenter, "the PersistentVolume exists, but the vCenter has no volume with its handle",
        "Check whether the disk of the volume was deleted or moved in vSphere, or whether the volume belongs to another vCenter.", "kubectl get persistentvolume NAME --output yaml"),
    note(Cause::NotInCluster, "the vCenter has registered a volume for this cluster, but the cluster has no PersistentVolume for this volume",
        "Check in the vCenter, under Container Volumes, whether the data of the volume is needed. Either the cluster was restored from a backup, or the driver's syncer did not run when the PersistentVolume was deleted.", ""),
];

impl Cause {
    /// Whether it depends on zones, and on the datastores of their hosts.
    pub(super) fn is_of_places(self) -> bool {
        matches!(self, Self::TopologyUnsatisfied | Self::DatastoreNotShared)
    }

    /// What it means; every cause has a row.
    #[must_use]
    pub fn about(self) -> &'static About {
        ABOUT.iter().find(|about| about.cause == self).unwrap_or(&ABOUT[27])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::IntoEnumIterator as _;

    #[test]
    fn cause_table_has_one_row_for_each_in_their_order() {
        let listed: Vec<Cause> = ABOUT.iter().map(|about| about.cause).collect();
        assert_eq!(listed, Cause::iter().collect::<Vec<_>>());
        assert_eq!(ABOUT[27].cause, Cause::ProvisioningFailed);
        for about in &ABOUT {
            assert!(about.remedy.ends_with('.') && !about.what.ends_with('.'), "{about:?}");
        }
    }
}
