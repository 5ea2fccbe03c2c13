// SPDX-License-Identifier: Apache-2.0
//! `vdoctl selftest` with the real driver: everything but the mount.

use super::{CLAIM, SNAPSHOTS, Trust, VOLUME, install, with_driver};
use crate::common::Bed;
use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use vdo_testbed::{CsiVersion, PATIENCE, Probe, start_snapshots, until};

const VERSION: &str = "3.7.0";
const HOME: &str = "vdo-selftest";
const MADE: &str = "/metadata/uid";
/// An image that nothing runs: the node agent plays the pods.
pub(super) const IMAGE: &str = "registry.test/shell";
pub(super) const STEPS: [&str; 8] = ["claim", "attach", "write", "expand", "snapshot", "restore", "move", "delete"];

/// As a kubelet would write it; without it kube-controller-manager attaches nothing.
pub(super) async fn attach_by_controller(bed: &Bed) -> Result<()> {
    let managed = json!({"metadata": {"annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}}});
    for node in ["w-1", "w-2", "w-3"] {
        bed.merge("v1", "Node", "", node, managed.clone()).await?;
    }
    Ok(())
}

pub(super) async fn with_snapshot_class(bed: &Bed) -> Result<()> {
    bed.apply(
        &json!({"apiVersion": SNAPSHOTS, "kind": "VolumeSnapshotClass", "metadata": {"name": "snapshots"},
        "driver": "csi.vsphere.vmware.com", "deletionPolicy": "Retain"}),
    )
    .await
}

/// A run in which each step may take this time: the driver may miss that the simulator's CNS is done at once, and asks after five minutes.
pub(super) fn selftest(bed: &Bed, time: &str, more: &[&str]) -> Result<(i32, Value)> {
    let args = [&["selftest", "-o", "json", "--image", IMAGE, "--timeout", time], more].concat();
    let (code, out, err) = bed.vdoctl(&args)?;
    let document = serde_json::from_str(&out).with_context(|| format!("{code}\n{out}{err}\n{}", bed.agent.logs()))?;
    Ok((code, document))
}

/// `step result` of each step.
pub(super) fn results(document: &Value) -> Vec<String> {
    let steps = document["steps"].as_array().into_iter().flatten();
    let text = |step: &Value, key: &str| step[key].as_str().unwrap_or_default().to_owned();
    steps
        .map(|step| format!("{} {}", text(step, "step"), text(step, "result")))
        .collect()
}

/// Nothing of the test is there any more.
pub(super) async fn nothing_is_left(bed: &Bed) -> Result<()> {
    ensure!(bed.get("v1", "Namespace", "", HOME).await?.is_null(), "the namespace is there");
    for (api_version, kind) in [("v1", VOLUME), ("v1", CLAIM), (SNAPSHOTS, "VolumeSnapshotContent")] {
        let left = bed.list(api_version, kind, "").await?;
        let of_test: Vec<&Value> = left.iter().filter(|object| object.to_string().contains(HOME)).collect();
        ensure!(of_test.is_empty(), "{of_test:#?}");
    }
    Ok(())
}

fn begin(bed: &Bed) -> Result<Child> {
    let mut command = Command::new(vdo_testbed::vdoctl());
    command.arg("--kubeconfig").arg(bed.cluster.kubeconfig());
    command.args(["selftest", "--image", IMAGE, "--timeout", "10m"]);
    Ok(command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

fn signal(child: &Child, signal: Signal) -> Result<()> {
    let process = Pid::from_raw(child.id().try_into()?);
    kill(process, signal).with_context(|| format!("{signal} to {process}"))
}

/// A point of a run: an object of which a field is there.
type Point = (&'static str, &'static str, &'static str, &'static str);

/// Waits until a run has come to this point, or has gone on beyond it.
async fn until_made(bed: &Bed, child: &mut Child, (api_version, kind, name, field): Point) -> Result<()> {
    until(&format!("{field} of {kind} {name} of the selftest"), 2 * PATIENCE, async || {
        ensure!(
            child.try_wait()?.is_none(),
            "the selftest has ended before {field} of {kind} {name}"
        );
        let namespace = if kind == "Namespace" { "" } else { HOME };
        let object = bed.get(api_version, kind, namespace, name).await?;
        Ok(Probe::when(
            object.pointer(field).is_some_and(|value| *value != json!("1Gi")),
            object,
        ))
    })
    .await
}

#[test]
#[ignore = "long"]
fn real_csi_selftest_makes_every_step_and_leaves_nothing() -> Result<()> {
    with_driver(&[CsiVersion::Newer], Trust::Thumbprint, async |bed| {
        let _controller = start_snapshots(&bed.cluster).await?;
        install(bed, VERSION).await?;
        attach_by_controller(bed).await?;
        with_snapshot_class(bed).await?;
        let (code, whole) = selftest(bed, "10m", &[])?;
        let expected: Vec<String> = STEPS.iter().map(|step| format!("{step} passed")).collect();
        ensure!(code == 0 && results(&whole) == expected, "{code} {whole:#}");
        let text = |index: usize| whole["steps"][index]["message"].as_str().unwrap_or_default().to_owned();
        ensure!(text(3) == "expanded from 1Gi to 2Gi", "{whole:#}");
        nothing_is_left(bed).await?;
        killed_runs_are_cleaned_up(bed).await?;
        stopped_runs_clean_up(bed).await?;
        failure_is_explained(bed).await
    })
}

/// Killed at each step, a run leaves what the next one removes.
async fn killed_runs_are_cleaned_up(bed: &Bed) -> Result<()> {
    const DELETED: &str = "/metadata/deletionTimestamp";
    let points: [Point; 10] = [
        ("v1", "Namespace", HOME, MADE),
        ("v1", CLAIM, "data", MADE),
        ("v1", "Pod", "writer", MADE),
        ("v1", CLAIM, "data", "/spec/volumeName"),
        ("v1", "Pod", "writer", "/status/containerStatuses"),
        ("v1", CLAIM, "data", "/spec/resources/requests/storage"),
        (SNAPSHOTS, "VolumeSnapshot", "snapshot", MADE),
        ("v1", CLAIM, "restored", MADE),
        ("v1", "Pod", "reader", MADE),
        ("v1", "Namespace", HOME, DELETED),
    ];
    for point in points {
        let mut child = begin(bed)?;
        until_made(bed, &mut child, point).await?;
        child.kill()?;
        child.wait()?;
        if point.1 == "Pod" {
            let pod = bed.get("v1", "Pod", HOME, point.2).await?;
            ensure!(pod["spec"]["containers"][0]["image"] == IMAGE, "{pod:#}");
        }
        // What is deleted already goes on without the run.
        ensure!(
            point.3 == DELETED || !bed.get("v1", "Namespace", "", HOME).await?.is_null(),
            "nothing was left at {point:?}"
        );
        // The next run is stopped when it has its own namespace, and leaves nothing of either.
        let uid = bed.get("v1", "Namespace", "", HOME).await?["metadata"]["uid"].clone();
        let mut next = begin(bed)?;
        until("the namespace of the next run", 3 * PATIENCE, async || {
            ensure!(next.try_wait()?.is_none(), "the next run has ended");
            let now = bed.get("v1", "Namespace", "", HOME).await?["metadata"]["uid"].clone();
            Ok(Probe::when(!now.is_null() && now != uid, format!("{now} after {uid}")))
        })
        .await?;
        signal(&next, Signal::SIGTERM)?;
        ensure!(next.wait()?.code() == Some(143), "{point:?}");
        nothing_is_left(bed).await?;
    }
    Ok(())
}

/// Ctrl-C and SIGTERM have everything deleted.
async fn stopped_runs_clean_up(bed: &Bed) -> Result<()> {
    for (name, code, point) in [
        (Signal::SIGINT, 130, ("v1", CLAIM, "data", MADE)),
        (Signal::SIGTERM, 143, (SNAPSHOTS, "VolumeSnapshot", "snapshot", MADE)),
    ] {
        let mut child = begin(bed)?;
        until_made(bed, &mut child, point).await?;
        let (second, out, err) = bed.vdoctl(&["selftest", "--image", IMAGE])?;
        ensure!(second == 4 && err.contains("another selftest runs"), "{second}\n{out}{err}");
        signal(&child, name)?;
        let ended = child.wait()?;
        ensure!(ended.code() == Some(code), "{name}: {ended}");
        nothing_is_left(bed).await?;
    }
    Ok(())
}

/// The step that fails names the cause that `vdoctl doctor volumes` knows.
async fn failure_is_explained(bed: &Bed) -> Result<()> {
    bed.apply(
        &json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "gone-policy"},
        "provisioner": "csi.vsphere.vmware.com", "parameters": {"storagepolicyname": "gone"}}),
    )
    .await?;
    let (code, whole) = selftest(bed, "20s", &["--storage-class", "gone-policy"])?;
    let claim = &whole["steps"][0];
    ensure!(code == 1 && claim["result"] == "failed", "{code} {whole:#}");
    let causes: Vec<&Value> = claim["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|finding| &finding["cause"])
        .collect();
    ensure!(causes.contains(&&json!("PolicyNotFound")), "{whole:#}");
    let skipped = results(&whole).iter().filter(|line| line.ends_with(" skipped")).count();
    ensure!(
        skipped == 6 && results(&whole).last().is_some_and(|last| last == "delete passed"),
        "{whole:#}"
    );
    nothing_is_left(bed).await?;
    // Kept to be looked at, and deleted by the next run.
    let (code, kept) = selftest(bed, "5s", &["--storage-class", "gone-policy", "--keep"])?;
    ensure!(
        code == 1 && results(&kept).last().is_some_and(|last| last == "delete skipped"),
        "{code} {kept:#}"
    );
    ensure!(!bed.get("v1", CLAIM, HOME, "data").await?.is_null(), "nothing was kept");
    one_node_is_no_move(bed).await?;
    bed.delete("storage.k8s.io/v1", "StorageClass", "", "gone-policy").await
}

/// Where one node is left, the pod is not moved.
async fn one_node_is_no_move(bed: &Bed) -> Result<()> {
    let cordon = |on: bool| Patch::Merge(json!({"spec": {"unschedulable": on}}));
    for on in [true, false] {
        for node in ["w-2", "w-3"] {
            bed.api("v1", "Node", "").patch(node, &PatchParams::default(), &cordon(on)).await?;
        }
        if on {
            let (code, whole) = selftest(bed, "10m", &[])?;
            let moved = &whole["steps"][6];
            ensure!(
                code == 0 && moved["step"] == "move" && moved["result"] == "skipped",
                "{code} {whole:#}"
            );
        }
    }
    nothing_is_left(bed).await
}
