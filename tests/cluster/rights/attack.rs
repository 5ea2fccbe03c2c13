// SPDX-License-Identifier: Apache-2.0
//! What someone can do who has the operator's token.

use crate::common::{NS, OPERATOR as ACCOUNT, PATIENCE, contents};
use crate::fixture::{INSTALLED, OPERATOR};
use anyhow::{Context, Result, bail, ensure};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use vdo_core::drivers;
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
        // Nor the accounts, the source of the matrix and its keys; in its namespace it writes its own state and the webhook's certificate.
        for (kind, name) in [
            ("ConfigMap", "vdo-inventory"),
            ("Secret", "vdo-matrix"),
            ("Secret", "vdo-matrix-keys"),
            ("Secret", "vc1-credentials"),
        ] {
            attacks.push(json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": NS}}));
        }
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

/// Waits until the API server enforces the policy, which is a part of deploy/.
async fn with_policy(client: &Client) -> Result<()> {
    let attack = workload("Deployment", CSI, "vsphere-csi-controller", &json!({"hostPID": true}));
    until("the policy to be in force", PATIENCE, async || {
        let answer = tried(client, &attack).await?;
        Ok(Probe::when(answer.is_some(), "a Deployment is accepted"))
    })
    .await
}

/// A Secret of this type would get the token of any account, which is the whole cluster.
#[test]
fn operator_token_gets_no_token_of_another_account_by_a_secret() -> Result<()> {
    OPERATOR.run(async |bed| {
        let client = bed.cluster.service_account_client(NS, "vdo-operator").await?;
        with_policy(&client).await?;
        for (namespace, name) in [
            ("kube-system", "vsphere-cloud-secret"),
            (CSI, "vsphere-config-secret"),
            (CSI, "vsphere-webhook-certs"),
            (NS, "vdo-webhook-certificate"),
        ] {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
                "metadata": {"name": name, "namespace": namespace,
                    "annotations": {"kubernetes.io/service-account.name": "clusterrole-aggregation-controller"}}});
            let params = PatchParams::apply("attack").force();
            let answer = api(&client, "v1", "Secret", namespace)
                .patch(name, &params, &Patch::Apply(&secret))
                .await;
            let refused =
                matches!(&answer, Err(kube::Error::Api(status)) if status.message.contains("ValidatingAdmissionPolicy 'vdo-operator'"));
            ensure!(refused, "{namespace}/{name}: {answer:?}");
            ensure!(
                bed.get("v1", "Secret", namespace, name).await? == Value::Null,
                "Secret {namespace}/{name} is there"
            );
        }
        Ok(())
    })
}

#[test]
fn operator_token_writes_no_content_that_no_chart_has() -> Result<()> {
    OPERATOR.run(async |bed| {
        let client = bed.cluster.service_account_client(NS, "vdo-operator").await?;
        with_policy(&client).await?;
        let (mut by_policy, mut accepted) = (0, Vec::new());
        for (what, attack) in contents::attacks() {
            match tried(&client, &attack).await? {
                Some(answer) if answer.contains("ValidatingAdmissionPolicy 'vdo-operator'") => by_policy += 1,
                // Refused by the API server itself, before it asks a policy.
                Some(answer) => println!("{what}: {answer}"),
                None => accepted.push(what),
            }
        }
        ensure!(accepted.is_empty(), "accepted: {accepted:#?}");
        println!("{by_policy} contents refused by the policy");
        ensure!(by_policy > 300, "only {by_policy} were refused by the policy");
        // It binds the operator's account and no other.
        let foreign = workload("Deployment", CSI, "vsphere-csi-controller", &json!({"hostPID": true}));
        ensure!(
            tried(&bed.cluster.client(), &foreign).await?.is_none(),
            "an administrator is refused"
        );
        Ok(())
    })
}

