//! The whole plan is tried on the server before its first write: whatever the cluster is against is a condition, and nothing is
//! half-done. On a real control plane.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod bed;

use anyhow::{Context, Result, ensure};
use bed::{Bed, NS, PATIENCE, condition};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use vdo_testbed::{Mark, Probe, until};

const POLICY: &str = "admissionregistration.k8s.io/v1";

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cluster_is_against_is_known_before_the_first_write() -> Result<()> {
    bed::prepare();
    let mut bed = Bed::start().await?;
    bed.start_operator().await?;
    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    bed.apply(&bed.connection("vc1")).await?;
    bed.until_condition("VsphereCloudConfig", "vc1", "Ready", "Healthy").await?;
    a_policy(&mut bed).await?;
    a_missing_right_where_the_namespace_is_not_there_yet(&mut bed).await?;
    a_pod_security_level(&bed).await?;
    bed.until_ready().await?;
    bed.uninstall().await?;
    one_driver_is_refused_and_the_other_comes_through(&bed).await?;
    a_field_that_cannot_be_changed(&bed).await?;
    what_may_be_made_anew_is(&mut bed).await?;
    workloads_and_a_driver_are_made_anew_and_volumes_stay(&mut bed).await
}

/// Waits for a reason whose message holds these words, and holds that nothing was written since the mark.
async fn refused(bed: &Bed, mark: Mark, reason: &str, words: &[&str]) -> Result<()> {
    let found = until(
        &format!("VDOConfig vdo not to be ready for {reason} with the words {words:?}"),
        PATIENCE,
        async || {
            let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
            let ready = condition(&config, "Ready");
            let message = ready["message"].as_str().unwrap_or_default();
            let told = ready["reason"] == reason && words.iter().all(|word| message.contains(word));
            Ok(if told { Probe::Ready(ready) } else { Probe::not_yet(ready) })
        },
    )
    .await?;
    println!("{reason:18} {}", found["message"].as_str().unwrap_or_default());
    let written = bed
        .operator_requests(mark)
        .await?
        .writes()
        .only(|e| e.subresource != "status" && e.resource != "events");
    ensure!(written.is_empty(), "{reason}: the operator wrote:\n{written}");
    Ok(())
}

/// Not even the inventory is written.
async fn nothing_is_there(bed: &Bed) -> Result<()> {
    ensure!(bed.owned().await?.is_empty(), "something was installed");
    ensure!(
        bed.get("v1", "ConfigMap", NS, "vdo-inventory").await? == Value::Null,
        "an inventory was written"
    );
    Ok(())
}

/// A policy against objects such as this one. Policies need a moment until the API server holds to them; a try shows when.
async fn policy(bed: &Bed, probe: &Value, message: &str) -> Result<()> {
    let (api_version, kind) = (
        probe["apiVersion"].as_str().context("a version")?,
        probe["kind"].as_str().context("a kind")?,
    );
    let (group, version) = api_version.split_once('/').context("a group")?;
    let resource = format!("{}s", kind.to_lowercase());
    let rules = json!([{"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE", "UPDATE"], "resources": [resource]}]);
    let labels = json!({"matchLabels": probe["metadata"]["labels"]});
    bed.apply(
        &json!({"apiVersion": POLICY, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "no-agents"},
        "spec": {"matchConstraints": {"resourceRules": rules, "objectSelector": labels}, "validations": [{"expression": "false", "message": message}]}}),
    )
    .await?;
    bed.apply(
        &json!({"apiVersion": POLICY, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "no-agents"},
        "spec": {"policyName": "no-agents", "validationActions": ["Deny"]}}),
    )
    .await?;
    let (namespace, name) = (probe["metadata"]["namespace"].as_str().unwrap_or_default(), bed::name(probe));
    let params = kube::api::PatchParams::apply("probe").dry_run();
    until("the policy to be in force", PATIENCE, async || {
        let tried = bed
            .api(api_version, kind, namespace)
            .patch("probe", &params, &kube::api::Patch::Apply(probe))
            .await;
        Ok(Probe::when(tried.is_err(), format!("{name} is still let in")))
    })
    .await
}

