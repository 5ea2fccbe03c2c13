// SPDX-License-Identifier: Apache-2.0
//! Drivers in another place are moved: volumes stay, no two controllers run, a kill at any step loses nothing, and a way leads back.

use super::{kubectl, reference};
use crate::common::{Bed, NS, PATIENCE, condition, name};
use crate::fixture::OPERATOR;
use crate::page::open;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use vdo_testbed::former::{OLD, RANCHER_CPI, elsewhere};
use vdo_testbed::{Probe, until};

const MOVED: &str = "vdo.vmware.com/moved";

/// The old workloads, by name.
async fn old(bed: &Bed) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for kind in ["DaemonSet", "Deployment"] {
        for mut object in bed.list("apps/v1", kind, "").await? {
            object["kind"] = kind.into();
            let named = object["metadata"]["name"].as_str().unwrap_or_default();
            if object["metadata"]["namespace"] == OLD && (named == RANCHER_CPI || named.starts_with("vsphere-csi")) {
                all.insert(name(&object), object);
            }
        }
    }
    Ok(all)
}

/// Waits until the old workloads have all their pods.
async fn until_old_run(bed: &Bed) -> Result<()> {
    until("the old drivers to run", PATIENCE, async || {
        let all = old(bed).await?;
        let lacks = |object: &&Value| {
            let status = &object["status"];
            let wanted = status["desiredNumberScheduled"].as_i64().or(object["spec"]["replicas"].as_i64());
            let ready = status["numberReady"].as_i64().or(status["readyReplicas"].as_i64()).unwrap_or(0);
            status["observedGeneration"] != object["metadata"]["generation"] || wanted != Some(ready)
        };
        let lacking: Vec<&String> = all.iter().filter(|(_, object)| lacks(object)).map(|(name, _)| name).collect();
        Ok(Probe::when(lacking.is_empty(), format!("{lacking:?}")))
    })
    .await
}

/// Fails where pods of two controllers, or of two cloud providers, or running pods of two node plugins on a node are there.
async fn is_lawful(bed: &Bed) -> Result<()> {
    let mut seen: BTreeMap<(String, String), String> = BTreeMap::new();
    for pod in bed.list("v1", "Pod", "").await? {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        let named = pod["metadata"]["name"].as_str().unwrap_or_default();
        let (what, whose) = match named {
            _ if named.starts_with("vsphere-csi-controller") => ("controller", namespace),
            _ if named.starts_with("vsphere-csi-node") => ("node plugin", namespace),
            _ if named.starts_with(RANCHER_CPI) => ("cloud provider", "old"),
            _ if named.starts_with("vsphere-cloud-controller-manager") => ("cloud provider", "new"),
            _ => continue,
        };
        let place = match what {
            "node plugin" if pod["status"]["phase"] != "Running" => continue,
            "node plugin" => pod["spec"]["nodeName"].as_str().unwrap_or_default(),
            _ => "",
        };
        let other = seen.insert((what.to_owned(), place.to_owned()), whose.to_owned());
        ensure!(other.is_none_or(|other| other == whose), "two of {what} {place}: {}", name(&pod));
    }
    Ok(())
}

/// How a command ended: its exit code, or none where it was killed, and what it printed.
pub type Ended = (Option<i32>, String);

/// Starts a command that is killed after so many steps.
fn killed_after(bed: &Bed, args: &[&str], steps: usize) -> Result<JoinHandle<Result<Ended>>> {
    let mut child = Command::new(vdo_testbed::vdoctl())
        .arg("--kubeconfig")
        .arg(bed.cluster.kubeconfig())
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let out = child.stdout.take().context("stdout")?;
    Ok(std::thread::spawn(move || {
        let (mut text, mut seen) = (String::new(), 0);
        for line in BufReader::new(out).lines() {
            let line = line?;
            seen += usize::from(line.contains('✓'));
            text.push_str(&line);
            text.push('\n');
            if seen >= steps {
                child.kill()?;
            }
        }
        let ended = child.wait_with_output()?;
        text.push_str(&String::from_utf8_lossy(&ended.stderr));
        Ok((ended.status.code(), text))
    }))
}

