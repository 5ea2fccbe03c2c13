// SPDX-License-Identifier: Apache-2.0
//! The uninstall on a real control plane: what is kept, what is waited for, and what it costs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

pub mod volumes;

use crate::common::{Bed, NS, PATIENCE, condition, name};
use crate::fixture::INSTALLED;
use crate::install::{ensure_nothing_was_forbidden, until_at_rest};
use crate::preconditions::definition;
use crate::uninstall::volumes::volume;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo::cluster::{Writer, holder};
use vdo_api::types::ObjectId;
use vdo_core::manifest::Object;
use vdo_testbed::{Entry, Mark, Probe, until};

const CSI_NS: &str = "vmware-system-csi";
const VDO: &str = "vdo.vmware.com/v1alpha1";
const DESPITE: &str = "vdo.vmware.com/remove-despite-volumes";

/// Waits until an object is gone.
async fn until_gone(bed: &Bed, api_version: &str, kind: &str, namespace: &str, object: &str) -> Result<()> {
    until(&format!("{kind} {object} to be gone"), PATIENCE, async || {
        let left = bed.get(api_version, kind, namespace, object).await?;
        Ok(Probe::when(left == Value::Null, format!("{} {}", left["metadata"], left["status"])))
    })
    .await
}

async fn until_uninstalled(bed: &Bed) -> Result<()> {
    until_gone(bed, VDO, "VDOConfig", NS, "vdo").await
}

/// A delete for each object, and six more: for the inventory, the finalizer, an event, the statuses. What the operator may do is asked
/// besides that, once for each namespace, unless nothing is tried on the server before it is done.
async fn ensure_budget(bed: &Bed, mark: Mark, objects: usize) -> Result<()> {
    let asked = bed.operator_requests(mark).await?;
    println!("uninstall of {objects} objects: {} requests\n{asked}", asked.len());
    let reviews = |e: &Entry| e.resource == "selfsubjectrulesreviews";
    let (rights, requests) = (asked.clone().only(reviews), asked.only(|e| !reviews(e)));
    ensure!(rights.len() <= 2, "{} looks at the own rights", rights.len());
    ensure!(
        requests.len() <= objects + 6,
        "{} requests for {objects} objects:\n{requests}",
        requests.len()
    );
    let deletes = requests.only(|e| e.verb == "delete").len();
    ensure!(
        deletes == objects + 1,
        "{deletes} deletes for {objects} objects and their inventory"
    );
    Ok(())
}

/// The precondition that the last look rests on, as the API server has it.
#[test]
fn delete_of_object_changed_since_it_was_seen_is_skipped() -> Result<()> {
    INSTALLED.run(async |bed| {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seen", "namespace": "default"}});
        bed.apply(&map).await?;
        let read = async || Ok::<_, anyhow::Error>(Object::new(bed.get("v1", "ConfigMap", "default", "seen").await?)?);
        let seen = read().await?;
        let writer = Writer::new(bed.cluster.client(), |_, _| {});
        let label = json!({"metadata": {"labels": {"changed": "since"}}});
        bed.merge("v1", "ConfigMap", "default", "seen", label).await?;
        ensure!(
            !writer.delete_as_seen("v1", &seen, false).await?,
            "an object was deleted that had changed"
        );
        ensure!(
            writer.delete_as_seen("v1", &read().await?, false).await?,
            "the object as it is was not deleted"
        );
        until_gone(bed, "v1", "ConfigMap", "default", "seen").await?;
        ensure!(
            writer.delete_as_seen("v1", &seen, false).await?,
            "what is gone does not count as done"
        );
        Ok(())
    })
}

