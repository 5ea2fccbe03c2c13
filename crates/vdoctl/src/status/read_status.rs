// SPDX-License-Identifier: Apache-2.0
//! Reads what `status` shows from the cluster (operator, VDOConfig, connections), and converts it into the view for `-o json`.

use super::super::CliError;
use super::super::context::{Context, Deployed, id, now};
use super::super::driver_fields::field;
use super::super::operator_running::{Deployment, Installer, Presence, Sight, Silence};
use super::super::upgrade::pins_of;
use super::super::views::status::{
    ClientView, ConfigView, DoneView, DriverView, KeptView, OperatorView, SilenceView, StatusView, StuckView, VcenterView, WindowView,
};
use super::super::views::version::InstallerView;
use super::next::next;
use super::nodes::nodes_of;
use super::problem::{self, Problem, Severity};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use std::collections::{BTreeMap, BTreeSet};
use vdo::cluster::{ClusterError, Select, Watch, list};
use vdo::reconcile::{self, ReconcileError};
use vdo_api::api::{
    ConditionType, Conditions, DriverStatus, MaintenanceWindow, ManagementState, REVISION_PREFIX, Reason, UPGRADE_PINS, VDOConfig,
    VDOConfigStatus, VsphereCloudConfig,
};
use vdo_core::drivers::{self, short};
use vdo_core::install::operator_version;

/// Everything that `status` shows.
pub(crate) struct Picture {
    pub cluster: String,
    pub server: String,
    pub kubernetes: String,
    pub nodes: Option<i64>,
    pub operator: Option<Operator>,
    /// Whether its Deployment may be seen, if there is one.
    pub operator_visible: bool,
    /// Why it is not known whether an operator acts.
    pub doubt: Option<String>,
    pub config: Option<Config>,
    /// Whether the definitions of our objects are there.
    pub defined: bool,
    pub connections: Vec<VsphereCloudConfig>,
}

/// The operator's own Deployment.
pub(crate) struct Operator {
    pub version: String,
    /// The program that installed it, where one did.
    pub installed_by: Option<InstallerView>,
    /// Why it does not work; `None` when it does.
    pub failure: Option<String>,
    /// What keeps its pods from being ready, as far as it may be seen; `None` when they are.
    pub unready: Option<String>,
}

/// The VDOConfig.
pub(crate) struct Config {
    pub id: String,
    /// Whether the status speaks of the newest specification.
    pub current: bool,
    pub deleting: bool,
    /// That it is being deleted and nothing can finish that, and what to do.
    pub stuck: Option<(String, String)>,
    /// That no operator keeps the status up to date.
    pub silence: Option<Silence>,
    /// The drivers that a person keeps at a revision, with that.
    pub kept: Vec<(String, String)>,
    /// The drivers that an upgrade pins until they are healthy, with the versions.
    pub upgrade_pins: BTreeMap<String, String>,
    /// The drivers of which the specification names the version, with that.
    pub pins: Vec<(String, String)>,
    /// Management is paused.
    pub paused: bool,
    /// Drivers of which the management is paused.
    pub paused_drivers: Vec<String>,
    /// When drivers may change by themselves.
    pub windows: Vec<MaintenanceWindow>,
    pub status: VDOConfigStatus,
}

impl Picture {
    /// Takes it once, so an operator that seems to be away is watched for a few seconds.
    pub(crate) async fn take(context: &Context, deployed: &Deployed) -> Result<Self, CliError> {
        let deleting = matches!(deployed, Deployed::Config(config) if config.metadata.deletion_timestamp.is_some());
        let presence = Presence::find(context, context.namespace()).await?;
        let presence = match deployed {
            Deployed::Config(_) => presence.confirmed(context, deleting).await?,
            _ => presence,
        };
        Self::with(context, deployed, &presence).await
    }

    /// Takes it once more, to be compared with what was seen before.
    pub(crate) async fn again(context: &Context, deployed: &Deployed, sight: &mut Sight) -> Result<Self, CliError> {
        let mut presence = Presence::find(context, context.namespace()).await?;
        sight.compare(&mut presence);
        let doubt = presence.is_doubtful().then(|| presence.failure()).flatten();
        let mut picture = Self::with(context, deployed, &presence).await?;
        picture.doubt = doubt;
        Ok(picture)
    }

