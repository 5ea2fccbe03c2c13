// SPDX-License-Identifier: Apache-2.0
//! The closed list of reasons of conditions and events, each with its meaning.

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
    /// Nothing is under way.
    Idle,
    /// Work is under way and goes on by itself.
    Progressing,
    /// The object is being removed.
    Deleting,
    /// Management is paused: what is found is reported, and nothing is written.
    Paused,
    /// The drivers are removed, as the specification asks for.
    Removed,
    /// This driver is not asked for.
    NotRequested,
    /// It could not be found out, because an earlier step failed.
    NotChecked,

    /// The specification cannot be acted upon as it is written.
    InvalidSpec,
    /// Another VDOConfig of this cluster is older and acts; this one does nothing.
    NotActive,
    /// A newer operator has stored what this one does not know; nothing is changed.
    NewerOperator,
    /// No operator runs that keeps the status up to date and repairs what changes.
    OperatorNotRunning,
    /// There is no vSphere connection in the namespace.
    NoConnections,
    /// A vSphere connection that the specification names does not exist.
    ConnectionNotFound,
    /// A vSphere connection has not been verified yet or cannot be.
    ConnectionNotReady,
    /// The Secret with the credentials does not exist.
    SecretNotFound,
    /// The Secret with the credentials is in a namespace from which none is read.
    SecretElsewhere,
    /// The Secret with the credentials names other servers as those it may be sent to.
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
    /// The certificate of the vCenter is outside its dates.
    CertificateExpired,
    /// The certificate of the vCenter is for another name.
    CertificateNameMismatch,
    /// The certificate of the vCenter has another thumbprint than the connection says.
    ThumbprintMismatch,
    /// The certificate of the vCenter ends within thirty days.
    CertificateExpiresSoon,
    /// The TLS handshake failed for another cause.
    TlsFailed,
    /// What answers is not a vCenter.
    NotAVcenter,
    /// The vCenter answered in a way that cannot be understood.
    BadAnswer,

    /// No driver in the compatibility matrix knows this version of vCenter.
    VersionNotInMatrix,
    /// The vCenter does not accept the user name or the password.
    InvalidCredentials,
    /// The account is locked in vCenter.
    AccountLocked,
    /// The password has expired in vCenter.
    PasswordExpired,
    /// The vCenter knows the user but lets it not log in, because it has no permission there.
    LoginRefused,
    /// The vCenter accepts the login, but its service for tags refuses the same login.
    TagLoginRefused,
    /// The vCenter has ended the session and did not give another.
    SessionLost,
    /// The user may not read the inventory of the vCenter.
    InventoryForbidden,
    /// A datacenter that the connection names does not exist, or the user cannot see it.
    DatacenterNotFound,
    /// A datacenter name that the connection gives fits several datacenters.
    DatacenterAmbiguous,
    /// A node has no virtual machine that can be seen in the vCenter.
    NodeNotFound,
    /// Several virtual machines fit one node, or one fits several nodes.
    NodeAmbiguous,

    /// A datastore that the configuration names does not exist, or the user cannot see it.
    DatastoreNotFound,
    /// A datastore that the configuration names is reached by no host or is in maintenance mode.
    DatastoreUnusable,
    /// A datastore that is named for file volumes is not a vSAN datastore.
    DatastoreNotVsan,
    /// A storage policy that the configuration names does not exist, or the user cannot see it.
    StoragePolicyNotFound,
    /// No datastore is reached by all hosts that nodes run on.
    NoSharedDatastore,
    /// File volumes are configured, and no cluster has the vSAN file service.
    NoFileService,
    /// The user lacks privileges that the features in use need.
    PrivilegesMissing,

    /// The virtual machine of a node is not powered on.
    MachinePoweredOff,
    /// The hardware version of the virtual machine of a node is older than the drivers need.
    HardwareVersionTooOld,
    /// The virtual machine of a node does not show its disks' identifiers to the guest.
    DiskUuidDisabled,
    /// VMware Tools do not run in the virtual machine of a node.
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
    /// The provider ID of a node is not that of its virtual machine.
    ProviderIdDiffers,

    /// A tag category that the configuration names does not exist in the vCenter.
    TopologyCategoryNotFound,
    /// The host of a node, and all that it lies in, bear no tag of a topology category.
    TopologyTagMissing,
    /// Two tags of one topology category apply to the same node.
    TopologyTagAmbiguous,
    /// The topology label of a node is not what the tags in the vCenter say.
    TopologyLabelDiffers,

    /// Two connections that one driver uses lead to the same vCenter.
    DuplicateVcenter,
    /// Two connections that one driver uses cover the same datacenter.
    OverlappingDatacenters,
    /// A node is a virtual machine of two vCenters.
    MachineInSeveralVcenters,
    /// Volumes of another cluster are registered in the vCenter under the cluster id that the CSI driver is about to use.
    ClusterIdInUse,
    /// The vCenter was not asked yet for volumes under the cluster id that the CSI driver is about to use.
    ClusterIdNotChecked,
    /// The state has another cluster id than the one in use, and a person has to say which is right.
    ClusterIdChanged,
    /// The cluster has volumes of the CSI driver, and no place says under which cluster id they are registered.
    ClusterIdUnknown,
    /// Installations and volumes of the cluster have different cluster ids.
    ClusterIdAmbiguous,

    /// No version of a driver fits the cluster and its vCenters.
    NoCompatibleVersion,
    /// The pinned version is not in the matrix.
    UnknownVersion,
    /// The pinned version does not fit the cluster and its vCenters.
    IncompatiblePin,
    /// The compatibility matrix cannot be read.
    MatrixInvalid,
    /// The compatibility matrix is not signed by a trusted key.
    MatrixNotTrusted,
    /// The compatibility matrix is older than one that was used before.
    MatrixRolledBack,
    /// The source of the compatibility matrix does not give it.
    MatrixUnreachable,
    /// The ConfigMaps of the compatibility matrix are missing or changed.
    MatrixIncomplete,
    /// The chart of the chosen version cannot be had.
    ChartUnavailable,
    /// The chart of the chosen version is not what the matrix says it is.
    DigestMismatch,
    /// The values for a chart break its schema.
    InvalidValues,
    /// A ConfigMap or a Secret with values is missing or holds none.
    ValuesNotFound,
    /// A patch of the specification does not fit the objects of its driver.
    PatchNotApplicable,
    /// A chart cannot be rendered.
    RenderFailed,
    /// The settings cannot be written in the driver's own configuration format.
    ConfigurationInvalid,

    /// The operator lacks a right.
    Forbidden,
    /// A role, a binding or a namespace that a driver needs is missing or grants too little; the administrator brings them.
    RightsMissing,
    /// Another field manager owns a field that would have to change.
    Conflict,
    /// A plan waits for a person to approve it.
    ApprovalRequired,
    /// Admission control of the cluster refuses an object: a policy, a webhook, a quota or a pod security level.
    AdmissionDenied,
    /// The cluster does not serve the kind of an object.
    ApiNotServed,
    /// A field would have to change that cannot be changed.
    ImmutableField,
    /// An object exists that belongs to another manager.
    NotOurs,
    /// The API server refused an object.
    ApplyFailed,
    /// The API server cannot be reached or is overloaded.
    ApiUnavailable,
    /// Volumes of the storage driver are in use, so it is not removed.
    VolumesInUse,
    /// An object is being deleted and does not go, because something else must let go of it first.
    DeletionBlocked,
    /// Another manager changed or deleted an object of ours, and it was brought back.
    DriftRepaired,
    /// Another manager keeps changing a field that we keep bringing back, so it is left alone for a while.
    DriftFight,
    /// A plan broke a rule that every plan must keep; nothing was written.
    PlanRejected,

    /// The compatibility matrix is past the date until which it is good.
    MatrixExpired,
    /// The version that is to run does not support the cluster's Kubernetes.
    KubernetesNotSupported,
    /// The version that is to run does not support a vCenter in use.
    VSphereNotSupported,
    /// No node, or too few, may run the pods of a driver's controller.
    NoEligibleNode,
    /// The pod network is not ready on a node.
    NetworkNotReady,
    /// The definitions of volume snapshots are not served.
    SnapshotDefinitionsMissing,
    /// No controller of volume snapshots is ready.
    SnapshotControllerMissing,
    /// A definition of volume snapshots converts its objects through a webhook, which the API server asks for each of them.
    SnapshotConversionWebhook,
    /// The connections of the CSI driver are trusted in different ways, and a part of the driver knows only one.
    TrustDiffers,
    /// Claims of the CSI driver wait for their volume, or pods for one to be attached, and a warning says why.
    VolumesFailing,
    /// Volumes that several nodes may share are attached, and an upgrade of the CSI driver waits for them to be detached.
    SharedVolumesAttached,
    /// The certificate of a webhook is expired, for another name, or not trusted by the API server.
    WebhookCertificateInvalid,

    /// The kubelet of a node does not leave it to a cloud provider.
    KubeletNotExternal,
    /// Nodes wait for the cloud provider to initialise them.
    WaitingForNodes,
    /// Nodes are of another cloud provider, and the one for vSphere would delete them; the installation waits for a decision.
    NodesOfOtherProvider,
    /// Pods of a driver are not ready yet.
    WaitingForPods,
    /// Nodes have no CSINode entry of the driver yet.
    WaitingForCsiNodes,
    /// Pods of a driver fail.
    PodsFailing,
    /// A Deployment or DaemonSet of a driver was there and is not any more.
    WorkloadMissing,
    /// The API server asks a webhook of a driver, and no pod of it is ready to answer.
    WebhookNotServed,
    /// Nothing has moved on for as long as that should take.
    DeadlineExceeded,
    /// The API server refused a change of a driver halfway.
    ChangeRefused,
    /// A version of a driver was chosen and is being installed.
    VersionChosen,
    /// A driver is healthy in another version than before.
    VersionChanged,
    /// The matrix comes from another source than before, or other keys are trusted.
    MatrixSourceChanged,
    /// A change of a driver failed, and the last good revision is brought back.
    RolledBack,
    /// A change of a driver failed, and only a person may bring back a revision.
    RollbackAvailable,
    /// A driver is kept at a revision that is not in its history, or that cannot be brought back.
    RevisionUnusable,
    /// A newer version of a driver fits, and the update policy keeps the installed one.
    UpdatePolicy,
    /// A newer version of a driver fits, and a version or a revision of it is pinned.
    VersionPinned,
    /// A newer version of a driver fits, and something that must hold before its upgrade is not known to hold.
    UpgradeWaits,
    /// A maintenance window is open: drivers may change by themselves.
    WindowOpen,
    /// No maintenance window is open, and what would change by itself waits for the next one.
    OutsideMaintenanceWindow,
    /// A maintenance window cannot be read or never opens, and what would change by itself waits.
    MaintenanceWindowInvalid,
    /// An option is set that the chosen version of its driver cannot use.
    OptionNotSupported,
    /// An image is not pulled from the mirror.
    ImagesOutsideMirror,
    /// The driver waits for an earlier one.
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
