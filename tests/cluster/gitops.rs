// SPDX-License-Identifier: Apache-2.0
//! docs/gitops.md: its recipes against a real API server, the folder of `vdoctl deploy --gitops`, and what kstatus and Argo CD make of our kinds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod folder;
mod health;
mod recipes;
mod references;
mod tool;

use crate::common::sample::SEED;
use anyhow::{Context, Result, ensure};
use recipes::{documents, payload};
use serde_json::{Value, json};
use std::path::Path;
use tool::{Tool, name, shuffled};
use vdo_testbed::{Binaries, Cluster, ClusterOptions, Part, argocd_health, kstatus};

const DATA: &str = "tests/cluster/data/gitops";
const GROUP: &str = "vdo.vmware.com";

/// What the machine of the page has beside the definitions of Kubernetes: the definitions of all tools, and the namespaces of its documents.
async fn with_tools(cluster: &Cluster) -> Result<()> {
    let binaries = tokio::task::spawn_blocking(|| Binaries::ensure(&[Part::Gitopscheck])).await??;
    for file in binaries.gitops_definitions()? {
        cluster.apply_file(file).await?;
    }
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(DATA))? {
        cluster.apply_file(entry?.path()).await?;
    }
    for namespace in ["flux-system", "argocd", "workloads"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        cluster.apply_yaml(&namespace.to_string()).await?;
    }
    Ok(())
}

/// The definitions and namespaces as files of deploy/ have them.
fn of_deploy() -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for (file, text) in vdo_core::install::FILES {
        if file.starts_with("crds/") || *file == "namespace.yaml" {
            all.extend(vdo_api::yaml::load_all(text)?);
        }
    }
    Ok(all)
}

/// Every object of a recipe, with what it needs, in two orders; the second time nothing changes.
#[tokio::test(flavor = "multi_thread")]
async fn gitops_payload_of_every_recipe_applies_in_any_order_twice() -> Result<()> {
    let cluster = Cluster::start(ClusterOptions::api_only()).await?;
    let tool = Tool::new(cluster.client(), "kustomize-controller");
    let recipes = documents()?;
    let mut all = of_deploy()?;
    let before = all.len();
    for recipe in &recipes {
        for object in payload(std::slice::from_ref(recipe))? {
            if !all.contains(&object) {
                all.push(object);
            }
        }
    }
    let kinds: Vec<&str> = all[before..].iter().filter_map(|object| object["kind"].as_str()).collect();
    ensure!(
        ["Secret", "VsphereCloudConfig", "VDOConfig"]
            .iter()
            .all(|kind| kinds.contains(kind)),
        "the page has {kinds:?}"
    );
    // The definitions last: nothing of ours is known before.
    let mut order = shuffled(&all, *SEED);
    order.sort_by_key(|object| object["kind"] == "CustomResourceDefinition");
    let early = tool.apply(&order).await?;
    ensure!(early >= 2, "only {early} objects were refused at first");
    let generations = tool.generations(&all).await?;
    ensure!(tool.apply(&shuffled(&all, SEED.wrapping_add(1))).await? == 0);
    ensure!(tool.generations(&all).await? == generations, "the second time something changed");

    // No operator has read them: neither tool takes them for finished.
    for object in all.iter().filter(|object| object["apiVersion"] == "vdo.vmware.com/v1alpha1") {
        let live = [tool.live(object).await?];
        let reported = kstatus(&live)?;
        ensure!(reported[0].status == "InProgress", "{}: {reported:?}", name(object));
        let reported = argocd_health(&health::script(object["kind"].as_str().context("a kind")?)?, &live)?;
        ensure!(reported[0].status == "Progressing", "{}: {reported:?}", name(object));
    }
    Ok(())
}

/// Every document for another cluster or tool is valid by the definition of its kind, with no key that the definition lacks.
#[tokio::test(flavor = "multi_thread")]
async fn gitops_documents_are_valid_for_the_tools_that_read_them() -> Result<()> {
    let cluster = Cluster::start(ClusterOptions::api_only()).await?;
    with_tools(&cluster).await?;
    let tool = Tool::new(cluster.client(), "a user");
    let mut all = documents()?;
    all.retain(|document| document["kind"].is_string());
    ensure!(all.len() > 15, "the page has {} objects", all.len());
    tool.apply(&shuffled(&all, *SEED)).await?;
    let generations = tool.generations(&all).await?;
    tool.apply(&shuffled(&all, SEED.wrapping_add(1))).await?;
    ensure!(tool.generations(&all).await? == generations, "the second time something changed");

    // A key that its definition lacks is noticed.
    let mut wrong = recipes::document("Kustomization", "vdo-config")?;
    wrong["spec"]["healthCheck"] = json!([]);
    let error = tool.apply(&[wrong]).await.expect_err("it has an unknown field");
    ensure!(format!("{error:#}").contains("spec.healthCheck"), "{error:#}");
    Ok(())
}
