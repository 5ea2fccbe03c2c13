use super::super::CliError;
use super::super::answer::document;
use super::super::args::Global;
use super::super::failure::parts;
use super::super::session::{Deployed, Session, id};
use crate::api::{ConditionType, Conditions, DriverStatus, Reason, VDOConfig, VDOConfigStatus, VsphereCloudConfig};
use crate::cluster::{ClusterError, Select, Watch, get, list};
use crate::health::{Verdict, assess};
use crate::reconcile;
use crate::types::{CPI, CSI, ObjectId};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};

/// The Deployment of the operator, as deploy/ names it.
const OPERATOR: &str = "vdo-operator";

/// Everything that `status` shows.
pub(super) struct Picture {
    pub cluster: String,
    pub server: String,
    pub kubernetes: String,
    pub nodes: Option<i64>,
    pub operator: Option<Operator>,
    pub config: Option<Config>,
    /// Whether the definitions of our objects are there.
    pub defined: bool,
    pub connections: Vec<VsphereCloudConfig>,
}

/// The operator's own Deployment.
pub(super) struct Operator {
    pub version: String,
    /// Why it does not work; `None` when it does.
    pub trouble: Option<String>,
}

/// The VDOConfig.
pub(super) struct Config {
    pub id: String,
    /// Whether the status speaks of the newest specification.
    pub current: bool,
    pub deleting: bool,
    pub status: VDOConfigStatus,
}

/// Something that is not as it should be.
pub(super) struct Problem {
    pub condition: String,
    pub reason: String,
    /// Whether it is only not finished yet.
    pub progress: bool,
    pub known: bool,
    pub message: String,
    pub remedy: String,
}

impl Picture {
    pub(super) async fn take(session: &Session, deployed: &Deployed, global: &Global) -> Result<Self, CliError> {
        let client = &session.world.client;
        let mut picture = Self {
            cluster: session.name.clone(),
            server: session.server.clone(),
            kubernetes: session.kubernetes.raw().to_owned(),
            nodes: None,
            operator: operator(session, global).await?,
            config: None,
            defined: !matches!(deployed, Deployed::Nothing),
            connections: Vec::new(),
        };
        if let Deployed::Config(config) = deployed {
            picture.connections = reconcile::connection_objects(&session.world.reader, &global.namespace).await?;
            picture.config = Some(Config::of(config));
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

    /// The stable form for programs.
    pub(super) fn json(&self) -> Value {
        let config = self.config.as_ref();
        let problems: Vec<Value> = self.problems().iter().map(Problem::json).collect();
        document(
            "Status",
            json!({
                "deployed": config.is_some(),
                "cluster": {"name": self.cluster, "server": self.server, "version": self.kubernetes, "nodes": self.nodes},
                "client": {"version": env!("CARGO_PKG_VERSION")},
                "operator": self.operator.as_ref().map(|o| json!({"version": o.version, "ready": o.trouble.is_none(), "message": o.trouble})),
                "config": config.map(Config::json),
                "vcenters": self.connections.iter().map(vcenter).collect::<Vec<_>>(),
                "drivers": config.map(|c| c.status.drivers.iter().map(|d| driver(d, &c.status)).collect::<Vec<_>>()).unwrap_or_default(),
                "problems": problems,
                "upgradeable": config.and_then(Config::upgradeable).map(|c| json!({"status": c.status, "reason": c.reason, "message": c.message})),
            }),
        )
    }

    /// What is wrong, worst first, each thing once.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let Some(config) = &self.config else { return Vec::new() };
        let quiet = [ConditionType::Reconciling, ConditionType::Stalled, ConditionType::Upgradeable].map(ConditionType::as_str);
        let mut found: Vec<Problem> = Vec::new();
        let own = config
            .status
            .conditions
            .iter()
            .filter(|c| !quiet.contains(&c.type_.as_str()) && c.type_ != "Ready");
        for condition in own.filter(|c| is_problem(c)) {
            let problem = Problem::of(condition);
            let new = |old: &Problem| !old.message.contains(&problem.message) && !problem.message.contains(&old.message);
            if found.iter().all(new) {
                found.push(problem);
            }
        }
        // Ready sums up the others, so it counts only where it has a reason of its own.
        let ready = Conditions::find(&config.status.conditions, ConditionType::Ready).filter(|c| is_problem(c));
        found.extend(ready.filter(|c| found.iter().all(|old| old.reason != c.reason)).map(Problem::of));
        found.sort_by_key(|problem| (problem.progress, !problem.known));
        found
    }
}

impl Config {
    fn of(config: &VDOConfig) -> Self {
        let status = config.status.clone().unwrap_or_default();
        Self {
            id: id(config),
            current: status.observed_generation == config.metadata.generation,
            deleting: config.metadata.deletion_timestamp.is_some(),
            status,
        }
    }

    /// What the operator says of the next Kubernetes minor, once it has looked.
    pub(super) fn upgradeable(&self) -> Option<&Condition> {
        Conditions::find(&self.status.conditions, ConditionType::Upgradeable).filter(|c| c.status != "Unknown")
    }

    fn json(&self) -> Value {
        let ready = Conditions::find(&self.status.conditions, ConditionType::Ready);
        json!({
            "name": self.id,
            "current": self.current,
            "deleting": self.deleting,
            "health": self.status.health,
            "ready": ready.map_or("Unknown", |c| c.status.as_str()),
            "reason": ready.map(|c| &c.reason),
            "message": ready.map(|c| &c.message),
            "since": ready.map(|c| &c.last_transition_time),
            "matrix": self.status.matrix,
            "nodes": self.status.nodes,
            "nextAttempt": self.status.next_attempt,
        })
    }

