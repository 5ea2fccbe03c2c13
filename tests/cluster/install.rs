// SPDX-License-Identifier: Apache-2.0
//! The installation, from an empty cluster to healthy drivers, on a real control plane with the real cloud provider.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod change;
mod deadline;
mod secrets;
mod shown;

use crate::common::{Bed, NS, PATIENCE, name};
use crate::fixture::{EMPTY, INSTALLED, OPERATOR};
use crate::install::secrets::ensure_secrets_are_watched_by_name;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vdo_testbed::{Entry, Mark, Probe, Requests, UNINITIALIZED, until};

/// The cloud provider, the controller and the plugins for Linux and Windows.
const WORKLOADS: usize = 4;

/// Wakes the operator by a change that is none of its own, and waits until it has reconciled: what asks for a reconcile is confirmed in the status.
async fn resync(bed: &Bed, value: &str) -> Result<()> {
    let before = bed.reconciles().await?;
    let annotate = json!({"metadata": {"annotations": {"example.com/round": value}}});
    bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", annotate).await?;
    until("the resync to be made", PATIENCE, async || {
        let now = bed.reconciles().await?;
        Ok(Probe::when(now > before, format!("{now} reconciles so far")))
    })
    .await
}

/// Waits until the operator has finished whatever an earlier test caused: a resync asks the API server nothing.
pub async fn until_at_rest(bed: &Bed) -> Result<()> {
    until("a resync without a request", PATIENCE, async || {
        let mark = bed.cluster.audit().mark().await?;
        resync(bed, &format!("{mark:?}")).await?;
        let asked = bed.operator_requests(mark).await?;
        Ok(Probe::when(asked.is_empty(), asked))
    })
    .await
}

/// Starts the operator again and waits until it has reconciled.
async fn restart(bed: &mut Bed) -> Result<()> {
    bed.kill_operator();
    bed.start_operator().await?;
    until("the first reconcile after the restart", PATIENCE, async || {
        Ok(Probe::when(bed.reconciles().await? > 1, "none yet"))
    })
    .await
}

/// The operator had every right that it needed since then.
pub async fn ensure_nothing_was_forbidden(bed: &Bed, since: Mark) -> Result<()> {
    let asked = bed.cluster.audit().since(since).await?.of(crate::common::OPERATOR);
    let forbidden = asked.only(|e| e.lacked_right);
    ensure!(forbidden.is_empty(), "the operator lacked rights:\n{forbidden}");
    Ok(())
}

/// The operator brings what initialises nodes, so it has to run before: admitted in its restricted namespace, on the control
/// plane, not to be evicted. The simulated nodes run no image, so the pod is only looked at.
#[test]
fn operator_deployment_runs_on_uninitialised_control_plane() -> Result<()> {
    EMPTY.run(async |bed| {
        let manifest = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/operator.yaml");
        bed.cluster.apply_file(manifest).await?;
        let label = "app.kubernetes.io/name=vdo-operator";
        let pod = until("the operator's pod to run", PATIENCE, async || {
            let pods = bed.list("v1", "Pod", label).await?;
            let running = pods.iter().find(|p| p["status"]["phase"] == "Running").cloned();
            let deployment = bed.get("apps/v1", "Deployment", NS, "vdo-operator").await?;
            Ok(running.map_or_else(|| Probe::not_yet(&deployment["status"]), Probe::Ready))
        })
        .await?;
        assert_eq!(pod["spec"]["nodeName"], "cp-1");
        assert_eq!(pod["spec"]["priority"], 2_000_000_000);
        bed.delete("apps/v1", "Deployment", NS, "vdo-operator").await?;
        until("the operator's pod to be gone", PATIENCE, async || {
            let left = bed.list("v1", "Pod", label).await?.len();
            Ok(Probe::when(left == 0, format!("{left} pods")))
        })
        .await
    })
}

/// When the operator created a workload.
fn created(all: &Requests, name: &str) -> Result<String> {
    // Its service account has the same name.
    let is_it = |e: &&Entry| (e.user.as_str(), e.api_group.as_str(), e.name.as_str()) == (crate::common::OPERATOR, "apps", name);
    let found = all.0.iter().find(|e| is_it(e) && e.code == 201 && e.writes());
    Ok(found.with_context(|| format!("{name} was not created"))?.timestamp.clone())
}

