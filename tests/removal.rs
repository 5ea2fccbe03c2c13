//! The road back on a real control plane: what is refused, what is kept, what is waited for, and what it costs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod bed;

use anyhow::{Context, Result, ensure};
use bed::{Bed, NS, OPERATOR, PATIENCE, condition, name};
use serde_json::{Value, json};
use vdo::cluster::{Writer, holder};
use vdo::manifest::Object;
use vdo::types::ObjectId;
use vdo_testbed::{Entry, Mark, Probe, until};

const CSI_NS: &str = "vmware-system-csi";
const VDO: &str = "vdo.vmware.com/v1alpha1";
const DESPITE: &str = "vdo.vmware.com/remove-despite-volumes";

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_refuses_keeps_waits_and_ends() -> Result<()> {
    bed::prepare();
    let mut bed = Bed::start().await?;
    bed.flags.push(("deletion-patience", "3s"));
    bed.start_operator().await?;
    only_what_was_seen_is_deleted(&bed).await?;
    what_holds_an_object_is_found(&bed).await?;
    bed.apply_samples().await?;
    bed.until_ready().await?;
    volumes_keep_the_driver(&bed).await?;
    an_annotation_removes_it_all_the_same(&bed).await?;
    volumes_stop_a_deletion(&bed).await?;
    a_removal_costs_little(&bed).await?;
    snapshots_keep_the_driver(&bed).await?;
    classes_in_use_stay(&bed).await?;
    a_finalizer_is_named_and_the_rest_goes_on(&bed).await?;
    what_somebody_keeps_is_let_go(&bed).await
}

/// The precondition that the last look rests on, as the API server has it.
async fn only_what_was_seen_is_deleted(bed: &Bed) -> Result<()> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seen", "namespace": "default"}});
    bed.apply(&map).await?;
    let read = async || Ok::<_, anyhow::Error>(Object::new(bed.get("v1", "ConfigMap", "default", "seen").await?)?);
    let seen = read().await?;
    let writer = Writer::new(bed.cluster.client(), |_, _| {});
    let label = json!({"metadata": {"labels": {"somebody": "else"}}});
    bed.merge("v1", "ConfigMap", "default", "seen", label).await?;
    ensure!(
        !writer.delete_as_seen("v1", &seen, false).await?,
        "an object was deleted that had changed"
    );
    ensure!(
        writer.delete_as_seen("v1", &read().await?, false).await?,
        "the object as it is was not deleted"
    );
    until("the object to be gone", PATIENCE, async || {
        Ok(Probe::when(
            bed.get("v1", "ConfigMap", "default", "seen").await? == Value::Null,
            "it is there",
        ))
    })
    .await?;
    ensure!(
        writer.delete_as_seen("v1", &seen, false).await?,
        "what is gone does not count as done"
    );
    Ok(())
}

/// Every kind that never goes implicitly, empty and in use. Claims and volumes themselves are in no chart and in no inventory.
async fn what_holds_an_object_is_found(bed: &Bed) -> Result<()> {
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let class =
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "held"}, "provisioner": "example.org"});
    let place = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "held"}});
    for object in [&crd, &class, &place] {
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
    let pods = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    for (kind, user) in [
        ("CustomResourceDefinition", within("example.org/v1", "Thing", json!({}))),
        ("StorageClass", claim("default")),
        ("StorageClass", of_class),
        ("Namespace", claim("held")),
        ("Namespace", within("v1", "ConfigMap", json!({}))),
        ("Namespace", within("v1", "Secret", json!({}))),
        (
            "Namespace",
            within(
                "batch/v1",
                "CronJob",
                json!({"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": pods}}}}),
            ),
        ),
        (
            "Namespace",
            within("networking.k8s.io/v1", "NetworkPolicy", json!({"spec": {"podSelector": {}}})),
        ),
        (
            "Namespace",
            within("policy/v1", "PodDisruptionBudget", json!({"spec": {"minAvailable": 1}})),
        ),
        ("Namespace", within("rbac.authorization.k8s.io/v1", "Role", json!({"rules": []}))),
    ] {
        let id = match kind {
            "CustomResourceDefinition" => ObjectId::new("apiextensions.k8s.io", kind, "", "things.example.org"),
            "StorageClass" => ObjectId::new("storage.k8s.io", kind, "", "held"),
            _ => ObjectId::new("", kind, "", "held"),
        };
        let free = holder(&bed.cluster.client(), &id, "set").await?;
        ensure!(free.is_none(), "{id}: {free:?} although nothing uses it");
        bed.apply(&user).await?;
        let (user_kind, user_name) = (
            user["kind"].as_str().unwrap_or_default(),
            user["metadata"]["name"].as_str().unwrap_or_default(),
        );
        let found = holder(&bed.cluster.client(), &id, "set")
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
    bed.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.example.org")
        .await?;
    bed.delete("storage.k8s.io/v1", "StorageClass", "", "held").await?;
    bed.delete("v1", "Namespace", "", "held").await
}

