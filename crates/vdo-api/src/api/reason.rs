// SPDX-License-Identifier: Apache-2.0
//! The closed list of the reasons of conditions and events, each with its meaning.

use std::fmt;

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Why a condition has its status: the closed list of what users, alerts and scripts may match on.
        ///
        /// A name once published keeps its meaning. `docs/errors.md` has an entry for each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Reason {
            /// Every reason there is, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The CamelCase word as it stands in a condition.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            /// One sentence on what it means.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($doc),+).trim_start(),)+
                }
            }
        }
    };
}

reasons! {
    /// Everything is as it should be.
    Healthy,
    /// No work is in progress.
    Idle,
    /// Work is in progress and continues automatically.
    Progressing,
    /// The object is being removed.
    Deleting,
    /// Management is paused: the operator reports the state and writes nothing.
    Paused,
    /// The drivers are removed, as the specification requests.
    Removed,
    /// This driver is not requested.
    NotRequested,
    /// The state is unknown, because an earlier step failed.
    NotChecked,

    /// The specification is not valid.
    InvalidSpec,
    /// Another VDOConfig of this cluster is older and takes effect; this VDOConfig has no effect.
    NotActive,
    /// A newer operator has stored data that this operator does not know; nothing is changed.
    NewerOperator,
    /// No operator is running to update the status and to repair the drivers.
    OperatorNotRunning,
    /// There is no vSphere connection in the namespace.
    NoConnections,
    /// A vSphere connection that the specification names does not exist.
    ConnectionNotFound,
    /// A vSphere connection has not been verified yet or cannot be verified.
    ConnectionNotReady,
    /// The Secret with the credentials does not exist.
    SecretNotFound,
    /// The Secret with the credentials is in a namespace from which the operator reads no credentials.
    SecretElsewhere,
    /// The Secret with the credentials may be sent to other servers only.
    ServerNotNamed,
    /// The Secret with the credentials is not of type kubernetes.io/basic-auth.
    SecretWrongType,
    /// The Secret lacks a user name or a password, or one of them is empty or ends with a line break.
    SecretIncomplete,
    /// The ConfigMap or Secret with the certificate authorities is missing or unusable.
    CaBundleInvalid,

    /// The name of the vCenter does not resolve.
    NameNotResolved,
    /// Nothing answers at the address of the vCenter.
    Unreachable,
    /// The vCenter did not answer in time.
    TimedOut,
    /// The certificate of the vCenter is not signed by a trusted authority.
    CertificateUntrusted,
    /// The certificate of the vCenter has expired or is not valid yet.
    CertificateExpired,
    /// The certificate of the vCenter is for another name.
    CertificateNameMismatch,
    /// The certificate of the vCenter does not have the thumbprint that the connection names.
    ThumbprintMismatch,
    /// The certificate of the vCenter expires within thirty days.
    CertificateExpiresSoon,
    /// The TLS handshake failed for another reason.
    TlsFailed,
    /// The server at the address is not a vCenter.
    NotAVcenter,
    /// The vCenter answered in a way that cannot be understood.
    BadAnswer,

    /// No driver in the compatibility matrix supports this version of vCenter.
    VersionNotInMatrix,
    /// The vCenter does not accept the user name or the password.
    InvalidCredentials,
    /// The account is locked in vCenter.
    AccountLocked,
    /// The password has expired in vCenter.
    PasswordExpired,
    /// The vCenter knows the user but refuses the login, because the user has no permission there.
    LoginRefused,
    /// The vCenter accepts the login, but its service for tags refuses the same login.
    TagLoginRefused,
    /// The vCenter ended the session and did not open a new session.
    SessionLost,
    /// The user may not read the inventory of the vCenter.
    InventoryForbidden,
    /// A datacenter that the connection names does not exist, or the user cannot see it.
    DatacenterNotFound,
    /// A datacenter name in the connection matches several datacenters.
    DatacenterAmbiguous,
    /// The user sees no virtual machine of a node in the vCenter.
    NodeNotFound,
    /// Several virtual machines match one node, or one virtual machine matches several nodes.
    NodeAmbiguous,

    /// A datastore that the configuration names does not exist, or the user cannot see it.
    DatastoreNotFound,
    /// A datastore that the configuration names is not accessible from any host or is in maintenance mode.
    DatastoreUnusable,
    /// A datastore that is named for file volumes is not a vSAN datastore.
    DatastoreNotVsan,
    /// A storage policy that the configuration names does not exist, or the user cannot see it.
    StoragePolicyNotFound,
    /// No datastore is accessible from all hosts of the nodes.
    NoSharedDatastore,
    /// File volumes are configured, but no vSAN cluster has the file service.
    NoFileService,
    /// The user lacks privileges that the features in use need.
    PrivilegesMissing,

    /// The virtual machine of a node is not powered on.
    MachinePoweredOff,
    /// The hardware version of the virtual machine of a node is older than the drivers need.
    HardwareVersionTooOld,
    /// The virtual machine of a node does not expose the UUIDs of its disks to the guest.
    DiskUuidDisabled,
    /// VMware Tools are not running in the virtual machine of a node.
    ToolsNotRunning,
    /// VMware Tools report no host name of a node.
    GuestNameMissing,
    /// VMware Tools report no usable address of a node.
    GuestAddressMissing,
    /// The host name that VMware Tools report is not the name of the node.
    GuestNameDiffers,
    /// The virtual machine of a node has a snapshot.
    SnapshotsPresent,
    /// The virtual machine of a node has no paravirtual SCSI controller.
    ParavirtualScsiMissing,
    /// A node runs on an ESXi host that is older than the drivers need.
    HostVersionTooOld,
    /// A node runs on an ESXi host that is not connected to the vCenter.
    HostDisconnected,
    /// The provider ID of a node does not match its virtual machine.
    ProviderIdDiffers,

    /// A tag category that the configuration names does not exist in the vCenter.
    TopologyCategoryNotFound,
    /// The host of a node and its parent objects have no tag of a topology category.
    TopologyTagMissing,
    /// Two tags of one topology category apply to the same node.
    TopologyTagAmbiguous,
    /// The topology label of a node does not match the tags in the vCenter.
    TopologyLabelDiffers,

    /// Two connections that one driver uses lead to the same vCenter.
    DuplicateVcenter,
    /// Two connections that one driver uses cover the same datacenter.
    OverlappingDatacenters,
    /// A node is a virtual machine of two vCenters.
    MachineInSeveralVcenters,
    /// Volumes of another cluster are registered in the vCenter under the cluster id that the CSI driver is about to use.
    ClusterIdInUse,
    /// The operator has not checked yet whether the vCenter has volumes under the cluster id that the CSI driver is about to use.
    ClusterIdNotChecked,
    /// The stored cluster id differs from the cluster id in use, and a user has to choose the right id.
    ClusterIdChanged,
    /// The cluster has volumes of the CSI driver, but the cluster id under which they are registered is unknown.
    ClusterIdUnknown,
    /// The installations and the volumes of the cluster have different cluster ids.
    ClusterIdAmbiguous,

    /// No version of a driver is compatible with the cluster and its vCenters.
    NoCompatibleVersion,
    /// The pinned version is not in the matrix.
    UnknownVersion,
    /// The pinned version is not compatible with the cluster and its vCenters.
    IncompatiblePin,
    /// The compatibility matrix cannot be read.
    MatrixInvalid,
    /// The compatibility matrix is not signed by a trusted key.
    MatrixNotTrusted,
    /// The compatibility matrix is older than a matrix that was used before.
    MatrixRolledBack,
    /// The compatibility matrix cannot be read from its source.
    MatrixUnreachable,
    /// The ConfigMaps of the compatibility matrix are missing or changed.
    MatrixIncomplete,
    /// The chart of the selected version is not available.
    ChartUnavailable,
    /// The chart of the selected version does not have the digest from the matrix.
    DigestMismatch,
    /// The values for a chart do not match the schema of the chart.
    InvalidValues,
    /// A ConfigMap or a Secret with values is missing or contains no values.
    ValuesNotFound,
    /// A patch in the specification cannot be applied to the objects of its driver.
    PatchNotApplicable,
    /// A chart cannot be rendered.
    RenderFailed,
    /// The settings cannot be written in the driver's own configuration format.
    ConfigurationInvalid,

    /// The operator lacks a right.
    Forbidden,
    /// A role, a binding or a namespace that a driver needs is missing or grants too few rights; an administrator has to create it.
    RightsMissing,
    /// Another field manager owns a field that would have to change.
    Conflict,
    /// A plan waits for approval by a user.
    ApprovalRequired,
    /// Admission control of the cluster refuses an object: a policy, a webhook, a quota or a pod security level.
    AdmissionDenied,
    /// The cluster does not serve the kind of an object.
    ApiNotServed,
    /// The operator would have to change an immutable field.
    ImmutableField,
    /// An object already exists and belongs to another manager.
    NotOurs,
    /// The API server refused an object.
    ApplyFailed,
    /// The API server cannot be reached or is overloaded.
    ApiUnavailable,
    /// Volumes of the storage driver are in use, so it is not removed.
    VolumesInUse,
    /// The deletion of an object is blocked, for example by a finalizer.
    DeletionBlocked,
    /// Another manager changed or deleted an object of the operator, and the operator repaired the object.
    DriftRepaired,
    /// Another manager keeps changing a field that the operator repairs, so repairs of the field are paused for a while.
    DriftFight,
    /// A plan broke a rule that applies to every plan; nothing was written.
    PlanRejected,

    /// The compatibility matrix has expired.
    MatrixExpired,
    /// The selected version does not support the Kubernetes version of the cluster.
    KubernetesNotSupported,
    /// The selected version does not support a vCenter in use.
    VSphereNotSupported,
    /// No node or too few nodes can run the controller pods of a driver.
    NoEligibleNode,
    /// The pod network is not ready on a node.
    NetworkNotReady,
    /// The API server does not serve the CustomResourceDefinitions of volume snapshots.
    SnapshotDefinitionsMissing,
    /// No snapshot controller is ready.
    SnapshotControllerMissing,
    /// A CustomResourceDefinition of volume snapshots uses a conversion webhook, which the API server calls for each object.
    SnapshotConversionWebhook,
    /// The connections of the CSI driver verify certificates in different ways, but a part of the driver supports only one way.
    TrustDiffers,
    /// Claims of the CSI driver wait for a volume, or pods wait for a volume to be attached, and a warning names the cause.
    VolumesFailing,
    /// Volumes that several nodes may share are attached, and an upgrade of the CSI driver waits for them to be detached.
    SharedVolumesAttached,
    /// The certificate of a webhook is expired, for another name, or not trusted by the API server.
    WebhookCertificateInvalid,

    /// The kubelet of a node does not run with an external cloud provider.
    KubeletNotExternal,
    /// Nodes wait for initialisation by the cloud provider.
    WaitingForNodes,
    /// Nodes belong to another cloud provider, and the cloud provider for vSphere would delete them; the installation waits for a decision
    /// of a user.
    NodesOfOtherProvider,
    /// Pods of a driver are not ready yet.
    WaitingForPods,
    /// Nodes have no CSINode entry of the driver yet.
    WaitingForCsiNodes,
    /// Pods of a driver fail.
    PodsFailing,
    /// A Deployment or DaemonSet of a driver no longer exists.
    WorkloadMissing,
    /// The API server calls a webhook of a driver, but no pod of the webhook is ready.
    WebhookNotServed,
    /// There was no progress within the progress deadline.
    DeadlineExceeded,
    /// The API server refused a change of a driver that was partly written.
    ChangeRefused,
    /// A version of a driver was chosen and is being installed.
    VersionChosen,
    /// A driver is healthy in another version than before.
    VersionChanged,
    /// The source of the matrix or the trusted keys have changed.
    MatrixSourceChanged,
    /// A change of a driver failed, and the operator restores the last good revision.
    RolledBack,
    /// A change of a driver failed, and only a user may restore a revision.
    RollbackAvailable,
    /// A driver is pinned to a revision that is not in its history or that cannot be restored.
    RevisionUnusable,
    /// A newer compatible version of a driver exists, but the update policy keeps the installed version.
    UpdatePolicy,
    /// A newer compatible version of a driver exists, but a version or a revision of the driver is pinned.
    VersionPinned,
    /// A newer compatible version of a driver exists, but a precondition of the upgrade is not known to be met.
    UpgradeWaits,
    /// A maintenance window is open: the operator may change drivers automatically.
    WindowOpen,
    /// No maintenance window is open, and automatic changes wait for the next window.
    OutsideMaintenanceWindow,
    /// A maintenance window cannot be read or never opens, and automatic changes wait.
    MaintenanceWindowInvalid,
    /// An option has no effect in the selected version of its driver.
    OptionNotSupported,
    /// An image is not pulled from the mirror.
    ImagesOutsideMirror,
    /// The driver waits for another driver, which is installed first.
    WaitingForDriver,
}