/// An agent, perhaps with the label of a driver.
fn agent(labels: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "probe", "namespace": NS, "labels": labels},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

async fn without_policy(bed: &Bed) -> Result<()> {
    bed.delete(POLICY, "ValidatingAdmissionPolicyBinding", "", "no-agents").await?;
    bed.delete(POLICY, "ValidatingAdmissionPolicy", "", "no-agents").await
}

async fn a_policy(bed: &mut Bed) -> Result<()> {
    policy(bed, &agent(json!({})), "agents are not welcome here").await?;
    let mark = bed.cluster.audit().mark().await?;
    bed.apply(&bed.config(json!({}))).await?;
    let words = [
        "DaemonSet kube-system/vsphere-cloud-controller-manager",
        "agents are not welcome here",
    ];
    refused(bed, mark, "AdmissionDenied", &words).await?;
    nothing_is_there(bed).await?;
    let plan = bed.status().await?["plan"].clone();
    ensure!(plan["hash"].as_str().is_some_and(|hash| hash.len() == 16), "{plan}");
    let (code, text, _) = bed.vdoctl(&["plan"])?;
    println!("{text}");
    assert_eq!(code, 1);
    for word in [
        "WAVE 1",
        "+ Namespace vmware-system-csi",
        "! refused:",
        "agents are not welcome here",
        "CSI waits for initialised nodes",
    ] {
        assert!(text.contains(word), "{word} is not in:\n{text}");
    }
    // A run under way must not see the way free while the VDOConfig is going.
    bed.kill_operator();
    bed.delete("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
    without_policy(bed).await?;
    bed.start_operator().await
}

async fn a_missing_right_where_the_namespace_is_not_there_yet(bed: &mut Bed) -> Result<()> {
    let (rbac, kind) = ("rbac.authorization.k8s.io/v1", "ClusterRole");
    let role = bed.get(rbac, kind, "", "vdo-operator").await?;
    let mut rules = role["rules"].as_array().context("rules")?.clone();
    for rule in &mut rules {
        if rule["resources"].to_string().contains("deployments") && rule["verbs"].to_string().contains("create") {
            rule["verbs"] = json!(["delete", "patch"]);
        }
    }
    bed.merge(rbac, kind, "", "vdo-operator", json!({"rules": rules})).await?;
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {"name": ""}, "spec": {
        "user": "system:serviceaccount:vmware-system-vdo:vdo-operator",
        "resourceAttributes": {"verb": "create", "group": "apps", "resource": "deployments", "namespace": "vmware-system-csi"}}});
    let (reviews, review) = (
        bed.api("authorization.k8s.io/v1", "SubjectAccessReview", ""),
        serde_json::from_value(review)?,
    );
    until("the right to be taken away", PATIENCE, async || {
        let answer = reviews.create(&kube::api::PostParams::default(), &review).await?;
        Ok(Probe::when(answer.data["status"]["allowed"] == false, &answer.data["status"]))
    })
    .await?;
    let mark = bed.cluster.audit().mark().await?;
    bed.apply(&bed.config(json!({"storageProvider": {}}))).await?;
    let words = [
        "may not create Deployment vmware-system-csi/vsphere-csi-controller",
        "verbs: [create]",
    ];
    refused(bed, mark, "Forbidden", &words).await?;
    nothing_is_there(bed).await?;
    // It is tried again, ever more rarely, and the status is written once for each time.
    let mut promised = BTreeSet::new();
    until("three attempts", PATIENCE, async || {
        promised.insert(bed.status().await?["nextAttempt"].to_string());
        Ok(Probe::when(promised.len() > 3, format!("{promised:?}")))
    })
    .await?;
    let told = bed
        .operator_requests(mark)
        .await?
        .only(|e| e.resource == "vdoconfigs" && e.subresource == "status");
    ensure!(told.len() <= 10, "the status was written {} times:\n{told}", told.len());
    bed.kill_operator();
    bed.delete("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
    bed.merge(rbac, kind, "", "vdo-operator", json!({"rules": role["rules"]})).await?;
    bed.start_operator().await
}

