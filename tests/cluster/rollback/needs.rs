// SPDX-License-Identifier: Apache-2.0
//! Revisions that need what is no longer there: kinds that the API server serves, and images.

use super::{CSI, NOWHERE, VDO, ensure_same, history, objects};
use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::{INSTALLED, written};
use crate::install::until_at_rest;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_core::manifest::Object;
use vdo_core::plan::{Inventory, PackedObjects, Stored};
use vdo_testbed::{Probe, until};

const KEY: &str = "revision.vdo.vmware.com/vsphere-csi";

/// An API version that Kubernetes 1.22 took away.
const LOST: &str = "storage.k8s.io/v1beta1";

/// Has a revision of the storage driver hold its CSIDriver in this API version: in [`LOST`], as on an older cluster, or as it was.
async fn outdate(bed: &Bed, number: u64, api_version: &str) -> Result<()> {
    let map = bed.state().await?;
    let stored = Stored {
        data: serde_json::from_value(map["data"].clone())?,
        binary: serde_json::from_value(map["binaryData"].clone())?,
    };
    let mut inventory = Inventory::parse("vdo-state", &stored)?;
    let revisions = inventory.history.get_mut(CSI).context("a history")?;
    let revision = revisions
        .iter_mut()
        .find(|revision| revision.number == number)
        .context("a revision")?;
    let mut objects = revision.objects.objects();
    let old = objects
        .iter_mut()
        .find(|object| object.kind() == "CSIDriver")
        .context("a CSIDriver")?;
    let mut value = old.value().clone();
    value["apiVersion"] = api_version.into();
    *old = Object::new(value)?;
    revision.objects = PackedObjects::of(objects.iter());
    let Stored { data, binary } = inventory.stored();
    let mut changes = json!({"data": data, "binaryData": binary});
    for key in stored.binary.keys().filter(|key| !binary.contains_key(*key)) {
        changes["binaryData"][key] = Value::Null;
    }
    bed.merge_state(changes).await
}

/// That nothing is written but what is reported, whatever wakes the operator.
async fn ensure_quiet(bed: &Bed, token: &str) -> Result<()> {
    let mark = bed.cluster.audit().mark().await?;
    let before = bed.reconciles().await?;
    let change = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": token}}});
    bed.merge(VDO, "VDOConfig", NS, "vdo", change).await?;
    until("the resync to be made", PATIENCE, async || {
        Ok(Probe::when(bed.reconciles().await? > before, "not yet"))
    })
    .await?;
    let writes = written(bed, mark).await?;
    ensure!(writes.is_empty(), "the operator wrote:\n{writes}");
    Ok(())
}

/// A change fails, and the revision before it needs a kind that is served no more: it is reported, the change goes on, and nothing else is
/// touched.
#[test]
#[ignore = "long"]
fn rollback_of_a_change_to_kind_that_is_not_served_is_reported_and_not_made() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let good = history(bed)?.last().context("a revision")?.0;
        let cpi = bed
            .get("apps/v1", "DaemonSet", "kube-system", "vsphere-cloud-controller-manager")
            .await?;
        bed.kill_operator();
        outdate(bed, good, LOST).await?;
        let broken = json!({"progressDeadline": "10s", "cloudProvider": {}, "storageProvider": {"version": "3.6.3",
            "values": {"images": {"registry": NOWHERE}}}});
        bed.apply(&bed.config(broken)).await?;
        bed.start_operator().await?;
        let words = [
            &format!("revision {good}"),
            "does not serve CSIDriver of storage.k8s.io/v1beta1",
            "the installed version failed",
            NOWHERE,
        ];
        // The pods say what is wrong with them later than the deadline, where the machine is busy.
        until("the rollback to be reported", PATIENCE, async || {
            let ready = bed.until_reason("Ready", "RevisionUnusable").await?;
            let message = ready["message"].as_str().unwrap_or_default().to_owned();
            Ok(Probe::when(words.iter().all(|word| message.contains(word)), message))
        })
        .await?;
        let all = history(bed)?;
        ensure!(
            all.last().is_some_and(|newest| newest.1 == "3.6.3" && newest.2 == "Progressing"),
            "{all:?}"
        );
        ensure_quiet(bed, "not served").await?;
        let now = bed
            .get("apps/v1", "DaemonSet", "kube-system", "vsphere-cloud-controller-manager")
            .await?;
        ensure!(
            now["metadata"]["generation"] == cpi["metadata"]["generation"],
            "the CPI was touched"
        );

        bed.kill_operator();
        outdate(bed, good, "storage.k8s.io/v1").await?;
        bed.apply(&bed.config(json!({"updatePolicy": "Latest"}))).await?;
        bed.start_operator().await?;
        bed.until_ready().await?;
        bed.apply(&bed.config(json!({}))).await?;
        bed.until_ready().await.map(drop)
    })
}

