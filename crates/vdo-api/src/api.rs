// SPDX-License-Identifier: Apache-2.0
//! The API group `vdo.vmware.com`: its custom resources and the names of its annotations, labels, finalizer and Secret `vdo-state`.

mod compatibility;
mod condition;
mod conflict_rule;
mod connection;
mod error_message;
mod failure;
mod file_volumes;
mod maintenance_window;
mod patch;
mod reason;
mod storage_class;
mod storage_tuning;
mod values_from;
mod vdoconfig;
mod vdoconfig_status;
mod volume_snapshot_class;

use crate::types::ObjectId;
use kube::ResourceExt as _;

pub use compatibility::{CompatibilityConfig, CompatibilityConfigSpec};
pub use condition::{ConditionType, Conditions};
pub use conflict_rule::{ConflictPolicy, ConflictRule};
pub use connection::{
    AboutStatus, CaBundle, CertificateStatus, ConnectionType, CredentialStatus, MachineStatus, MachinesStatus, PrivilegesStatus,
    ProbeStatus, RegisteredVolumesStatus, TagCategoryStatus, VsphereCloudConfig, VsphereCloudConfigSpec, VsphereCloudConfigStatus,
};
pub use error_message::{causes, chain};
pub use failure::{Class, Classify};
pub use file_volumes::{FileVolumes, NetPermission, Permission, VsanClusters};
pub use maintenance_window::MaintenanceWindow;
pub use patch::{JsonOperation, JsonOperationKind, Patch, PatchTarget};
pub use reason::Reason;
pub use storage_class::{BindingMode, DefaultClassMode, DefaultStorageClass, FsType, ReclaimPolicy, StorageClass};
pub use storage_tuning::StorageTuning;
pub use values_from::{ValuesFrom, ValuesKind};
pub use vdoconfig::{
    Approval, CloudProvider, DeletionPolicy, Driver, Images, IpFamily, ManagementState, NodeNetwork, NodeNetworks, RollbackPolicy,
    Snapshots, StorageProvider, Topology, UpdatePolicy, VDOConfig, VDOConfigSpec,
};
pub use vdoconfig_status::{
    ApartNode, DriftStatus, DriverStatus, Health, InventoryStatus, KubernetesStatus, MatrixStatus, NextAttempt, NodesStatus, PlanStatus,
    VDOConfigStatus, VcenterStatus, WaitingNode,
};
pub use volume_snapshot_class::{DefaultVolumeSnapshotClass, SnapshotDeletionPolicy};

/// The API group of every custom resource.
pub const GROUP: &str = "vdo.vmware.com";

/// The API version of our objects.
pub const API_VERSION: &str = "vdo.vmware.com/v1alpha1";

/// The namespace the operator runs in unless it is given another.
pub const OPERATOR_NAMESPACE: &str = "vmware-system-vdo";

/// The finalizer by which a VDOConfig waits for its drivers to be removed.
pub const FINALIZER: &str = "vdo.vmware.com/drivers";

/// Change its value on a VDOConfig to have it reconciled at once, or on a VsphereCloudConfig to have its vCenter asked at once.
pub const RECONCILE_AT: &str = "vdo.vmware.com/reconcile-at";

/// Set it on a VDOConfig to the hash of a plan to approve that plan.
pub const APPROVE: &str = "vdo.vmware.com/approve";

/// Change its value on a VDOConfig to have a change tried again that failed and was rolled back.
pub const RETRY_AT: &str = "vdo.vmware.com/retry-at";

/// Set it on a VDOConfig to the cluster id under which volumes are registered that are of this cluster, although no PersistentVolume here
/// stands for them.
pub const TAKE_OVER_CLUSTER_ID: &str = "vdo.vmware.com/take-over-cluster-id";

/// Set it on a VDOConfig to the settings, with blanks between, that drivers of another tool may lose when the operator takes them over.
pub const ACCEPTED_LOSSES: &str = "vdo.vmware.com/accepted-losses";