/// What is refused holds back the whole of its driver and nothing of the other one: at an installation, and when both are changed.
async fn one_driver_is_refused_and_the_other_comes_through(bed: &Bed) -> Result<()> {
    const REFUSED: &str = "csi.vsphere.vmware.com";
    let label = |driver: &str| json!({"vdo.vmware.com/driver": driver});
    let driver = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "probe", "labels": label("vsphere-csi")}, "spec": {}});
    policy(bed, &driver, "no storage driver here").await?;
    let mark = bed.cluster.audit().mark().await?;
    bed.apply(&bed.config(json!({}))).await?;
    bed.until_reason("Ready", "AdmissionDenied").await?;
    bed.until_reason("CloudProviderReady", "Healthy").await?;
    let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
    for kind in ["Ready", "StorageReady"] {
        let told = condition(&config, kind);
        let message = told["message"].as_str().unwrap_or_default();
        ensure!(told["status"] == "False" && told["reason"] == "AdmissionDenied", "{told}");
        ensure!(message.contains(REFUSED) && message.contains("no storage driver here"), "{told}");
    }
    nothing_of_the_storage_driver(bed).await?;
    // Whatever wakes the operator is no reason to ask again: what is refused has its own pauses.
    let attempts = async || anyhow::Ok(bed.operator_requests(mark).await?.only(|e| e.tries() && e.name == REFUSED).len());
    let (first, before) = (attempts().await?, bed.reconciles().await?);
    for round in 0..15 {
        let seen = bed.reconciles().await?;
        let zone = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": format!("zone-{round}")}}});
        bed.merge("v1", "Node", "", "cp-1", zone).await?;
        until("the operator to look at a node", PATIENCE, async || {
            let now = bed.reconciles().await?;
            Ok(Probe::when(now > seen, now))
        })
        .await?;
    }
    let (again, after) = (attempts().await?, bed.reconciles().await?);
    println!(
        "in {} reconciles what is refused was tried {} times more",
        after - before,
        again - first
    );
    ensure!(again - first <= 4, "what is refused was tried {first} and then {again} times");
    until("another attempt by itself", PATIENCE, async || {
        let now = attempts().await?;
        Ok(Probe::when(now > again, now))
    })
    .await?;
    nothing_of_the_storage_driver(bed).await?;
    // Who has put it right says so, and it goes on at once.
    without_policy(bed).await?;
    let nudge = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": "now"}}});
    bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", nudge).await?;
    bed.until_ready().await?;

    policy(bed, &agent(label("vsphere-cpi")), "no agents of the cloud provider").await?;
    let live = async || {
        bed.get("apps/v1", "DaemonSet", "kube-system", "vsphere-cloud-controller-manager")
            .await
    };
    let before = live().await?["metadata"]["generation"].clone();
    let mark = bed.cluster.audit().mark().await?;
    let both = json!({"cloudProvider": {"values": {"logLevel": 5}}, "storageProvider": {"features": {"trigger-csi-fullsync": true}}});
    bed.apply(&bed.config(both)).await?;
    let (ns, map) = ("vmware-system-csi", "internal-feature-states.csi.vsphere.vmware.com");
    until("the setting of the storage driver", PATIENCE, async || {
        let data = bed.get("v1", "ConfigMap", ns, map).await?["data"].clone();
        Ok(Probe::when(data["trigger-csi-fullsync"] == "true", &data))
    })
    .await?;
    let ready = bed.until_reason("Ready", "AdmissionDenied").await?;
    ensure!(ready["message"].to_string().contains("no agents of the cloud provider"), "{ready}");
    bed.until_reason("CloudProviderReady", "Healthy").await?;
    let foreign = |e: &vdo_testbed::Entry| e.subresource.is_empty() && e.resource != "events" && e.resource != "vdoconfigs";
    let written = bed.operator_requests(mark).await?.writes().only(foreign);
    println!("while the cloud provider was refused:\n{written}");
    let of_the_cloud_provider = |e: &vdo_testbed::Entry| e.namespace == "kube-system" && e.resource != "leases" || e.name.contains("cloud");
    ensure!(
        written.only(of_the_cloud_provider).is_empty(),
        "something of the cloud provider was written"
    );
    ensure!(live().await?["metadata"]["generation"] == before);
    without_policy(bed).await?;
    bed.until_ready().await?;
    ensure!(
        live().await?["metadata"]["generation"] != before,
        "the setting of the cloud provider was lost"
    );
    bed.uninstall().await
}

