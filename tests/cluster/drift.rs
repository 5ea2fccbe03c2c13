// SPDX-License-Identifier: Apache-2.0
//! Changes by others on a real control plane: brought back, with the name of who did it, and not for ever.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NS, OPERATOR, PATIENCE, condition};
use crate::fixture::{INSTALLED, written};
use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams, ValidationDirective};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use vdo::cluster::{Cache, Select, Watch};
use vdo_core::manifest::{Object, Owner, differences, stamp};
use vdo_core::plan::is_own_spelling;
use vdo_testbed::{Probe, until};

const CSI_NS: &str = "vmware-system-csi";
const FEATURES: &str = "internal-feature-states.csi.vsphere.vmware.com";

/// As those on volumes after an upgrade: one that is asked for goes on.
#[test]
fn cache_watch_not_asked_for_ends() -> Result<()> {
    INSTALLED.run(async |bed| {
        const IDLE: Duration = Duration::from_secs(2);
        let (changed, _wakes) = tokio::sync::watch::channel(());
        let cache = Cache::new(bed.cluster.client(), changed);
        let (asked, left) = ("asked-for", "left-alone");
        for name in [asked, left] {
            bed.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NS}}))
                .await?;
        }
        let watch = |name: &str| Watch::new("v1", "ConfigMap", NS, Select::Name(name.to_owned()));
        cache.ensure(&[watch(asked), watch(left)].into(), PATIENCE).await?;
        cache.sweep(IDLE);
        let shown = |name: &str| cache.list(&watch(name)).len();
        ensure!((shown(asked), shown(left)) == (1, 1), "what was just asked for is gone");
        // A watch has a line in the log when it ends.
        let ended = |name: &str| -> Result<bool> {
            let log = std::fs::read_to_string(bed.cluster.audit().path())?;
            let words = ["\"ResponseComplete\"", "\"verb\":\"watch\"", name];
            Ok(log.lines().any(|line| words.iter().all(|word| line.contains(word))))
        };
        until("the watch that is not used to end", PATIENCE, async || {
            cache.ensure(&[watch(asked)].into(), PATIENCE).await?;
            cache.sweep(IDLE);
            Ok(Probe::when(ended(left)? && shown(left) == 0, "it goes on"))
        })
        .await?;
        ensure!(!ended(asked)? && shown(asked) == 1, "one that is asked for ended");
        cache.ensure(&[watch(left)].into(), PATIENCE).await?;
        ensure!(shown(left) == 1, "it does not begin again");
        Ok(())
    })
}

/// An edit as kubectl makes it: under a name of its own.
async fn edit(bed: &Bed, manager: &str, kind: &str, namespace: &str, name: &str, change: &Value) -> Result<()> {
    let params = PatchParams {
        field_manager: Some(manager.into()),
        ..PatchParams::default()
    };
    bed.api("v1", kind, namespace).patch(name, &params, &Patch::Merge(change)).await?;
    Ok(())
}

/// The entries of the status before a test changes something.
async fn entries(bed: &Bed) -> Result<Vec<Value>> {
    Ok(bed.status().await?["drift"].as_array().cloned().unwrap_or_default())
}

/// Waits until the status has an entry for the object that was not there before.
async fn reported(bed: &Bed, object: &str, before: &[Value]) -> Result<Value> {
    until(&format!("status.drift to speak of {object}"), PATIENCE, async || {
        let drift = bed.status().await?["drift"].clone();
        let found = drift
            .as_array()
            .and_then(|all| all.iter().rev().find(|d| d["object"] == object && !before.contains(d)))
            .cloned();
        Ok(found.map_or_else(|| Probe::not_yet(drift), Probe::Ready))
    })
    .await
}

async fn event(bed: &Bed, words: &[&str]) -> Result<()> {
    until(&format!("an event with the words {words:?}"), PATIENCE, async || {
        let events = bed.list("events.k8s.io/v1", "Event", "").await?;
        let notes: Vec<String> = events
            .iter()
            .filter(|e| e["reason"] == "DriftRepaired")
            .map(|e| e["note"].to_string())
            .collect();
        let found = notes.iter().any(|note| words.iter().all(|word| note.contains(word)));
        Ok(Probe::when(found, notes.join("\n")))
    })
    .await
}