    async fn with(context: &Context, deployed: &Deployed, presence: &Presence) -> Result<Self, CliError> {
        let client = &context.ports.client;
        let mut picture = Self {
            cluster: context.name.clone(),
            server: context.server.clone(),
            kubernetes: context.kubernetes.raw().to_owned(),
            nodes: None,
            operator: operator(presence),
            operator_visible: !matches!(presence.deployment, Deployment::Unknown),
            doubt: None,
            config: None,
            defined: !matches!(deployed, Deployed::Nothing),
            connections: Vec::new(),
        };
        if let Deployed::Config(config) = deployed {
            picture.connections = match reconcile::connection_objects(&context.ports.reader, context.namespace()).await {
                // Where the definitions are being deleted, this one may be gone before that of VDOConfig.
                Err(ReconcileError::Cluster(ClusterError::NotServed { .. })) if config.metadata.deletion_timestamp.is_some() => Vec::new(),
                found => found?,
            };
            let mut own = Config::of(config);
            own.stuck = presence.stuck(config, now());
            let confirmed = own.status.last_confirmed.as_ref().map(|at| at.0);
            own.silence = presence.silence(confirmed, now());
            picture.config = Some(own);
        }
        let counted = picture
            .config
            .as_ref()
            .and_then(|config| config.status.nodes.as_ref())
            .map(|nodes| nodes.total);
        picture.nodes = match counted {
            Some(total) => Some(total),
            None => match list(client, &Watch::new("v1", "Node", "", Select::All)).await {
                Ok(nodes) => i64::try_from(nodes.len()).ok(),
                Err(ClusterError::Forbidden { .. }) => None,
                Err(error) => return Err(error.into()),
            },
        };
        Ok(picture)
    }

    /// What is shown of it.
    pub(super) fn view(&self, now: Timestamp) -> StatusView {
        let config = self.config.as_ref();
        let drivers = config.map(|config| config.status.drivers.iter().map(|one| driver(one, config)));
        StatusView {
            deployed: config.is_some(),
            cluster: self.into(),
            client: ClientView {
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            operator: self.operator.as_ref().map(Operator::view),
            operator_visible: self.operator_visible,
            config: config.map(|config| config.view(now)),
            vcenters: self.connections.iter().map(VcenterView::from).collect(),
            drivers: drivers.into_iter().flatten().collect(),
            problems: self.problems().iter().map(Problem::view).collect(),
            judgement: config.map(|_| (&self.judge(false, now)).into()),
            upgradeable: config.and_then(Config::upgradeable).map(Into::into),
            upgrade_available: config.and_then(Config::upgrade_available).map(Into::into),
            defined: self.defined,
            next: config.map(|config| next(self, config, now)).unwrap_or_default(),
            last_drift: config.and_then(|config| config.status.drift.last().cloned()),
        }
    }

    /// What is wrong, worst first, each thing once.
    pub(super) fn problems(&self) -> Vec<Problem> {
        match &self.config {
            // What was published before is not true any more, and nothing renews it.
            Some(config) if config.stuck.is_none() => problem::problems(config, &self.connections),
            _ => Vec::new(),
        }
    }

    /// Whether something has to be done.
    pub(super) fn has_faults(&self) -> bool {
        self.problems().iter().any(|problem| problem.severity == Severity::Fault)
    }
}

/// The drivers that annotations of the VDOConfig keep at a revision.
fn kept(config: &VDOConfig) -> Vec<(String, String)> {
    let of = |(key, revision): (&String, &String)| Some((key.strip_prefix(REVISION_PREFIX)?.to_owned(), revision.clone()));
    config.annotations().iter().filter_map(of).collect()
}

impl Config {
    /// From the object as it is stored.
    pub(crate) fn of(config: &VDOConfig) -> Self {
        let status = config.status.clone().unwrap_or_default();
        let spec = serde_json::to_value(&config.spec).unwrap_or_default();
        let fields = |key: &str| -> Vec<(String, String)> {
            let names: BTreeSet<&str> = drivers::KNOWN
                .iter()
                .map(|driver| driver.name)
                .chain(status.drivers.iter().map(|driver| driver.name.as_str()))
                .collect();
            let of = |name: &str| Some((name.to_owned(), field(&spec, name, key).as_str()?.to_owned()));
            names.into_iter().filter_map(of).collect()
        };
        let paused = |(name, state): (String, String)| (state == "Paused").then_some(name);
        Self {
            id: id(config),
            pins: fields("version"),
            paused: config.spec.management_state == ManagementState::Paused,
            paused_drivers: fields("managementState").into_iter().filter_map(paused).collect(),
            current: status.observed_generation == config.metadata.generation,
            deleting: config.metadata.deletion_timestamp.is_some(),
            stuck: None,
            kept: kept(config),
            upgrade_pins: pins_of(config.annotations().get(UPGRADE_PINS).map_or("", String::as_str)),
            silence: None,
            windows: config.spec.maintenance_windows.clone(),
            status,
        }
    }

