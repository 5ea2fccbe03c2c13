// SPDX-License-Identifier: Apache-2.0
//! The document of `vdoctl status`. A support bundle holds it, and the screen is drawn from it there too.

use super::super::operator::{Silence, not_running};
use super::super::output::View;
use super::super::status::{Judgement, Picture, Severity};
use super::version::InstallerView;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vdo_api::api::{
    ConditionType, Conditions, DriftStatus, GROUP, Health, MaintenanceWindow, MatrixStatus, NextAttempt, NodesStatus, VsphereCloudConfig,
};
use vdo_core::windows::{Standing, standing};

/// What runs, what is wrong, what to do next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusView {
    /// Whether there is a VDOConfig.
    pub deployed: bool,
    pub cluster: ClusterView,
    pub client: ClientView,
    /// The operator's Deployment, where there is one.
    pub operator: Option<OperatorView>,
    /// Whether that Deployment may be seen.
    #[serde(default = "yes")]
    pub operator_visible: bool,
    /// The VDOConfig, where there is one.
    pub config: Option<ConfigView>,
    pub vcenters: Vec<VcenterView>,
    pub drivers: Vec<DriverView>,
    /// What is wrong, worst first, each thing once.
    pub problems: Vec<ProblemView>,
    pub judgement: Option<JudgementView>,
    /// Whether the drivers fit the next Kubernetes minor, where the operator knows it.
    pub upgradeable: Option<UpgradeableView>,
    /// The newer versions that fit and are not installed, where there are some.
    pub upgrade_available: Option<AvailableView>,
    /// Whether the API server knows the kinds of VDO.
    #[serde(default)]
    pub defined: bool,
    /// What comes next, one sentence or command for each line of the screen.
    #[serde(default)]
    pub next: Vec<String>,
    /// What the operator has repaired last.
    #[serde(default)]
    pub last_drift: Option<DriftStatus>,
}

/// What holds where an older recording does not say it.
fn yes() -> bool {
    true
}

/// The cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ClusterView {
    /// The context of the kubeconfig, or `in-cluster`.
    pub name: String,
    /// The address of the API server.
    pub server: String,
    /// The version of the API server.
    pub version: String,
    /// How many nodes there are, where they may be listed.
    pub nodes: Option<i64>,
}

/// The vdoctl that has looked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ClientView {
    pub version: String,
}

/// The operator's Deployment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OperatorView {
    pub version: String,
    /// The program that installed it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed_by: Option<InstallerView>,
    pub ready: bool,
    /// Why it is not ready.
    pub message: Option<String>,
}

/// The VDOConfig.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigView {
    /// Namespace and name.
    pub name: String,
    /// Whether the status speaks of the newest specification.
    pub current: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The drivers that an upgrade pins until they are healthy, with the versions.
    pub upgrade_pins: BTreeMap<String, String>,
    /// The drivers that a person keeps at a revision.
    pub kept: Vec<KeptView>,
    /// That it is being deleted and nothing can finish that.
    pub stuck: Option<StuckView>,
    /// That no operator keeps the status up to date.
    pub silence: Option<SilenceView>,
    /// When the operator confirmed the status last.
    pub last_confirmed: Option<Time>,
    pub health: Option<Health>,
    /// The status of the condition Ready.
    pub ready: String,
    /// Its reason.
    pub reason: Option<String>,
    /// Its message.
    pub message: Option<String>,
    /// Since when it is so.
    pub since: Option<Time>,
    /// The matrix that the operator decides with.
    pub matrix: Option<MatrixStatus>,
    pub nodes: Option<NodesStatus>,
    pub next_attempt: Option<NextAttempt>,
    /// How the maintenance windows are, where there are any.
    pub maintenance_window: Option<WindowView>,
}

/// The maintenance window that is open, or the next one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WindowView {
    /// Whether one is open; null where the windows cannot be used.
    pub open: Option<bool>,
    /// Which one, by its schedule and its time zone.
    pub window: Option<String>,
    /// When the next one opens, where none is open.
    pub opens: Option<Timestamp>,
    /// Until when one is open.
    pub until: Option<Timestamp>,
    /// Why the windows cannot be used.
    pub error: Option<String>,
}

impl WindowView {
    /// Of the windows of a specification at a time; `None` where there are none.
    pub(crate) fn of(windows: &[MaintenanceWindow], now: Timestamp) -> Option<Self> {
        match standing(windows, now) {
            Ok(standing) => Some(match standing? {
                Standing::Open { window, until } => Self {
                    open: Some(true),
                    window: Some(window),
                    until: Some(until),
                    ..Self::default()
                },
                Standing::Closed { window, opens } => Self {
                    open: Some(false),
                    window: Some(window),
                    opens: Some(opens),
                    ..Self::default()
                },
            }),
            Err(error) => Some(Self {
                error: Some(error.to_string()),
                ..Self::default()
            }),
        }
    }
}

/// A driver that is kept at a revision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct KeptView {
    pub driver: String,
    pub revision: String,
}

/// What is the case, and what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StuckView {
    pub message: String,
    pub remedy: String,
}

/// That no operator keeps the status up to date, and what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SilenceView {
    /// Since when, where that is known.
    pub since: Option<Timestamp>,
    pub message: String,
    pub remedy: String,
}

/// A vSphere connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct VcenterView {
    /// The name of the object.
    pub connection: String,
    /// The address of the vCenter.
    pub server: String,
    pub version: Option<String>,
    pub build: Option<String>,
    /// The account.
    pub user: Option<String>,
    /// The status of the condition Ready.
    pub ready: String,
    /// Its reason.
    pub reason: Option<String>,
    /// Its message.
    pub message: Option<String>,
    /// Since when it is so.
    pub since: Option<Time>,
    /// When the operator looked last.
    pub checked: Option<Time>,
}