/// When the cloud provider wrote the first node.
fn initialised(all: &Requests) -> Result<String> {
    let account = "system:serviceaccount:kube-system:cloud-controller-manager";
    let found = all.0.iter().find(|e| e.user == account && e.resource == "nodes" && e.writes());
    Ok(found.context("the cloud provider wrote no node")?.timestamp.clone())
}

/// Whether the pods of the CSI controller may run before the nodes are initialised.
async fn tolerates_uninitialised(bed: &Bed) -> Result<bool> {
    let controller = bed
        .get("apps/v1", "Deployment", "vmware-system-csi", "vsphere-csi-controller")
        .await?;
    let tolerations = controller["spec"]["template"]["spec"]["tolerations"].as_array();
    Ok(tolerations.is_some_and(|all| all.iter().any(|one| one["key"] == UNINITIALIZED)))
}

/// Its workloads are the only ones that wait. All others are applied at once, as the test below shows.
#[test]
#[ignore = "long"]
fn install_of_version_that_needs_provider_ids_begins_it_when_nodes_are_initialised() -> Result<()> {
    OPERATOR.run(async |bed| {
        let mark = bed.cluster.audit().mark().await?;
        let storage = json!({"version": "3.0.3", "allowIncompatible": true, "features": {"use-csinode-id": false}});
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        bed.apply(&bed.connection("vc1")).await?;
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": storage})))
            .await?;
        bed.until_ready().await?;
        let all = bed.cluster.audit().since(mark).await?;
        for name in ["vsphere-csi-controller", "vsphere-csi-node"] {
            ensure!(created(&all, name)? > initialised(&all)?, "{name} did not wait for the nodes");
        }
        ensure!(
            !tolerates_uninitialised(bed).await?,
            "the CSI controller may run on nodes that it cannot use"
        );
        Ok(())
    })
}

/// How often the vCenter has let the user of the connection in.
async fn logins(bed: &Bed) -> Result<u64> {
    let all = bed.vcenter.logins().await?;
    Ok(all.get(bed.vcenter.user()).map_or(0, |logins| logins.succeeded))
}

/// A Secret, a connection and an empty VDOConfig are all that is needed.
#[test]
fn install_from_samples_is_ready_within_request_budget() -> Result<()> {
    OPERATOR.run(async |bed| {
        bed.kill_operator();
        let (started, logins_before) = (bed.cluster.audit().mark().await?, logins(bed).await?);
        bed.start_operator().await?;
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
            BTreeMap::from([("vsphere-cpi", "1.34.0"), ("vsphere-csi", "3.8.0")]),
            "the CPI of the minor and the newest CSI that fits"
        );
        // On a busy machine a watch begins again, and then the version is asked for, which is not a part of an installation.
        let requests = bed.operator_requests(mark).await?.only(|entry| entry.uri != "/version");
        let objects = usize::try_from(config["status"]["inventory"]["objects"].as_i64().context("inventory")?)?;
        println!("install of {objects} objects: {} requests\n{requests}", requests.len());
        // Six of them are events: the connection, the beginning, each choice, the changes, the success.
        // How often a status is written depends on how long it takes, and not on how many objects there are.
        let reports = requests.clone().only(|e| e.subresource == "status" || e.resource == "events");
        // One pod of each workload is tried.
        let pods = requests.clone().only(|e| e.resource == "pods" && e.name == "vdo-dry-run");
        ensure!(
            pods.len() <= WORKLOADS && requests.len() - reports.len() - pods.len() <= 2 * objects + 8 && reports.len() <= 16,
            "{} requests for {objects} objects, {} of them reports:\n{requests}",
            requests.len(),
            reports.len()
        );
        let all = bed.cluster.audit().since(mark).await?;
        ensure!(
            created(&all, "vsphere-csi-controller")? < initialised(&all)?,
            "the CSI driver waited for the nodes"
        );
        ensure!(tolerates_uninitialised(bed).await?, "the CSI controller's pod waited for the nodes");
        let refused = requests.only(|e| e.code == 403 || e.code == 409 || e.code >= 500);
        ensure!(refused.is_empty(), "requests were refused:\n{refused}");

        // The cloud provider has logged in: the nodes are initialised.
        ensure!(logins(bed).await? > logins_before, "no log-in succeeded since {logins_before}");
        for node in bed.list("v1", "Node", "").await? {
            let id = node["spec"]["providerID"].as_str().unwrap_or_default();
            ensure!(id.starts_with("vsphere://"), "{} has provider ID {id:?}", name(&node));
            ensure!(
                !node["spec"]["taints"].to_string().contains("uninitialized"),
                "{} still bears the taint",
                name(&node)
            );
        }
        ensure_secrets_are_watched_by_name(bed, started).await?;

        until_at_rest(bed).await?;
        let healthy = until("an event with reason Healthy", PATIENCE, async || {
            let mut events = bed.list("events.k8s.io/v1", "Event", "").await?;
            events.retain(|e| e["regarding"]["uid"] == config["metadata"]["uid"] && e["reason"] == "Healthy");
            Ok(if events.is_empty() {
                Probe::not_yet("there is none")
            } else {
                Probe::Ready(events)
            })
        })
        .await?;
        assert_eq!(healthy.len(), 1, "one event for one transition: {healthy:?}");
        // Normal progress is not a warning: what was chosen and that it succeeded are Normal events.
        let mut events = bed.list("events.k8s.io/v1", "Event", "").await?;
        // Objects of the same name that an earlier test had are others.
        let connection = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
        let own = [&config, &connection].map(|object| &object["metadata"]["uid"]);
        events.retain(|event| own.contains(&&event["regarding"]["uid"]));
        let warnings: Vec<&Value> = events.iter().filter(|event| event["type"] != "Normal").collect();
        ensure!(warnings.is_empty(), "{warnings:#?}");
        let chosen = events.iter().filter(|event| event["reason"] == "VersionChosen");
        let chosen: Vec<&str> = chosen.filter_map(|event| event["note"].as_str()).collect();
        ensure!(
            chosen.len() == 2 && chosen.iter().all(|note| note.contains(" was chosen: ")),
            "{chosen:?}"
        );
        ensure_nothing_was_forbidden(bed, started).await
    })
}

