// SPDX-License-Identifier: Apache-2.0
//! Who keeps a field that another manager sets: own, yield or fail by path, as the specification says.

use crate::common::PATIENCE;
use crate::fixture::INSTALLED;
use anyhow::{Result, ensure};
use serde_json::json;
use vdo_testbed::{Probe, until};

const NS: &str = "vmware-system-csi";
const CONTROLLER: &str = "vsphere-csi-controller";
const FEATURES: &str = "internal-feature-states.csi.vsphere.vmware.com";

#[test]
#[ignore = "long"]
fn conflict_policy_yield_leaves_the_field_until_the_rule_is_gone() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.apply(&bed.config(json!({"conflicts": [
            {"kind": "Deployment", "name": CONTROLLER, "path": "spec.replicas", "policy": "Yield"},
        ]})))
        .await?;
        bed.until_ready().await?;
        // One manager scales, and another one changes what belongs to the operator: only that comes back.
        bed.merge("apps/v1", "Deployment", NS, CONTROLLER, json!({"spec": {"replicas": 2}}))
            .await?;
        bed.merge("apps/v1", "Deployment", NS, CONTROLLER, json!({"spec": {"revisionHistoryLimit": 3, "minReadySeconds": 0, "template": {"spec": {"priorityClassName": "system-node-critical"}}}}))
            .await?;
        until("the drift beside the yielded field to be repaired", PATIENCE, async || {
            let spec = bed.get("apps/v1", "Deployment", NS, CONTROLLER).await?["spec"].clone();
            let found = &spec["template"]["spec"]["priorityClassName"];
            Ok(Probe::when(found == "system-cluster-critical", found))
        })
        .await?;
        assert_eq!(bed.get("apps/v1", "Deployment", NS, CONTROLLER).await?["spec"]["replicas"], 2);
        // Without the rule the field is taken back.
        bed.apply(&bed.config(json!({}))).await?;
        until("the yielded field to be taken back", PATIENCE, async || {
            let replicas = bed.get("apps/v1", "Deployment", NS, CONTROLLER).await?["spec"]["replicas"].clone();
            Ok(Probe::when(replicas == 1, format!("{replicas} replicas")))
        })
        .await?;
        bed.until_ready().await.map(|_| ())
    })
}

#[test]
#[ignore = "long"]
fn conflict_policy_fail_names_manager_and_time_until_the_rule_is_gone() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.apply(&bed.config(json!({"conflicts": [
            {"kind": "ConfigMap", "path": "data.high-pv-node-density", "policy": "Fail"},
        ]})))
        .await?;
        bed.until_ready().await?;
        bed.merge("v1", "ConfigMap", NS, FEATURES, json!({"data": {"high-pv-node-density": "true"}}))
            .await?;
        let found = bed.until_reason("Ready", "Conflict").await?;
        let message = found["message"].as_str().unwrap_or_default();
        println!("Conflict           {message}");
        let time = message.contains(", 20");
        ensure!(
            message.contains(FEATURES) && message.contains(".data.high-pv-node-density (") && time,
            "{message}"
        );
        assert_eq!(
            bed.get("v1", "ConfigMap", NS, FEATURES).await?["data"]["high-pv-node-density"],
            "true"
        );
        // Without the rule the field is taken back.
        bed.apply(&bed.config(json!({}))).await?;
        until("the field to be taken back", PATIENCE, async || {
            let state = bed.get("v1", "ConfigMap", NS, FEATURES).await?["data"]["high-pv-node-density"].clone();
            Ok(Probe::when(state == "false", &state))
        })
        .await?;
        bed.until_ready().await.map(|_| ())
    })
}