/// A snapshot outlives its volume and needs the driver to go.
async fn snapshots_keep_the_driver(bed: &Bed) -> Result<()> {
    let group = "snapshot.storage.k8s.io";
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {
        "name": format!("volumesnapshotcontents.{group}"), "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
        "spec": {"group": group, "scope": "Cluster", "names": {"plural": "volumesnapshotcontents", "kind": "VolumeSnapshotContent"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    bed.apply(&crd).await?;
    let content = json!({"apiVersion": format!("{group}/v1"), "kind": "VolumeSnapshotContent", "metadata": {"name": "snap-1"},
        "spec": {"driver": "csi.vsphere.vmware.com", "volumeSnapshotRef": {"namespace": "shop", "name": "nightly"}}});
    bed.apply(&content).await?;
    bed.apply(&bed.config(json!({}))).await?;
    bed.until_ready().await?;
    let mark = bed.cluster.audit().mark().await?;
    bed.delete(VDO, "VDOConfig", NS, "vdo").await?;
    refused(bed, &["1 volumes or snapshots", "snapshot snap-1 of VolumeSnapshot shop/nightly"]).await?;
    let gone = bed.deleted(mark).await?;
    ensure!(gone.is_empty(), "in spite of a snapshot:\n{gone}");
    bed.delete(&format!("{group}/v1"), "VolumeSnapshotContent", "", "snap-1").await?;
    until_gone(bed).await?;
    bed.delete(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "",
        &format!("volumesnapshotcontents.{group}"),
    )
    .await
}

fn volume(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": "shop", "name": "data"},
        "csi": {"driver": "csi.vsphere.vmware.com", "volumeHandle": name}}})
}

/// Waits until the VDOConfig says that volumes are in use, with these words.
async fn refused(bed: &Bed, words: &[&str]) -> Result<()> {
    let found = bed.until_reason("Ready", "VolumesInUse").await?;
    let message = found["message"].as_str().unwrap_or_default();
    for word in words {
        ensure!(message.contains(word), "{word:?} is not in {message}");
    }
    Ok(())
}

/// Taking the storage provider out of the specification removes the driver, unless it has volumes.
async fn volumes_keep_the_driver(bed: &Bed) -> Result<()> {
    for i in 0..12 {
        bed.apply(&volume(&format!("pv-{i:02}"))).await?;
    }
    let attachment = json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "att"},
        "spec": {"attacher": "csi.vsphere.vmware.com", "nodeName": "w-1", "source": {"persistentVolumeName": "pv-00"}}});
    bed.apply(&attachment).await?;
    let mark = bed.cluster.audit().mark().await?;
    bed.apply(&bed.config(json!({"cloudProvider": {}}))).await?;
    let words = ["12 volumes", "pv-00 of claim shop/data on node w-1", "and 2 more", DESPITE];
    refused(bed, &words).await?;
    let gone = bed.deleted(mark).await?;
    ensure!(gone.is_empty(), "in spite of volumes:\n{gone}");
    Ok(())
}

async fn an_annotation_removes_it_all_the_same(bed: &Bed) -> Result<()> {
    let annotate = |value: Value| json!({"metadata": {"annotations": {DESPITE: value}}});
    bed.merge(VDO, "VDOConfig", NS, "vdo", annotate("true".into())).await?;
    until("the storage driver to be gone", PATIENCE, async || {
        let controller = bed.get("apps/v1", "Deployment", CSI_NS, "vsphere-csi-controller").await?;
        Ok(Probe::when(controller == Value::Null, &controller["status"]))
    })
    .await?;
    bed.until_ready().await?;
    ensure!(
        bed.get("v1", "PersistentVolume", "", "pv-11").await? != Value::Null,
        "a volume went too"
    );
    bed.merge(VDO, "VDOConfig", NS, "vdo", annotate(Value::Null)).await?;
    bed.apply(&bed.config(json!({}))).await?;
    bed.until_ready().await?;
    Ok(())
}

/// A deleted VDOConfig stays until the last volume is gone, and the removal then goes on by itself.
async fn volumes_stop_a_deletion(bed: &Bed) -> Result<()> {
    let mark = bed.cluster.audit().mark().await?;
    bed.delete(VDO, "VDOConfig", NS, "vdo").await?;
    refused(bed, &["12 volumes"]).await?;
    for i in 0..11 {
        release_volume(bed, &format!("pv-{i:02}")).await?;
    }
    bed.delete("storage.k8s.io/v1", "VolumeAttachment", "", "att").await?;
    refused_for(bed, "1 volumes").await?;
    let gone = bed.deleted(mark).await?;
    ensure!(gone.is_empty(), "in spite of a volume:\n{gone}");
    let objects = usize::try_from(bed.status().await?["inventory"]["objects"].as_i64().context("objects")?)?;
    let mark = bed.cluster.audit().mark().await?;
    release_volume(bed, "pv-11").await?;
    until_gone(bed).await?;
    cost(bed, mark, objects).await
}