/// Runs a command, killed after so many steps, and looks meanwhile that nothing runs twice.
pub async fn watched(bed: &Bed, args: &[&str], steps: usize) -> Result<Ended> {
    let running = killed_after(bed, args, steps)?;
    until("the command to end", 4 * PATIENCE, async || {
        is_lawful(bed).await?;
        Ok(Probe::when(running.is_finished(), format!("{args:?}")))
    })
    .await?;
    running.join().map_err(|_| anyhow::anyhow!("the reader panicked"))?
}

/// Repeats a command that is killed after each of its steps, and the operator with it, to its end; gives how often they were killed.
async fn killed_at_each_step(bed: &mut Bed, args: &[&str]) -> Result<usize> {
    for kills in 0..60 {
        let (code, text) = watched(bed, args, 1).await?;
        match code {
            None => {
                drop(bed.operator.take());
                bed.start_operator().await?;
            }
            Some(0) => return Ok(kills),
            Some(code) => anyhow::bail!("{args:?} ended with {code}:\n{text}"),
        }
    }
    anyhow::bail!("{args:?} has no end")
}

/// Whether the old drivers are exactly what they were.
async fn is_back(bed: &Bed, before: &BTreeMap<String, Value>) -> Result<()> {
    let after = old(bed).await?;
    for (name, was) in before {
        let is = after.get(name).with_context(|| format!("{name} is gone"))?;
        ensure!(is["spec"] == was["spec"], "{name}:\n{}\n{}", is["spec"], was["spec"]);
        ensure!(is["metadata"]["annotations"][MOVED].is_null(), "{name} is still marked");
    }
    ensure!(bed.list("v1", "Node", MOVED).await?.is_empty(), "nodes are still labelled");
    until_old_run(bed).await
}

fn volume() -> [Value; 2] {
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "data", "resources": {"requests": {"storage": "1Gi"}}}});
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": "a"},
        "claimRef": {"namespace": "default", "name": "data"}}});
    [volume, claim]
}

/// The message of the condition about other managers.
pub async fn foreign(bed: &Bed, reason: &str) -> Result<String> {
    let found = bed.until_reason("NoForeignDriver", reason).await?;
    Ok(found["message"].as_str().unwrap_or_default().to_owned())
}

pub fn json_of(bed: &Bed, args: &[&str]) -> Result<Value> {
    let (code, out, err) = bed.vdoctl(args)?;
    ensure!(code == 0, "{args:?}: {code} {out}{err}");
    let last = out.lines().last().context("no output")?;
    Ok(serde_json::from_str(last).or_else(|_| serde_json::from_str(&out))?)
}

/// A dry run names every step and writes nothing.
async fn dry_run_writes_nothing(bed: &Bed) -> Result<()> {
    let before = old(bed).await?;
    let view = json_of(bed, &["adopt", "--move", "--dry-run", "-o", "json"])?;
    let steps: Vec<&str> = view["steps"]
        .as_array()
        .context("steps")?
        .iter()
        .filter_map(|step| step["action"].as_str())
        .collect();
    for action in ["save", "stop", "hold", "confirm", "move", "unlabel", "wait"] {
        ensure!(steps.contains(&action), "{action} is not in {steps:?}");
    }
    ensure!(view["done"] == false && view["blocked"].is_null(), "{view:#}");
    let versions = |all: &BTreeMap<String, Value>| {
        all.values()
            .map(|object| object["metadata"]["generation"].clone())
            .collect::<Vec<_>>()
    };
    ensure!(versions(&before) == versions(&old(bed).await?), "a dry run has changed a workload");
    ensure!(bed.owned().await?.is_empty(), "a dry run has installed something");
    Ok(())
}

