// SPDX-License-Identifier: Apache-2.0
//! Every condition type with its meaning and polarity, and the list of conditions that a status is built from.

use super::Reason;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use strum::{EnumMessage as _, IntoEnumIterator as _};

/// The conditions that exist. Which of them are well where they are True, [`ConditionType::is_well`] knows.
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
    /// The object is as its specification says.
    Ready,
    /// Work is under way (kstatus).
    Reconciling,
    /// Nothing will change until a person acts (kstatus).
    Stalled,
    /// Every vSphere connection in use is verified.
    ConnectionsReady,
    /// The cloud provider runs and has initialised the nodes.
    CloudProviderReady,
    /// The CSI driver runs and is registered on the nodes.
    StorageReady,
    /// Precondition: the versions that are to run support the cluster's Kubernetes.
    KubernetesSupported,
    /// Precondition: the versions that are to run support every vCenter in use.
    VSphereSupported,
    /// Precondition: every node has its provider ID and has lost the uninitialized taint.
    NodesInitialized,
    /// Precondition: there are nodes on which the pods of the drivers' controllers may run.
    ControlPlaneEligible,
    /// Precondition: no node waits for its pod network.
    NetworkReady,
    /// Precondition of the CSI driver with several vCenters: all of them are trusted in the same way.
    TrustConsistent,
    /// Precondition of the CSI webhook: its certificate is good for what the API server trusts.
    WebhookCertificateValid,
    /// Precondition: no other manager runs a driver of the same name.
    NoForeignDriver,
    /// Precondition of snapshots: their definitions and their controller are there.
    SnapshotsSupported,
    /// Neither Kubernetes nor the CSI driver warns about a volume that the driver serves. What it says keeps no driver back.
    VolumesHealthy,
    /// Precondition of an upgrade of the CSI driver: no volume that several nodes share is attached.
    NoRwxAttachments,
    /// Precondition of a mirror: every image of the drivers is pulled from it.
    ImagesMirrored,
    /// Precondition: the compatibility matrix in use is current.
    MatrixFresh,
    /// The drivers are known to fit the next Kubernetes minor.
    Upgradeable,
    /// A newer version of a driver fits and is not installed; the reason says why. Absent otherwise.
    UpgradeAvailable,
    /// A maintenance window is open; the message says when the next one does. Unknown where one of them cannot be read, absent without windows.
    MaintenanceWindow,
    /// A change of a driver failed, and the revision before it is back. Absent otherwise.
    RolledBack,
    /// Every option that is set has an effect in the chosen versions. Absent where it is so.
    OptionsSupported,
    /// The name of the vCenter resolves.
    Resolved,
    /// The vCenter accepts connections.
    Connected,
    /// The certificate of the vCenter is trusted.
    Trusted,
    /// What answers is a vCenter.
    IsVCenter,
    /// The Secret with the credentials is there and complete.
    CredentialsFound,
    /// The vCenter lets the credentials in.
    Authenticated,
    /// The datacenters that the connection names exist.
    DatacentersFound,
    /// The datastores and storage policies that the configuration names exist.
    StorageFound,
    /// The account has the privileges that the features in use need.
    Authorized,
    /// The nodes are virtual machines of the vCenter, made as the drivers need them. What it says keeps no driver back.
    NodesFound,
    /// The tags of zones and regions agree with the labels of the nodes. What it says keeps no driver back.
    TopologyConsistent,
    /// No other connection of the same driver leads to the same machines. What it says keeps no driver back.
    Distinct,
    /// No volume of another cluster is registered under the cluster id that the CSI driver is about to use, or was when it was first used.
    /// The CSI driver waits for it; the connection does not.
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

    /// What it says where it is True: the sentences above it in this file.
    #[must_use]
    pub fn meaning(self) -> String {
        self.get_documentation().unwrap_or_default().trim().replace('\n', " ")
    }

    /// What it means that it is not reported, of those that are absent most of the time.
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

    /// The word as it stands in a condition.
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
