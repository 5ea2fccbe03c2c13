// SPDX-License-Identifier: Apache-2.0
//! The documents of `vdoctl matrix` that choose from a matrix. A report is made of the outlook.

use super::super::output::View;
use super::matrix::{KnownMatrixView, VersionView, version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vdo_api::types::{ChartRef, DriverName, DriverVersion, KubernetesVersion, VcenterVersion};
use vdo_core::matrix::{Difference, Situation};

/// A step on the way to a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StepView {
    pub version: DriverVersion,
    /// What must hold before it.
    pub preconditions: Vec<PreconditionView>,
}

/// What must hold before an upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PreconditionView {
    pub name: String,
    /// In words.
    pub means: Option<String>,
}

/// A vSphere connection with the version of its vCenter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct VcenterView {
    pub connection: String,
    pub version: VcenterVersion,
}

/// The choice for a platform.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ResolutionView {
    pub matrix: KnownMatrixView,
    pub kubernetes: KubernetesVersion,
    pub vcenters: Vec<VcenterView>,
    /// Whether there is a version of each driver.
    pub fits: bool,
    pub drivers: Vec<ChosenView>,
    /// The first of the failures.
    pub failure: Option<NoFitView>,
    pub failures: Vec<NoFitView>,
    /// The drivers that have a version although another one has none.
    pub fitting: Option<BTreeMap<DriverName, DriverVersion>>,
}

/// The version that was chosen of a driver.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChosenView {
    pub name: DriverName,
    /// The version to install now.
    pub version: DriverVersion,
    /// The newest version that fits.
    pub newest: Option<DriverVersion>,
    /// Where it leads.
    pub target: DriverVersion,
    /// What is installed.
    pub from: Option<DriverVersion>,
    /// Why what is installed cannot stay.
    pub leaves: Option<String>,
    /// The versions on the way.
    pub path: Vec<DriverVersion>,
    pub steps: Vec<StepView>,
    /// What must hold before the next step.
    pub preconditions: Vec<String>,
    /// What a newer version waits for.
    pub waits: Option<String>,
    pub because: String,
    /// Why it does not fit, where it is taken anyway.
    pub overridden: Option<String>,
    /// Why it is deprecated.
    pub deprecated: Option<String>,
    pub chart: ChartRef,
}

/// A driver of which no version fits.
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

/// What an upgrade of the platform would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct OutlookView {
    pub matrix: KnownMatrixView,
    /// Whether there is a version of each driver at each stage.
    pub fits: bool,
    /// The platform as it is, and after each step.
    pub stages: Vec<StageView>,
}

/// One step of the platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StageView {
    pub kubernetes: KubernetesVersion,
    pub vcenters: Vec<VcenterView>,
    pub fits: bool,
    pub changes: Vec<StageChangeView>,
    /// The versions that run then.
    pub runs: BTreeMap<DriverName, DriverVersion>,
    pub failures: Vec<StageFailureView>,
}

/// A driver that gets another version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StageChangeView {
    pub driver: DriverName,
    pub from: Option<DriverVersion>,
    pub path: Vec<DriverVersion>,
    pub steps: Vec<StepView>,
    /// `before` the step of the platform, or `with` it.
    pub when: String,
    pub because: String,
}

/// A driver of which no version fits then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StageFailureView {
    pub driver: DriverName,
    pub message: String,
    pub advice: Option<String>,
}

/// Every candidate with its reason.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExplanationView {
    pub matrix: KnownMatrixView,
    pub fits: bool,
    pub drivers: Vec<ExplainedView>,
}

/// A driver with its candidates.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExplainedView {
    pub driver: DriverName,
    pub choice: Option<PickView>,
    /// What the matrix knows of the version that it leads to.
    pub facts: Option<VersionView>,
    pub candidates: Vec<CandidateView>,
}

/// What was chosen.
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

/// A version, and why it does not fit; null where it does.
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
    /// The smallest change that would make it fit.
    pub helps: Option<String>,
    /// What fits now.
    pub fits: Vec<String>,
    /// What is taken instead.
    pub instead: Option<String>,
}

/// What an operator would do differently with another matrix.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MatrixDiffView {
    pub old: KnownMatrixView,
    pub new: KnownMatrixView,
    /// Whether it would do the same.
    pub same: bool,
    pub versions: Vec<ChangedVersionView>,
    pub choices: Vec<OtherChoiceView>,
    /// What else it would judge by other rules.
    pub rules: Vec<String>,
}

/// A version that is not in both, or is not the same in both.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangedVersionView {
    pub driver: DriverName,
    pub version: DriverVersion,
    pub changes: Vec<String>,
}

/// A choice that would be another one.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OtherChoiceView {
    pub driver: DriverName,
    /// In which clusters: `new`, `installed, Compatible` or `installed, Latest`.
    pub cluster: String,
    pub old: Option<DriverVersion>,
    pub new: Option<DriverVersion>,
    pub platforms: Vec<PlatformView>,
}

/// A platform.
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