/// Every object of every version, with everything that its chart can render.
#[test]
#[ignore = "long"]
fn operator_token_writes_what_the_charts_of_all_versions_have() -> Result<()> {
    OPERATOR.run(async |bed| {
        let client = bed.cluster.service_account_client(NS, "vdo-operator").await?;
        with_policy(&client).await?;
        // Of a driver whose rights come on request nothing may be written before they are granted.
        for driver in drivers::RIGHTS_ON_REQUEST {
            for object in contents::newest(driver) {
                let refusal = tried(&client, &object).await?.with_context(|| format!("{object} is accepted"))?;
                ensure!(refusal.contains("cannot patch resource"), "{refusal}");
            }
            let (code, rights, talk) = bed.vdoctl(&["rights", "--driver", driver])?;
            ensure!(code == 0, "{talk}");
            for role in vdo_api::yaml::load_all(&rights)? {
                bed.apply(&role).await?;
            }
            let first = contents::newest(driver).into_iter().next().context("an object")?;
            until("the rights to be known", PATIENCE, async || {
                let answer = tried(&client, &first).await?;
                Ok(Probe::when(answer.is_none(), answer.unwrap_or_default()))
            })
            .await?;
        }
        let mut count = 0;
        for (driver, source) in vdo_source::fetch::embedded::sources() {
            for version in source.versions() {
                for object in contents::of_version(&driver, &version) {
                    count += 1;
                    let answer = tried(&client, &object).await?;
                    ensure!(answer.is_none(), "{driver} {version}: {answer:?}");
                }
            }
        }
        println!("{count} objects accepted");
        ensure!(count > 300, "only {count} objects were tried");
        Ok(())
    })
}

/// What others have set in an object stays there when the operator writes it, and the operator cannot set the same.
#[test]
fn operator_token_leaves_content_of_others_as_it_is() -> Result<()> {
    INSTALLED.run(async |bed| {
        let client = bed.cluster.service_account_client(NS, "vdo-operator").await?;
        with_policy(&client).await?;
        let csi = contents::newest("vsphere-csi");
        let mut own = csi
            .into_iter()
            .find(|object| object["kind"] == "Deployment" && object["metadata"]["name"] == "vsphere-csi-controller")
            .context("a Deployment")?;
        let foreign = json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}},
            "spec": {"hostAliases": [{"ip": "192.0.2.1", "hostnames": ["a"]}]}}}});
        bed.merge("apps/v1", "Deployment", CSI, "vsphere-csi-controller", foreign.clone()).await?;
        own["spec"]["template"]["spec"]["containers"][0]["image"] = "example.com/other:1".into();
        let answer = tried(&client, &own).await?;
        ensure!(answer.is_none(), "beside what others have set: {answer:?}");
        own["spec"]["template"]["spec"]["hostAliases"] = json!([{"ip": "192.0.2.2", "hostnames": ["a"]}]);
        let answer = tried(&client, &own).await?;
        let refusal = answer.context("another value than that of others is accepted")?;
        ensure!(refusal.contains("spec.template.spec.hostAliases"), "the field is not named: {refusal}");
        let undo = json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": null}}, "spec": {"hostAliases": null}}}});
        bed.merge("apps/v1", "Deployment", CSI, "vsphere-csi-controller", undo).await
    })
}

/// With the policy in force an upgrade, which is all that it could be in the way of, goes through.
#[test]
#[ignore = "long"]
fn operator_with_admission_policy_upgrades_drivers() -> Result<()> {
    INSTALLED.run(async |bed| {
        let client = bed.cluster.service_account_client(NS, "vdo-operator").await?;
        with_policy(&client).await?;
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"version": "3.6.3"}})))
            .await?;
        bed.until_ready().await?;
        let image = bed.get("apps/v1", "Deployment", CSI, "vsphere-csi-controller").await?["spec"].to_string();
        ensure!(image.contains("driver:v3.6.3"), "{ACCOUNT} did not bring the other version");
        Ok(())
    })
}
