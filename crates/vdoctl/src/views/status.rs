// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML document of `vdoctl status` for one cluster: `Status`. `status --from` prints the screen from it.

use super::super::operator_running::{Silence, not_running};
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
use vdo_core::window_schedule::{Standing, standing};

/// The state of VDO in a cluster, with the problems and the next steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatusView {
    /// Whether there is a VDOConfig.
    pub deployed: bool,
    pub cluster: ClusterView,
    pub client: ClientView,
    /// The operator's Deployment; null if there is none or the user may not read it.
    pub operator: Option<OperatorView>,
    /// Whether the user may read the operator's Deployment.
    #[serde(default = "yes")]
    pub operator_visible: bool,
    /// The VDOConfig; null if there is none.
    pub config: Option<ConfigView>,
    pub vcenters: Vec<VcenterView>,
    pub drivers: Vec<DriverView>,
    /// The problems, the worst first, each only once.
    pub problems: Vec<ProblemView>,
    pub judgement: Option<JudgementView>,
    /// Whether the drivers fit the next Kubernetes minor; null if this is unknown.
    pub upgradeable: Option<UpgradeableView>,
    /// The newer versions that fit and are not installed; null if there are none.
    pub upgrade_available: Option<AvailableView>,
    /// Whether the API server knows the kinds of VDO.
    #[serde(default)]
    pub defined: bool,
    /// What comes next, one sentence or command for each line of the screen.
    #[serde(default)]
    pub next: Vec<String>,
    /// The drift that the operator repaired last.
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
    /// The number of nodes; null if the user may not list the nodes.
    pub nodes: Option<i64>,
}

/// The vdoctl that made this document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ClientView {
    pub version: String,
}

/// The operator's Deployment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OperatorView {
    pub version: String,
    /// The program that installed the operator; absent if the operator was installed without such a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed_by: Option<InstallerView>,
    pub ready: bool,
    /// Why the operator is not ready.
    pub message: Option<String>,
}

/// The VDOConfig.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigView {
    /// Namespace and name.
    pub name: String,
    /// Whether the status is about the newest specification.
    pub current: bool,
    /// Whether the VDOConfig is being deleted.
    pub deleting: bool,
    /// The drivers that an upgrade pins until they are healthy, with the versions.
    pub upgrade_pins: BTreeMap<String, String>,
    /// The drivers that a user keeps at a revision.
    pub kept: Vec<KeptView>,
    /// The problem and its remedy, if the VDOConfig is being deleted and nothing can complete the deletion.
    pub stuck: Option<StuckView>,
    /// The problem and its remedy, if no operator keeps the status up to date.
    pub silence: Option<SilenceView>,
    /// When the operator confirmed the status last.
    pub last_confirmed: Option<Time>,
    pub health: Option<Health>,
    /// The status of the condition Ready.
    pub ready: String,
    /// The reason of the condition Ready.
    pub reason: Option<String>,
    /// The message of the condition Ready.
    pub message: Option<String>,
    /// Since when the condition Ready has this status.
    pub since: Option<Time>,
    /// The matrix that the operator uses.
    pub matrix: Option<MatrixStatus>,
    pub nodes: Option<NodesStatus>,
    pub next_attempt: Option<NextAttempt>,
    /// The maintenance window that is open, or the next one; null if there are no windows.
    pub maintenance_window: Option<WindowView>,
}

/// The maintenance window that is open, or the next one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WindowView {
    /// Whether a window is open; null if the windows cannot be used.
    pub open: Option<bool>,
    /// The schedule and the time zone of the open window, or of the next window.
    pub window: Option<String>,
    /// When the next window opens; null if a window is open.
    pub opens: Option<Timestamp>,
    /// When the open window closes; null if no window is open.
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

/// A problem, and what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StuckView {
    pub message: String,
    pub remedy: String,
}

/// Why no operator keeps the status up to date, and what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SilenceView {
    /// Since when no operator keeps the status up to date; null if this is unknown.
    pub since: Option<Timestamp>,
    pub message: String,
    pub remedy: String,
}

/// A vSphere connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct VcenterView {
    /// The name of the connection.
    pub connection: String,
    /// The address of the vCenter.
    pub server: String,
    pub version: Option<String>,
    pub build: Option<String>,
    /// The user name of the account.
    pub user: Option<String>,
    /// The status of the condition Ready.
    pub ready: String,
    /// The reason of the condition Ready.
    pub reason: Option<String>,
    /// The message of the condition Ready.
    pub message: Option<String>,
    /// Since when the condition Ready has this status.
    pub since: Option<Time>,
    /// When the operator checked the vCenter last.
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
    /// Whether the specification names the version, or a user keeps the driver at a revision.
    #[serde(default)]
    pub pinned: bool,
    /// The newest version that fits.
    pub newest: String,
    /// Why this version is desired.
    pub because: String,
    /// The number of ready pods and the number of all pods, for example `2/5`.
    pub pods: String,
    /// The number of pods at the newest revision and the number of desired pods, while pods are being replaced.
    pub updated: Option<String>,
    pub nodes: Option<DoneView>,
    /// Whether the driver is ready: `True`, `False` or `Unknown`.
    pub ready: String,
    /// `healthy`, `progressing`, `degraded` or `unknown`.
    pub state: String,
    pub message: String,
    /// The number of objects of the driver.
    pub objects: i64,
    /// The digest of the chart of the driver.
    pub chart: String,
}

/// The number of nodes on which a driver has done its work, and the number of all nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct DoneView {
    pub ready: i64,
    pub total: i64,
}

/// A problem, an unknown state, work in progress, or a remark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ProblemView {
    /// The type of the condition.
    pub condition: String,
    pub reason: String,
    /// The reason of the problem that causes this problem; the own reason if no other problem causes this problem.
    #[serde(default)]
    pub cause: String,
    /// The command that removes the cause, or that shows more about the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Whether the operator is still working on the problem.
    pub progress: bool,
    /// Whether the state is known.
    pub known: bool,
    /// Whether the problem has to be fixed.
    pub fault: bool,
    pub message: String,
}

/// Whether the installation is ready, and whether waiting is enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct JudgementView {
    /// `ready`, `progressing`, or `person` if the operator can continue only after a person has acted.
    pub state: String,
    pub message: String,
    /// What to do; absent if the installation is ready.
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