/// Path, wanted, found, who and when, in the status, an event and the log.
#[test]
fn drift_after_edit_is_repaired_once_and_names_field_and_manager() -> Result<()> {
    INSTALLED.run(async |bed| {
        let before = entries(bed).await?;
        let mark = bed.cluster.audit().mark().await?;
        edit(
            bed,
            "kubectl-edit",
            "ConfigMap",
            CSI_NS,
            FEATURES,
            &json!({"data": {"trigger-csi-fullsync": "true"}}),
        )
        .await?;
        let found = reported(bed, &format!("ConfigMap {CSI_NS}/{FEATURES}"), &before).await?;
        assert_eq!(found["path"], "data.trigger-csi-fullsync");
        assert_eq!((&found["wanted"], &found["found"]), (&json!("\"false\""), &json!("\"true\"")));
        assert_eq!(found["by"], "kubectl-edit");
        ensure!(found["changed"].is_string() && found["repaired"].is_string(), "{found}");
        event(bed, &[FEATURES, "data.trigger-csi-fullsync", "kubectl-edit"]).await?;
        let log = std::fs::read_to_string(bed.operator_log())?;
        ensure!(
            log.lines()
                .any(|line| line.contains("DriftRepaired") && line.contains("kubectl-edit")),
            "the log does not name who did it"
        );
        let live = bed.get("v1", "ConfigMap", CSI_NS, FEATURES).await?;
        assert_eq!(live["data"]["trigger-csi-fullsync"], "false");
        let writes = written(bed, mark).await?;
        ensure!(writes.len() == 1, "one drift led to other than one write:\n{writes}");
        Ok(())
    })
}