/// From drivers that are well to nothing: everything goes, namespaces too.
async fn a_removal_costs_little(bed: &Bed) -> Result<()> {
    bed.apply(&bed.config(json!({}))).await?;
    bed.until_ready().await?;
    let objects = bed.owned().await?.len();
    let mark = bed.cluster.audit().mark().await?;
    bed.uninstall().await?;
    until("the connection to be told", PATIENCE, async || {
        let told = bed.operator_requests(mark).await?.only(|e| e.resource == "vspherecloudconfigs");
        Ok(Probe::when(!told.is_empty(), "its status is as it was"))
    })
    .await?;
    let left: Vec<String> = bed.owned().await?.iter().map(name).collect();
    ensure!(left.is_empty(), "left behind: {left:?}");
    cost(bed, mark, objects).await
}

/// A delete for each object, and six more: for the inventory, the finalizer, an event, the statuses. What the operator may do is asked
/// besides that, once for each namespace, unless nothing is tried on the server before it is done.
async fn cost(bed: &Bed, mark: Mark, objects: usize) -> Result<()> {
    let asked = bed.operator_requests(mark).await?;
    println!("removal of {objects} objects: {} requests\n{asked}", asked.len());
    let reviews = |e: &Entry| e.resource == "selfsubjectrulesreviews";
    let (rights, requests) = (asked.clone().only(reviews), asked.only(|e| !reviews(e)));
    ensure!(rights.len() <= 2, "{} looks at the own rights", rights.len());
    ensure!(requests.len() <= objects + 6, "{} requests for {objects} objects", requests.len());
    let deletes = requests.only(|e| e.verb == "delete").len();
    ensure!(
        deletes == objects + 1,
        "{deletes} deletes for {objects} objects and their inventory"
    );
    Ok(())
}

/// A volume without its driver keeps the finalizer that the attacher set, so the test plays the attacher.
async fn release_volume(bed: &Bed, volume: &str) -> Result<()> {
    bed.delete("v1", "PersistentVolume", "", volume).await?;
    until("a volume to be gone", PATIENCE, async || {
        let found = bed.get("v1", "PersistentVolume", "", volume).await?;
        Ok(Probe::when(found == Value::Null, &found["metadata"]["finalizers"]))
    })
    .await
}

async fn refused_for(bed: &Bed, words: &str) -> Result<()> {
    until(&format!("the refusal to say {words}"), PATIENCE, async || {
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        let ready = condition(&config, "Ready");
        Ok(Probe::when(ready["message"].to_string().contains(words), ready))
    })
    .await
}

async fn until_gone(bed: &Bed) -> Result<()> {
    until("the VDOConfig to be gone", PATIENCE, async || {
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        Ok(Probe::when(config == Value::Null, condition(&config, "Ready")))
    })
    .await
}

/// A storage class that we made goes with us, unless a claim uses it.
async fn classes_in_use_stay(bed: &Bed) -> Result<()> {
    let class = |name: &str| json!({"name": name, "bindingMode": "WaitForFirstConsumer"});
    bed.apply(&bed.config(json!({"storageProvider": {"storageClasses": [class("fast"), class("slow")]}})))
        .await?;
    bed.until_ready().await?;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"}, "spec": {
        "storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    bed.apply(&claim).await?;
    bed.uninstall().await?;
    let left: Vec<String> = bed
        .list("storage.k8s.io/v1", "StorageClass", "app.kubernetes.io/managed-by=vdo")
        .await?
        .iter()
        .map(|o| o["metadata"]["name"].to_string())
        .collect();
    assert_eq!(left, ["\"fast\""], "the class in use stays and the other one goes");
    bed.delete("storage.k8s.io/v1", "StorageClass", "", "fast").await?;
    bed.delete("v1", "PersistentVolumeClaim", "default", "data").await
}

/// An object that somebody holds is named once the patience is over; the rest goes, and nothing is forced.
async fn a_finalizer_is_named_and_the_rest_goes_on(bed: &Bed) -> Result<()> {
    bed.apply(&bed.config(json!({}))).await?;
    bed.until_ready().await?;
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
        // A namespace cannot go before what is in it.
        let only = [
            "Deployment vmware-system-csi/vsphere-csi-controller",
            "Namespace /vmware-system-csi",
        ];
        Ok(Probe::when(left == only, format!("{left:?}")))
    })
    .await?;
    let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
    ensure!(config != Value::Null, "the VDOConfig went before its last object");
    bed.merge("apps/v1", kind, CSI_NS, object, hold(Value::Null)).await?;
    until_gone(bed).await?;
    let left: Vec<String> = bed.owned().await?.iter().map(name).collect();
    ensure!(left.is_empty(), "left behind: {left:?}");
    Ok(())
}

/// The annotations of cli-utils and Helm: the object stays, and is nobody's.
async fn what_somebody_keeps_is_let_go(bed: &Bed) -> Result<()> {
    bed.apply(&bed.config(json!({}))).await?;
    bed.until_ready().await?;
    let keep = |key: &str, value: &str| json!({"metadata": {"annotations": {key: value}}});
    let kept = [
        (
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            "",
            "vsphere-csi-controller-role",
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
    let refused = bed.cluster.audit().requests(|e| e.user == OPERATOR && e.code == 403).await?;
    ensure!(refused.is_empty(), "the operator lacked rights:\n{refused}");
    Ok(())
}