/// Every kind that never goes implicitly, empty and in use. Claims and volumes themselves are in no chart and in no inventory.
#[test]
fn holder_of_definition_or_class_is_found() -> Result<()> {
    INSTALLED.run(async |bed| {
        let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.org"},
            "spec": {"group": "example.org", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
        let class =
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "held"}, "provisioner": "example.org"});
        let place = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "held"}});
        let contents = definition("VolumeSnapshotContent", false);
        for object in [&crd, &contents, &class, &place] {
            bed.apply(object).await?;
        }
        let within = |api_version: &str, kind: &str, spec: Value| {
            let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "held"}});
            for (key, value) in spec.as_object().into_iter().flatten() {
                object[key] = value.clone();
            }
            object
        };
        let claim = |namespace: &str| {
            let mut claim = within(
                "v1",
                "PersistentVolumeClaim",
                json!({"spec": {"storageClassName": "held",
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
            );
            claim["metadata"]["namespace"] = namespace.into();
            claim
        };
        let mut of_class = volume("held-pv");
        of_class["spec"]["storageClassName"] = "held".into();
        for (kind, user) in [
            ("CustomResourceDefinition", within("example.org/v1", "Thing", json!({}))),
            ("StorageClass", claim("default")),
            ("StorageClass", of_class),
            (
                "VolumeSnapshotClass",
                json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent", "metadata": {"name": "taken"},
                    "spec": {"volumeSnapshotClassName": "held"}}),
            ),
        ] {
            let id = match kind {
                "CustomResourceDefinition" => ObjectId::new("apiextensions.k8s.io", kind, "", "things.example.org"),
                "VolumeSnapshotClass" => ObjectId::new("snapshot.storage.k8s.io", kind, "", "held"),
                _ => ObjectId::new("storage.k8s.io", kind, "", "held"),
            };
            let free = holder(&bed.cluster.client(), &id).await?;
            ensure!(free.is_none(), "{id}: {free:?} although nothing uses it");
            bed.apply(&user).await?;
            let (user_kind, user_name) = (
                user["kind"].as_str().unwrap_or_default(),
                user["metadata"]["name"].as_str().unwrap_or_default(),
            );
            let found = holder(&bed.cluster.client(), &id)
                .await?
                .with_context(|| format!("{id} could go in spite of {user}"))?;
            ensure!(found.contains(user_name), "{id}: {found}");
            println!("{id} stays: {found}");
            let namespace = user["metadata"]["namespace"].as_str().unwrap_or_default();
            let api_version = user["apiVersion"].as_str().unwrap_or_default();
            bed.merge(
                api_version,
                user_kind,
                namespace,
                user_name,
                json!({"metadata": {"finalizers": null}}),
            )
            .await?;
            bed.delete(api_version, user_kind, namespace, user_name).await?;
            until("what used it to be gone", PATIENCE, async || {
                let left = bed.get(api_version, user_kind, namespace, user_name).await?;
                Ok(Probe::when(left == Value::Null, &left["metadata"]))
            })
            .await?;
        }
        bed.delete("v1", "Namespace", "", "held").await?;
        until_gone(bed, "v1", "Namespace", "", "held").await
    })
}

/// From drivers that are well to nothing: everything goes but what the administrator brought.
#[test]
fn uninstall_leaves_nothing_and_stays_within_request_budget() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let objects = bed.owned().await?.len();
        let mark = bed.cluster.audit().mark().await?;
        bed.uninstall().await?;
        until("the status of the connection to be written", PATIENCE, async || {
            let written = bed.operator_requests(mark).await?.only(|e| e.resource == "vspherecloudconfigs");
            Ok(Probe::when(!written.is_empty(), "its status is as it was"))
        })
        .await?;
        let left: Vec<String> = bed.owned().await?.iter().map(name).collect();
        ensure!(left.is_empty(), "left behind: {left:?}");
        ensure_budget(bed, mark, objects).await?;
        ensure_nothing_was_forbidden(bed, mark).await
    })
}

