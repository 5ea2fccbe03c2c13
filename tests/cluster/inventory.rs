//! A lost and a damaged inventory on a real control plane: no driver is forgotten, and nothing foreign goes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::bed::{Bed, NS, PATIENCE, condition, name};
use crate::fixture::INSTALLED;
use crate::install::{ensure_nothing_was_forbidden, until_at_rest};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use vdo::plan::{Entry, Inventory};
use vdo::types::ObjectId;
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const MAP: &str = "vdo-inventory";
const CSI_NS: &str = "vmware-system-csi";

/// An object that a person made from one of ours, with all its labels and annotations. The fixture takes it for ours, so the test
/// deletes it.
async fn copy(bed: &Bed) -> Result<()> {
    let original = bed.get("v1", "ServiceAccount", CSI_NS, "vsphere-csi-node").await?;
    let [labels, annotations] = ["labels", "annotations"].map(|key| original["metadata"][key].clone());
    let metadata = json!({"name": "copied", "namespace": CSI_NS, "labels": labels, "annotations": annotations});
    bed.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}))
        .await
}

async fn delete_copy(bed: &Bed) -> Result<()> {
    let copied = bed.get("v1", "ServiceAccount", CSI_NS, "copied").await?;
    ensure!(copied != Value::Null, "the copy went, although it is not ours");
    bed.delete("v1", "ServiceAccount", CSI_NS, "copied").await
}

/// The stored inventory: its objects with their instances, and the identity of the cluster.
async fn stored(bed: &Bed) -> Result<Option<(BTreeSet<String>, String)>> {
    let map = bed.get("v1", "ConfigMap", NS, MAP).await?;
    let Some(text) = map["data"]["objects"].as_str().filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let objects: Vec<Value> = serde_json::from_str(text)?;
    let lines = objects.iter().map(|o| {
        format!(
            "{} {} {} {} {} {}",
            o["kind"], o["namespace"], o["name"], o["driver"], o["wave"], o["uid"]
        )
    });
    Ok(Some((lines.collect(), map["data"]["clusterId"].to_string())))
}

/// A damaged one stops the operator with an error that says what to do; once it is deleted, it is rebuilt and nothing goes.
#[test]
fn inventory_damaged_stops_writes_and_is_rebuilt_once_deleted() -> Result<()> {
    INSTALLED.run(async |bed| {
        copy(bed).await?;
        until_at_rest(bed).await?;
        let before = stored(bed).await?.context("an inventory")?;
        let begin = bed.cluster.audit().mark().await?;
        for data in [json!({"objects": "[{"}), json!({"objects": null})] {
            until_at_rest(bed).await?;
            let mark = bed.cluster.audit().mark().await?;
            bed.merge("v1", "ConfigMap", NS, MAP, json!({"data": data})).await?;
            let ready = bed.until_reason("Ready", "InvalidSpec").await?;
            let message = ready["message"].to_string();
            ensure!(message.contains(MAP) && message.contains("delete it"), "no remedy in {message}");
            let writes = bed
                .operator_requests(mark)
                .await?
                .only(|e| e.resource != "events" && e.subresource != "status");
            ensure!(writes.is_empty(), "written with a damaged inventory:\n{writes}");
            bed.delete("v1", "ConfigMap", NS, MAP).await?;
            until("the inventory to be what it was", PATIENCE, async || {
                let now = stored(bed).await?;
                Ok(Probe::when(now.as_ref() == Some(&before), format!("{now:?}")))
            })
            .await?;
            bed.until_ready().await?;
        }
        let gone = bed.deleted(begin).await?;
        ensure!(gone.is_empty(), "something was deleted:\n{gone}");
        ensure_nothing_was_forbidden(bed, begin).await?;
        delete_copy(bed).await
    })
}

/// The ConfigMaps that hold parts of it.
async fn parts(bed: &Bed) -> Result<Vec<String>> {
    let parts = bed.list("v1", "ConfigMap", "vdo.vmware.com/inventory-of").await?;
    Ok(parts.iter().map(name).collect())
}

