//! What the documentation of the drivers tells people to apply.

use crate::bed::{Bed, name};
use crate::{Tool, kubectl, nobody_else_manages, until_running, workloads};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The drivers' own manifests, with the configuration that somebody wrote for them; `None` when this machine has none.
fn upstream(manifests: &[Value]) -> Result<Option<Vec<Value>>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "where upstream's manifests are is told by the environment, as in tests/upstream.rs"
    )]
    let given = std::env::var_os("VDO_UPSTREAM_DIR").map(PathBuf::from);
    let root = given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/upstream"));
    let mut all = Vec::new();
    for file in [
        "cloud-provider-vsphere/1.34.0/vsphere-cloud-controller-manager.yaml",
        "vsphere-csi-driver/3.7.3/namespace.yaml",
        "vsphere-csi-driver/3.7.3/vsphere-csi-driver.yaml",
    ] {
        let path = root.join(file);
        if !path.is_file() {
            println!("NOT RUN: taking over upstream's manifests; {} is not there", path.display());
            return Ok(None);
        }
        all.extend(vdo::yaml::load_all(&std::fs::read_to_string(path)?)?);
    }
    let configuration = ["vsphere-cloud-secret", "vsphere-cloud-config", "vsphere-config-secret"];
    let is_configuration = |object: &Value| configuration.iter().any(|name| object["metadata"]["name"] == *name);
    all.retain(|object| !object.is_null() && !is_configuration(object));
    all.extend(manifests.iter().filter(|object| is_configuration(object)).cloned());
    // A namespace comes before what is in it.
    all.sort_by_key(|object| object["kind"] != "Namespace");
    Ok(Some(all))
}

/// The templates of upstream and ours may differ; where they do not,
/// no pod is restarted.
pub async fn upstream_manifests_are_taken_over(bed: &Bed, manifests: &[Value]) -> Result<()> {
    let Some(theirs) = upstream(manifests)? else { return Ok(()) };
    kubectl(bed, &["apply", "-f", "-"], &theirs)?;
    // Upstream's webhook waits for a certificate that nobody makes.
    until_running(bed, &["DaemonSet"]).await?;
    let before = templates(bed).await?;
    let mark = bed.cluster.audit().mark().await?;
    let pins = json!({"cloudProvider": {"version": "1.34.0"}, "storageProvider": {"version": "3.7.3"}});
    bed.apply(&bed.config(pins)).await?;
    bed.until_ready().await?;
    let after = templates(bed).await?;
    let mut kept = 0;
    for (workload, (uid, template, pods)) in &before {
        let (now_uid, now_template, now_pods) = after.get(workload).with_context(|| format!("{workload} is gone"))?;
        ensure!(uid == now_uid, "{workload} was made anew");
        if template == now_template {
            kept += 1;
            ensure!(
                now_pods.is_subset(pods),
                "{workload}: pods were restarted although its template is as it was"
            );
        } else {
            println!("upstream: {workload} has another template:\n{template}\n{now_template}");
        }
    }
    nobody_else_manages(bed, Tool::Kubectl).await?;
    let deleted = bed.deleted(mark).await?;
    ensure!(deleted.is_empty(), "the operator deleted:\n{deleted}");
    println!(
        "upstream's manifests: {} objects applied, {kept} of {} workloads with an equal template",
        theirs.len(),
        before.len()
    );
    Ok(())
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
