// SPDX-License-Identifier: Apache-2.0
//! Objects of the operator with a wrong value in a field that Kubernetes does not let change: they are deleted and created again, and
//! what holds the data of users is not touched.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::PATIENCE;
use crate::fixture::INSTALLED;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

/// A Secret of another type, as a release before this one could have made it.
#[test]
fn recreate_secret_of_other_type_is_replaced_once() -> Result<()> {
    INSTALLED.run(async |bed| {
        let (kind, namespace, name) = ("Secret", "vmware-system-csi", "vsphere-config-secret");
        bed.kill_operator();
        let right = bed.get("v1", kind, namespace, name).await?;
        let old_uid = right["metadata"]["uid"].as_str().context("a UID")?.to_owned();
        bed.delete("v1", kind, namespace, name).await?;
        let metadata = json!({"name": name, "namespace": namespace, "labels": right["metadata"]["labels"], "annotations": {"vdo.vmware.com/applied": "earlier"}});
        let wrong = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "type": "example.com/earlier", "data": right["data"]});
        bed.apply(&wrong).await?;
        let wrong = bed.get("v1", kind, namespace, name).await?;
        let wrong_uid = wrong["metadata"]["uid"].as_str().context("a UID")?;
        let map = bed.state().await?;
        let objects = map["data"]["objects"].as_str().context("objects")?.replace(&old_uid, wrong_uid);
        bed.merge_state(json!({"data": {"objects": objects}}))
            .await?;
        let (code, text, _) = bed.vdoctl(&["plan"])?;
        println!("{text}");
        assert_eq!(code, 1);
        assert!(
            text.contains(&format!("± Secret {namespace}/{name}")) && text.contains("type"),
            "{text}"
        );
        let mark = bed.cluster.audit().mark().await?;
        bed.start_operator().await?;
        until("the Secret to be created again", PATIENCE, async || {
            let live = bed.get("v1", kind, namespace, name).await?;
            Ok(Probe::when(live["type"] == right["type"] && live["data"] == right["data"], &live["type"]))
        })
        .await?;
        bed.until_ready().await?;
        let deleted = bed.deleted(mark).await?;
        assert_eq!(deleted.len(), 1, "{deleted}");
        Ok(())
    })
}

/// A StorageClass, a volume and its claim, as users have them.
fn volume() -> [Value; 3] {
    let driver = "csi.vsphere.vmware.com";
    let (size, modes) = (json!({"storage": "1Gi"}), json!(["ReadWriteOnce"]));
    [
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "users"}, "provisioner": driver}),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "users"}, "spec": {"capacity": size,
            "accessModes": modes, "storageClassName": "users", "csi": {"driver": driver, "volumeHandle": "users"},
            "claimRef": {"namespace": "default", "name": "users"}}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "users", "namespace": "default"}, "spec": {
            "accessModes": modes, "storageClassName": "users", "volumeName": "users", "resources": {"requests": size}}}),
    ]
}

/// Workloads with other selectors and a CSIDriver with another specification, as a release before this one could have made them.
#[test]
#[ignore = "long"]
fn recreate_workloads_and_csi_driver_leaves_volumes_untouched() -> Result<()> {
    INSTALLED.run(async |bed| {
        const CSI_NS: &str = "vmware-system-csi";
        const CASES: [(&str, &str, &str, &str); 4] = [
            ("storage.k8s.io/v1", "CSIDriver", "", "csi.vsphere.vmware.com"),
            ("apps/v1", "DaemonSet", "kube-system", "vsphere-cloud-controller-manager"),
            ("apps/v1", "DaemonSet", CSI_NS, "vsphere-csi-node"),
            ("apps/v1", "Deployment", CSI_NS, "vsphere-csi-controller"),
        ];
        let data = [
            ("storage.k8s.io/v1", "StorageClass", "", "users"),
            ("v1", "PersistentVolume", "", "users"),
            ("v1", "PersistentVolumeClaim", "default", "users"),
        ];
        for object in volume() {
            bed.apply(&object).await?;
        }
        until("the claim to be bound", PATIENCE, async || {
            let claim = bed.get("v1", "PersistentVolumeClaim", "default", "users").await?;
            Ok(Probe::when(claim["status"]["phase"] == "Bound", &claim["status"]))
        })
        .await?;
        let mut kept = Vec::new();
        for (api_version, kind, namespace, name) in data {
            kept.push(bed.get(api_version, kind, namespace, name).await?);
        }
        bed.kill_operator();
        let (mut right, mut wrong) = (Vec::new(), Vec::new());
        let map = bed.state().await?;
        let mut objects = map["data"]["objects"].as_str().context("objects")?.to_owned();
        for (api_version, kind, namespace, name) in CASES {
            let live = bed.get(api_version, kind, namespace, name).await?;
            let mut spec = live["spec"].clone();
            if kind == "CSIDriver" {
                spec["attachRequired"] = false.into();
            } else {
                spec["selector"]["matchLabels"]["earlier"] = "true".into();
                spec["template"]["metadata"]["labels"]["earlier"] = "true".into();
            }
            let mut metadata =
                json!({"name": name, "labels": live["metadata"]["labels"], "annotations": {"vdo.vmware.com/applied": "earlier"}});
            if !namespace.is_empty() {
                metadata["namespace"] = namespace.into();
            }
            bed.delete(api_version, kind, namespace, name).await?;
            until(&format!("{kind} {name} to be gone"), PATIENCE, async || {
                let now = bed.get(api_version, kind, namespace, name).await?;
                Ok(Probe::when(now == Value::Null, &now["metadata"]))
            })
            .await?;
            bed.apply(&json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}))
                .await?;
            let now = bed.get(api_version, kind, namespace, name).await?;
            let uid = |object: &Value| object["metadata"]["uid"].as_str().map(str::to_owned).context("a UID");
            objects = objects.replace(&uid(&live)?, &uid(&now)?);
            wrong.push(uid(&now)?);
            right.push(live);
        }
        bed.merge_state(json!({"data": {"objects": objects}})).await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.start_operator().await?;
        for ((api_version, kind, namespace, name), right) in CASES.into_iter().zip(&right) {
            until(&format!("{kind} {name} to be created again"), PATIENCE, async || {
                let now = bed.get(api_version, kind, namespace, name).await?;
                let same = match kind {
                    "CSIDriver" => now["spec"]["attachRequired"] == right["spec"]["attachRequired"],
                    _ => now["spec"]["selector"] == right["spec"]["selector"],
                };
                Ok(Probe::when(same && now != Value::Null, &now["spec"]["selector"]))
            })
            .await?;
        }
        bed.until_ready().await?;
        let deleted = bed.deleted(mark).await?;
        assert_eq!(deleted.len(), wrong.len(), "{deleted}");
        for ((api_version, kind, namespace, name), before) in data.into_iter().zip(&kept) {
            let now = bed.get(api_version, kind, namespace, name).await?;
            assert_eq!(
                (&now["metadata"]["resourceVersion"], &now["spec"]),
                (&before["metadata"]["resourceVersion"], &before["spec"]),
                "{kind} {name} was touched"
            );
        }
        Ok(())
    })
}

