//! What someone can do who has the operator's token.

use crate::common::{Bed, NS, OPERATOR as ACCOUNT, PATIENCE};
use crate::fixture::{INSTALLED, OPERATOR};
use crate::rights::granted::documents;
use anyhow::{Context, Result, bail, ensure};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use vdo::chart::{self, Context as ChartContext};
use vdo_testbed::{Probe, until};

const CSI: &str = "vmware-system-csi";
const RBAC: &str = "rbac.authorization.k8s.io/v1";

fn api(client: &Client, api_version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        "" => Api::all_with(client.clone(), &resource),
        _ => Api::namespaced_with(client.clone(), namespace, &resource),
    }
}

/// Tries to write an object, without effect; the answer of the API server when it refuses.
async fn tried(client: &Client, object: &Value) -> Result<Option<String>> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let api = api(client, text("/apiVersion"), text("/kind"), text("/metadata/namespace"));
    let params = PatchParams::apply("attack").force().dry_run();
    match api.patch(text("/metadata/name"), &params, &Patch::Apply(object)).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) => Ok(Some(status.message)),
        Err(other) => bail!("{other}"),
    }
}

/// A pod template with everything that an attacker wants.
fn workload(kind: &str, namespace: &str, name: &str, pod: &Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "example.com/c:1"}]});
    for (key, value) in pod.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": spec}}})
}

#[test]
fn operator_token_reads_no_other_secret_and_writes_no_right_and_no_other_workload() -> Result<()> {
    OPERATOR.run(async |bed| {
        let client = bed.cluster.service_account_client(NS, "vdo-operator").await?;
        bed.apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "git-creds", "namespace": "default"}}))
            .await?;
        for (namespace, name) in [("default", "git-creds"), ("kube-system", "bootstrap-token-x"), (CSI, "other")] {
            let secrets = api(&client, "v1", "Secret", namespace);
            let answers = [
                secrets.get(name).await.map(|_| ()),
                secrets.list(&ListParams::default()).await.map(|_| ()),
                secrets
                    .list(&ListParams::default().fields(&format!("metadata.name={name}")))
                    .await
                    .map(|_| ()),
            ];
            for answer in answers {
                ensure!(
                    matches!(&answer, Err(kube::Error::Api(s)) if s.code == 403),
                    "Secret {namespace}/{name}: {answer:?}"
                );
            }
        }
        ensure!(
            api(&client, "v1", "Secret", "").list(&ListParams::default()).await.is_err(),
            "all Secrets"
        );
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"});
        let mut attacks = Vec::new();
        for (kind, namespace, name) in [
            ("ClusterRole", "", "vsphere-csi-controller-role"),
            ("ClusterRoleBinding", "", "vsphere-csi-controller-binding"),
            ("Role", CSI, "vsphere-csi-node-role"),
            ("RoleBinding", CSI, "vsphere-csi-node-binding"),
            ("RoleBinding", NS, "any"),
        ] {
            let mut object = json!({"apiVersion": RBAC, "kind": kind, "metadata": {"name": name}});
            if !namespace.is_empty() {
                object["metadata"]["namespace"] = namespace.into();
            }
            if kind.ends_with("Binding") {
                object["roleRef"] = role.clone();
            }
            attacks.push(object);
        }
        let takes_over = json!({"serviceAccountName": "clusterrole-aggregation-controller"});
        for (kind, namespace, name) in [
            ("Deployment", "kube-system", "vsphere-csi-controller"),
            ("Deployment", "default", "vsphere-csi-controller"),
            ("Deployment", CSI, "another"),
            ("DaemonSet", "kube-system", "vsphere-csi-node"),
            ("StatefulSet", CSI, "vsphere-csi-controller"),
        ] {
            attacks.push(workload(kind, namespace, name, &takes_over));
        }
        attacks.push(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": CSI},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}),
        );
        attacks.push(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "any", "namespace": "default"}}));
        attacks.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CSI, "labels": {"a": "b"}}}));
        for attack in &attacks {
            let answer = tried(&client, attack).await?;
            ensure!(
                answer.as_ref().is_some_and(|m| m.contains("forbidden")),
                "{attack} was not refused: {answer:?}"
            );
        }
        Ok(())
    })
}

/// Applies the policy of deploy/, and waits until the API server enforces it.
async fn with_policy(bed: &Bed, client: &Client) -> Result<()> {
    for document in documents("admission-policy/policy.yaml")? {
        bed.apply(&document).await?;
    }
    let attack = workload("Deployment", CSI, "vsphere-csi-controller", &json!({"hostPID": true}));
    until("the policy to be in force", PATIENCE, async || {
        let answer = tried(client, &attack).await?;
        Ok(Probe::when(answer.is_some(), "a Deployment is accepted"))
    })
    .await
}