/// Not even in the inventory.
async fn nothing_of_the_storage_driver(bed: &Bed) -> Result<()> {
    let of_the_driver = |object: &&Value| object["metadata"]["labels"]["vdo.vmware.com/driver"] == "vsphere-csi";
    let owned = bed.owned().await?;
    let started: Vec<String> = owned.iter().filter(of_the_driver).map(bed::name).collect();
    ensure!(
        started.is_empty() && owned.len() > 3,
        "of the storage driver there is {started:?}, of {}",
        owned.len()
    );
    ensure!(bed.get("v1", "Namespace", "", "vmware-system-csi").await? == Value::Null);
    let inventory = bed.get("v1", "ConfigMap", NS, "vdo-inventory").await?["data"]["objects"].to_string();
    ensure!(
        inventory.contains("vsphere-cpi") && !inventory.contains("vsphere-csi"),
        "{inventory}"
    );
    Ok(())
}

/// A namespace that lets no such pod in does not refuse the workload; its pods would just never come.
async fn a_pod_security_level(bed: &Bed) -> Result<()> {
    let level = |level: Value| json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}});
    bed.merge("v1", "Namespace", "", "kube-system", level("restricted".into())).await?;
    // The API server judges by a watch of its own.
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": {"hostNetwork": true,
        "containers": [{"name": "c", "image": "c"}]}});
    let (pods, pod) = (bed.api("v1", "Pod", "kube-system"), serde_json::from_value(pod)?);
    let tried = kube::api::PostParams {
        dry_run: true,
        ..Default::default()
    };
    until("the level to count", PATIENCE, async || {
        let answer = pods.create(&tried, &pod).await;
        Ok(Probe::when(
            answer.is_err_and(|error| error.to_string().contains("PodSecurity")),
            "the pod is let in",
        ))
    })
    .await?;
    let mark = bed.cluster.audit().mark().await?;
    bed.apply(&bed.config(json!({}))).await?;
    let words = [
        "DaemonSet kube-system/vsphere-cloud-controller-manager",
        "would violate PodSecurity",
        "restricted",
    ];
    refused(bed, mark, "AdmissionDenied", &words).await?;
    nothing_is_there(bed).await?;
    // Once the way is free, it goes on by itself.
    bed.merge("v1", "Namespace", "", "kube-system", level(Value::Null)).await
}

/// The parameters of a StorageClass: nothing of the plan is carried out, and the class stays.
async fn a_field_that_cannot_be_changed(bed: &Bed) -> Result<()> {
    let class = |policy: &str, windows: bool| json!({"cloudProvider": {}, "storageProvider": {"windows": windows, "storageClasses": [{"name": "fast", "storagePolicy": policy}]}});
    bed.apply(&bed.config(class("VM Encryption Policy", true))).await?;
    bed.until_ready().await?;
    let before = bed.get("storage.k8s.io/v1", "StorageClass", "", "fast").await?;
    let mark = bed.cluster.audit().mark().await?;
    bed.apply(&bed.config(class("vSAN Default Storage Policy", false))).await?;
    refused(
        bed,
        mark,
        "ImmutableField",
        &["StorageClass fast", "give the StorageClass another name"],
    )
    .await?;
    assert_eq!(
        bed.get("storage.k8s.io/v1", "StorageClass", "", "fast").await?["metadata"]["uid"],
        before["metadata"]["uid"]
    );
    // What was reached before is kept meanwhile.
    bed.delete("v1", "Service", "vmware-system-csi", "vsphere-csi-controller").await?;
    until("a deleted object to be back", PATIENCE, async || {
        let found = bed.get("v1", "Service", "vmware-system-csi", "vsphere-csi-controller").await?;
        Ok(Probe::when(found != Value::Null, "not there"))
    })
    .await?;
    bed.apply(&bed.config(class("VM Encryption Policy", true))).await?;
    bed.until_ready().await?;
    Ok(())
}

