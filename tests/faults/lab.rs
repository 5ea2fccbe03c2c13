// SPDX-License-Identifier: Apache-2.0
//! A cluster, the operator behind the proxy, and one undisturbed or disturbed run of a scenario.

use crate::common::{Bed, GUEST, NS, PATIENCE, condition, name};
use crate::oracle::{State, nothing_twice};
use crate::points::{Mode, Point};
use anyhow::{Context, Result};
use kube::api::DeleteParams;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use vdo_testbed::{Act, Call, Handled, NodeOptions, Probe, Proxy, until};

/// Without a write for this long, the operator has nothing more to say.
const QUIET: Duration = Duration::from_millis(150);

pub struct Lab {
    pub bed: Bed,
    pub proxy: Proxy,
}

/// A change that the administrator makes, and the state in which it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// The first VDOConfig of a cluster with initialised nodes.
    Install,
    /// The VDOConfig is deleted.
    Delete,
    /// The drivers get other values.
    Configure,
    /// And their old ones.
    ConfigureBack,
    /// The cloud provider is no longer wanted.
    Narrow,
    /// And wanted again.
    Widen,
    /// The CSI driver gets a newer version.
    Upgrade,
    /// And its old one.
    Downgrade,
    /// A node comes that waits for the cloud provider.
    Join,
    /// And goes.
    Leave,
    /// The VDOConfig is deleted, the drivers stay.
    Release,
    /// A VDOConfig meets drivers that are there.
    Adopt,
}

/// What a run led to.
pub struct Run {
    pub state: State,
    /// How many writes the operator sent, kills included.
    pub writes: usize,
    /// How many requests of any kind it sent.
    pub requests: usize,
    /// Whether the point was reached: a run may need fewer writes than the one they were counted in.
    pub reached: bool,
    pub took: Duration,
}

impl Lab {
    /// A cluster with initialised nodes and the operator running behind the proxy; nothing is installed.
    pub async fn start() -> Result<Self> {
        let mut bed = Bed::start().await?;
        let proxy = Proxy::start(&bed.cluster).await?;
        bed.lead_through(&proxy)?;
        bed.start_operator().await?;
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        bed.apply(&bed.connection("vc1")).await?;
        Ok(Self { bed, proxy })
    }

    /// Runs a scenario, disturbed at a point or not, from the state that is there.
    ///
    /// # Errors
    /// When it does not come to its end, or something was created or deleted twice.
    pub async fn run(&mut self, scenario: Scenario, point: Option<Point>) -> Result<Run> {
        let done = self.run_inner(scenario, point).await;
        done.with_context(|| format!("{scenario:?} {point:?}; {}", self.last_words()))
    }

    async fn run_inner(&mut self, scenario: Scenario, point: Option<Point>) -> Result<Run> {
        let begun = Instant::now();
        match point {
            Some(point) => self.proxy.begin(point.judge()),
            None => self.proxy.begin(|_| Act::Pass),
        }
        self.act(scenario).await?;
        if point.is_some_and(|point| point.mode != Mode::Lost) {
            self.killed_or_done(scenario).await?;
        }
        self.end(scenario, begun).await
    }

    /// Runs a scenario while the proxy follows its rules.
    ///
    /// # Errors
    /// When it does not come to its end, or something was created or deleted twice.
    pub async fn run_judged(&mut self, scenario: Scenario, judge: impl Fn(&Call) -> Act + Send + Sync + 'static) -> Result<Run> {
        let begun = Instant::now();
        self.proxy.begin(judge);
        self.act(scenario).await?;
        self.end(scenario, begun).await
    }

    async fn end(&self, scenario: Scenario, begun: Instant) -> Result<Run> {
        self.done(scenario).await?;
        self.quiet().await?;
        let handled = self.proxy.handled();
        nothing_twice(&handled)?;
        Ok(Run {
            state: State::of(&self.bed).await?,
            writes: self.proxy.writes(),
            requests: handled.len(),
            reached: handled.iter().any(|h| h.act != Act::Pass),
            took: begun.elapsed(),
        })
    }

    /// An operator that has published nothing yet. It publishes an event once, and its later writes have other numbers.
    pub async fn restart(&mut self) -> Result<()> {
        self.proxy.begin(|_| Act::Pass);
        self.bed.kill_operator();
        self.bed.start_operator().await?;
        self.quiet().await
    }