    /// Since when it is ready or not.
    pub(super) fn since(&self) -> Option<Timestamp> {
        Conditions::find(&self.status.conditions, ConditionType::Ready).map(|c| c.last_transition_time.0)
    }
}

impl Problem {
    fn of(condition: &Condition) -> Self {
        let (message, remedy) = parts(&condition.message);
        Self {
            condition: condition.type_.clone(),
            reason: condition.reason.clone(),
            progress: Reason::PROGRESS
                .iter()
                .any(|r| r.as_str() == condition.reason && *r != Reason::ConnectionNotReady),
            known: condition.status != "Unknown",
            message,
            remedy,
        }
    }

    fn json(&self) -> Value {
        json!({
            "condition": self.condition,
            "reason": self.reason,
            "progress": self.progress,
            "known": self.known,
            "message": self.message,
            "remedy": self.remedy,
        })
    }
}

/// Whether a condition says that something is not as it should be.
fn is_problem(condition: &Condition) -> bool {
    let silent = [Reason::NotRequested.as_str(), Reason::NotChecked.as_str()];
    condition.status != "True" && !silent.contains(&condition.reason.as_str())
}

/// The nodes on which a driver has done its work, of all.
pub(super) fn nodes_of(driver: &str, status: &VDOConfigStatus) -> Option<(i64, i64)> {
    let nodes = status.nodes.as_ref()?;
    match driver {
        CPI => Some((nodes.initialized, nodes.total)),
        CSI => Some((nodes.csi_registered, nodes.total)),
        _ => None,
    }
}

/// The condition of a driver.
fn condition_of<'a>(driver: &str, status: &'a VDOConfigStatus) -> Option<&'a Condition> {
    let kind = match driver {
        CPI => ConditionType::CloudProviderReady,
        CSI => ConditionType::StorageReady,
        _ => return None,
    };
    Conditions::find(&status.conditions, kind)
}

/// How a driver is, in one word.
pub(super) fn state_of(driver: &DriverStatus, status: &VDOConfigStatus) -> &'static str {
    let reason = condition_of(&driver.name, status).map(|c| c.reason.as_str()).unwrap_or_default();
    let progress = Reason::PROGRESS.iter().any(|r| r.as_str() == reason);
    match driver.ready.as_str() {
        "True" => "healthy",
        "False" if !progress => "degraded",
        _ if progress => "progressing",
        _ => "unknown",
    }
}

fn driver(driver: &DriverStatus, status: &VDOConfigStatus) -> Value {
    let nodes = nodes_of(&driver.name, status).map(|(ready, total)| json!({"ready": ready, "total": total}));
    json!({
        "name": driver.name,
        "version": driver.version,
        "running": Some(&driver.running).filter(|version| !version.is_empty()),
        "newest": driver.available,
        "because": driver.because,
        "pods": driver.pods,
        "nodes": nodes,
        "ready": driver.ready,
        "state": state_of(driver, status),
        "message": condition_of(&driver.name, status).map(|c| &c.message),
        "objects": driver.objects,
        "chart": driver.chart,
    })
}

fn vcenter(object: &VsphereCloudConfig) -> Value {
    let status = object.status.clone().unwrap_or_default();
    let ready = Conditions::find(&status.conditions, ConditionType::Ready);
    json!({
        "connection": object.name_any(),
        "server": object.spec.vc_ip,
        "version": status.about.as_ref().map(|a| &a.version),
        "build": status.about.as_ref().map(|a| &a.build),
        "user": status.credential.as_ref().map(|c| &c.user),
        "ready": ready.map_or("Unknown", |c| c.status.as_str()),
        "reason": ready.map(|c| &c.reason),
        "message": ready.map(|c| &c.message),
        "since": ready.map(|c| &c.last_transition_time),
    })
}

/// The operator's Deployment. That it may not be seen is no failure.
async fn operator(session: &Session, global: &Global) -> Result<Option<Operator>, CliError> {
    let id = ObjectId::new("apps", "Deployment", &global.namespace, OPERATOR);
    let found = match get(&session.world.client, "apps/v1", &id).await {
        Err(ClusterError::Forbidden { .. }) => None,
        result => result?,
    };
    Ok(found.map(|deployment| {
        let image = deployment.text("/spec/template/spec/containers/0/image");
        let tag = image
            .rsplit_once('/')
            .map_or(image, |(_, name)| name)
            .split('@')
            .next()
            .unwrap_or_default();
        let trouble = match assess(&deployment).0 {
            Verdict::Current => None,
            Verdict::Waiting(_, message) => Some(message),
        };
        Operator {
            version: tag
                .rsplit_once(':')
                .map_or("latest", |(_, tag)| tag)
                .trim_start_matches('v')
                .to_owned(),
            trouble,
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        };
        let told = |running: &str| driver(&all(running), &VDOConfigStatus::default());
        let keys = [
            "name", "version", "running", "newest", "because", "pods", "nodes", "ready", "state", "message", "objects", "chart",
        ];
        assert_eq!(
            told("3.6.3").as_object().map(|o| o.keys().cloned().collect()),
            Some(keys.map(str::to_owned).to_vec())
        );
        for (running, expected) in [("3.6.3", json!("3.6.3")), ("3.7.3", json!("3.7.3")), ("", Value::Null)] {
            let told = told(running);
            assert_eq!((&told["version"], &told["running"]), (&json!("3.7.3"), &expected));
        }
    }
}
