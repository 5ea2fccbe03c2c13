// SPDX-License-Identifier: Apache-2.0
//! The condition types of VDOConfig and VsphereCloudConfig, each with its meaning, and the builder of `status.conditions`.

use super::Reason;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use strum::{EnumMessage as _, IntoEnumIterator as _};

/// The types of conditions. [`ConditionType::is_well`] tells for which types True is good news.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    strum::Display,
    strum::EnumIter,
    strum::EnumMessage,
    strum::IntoStaticStr,
    schemars::JsonSchema,
)]
pub enum ConditionType {
    /// The object is in the state that its specification describes.
    Ready,
    /// The operator is working on the object. This is a standard condition of kstatus.
    Reconciling,
    /// The operator cannot continue until a user acts. This is a standard condition of kstatus.
    Stalled,
    /// Every vSphere connection in use is ready.
    ConnectionsReady,
    /// The cloud provider runs and has initialised the nodes.
    CloudProviderReady,
    /// The CSI driver runs and is registered on the nodes.
    StorageReady,
    /// Precondition: the selected driver versions support the Kubernetes version of the cluster.
    KubernetesSupported,
    /// Precondition: the selected driver versions support every vCenter in use.
    VSphereSupported,
    /// Precondition: every node has a provider ID and no longer has the uninitialized taint.
    NodesInitialized,
    /// Precondition: the cluster has enough nodes on which the controller pods of the drivers can run.
    ControlPlaneEligible,
    /// Precondition: the pod network is ready on every node.
    NetworkReady,
    /// Precondition of the CSI driver with several vCenters: all its connections verify certificates in the same way.
    TrustConsistent,
    /// Precondition of the CSI webhook: the certificate of the webhook is valid, and the API server trusts it.
    WebhookCertificateValid,
    /// Precondition: no other tool runs a driver of the same name in the cluster.
    NoForeignDriver,
    /// Precondition of snapshots: the CustomResourceDefinitions of volume snapshots and the snapshot controller are installed.
    SnapshotsSupported,
    /// Neither Kubernetes nor the CSI driver warns about a volume of the driver. The status of this condition does not block the
    /// installation or upgrade of any driver.
    VolumesHealthy,
    /// Precondition of an upgrade of the CSI driver: no volume that several nodes can share is attached to a node.
    NoRwxAttachments,
    /// Precondition of a mirror: every driver image is pulled from the mirror registry.
    ImagesMirrored,
    /// Precondition: the operator uses the configured compatibility matrix, and the matrix has not expired.
    MatrixFresh,
    /// The drivers are known to be compatible with the next minor version of Kubernetes.
    Upgradeable,
    /// A newer compatible version of a driver exists but is not installed. The reason of the condition explains why. The condition is
    /// absent if there is no such version.
    UpgradeAvailable,
    /// A maintenance window is open. While all windows are closed, the message shows when the next window opens. The condition is Unknown
    /// if a window cannot be read, and absent if there are no windows.
    MaintenanceWindow,
    /// A change of a driver failed, and the operator restored the last good revision. The condition is absent while no driver is rolled
    /// back.
    RolledBack,
    /// Every option in the specification has an effect in the selected driver versions. The condition is absent while every option has an
    /// effect.
    OptionsSupported,
    /// The name of the vCenter resolves.
    Resolved,
    /// The vCenter accepts connections.
    Connected,
    /// The certificate of the vCenter is trusted.
    Trusted,
    /// The server at the address is a vCenter.
    IsVCenter,
    /// The Secret with the credentials exists and is complete.
    CredentialsFound,
    /// The vCenter accepts the credentials.
    Authenticated,
    /// The datacenters that the connection names exist.
    DatacentersFound,
    /// The datastores and storage policies that the configuration names exist.
    StorageFound,
    /// The account has the privileges that the features in use need.
    Authorized,
    /// Every node is a virtual machine of the vCenter with the settings that the drivers need. The status of this condition does not affect
    /// the condition Ready, and does not block the installation or upgrade of any driver.
    NodesFound,
    /// The tags of zones and regions in the vCenter match the topology labels of the nodes. The status of this condition does not affect
    /// the condition Ready. A driver cannot begin to use a tag category that the vCenter does not have.
    TopologyConsistent,
    /// No two connections of the same driver lead to the same virtual machines. The status of this condition does not affect the condition
    /// Ready. If the virtual machine of a node is in two vCenters, the operator installs no new driver that uses the connections to both
    /// vCenters.
    Distinct,
    /// No volume of another cluster is registered in the vCenter under the cluster id of this cluster. The operator makes this check before
    /// the CSI driver uses the id for the first time. The installation of the CSI driver waits for the check, but the condition Ready of
    /// the connection does not depend on the check.
    ClusterIdAvailable,
}

