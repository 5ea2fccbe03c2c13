// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML documents of `vdoctl matrix resolve`, `--what-if-…`, `explain`, `why-not` and `diff`. `vdoctl report` reads `Outlook`.

use super::super::output::View;
use super::matrix::{KnownMatrixView, VersionView, version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vdo_api::types::{ChartRef, DriverName, DriverVersion, KubernetesVersion, VcenterVersion};
use vdo_core::matrix::{Difference, Situation};

/// A version of an upgrade path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StepView {
    pub version: DriverVersion,
    /// The conditions that must hold before the upgrade to this version.
    pub preconditions: Vec<PreconditionView>,
}

/// A condition that must hold before an upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PreconditionView {
    pub name: String,
    /// The meaning of the condition; null if the matrix does not describe the condition.
    pub means: Option<String>,
}

/// A vSphere connection with the version of its vCenter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct VcenterView {
    pub connection: String,
    pub version: VcenterVersion,
}

/// The versions that are chosen for a platform: a Kubernetes version and the versions of the vCenters.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ResolutionView {
    pub matrix: KnownMatrixView,
    pub kubernetes: KubernetesVersion,
    pub vcenters: Vec<VcenterView>,
    /// Whether a version of each driver fits the platform.
    pub fits: bool,
    pub drivers: Vec<ChosenView>,
    /// The first entry of `failures`; null if `failures` is empty.
    pub failure: Option<NoFitView>,
    pub failures: Vec<NoFitView>,
    /// The drivers for which a version fits, with the version; null if a version fits for every driver.
    pub fitting: Option<BTreeMap<DriverName, DriverVersion>>,
}

/// The version that is chosen for a driver.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChosenView {
    pub name: DriverName,
    /// The version to install now.
    pub version: DriverVersion,
    /// The newest version that fits.
    pub newest: Option<DriverVersion>,
    /// The version at the end of the upgrade path.
    pub target: DriverVersion,
    /// The installed version; null if the driver is not installed.
    pub from: Option<DriverVersion>,
    /// Why the installed version cannot stay; null if the installed version can stay.
    pub leaves: Option<String>,
    /// The versions of the upgrade path, in order.
    pub path: Vec<DriverVersion>,
    pub steps: Vec<StepView>,
    /// The conditions that must hold before the next step of the upgrade path.
    pub preconditions: Vec<String>,
    /// What the upgrade to a newer version waits for; null if no upgrade waits.
    pub waits: Option<String>,
    pub because: String,
    /// Why the version does not fit, if the version is chosen anyway.
    pub overridden: Option<String>,
    /// Why the version is deprecated; null if the version is not deprecated.
    pub deprecated: Option<String>,
    pub chart: ChartRef,
}

/// A driver for which no version fits.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct NoFitView {
    pub driver: DriverName,
    pub message: String,
    pub advice: Option<String>,
    pub rejected: Vec<RejectedView>,
}

/// A version that does not fit.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RejectedView {
    pub version: DriverVersion,
    pub reason: String,
}

/// The effects of an upgrade of the platform on the versions of the drivers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct OutlookView {
    pub matrix: KnownMatrixView,
    /// Whether a version of each driver fits at every stage.
    pub fits: bool,
    /// The current platform, and the platform after each step of its upgrade.
    pub stages: Vec<StageView>,
}

/// The platform at one stage of its upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StageView {
    pub kubernetes: KubernetesVersion,
    pub vcenters: Vec<VcenterView>,
    pub fits: bool,
    pub changes: Vec<StageChangeView>,
    /// The versions of the drivers that run at this stage.
    pub runs: BTreeMap<DriverName, DriverVersion>,
    pub failures: Vec<StageFailureView>,
}

/// A driver that changes to another version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StageChangeView {
    pub driver: DriverName,
    pub from: Option<DriverVersion>,
    pub path: Vec<DriverVersion>,
    pub steps: Vec<StepView>,
    /// `before` the step of the platform, or `with` this step.
    pub when: String,
    pub because: String,
}

/// A driver for which no version fits at this stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StageFailureView {
    pub driver: DriverName,
    pub message: String,
    pub advice: Option<String>,
}

/// Every candidate version of each driver, with the reason why the version is chosen or rejected.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExplanationView {
    pub matrix: KnownMatrixView,
    pub fits: bool,
    pub drivers: Vec<ExplainedView>,
}

