// SPDX-License-Identifier: Apache-2.0
//! What the administrator brings: when it is not enough, it is said with the command that helps, and nothing is half-done.

use crate::common::{NS, PATIENCE, condition, name};
use crate::dry_run::connect;
use crate::fixture::{INSTALLED, OPERATOR};
use crate::install::{ensure_nothing_was_forbidden, until_at_rest};
use crate::page::open;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const CSI: &str = "vmware-system-csi";
const RBAC: &str = "rbac.authorization.k8s.io/v1";
const ROLE: &str = "vsphere-csi-controller-role";
/// Learning the content of all charts takes a debug build half of the usual limit, beside other tests more.
const MISSING: [&str; 4] = ["rights", "--missing", "--timeout", "3m"];

const COMMAND: &str = "vdoctl rights --missing | kubectl apply --server-side --force-conflicts -f -";

/// Waits until Ready says that rights of the storage driver are missing, with these words.
async fn missing(bed: &crate::common::Bed, words: &[&str]) -> Result<()> {
    until(&format!("rights to be missing: {words:?}"), PATIENCE, async || {
        let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        let ready = condition(&config, "Ready");
        let message = ready["message"].as_str().unwrap_or_default();
        let said = words
            .iter()
            .chain(&[COMMAND, "vsphere-csi waits for missing rights"])
            .all(|word| message.contains(word));
        Ok(Probe::when(ready["reason"] == "RightsMissing" && said, ready))
    })
    .await
}

#[test]
#[ignore = "long"]
fn install_without_a_drivers_role_names_it_and_goes_on_once_it_is_there() -> Result<()> {
    OPERATOR.run(async |bed| {
        let mark = bed.cluster.audit().mark().await?;
        connect(bed).await?;
        bed.delete(RBAC, "ClusterRole", "", ROLE).await?;
        bed.apply(&bed.config(json!({}))).await?;
        missing(bed, &["ClusterRole vsphere-csi-controller-role is missing"]).await?;
        let (code, text, _) = bed.vdoctl(&["plan"])?;
        ensure!(code == 1 && text.contains(COMMAND), "{code}: {text}");
        // The cloud provider does not need it.
        until("the cloud provider to be installed", PATIENCE, async || {
            let found = bed
                .get("apps/v1", "DaemonSet", "kube-system", "vsphere-cloud-controller-manager")
                .await?;
            Ok(Probe::when(!found.is_null(), "no DaemonSet"))
        })
        .await?;
        let of_csi: Vec<String> = bed.owned().await?.iter().map(name).filter(|name| name.contains("csi")).collect();
        ensure!(of_csi.is_empty(), "half a driver: {of_csi:?}");
        // Too little is as good as nothing.
        let few = json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]);
        bed.apply(&json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": ROLE}, "rules": few}))
            .await?;
        missing(
            bed,
            &["ClusterRole vsphere-csi-controller-role does not grant", "more rules are missing"],
        )
        .await?;
        let (code, lacking, reported) = bed.vdoctl(&MISSING)?;
        let lacking = vdo_api::yaml::load_all(&lacking)?;
        let names: Vec<&Value> = lacking.iter().map(|object| &object["metadata"]["name"]).collect();
        ensure!(
            code == 0 && names == [ROLE] && reported.contains("does not grant"),
            "{code}: {names:?} {reported}"
        );
        open(bed, "rights.md")?.set("VDO_TIMEOUT", "3m").run(COMMAND)?;
        let (_, none, reported) = bed.vdoctl(&MISSING)?;
        ensure!(
            none.trim().is_empty() && reported.contains("has all required rights"),
            "{none} {reported}"
        );
        bed.until_ready().await?;
        ensure_nothing_was_forbidden(bed, mark).await
    })
}

/// Another installer of the driver has left a binding of the same name with another role, which no apply can change: the message has the command
/// that deletes it, and with that and the usual one the driver is installed.
#[test]
#[ignore = "long"]
fn binding_with_another_role_is_deleted_by_the_command_of_the_message() -> Result<()> {
    OPERATOR.run(async |bed| {
        connect(bed).await?;
        let binding = "vsphere-csi-controller-binding";
        bed.delete(RBAC, "ClusterRoleBinding", "", binding).await?;
        bed.apply(
            &json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": binding},
            "subjects": [{"kind": "ServiceAccount", "name": "vsphere-csi-controller", "namespace": "kube-system"}],
            "roleRef": {"kind": "ClusterRole", "name": "vsphere-csi-controller", "apiGroup": "rbac.authorization.k8s.io"}}),
        )
        .await?;
        bed.apply(&bed.config(json!({}))).await?;
        let delete = format!("kubectl delete clusterrolebinding {binding}");
        missing(bed, &["instead of ClusterRole vsphere-csi-controller-role", &delete]).await?;
        let (_, _, reported) = bed.vdoctl(&MISSING)?;
        ensure!(reported.contains(&delete), "{reported}");
        ensure!(
            crate::page::run(bed, &format!("export VDO_TIMEOUT=3m\n{COMMAND}")).is_err(),
            "the role of a binding was changed"
        );
        for command in [delete.as_str(), COMMAND] {
            crate::page::run(bed, &format!("export VDO_TIMEOUT=3m\n{command}"))?;
        }
        bed.until_ready().await.map(|_| ())
    })
}

