//! Who keeps a field that somebody else sets.

use crate::bed::{Bed, PATIENCE};
use anyhow::{Result, ensure};
use serde_json::json;
use vdo_testbed::{Probe, until};

/// Own, yield, fail: by path, as the specification says.
pub async fn who_keeps_a_field(bed: &Bed) -> Result<()> {
    let (ns, controller, map) = (
        "vmware-system-csi",
        "vsphere-csi-controller",
        "internal-feature-states.csi.vsphere.vmware.com",
    );
    bed.apply(&bed.config(json!({"conflicts": [
        {"kind": "Deployment", "name": controller, "path": "spec.replicas", "policy": "Yield"},
        {"kind": "ConfigMap", "path": "data.trigger-csi-fullsync", "policy": "Fail"},
    ]})))
    .await?;
    bed.until_ready().await?;
    // Somebody scales, and somebody else changes what nobody may: only that comes back.
    bed.merge("apps/v1", "Deployment", ns, controller, json!({"spec": {"replicas": 2}}))
        .await?;
    bed.merge("apps/v1", "Deployment", ns, controller, json!({"spec": {"revisionHistoryLimit": 3, "minReadySeconds": 0, "template": {"spec": {"priorityClassName": "system-node-critical"}}}}))
        .await?;
    until("the drift beside the yielded field to be repaired", PATIENCE, async || {
        let spec = bed.get("apps/v1", "Deployment", ns, controller).await?["spec"].clone();
        let found = &spec["template"]["spec"]["priorityClassName"];
        Ok(Probe::when(found == "system-cluster-critical", found))
    })
    .await?;
    assert_eq!(bed.get("apps/v1", "Deployment", ns, controller).await?["spec"]["replicas"], 2);
    // What fails is named with its manager and the time.
    bed.merge("v1", "ConfigMap", ns, map, json!({"data": {"trigger-csi-fullsync": "true"}}))
        .await?;
    let found = bed.until_reason("Ready", "Conflict").await?;
    let message = found["message"].as_str().unwrap_or_default();
    println!("Conflict           {message}");
    let time = message.contains(", 20");
    ensure!(
        message.contains(map) && message.contains(".data.trigger-csi-fullsync (") && time,
        "{message}"
    );
    assert_eq!(bed.get("v1", "ConfigMap", ns, map).await?["data"]["trigger-csi-fullsync"], "true");
    // Without the rules everything is taken back.
    bed.apply(&bed.config(json!({}))).await?;
    until("everything to be taken back", PATIENCE, async || {
        let replicas = bed.get("apps/v1", "Deployment", ns, controller).await?["spec"]["replicas"].clone();
        let state = bed.get("v1", "ConfigMap", ns, map).await?["data"]["trigger-csi-fullsync"].clone();
        Ok(Probe::when(
            replicas == 1 && state == "false",
            format!("{replicas} replicas, {state}"),
        ))
    })
    .await?;
    bed.until_ready().await?;
    Ok(())
}
