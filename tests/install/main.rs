//! The main job, from an empty cluster to healthy drivers and back, on a real control plane with the real cloud provider.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

#[path = "../bed/mod.rs"]
mod bed;
mod change;
mod secrets;
mod shown;

use crate::bed::{Bed, NS, OPERATOR, PATIENCE, name};
use crate::change::{
    a_changed_secret_rolls_its_consumers_and_no_others, another_version_replaces_and_prunes, drift_is_repaired, paused_and_removed,
};
use crate::secrets::{password_arrives_byte_exact, secrets_are_nowhere, secrets_are_watched_by_name};
use crate::shown::{people_see_the_same, what_is_shown};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vdo_testbed::{Probe, until};

#[tokio::test(flavor = "multi_thread")]
async fn from_an_empty_cluster_to_healthy_drivers_and_back() -> Result<()> {
    bed::prepare();
    let mut bed = Bed::start().await?;
    the_deployment_runs_before_any_node_is_initialised(&bed).await?;
    bed.start_operator().await?;
    install(&bed).await?;
    password_arrives_byte_exact(&bed).await?;
    nothing_is_asked_at_rest(&bed).await?;
    what_is_shown(&bed).await?;
    people_see_the_same(&mut bed).await?;
    drift_is_repaired(&bed).await?;
    a_changed_secret_rolls_its_consumers_and_no_others(&bed).await?;
    another_version_replaces_and_prunes(&bed).await?;
    paused_and_removed(&bed).await?;
    a_restart_writes_nothing(&mut bed).await?;
    secrets_are_nowhere(&bed).await?;
    secrets_are_watched_by_name(&bed).await?;
    removal_leaves_what_is_not_ours(&bed).await?;
    Ok(())
}

/// The operator brings what initialises nodes, so it has to run before: admitted in its restricted namespace, on the control
/// plane, not to be evicted. The simulated nodes run no image, so the pod is looked at and taken away again.
async fn the_deployment_runs_before_any_node_is_initialised(bed: &Bed) -> Result<()> {
    let manifest = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/operator.yaml");
    bed.cluster.apply_file(manifest).await?;
    let pod = until("the operator's pod to run", PATIENCE, async || {
        let pods = bed.list("v1", "Pod", "app.kubernetes.io/name=vdo-operator").await?;
        let running = pods.iter().find(|p| p["status"]["phase"] == "Running").cloned();
        let deployment = bed.get("apps/v1", "Deployment", NS, "vdo-operator").await?;
        Ok(running.map_or_else(|| Probe::not_yet(&deployment["status"]), Probe::Ready))
    })
    .await?;
    assert_eq!(pod["spec"]["nodeName"], "cp-1");
    assert_eq!(pod["spec"]["priority"], 2_000_000_000);
    bed.delete("apps/v1", "Deployment", NS, "vdo-operator").await
}