    /// Whether a driver keeps its version when a newer one fits: the specification names the version, or a person keeps a revision.
    fn is_pinned(&self, driver: &str) -> bool {
        self.pins.iter().chain(&self.kept).any(|(name, _)| name == driver)
    }

    /// That an upgrade has not ended, and what goes on with it.
    pub(super) fn unfinished_upgrade(&self) -> Option<String> {
        let pins: Vec<String> = self
            .upgrade_pins
            .iter()
            .map(|(driver, version)| format!("{} to {version}", short(driver)))
            .collect();
        let all = (!pins.is_empty()).then(|| pins.join(" and "))?;
        Some(format!(
            "An unfinished upgrade has pinned {all}; `vdoctl upgrade apply` continues the upgrade and lifts the pin."
        ))
    }

    /// What the operator says of the next Kubernetes minor, once it has looked.
    pub(super) fn upgradeable(&self) -> Option<&Condition> {
        Conditions::find(&self.status.conditions, ConditionType::Upgradeable).filter(|c| c.status != "Unknown")
    }

    /// The newer versions that fit and are not installed, if there are any.
    pub(super) fn upgrade_available(&self) -> Option<&Condition> {
        Conditions::find(&self.status.conditions, ConditionType::UpgradeAvailable).filter(|c| c.status == "True")
    }

    /// How the maintenance windows are, where there are any.
    pub(super) fn window(&self) -> Option<&Condition> {
        Conditions::find(&self.status.conditions, ConditionType::MaintenanceWindow)
    }

    fn view(&self, now: Timestamp) -> ConfigView {
        let status = &self.status;
        let ready = Conditions::find(&status.conditions, ConditionType::Ready);
        let kept = self.kept.iter().map(|(driver, revision)| KeptView {
            driver: driver.clone(),
            revision: revision.clone(),
        });
        ConfigView {
            name: self.id.clone(),
            current: self.current,
            deleting: self.deleting,
            upgrade_pins: self.upgrade_pins.clone(),
            kept: kept.collect(),
            stuck: self.stuck.as_ref().map(|(message, remedy)| StuckView {
                message: message.clone(),
                remedy: remedy.clone(),
            }),
            silence: self.silence.as_ref().map(SilenceView::from),
            last_confirmed: status.last_confirmed.clone(),
            health: status.health,
            ready: ready.map_or_else(|| "Unknown".to_owned(), |c| c.status.clone()),
            reason: ready.map(|c| c.reason.clone()),
            message: ready.map(|c| c.message.clone()),
            since: ready.map(|c| c.last_transition_time.clone()),
            matrix: status.matrix.clone(),
            nodes: status.nodes.clone(),
            next_attempt: status.next_attempt.clone(),
            maintenance_window: WindowView::of(&self.windows, now),
        }
    }
}

/// Why a driver is as it is: from its condition, or where it has none from the driver itself.
fn reason_and_message<'a>(driver: &'a DriverStatus, status: &'a VDOConfigStatus) -> (&'a str, &'a str) {
    match drivers::known(&driver.name) {
        Some(known) => Conditions::find(&status.conditions, known.condition)
            .map(|condition| (condition.reason.as_str(), condition.message.as_str()))
            .unwrap_or_default(),
        None => (&driver.reason, &driver.message),
    }
}

/// How a driver is, in one word.
fn state_of(driver: &DriverStatus, status: &VDOConfigStatus) -> &'static str {
    let (reason, _) = reason_and_message(driver, status);
    let progress = Reason::PROGRESS.iter().any(|r| r.as_str() == reason);
    match driver.ready.as_str() {
        "True" => "healthy",
        "False" if !progress => "degraded",
        _ if progress => "progressing",
        _ => "unknown",
    }
}

fn driver(driver: &DriverStatus, config: &Config) -> DriverView {
    let status = &config.status;
    let known = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    DriverView {
        name: driver.name.clone(),
        version: driver.version.clone(),
        running: known(&driver.running),
        pinned: config.is_pinned(&driver.name),
        newest: driver.available.clone(),
        because: driver.because.clone(),
        pods: driver.pods.clone(),
        updated: known(&driver.updated),
        nodes: nodes_of(driver, status).map(|(ready, total)| DoneView { ready, total }),
        ready: driver.ready.clone(),
        state: state_of(driver, status).to_owned(),
        message: reason_and_message(driver, status).1.to_owned(),
        objects: driver.objects,
        chart: driver.chart.clone(),
    }
}