/// The settings in the value of [`ACCEPTED_LOSSES`].
pub fn accepted_losses(annotation: Option<&str>) -> impl Iterator<Item = &str> {
    annotation.unwrap_or_default().split_whitespace()
}

/// Set it on a VDOConfig to the version of a matrix that is to be used although a higher one was used before.
pub const ACCEPT_MATRIX_VERSION: &str = "vdo.vmware.com/accept-matrix-version";

/// Before the name of a driver: set it on a VDOConfig to the revision that this driver is kept at.
pub const REVISION_PREFIX: &str = "revision.vdo.vmware.com/";

/// On a VDOConfig that `vdoctl upgrade apply` upgrades: the versions that it pins drivers to meanwhile, as `name=version`, with commas.
pub const UPGRADE_PINS: &str = "vdo.vmware.com/upgrade-pins";

/// Set it on a Secret with credentials to the servers that it may be sent to.
pub const SERVERS: &str = "vdo.vmware.com/servers";

/// On owned objects: the driver they belong to.
pub const DRIVER_LABEL: &str = "vdo.vmware.com/driver";

/// On owned objects: who manages them. The value is [`MANAGED_BY`].
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";

/// The value of [`MANAGED_BY_LABEL`].
pub const MANAGED_BY: &str = "vdo";

/// On owned objects: the apply set they are part of (KEP-3659).
pub const PART_OF_LABEL: &str = "applyset.kubernetes.io/part-of";

/// On owned objects: the digest of what was applied. A render with another digest is applied, one with this digest is not.
pub const APPLIED_ANNOTATION: &str = "vdo.vmware.com/applied";

/// The type of the Secret in which the operator keeps its state, as Helm keeps its releases in a type of its own.
pub const STATE_TYPE: &str = "vdo.vmware.com/state";

/// The name of that Secret. There is one in a namespace, because one VDOConfig acts; so the operator's right to write is a right to this name.
pub const STATE: &str = "vdo-state";

/// On the Secret with the state: the UID of the namespace kube-system of the cluster that the state is about.
pub const CLUSTER_ANNOTATION: &str = "vdo.vmware.com/cluster";

/// On ConfigMaps that hold a matrix: the name of the Secret that lists the files of it.
pub const MATRIX_LABEL: &str = "vdo.vmware.com/matrix";

/// On a ConfigMap that names a Secret: a checksum of that Secret.
pub const CREDENTIALS_ANNOTATION: &str = "vdo.vmware.com/credentials-checksum";

/// On an object that another tool made before the operator managed it: the tool. Such an object stays when it is not desired any more.
pub const ADOPTED_FROM_ANNOTATION: &str = "vdo.vmware.com/adopted-from";

/// On a role that others wrote: the rules that `vdoctl` or its commands added for the drivers, as a JSON list.
pub const ADDED_RULES_ANNOTATION: &str = "vdo.vmware.com/added-rules";

/// On an object that the operator made and that stays after an uninstallation. Adopted again, it is the operator's and not of another tool.
pub const RELEASED_ANNOTATION: &str = "vdo.vmware.com/released";

/// On the Secret with the configuration of a storage driver: the settings in it that volumes depend on, as JSON.
pub const VOLUME_SETTINGS_ANNOTATION: &str = "vdo.vmware.com/volume-settings";

/// On workloads: a checksum of the ConfigMaps and Secrets with which their pods began. On pod templates: the checksum of now, once
/// it is another, so that a changed configuration rolls the pods that consume it and no others.
pub const CONFIG_CHECKSUM_ANNOTATION: &str = "vdo.vmware.com/config-checksum";

impl VDOConfig {
    /// The id of this object.
    #[must_use]
    pub fn id(&self) -> ObjectId {
        ObjectId::new(GROUP, "VDOConfig", self.namespace().unwrap_or_default(), self.name_any())
    }
}