/// A Secret, a connection and an empty VDOConfig are all that is needed.
async fn install(bed: &Bed) -> Result<()> {
    let mark = bed.cluster.audit().mark().await?;
    bed.apply_samples().await?;
    let config = bed.until_ready().await?;
    let versions: BTreeMap<&str, &str> = config["status"]["drivers"]
        .as_array()
        .context("drivers")?
        .iter()
        .filter_map(|d| Some((d["name"].as_str()?, d["version"].as_str()?)))
        .collect();
    assert_eq!(
        versions,
        BTreeMap::from([("vsphere-cpi", "1.34.0"), ("vsphere-csi", "3.7.3")]),
        "the CPI of the minor and the newest CSI that fits"
    );

    for node in bed.list("v1", "Node", "").await? {
        let id = node["spec"]["providerID"].as_str().unwrap_or_default();
        ensure!(id.starts_with("vsphere://"), "{} has provider ID {id:?}", name(&node));
        ensure!(
            !node["spec"]["taints"].to_string().contains("uninitialized"),
            "{} still bears the taint",
            name(&node)
        );
    }
    let controller = bed
        .get("apps/v1", "Deployment", "vmware-system-csi", "vsphere-csi-controller")
        .await?;
    assert_eq!(controller["spec"]["replicas"], 1, "one replica for one control-plane node");
    assert_eq!(controller["status"]["readyReplicas"], 1);
    for owned in bed.owned().await? {
        let live = bed
            .get(
                owned["apiVersion"].as_str().unwrap_or_default(),
                owned["kind"].as_str().unwrap_or_default(),
                owned["metadata"]["namespace"].as_str().unwrap_or_default(),
                owned["metadata"]["name"].as_str().unwrap_or_default(),
            )
            .await?;
        let managers = live["metadata"]["managedFields"].to_string();
        ensure!(managers.contains("\"vdo\""), "{} is not managed by vdo: {managers}", name(&owned));
    }
    let requests = bed.operator_requests(mark).await?;
    let objects = usize::try_from(config["status"]["inventory"]["objects"].as_i64().context("inventory")?)?;
    println!("install of {objects} objects: {} requests\n{requests}", requests.len());
    ensure!(
        requests.len() <= 2 * objects + 10,
        "{} requests for {objects} objects:\n{requests}",
        requests.len()
    );
    let refused = requests.only(|e| e.code == 403 || e.code == 409 || e.code >= 500);
    ensure!(refused.is_empty(), "requests were refused:\n{refused}");
    Ok(())
}

/// Ten forced resyncs, no request.
async fn nothing_is_asked_at_rest(bed: &Bed) -> Result<()> {
    let mark = bed.cluster.audit().mark().await?;
    let before = bed.reconciles().await?;
    for round in 0..10 {
        bed.merge(
            "vdo.vmware.com/v1alpha1",
            "VDOConfig",
            NS,
            "vdo",
            json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": round.to_string()}}}),
        )
        .await?;
        until("the resync to be made", PATIENCE, async || {
            let now = bed.reconciles().await?;
            Ok(Probe::when(now > before + round, format!("{} reconciles so far", now - before)))
        })
        .await?;
    }
    let requests = bed.operator_requests(mark).await?;
    ensure!(requests.is_empty(), "at rest the operator asked:\n{requests}");
    Ok(())
}

async fn a_restart_writes_nothing(bed: &mut Bed) -> Result<()> {
    let mark = bed.cluster.audit().mark().await?;
    bed.kill_operator();
    bed.start_operator().await?;
    until("the first reconcile after the restart", PATIENCE, async || {
        Ok(Probe::when(bed.reconciles().await? > 1, "none yet"))
    })
    .await?;
    let writes = bed.operator_requests(mark).await?.writes();
    ensure!(writes.is_empty(), "after a restart the operator wrote:\n{writes}");
    Ok(())
}

async fn removal_leaves_what_is_not_ours(bed: &Bed) -> Result<()> {
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": "vmware-system-csi"}});
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-1"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": "handle"}}});
    bed.apply(&foreign).await?;
    bed.apply(&volume).await?;
    let despite = json!({"metadata": {"annotations": {"vdo.vmware.com/remove-despite-volumes": "true"}}});
    bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", despite).await?;
    bed.uninstall().await?;
    let left: Vec<String> = bed.owned().await?.iter().map(name).collect();
    assert_eq!(
        left,
        ["Namespace /vmware-system-csi"],
        "only the namespace stays, because it holds something of somebody else"
    );
    assert_ne!(bed.get("v1", "ConfigMap", "vmware-system-csi", "mine").await?, Value::Null);
    assert_ne!(bed.get("v1", "PersistentVolume", "", "pv-1").await?, Value::Null);
    assert_eq!(
        bed.get("v1", "ConfigMap", NS, "vdo-inventory").await?,
        Value::Null,
        "the inventory goes last"
    );
    let refused = bed.cluster.audit().requests(|e| e.user == OPERATOR && e.code == 403).await?;
    assert!(refused.is_empty(), "the operator lacked rights:\n{refused}");
    Ok(())
}
