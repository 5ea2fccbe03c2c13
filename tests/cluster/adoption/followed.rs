// SPDX-License-Identifier: Apache-2.0
//! Each installer, followed to the end as `vdoctl adopt` says: the settings are taken along, what is in its place keeps its pods, what is in
//! another place is moved, the identity stays, and the removal leaves what was there before.

mod real;

use super::moving::{foreign, json_of, last_step, watched};
use super::{create, kubectl, reference};
use crate::common::{Bed, NS, PATIENCE, name};
use crate::fixture::OPERATOR;
use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use vdo_testbed::former::{brought, elsewhere, in_kube_system, of_release, renamed};
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const CLUSTER_ID: &str = "the-old-cluster";
const SNAPSHOTS: &str = "global-max-snapshots-per-block-volume";

/// What an installer brings, and what is said of it.
#[derive(Default)]
struct Brought {
    objects: Vec<Value>,
    /// The field manager of a client that only creates; without one it is `kubectl apply`.
    manager: Option<&'static str>,
    /// Who made the workloads, in the order of their names.
    by: &'static [&'static str],
    /// Whether a driver of it is in another place.
    is_moved: bool,
    /// Whether a person has removed the controller of the CSI driver already.
    is_half: bool,
    /// Whether workloads in their place have other templates or replicas than VDO's own.
    is_different: bool,
    /// What is pinned where the matrix does not know what is installed.
    pin: Option<&'static str>,
}

/// The manifests with an identity, a limit and a log level that nothing but the old installation knows.
fn with_settings(mut manifests: Vec<Value>) -> Result<Vec<Value>> {
    for object in &mut manifests {
        if let Some(file) = object["data"]["csi-vsphere.conf"].as_str() {
            let text = String::from_utf8(STANDARD.decode(file)?)?;
            let lines = text.lines().map(|line| match line.trim_start().starts_with("cluster-id") {
                true => format!("cluster-id = \"{CLUSTER_ID}\""),
                false => line.to_owned(),
            });
            let text = lines.collect::<Vec<_>>().join("\n");
            ensure!(text.contains(CLUSTER_ID) && !text.contains("[Snapshot]"), "{text}");
            object["data"]["csi-vsphere.conf"] = STANDARD.encode(format!("{text}\n[Snapshot]\n{SNAPSHOTS} = 12\n")).into();
        }
        let args = object.pointer_mut("/spec/template/spec/containers/0/args");
        for arg in args
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
            .filter(|arg| **arg == "--v=2")
        {
            *arg = "--v=4".into();
        }
    }
    Ok(manifests)
}

/// A workload as it runs.
#[derive(Debug, PartialEq, Eq)]
struct Running {
    template: Value,
    /// Its UID and those of its pods.
    uids: BTreeSet<String>,
}

/// The workloads of drivers, of any name.
async fn workloads(bed: &Bed) -> Result<BTreeMap<String, Running>> {
    let mut all = BTreeMap::new();
    let pods = bed.list("v1", "Pod", "").await?;
    for kind in ["DaemonSet", "Deployment"] {
        for mut object in bed.list("apps/v1", kind, "").await? {
            object["kind"] = kind.into();
            let named = object["metadata"]["name"].as_str().unwrap_or_default();
            if !named.contains("vsphere") {
                continue;
            }
            let is_its = |pod: &&Value| {
                let place = pod["metadata"]["namespace"] == object["metadata"]["namespace"];
                let generated = pod["metadata"]["generateName"].as_str().unwrap_or_default().trim_end_matches('-');
                let generated = if kind == "Deployment" {
                    generated.rsplit_once('-').map_or(generated, |(of, _)| of)
                } else {
                    generated
                };
                place && generated == named
            };
            let uid = |object: &Value| object["metadata"]["uid"].to_string();
            let uids = pods.iter().filter(is_its).map(uid).chain([uid(&object)]).collect();
            let template = object["spec"]["template"]["spec"].clone();
            all.insert(name(&object), Running { template, uids });
        }
    }
    Ok(all)
}

async fn until_all_run(bed: &Bed, is_different: bool) -> Result<()> {
    until("the drivers of the installer to run", PATIENCE, async || {
        let mut lacking = Vec::new();
        for kind in ["DaemonSet", "Deployment"] {
            for object in bed.list("apps/v1", kind, "").await? {
                let status = &object["status"];
                let wanted = status["desiredNumberScheduled"].as_i64().or(object["spec"]["replicas"].as_i64());
                let ready = status["numberReady"].as_i64().or(status["readyReplicas"].as_i64()).unwrap_or(0);
                let is_observed = status["observedGeneration"] == object["metadata"]["generation"];
                let runs = match kind {
                    // Installers want three replicas, each on a node of its own, and a control plane of one node has room for one.
                    "Deployment" if is_different => ready > 0,
                    // Until the cloud provider has seen the nodes, no node takes a node plugin.
                    "DaemonSet" if wanted == Some(0) => name(&object).ends_with("windows"),
                    _ => wanted == Some(ready),
                };
                if !is_observed || !runs {
                    lacking.push(name(&object));
                }
            }
        }
        Ok(Probe::when(lacking.is_empty(), lacking.join(", ")))
    })
    .await
}

