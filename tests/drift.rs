//! Changes by others on a real control plane: brought back, with the name of who did it, and not for ever.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod bed;

use anyhow::{Result, ensure};
use bed::{Bed, NS, OPERATOR, PATIENCE, condition};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const CSI_NS: &str = "vmware-system-csi";
const FEATURES: &str = "internal-feature-states.csi.vsphere.vmware.com";

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_brought_back_and_blamed_and_a_fight_ends() -> Result<()> {
    bed::prepare();
    let mut bed = Bed::start().await?;
    bed.start_operator().await?;
    bed.apply_samples().await?;
    bed.until_ready().await?;
    an_edit_is_blamed(&bed).await?;
    a_deletion_is_reported(&bed).await?;
    a_secret_is_masked(&bed).await?;
    a_fight_stops(&bed).await
}

/// An edit as kubectl makes it: under a name of its own.
async fn edit(bed: &Bed, manager: &str, kind: &str, namespace: &str, name: &str, change: &Value) -> Result<()> {
    let params = PatchParams {
        field_manager: Some(manager.into()),
        ..PatchParams::default()
    };
    bed.api("v1", kind, namespace).patch(name, &params, &Patch::Merge(change)).await?;
    Ok(())
}

/// Waits until the status has an entry for the object.
async fn reported(bed: &Bed, object: &str) -> Result<Value> {
    until(&format!("status.drift to speak of {object}"), PATIENCE, async || {
        let drift = bed.status().await?["drift"].clone();
        let found = drift
            .as_array()
            .and_then(|all| all.iter().rev().find(|d| d["object"] == object))
            .cloned();
        Ok(found.map_or_else(|| Probe::not_yet(drift), Probe::Ready))
    })
    .await
}

async fn event(bed: &Bed, words: &[&str]) -> Result<()> {
    until(&format!("an event with the words {words:?}"), PATIENCE, async || {
        let events = bed.list("events.k8s.io/v1", "Event", "").await?;
        let notes: Vec<String> = events
            .iter()
            .filter(|e| e["reason"] == "DriftRepaired")
            .map(|e| e["note"].to_string())
            .collect();
        let found = notes.iter().any(|note| words.iter().all(|word| note.contains(word)));
        Ok(Probe::when(found, notes.join("\n")))
    })
    .await
}

/// Path, wanted, found, who and when, in the status, an event and the log.
async fn an_edit_is_blamed(bed: &Bed) -> Result<()> {
    let mark = bed.cluster.audit().mark().await?;
    edit(
        bed,
        "kubectl-edit",
        "ConfigMap",
        CSI_NS,
        FEATURES,
        &json!({"data": {"trigger-csi-fullsync": "true"}}),
    )
    .await?;
    let found = reported(bed, &format!("ConfigMap {CSI_NS}/{FEATURES}")).await?;
    assert_eq!(found["path"], "data.trigger-csi-fullsync");
    assert_eq!((&found["wanted"], &found["found"]), (&json!("\"false\""), &json!("\"true\"")));
    assert_eq!(found["by"], "kubectl-edit");
    ensure!(found["changed"].is_string() && found["repaired"].is_string(), "{found}");
    event(bed, &[FEATURES, "data.trigger-csi-fullsync", "kubectl-edit"]).await?;
    let log = std::fs::read_to_string(bed.operator_log())?;
    ensure!(
        log.lines()
            .any(|line| line.contains("DriftRepaired") && line.contains("kubectl-edit")),
        "the log does not name who did it"
    );
    let live = bed.get("v1", "ConfigMap", CSI_NS, FEATURES).await?;
    assert_eq!(live["data"]["trigger-csi-fullsync"], "false");
    let writes = bed
        .operator_requests(mark)
        .await?
        .writes()
        .only(|e| e.subresource != "status" && e.resource != "events");
    ensure!(writes.len() == 1, "one drift led to other than one write:\n{writes}");
    Ok(())
}

async fn a_deletion_is_reported(bed: &Bed) -> Result<()> {
    bed.delete("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
    let found = reported(bed, &format!("Service {CSI_NS}/vsphere-csi-controller")).await?;
    assert_eq!((&found["path"], &found["by"]), (&Value::Null, &Value::Null));
    event(bed, &["vsphere-csi-controller was deleted"]).await?;
    ensure!(
        bed.get("v1", "Service", CSI_NS, "vsphere-csi-controller").await? != Value::Null,
        "it is not back"
    );
    Ok(())
}

async fn a_secret_is_masked(bed: &Bed) -> Result<()> {
    let name = "vsphere-config-secret";
    let change = json!({"data": {"csi-vsphere.conf": "aHVudGVyMg=="}});
    edit(bed, "somebody", "Secret", CSI_NS, name, &change).await?;
    let found = reported(bed, &format!("Secret {CSI_NS}/{name}")).await?;
    assert_eq!(
        (&found["wanted"], &found["found"], &found["by"]),
        (&json!("******"), &json!("******"), &json!("somebody"))
    );
    Ok(())
}

/// Another controller that wants another value: three rounds, then it is named and left alone, and the rest is kept.
async fn a_fight_stops(bed: &Bed) -> Result<()> {
    let mark = bed.cluster.audit().mark().await?;
    let change = json!({"data": {"pv-to-backingdiskobjectid-mapping": "tuned"}});
    let fought = until("the fight to be called one", PATIENCE, async || {
        edit(bed, "tuner", "ConfigMap", CSI_NS, FEATURES, &change).await?;
        let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        let ready = condition(&config, "Ready");
        Ok(if ready["reason"] == "DriftFight" {
            Probe::Ready(ready)
        } else {
            Probe::not_yet(ready)
        })
    })
    .await?;
    let message = fought["message"].to_string();
    for word in ["tuner", "data.pv-to-backingdiskobjectid-mapping", FEATURES, "until"] {
        ensure!(message.contains(word), "{word} is not in {message}");
    }
    // Forced to look again, it leaves the field alone, and repairs another object.
    let again = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": "now"}}});
    bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", again).await?;
    bed.delete("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
    until("another object to be brought back", PATIENCE, async || {
        let found = bed.get("v1", "Service", CSI_NS, "vsphere-csi-controller").await?;
        Ok(Probe::when(found != Value::Null, "not there"))
    })
    .await?;
    let live = bed.get("v1", "ConfigMap", CSI_NS, FEATURES).await?;
    assert_eq!(live["data"]["pv-to-backingdiskobjectid-mapping"], "tuned");
    let rounds = bed
        .cluster
        .audit()
        .since(mark)
        .await?
        .of(OPERATOR)
        .only(|e| e.name == FEATURES && e.writes());
    println!("a fight was left after {} rounds: {message}", rounds.len());
    ensure!(rounds.len() == 3, "it was fought for other than 3 rounds:\n{rounds}");
    Ok(())
}