#[test]
fn drift_after_deletion_is_repaired_and_reported() -> Result<()> {
    INSTALLED.run(async |bed| {
        let before = entries(bed).await?;
        bed.delete("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
        let found = reported(bed, &format!("Service {CSI_NS}/vsphere-csi-controller"), &before).await?;
        assert_eq!((&found["path"], &found["by"]), (&Value::Null, &Value::Null));
        event(bed, &["vsphere-csi-controller was deleted"]).await?;
        ensure!(
            bed.get("v1", "Service", CSI_NS, "vsphere-csi-controller").await? != Value::Null,
            "it is not back"
        );
        Ok(())
    })
}

#[test]
fn drift_in_secret_is_reported_masked() -> Result<()> {
    INSTALLED.run(async |bed| {
        let before = entries(bed).await?;
        let name = "vsphere-config-secret";
        let change = json!({"data": {"csi-vsphere.conf": "aHVudGVyMg=="}});
        edit(bed, "another-manager", "Secret", CSI_NS, name, &change).await?;
        let found = reported(bed, &format!("Secret {CSI_NS}/{name}"), &before).await?;
        assert_eq!(
            (&found["wanted"], &found["found"], &found["by"]),
            (&json!("******"), &json!("******"), &json!("another-manager"))
        );
        Ok(())
    })
}

/// Another controller that wants another value: three rounds, then it is named and left alone, and the rest is kept.
#[test]
fn drift_contended_field_is_left_alone_after_three_repairs() -> Result<()> {
    INSTALLED.run(async |bed| {
        let mark = bed.cluster.audit().mark().await?;
        let change = json!({"data": {"pv-to-backingdiskobjectid-mapping": "tuned"}});
        let fought = until("the fight to be called one", PATIENCE, async || {
            edit(bed, "tuner", "ConfigMap", CSI_NS, FEATURES, &change).await?;
            let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
            let ready = condition(&config, "Ready");
            Ok(if ready["reason"] == "DriftFight" {
                Probe::Ready(ready)
            } else {
                Probe::not_yet(ready)
            })
        })
        .await?;
        let message = fought["message"].to_string();
        for word in ["tuner", "data.pv-to-backingdiskobjectid-mapping", FEATURES, "until"] {
            ensure!(message.contains(word), "{word} is not in {message}");
        }
        // Forced to look again, it leaves the field alone, and repairs another object.
        let again = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": "now"}}});
        bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", again).await?;
        bed.delete("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
        until("another object to be brought back", PATIENCE, async || {
            let found = bed.get("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
            Ok(Probe::when(found != Value::Null, "not there"))
        })
        .await?;
        let live = bed.get("v1", "ConfigMap", CSI_NS, FEATURES).await?;
        assert_eq!(live["data"]["pv-to-backingdiskobjectid-mapping"], "tuned");
        let rounds = bed
            .cluster
            .audit()
            .since(mark)
            .await?
            .of(OPERATOR)
            .only(|e| e.name == FEATURES && e.writes());
        println!("a fight was left after {} rounds: {message}", rounds.len());
        ensure!(rounds.len() == 3, "it was fought for other than 3 rounds:\n{rounds}");
        // What is left alone is remembered by the process.
        bed.kill_operator();
        bed.start_operator().await
    })
}

/// Every kind of every chart, each with values that the API server writes in its own way or fills in: quantities, numbers where a text
/// may be, nulls, empty lists, maps and texts, `stringData`, defaults.
fn oddly_spelled() -> Vec<Value> {
    let meta = |name: &str| json!({"name": name, "namespace": CSI_NS, "labels": {"spelling": ""}, "annotations": {}});
    let global = |name: &str| json!({"name": name, "labels": {"spelling": ""}, "annotations": null});
    let rbac = "rbac.authorization.k8s.io/v1";
    let rules = json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"], "resourceNames": [], "nonResourceURLs": null}]);
    let subjects = json!([{"kind": "ServiceAccount", "name": "odd", "namespace": CSI_NS, "apiGroup": ""},
        {"kind": "Group", "name": "odd", "apiGroup": ""}]);
    let pods = json!({"metadata": {"labels": {"app": "odd"}, "creationTimestamp": null}, "spec": {
        "containers": [{"name": "c", "image": "registry.example.org/odd", "command": [], "args": null, "workingDir": "",
            "env": [{"name": "EMPTY", "value": ""}, {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
            "ports": [{"containerPort": 8080}],
            "resources": {"requests": {"cpu": "0.1", "memory": "0.5Gi"}, "limits": {"cpu": "1000m", "memory": "1024Mi", "ephemeral-storage": "1e3"}},
            "livenessProbe": {"httpGet": {"path": "/", "port": "health"}, "timeoutSeconds": 1},
            "securityContext": {}, "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": false}]}],
        "nodeSelector": {}, "tolerations": [{"operator": "Exists"}], "securityContext": {}, "serviceAccountName": "odd",
        "hostNetwork": false, "initContainers": [], "terminationGracePeriodSeconds": null,
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "h", "hostPath": {"path": "/h", "type": ""}},
            {"name": "s", "secret": {"secretName": "odd", "items": [{"key": "text", "path": "text"}]}}]}});
    let selector = json!({"matchLabels": {"app": "odd"}, "matchExpressions": []});
    let webhook = json!({"name": "odd.example.org", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        "clientConfig": {"service": {"name": "odd", "namespace": CSI_NS}, "caBundle": ""}, "namespaceSelector": {}, "objectSelector": {},
        "matchConditions": [], "rules": [{"apiGroups": ["storage.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["csidrivers"]}]});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": global("odd"), "spec": {"finalizers": null}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta("odd"), "imagePullSecrets": [], "secrets": null}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("odd"), "data": {"empty": ""}, "binaryData": {}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta("odd"), "stringData": {"text": "a text"}, "data": {"more": "bW9yZQ=="}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": meta("odd"), "spec": {"selector": {"app": "odd"}, "clusterIP": "", "type": "",
            "ports": [{"name": "a", "port": 80, "targetPort": 8080}, {"name": "b", "port": 81, "targetPort": "health"}, {"name": "c", "port": 82}]}}),
        json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": global("odd"), "rules": rules}),
        json!({"apiVersion": rbac, "kind": "Role", "metadata": meta("odd"), "rules": rules}),
        json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": global("odd"), "subjects": subjects,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "odd"}}),
        json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": meta("odd"), "subjects": subjects,
            "roleRef": {"apiGroup": "", "kind": "Role", "name": "odd"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("odd"), "spec": {"replicas": 0, "selector": selector, "template": pods,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%", "maxSurge": 1}}, "paused": false}}),
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta("odd"), "spec": {"selector": selector, "template": pods,
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}}}}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": global("odd.example.org"), "spec": {"attachRequired": false,
            "tokenRequests": [], "volumeLifecycleModes": ["Persistent"], "storageCapacity": null}}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": global("odd"), "provisioner": "odd.example.org",
            "parameters": {}, "mountOptions": [], "allowVolumeExpansion": null, "reclaimPolicy": ""}),
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": global("odd"), "webhooks": [webhook]}),
    ]
}