/// Installs as the installer does.
async fn bring(bed: &Bed, brought: &Brought) -> Result<()> {
    match brought.manager {
        Some(manager) => create(bed, manager, &brought.objects).await?,
        None => kubectl(bed, &["apply", "-f", "-"], &brought.objects)?,
    }
    until_all_run(bed, brought.is_different).await?;
    if brought.is_half {
        kubectl(
            bed,
            &["--namespace", "vmware-system-csi", "delete", "deployment", "vsphere-csi-controller"],
            &[],
        )?;
    }
    Ok(())
}

/// Who made each workload, as it is shown.
fn named(view: &Value, by: &[&str]) -> Result<()> {
    let workloads = view["workloads"].as_array().context("workloads")?;
    let mut all: Vec<(&str, &str)> = Vec::new();
    for one in workloads {
        all.push((
            one["object"]["name"].as_str().context("a name")?,
            one["installedBy"].as_str().context("who installed it")?,
        ));
    }
    all.sort_unstable();
    let found: Vec<&str> = all.iter().map(|(_, by)| *by).collect();
    ensure!(found == by, "{all:?} instead of {by:?}");
    Ok(())
}

/// The settings are written, with each loss confirmed.
fn confirmed(view: &Value) -> Result<Vec<&str>> {
    let mut line = vec!["adopt", "--write", "--yes"];
    for loss in view["losses"].as_array().into_iter().flatten() {
        line.extend(["--accept-loss", loss["key"].as_str().context("a key")?]);
    }
    Ok(line)
}

/// What the driver of VDO has in its file.
async fn conf(bed: &Bed) -> Result<String> {
    let secret = bed.get("v1", "Secret", "vmware-system-csi", "vsphere-config-secret").await?;
    let file = STANDARD.decode(secret["data"]["csi-vsphere.conf"].as_str().context("the file")?)?;
    Ok(String::from_utf8(file)?)
}

/// Removes VDO: what it made is deleted, and what was there before stays without its marks.
async fn given_back(bed: &Bed) -> Result<()> {
    let is_adopted = |object: &Value| object["metadata"]["annotations"]["vdo.vmware.com/adopted-from"].is_string();
    let driver = |object: &Value| object["metadata"]["labels"]["vdo.vmware.com/driver"].to_string();
    let owned = bed.owned().await?;
    let is_workload = |object: &&Value| object.pointer("/spec/template/spec").is_some();
    let left: BTreeSet<String> = owned
        .iter()
        .filter(is_workload)
        .filter(|object| is_adopted(object))
        .map(driver)
        .collect();
    let before = workloads(bed).await?;
    bed.uninstall().await?;
    let after = workloads(bed).await?;
    for object in &owned {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let place = text("/metadata/namespace");
        let live = bed.get(text("/apiVersion"), text("/kind"), place, text("/metadata/name")).await?;
        if is_adopted(object) || left.contains(&driver(object)) {
            ensure!(live != Value::Null, "{} was there before, and is gone", name(object));
            ensure!(
                !is_adopted(&live) && live["metadata"]["labels"]["vdo.vmware.com/driver"].is_null(),
                "{live:#}"
            );
            ensure!(
                before.get(&name(object)) == after.get(&name(object)),
                "the pods of {} changed",
                name(object)
            );
        } else {
            ensure!(live == Value::Null, "{} was made by VDO, and stays", name(object));
        }
    }
    Ok(())
}

