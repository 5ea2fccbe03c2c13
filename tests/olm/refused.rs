// SPDX-License-Identifier: Apache-2.0
//! What OLM refuses, in its own words, which docs/openshift.md explains.

use crate::common::{NS, PATIENCE};
use crate::olm_bed::{Approval, GROUPS, OLM, OlmBed, SUBSCRIPTION, run};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

/// That the page explains a message of OLM, by a part of it.
fn ensure_explained(part: &str, message: &str) -> Result<()> {
    ensure!(message.contains(part), "OLM says {message}, not {part:?}");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/openshift.md"))?;
    ensure!(page.contains(part), "docs/openshift.md does not explain {part:?}");
    Ok(())
}

/// Waits for this text anywhere in the status of the Subscription, its InstallPlans and CSVs.
async fn until_said(world: &OlmBed, part: &str) -> Result<()> {
    let message = until(&format!("OLM to say {part:?}"), PATIENCE, async || {
        let mut said = String::new();
        for kind in ["Subscription", "InstallPlan", "ClusterServiceVersion"] {
            for object in world.bed.list(OLM, kind, "").await? {
                said += &format!("{kind} {}\n", object["status"]);
            }
        }
        for event in world.bed.list("v1", "Event", "").await? {
            said += &format!("Event {}\n", event["message"]);
        }
        Ok(match said.contains(part) {
            true => Probe::Ready(said),
            false => Probe::not_yet(said),
        })
    })
    .await?;
    ensure_explained(part, &message)
}

/// Waits for this text in the log of catalog-operator, which says it nowhere else.
async fn until_logged(world: &OlmBed, part: &str) -> Result<()> {
    let log = world.olm.dir().join("catalog.log");
    until(&format!("catalog-operator to log {part:?}"), PATIENCE, async || {
        Ok(Probe::when(std::fs::read_to_string(&log)?.contains(part), "it has not"))
    })
    .await?;
    ensure_explained(part, part)
}

#[test]
fn olm_catalog_with_two_heads_or_a_cycle_is_refused_by_opm() -> Result<()> {
    run(async |world| {
        let mut documents = Vec::new();
        for version in ["0.1.0", "0.2.0"] {
            let folder = world.release(version, |_| ()).await?;
            documents.push(world.olm.render(&folder)?);
        }
        let heads = json!([{"name": "vdo.v0.1.0"}, {"name": "vdo.v0.2.0"}]);
        let error = world
            .publish_graph(&heads, documents.clone())
            .await
            .err()
            .context("two heads were accepted")?;
        ensure_explained("multiple channel heads found in graph", &format!("{error:#}"))?;
        let cycle = json!([{"name": "vdo.v0.1.0", "replaces": "vdo.v0.2.0"}, {"name": "vdo.v0.2.0", "replaces": "vdo.v0.1.0"}]);
        let error = world.publish_graph(&cycle, documents).await.err().context("a cycle was accepted")?;
        ensure_explained("no channel head found in graph", &format!("{error:#}"))
    })
}

#[test]
#[ignore = "long"]
fn olm_subscription_needs_exactly_one_operator_group() -> Result<()> {
    run(async |world| {
        let folder = world.release("0.1.0", |_| ()).await?;
        world.publish(&[&folder]).await?;
        world.apply_prerequisites().await?;
        world.subscribe(Approval::Automatic).await?;
        until_logged(world, "found 0 operatorGroups, expected 1").await?;
        world.group("one", &[NS]).await?;
        world.group("two", &[NS]).await?;
        until_logged(world, "found 2 operatorGroups, expected 1").await?;
        let subscription = world.bed.get(OLM, "Subscription", NS, SUBSCRIPTION).await?;
        ensure!(
            subscription["status"]["state"].is_null(),
            "the page says that it has no state: {}",
            subscription["status"]
        );
        // The way out that the page names.
        world.bed.delete(GROUPS, "OperatorGroup", NS, "two").await?;
        world.until_succeeded("0.1.0").await.map(|_| ())
    })
}

#[test]
#[ignore = "long"]
fn olm_upgrade_that_drops_a_stored_version_is_refused() -> Result<()> {
    run(async |world| {
        let first = world.install("0.1.0", &[NS]).await?;
        world.bed.apply_samples().await?;
        world.bed.until_ready().await?;
        let dropped = |definition: &mut Value| definition["spec"]["versions"][0]["name"] = "v1beta1".into();
        let second = world.release("0.2.0", dropped).await?;
        // The bundle has to agree with itself, so that OLM looks at the definition.
        crate::olm_bed::edit(&second.join("manifests/vdo.clusterserviceversion.yaml"), |csv| {
            let owned = csv["spec"]["customresourcedefinitions"]["owned"].as_array_mut();
            for kind in owned.into_iter().flatten().filter(|kind| kind["kind"] == "VDOConfig") {
                kind["version"] = "v1beta1".into();
            }
        })?;
        world.publish(&[&first, &second]).await?;
        until_said(world, "risk of data loss").await?;
        ensure!(world.csv("0.2.0").await?["status"]["phase"] != "Succeeded", "it was installed");
        world.bed.until_ready().await?;
        let pod = world.bed.operator_pod().await?;
        let image = pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
        ensure!(image.ends_with(":v0.1.0"), "{image} runs");
        Ok(())
    })
}