/// The commands of the last step, as they are printed: so many at least.
pub fn last_step(bed: &Bed, view: &Value, least: usize) -> Result<()> {
    let commands = view["lastStep"].as_array().context("the last step")?;
    ensure!(commands.len() >= least, "{commands:?}");
    for command in commands.iter().filter_map(Value::as_str) {
        let words: Vec<&str> = command.split_whitespace().collect();
        let (first, rest) = words.split_first().context("a command")?;
        ensure!(*first == "kubectl", "{command}");
        kubectl(bed, rest, &[]).with_context(|| command.to_owned())?;
    }
    Ok(())
}

#[test]
#[ignore = "long"]
fn adoption_by_move_survives_every_kill_and_leads_back_until_the_last_step() -> Result<()> {
    OPERATOR.run(async |bed| {
        let objects = elsewhere(&reference(bed).await?.manifests);
        kubectl(bed, &["apply", "--server-side", "-f", "-"], &objects)?;
        for object in volume() {
            bed.apply(&object).await?;
        }
        until_old_run(bed).await?;
        let before = old(bed).await?;
        ensure!(before.len() >= 3, "{:?}", before.keys());
        let (code, _, err) = bed.vdoctl(&["adopt", "--move", "--yes"])?;
        ensure!(code == 4 && err.contains("vdoctl adopt --write"), "{code} {err}");
        bed.apply(&bed.config(json!({}))).await?;
        let said = foreign(bed, "NotOurs").await?;
        ensure!(said.contains("vdoctl adopt --move"), "{said}");
        dry_run_writes_nothing(bed).await?;
        open(bed, "taking-over.md")?.run("vdoctl adopt --move --dry-run")?;

        let kills = killed_at_each_step(bed, &["adopt", "--move", "--yes"]).await?;
        ensure!(kills > 10, "killed only {kills} times");
        bed.until_ready().await?;
        let said = foreign(bed, "Healthy").await?;
        ensure!(said.contains("is being moved to VDO"), "{said}");
        let pods = bed.list("v1", "Pod", "").await?;
        let of_old = pods
            .iter()
            .filter(|pod| pod["metadata"]["namespace"] == OLD && name(pod).contains("vsphere-csi"))
            .count();
        ensure!(of_old == 0, "{of_old} pods of the old driver are left");

        // The way back, killed at each step, too.
        killed_at_each_step(bed, &["adopt", "--move", "--undo", "--yes"]).await?;
        is_back(bed, &before).await?;
        let (code, _, err) = bed.vdoctl(&["adopt", "--move", "--yes"])?;
        ensure!(code == 4 && err.contains("vdoctl resume"), "{code} {err}");

        bed.vdoctl(&["resume"])?;
        let (code, text) = watched(bed, &["adopt", "--move", "--yes"], usize::MAX).await?;
        ensure!(code == Some(0), "{text}");
        bed.until_ready().await?;
        let view = json_of(bed, &["adopt", "--move", "-o", "json"])?;
        ensure!(view["done"] == true && view["steps"] == json!([]), "{view:#}");
        last_step(bed, &view, 4)?;
        ensure!(old(bed).await?.is_empty(), "old workloads are left");
        until("the condition to forget the move", PATIENCE, async || {
            let said = foreign(bed, "Healthy").await?;
            Ok(Probe::when(said.contains("no other manager"), said))
        })
        .await?;
        bed.until_ready().await?;

        let [volume, claim] = volume();
        for (object, phase) in [(&volume, "Bound"), (&claim, "Bound")] {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let live = bed.get("v1", text("/kind"), text("/metadata/namespace"), "data").await?;
            ensure!(live["status"]["phase"] == phase, "{live:#}");
        }
        kubectl(bed, &["delete", "--wait=false", "-f", "-"], &[claim, volume])?;
        bed.uninstall().await?;
        kubectl(bed, &["delete", "--ignore-not-found", "-f", "-"], &objects)
    })
}