/// From the first picture to the removal.
async fn follow(bed: &Bed, brought: &Brought) -> Result<()> {
    bed.delete(VDO, "VsphereCloudConfig", NS, "vc1").await?;
    bring(bed, brought).await?;
    let before = workloads(bed).await?;
    let (_, out, err) = bed.vdoctl(&["adopt", "-o", "json"])?;
    let view: Value = serde_json::from_str(&out).with_context(|| err)?;
    named(&view, brought.by)?;
    let line = confirmed(&view)?;
    let (code, _, err) = bed.vdoctl(&line)?;
    ensure!(code == 0, "{line:?}: {code} {err}");
    if let Some(pin) = brought.pin {
        bed.until_reason("Ready", "NoCompatibleVersion").await?;
        let (code, _, err) = bed.vdoctl(&["configure", "drivers", "--set", pin])?;
        ensure!(code == 0, "{pin}: {code} {err}");
    }
    if brought.is_moved {
        let said = foreign(bed, "NotOurs").await?;
        ensure!(said.contains("vdoctl adopt --move"), "{said}");
        // Losses are confirmed once.
        let (code, text) = watched(bed, &["adopt", "--move", "--yes"], usize::MAX).await?;
        ensure!(code == Some(0), "{code:?} {text}");
        last_step(bed, &json_of(bed, &["adopt", "--move", "-o", "json"])?, 1)?;
    }
    let config = bed.until_ready().await?;
    let after = workloads(bed).await?;
    for (workload, pods) in &after {
        let Some(was) = before.get(workload) else { continue };
        // A pod that waited for a node in vain goes with its replica.
        let is_kept = match brought.is_different {
            true => was.template != pods.template || pods.uids.is_subset(&was.uids),
            false => was == pods,
        };
        ensure!(is_kept, "{workload}: {was:?} became {pods:?}");
    }
    let by_others = before.keys().filter(|workload| !after.contains_key(*workload)).count();
    ensure!((by_others > 0) == brought.is_moved, "{before:?} {after:?}");
    if config["spec"]["storageProvider"].is_object() {
        ensure!(config["status"]["clusterId"] == CLUSTER_ID, "{config:#}");
        let conf = conf(bed).await?;
        ensure!([CLUSTER_ID, SNAPSHOTS].iter().all(|words| conf.contains(words)), "{conf}");
    }
    given_back(bed).await?;
    kubectl(bed, &["delete", "--ignore-not-found", "-f", "-"], &brought.objects)
}

/// The same with generated manifests, whose log level is a setting that is kept, too.
fn generated(make: fn(&[Value]) -> Brought) -> Result<()> {
    OPERATOR.run(async |bed| {
        let manifests = with_settings(reference(bed).await?.manifests)?;
        let brought = make(&manifests);
        follow(bed, &brought).await
    })
}

fn is_of_csi(object: &Value) -> bool {
    object["metadata"]["namespace"] == "vmware-system-csi" || object["metadata"]["namespace"].is_null()
}

#[test]
#[ignore = "long"]
fn adoption_followed_from_manifests_by_hand() -> Result<()> {
    generated(|manifests| Brought {
        objects: brought(manifests).collect(),
        manager: None,
        by: &["kubectl apply"; 4],
        ..Brought::default()
    })
}

#[test]
#[ignore = "long"]
fn adoption_followed_from_half_a_removal() -> Result<()> {
    generated(|manifests| Brought {
        objects: brought(manifests).collect(),
        manager: None,
        by: &["kubectl apply"; 3],
        is_half: true,
        ..Brought::default()
    })
}

#[test]
#[ignore = "long"]
fn adoption_followed_from_the_chart_of_the_cloud_provider() -> Result<()> {
    generated(|manifests| Brought {
        objects: brought(manifests)
            .filter(|object| !is_of_csi(object))
            .map(|object| of_release(renamed(object, "vsphere-cpi"), "vsphere-cpi"))
            .collect(),
        manager: Some("helm"),
        by: &["Helm release kube-system/vsphere-cpi"],
        is_moved: true,
        ..Brought::default()
    })
}

#[test]
#[ignore = "long"]
fn adoption_followed_from_rancher() -> Result<()> {
    generated(|manifests| Brought {
        objects: elsewhere(manifests),
        manager: Some("helm"),
        by: &[
            "Helm release kube-system/vsphere-cpi",
            "Helm release kube-system/vsphere-csi",
            "Helm release kube-system/vsphere-csi",
            "Helm release kube-system/vsphere-csi",
        ],
        is_moved: true,
        ..Brought::default()
    })
}

/// A ClusterResourceSet creates what it has, as its controller is named.
#[test]
#[ignore = "long"]
fn adoption_followed_from_cluster_api() -> Result<()> {
    generated(|manifests| Brought {
        objects: brought(manifests).map(|object| renamed(object, "vsphere-cpi")).collect(),
        manager: Some("manager"),
        by: &["field manager manager"; 4],
        is_moved: true,
        ..Brought::default()
    })
}

#[test]
#[ignore = "long"]
fn adoption_followed_from_kubespray() -> Result<()> {
    generated(|manifests| Brought {
        objects: brought(manifests).map(in_kube_system).collect(),
        manager: None,
        by: &["kubectl apply"; 4],
        is_moved: true,
        ..Brought::default()
    })
}