/// A DaemonSet whose selector cannot be changed into the right one, which its pods match: it is recreated around them, and they are replaced
/// one by one, because their template is another one.
#[test]
#[ignore = "long"]
fn recreate_of_daemon_set_takes_over_its_pods_and_replaces_them_one_by_one() -> Result<()> {
    INSTALLED.run(async |bed| {
        let (kind, namespace, name) = ("DaemonSet", "vmware-system-csi", "vsphere-csi-node");
        let get = async |bed: &crate::common::Bed| bed.get("apps/v1", kind, namespace, name).await;
        let number = |set: &Value, field: &str| set["status"][field].as_i64().unwrap_or_default();
        let pods = async |bed: &crate::common::Bed| -> Result<Vec<Value>> {
            let all = bed.list("v1", "Pod", "app=vsphere-csi-node").await?;
            Ok(all
                .into_iter()
                .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
                .collect())
        };
        bed.kill_operator();
        let right = get(bed).await?;
        let all = number(&right, "desiredNumberScheduled");
        anyhow::ensure!(all > 2, "{all} pods are too few to show anything");
        let mut spec = right["spec"].clone();
        spec["selector"]["matchLabels"]["earlier"] = "true".into();
        spec["template"]["metadata"]["labels"]["earlier"] = "true".into();
        let metadata = json!({"name": name, "namespace": namespace, "labels": right["metadata"]["labels"],
            "annotations": {"vdo.vmware.com/applied": "earlier"}});
        bed.delete("apps/v1", kind, namespace, name).await?;
        until("the DaemonSet and its pods to be gone", PATIENCE, async || {
            let left = pods(bed).await?.len();
            Ok(Probe::when(left == 0 && get(bed).await? == Value::Null, format!("{left} pods")))
        })
        .await?;
        bed.apply(&json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}))
            .await?;
        until("the pods of before to be ready", PATIENCE, async || {
            // A node that an earlier test has added may still be on its way out.
            let set = get(bed).await?;
            let (ready, all) = (number(&set, "numberReady"), number(&set, "desiredNumberScheduled"));
            Ok(Probe::when(all > 2 && ready == all, format!("{ready} of {all}")))
        })
        .await?;
        let earlier: Vec<Value> = pods(bed).await?.iter().map(|pod| pod["metadata"]["uid"].clone()).collect();
        let map = bed.state().await?;
        let uid = |object: &Value| object["metadata"]["uid"].as_str().map(str::to_owned).context("a UID");
        let objects = map["data"]["objects"].as_str().context("objects")?;
        let objects = objects.replace(&uid(&right)?, &uid(&get(bed).await?)?);
        bed.merge_state(json!({"data": {"objects": objects}})).await?;

        bed.start_operator().await?;
        let mut least = usize::MAX;
        until("the DaemonSet to be recreated and its pods to be replaced", PATIENCE, async || {
            let (now, set) = (pods(bed).await?, get(bed).await?);
            let ready = now.iter().filter(|pod| crate::common::condition(pod, "Ready")["status"] == "True");
            let ready = ready.count();
            least = least.min(ready);
            let owned = |pod: &&Value| pod["metadata"]["ownerReferences"][0]["uid"] == set["metadata"]["uid"];
            let old = |pod: &&Value| earlier.contains(&pod["metadata"]["uid"]);
            let (owned, old) = (now.iter().filter(owned).count(), now.iter().filter(old).count());
            let seen = format!(
                "{ready} pods are ready, {owned} are owned, {old} are of before, {}",
                set["spec"]["selector"]
            );
            let recreated = set["spec"]["selector"] == right["spec"]["selector"];
            Ok(Probe::when(
                recreated && old == 0 && owned == earlier.len() && ready == earlier.len(),
                seen,
            ))
        })
        .await?;
        anyhow::ensure!(
            least + 1 >= earlier.len(),
            "of {} pods only {least} were ready at one time",
            earlier.len()
        );
        bed.until_ready().await.map(drop)
    })
}
