// SPDX-License-Identifier: Apache-2.0
//! A lost and a damaged inventory on a real control plane: no driver is forgotten, and nothing foreign goes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition, name};
use crate::fixture::INSTALLED;
use crate::install::{ensure_nothing_was_forbidden, until_at_rest};
use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const MAP: &str = "vdo-state";
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
    let map = bed.state().await?;
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
#[ignore = "long"]
fn inventory_damaged_stops_writes_and_is_rebuilt_once_deleted() -> Result<()> {
    INSTALLED.run(async |bed| {
        copy(bed).await?;
        until_at_rest(bed).await?;
        let before = stored(bed).await?.context("an inventory")?;
        let begin = bed.cluster.audit().mark().await?;
        for data in [
            json!({"objects": "[{"}),
            json!({"objects": null}),
            json!({"history": "{\"vsphere-csi\": ["}),
        ] {
            until_at_rest(bed).await?;
            let mark = bed.cluster.audit().mark().await?;
            bed.merge_state(json!({"data": data})).await?;
            let ready = bed.until_reason("Ready", "InvalidSpec").await?;
            let message = ready["message"].to_string();
            ensure!(
                message.contains(MAP) && message.contains("delete the Secret"),
                "no remedy in {message}"
            );
            let writes = bed
                .operator_requests(mark)
                .await?
                .only(|e| e.resource != "events" && e.subresource != "status");
            ensure!(writes.is_empty(), "written with a damaged inventory:\n{writes}");
            bed.delete("v1", "Secret", NS, "vdo-state").await?;
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

/// What was applied last is kept, but for the content of Secrets. Another user's change of it stops everything; where it is missing, as
/// after an upgrade from an operator that did not keep it, it is stored again and nothing else is written.
#[test]
fn inventory_changed_last_applied_stops_and_missing_one_is_stored() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let begin = bed.cluster.audit().mark().await?;
        let map = bed.state().await?;
        let kept: BTreeMap<String, String> = serde_json::from_value(map["binaryData"].clone())?;
        let drivers: BTreeSet<&str> = kept.keys().filter_map(|key| key.split('.').next()).collect();
        ensure!(drivers == BTreeSet::from(["vsphere-cpi", "vsphere-csi"]), "{drivers:?}");
        let size: usize = map["data"].to_string().len() + kept.values().map(String::len).sum::<usize>();
        println!("the inventory of both drivers has {size} bytes");
        for text in kept.values() {
            let mut json = String::new();
            flate2::read::GzDecoder::new(&*STANDARD.decode(text)?).read_to_string(&mut json)?;
            ensure!(
                !json.contains("\"data\":{\"csi-vsphere.conf") && !json.contains("password"),
                "a Secret is in it"
            );
        }

        let (first, text) = kept.first_key_value().context("a part")?;
        bed.merge_state(json!({"binaryData": {first: STANDARD.encode("other")}})).await?;
        let ready = bed.until_reason("Ready", "InvalidSpec").await?;
        ensure!(ready["message"].to_string().contains(first.as_str()), "{first} is not in {ready}");
        let writes = bed.operator_requests(begin).await?.writes();
        let writes = writes.only(|e| e.resource != "events" && e.subresource != "status");
        ensure!(writes.is_empty(), "written with a changed inventory:\n{writes}");
        bed.merge_state(json!({"binaryData": {first: text}})).await?;
        bed.until_ready().await?;

        let mark = bed.cluster.audit().mark().await?;
        bed.merge_state(json!({"binaryData": null})).await?;
        until("what was applied last to be stored again", PATIENCE, async || {
            let now = bed.state().await?["binaryData"].clone();
            let stored = now.as_object().map_or(0, |parts| parts.len());
            Ok(Probe::when(stored == drivers.len(), format!("{stored} parts")))
        })
        .await?;
        let writes = bed.operator_requests(mark).await?.writes();
        let writes = writes.only(|e| e.resource != "events" && e.subresource != "status" && e.resource != "secrets");
        ensure!(writes.is_empty(), "something else was written:\n{writes}");
        ensure_nothing_was_forbidden(bed, begin).await
    })
}

#[test]
fn inventory_lost_before_deletion_is_rebuilt_and_uninstalled() -> Result<()> {
    INSTALLED.run(async |bed| {
        copy(bed).await?;
        bed.kill_operator();
        let mark = bed.cluster.audit().mark().await?;
        bed.delete("v1", "Secret", NS, "vdo-state").await?;
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
        ensure!(bed.state().await? == Value::Null, "the inventory outlived its VDOConfig");
        ensure_nothing_was_forbidden(bed, mark).await?;
        delete_copy(bed).await
    })
}
