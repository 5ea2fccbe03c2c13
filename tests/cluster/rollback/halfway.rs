// SPDX-License-Identifier: Apache-2.0
//! Changes that a policy of the cluster refuses halfway, at any object.

use super::{ensure_same, history, objects, until_rolled_back};
use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::INSTALLED;
use crate::install::until_at_rest;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use vdo_testbed::{Act, Call, Probe, Proxy, until};

const POLICY: &str = "admissionregistration.k8s.io/v1";
const VDO: &str = "vdo.vmware.com/v1alpha1";
const NEW: &str = "3.6.3";
const MESSAGE: &str = "not this one";

/// A write to an object of the storage driver.
fn is_of_the_driver(call: &Call) -> bool {
    let writes = matches!(call.verb, "create" | "update" | "patch" | "delete") && call.subresource.is_empty() && !call.dry_run;
    writes && (call.namespace == "vmware-system-csi" || matches!(call.resource.as_str(), "csidrivers" | "storageclasses"))
}

/// Which object of the new version the policy denies; and the probe, which shows that it has read so.
async fn deny(bed: &Bed, resource: &str, name: &str, round: usize) -> Result<()> {
    let probe = format!("probe-{round}");
    let data = json!({"resource": resource, "name": name, "probe": probe});
    let metadata = json!({"name": "denied", "namespace": NS});
    bed.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
        .await?;
    let labels = json!({"vdo.vmware.com/driver": "vsphere-csi", "app.kubernetes.io/version": NEW});
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": probe, "namespace": NS, "labels": labels}});
    let params = kube::api::PatchParams::apply("probe").dry_run();
    until("the policy to be in force", PATIENCE, async || {
        let api = bed.api("v1", "ConfigMap", NS);
        let answer = api.patch(&probe, &params, &kube::api::Patch::Apply(&object)).await;
        let refused = answer.is_err_and(|error| error.to_string().contains(MESSAGE));
        Ok(Probe::when(refused, format!("{probe} is accepted")))
    })
    .await
}

/// Denies one object of the new version, which a ConfigMap names.
async fn policy(bed: &Bed) -> Result<()> {
    let rules = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["*"]}]);
    let labels = json!({"matchLabels": {"vdo.vmware.com/driver": "vsphere-csi"}});
    let new = format!(
        "request.operation == 'DELETE' || (has(object.metadata.labels) && object.metadata.labels['app.kubernetes.io/version'] == '{NEW}')"
    );
    let named =
        "request.name == params.data.probe || (request.name == params.data.name && request.resource.resource == params.data.resource)";
    let spec = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "matchConstraints": {"resourceRules": rules, "objectSelector": labels},
        "validations": [{"expression": format!("!(({new}) && ({named}))"), "message": MESSAGE}]});
    let param = json!({"name": "denied", "namespace": NS, "parameterNotFoundAction": "Allow"});
    let binding = json!({"policyName": "denial", "paramRef": param, "validationActions": ["Deny"]});
    for (kind, spec) in [("ValidatingAdmissionPolicy", spec), ("ValidatingAdmissionPolicyBinding", binding)] {
        bed.apply(&json!({"apiVersion": POLICY, "kind": kind, "metadata": {"name": "denial"}, "spec": spec}))
            .await?;
    }
    deny(bed, "none", "none", 0).await
}

/// What the newest revisions are, once a change has failed after the one with this number and another one is good.
async fn until_over(bed: &Bed, known: u64) -> Result<Vec<(u64, String, String)>> {
    until("the change to be given up and rolled back", PATIENCE, async || {
        let all = history(bed)?;
        let newest = all.last().context("a revision")?;
        let over = newest.0 >= known + 2 && newest.2 == "Deployed";
        let reported = format!("{all:?}\n{}", condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "Ready"));
        Ok(if over { Probe::Ready(all) } else { Probe::not_yet(reported) })
    })
    .await
}