/// A binding of ours that points to another role, as a release before this one could have made it.
async fn what_may_be_made_anew_is(bed: &mut Bed) -> Result<()> {
    let (rbac, kind, name) = (
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        "vsphere-csi-controller-binding",
    );
    bed.kill_operator();
    let right = bed.get(rbac, kind, "", name).await?;
    let old_uid = right["metadata"]["uid"].as_str().context("a UID")?.to_owned();
    bed.delete(rbac, kind, "", name).await?;
    let labels = &right["metadata"]["labels"];
    bed.apply(&json!({"apiVersion": rbac, "kind": kind, "metadata": {"name": name, "labels": labels, "annotations": {"vdo.vmware.com/applied": "earlier"}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "earlier"}, "subjects": right["subjects"]}))
        .await?;
    let wrong = bed.get(rbac, kind, "", name).await?;
    let wrong_uid = wrong["metadata"]["uid"].as_str().context("a UID")?;
    let map = bed.get("v1", "ConfigMap", NS, "vdo-inventory").await?;
    let objects = map["data"]["objects"].as_str().context("objects")?.replace(&old_uid, wrong_uid);
    bed.merge("v1", "ConfigMap", NS, "vdo-inventory", json!({"data": {"objects": objects}}))
        .await?;
    let (code, text, _) = bed.vdoctl(&["plan"])?;
    println!("{text}");
    assert_eq!(code, 1);
    assert!(
        text.contains(&format!("± ClusterRoleBinding {name}")) && text.contains("roleRef.name"),
        "{text}"
    );
    let mark = bed.cluster.audit().mark().await?;
    bed.start_operator().await?;
    until("the binding to be made anew", PATIENCE, async || {
        let live = bed.get(rbac, kind, "", name).await?;
        Ok(Probe::when(
            live["roleRef"] == right["roleRef"] && live["subjects"] == right["subjects"],
            &live["roleRef"],
        ))
    })
    .await?;
    bed.until_ready().await?;
    let deleted = bed.deleted(mark).await?;
    assert_eq!(deleted.len(), 1, "{deleted}");
    Ok(())
}

/// Workloads with other selectors and a CSIDriver with another specification, none of which Kubernetes lets anybody change: ours, as a
/// release before this one could have made them. What holds the users' data is not touched.
async fn workloads_and_a_driver_are_made_anew_and_volumes_stay(bed: &mut Bed) -> Result<()> {
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
    let driver = "csi.vsphere.vmware.com";
    bed.apply(&json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "users"}, "provisioner": driver}))
        .await?;
    bed.apply(
        &json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "users"}, "spec": {"capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"], "storageClassName": "users", "csi": {"driver": driver, "volumeHandle": "users"},
        "claimRef": {"namespace": "default", "name": "users"}}}),
    )
    .await?;
    bed.apply(&json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "users", "namespace": "default"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "users", "volumeName": "users", "resources": {"requests": {"storage": "1Gi"}}}}))
        .await?;
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
    let map = bed.get("v1", "ConfigMap", NS, "vdo-inventory").await?;
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
    bed.merge("v1", "ConfigMap", NS, "vdo-inventory", json!({"data": {"objects": objects}}))
        .await?;
    let mark = bed.cluster.audit().mark().await?;
    bed.start_operator().await?;
    for ((api_version, kind, namespace, name), right) in CASES.into_iter().zip(&right) {
        until(&format!("{kind} {name} to be made anew"), PATIENCE, async || {
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
}
