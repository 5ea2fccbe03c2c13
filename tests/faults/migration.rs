// SPDX-License-Identifier: Apache-2.0
//! An operator that takes over what its predecessor kept in a ConfigMap, killed at every write: the end is the same, and nothing is lost.

use crate::common::{NS, PATIENCE};
use crate::lab::{Lab, Scenario};
use crate::points::{MODES, Mode, Point};
use crate::shared::run;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use vdo_api::api::STATE;
use vdo_core::plan::{Inventory, Stored};
use vdo_testbed::{Act, Probe, until};

const FORMER: &str = "vdo-inventory";

/// The writes of a migration: the Secret, the ConfigMap that goes, the status.
const WRITES: usize = 3;

async fn stored(lab: &Lab) -> Result<Inventory> {
    let secret = lab.bed.state().await?;
    let stored = Stored {
        data: serde_json::from_value(secret["data"].clone())?,
        binary: serde_json::from_value(secret["binaryData"].clone()).unwrap_or_default(),
    };
    Ok(Inventory::parse("state", &stored)?)
}

/// What has to be there after it: of the history the revisions that run. The generation of the VDOConfig that a revision was last seen for is
/// written with the next change, so that of a driver that did not change may be an older one before.
fn kept(inventory: &Inventory) -> Inventory {
    let mut inventory = inventory.clone();
    for entry in inventory.objects.values_mut() {
        entry.applied = None;
    }
    for revisions in inventory.history.values_mut() {
        *revisions = revisions.pop().into_iter().collect();
        for revision in revisions {
            revision.about.generation = 0;
        }
    }
    inventory
}

/// Puts everything back as an operator before this one left it.
async fn put_back(lab: &Lab) -> Result<()> {
    let secret = lab.bed.state().await?;
    let map = json!({"labels": secret["metadata"]["labels"], "data": secret["data"], "binaryData": secret["binaryData"]});
    lab.bed.make_map(FORMER, map).await?;
    lab.bed
        .merge_status("vdo", json!({"status": {"inventory": {"name": FORMER}}}))
        .await?;
    lab.bed.delete("v1", "Secret", NS, STATE).await
}

async fn until_moved(lab: &Lab) -> Result<()> {
    until("the inventory to have moved", PATIENCE, async || {
        let map = lab.bed.get("v1", "ConfigMap", NS, FORMER).await?;
        let named = lab.bed.status().await?["inventory"]["name"].clone();
        Ok(Probe::when(
            map == Value::Null && named == STATE,
            json!([map["metadata"]["name"], named]),
        ))
    })
    .await
}

#[test]
fn crash_while_the_inventory_moves_into_its_secret_loses_nothing() -> Result<()> {
    run(true, true, async |lab, _| {
        lab.done(Scenario::Install).await?;
        lab.quiet().await?;
        let (before, owned) = (stored(lab).await?, lab.bed.owned().await?);
        for write in 1..=WRITES {
            for mode in MODES {
                lab.bed.kill_operator();
                put_back(lab).await?;
                lab.proxy.begin(Point { write, mode }.judge());
                let what = format!("write {write}, {mode:?}");
                lab.bed.operator = Some(lab.bed.launch_operator("vdo-operator-0")?);
                if mode != Mode::Lost {
                    lab.proxy.stopped(PATIENCE).await?;
                    lab.bed.kill_operator();
                    lab.proxy.resume();
                    lab.bed.start_operator().await?;
                }
                until_moved(lab).await?;
                lab.done(Scenario::Install).await?;
                lab.quiet().await?;
                let now = stored(lab).await?;
                ensure!(
                    kept(&now) == kept(&before),
                    "{what}: {now:?} instead of {before:?}\n{}",
                    lab.trail()
                );
                ensure!(lab.bed.owned().await? == owned, "{what}: what runs was changed\n{}", lab.trail());
                let handled = lab.proxy.handled();
                ensure!(handled.iter().any(|h| h.act != Act::Pass), "{what} was not reached");
            }
        }
        Ok(())
    })
}
