// SPDX-License-Identifier: Apache-2.0
//! What the documentation of the drivers has people apply, where it differs from what the operator applies.

use super::handed_back::hand_back;
use super::{Reference, Tool, kubectl, managed_by_us_alone, manifests_of_others, reference, until_running, workloads};
use crate::common::{Bed, name};
use crate::fixture::OPERATOR;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The drivers' own manifests, with the configuration that an administrator wrote for them.
fn upstream(reference: &Reference) -> Result<Vec<Value>> {
    let mut all = manifests_of_others(&[
        "cloud-provider-vsphere/1.34.0/vsphere-cloud-controller-manager.yaml",
        "vsphere-csi-driver/3.7.3/namespace.yaml",
        "vsphere-csi-driver/3.7.3/vsphere-csi-driver.yaml",
    ])?;
    let configuration = ["vsphere-cloud-secret", "vsphere-cloud-config", "vsphere-config-secret"];
    let is_configuration = |object: &Value| configuration.iter().any(|name| object["metadata"]["name"] == *name);
    all.retain(|object| !is_configuration(object));
    all.extend(reference.manifests.iter().filter(|object| is_configuration(object)).cloned());
    // A namespace comes before what is in it.
    all.sort_by_key(|object| object["kind"] != "Namespace");
    Ok(all)
}

/// Has the operator take over what `kubectl apply` installed from these manifests, in the versions that they have. Where a template is
/// as the operator wants it, no pod is restarted. Gives how many workloads have such a template, and how many there are.
async fn taken_over(bed: &Bed, theirs: &[Value], csi: &str, awaited: &[&str]) -> Result<(usize, usize)> {
    kubectl(bed, &["apply", "-f", "-"], theirs)?;
    until_running(bed, awaited).await?;
    let before = templates(bed).await?;
    let mark = bed.cluster.audit().mark().await?;
    let pins = json!({"cloudProvider": {"version": "1.34.0"}, "storageProvider": {"version": csi}});
    bed.apply(&bed.config(pins)).await?;
    bed.until_ready().await?;
    let after = templates(bed).await?;
    let mut kept = 0;
    for (workload, (uid, template, pods)) in &before {
        let (now_uid, now_template, now_pods) = after.get(workload).with_context(|| format!("{workload} is gone"))?;
        ensure!(uid == now_uid, "{workload} was recreated");
        if template == now_template {
            kept += 1;
            ensure!(
                now_pods.is_subset(pods),
                "{workload}: pods were restarted although its template is as it was"
            );
        } else {
            println!("{workload} has another template:\n{template}\n{now_template}");
        }
    }
    managed_by_us_alone(bed, Tool::Kubectl).await?;
    let deleted = bed.deleted(mark).await?;
    ensure!(deleted.is_empty(), "the operator deleted:\n{deleted}");
    println!(
        "{} objects applied, {kept} of {} workloads with an equal template",
        theirs.len(),
        before.len()
    );
    Ok((kept, before.len()))
}

/// Played with the manifests of the project's own charts, of which one has another template.
#[test]
#[ignore = "long"]
fn adoption_with_another_template_restarts_the_pods_of_this_workload_only() -> Result<()> {
    OPERATOR.run(async |bed| {
        let mut theirs = reference(bed).await?.manifests;
        let controller = theirs
            .iter_mut()
            .find(|object| object["kind"] == "Deployment" && object["metadata"]["name"] == "vsphere-csi-controller")
            .context("no controller")?;
        controller["spec"]["template"]["metadata"]["annotations"]["installed-by"] = "hand".into();
        let (kept, all) = taken_over(bed, &theirs, "3.8.0", &["DaemonSet", "Deployment"]).await?;
        ensure!(kept + 1 == all, "{kept} of {all} workloads kept their template");
        hand_back(bed, &theirs).await
    })
}

#[test]
#[ignore = "needs VDO_UPSTREAM_DIR, a folder with the drivers' own manifests"]
fn adoption_of_upstream_manifests_keeps_pods_with_an_equal_template() -> Result<()> {
    OPERATOR.run(async |bed| {
        let theirs = upstream(&reference(bed).await?)?;
        // Upstream's webhook waits for a certificate that is not there.
        taken_over(bed, &theirs, "3.7.3", &["DaemonSet"]).await?;
        hand_back(bed, &theirs).await
    })
}

/// Each workload with its UID, its pod template and the UIDs of its pods.
async fn templates(bed: &Bed) -> Result<BTreeMap<String, (String, String, BTreeSet<String>)>> {
    let mut all = BTreeMap::new();
    for kind in ["DaemonSet", "Deployment"] {
        for object in workloads(bed, kind).await? {
            let labels = object["spec"]["selector"]["matchLabels"].as_object().context("labels")?;
            let selector: Vec<String> = labels
                .iter()
                .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
                .collect();
            let pods = bed.list("v1", "Pod", &selector.join(",")).await?;
            let pods = pods.iter().map(|pod| pod["metadata"]["uid"].to_string()).collect();
            let template = object["spec"]["template"].to_string();
            all.insert(name(&object), (object["metadata"]["uid"].to_string(), template, pods));
        }
    }
    Ok(all)
}