#[test]
fn install_on_one_control_plane_node_runs_one_csi_controller() -> Result<()> {
    INSTALLED.run(async |bed| {
        let controller = bed
            .get("apps/v1", "Deployment", "vmware-system-csi", "vsphere-csi-controller")
            .await?;
        assert_eq!(controller["spec"]["replicas"], 1, "one replica for one control-plane node");
        assert_eq!(controller["status"]["readyReplicas"], 1);
        Ok(())
    })
}

#[test]
fn install_applies_every_object_as_field_manager_vdo() -> Result<()> {
    INSTALLED.run(async |bed| {
        let all = bed.owned().await?;
        ensure!(!all.is_empty(), "nothing is installed");
        for owned in all {
            let live = bed
                .get(
                    owned["apiVersion"].as_str().unwrap_or_default(),
                    owned["kind"].as_str().unwrap_or_default(),
                    owned["metadata"]["namespace"].as_str().unwrap_or_default(),
                    owned["metadata"]["name"].as_str().unwrap_or_default(),
                )
                .await?;
            ensure!(live != Value::Null, "{} is gone", name(&owned));
            let managers = live["metadata"]["managedFields"].to_string();
            ensure!(managers.contains("\"vdo\""), "{} is not managed by vdo: {managers}", name(&owned));
        }
        Ok(())
    })
}

/// Ten forced resyncs, no request.
#[test]
fn resync_of_installed_drivers_asks_nothing() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let mark = bed.cluster.audit().mark().await?;
        for round in 0..10 {
            resync(bed, &round.to_string()).await?;
        }
        let requests = bed.operator_requests(mark).await?;
        ensure!(requests.is_empty(), "at rest the operator asked:\n{requests}");
        Ok(())
    })
}

#[test]
fn restart_with_installed_drivers_writes_nothing() -> Result<()> {
    INSTALLED.run(async |bed| {
        // The first look at the vCenter sees what the last test has changed in it.
        restart(bed).await?;
        until_at_rest(bed).await?;
        let mark = bed.cluster.audit().mark().await?;
        restart(bed).await?;
        let writes = bed.operator_requests(mark).await?.writes();
        ensure!(writes.is_empty(), "after a restart the operator wrote:\n{writes}");
        Ok(())
    })
}
