// SPDX-License-Identifier: Apache-2.0
//! A cluster with both drivers, whose platform changes step by step.

use super::matrix::Matrix;
use crate::common::{Bed, GUEST, NODES, NS, PATIENCE, condition};
use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use vdo_testbed::{Act, ClusterOptions, Probe, Proxy, VcenterOptions, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const OWNED: &str = "app.kubernetes.io/managed-by=vdo,vdo.vmware.com/driver";
/// How long the CPI may take to follow a minor, from when the API server is back.
const FOLLOWS: Duration = Duration::from_secs(90);
/// How long an older version is doubted.
const DOUBTED: Duration = Duration::from_secs(30);
/// How often the API server may be asked for its version: once in half a minute.
const QUESTIONS: usize = 5;

/// What changes at once.
pub enum Change {
    /// The API server is this version from then on.
    Kubernetes(&'static str),
    /// The same, but no watch sees it: only the kubelet of a node changes. Behind a load balancer alone.
    Unseen(&'static str),
    /// The vCenter is ended and comes back as this version.
    Vcenter(&'static str),
    /// A part of the specification.
    Spec(Value),
    /// The versions of the CSI driver that the matrix has withdrawn from then on.
    Withdrawn(&'static [&'static str]),
}

/// How the API server becomes another version.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Servers {
    /// It is ended as a crash would end it, and another one starts.
    Restarted,
    /// A load balancer leads to another one: watches end properly, and begin again at once.
    Balanced,
}

/// One transition.
pub struct Step {
    pub changes: Vec<Change>,
    /// The versions of the CPI and of the CSI driver (several: one after the other) and the reason of Ready.
    pub expected: &'static str,
}

pub struct Life {
    bed: Bed,
    balancer: Option<Proxy>,
    matrix: Matrix,
    kubernetes: &'static str,
    vcenter: &'static str,
}

/// What was said before a change of the platform.
struct Prediction {
    /// What `vdoctl matrix resolve --what-if-…` ends with.
    stage: Value,
    /// The condition Upgradeable, where it speaks of this change.
    upgradeable: Option<Value>,
}

/// What runs: workloads by their names and pods by their drivers, with UIDs.
#[derive(Debug, Default, PartialEq)]
struct Running {
    workloads: BTreeMap<String, String>,
    pods: BTreeMap<String, BTreeSet<String>>,
}

impl Life {
    pub async fn begin(servers: Servers, kubernetes: &'static str, vcenter: &'static str, expected: &'static str) -> Result<Self> {
        let matrix = Matrix::new()?;
        let cluster = ClusterOptions {
            reported_version: Some(kubernetes.into()).filter(|_| servers == Servers::Restarted),
            ..ClusterOptions::default()
        };
        let simulated = VcenterOptions {
            version: vcenter.into(),
            ..VcenterOptions::with_vms(NODES.into_iter().chain([GUEST]))
        };
        let mut bed = Bed::start_on(cluster, simulated).await?;
        // A flag lives as long as the tests.
        bed.flags = vec![("matrix", Box::leak(matrix.path().into_boxed_str())), ("connection-interval", "2s")];
        let balancer = match servers {
            Servers::Restarted => None,
            Servers::Balanced => Some(Proxy::start(&bed.cluster).await?),
        };
        if let Some(balancer) = &balancer {
            balancer.report_version(kubernetes);
            bed.lead_through(balancer)?;
        }
        bed.start_operator().await?;
        bed.apply_samples().await?;
        // Else a pin of one driver would leave the other one out.
        let both = json!({"spec": {"cloudProvider": {}, "storageProvider": {}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", both).await?;
        let life = Self {
            bed,
            balancer,
            matrix,
            kubernetes,
            vcenter,
        };
        life.until(expected, PATIENCE).await?;
        Ok(life)
    }

    /// Takes every step, and says which one did not lead where it should.
    pub async fn live(&mut self, steps: &[Step]) -> Result<()> {
        for (at, step) in steps.iter().enumerate() {
            self.take(step).await.with_context(|| {
                format!(
                    "step {} to {:?} on {} with {}",
                    at + 1,
                    step.expected,
                    self.kubernetes,
                    self.vcenter
                )
            })?;
        }
        Ok(())
    }

    async fn take(&mut self, step: &Step) -> Result<()> {
        let before = self.running().await?;
        let versions = self.versions().await?;
        let prediction = self.predict(&step.changes).await?;
        let log = std::fs::read_to_string(self.bed.operator_log())?.len();
        let patience = self.patience(&step.changes);
        if let Some(balancer) = &self.balancer {
            balancer.begin(|_| Act::Pass);
        }
        for change in &step.changes {
            self.make(change).await?;
        }
        self.until(step.expected, patience).await?;
        let questions = self
            .balancer
            .iter()
            .flat_map(Proxy::handled)
            .filter(|handled| handled.call.resource.is_empty());
        let questions = questions.count();
        ensure!(questions <= QUESTIONS, "the API server was asked for its version {questions} times");
        let after = self.running().await?;
        for (workload, uid) in &before.workloads {
            ensure!(
                after.workloads.get(workload) == Some(uid),
                "{workload} was recreated, or is no longer there"
            );
        }
        let now = self.versions().await?;
        for (driver, version) in &versions {
            if now.get(driver) == Some(version) {
                ensure!(
                    after.pods.get(driver) == before.pods.get(driver),
                    "pods of {driver} {version} were replaced"
                );
            }
        }
        if let Some(prediction) = prediction {
            self.judge(&prediction, &now).await?;
        }
        self.took_steps(step.expected, log)
    }

    fn patience(&self, changes: &[Change]) -> Duration {
        let to = changes.iter().find_map(|change| match change {
            Change::Kubernetes(version) | Change::Unseen(version) => Some(minor(version)),
            _ => None,
        });
        match to {
            Some(to) if to < minor(self.kubernetes) => DOUBTED + FOLLOWS,
            Some(_) => FOLLOWS,
            None => PATIENCE,
        }
    }

    async fn make(&mut self, change: &Change) -> Result<()> {
        let bed = &mut self.bed;
        match change {
            Change::Kubernetes(version) => {
                self.kubernetes = version;
                match &self.balancer {
                    None => bed.cluster.report_version(version).await,
                    Some(balancer) => {
                        balancer.report_version(version);
                        Ok(())
                    }
                }
            }
            Change::Unseen(version) => {
                self.kubernetes = version;
                let balancer = self.balancer.as_ref().context("a load balancer")?;
                balancer.report_version_to_questions(version);
                let kubelet = json!({"status": {"nodeInfo": {"kubeletVersion": version}}});
                let nodes = bed.api("v1", "Node", "");
                nodes
                    .patch_status(NODES[0].0, &PatchParams::default(), &Patch::Merge(kubelet))
                    .await?;
                Ok(())
            }
            Change::Vcenter(version) => {
                self.vcenter = version;
                bed.vcenter.report_version(version).await
            }
            Change::Spec(spec) => bed.merge(VDO, "VDOConfig", NS, "vdo", json!({"spec": spec})).await,
            Change::Withdrawn(versions) => {
                let version = self.matrix.withdraw(versions)?;
                let look = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": version.to_string()}}});
                bed.merge(VDO, "VDOConfig", NS, "vdo", look).await?;
                until("the matrix to be used", PATIENCE, async || {
                    let used = bed.status().await?["matrix"]["version"].clone();
                    Ok(Probe::when(used == version, used))
                })
                .await
            }
        }
    }

    /// Waits until the status speaks of the platform as it is, and says what is expected.
    async fn until(&self, expected: &str, patience: Duration) -> Result<()> {
        let (bed, mut words) = (&self.bed, expected.split(' '));
        let mut word = || words.next().unwrap_or_default();
        let (cpi, csi, reason) = (word(), word(), word());
        let csi = csi.rsplit(',').next().unwrap_or_default();
        let log = bed.operator_log();
        until(expected, patience, async || {
            let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
            let status = &config["status"];
            let ready = condition(&config, "Ready");
            let current = status["observedGeneration"] == config["metadata"]["generation"]
                && status["kubernetes"]["version"] == self.kubernetes
                && status["vcenters"][0]["version"] == self.vcenter;
            let is = |name: &str, version: &str| {
                let drivers = status["drivers"].as_array().into_iter().flatten();
                let driver = drivers.into_iter().find(|driver| driver["name"] == name);
                driver.is_some_and(|driver| driver["version"] == version && driver["running"] == version && driver["ready"] == "True")
            };
            let there = current && is("vsphere-cpi", cpi) && is("vsphere-csi", csi) && ready["reason"] == reason;
            let missing = || format!("{status:#}; log {}", log.display());
            Ok(if there { Probe::Ready(()) } else { Probe::not_yet(missing()) })
        })
        .await
    }

    async fn versions(&self) -> Result<BTreeMap<String, String>> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let status = self.bed.status().await?;
        let drivers = status["drivers"].as_array().context("drivers")?;
        Ok(drivers
            .iter()
            .map(|driver| (text(&driver["name"]), text(&driver["version"])))
            .collect())
    }

    async fn running(&self) -> Result<Running> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut running = Running::default();
        for kind in ["Deployment", "DaemonSet"] {
            for object in self.bed.list("apps/v1", kind, OWNED).await? {
                let name = text(&object["metadata"]["name"]);
                running.workloads.insert(format!("{kind} {name}"), text(&object["metadata"]["uid"]));
                let driver = text(&object["metadata"]["labels"]["vdo.vmware.com/driver"]);
                for pod in self.bed.list("v1", "Pod", &selector(&object)).await? {
                    running
                        .pods
                        .entry(driver.clone())
                        .or_default()
                        .insert(text(&pod["metadata"]["uid"]));
                }
            }
        }
        Ok(running)
    }

    /// Asks what these changes of the platform will do; `None` where the platform stays.
    async fn predict(&self, changes: &[Change]) -> Result<Option<Prediction>> {
        let mut flags = Vec::new();
        let mut upgradeable = None;
        for change in changes {
            match change {
                Change::Kubernetes(version) | Change::Unseen(version) => {
                    flags.extend(["--what-if-kubernetes", version]);
                    if minor(version) == minor(self.kubernetes) + 1 && changes.len() == 1 {
                        let config = self.bed.get(VDO, "VDOConfig", NS, "vdo").await?;
                        upgradeable = Some(condition(&config, "Upgradeable"));
                    }
                }
                Change::Vcenter(version) => flags.extend(["--what-if-vcenter", version]),
                Change::Spec(_) | Change::Withdrawn(_) => {}
            }
        }
        if flags.is_empty() {
            return Ok(None);
        }
        let path = self.matrix.path();
        let today = [
            "matrix",
            "resolve",
            "--matrix",
            &path,
            "--kubernetes",
            self.kubernetes,
            "-o",
            "json",
        ];
        let arguments = [&today, &flags[..]].concat();
        let (_, out, err) = self.bed.vdoctl(&arguments)?;
        let outlook: Value = serde_json::from_str(&out).with_context(|| err)?;
        let stage = outlook["stages"]
            .as_array()
            .and_then(|stages| stages.last())
            .context("a stage")?
            .clone();
        Ok(Some(Prediction { stage, upgradeable }))
    }

    /// Holds a prediction against what has happened.
    async fn judge(&self, prediction: &Prediction, versions: &BTreeMap<String, String>) -> Result<()> {
        let Prediction { stage, upgradeable } = prediction;
        ensure!(
            stage["runs"] == json!(versions),
            "predicted was {stage:#}, and there is {versions:?}"
        );
        let config = self.bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        let supported = ["KubernetesSupported", "VSphereSupported"].map(|kind| condition(&config, kind)["status"] == "True");
        let ready = condition(&config, "Ready");
        if let Some(upgradeable) = upgradeable {
            let fits = upgradeable["status"] == "True";
            ensure!(
                fits == (supported[0] && ready["status"] == "True"),
                "Upgradeable was {upgradeable}, and Ready is {ready}, {supported:?}"
            );
            let named = |version: &String| {
                upgradeable["message"]
                    .as_str()
                    .is_some_and(|message| message.contains(&format!(" {version}")))
            };
            ensure!(
                !fits || versions.values().all(named),
                "Upgradeable was {upgradeable}, and there is {versions:?}"
            );
        }
        Ok(())
    }

    /// Whether the operator chose the versions on the way, in their order.
    fn took_steps(&self, expected: &str, since: usize) -> Result<()> {
        let way: Vec<&str> = expected.split(' ').nth(1).unwrap_or_default().split(',').collect();
        if way.len() < 2 {
            return Ok(());
        }
        let log = std::fs::read_to_string(self.bed.operator_log())?;
        let chosen = log[since..]
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|line| line["message"] == "chosen" && line["driver"] == "vsphere-csi")
            .map(|line| line["version"].as_str().unwrap_or_default().to_owned());
        let chosen: Vec<String> = chosen.collect();
        ensure!(chosen == way, "the steps were {chosen:?} instead of {way:?}");
        Ok(())
    }
}

fn minor(version: &str) -> u32 {
    version.split('.').nth(1).and_then(|minor| minor.parse().ok()).unwrap_or_default()
}

fn selector(workload: &Value) -> String {
    let labels = workload["spec"]["selector"]["matchLabels"].as_object();
    let pairs = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    pairs.collect::<Vec<_>>().join(",")
}