#[test]
#[ignore = "long"]
fn driver_that_runs_and_loses_a_binding_is_kept_and_repaired() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let uid = bed.get("apps/v1", "Deployment", CSI, "vsphere-csi-controller").await?["metadata"]["uid"].clone();
        bed.merge(RBAC, "RoleBinding", CSI, "vsphere-csi-node-binding", json!({"subjects": []}))
            .await?;
        missing(bed, &["does not bind ServiceAccount vmware-system-csi/vsphere-csi-node"]).await?;
        bed.delete("v1", "ConfigMap", "kube-system", "vsphere-cloud-config").await?;
        bed.delete("apps/v1", "DaemonSet", CSI, "vsphere-csi-node-windows").await?;
        until("the drift of both drivers to be repaired", PATIENCE, async || {
            let config = bed.get("v1", "ConfigMap", "kube-system", "vsphere-cloud-config").await?;
            let node = bed.get("apps/v1", "DaemonSet", CSI, "vsphere-csi-node-windows").await?;
            Ok(Probe::when(
                !config.is_null() && !node.is_null(),
                json!([config["metadata"], node["metadata"]]),
            ))
        })
        .await?;
        let after = bed.get("apps/v1", "Deployment", CSI, "vsphere-csi-controller").await?["metadata"]["uid"].clone();
        ensure!(uid == after, "the driver was recreated");
        bed.grant().await?;
        bed.until_ready().await.map(|_| ())
    })
}

/// An installation in which the operator wrote the drivers' roles itself, as earlier versions did: the administrator applies the new
/// deploy/, then the new operator starts. Nothing is deleted, and the drivers run on.
#[test]
#[ignore = "long"]
fn upgrade_from_an_operator_that_wrote_roles_loses_nothing() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        bed.kill_operator();
        let map = bed.state().await?;
        let mut objects: Vec<Value> = serde_json::from_str(map["data"]["objects"].as_str().context("objects")?)?;
        let labels = bed.get("apps/v1", "Deployment", CSI, "vsphere-csi-controller").await?["metadata"]["labels"].clone();
        let brought = [
            (RBAC, "ClusterRole", "", ROLE),
            (RBAC, "ClusterRoleBinding", "", "vsphere-csi-controller-binding"),
            (RBAC, "Role", CSI, "vsphere-csi-node-role"),
            ("v1", "Namespace", "", CSI),
        ];
        for (api_version, kind, namespace, object) in brought {
            bed.merge(api_version, kind, namespace, object, json!({"metadata": {"labels": labels}}))
                .await?;
            let uid = bed.get(api_version, kind, namespace, object).await?["metadata"]["uid"].clone();
            let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
            objects.push(
                json!({"group": group, "kind": kind, "namespace": namespace, "name": object, "apiVersion": api_version,
                "driver": "vsphere-csi", "wave": 2, "uid": uid}),
            );
        }
        let data = json!({"data": {"objects": serde_json::to_string(&objects)?}});
        bed.merge_state(data).await?;
        let drivers = json!({"name": "vdo-operator-drivers"});
        bed.apply(&json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": drivers, "rules": []}))
            .await?;
        let mark = bed.cluster.audit().mark().await?;
        let mut page = open(bed, "rights.md")?.set("VDO", env!("CARGO_MANIFEST_DIR"));
        page.run("kubectl apply")?;
        bed.grant().await?;
        bed.start_operator().await?;
        // A change, so that the inventory is written again.
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"windows": false}})))
            .await?;
        until("the inventory without what the administrator brings", PATIENCE, async || {
            let map = bed.state().await?;
            let text = map["data"]["objects"].as_str().unwrap_or_default();
            Ok(Probe::when(!text.contains(ROLE) && !text.contains("node-windows"), text))
        })
        .await?;
        bed.until_ready().await?;
        let gone = bed.deleted(mark).await?;
        let gone = gone.only(|e| e.name != "vsphere-csi-node-windows");
        ensure!(gone.is_empty(), "something was deleted:\n{gone}");
        // Only the administrator can take the old labels off.
        page.run("kubectl delete")?;
        page.end(&[COMMAND])?;
        ensure!(
            bed.get(RBAC, "ClusterRole", "", "vdo-operator-drivers").await?.is_null(),
            "the old role is left"
        );
        for (api_version, kind, namespace, object) in brought {
            let left = bed.get(api_version, kind, namespace, object).await?;
            ensure!(!left.is_null(), "{kind} {object} is gone");
            let marks = left["metadata"]["labels"].to_string();
            ensure!(
                !marks.contains("vdo.vmware.com") && !marks.contains("applyset"),
                "{kind} {object} bears {marks}"
            );
        }
        ensure_nothing_was_forbidden(bed, mark).await
    })
}