impl Reason {
    /// Reasons that say how far a work has come, and not that something is wrong.
    pub const PROGRESS: &'static [Self] = &[
        Self::Progressing,
        Self::Deleting,
        Self::WaitingForNodes,
        Self::WaitingForPods,
        Self::WaitingForCsiNodes,
        Self::WaitingForDriver,
        Self::ConnectionNotReady,
    ];
}

impl Reason {
    /// Reasons that stay until a person changes what is asked for, or decides.
    pub const PERSON: &'static [Self] = &[
        Self::InvalidSpec,
        Self::NewerOperator,
        Self::NoCompatibleVersion,
        Self::UnknownVersion,
        Self::IncompatiblePin,
        Self::InvalidValues,
        Self::ValuesNotFound,
        Self::PatchNotApplicable,
        Self::VolumesInUse,
        Self::RevisionUnusable,
        Self::ClusterIdChanged,
        Self::ClusterIdUnknown,
        Self::ClusterIdAmbiguous,
        Self::NodesOfOtherProvider,
    ];
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

crate::written_as_text!(Reason);

impl<'de> serde::Deserialize<'de> for Reason {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let known = Self::ALL.iter().copied().find(|reason| reason.as_str() == word);
        known.ok_or_else(|| serde::de::Error::custom(format!("{word:?} is not a known reason")))
    }
}

impl serde::Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