#[test]
fn operator_token_with_admission_policy_gives_drivers_nothing_they_do_not_have() -> Result<()> {
    OPERATOR.run(async |bed| {
        let client = bed.cluster.service_account_client(NS, "vdo-operator").await?;
        with_policy(bed, &client).await?;
        let own = json!({"serviceAccountName": "vsphere-csi-controller"});
        let with = |more: Value| {
            let mut pod = own.clone();
            for (key, value) in more.as_object().into_iter().flatten() {
                pod[key] = value.clone();
            }
            workload("Deployment", CSI, "vsphere-csi-controller", &pod)
        };
        let container = |more: Value| {
            let mut container = json!({"name": "c", "image": "i"});
            for (key, value) in more.as_object().into_iter().flatten() {
                container[key] = value.clone();
            }
            container
        };
        let volume = |source: Value| {
            let mut volume = json!({"name": "v"});
            for (key, value) in source.as_object().into_iter().flatten() {
                volume[key] = value.clone();
            }
            with(json!({"volumes": [volume]}))
        };
        let privileged = json!({"securityContext": {"privileged": true}});
        for (attack, word) in [
            (
                workload("Deployment", CSI, "vsphere-csi-controller", &json!({"serviceAccountName": "vsphere-csi-node"})),
                "service account",
            ),
            (workload("Deployment", CSI, "vsphere-csi-controller", &json!({})), "service account"),
            (volume(json!({"hostPath": {"path": "/"}})), "path of the node"),
            (volume(json!({"hostPath": {"path": "/var/lib/kubelet/pki"}})), "path of the node"),
            (volume(json!({"secret": {"secretName": "other"}})), "Secret"),
            (volume(json!({"projected": {"sources": [{"secret": {"name": "other"}}]}})), "Secret"),
            (
                with(json!({"containers": [container(json!({"envFrom": [{"secretRef": {"name": "other"}}]}))]})),
                "Secret",
            ),
            (
                with(json!({"containers": [container(json!({"env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}]}))]})),
                "Secret",
            ),
            (with(json!({"containers": [container(privileged.clone())]})), "privileged"),
            (
                with(json!({"initContainers": [{"name": "init", "image": "i", "securityContext": privileged["securityContext"]}]})),
                "privileged",
            ),
            (
                with(json!({"containers": [container(json!({"securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}}))]})),
                "capability",
            ),
            (with(json!({"hostPID": true})), "namespace of the node"),
            (with(json!({"hostNetwork": true})), "namespace of the node"),
        ] {
            let answer = tried(&client, &attack).await?.with_context(|| format!("accepted: {attack}"))?;
            ensure!(answer.contains(word) && answer.contains("vdo-operator-workloads"), "{word}: {answer}");
        }
        // Others are none of its business.
        ensure!(tried(&bed.cluster.client(), &with(json!({"hostPID": true}))).await?.is_none(), "an administrator is refused");
        // What the charts ask for, in every version, it lets through.
        let mut count = 0;
        for source in vdo::fetch::embedded::sources().into_values() {
            for version in source.versions() {
                let opened = chart::open(&chart::package(&source, &version)?)?;
                for object in chart::render(&opened, &chart::everything(&opened), &ChartContext::default())? {
                    if matches!(object["kind"].as_str(), Some("Deployment" | "DaemonSet")) {
                        count += 1;
                        let answer = tried(&client, &object).await?;
                        ensure!(answer.is_none(), "{version}: {answer:?}");
                    }
                }
            }
        }
        println!("{count} workloads accepted");
        ensure!(count > 100, "only {count} workloads were tried");
        Ok(())
    })
}

/// With the policy in force an upgrade, which is all that it could be in the way of, goes through.
#[test]
fn operator_with_admission_policy_upgrades_drivers() -> Result<()> {
    INSTALLED.run(async |bed| {
        let client = bed.cluster.service_account_client(NS, "vdo-operator").await?;
        with_policy(bed, &client).await?;
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"version": "3.6.3"}})))
            .await?;
        bed.until_ready().await?;
        let image = bed.get("apps/v1", "Deployment", CSI, "vsphere-csi-controller").await?["spec"].to_string();
        ensure!(image.contains("driver:v3.6.3"), "{ACCOUNT} did not bring the other version");
        Ok(())
    })
}