/// The annotation can be set without the command. What runs stays, and is repaired.
#[test]
#[ignore = "long"]
fn rollback_by_annotation_to_kind_that_is_not_served_touches_nothing() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let good = history(bed)?.last().context("a revision")?.0;
        let values = json!({"values": {"proxy": {"http": "http://proxy.example.com:3128"}}});
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": values})))
            .await?;
        until("another revision", PATIENCE, async || {
            let newest = history(bed)?.last().cloned().context("a revision")?;
            Ok(Probe::when(newest.0 > good && newest.2 == "Deployed", format!("{newest:?}")))
        })
        .await?;
        bed.until_ready().await?;
        let before = objects(bed).await?;
        bed.kill_operator();
        outdate(bed, good, LOST).await?;
        let pin = |value: Value| json!({"metadata": {"annotations": {KEY: value}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", pin(good.to_string().into())).await?;
        bed.start_operator().await?;
        let ready = bed.until_reason("Ready", "RevisionUnusable").await?;
        let message = ready["message"].as_str().unwrap_or_default();
        println!("{message}");
        ensure!(message.contains("does not serve CSIDriver of storage.k8s.io/v1beta1"), "{message}");
        ensure_quiet(bed, "not served either").await?;
        ensure_same(&before, &objects(bed).await?)?;
        let (kind, namespace, name) = ("Service", "vmware-system-csi", "vsphere-csi-controller");
        bed.delete("v1", kind, namespace, name).await?;
        until("the Service to be back", PATIENCE, async || {
            let found = bed.get("v1", kind, namespace, name).await?;
            Ok(Probe::when(found != Value::Null, "it is gone"))
        })
        .await?;

        bed.kill_operator();
        outdate(bed, good, "storage.k8s.io/v1").await?;
        bed.merge(VDO, "VDOConfig", NS, "vdo", pin(Value::Null)).await?;
        bed.apply(&bed.config(json!({}))).await?;
        bed.start_operator().await?;
        bed.until_ready().await.map(drop)
    })
}

/// The command asks the API server before anything is written. No operator runs, and the record is put back: nothing is left of it.
#[test]
fn rollback_command_to_kind_that_is_not_served_is_refused_before_a_write() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        bed.kill_operator();
        let map = bed.state().await?;
        let good = history(bed)?.last().context("a revision")?.0;
        outdate(bed, good, LOST).await?;
        let (code, _, err) = bed.vdoctl(&["rollback", "csi", &good.to_string()])?;
        println!("{err}");
        let refused = err.contains("does not serve CSIDriver of storage.k8s.io/v1beta1") && err.contains("Nothing was changed");
        ensure!(code == 4 && refused, "{code} {err}");
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        ensure!(config["metadata"]["annotations"][KEY] == Value::Null, "{}", config["metadata"]);
        bed.merge_state(json!({"data": null, "binaryData": null})).await?;
        let kept = json!({"data": map["data"], "binaryData": map["binaryData"]});
        bed.merge_state(kept).await?;
        bed.start_operator().await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// A change fails, and the matrix has withdrawn the version that worked: it is reported, and the change goes on.
#[test]
#[ignore = "long"]
fn rollback_to_withdrawn_version_is_reported_and_not_made() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("index.json");
        let mut index = crate::matrix_source::embedded_index()?;
        let versions = index["drivers"][CSI]["versions"].as_array_mut().context("versions")?;
        for entry in versions.iter_mut().filter(|entry| entry["version"] == "3.8.0") {
            entry["state"] = json!({"kind": "withdrawn", "reason": "it loses volumes"});
        }
        std::fs::write(&file, index.to_string())?;
        let good = history(bed)?.last().context("a revision")?.0;
        bed.kill_operator();
        let broken = json!({"progressDeadline": "10s", "cloudProvider": {}, "storageProvider": {"version": "3.6.3",
            "values": {"images": {"registry": NOWHERE}}}});
        bed.apply(&bed.config(broken)).await?;
        bed.flags.push(("matrix", Box::leak(file.display().to_string().into_boxed_str())));
        bed.start_operator().await?;
        let ready = bed.until_reason("Ready", "RevisionUnusable").await?;
        let message = ready["message"].as_str().unwrap_or_default();
        println!("{message}");
        for words in [
            format!("revision {good}"),
            "withdrawn CSI 3.8.0 (it loses volumes)".into(),
            NOWHERE.into(),
        ] {
            ensure!(message.contains(&words), "{words:?} is not in {message}");
        }
        let all = history(bed)?;
        ensure!(
            all.last().is_some_and(|newest| newest.1 == "3.6.3" && newest.2 == "Progressing"),
            "{all:?}"
        );
        bed.kill_operator();
        bed.flags.pop();
        bed.apply(&bed.config(json!({"updatePolicy": "Latest"}))).await?;
        bed.start_operator().await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// What is known of the images of a revision is reported before it is brought back; one that certainly is not there stops it.
