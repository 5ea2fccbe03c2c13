//! Watches the operator install the drivers, as an administrator can: in the VDOConfig's status, on nodes and pods.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use serde_json::Value;

use super::screen::Screen;
use super::show::NAMESPACE;
use crate::nodes::UNINITIALIZED;
use crate::process::tail;
use crate::wait::Probe;

/// How long the operator may call itself stalled before it is believed.
const STALLED: Duration = Duration::from_secs(15);

pub(super) struct Watch<'a> {
    dir: &'a Path,
    configs: Api<DynamicObject>,
    nodes: Api<Node>,
    deployments: Api<Deployment>,
    stalled: Option<Instant>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(client: &Client, dir: &'a Path) -> Self {
        let kind = GroupVersionKind::gvk("vdo.vmware.com", "v1alpha1", "VDOConfig");
        let resource = ApiResource::from_gvk_with_plural(&kind, "vdoconfigs");
        Self {
            dir,
            configs: Api::namespaced_with(client.clone(), NAMESPACE, &resource),
            nodes: Api::all(client.clone()),
            deployments: Api::namespaced(client.clone(), "vmware-system-csi"),
            stalled: None,
        }
    }

    /// The VDOConfig's status for its newest generation, or nothing yet.
    async fn status(&mut self) -> Result<Value> {
        operator_runs(self.dir)?;
        let config = serde_json::to_value(self.configs.get("vdo").await?)?;
        let status = &config["status"];
        if status["observedGeneration"] != config["metadata"]["generation"] {
            return Ok(Value::Null);
        }
        let stalled = condition(status, "Stalled");
        if stalled["status"] != "True" {
            self.stalled = None;
        } else if self.stalled.get_or_insert_with(Instant::now).elapsed() > STALLED {
            bail!("VDOConfig vdo is stalled: {}", text(&stalled["message"]));
        }
        Ok(status.clone())
    }

    /// Until versions are chosen.
    pub(super) async fn chosen(&mut self, screen: &mut Screen) -> Result<()> {
        let patience = Duration::from_secs(60);
        let status = screen
            .until(patience, async || {
                let status = self.status().await?;
                let drivers = list(&status["drivers"]);
                let chosen = !drivers.is_empty() && drivers.iter().all(|driver| !text(&driver["version"]).is_empty());
                Ok(if chosen {
                    Probe::Ready(status)
                } else {
                    Probe::not_yet(format!("choosing versions: {}", message(&status, "Ready")))
                })
            })
            .await?;
        for vcenter in list(&status["vcenters"]) {
            let [name, version, build] = ["connection", "version", "build"].map(|key| text(&vcenter[key]));
            screen.done(format!("connection {name}: vCenter {version} build {build}"));
        }
        for driver in list(&status["drivers"]) {
            let [name, version, because] = ["name", "version", "because"].map(|key| text(&driver[key]));
            screen.done(format!("chosen: {name} {version} ({because})"));
        }
        Ok(())
    }

    /// Until the cloud provider has given every node its ID and taken the taint.
    pub(super) async fn initialised(&mut self, screen: &mut Screen) -> Result<()> {
        let patience = Duration::from_secs(180);
        let total = screen
            .until(patience, async || {
                let status = self.status().await?;
                let nodes = self.nodes.list(&ListParams::default()).await?.items;
                let waiting: Vec<String> = nodes.iter().filter(|node| !is_initialised(node)).map(Node::name_any).collect();
                if !nodes.is_empty() && waiting.is_empty() {
                    return Ok(Probe::Ready(nodes.len()));
                }
                let (done, total) = (nodes.len() - waiting.len(), nodes.len());
                let cpi = pods(&status, "vsphere-cpi");
                Ok(Probe::not_yet(format!(
                    "nodes initialised {done}/{total} (CPI pods: {cpi}), waiting for {}",
                    waiting.join(", ")
                )))
            })
            .await?;
        screen.done(format!(
            "nodes initialised {total}/{total}: the cloud provider set each providerID and removed the taint"
        ));
        Ok(())
    }

    /// Until the CSI controller is ready.
    pub(super) async fn controller(&mut self, screen: &mut Screen) -> Result<()> {
        const NAME: &str = "vsphere-csi-controller";
        let patience = Duration::from_secs(120);
        let ready = screen
            .until(patience, async || {
                let status = self.status().await?;
                let deployment = self.deployments.get_opt(NAME).await?;
                let wanted = deployment.as_ref().and_then(|d| d.spec.as_ref()?.replicas).unwrap_or(0);
                let ready = deployment.as_ref().and_then(|d| d.status.as_ref()?.ready_replicas).unwrap_or(0);
                Ok(if wanted > 0 && ready >= wanted {
                    Probe::Ready(ready)
                } else if deployment.is_none() {
                    Probe::not_yet(format!("Deployment {NAME} is not there yet: {}", message(&status, "StorageReady")))
                } else {
                    Probe::not_yet(format!("CSI controller pods ready {ready}/{wanted}"))
                })
            })
            .await?;
        screen.done(format!("CSI controller pods ready {ready}/{ready}"));
        Ok(())
    }

    /// Until the VDOConfig is ready and the operator has nothing more to do.
    pub(super) async fn ready(&mut self, screen: &mut Screen) -> Result<()> {
        let patience = Duration::from_secs(120);
        let status = screen
            .until(patience, async || {
                let status = self.status().await?;
                let ready = condition(&status, "Ready")["status"] == "True" && condition(&status, "Reconciling")["status"] == "False";
                let csi = pods(&status, "vsphere-csi");
                let why = format!("VDOConfig vdo (CSI pods: {csi}): {}", message(&status, "Ready"));
                Ok(if ready { Probe::Ready(status) } else { Probe::not_yet(why) })
            })
            .await?;
        screen.done(format!("VDOConfig vdo is Ready: {}", message(&status, "Ready")));
        Ok(())
    }
}

/// Fails if the operator of this test bed has ended, with the end of its log.
pub(super) fn operator_runs(dir: &Path) -> Result<()> {
    let Some(operator) = super::state(dir)?.operator else {
        return Ok(());
    };
    let Some(how) = &operator.ended else { return Ok(()) };
    bail!("the operator ended ({how}); the end of its log:\n{}", tail(&operator.log, 12));
}

fn is_initialised(node: &Node) -> bool {
    let Some(spec) = &node.spec else { return false };
    let mut taints = spec.taints.iter().flatten();
    spec.provider_id.as_ref().is_some_and(|id| id.starts_with("vsphere://")) && !taints.any(|taint| taint.key == UNINITIALIZED)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn condition<'s>(status: &'s Value, kind: &str) -> &'s Value {
    let found = list(&status["conditions"]).iter().find(|condition| condition["type"] == kind);
    found.unwrap_or(&Value::Null)
}

fn message<'s>(status: &'s Value, kind: &str) -> &'s str {
    match text(&condition(status, kind)["message"]) {
        "" => "the operator has not looked at it yet",
        message => message,
    }
}

/// `ready/all` of a driver.
fn pods<'s>(status: &'s Value, driver: &str) -> &'s str {
    let found = list(&status["drivers"]).iter().find(|entry| entry["name"] == driver);
    match found.map_or("", |entry| text(&entry["pods"])) {
        "" => "none yet",
        ready => ready,
    }
}