    /// What the administrator does.
    pub async fn act(&self, scenario: Scenario) -> Result<()> {
        let bed = &self.bed;
        let with = |spec: Value| bed.config(spec);
        match scenario {
            Scenario::Narrow => bed.apply(&with(json!({"cloudProvider": {"managementState": "Removed"}}))).await,
            Scenario::Install | Scenario::ConfigureBack | Scenario::Widen => bed.apply(&with(json!({}))).await,
            Scenario::Adopt => bed.apply(&with(json!({"deletionPolicy": "Orphan"}))).await,
            Scenario::Configure => {
                bed.apply(&with(
                    json!({"cloudProvider": {}, "storageProvider": {"clusterDistribution": "Other"}}),
                ))
                .await
            }
            Scenario::Upgrade => {
                bed.apply(&with(json!({"cloudProvider": {}, "storageProvider": {"version": NEW}})))
                    .await
            }
            Scenario::Downgrade => {
                bed.apply(&with(json!({"cloudProvider": {}, "storageProvider": {"version": OLD}})))
                    .await
            }
            Scenario::Delete | Scenario::Release => bed.delete("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await,
            Scenario::Join => bed.cluster.add_node(NodeOptions::worker(GUEST.0).uninitialized()).await,
            Scenario::Leave => {
                bed.delete("v1", "Node", "", GUEST.0).await?;
                self.bury_pods(GUEST.0).await
            }
        }
    }

    /// Deletes the pods of a node that is gone. The controllers take a minute for it, and count them until then.
    async fn bury_pods(&self, node: &str) -> Result<()> {
        for pod in self.bed.list("v1", "Pod", "").await? {
            if pod["spec"]["nodeName"] == node {
                let text = |key: &str| pod["metadata"][key].as_str().unwrap_or_default();
                let api = self.bed.api("v1", "Pod", text("namespace"));
                match api.delete(text("name"), &DeleteParams::default().grace_period(0)).await {
                    Err(error) if !matches!(&error, kube::Error::Api(status) if status.code == 404) => return Err(error.into()),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// A DaemonSet that counts more nodes than there are: its controller has not seen yet that one is gone.
    async fn counts_gone_node(&self, nodes: usize) -> Result<Option<String>> {
        let sets = self.bed.list("apps/v1", "DaemonSet", "app.kubernetes.io/managed-by=vdo").await?;
        let counts = |set: &Value| set["status"]["desiredNumberScheduled"].as_u64() > u64::try_from(nodes).ok();
        Ok(sets
            .iter()
            .find(|set| counts(set))
            .map(|set| format!("{} counts more than {nodes} nodes", name(set))))
    }

    /// Waits for the point; where the scenario ends before, that is the end.
    async fn killed_or_done(&mut self, scenario: Scenario) -> Result<()> {
        let stopped = {
            let ends = async {
                self.done(scenario).await?;
                self.quiet().await
            };
            tokio::select! {
                stopped = self.proxy.stopped(PATIENCE) => { stopped?; true }
                ended = ends => { ended?; self.proxy.is_stopped() }
            }
        };
        if stopped {
            self.proxy.stopped(PATIENCE).await?;
            self.bed.kill_operator();
            self.proxy.resume();
            self.bed.start_operator().await?;
        }
        Ok(())
    }

    /// Waits for the end of a scenario, as the administrator sees it.
    pub async fn done(&self, scenario: Scenario) -> Result<()> {
        match scenario {
            Scenario::Delete | Scenario::Release => {
                until("the VDOConfig to be gone", PATIENCE, async || {
                    let config = self.bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
                    Ok(Probe::when(config == Value::Null, condition(&config, "Ready")))
                })
                .await
            }
            _ => {
                let nodes = self.bed.list("v1", "Node", "").await?.len();
                until("VDOConfig vdo to be ready and its inventory narrowed", PATIENCE, async || {
                    let config = self.bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
                    let ready = condition(&config, "Ready");
                    let current = config["status"]["observedGeneration"] == config["metadata"]["generation"];
                    if !current || ready["status"] != "True" {
                        return Ok(Probe::not_yet(ready));
                    }
                    if config["status"]["nodes"]["total"] != nodes {
                        return Ok(Probe::not_yet(&config["status"]["nodes"]));
                    }
                    if let Some(set) = self.counts_gone_node(nodes).await? {
                        return Ok(Probe::not_yet(set));
                    }
                    // What may be upgraded to depends on the machines of the nodes, which are looked for meanwhile.
                    let drivers = config["status"]["drivers"].to_string();
                    if drivers.contains("is not known") {
                        let connection = self.bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
                        return Ok(Probe::not_yet(format!("{drivers}, connection: {}", connection["status"])));
                    }
                    let map = self.bed.state().await?;
                    let objects: Vec<Value> = serde_json::from_str(map["data"]["objects"].as_str().unwrap_or("[]"))?;
                    let narrowed = !objects.is_empty() && objects.iter().all(|o| o["uid"].is_string());
                    Ok(Probe::when(narrowed, "the inventory lacks UIDs"))
                })
                .await
            }
        }
    }

    /// Waits until the operator has not written for a while.
    pub async fn quiet(&self) -> Result<()> {
        let mut seen = (self.proxy.writes(), Instant::now());
        until("the operator to be quiet", PATIENCE, async || {
            let now = self.proxy.writes();
            if now != seen.0 {
                seen = (now, Instant::now());
            }
            Ok(Probe::when(
                seen.1.elapsed() >= QUIET || self.proxy.is_stopped(),
                format!("{now} writes"),
            ))
        })
        .await
    }

    /// The end of the operator's log, for messages: what went wrong once may not go wrong again.
    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.bed.operator_log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        format!("the operator said last:\n{}", lines[lines.len().saturating_sub(80)..].join("\n"))
    }

    /// The writes of the last run, for messages.
    pub fn trail(&self) -> String {
        let line = |h: &Handled| format!("{:>3} {} {:?} {:?}", h.call.write.unwrap_or(0), h.call.line(), h.act, h.code);
        let all = self.proxy.handled();
        all.iter().filter(|h| h.call.writes()).map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Two versions of the CSI driver that fit the cluster.
const OLD: &str = "3.6.3";
const NEW: &str = "3.7.3";