/// What others use or have made stays: a storage class with a claim, a volume, an object in the namespace of the driver; and what the
/// administrator brought.
#[test]
fn uninstall_keeps_used_class_volume_and_foreign_object() -> Result<()> {
    INSTALLED.run(async |bed| {
        let mark = bed.cluster.audit().mark().await?;
        let class = |name: &str| json!({"name": name, "bindingMode": "WaitForFirstConsumer"});
        let storage = json!({"storageClasses": [class("fast"), class("slow")]});
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": storage}))).await?;
        bed.until_ready().await?;
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"}, "spec": {
            "storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": CSI_NS}});
        for object in [&claim, &foreign, &volume("pv-1")] {
            bed.apply(object).await?;
        }
        let despite = json!({"metadata": {"annotations": {DESPITE: "true"}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", despite).await?;
        bed.uninstall().await?;
        let class = async |name: &str| bed.get("storage.k8s.io/v1", "StorageClass", "", name).await;
        assert_eq!(class("slow").await?, Value::Null, "the class that no one uses goes");
        let namespace = bed.get("v1", "Namespace", "", CSI_NS).await?;
        for (what, kept) in [("the class in use", class("fast").await?), ("the namespace", namespace)] {
            assert!(kept["metadata"]["uid"].is_string(), "{what} stays");
            let marks: Vec<&String> = kept["metadata"]["labels"]
                .as_object()
                .into_iter()
                .flat_map(|labels| labels.keys())
                .filter(|key| key.contains("vdo") || key.contains("applyset") || key.contains("managed-by"))
                .collect();
            assert!(marks.is_empty(), "{what} bears {marks:?} although no one looks after it");
        }
        let left: Vec<String> = bed.owned().await?.iter().map(name).collect();
        assert!(left.is_empty(), "{left:?} stay");
        assert_ne!(bed.get("v1", "ConfigMap", CSI_NS, "mine").await?, Value::Null);
        assert_ne!(bed.get("v1", "PersistentVolume", "", "pv-1").await?, Value::Null);
        assert_eq!(
            bed.state().await?,
            Value::Null,
            "the inventory goes last"
        );
        ensure_nothing_was_forbidden(bed, mark).await?;
        bed.delete("storage.k8s.io/v1", "StorageClass", "", "fast").await
    })
}

/// Drivers that are left behind bear no marks of ours, so that a VDOConfig of another name takes them over as they run.
#[test]
#[ignore = "long"]
fn uninstall_with_orphan_policy_leaves_drivers_that_another_config_takes_over() -> Result<()> {
    INSTALLED.run(async |bed| {
        let running = async || {
            let found = bed.get("apps/v1", "Deployment", CSI_NS, "vsphere-csi-controller").await?;
            anyhow::Ok((found["metadata"]["uid"].to_string(), found["spec"]["template"].to_string()))
        };
        let (before, owned) = (running().await?, bed.owned().await?.len());
        bed.merge(VDO, "VDOConfig", NS, "vdo", json!({"spec": {"deletionPolicy": "Orphan"}}))
            .await?;
        bed.delete(VDO, "VDOConfig", NS, "vdo").await?;
        until_uninstalled(bed).await?;
        let marked: Vec<String> = bed.owned().await?.iter().map(name).collect();
        ensure!(marked.is_empty(), "these bear marks of no owner: {marked:?}");
        ensure!(running().await? == before, "the driver was touched");
        let mut next = bed.config(json!({}));
        next["metadata"]["name"] = "next".into();
        bed.apply(&next).await?;
        until("the other VDOConfig to have taken over", PATIENCE, async || {
            let config = bed.get(VDO, "VDOConfig", NS, "next").await?;
            let ready = condition(&config, "Ready");
            Ok(Probe::when(ready["status"] == "True" && ready["reason"] == "Healthy", ready))
        })
        .await?;
        ensure!(running().await? == before, "the driver was recreated");
        ensure!(bed.owned().await?.len() == owned, "not everything was taken over");
        bed.delete(VDO, "VDOConfig", NS, "next").await?;
        until_gone(bed, VDO, "VDOConfig", NS, "next").await?;
        ensure!(bed.owned().await?.is_empty(), "something is left");
        Ok(())
    })
}