/// A policy comes into force while a write is on its way, for each object of the change in turn. The server answers that write and every
/// later one of the same object with it.
#[test]
#[ignore = "long"]
fn change_refused_by_policy_at_every_object_is_rolled_back_whole() -> Result<()> {
    INSTALLED.run(async |bed| {
        let proxy = Proxy::start(&bed.cluster).await?;
        bed.kill_operator();
        bed.lead_through(&proxy)?;
        bed.start_operator().await?;
        bed.until_ready().await?;
        until_at_rest(bed).await?;
        let before = objects(bed).await?;
        let mut known = history(bed)?.last().context("a revision")?.0;
        policy(bed).await?;
        let mut refused = BTreeSet::new();
        for round in 1.. {
            let begun = Instant::now();
            let held: Arc<Mutex<Option<Call>>> = Arc::default();
            let (seen, known_refused) = (held.clone(), refused.clone());
            proxy.begin(move |call| {
                let mut seen = seen.lock().unwrap();
                let new = !known_refused.contains(&(call.resource.clone(), call.name.clone()));
                if seen.is_some() || !new || !is_of_the_driver(call) {
                    return Act::Pass;
                }
                *seen = Some(call.clone());
                Act::Hold
            });
            if round == 1 {
                let spec = json!({"cloudProvider": {}, "storageProvider": {"version": NEW}});
                bed.apply(&bed.config(spec)).await?;
            } else {
                let again = json!({"metadata": {"annotations": {"vdo.vmware.com/retry-at": round.to_string()}}});
                bed.merge(VDO, "VDOConfig", NS, "vdo", again).await?;
            }
            let call = until("a write to another object, or a change that has none", PATIENCE, async || {
                let call = held.lock().unwrap().clone();
                let newest = history(bed)?.last().cloned().context("a revision")?;
                let over = newest.0 > known && newest.2 == "Deployed";
                Ok(match call.is_some() || over {
                    true => Probe::Ready(call),
                    false => Probe::not_yet(format!("{newest:?}")),
                })
            })
            .await?;
            let Some(call) = call else { break };
            deny(bed, &call.resource, &call.name, round).await?;
            proxy.pass_held();
            let object = format!("{} {}", call.resource, call.name);
            let all = until_over(bed, known).await.context(object.clone())?;
            ensure!(all[all.len() - 2].2 == "Failed", "{object}: {all:?}");
            ensure_same(&before, &objects(bed).await?).context(object.clone())?;
            known = all.last().context("a revision")?.0;
            deny(bed, "none", "none", 1000 + round).await?;
            refused.insert((call.resource, call.name));
            println!("{object}: {:?}", begun.elapsed());
        }
        proxy.begin(|_| Act::Pass);
        ensure!(refused.len() > 5, "only {refused:?}");
        bed.apply(&bed.config(json!({"updatePolicy": "Latest"}))).await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// A quota that lets no new pod in: what runs stays, but for the one pod of each workload that a rollout may take away, and it is all as
/// before.
#[test]
#[ignore = "long"]
fn change_whose_pods_a_quota_refuses_leaves_the_others_and_is_rolled_back_whole() -> Result<()> {
    INSTALLED.run(async |bed| {
        let namespace = "vmware-system-csi";
        until_at_rest(bed).await?;
        let several = json!({"controller": {"replicas": 3, "spread": "none"}});
        let storage = |deadline: &str, version: &str, values: &Value| {
            json!({"progressDeadline": deadline, "cloudProvider": {}, "storageProvider": {"version": version, "values": values}})
        };
        // One after the other: pods that may not share a node keep others away as long as they are there.
        for values in [json!({"controller": {"spread": "none"}}), several.clone()] {
            let known = history(bed)?.last().context("a revision")?.0;
            bed.apply(&bed.config(storage("10m", "3.8.0", &values))).await?;
            // The scheduler may look only after five minutes again at a pod that another one kept away.
            until("the controllers", 2 * PATIENCE, async || {
                let newest = history(bed)?.last().cloned().context("a revision")?;
                Ok(Probe::when(newest.0 > known && newest.2 == "Deployed", format!("{newest:?}")))
            })
            .await?;
        }
        until_at_rest(bed).await?;
        let before = objects(bed).await?;
        let ready = async || -> Result<(i64, i64, i64)> {
            let of = |object: Value, key: &str| object["status"][key].as_i64().unwrap_or(0);
            let controller = bed.get("apps/v1", "Deployment", namespace, "vsphere-csi-controller").await?;
            let node = bed.get("apps/v1", "DaemonSet", namespace, "vsphere-csi-node").await?;
            let wanted = of(node.clone(), "desiredNumberScheduled");
            Ok((of(controller, "readyReplicas"), of(node, "numberReady"), wanted))
        };
        let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full", "namespace": namespace},
            "spec": {"hard": {"pods": "1"}}});
        bed.apply(&quota).await?;
        until("the quota to be counted", PATIENCE, async || {
            let found = bed.get("v1", "ResourceQuota", namespace, "full").await?;
            Ok(Probe::when(found["status"]["used"]["pods"].is_string(), found["status"].clone()))
        })
        .await?;
        bed.apply(&bed.config(storage("3s", "3.6.3", &several))).await?;
        until("the change to be given up", PATIENCE, async || {
            let (controllers, plugins, wanted) = ready().await?;
            ensure!(
                controllers >= 2 && plugins >= wanted - 1,
                "{controllers} controllers, {plugins} of {wanted} plugins are left"
            );
            let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
            let back = condition(&config, "RolledBack");
            Ok(Probe::when(back["status"] == "True", condition(&config, "Ready")))
        })
        .await?;
        bed.delete("v1", "ResourceQuota", namespace, "full").await?;
        let config = until_rolled_back(bed).await?;
        let message = condition(&config, "RolledBack")["message"].clone();
        println!("{message}");
        ensure!(message.to_string().contains("CSI 3.6.3"), "{message}");
        ensure_same(&before, &objects(bed).await?)?;
        bed.apply(&bed.config(json!({"updatePolicy": "Latest"}))).await?;
        bed.until_ready().await?;
        Ok(())
    })
}
