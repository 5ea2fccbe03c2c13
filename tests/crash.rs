//! The operator killed with SIGKILL in the middle of an installation and of a removal: the next run goes on, and the end is
//! the same as without the kill.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod bed;

use anyhow::{Result, ensure};
use bed::{Bed, NS, OPERATOR, PATIENCE, name};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use vdo_testbed::{AuditLog, Mark, Probe, until};

/// After how many writes of the operator it is killed: the inventory is recorded, the first objects exist, half of them,
/// all rights, the cloud provider runs, the last workload.
const POINTS: [usize; 6] = [1, 3, 9, 16, 21, 24];

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_point_it_ends_in_the_same_state() -> Result<()> {
    bed::prepare();
    let mut bed = Bed::start().await?;
    bed.start_operator().await?;
    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    bed.apply(&bed.connection("vc1")).await?;
    bed.apply(&bed.config(json!({}))).await?;
    bed.until_ready().await?;
    let reference = state(&bed).await?;

    for point in POINTS {
        bed.uninstall().await?;
        ensure!(bed.owned().await?.is_empty(), "the removal left something");
        bed.renew_nodes().await?;
        let audit = bed.cluster.audit();
        let mark = audit.mark().await?;
        bed.apply(&bed.config(json!({}))).await?;
        let killed_after = kill_after(&mut bed, &audit, mark, point).await?;
        bed.start_operator().await?;
        bed.until_ready().await?;
        let found = state(&bed).await?;
        same(&reference, &found)?;
        let created = audit
            .since(mark)
            .await?
            .of(OPERATOR)
            .only(|e| e.code == 201 && !matches!(e.resource.as_str(), "events" | "leases"))
            .counts();
        let twice: Vec<_> = created.iter().filter(|(_, count)| **count > 1).collect();
        ensure!(twice.is_empty(), "created twice: {twice:?}");
        println!(
            "killed after {killed_after} writes (asked for {point}): same end state, {} objects created once each",
            created.len()
        );
    }

    // And on the way back.
    let audit = bed.cluster.audit();
    let mark = audit.mark().await?;
    bed.delete("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
    let killed_after = kill_after(&mut bed, &audit, mark, 5).await?;
    bed.start_operator().await?;
    bed.uninstall().await?;
    ensure!(bed.owned().await?.is_empty(), "the interrupted removal left something");
    println!("killed after {killed_after} writes of a removal: nothing is left");
    orphans(&bed, &reference).await
}

/// With deletionPolicy Orphan the drivers stay, and the next VDOConfig takes them over as they are.
async fn orphans(bed: &Bed, reference: &BTreeMap<String, Value>) -> Result<()> {
    bed.apply(&bed.config(json!({"deletionPolicy": "Orphan"}))).await?;
    bed.until_ready().await?;
    let pods = |pods: Vec<Value>| {
        pods.iter()
            .map(|p| p["metadata"]["uid"].to_string())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let before = pods(bed.list("v1", "Pod", "role=vsphere-csi").await?);
    ensure!(!before.is_empty(), "no pods of the CSI driver");
    bed.uninstall().await?;
    bed.apply(&bed.config(json!({}))).await?;
    bed.until_ready().await?;
    same(reference, &state(bed).await?)?;
    ensure!(
        pods(bed.list("v1", "Pod", "role=vsphere-csi").await?) == before,
        "pods were replaced"
    );
    Ok(())
}

/// Kills the operator as soon as the audit log shows that many writes to objects since the mark.
async fn kill_after(bed: &mut Bed, audit: &AuditLog, mark: Mark, writes: usize) -> Result<usize> {
    let end = Instant::now() + PATIENCE;
    loop {
        let seen = audit
            .so_far(mark)?
            .of(OPERATOR)
            .writes()
            .only(|e| e.subresource.is_empty() && !matches!(e.resource.as_str(), "events" | "leases"))
            .len();
        if seen >= writes {
            bed.kill_operator();
            return Ok(seen);
        }
        ensure!(Instant::now() < end, "gave up waiting for {writes} writes; there were {seen}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Everything owned, and the inventory without UIDs.
async fn state(bed: &Bed) -> Result<BTreeMap<String, Value>> {
    // The last write of an installation narrows the inventory, after the status says Ready or just before.
    let inventory = until("the inventory to hold the UIDs", PATIENCE, async || {
        let map = bed.get("v1", "ConfigMap", NS, "vdo-inventory").await?;
        let objects: Vec<Value> = serde_json::from_str(map["data"]["objects"].as_str().unwrap_or("[]"))?;
        let complete = !objects.is_empty() && objects.iter().all(|o| o["uid"].is_string());
        Ok(if complete {
            Probe::Ready((objects, map["data"]["clusterId"].clone()))
        } else {
            Probe::not_yet("some have none")
        })
    })
    .await?;
    let (mut objects, cluster_id) = inventory;
    for object in &mut objects {
        object.as_object_mut().expect("a line").shift_remove("uid");
    }
    let mut all: BTreeMap<String, Value> = bed.owned().await?.into_iter().map(|o| (name(&o), o)).collect();
    all.insert("inventory".into(), json!(objects));
    all.insert("cluster id".into(), cluster_id);
    Ok(all)
}

fn same(reference: &BTreeMap<String, Value>, found: &BTreeMap<String, Value>) -> Result<()> {
    let keys = |m: &BTreeMap<String, Value>| m.keys().cloned().collect::<Vec<_>>();
    ensure!(
        keys(reference) == keys(found),
        "other objects: {:?} instead of {:?}",
        keys(found),
        keys(reference)
    );
    for (key, wanted) in reference {
        ensure!(found[key] == *wanted, "{key} differs:\n{}\n{wanted}", found[key]);
    }
    Ok(())
}
