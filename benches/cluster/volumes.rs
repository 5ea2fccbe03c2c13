// SPDX-License-Identifier: Apache-2.0
//! `vdoctl doctor volumes` in a cluster with thousands of volumes: its requests to the API server and the vCenter, its memory and its time.

use crate::common::{Bed, NODES, PATIENCE};
use crate::measured::ended;
use crate::report::{Report, seconds};
use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::process::Command;
use vdo_testbed::{Cluster, ClusterOptions, Probe, VcenterOptions, until};

/// Volumes, each with its claim and its attachment. The simulated vCenter cannot hold so many, so that it knows none of them.
const VOLUMES: usize = 5_000;
/// Claims that wait, each with an event that says why.
const WAITING: usize = 10_000;
/// How many requests the bench has under way.
const BESIDE: usize = 16;
const CLUSTER_ID: &str = "bench";
const STORAGE: &str = "storage.k8s.io/v1";

pub async fn measure() -> Result<Report> {
    // No controller binds, schedules or attaches: what is there was written here.
    let mut bed = Bed::start_on(ClusterOptions::api_only(), VcenterOptions::with_vms(NODES)).await?;
    bed.start_operator().await?;
    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    bed.apply(&bed.connection("vc1")).await?;
    bed.apply(&bed.config(json!({"storageProvider": {"clusterId": CLUSTER_ID}})))
        .await?;
    until("the cluster id to be known", PATIENCE, async || {
        let status = bed.status().await?;
        Ok(Probe::when(status["clusterId"] == CLUSTER_ID, status))
    })
    .await?;
    bed.kill_operator();
    let class =
        json!({"apiVersion": STORAGE, "kind": "StorageClass", "metadata": {"name": "bench"}, "provisioner": "csi.vsphere.vmware.com"});
    bed.apply(&class).await?;
    let mut report = Report::default();
    report.section("vdoctl doctor volumes");
    eprintln!("{VOLUMES} volumes");
    many(VOLUMES, async |number| volume(&bed, number).await).await?;
    run(
        &bed,
        &format!("{VOLUMES} attached volumes that the vCenter does not have"),
        &mut report,
    )
    .await?;
    eprintln!("{WAITING} claims that wait");
    many(WAITING, async |number| waiting(&bed, number).await).await?;
    run(&bed, &format!("and {WAITING} claims that wait, each with an event"), &mut report).await?;
    Ok(report)
}

/// Runs the verb and reports what it needed.
async fn run(bed: &Bed, among: &str, report: &mut Report) -> Result<()> {
    let mark = bed.cluster.audit().mark().await?;
    bed.vcenter.forget_calls("vdo").await?;
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(vdo_testbed::vdoctl());
    command
        .arg("--kubeconfig")
        .arg(bed.cluster.kubeconfig())
        .args(["doctor", "volumes", "-o", "json"]);
    let (run, code, out, err) = ended(&mut command, &folder.path().join("run"))?;
    ensure!(code.code().is_some_and(|code| code < 2), "{code}: {err}");
    let shown: Value = serde_json::from_str(&out).with_context(|| err)?;
    let findings = shown["findings"].as_array().map_or(0, Vec::len);
    let asked = bed
        .cluster
        .audit()
        .since(mark)
        .await?
        .of(Cluster::ADMIN)
        .only(|request| !request.uri.starts_with("/livez"));
    let calls: u64 = bed.vcenter.calls("vdo").await?.values().sum();
    report.row(
        among,
        format!("{:.1} MiB", run.peak),
        "aim 64 MiB",
        format!(
            "{} requests to the API server (aim 25), {calls} to the vCenter (aim 6), {findings} findings, {}",
            asked.len(),
            seconds(run.seconds)
        ),
    );
    Ok(())
}

/// Applies an object, then its status.
async fn put(bed: &Bed, object: Value) -> Result<()> {
    bed.apply(&object).await?;
    let Some(status) = object.get("status") else { return Ok(()) };
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let api = bed.api(text("/apiVersion"), text("/kind"), text("/metadata/namespace"));
    let patch = Patch::Merge(json!({ "status": status }));
    api.patch_status(text("/metadata/name"), &PatchParams::default(), &patch).await?;
    Ok(())
}

/// So many of them, with some under way at a time.
async fn many(count: usize, one: impl AsyncFn(usize) -> Result<()>) -> Result<()> {
    let all = stream::iter(0..count).map(|number| one(number));
    all.buffer_unordered(BESIDE).try_for_each(async |()| Ok(())).await
}

fn claim(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "bench"}})
}

async fn volume(bed: &Bed, number: usize) -> Result<()> {
    let (name, claimed) = (format!("pvc-{number}"), format!("data-{number}"));
    put(
        bed,
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "status": {"phase": "Bound"},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "bench",
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": claimed},
                "csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": format!("00000000-0000-4000-8000-{number:012}")}}}),
    )
    .await?;
    let mut bound = claim(&claimed);
    bound["spec"]["volumeName"] = name.clone().into();
    bound["status"] = json!({"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]});
    put(bed, bound).await?;
    let (node, _) = NODES[number % NODES.len()];
    put(
        bed,
        json!({"apiVersion": STORAGE, "kind": "VolumeAttachment", "metadata": {"name": format!("csi-{number}")},
            "spec": {"attacher": "csi.vsphere.vmware.com", "nodeName": node, "source": {"persistentVolumeName": name}},
            "status": {"attached": true}}),
    )
    .await
}

async fn waiting(bed: &Bed, number: usize) -> Result<()> {
    let name = format!("waiting-{number}");
    put(bed, claim(&name)).await?;
    let said = "failed to provision volume with StorageClass \"bench\": rpc error: code = ResourceExhausted desc = no datastore has enough free space";
    put(
        bed,
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("{name}.failed"), "namespace": "default"},
            "involvedObject": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name}, "type": "Warning",
            "reason": "ProvisioningFailed", "message": said, "lastTimestamp": "2026-01-01T00:00:00Z"}),
    )
    .await
}