impl ConditionType {
    /// What must hold before the drivers can work, and whether their volumes do, in the order in which it is reported. A precondition that is
    /// False or Unknown is reported; by itself it never removes or changes what runs.
    pub const PRECONDITIONS: &'static [Self] = &[
        Self::KubernetesSupported,
        Self::VSphereSupported,
        Self::NoForeignDriver,
        Self::NodesInitialized,
        Self::NetworkReady,
        Self::ControlPlaneEligible,
        Self::SnapshotsSupported,
        Self::VolumesHealthy,
        Self::TrustConsistent,
        Self::WebhookCertificateValid,
        Self::NoRwxAttachments,
        Self::ImagesMirrored,
        Self::MatrixFresh,
    ];

    /// Those of a VDOConfig.
    pub fn of_config() -> impl Iterator<Item = Self> {
        Self::iter().filter(|kind| *kind < Self::Resolved)
    }

    /// Those of a vSphere connection.
    pub fn of_connection() -> impl Iterator<Item = Self> {
        Self::iter().filter(|kind| *kind == Self::Ready || *kind >= Self::Resolved)
    }

    /// The meaning of the condition when it is True: the doc comment of the variant in this file.
    #[must_use]
    pub fn meaning(self) -> String {
        self.get_documentation().unwrap_or_default().trim().replace('\n', " ")
    }

    /// The status of a condition that is not reported. `None` for conditions that are always reported.
    #[must_use]
    pub fn when_absent(self) -> Option<&'static str> {
        match self {
            Self::UpgradeAvailable | Self::RolledBack => Some("False"),
            Self::OptionsSupported | Self::MaintenanceWindow => Some("True"),
            _ => None,
        }
    }

    /// Whether a condition of this type says with this status that all is well; `None` where that is not known. Of a failure that was rolled
    /// back and of what waits for a person, True is bad news; that work is under way, a newer version exists or a
    /// window is closed, is neither.
    #[must_use]
    pub fn is_well(kind: &str, status: &str) -> Option<bool> {
        let bad = [Self::RolledBack, Self::Stalled].map(Self::as_str).contains(&kind);
        let neutral = [Self::Reconciling, Self::UpgradeAvailable, Self::MaintenanceWindow]
            .map(Self::as_str)
            .contains(&kind);
        match status {
            "True" => Some(!bad),
            "False" => Some(bad || neutral),
            _ => None,
        }
    }

    /// The type as it is written in a condition.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A list of conditions under construction. Setting one keeps its transition time when the status does not change.
#[derive(Debug, Clone)]
pub struct Conditions {
    old: Vec<Condition>,
    new: Vec<Condition>,
    generation: Option<i64>,
    now: Time,
}

impl Conditions {
    /// Starts from the conditions of the last report.
    #[must_use]
    pub fn new(old: Vec<Condition>, generation: Option<i64>, now: Time) -> Self {
        Self {
            old,
            new: Vec::new(),
            generation,
            now,
        }
    }

    /// Sets a condition. `None` means Unknown, which is a value of its own and never treated as False.
    pub fn set(&mut self, kind: ConditionType, status: Option<bool>, reason: Reason, message: impl Into<String>) {
        let status = match status {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        };
        let since = self
            .old
            .iter()
            .find(|c| c.type_ == kind.as_str() && c.status == status)
            .map_or_else(|| self.now.clone(), |c| c.last_transition_time.clone());
        self.new.retain(|c| c.type_ != kind.as_str());
        self.new.push(Condition {
            type_: kind.as_str().into(),
            status: status.into(),
            reason: reason.as_str().into(),
            message: message.into(),
            observed_generation: self.generation,
            last_transition_time: since,
        });
    }

    /// Leaves a condition as the last report had it, because nothing new is known; without one it is Unknown. It keeps the
    /// generation at which it was true.
    pub fn keep(&mut self, kind: ConditionType, reason: Reason, message: impl Into<String>) {
        match Self::find(&self.old, kind).cloned() {
            Some(mut old) => {
                old.observed_generation = old.observed_generation.or(self.generation);
                self.new.retain(|c| c.type_ != kind.as_str());
                self.new.push(old);
            }
            None => self.set(kind, None, reason, message),
        }
    }

    /// The finished list.
    #[must_use]
    pub fn finish(self) -> Vec<Condition> {
        self.new
    }

    /// A condition of a list.
    #[must_use]
    pub fn find(conditions: &[Condition], kind: ConditionType) -> Option<&Condition> {
        conditions.iter().find(|c| c.type_ == kind.as_str())
    }

    /// Whether a condition of a list is True.
    #[must_use]
    pub fn is_true(conditions: &[Condition], kind: ConditionType) -> bool {
        Self::find(conditions, kind).is_some_and(|c| c.status == "True")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every condition that exists is judged here: True is good news unless the list says otherwise.
    #[test]
    fn condition_polarity_of_every_type_is_known() {
        for kind in ConditionType::iter() {
            let expected = match kind {
                ConditionType::RolledBack | ConditionType::Stalled => [Some(false), Some(true), None],
                ConditionType::Reconciling | ConditionType::UpgradeAvailable | ConditionType::MaintenanceWindow => {
                    [Some(true), Some(true), None]
                }
                _ => [Some(true), Some(false), None],
            };
            let found = ["True", "False", "Unknown"].map(|status| ConditionType::is_well(kind.as_str(), status));
            assert_eq!(found, expected, "{kind}");
            // What is absent most of the time is well when it is.
            if let Some(status) = kind.when_absent() {
                assert_eq!(ConditionType::is_well(kind.as_str(), status), Some(true), "{kind}");
            }
        }
    }
}