/// Applied as the operator does it, and compared with what the server makes of it: what differs is still ours.
#[test]
fn drift_server_spelling_of_any_kind_is_ignored() -> Result<()> {
    INSTALLED.run(async |bed| {
        let owner = Owner {
            apply_set: "odd".into(),
            driver: "odd".into(),
            version: "1.0.0".into(),
            salt: String::new(),
        };
        let mut wanted: Vec<Object> = oddly_spelled().into_iter().map(|value| Object::new(value).unwrap()).collect();
        stamp(&mut wanted, &owner);
        let known: BTreeSet<String> = wanted.iter().map(|o| o.kind().to_owned()).collect();
        for kind in crate::common::KINDS
            .map(|(_, kind)| kind)
            .into_iter()
            .chain(["StorageClass", "ValidatingWebhookConfiguration"])
        {
            ensure!(known.contains(kind), "{kind} is not spelled oddly");
        }
        let params = PatchParams {
            field_validation: Some(ValidationDirective::Strict),
            ..PatchParams::apply("vdo").force()
        };
        let mut spelled = 0;
        for object in &wanted {
            let api = bed.api(object.api_version(), object.kind(), object.namespace());
            let live = api.patch(object.name(), &params, &Patch::Apply(object.value())).await;
            let live = Object::new(serde_json::to_value(live.with_context(|| object.to_string())?)?)?;
            let found = differences(object.value(), live.value());
            spelled += found.len();
            ensure!(
                found.is_empty() || is_own_spelling(&found, &live),
                "{object} would be repaired for ever: {found:#?}\n{:#}",
                live.value()["metadata"]["managedFields"]
            );
            // Someone who changes one of them is still seen.
            let Some(field) = found.iter().find(|d| d.path.ends_with("limits.cpu")) else {
                continue;
            };
            let edit = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}}}});
            let live = api.patch(object.name(), &PatchParams::default(), &Patch::Strategic(edit)).await?;
            let live = Object::new(serde_json::to_value(live)?)?;
            ensure!(
                !is_own_spelling(&differences(object.value(), live.value()), &live),
                "an edit of {} is not seen",
                field.path
            );
        }
        println!("{} kinds, {spelled} values in the server's own spelling", wanted.len());
        ensure!(spelled > 0, "nothing was spelled oddly");
        for object in &wanted {
            bed.delete(object.api_version(), object.kind(), object.namespace(), object.name())
                .await?;
        }
        Ok(())
    })
}

/// A setting of the administrator in his spelling: written once, and neither at rest nor after a restart again, and no drift.
#[test]
fn drift_own_spelling_of_values_is_written_once() -> Result<()> {
    INSTALLED.run(async |bed| {
        let resources = json!({"requests": {"cpu": "0.1", "memory": "0.5Gi"}, "limits": {"cpu": "1000m"}});
        bed.apply(&bed.config(json!({"cloudProvider": {"values": {"resources": resources}}, "storageProvider": {}})))
            .await?;
        bed.until_ready().await?;
        let agent = bed
            .get("apps/v1", "DaemonSet", "kube-system", "vsphere-cloud-controller-manager")
            .await?;
        let limit = &agent["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"];
        ensure!(limit == "1", "the API server keeps {limit}");
        let before = bed.status().await?["drift"].clone();
        bed.kill_operator();
        let mark = bed.cluster.audit().mark().await?;
        bed.start_operator().await?;
        let again = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": "after the restart"}}});
        bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", again).await?;
        let seen = bed.reconciles().await?;
        until("the operator to have looked", PATIENCE, async || {
            let now = bed.reconciles().await?;
            Ok(Probe::when(now > seen, now))
        })
        .await?;
        bed.until_ready().await?;
        let written = written(bed, mark).await?;
        ensure!(written.is_empty(), "written again after the restart:\n{written}");
        assert_eq!(bed.status().await?["drift"], before, "a spelling is no drift");
        Ok(())
    })
}