/// A driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct DriverView {
    pub name: String,
    /// The desired version.
    pub version: String,
    /// The version that runs.
    pub running: Option<String>,
    /// The newest version that fits.
    pub newest: String,
    /// Why the desired version.
    pub because: String,
    /// The ready pods of all, as `2/5`.
    pub pods: String,
    /// The pods at the newest revision, while they are being replaced.
    pub updated: Option<String>,
    pub nodes: Option<DoneView>,
    /// Whether it is ready: `True`, `False` or `Unknown`.
    pub ready: String,
    /// `healthy`, `progressing`, `degraded` or `unknown`.
    pub state: String,
    pub message: String,
    /// How many objects it has.
    pub objects: i64,
    /// The digest of its chart.
    pub chart: String,
}

/// The nodes on which a driver has done its work, of all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct DoneView {
    pub ready: i64,
    pub total: i64,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ProblemView {
    /// The type of the condition.
    pub condition: String,
    pub reason: String,
    /// The reason of what it follows from, which is its own where it follows from nothing else.
    #[serde(default)]
    pub cause: String,
    /// The command that removes the cause, or leads to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Whether it is only not finished yet.
    pub progress: bool,
    /// Whether it is known.
    pub known: bool,
    /// Whether something has to be done.
    pub fault: bool,
    pub message: String,
}

/// What comes of waiting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct JudgementView {
    /// `ready`, `progressing`, or `person` where nothing goes on before a person acts.
    pub state: String,
    pub message: String,
    /// What helps; absent where it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// The condition Upgradeable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct UpgradeableView {
    pub status: String,
    pub reason: String,
    pub message: String,
}

/// The condition UpgradeAvailable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AvailableView {
    pub reason: String,
    pub message: String,
}

impl View for StatusView {
    const KIND: &'static str = "Status";

    /// A status has several lists; what it is about is one object.
    fn names(&self) -> Option<Vec<String>> {
        let Some(config) = &self.config else {
            return Some(self.drivers.iter().map(|driver| format!("driver/{}", driver.name)).collect());
        };
        let name = config.name.rsplit('/').next().unwrap_or(&config.name);
        Some(vec![format!("vdoconfig.{GROUP}/{name}")])
    }
}

impl StatusView {
    /// Whether something has to be done.
    pub(crate) fn has_faults(&self) -> bool {
        self.problems.iter().any(|problem| problem.fault)
    }
}

impl ProblemView {
    /// Whether it follows from another one that is listed.
    pub(crate) fn follows(&self, other: &Self) -> bool {
        self.cause != self.reason && self.cause == other.reason && self.condition != other.condition && self.message != other.message
    }

    /// Whether it is shown below another one of these.
    pub(crate) fn is_below(&self, all: &[Self]) -> bool {
        all.iter().any(|other| self.follows(other))
    }

    pub(crate) fn severity(&self) -> Severity {
        match (self.fault, self.known, self.progress) {
            (true, ..) => Severity::Fault,
            (_, false, _) => Severity::Unknown,
            (_, _, true) => Severity::Progress,
            _ => Severity::Notice,
        }
    }
}

impl SilenceView {
    /// What happened, as the beginning of a sentence.
    pub(crate) fn what(&self, now: Timestamp) -> String {
        not_running(self.since, &self.message, now)
    }
}

impl From<&Silence> for SilenceView {
    fn from(silence: &Silence) -> Self {
        Self {
            since: silence.since,
            message: silence.why.clone(),
            remedy: silence.remedy.clone(),
        }
    }
}

impl From<&Judgement> for JudgementView {
    fn from(judgement: &Judgement) -> Self {
        let of = |state: &str, message: String, remedy: Option<&String>| Self {
            state: state.to_owned(),
            message,
            remedy: remedy.cloned(),
        };
        match judgement {
            Judgement::Ready(message) => of("ready", message.clone(), None),
            Judgement::Progress { waits, remedy, .. } => of("progressing", waits.join("; "), Some(remedy)),
            Judgement::Person(need) => of("person", need.what.clone(), Some(&need.remedy)),
        }
    }
}

impl From<&VsphereCloudConfig> for VcenterView {
    fn from(object: &VsphereCloudConfig) -> Self {
        let status = object.status.clone().unwrap_or_default();
        let ready = Conditions::find(&status.conditions, ConditionType::Ready);
        let (version, build) = status.about.map(|about| (about.version, about.build)).unzip();
        Self {
            connection: object.name_any(),
            server: object.spec.vc_ip.clone(),
            version,
            build,
            user: status.credential.map(|credential| credential.user),
            ready: ready.map_or_else(|| "Unknown".to_owned(), |c| c.status.clone()),
            reason: ready.map(|c| c.reason.clone()),
            message: ready.map(|c| c.message.clone()),
            since: ready.map(|c| c.last_transition_time.clone()),
            checked: status.probes.and_then(|probes| probes.last),
        }
    }
}

impl From<&Condition> for UpgradeableView {
    fn from(condition: &Condition) -> Self {
        Self {
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        }
    }
}

impl From<&Condition> for AvailableView {
    fn from(condition: &Condition) -> Self {
        Self {
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        }
    }
}

impl From<&Picture> for ClusterView {
    fn from(picture: &Picture) -> Self {
        Self {
            name: picture.cluster.clone(),
            server: picture.server.clone(),
            version: picture.kubernetes.clone(),
            nodes: picture.nodes,
        }
    }
}