/// A driver with its candidate versions.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExplainedView {
    pub driver: DriverName,
    pub choice: Option<PickView>,
    /// The data of the matrix about the target version.
    pub facts: Option<VersionView>,
    pub candidates: Vec<CandidateView>,
}

/// The chosen version, and the upgrade path to the target version.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PickView {
    pub version: DriverVersion,
    pub target: DriverVersion,
    pub from: Option<DriverVersion>,
    pub path: Vec<DriverVersion>,
    pub because: String,
    pub steps: Vec<StepView>,
    pub preconditions: Vec<String>,
    pub waits: Option<String>,
}

/// A version, and the reason why the version does not fit; the reason is null if the version fits.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CandidateView {
    pub version: DriverVersion,
    pub rejected: Option<String>,
}

/// Why a version is not chosen.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WhyNotView {
    pub matrix: KnownMatrixView,
    pub driver: DriverName,
    pub version: DriverVersion,
    pub chosen: bool,
    pub reasons: Vec<String>,
    /// The smallest change that would make the version fit.
    pub helps: Option<String>,
    /// The versions that fit now.
    pub fits: Vec<String>,
    /// A sentence that names the version that is chosen instead, and the reason.
    pub instead: Option<String>,
}

/// How the decisions of an operator would differ with another matrix.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MatrixDiffView {
    pub old: KnownMatrixView,
    pub new: KnownMatrixView,
    /// Whether the operator would make the same decisions with both matrices.
    pub same: bool,
    pub versions: Vec<ChangedVersionView>,
    pub choices: Vec<OtherChoiceView>,
    /// Sentences about the other differences, for example of privileges or preconditions.
    pub rules: Vec<String>,
}

/// A version that only one of the matrices has, or that has different data in the two matrices.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangedVersionView {
    pub driver: DriverName,
    pub version: DriverVersion,
    pub changes: Vec<String>,
}

/// A driver for which the operator would choose another version.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OtherChoiceView {
    pub driver: DriverName,
    /// The clusters with this difference: `new` (without the driver), `installed, Compatible` or `installed, Latest` (with the driver and
    /// this update policy).
    pub cluster: String,
    pub old: Option<DriverVersion>,
    pub new: Option<DriverVersion>,
    pub platforms: Vec<PlatformView>,
}

/// A Kubernetes version and a vCenter version.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlatformView {
    pub kubernetes: KubernetesVersion,
    pub vcenter: VcenterVersion,
}

impl View for ResolutionView {
    const KIND: &'static str = "Resolution";

    fn names(&self) -> Option<Vec<String>> {
        Some(self.drivers.iter().map(|driver| format!("driver/{}", driver.name)).collect())
    }
}

impl View for OutlookView {
    const KIND: &'static str = "Outlook";
}

impl View for ExplanationView {
    const KIND: &'static str = "Explanation";

    fn names(&self) -> Option<Vec<String>> {
        Some(self.drivers.iter().map(|driver| format!("driver/{}", driver.driver)).collect())
    }
}

impl View for WhyNotView {
    const KIND: &'static str = "WhyNot";
}

impl View for MatrixDiffView {
    const KIND: &'static str = "MatrixDiff";

    fn names(&self) -> Option<Vec<String>> {
        Some(self.versions.iter().map(|one| version(&one.driver, &one.version)).collect())
    }
}

impl MatrixDiffView {
    pub(crate) fn of(old: KnownMatrixView, new: KnownMatrixView, found: &Difference) -> Self {
        let versions = found.versions.iter().map(|(driver, version, changes)| ChangedVersionView {
            driver: driver.clone(),
            version: version.clone(),
            changes: changes.clone(),
        });
        let choices = found.choices.iter().map(|choice| OtherChoiceView {
            driver: choice.driver.clone(),
            cluster: situation(choice.situation).to_owned(),
            old: choice.old.clone(),
            new: choice.new.clone(),
            platforms: choice
                .platforms
                .iter()
                .map(|(kubernetes, vcenter)| PlatformView {
                    kubernetes: kubernetes.clone(),
                    vcenter: vcenter.clone(),
                })
                .collect(),
        });
        Self {
            same: found.is_same(),
            versions: versions.collect(),
            choices: choices.collect(),
            rules: found.rules.iter().map(|rule| (*rule).to_owned()).collect(),
            old,
            new,
        }
    }
}

/// In which clusters a choice is made.
pub(crate) fn situation(situation: Situation) -> &'static str {
    match situation {
        Situation::New => "new",
        Situation::Compatible => "installed, Compatible",
        Situation::Latest => "installed, Latest",
    }
}