#[test]
#[ignore = "long"]
fn rollback_to_images_that_are_gone_is_reported_before_it_starts() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let last = history(bed)?.last().context("a revision")?.0;
        let config = |storage: Value| bed.config(json!({"progressDeadline": "10s", "cloudProvider": {}, "storageProvider": storage}));
        bed.apply(&config(json!({"values": {"images": {"registry": NOWHERE}}}))).await?;
        super::until_rolled_back(bed).await?;
        let failed = last + 1;
        // Nothing is listed: that a node says nothing is no evidence. That the change failed is.
        let (code, _, err) = bed.vdoctl(&["rollback", "csi", &failed.to_string()])?;
        println!("{err}");
        ensure!(
            code == 0 && err.contains("failed when it was applied") && !err.contains("no node reports"),
            "{code} {err}"
        );
        bed.until_reason("StorageReady", "PodsFailing").await?;
        let (code, _, err) = bed.vdoctl(&["rollback", "csi", "--lift"])?;
        ensure!(code == 0, "{err}");
        // What is good has the time that it needs.
        let good = json!({"cloudProvider": {}, "storageProvider": {"version": "3.8.0"}});
        bed.apply(&bed.config(good)).await?;
        bed.until_ready().await?;

        // A node lists other images, and a pod waits for one of the revision.
        let images = json!({"status": {"images": [{"names": ["registry.example.com/other:v1"], "sizeBytes": 1}]}});
        let params = kube::api::PatchParams::default();
        bed.api("v1", "Node", "")
            .patch_status("cp-1", &params, &kube::api::Patch::Merge(&images))
            .await?;
        let (_, text, _) = bed.vdoctl(&["history", "csi", &failed.to_string(), "-o", "json"])?;
        let image = text
            .split('"')
            .find(|word| word.starts_with(NOWHERE))
            .context("an image")?
            .to_owned();
        let spec = json!({"containers": [{"name": "c", "image": image}]});
        bed.apply(
            &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waits", "namespace": "vmware-system-csi"}, "spec": spec}),
        )
        .await?;
        until("the image to be missed", PATIENCE, async || {
            let status = bed.get("v1", "Pod", "vmware-system-csi", "waits").await?["status"].clone();
            Ok(Probe::when(status.to_string().contains("ImagePullBackOff"), status))
        })
        .await?;
        let (code, _, err) = bed.vdoctl(&["rollback", "csi", &failed.to_string()])?;
        println!("{err}");
        ensure!(
            code == 4 && err.contains(&image) && err.contains("Pod vmware-system-csi/waits cannot pull"),
            "{code} {err}"
        );
        bed.delete("v1", "Pod", "vmware-system-csi", "waits").await?;
        until("the pod to be gone", PATIENCE, async || {
            let pod = bed.get("v1", "Pod", "vmware-system-csi", "waits").await?;
            Ok(Probe::when(pod == Value::Null, pod["metadata"].clone()))
        })
        .await?;
        let (code, _, err) = bed.vdoctl(&["rollback", "csi", &failed.to_string()])?;
        ensure!(
            code == 0 && err.contains("no node reports these images") && err.contains(&image),
            "{code} {err}"
        );
        let (code, _, err) = bed.vdoctl(&["rollback", "csi", "--lift"])?;
        ensure!(code == 0, "{err}");
        let none = json!({"status": {"images": null}});
        bed.api("v1", "Node", "")
            .patch_status("cp-1", &params, &kube::api::Patch::Merge(&none))
            .await?;
        bed.apply(&bed.config(json!({}))).await?;
        bed.until_ready().await?;
        Ok(())
    })
}