/// An object with a finalizer is named once the patience is over; the rest goes, and nothing is forced.
#[test]
#[ignore = "long"]
fn uninstall_with_finalizer_names_the_object_and_removes_the_rest() -> Result<()> {
    INSTALLED.flags(&[("deletion-patience", "3s")]).run(async |bed| {
        let mark = bed.cluster.audit().mark().await?;
        let (kind, object) = ("Deployment", "vsphere-csi-controller");
        let hold = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
        bed.merge("apps/v1", kind, CSI_NS, object, hold(json!(["example.com/keeper"])))
            .await?;
        bed.delete(VDO, "VDOConfig", NS, "vdo").await?;
        let stalled = bed.until_reason("Stalled", "DeletionBlocked").await?;
        assert_eq!(stalled["status"], "True");
        let message = stalled["message"].to_string();
        for word in [object, "example.com/keeper", "since"] {
            ensure!(message.contains(word), "{word} is not in {message}");
        }
        until("the rest to be gone", PATIENCE, async || {
            let mut left: Vec<String> = bed.owned().await?.iter().map(name).collect();
            left.sort();
            let only = ["Deployment vmware-system-csi/vsphere-csi-controller"];
            Ok(Probe::when(left == only, format!("{left:?}")))
        })
        .await?;
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        ensure!(config != Value::Null, "the VDOConfig went before its last object");
        // A person who waits is shown for how long, and not a time that has to be compared with a clock.
        let (code, shown, err) = bed.vdoctl(&["wait", "--for", "deleted", "--timeout", "2s"])?;
        let counted = shown.contains("has been terminating for ") && !shown.contains(" since 20");
        let at_the_end = err.contains("has been terminating for ") && !err.contains(" since 20");
        ensure!(code == 7 && counted && at_the_end, "{code}\n{shown}\n{err}");
        bed.merge("apps/v1", kind, CSI_NS, object, hold(Value::Null)).await?;
        until_uninstalled(bed).await?;
        let left: Vec<String> = bed.owned().await?.iter().map(name).collect();
        ensure!(left.is_empty(), "left behind: {left:?}");
        ensure_nothing_was_forbidden(bed, mark).await
    })
}

/// The annotations of cli-utils and Helm: the object stays, without any mark of ours.
#[test]
fn uninstall_releases_objects_that_annotations_keep() -> Result<()> {
    INSTALLED.run(async |bed| {
        let mark = bed.cluster.audit().mark().await?;
        let keep = |key: &str, value: &str| json!({"metadata": {"annotations": {key: value}}});
        let kept = [
            (
                "v1",
                "ServiceAccount",
                CSI_NS,
                "vsphere-csi-node",
                "helm.sh/resource-policy",
                "keep",
            ),
            (
                "storage.k8s.io/v1",
                "CSIDriver",
                "",
                "csi.vsphere.vmware.com",
                "client.lifecycle.config.k8s.io/deletion",
                "detach",
            ),
            (
                "v1",
                "ConfigMap",
                "kube-system",
                "vsphere-cloud-config",
                "cli-utils.sigs.k8s.io/on-remove",
                "keep",
            ),
        ];
        for (api_version, kind, namespace, object, key, value) in kept {
            bed.merge(api_version, kind, namespace, object, keep(key, value)).await?;
        }
        bed.uninstall().await?;
        for (api_version, kind, namespace, object, key, _) in kept {
            let live = bed.get(api_version, kind, namespace, object).await?;
            ensure!(live != Value::Null, "{kind} {object} went although {key} keeps it");
            let marks = live["metadata"]["labels"].to_string();
            ensure!(
                !marks.contains("applyset") && !marks.contains("managed-by") && live["metadata"]["annotations"][key].is_string(),
                "{kind} {object} still bears our marks: {}",
                live["metadata"]
            );
            bed.delete(api_version, kind, namespace, object).await?;
        }
        ensure_nothing_was_forbidden(bed, mark).await
    })
}