/// A cloud provider of another name: stopped everywhere, then VDO's. A manager that starts it again is named, and not fought.
#[test]
#[ignore = "long"]
fn adoption_by_move_of_a_cloud_provider_stops_where_another_manager_starts_it_again() -> Result<()> {
    OPERATOR.run(async |bed| {
        let mut objects = elsewhere(&reference(bed).await?.manifests);
        objects.retain(|object| {
            object["metadata"]["annotations"]["meta.helm.sh/release-name"] == "vsphere-cpi" && object["metadata"]["namespace"] == OLD
        });
        kubectl(bed, &["apply", "--server-side", "-f", "-"], &objects)?;
        until_old_run(bed).await?;
        let before = old(bed).await?;
        bed.apply(&bed.config(json!({"approval": "Manual", "cloudProvider": {}}))).await?;
        foreign(bed, "NotOurs").await?;

        // The configuration is kept, and the DaemonSet stopped; then another manager starts it again.
        let (code, text) = watched(bed, &["adopt", "--move", "--yes"], 3).await?;
        ensure!(code.is_none() && text.contains("its pods no longer run on any node"), "{text}");
        kubectl(
            bed,
            &[
                "apply",
                "--server-side",
                "--force-conflicts",
                "--field-manager",
                "helm-controller",
                "-f",
                "-",
            ],
            &{
                let mut again = objects.clone();
                again.retain(|object| object["kind"] == "DaemonSet");
                for object in &mut again {
                    object["spec"]["updateStrategy"] = json!({"type": "RollingUpdate"});
                }
                again
            },
        )?;
        let (code, _, err) = bed.vdoctl(&["adopt", "--move", "--yes"])?;
        ensure!(
            code == 4 && err.contains("helm-controller") && err.contains("--undo"),
            "{code} {err}"
        );
        let (code, _, err) = bed.vdoctl(&["adopt", "--move", "--undo", "--yes"])?;
        ensure!(code == 0, "{code} {err}");
        is_back(bed, &before).await?;

        bed.vdoctl(&["resume"])?;
        approved_between(bed).await?;
        let (code, text) = watched(bed, &["adopt", "--move", "--yes"], usize::MAX).await?;
        ensure!(code == Some(0), "{text}");
        let config = bed.until_ready().await?;
        ensure!(condition(&config, "NoForeignDriver")["status"] == "True", "{config:#}");
        is_lawful(bed).await?;
        let live = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        ensure!(
            live["spec"]["managementState"].as_str().is_none_or(|state| state == "Managed"),
            "{live:#}"
        );
        last_step_of_cpi(bed)?;
        bed.uninstall().await?;
        kubectl(bed, &["delete", "--ignore-not-found", "-f", "-"], &objects)
    })
}

/// Where plans are approved by hand, the move waits for the person and names the command.
async fn approved_between(bed: &Bed) -> Result<()> {
    let (code, _, err) = bed.vdoctl(&["adopt", "--move", "--yes", "--timeout", "20s"])?;
    let status = bed.status().await?;
    let hash = status["plan"]["hash"]
        .as_str()
        .with_context(|| format!("{code} {err} {status:#}"))?
        .to_owned();
    ensure!(code != 0 && err.contains(&format!("vdoctl approve {hash}")), "{code} {err}");
    let (code, _, err) = bed.vdoctl(&["approve", &hash])?;
    ensure!(code == 0, "{err}");
    Ok(())
}

fn last_step_of_cpi(bed: &Bed) -> Result<()> {
    let view = json_of(bed, &["adopt", "--move", "-o", "json"])?;
    let commands = view["lastStep"].to_string();
    for command in [
        format!("kubectl --namespace {OLD} delete daemonset {RANCHER_CPI}"),
        format!("kubectl --namespace {OLD} delete secret --selector owner=helm,name=vsphere-cpi"),
    ] {
        ensure!(commands.contains(&command), "{command} is not in {commands}");
    }
    kubectl(bed, &["--namespace", OLD, "delete", "configmap,secret", "--selector", MOVED], &[])
}