/// The inventory of a release with thousands of objects, of which the process was killed before it narrowed it: it is read as a whole,
/// what is not there and not wanted goes from it, and with it every part. A part that is missing stops everything.
#[test]
fn inventory_in_parts_stops_at_a_changed_part_and_is_narrowed_to_one() -> Result<()> {
    INSTALLED.run(async |bed| {
        copy(bed).await?;
        until_at_rest(bed).await?;
        let begin = bed.cluster.audit().mark().await?;
        let before = stored(bed).await?.context("an inventory")?;
        bed.kill_operator();
        let map = bed.get("v1", "ConfigMap", NS, MAP).await?;
        let data: BTreeMap<String, String> = serde_json::from_value(map["data"].clone())?;
        let mut inventory = Inventory::parse(MAP, &data, &BTreeMap::new())?;
        let some = inventory.objects.values().next().context("an entry")?.clone();
        let old = Entry {
            api_version: "v1".into(),
            uid: Some("4201f8cd-1b9d-0f4c-8a3e-52f6a2c1d9aa".into()),
            ..some
        };
        let id = |i: usize| ObjectId::new("", "ConfigMap", CSI_NS, format!("an-object-of-an-earlier-release-{i:05}"));
        inventory.objects.extend((0..4_000).map(|i| (id(i), old.clone())));
        let kept = inventory.kept(MAP);
        ensure!(kept.chunks.len() > 1, "it fits into one");
        let set = map["metadata"]["labels"]["applyset.kubernetes.io/id"].clone();
        // One more, which a killed process left behind.
        for (part, text) in kept
            .chunks
            .iter()
            .map(|(part, text)| (part.as_str(), text.as_str()))
            .chain([("left-behind", "[]")])
        {
            bed.apply(
                &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": part, "namespace": NS,
                "labels": {"vdo.vmware.com/inventory-of": set}}, "data": {"objects": text}}),
            )
            .await?;
        }
        bed.merge("v1", "ConfigMap", NS, MAP, json!({"data": kept.index})).await?;

        let first = kept.chunks.keys().next().context("a part")?;
        let text = &kept.chunks[first];
        bed.merge("v1", "ConfigMap", NS, first, json!({"data": {"objects": "[]"}})).await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.start_operator().await?;
        let ready = bed.until_reason("Ready", "InvalidSpec").await?;
        ensure!(ready["message"].to_string().contains(first.as_str()), "{first} is not in {ready}");
        let writes = bed.operator_requests(mark).await?.writes();
        let writes = writes.only(|e| e.resource != "events" && e.subresource != "status");
        ensure!(writes.is_empty(), "written with a part of an inventory:\n{writes}");

        bed.merge("v1", "ConfigMap", NS, first, json!({"data": {"objects": text}})).await?;
        until("the inventory to be what it was, in one ConfigMap", PATIENCE, async || {
            let (now, left) = (stored(bed).await?, parts(bed).await?);
            Ok(Probe::when(
                now.as_ref() == Some(&before) && left.is_empty(),
                format!("{left:?}, {} objects", now.map_or(0, |now| now.0.len())),
            ))
        })
        .await?;
        bed.until_ready().await?;
        let gone = bed.deleted(mark).await?;
        ensure!(gone.len() == kept.chunks.len() + 1, "something else was deleted:\n{gone}");
        ensure_nothing_was_forbidden(bed, begin).await?;
        delete_copy(bed).await
    })
}

#[test]
fn inventory_lost_before_deletion_is_rebuilt_and_uninstalled() -> Result<()> {
    INSTALLED.run(async |bed| {
        copy(bed).await?;
        bed.kill_operator();
        let mark = bed.cluster.audit().mark().await?;
        bed.delete("v1", "ConfigMap", NS, MAP).await?;
        bed.delete(VDO, "VDOConfig", NS, "vdo").await?;
        bed.start_operator().await?;
        until("the VDOConfig to be gone", PATIENCE, async || {
            let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
            Ok(Probe::when(config == Value::Null, condition(&config, "Ready")))
        })
        .await?;
        let left: BTreeSet<String> = bed.owned().await?.iter().map(name).collect();
        // The copy is not ours.
        assert_eq!(left, BTreeSet::from(["ServiceAccount vmware-system-csi/copied".to_owned()]));
        ensure!(
            bed.get("v1", "ConfigMap", NS, MAP).await? == Value::Null,
            "the inventory outlived its VDOConfig"
        );
        ensure_nothing_was_forbidden(bed, mark).await?;
        delete_copy(bed).await
    })
}