impl Operator {
    fn view(&self) -> OperatorView {
        OperatorView {
            version: self.version.clone(),
            installed_by: self.installed_by.clone(),
            ready: self.failure.is_none(),
            message: self
                .failure
                .is_some()
                .then(|| self.unready.clone())
                .flatten()
                .or_else(|| self.failure.clone()),
        }
    }
}

fn operator(presence: &Presence) -> Option<Operator> {
    let Deployment::Found(deployment) = &presence.deployment else {
        return None;
    };
    Some(Operator {
        version: operator_version(deployment).unwrap_or_else(|| "latest".into()),
        installed_by: presence.installer.as_ref().map(Installer::view),
        failure: presence.deployment.failure(&presence.whole()),
        unready: presence.unready.clone().or_else(|| presence.deployment.failure(&presence.whole())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vdo_api::api::VDOConfigSpec;
    use vdo_core::drivers::CSI;

    #[test]
    fn status_names_the_pins_of_an_upgrade_that_has_not_ended() {
        let mut config = VDOConfig::new("vdo", VDOConfigSpec::default());
        assert_eq!(Config::of(&config).unfinished_upgrade(), None);
        let pins = "vsphere-cpi=1.34.0,vsphere-csi=3.7.3".to_owned();
        config.annotations_mut().insert(UPGRADE_PINS.to_owned(), pins);
        let said = Config::of(&config).unfinished_upgrade();
        assert_eq!(
            said.as_deref(),
            Some(
                "An unfinished upgrade has pinned CPI to 1.34.0 and CSI to 3.7.3; `vdoctl upgrade apply` continues the upgrade and lifts the pin."
            )
        );
    }

    /// What the condition says in words, JSON says in fields: from the same function, at the same time.
    #[test]
    fn status_json_says_which_maintenance_window_is_open_or_next() {
        let view = |schedules: &[&str], now: &str| {
            let windows: Vec<_> = schedules
                .iter()
                .map(|schedule| json!({"schedule": schedule, "duration": "2h"}))
                .collect();
            let spec = serde_json::from_value(json!({ "maintenanceWindows": windows })).expect("a specification");
            let config = Config::of(&VDOConfig::new("vdo", spec));
            serde_json::to_value(config.view(now.parse().expect("a time"))).expect("a document")["maintenanceWindow"].take()
        };
        let night = "0 2 * * *";
        let window = "\"0 2 * * *\" in UTC";
        assert_eq!(view(&[], "2026-01-01T00:00:00Z"), json!(null));
        assert_eq!(
            view(&[night], "2026-01-01T00:00:00Z"),
            json!({"open": false, "window": window, "opens": "2026-01-01T02:00:00Z", "until": null, "error": null})
        );
        assert_eq!(
            view(&[night], "2026-01-01T03:00:00Z"),
            json!({"open": true, "window": window, "opens": null, "until": "2026-01-01T04:00:00Z", "error": null})
        );
        let broken = view(&[night, "0 2 30 2 *"], "2026-01-01T03:00:00Z");
        assert_eq!((&broken["open"], &broken["window"]), (&json!(null), &json!(null)));
        let error = broken["error"].as_str().expect("an error");
        assert!(
            error.contains("spec.maintenanceWindows[1]") && error.contains("no time within the next four years"),
            "{error}"
        );
    }

    /// Scripts read it: a change here is a change of vdoctl/v1.
    #[test]
    fn status_json_driver_shows_wanted_and_running_version() {
        let all = |running: &str| DriverStatus {
            name: CSI.into(),
            version: "3.7.3".into(),
            running: running.into(),
            available: "3.7.3".into(),
            chart: "sha256:0".into(),
            objects: 17,
            pods: "2/5".into(),
            ready: "False".into(),
            because: "newest".into(),
            ..DriverStatus::default()
        };
        let config = Config::of(&VDOConfig::new("vdo", VDOConfigSpec::default()));
        let reported = |running: &str| driver(&all(running), &config);
        let keys = [
            "name", "version", "running", "pinned", "newest", "because", "pods", "updated", "nodes", "ready", "state", "message",
            "objects", "chart",
        ];
        let document = serde_json::to_value(reported("3.6.3")).expect("a document");
        assert_eq!(
            document.as_object().map(|o| o.keys().cloned().collect()),
            Some(keys.map(str::to_owned).to_vec())
        );
        for (running, expected) in [("3.6.3", Some("3.6.3")), ("3.7.3", Some("3.7.3")), ("", None)] {
            let reported = reported(running);
            assert_eq!((reported.version.as_str(), reported.running.as_deref()), ("3.7.3", expected));
        }
    }
}
