// SPDX-License-Identifier: Apache-2.0
//! What becomes of changes: of a Secret, of a version, of the management.

use super::secrets::ensure_secrets_are_watched_by_name;
use super::{ensure_nothing_was_forbidden, until_at_rest};
use crate::common::{Bed, NEXT_PASSWORD, PATIENCE, name};
use crate::fixture::{INSTALLED, written};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vdo_testbed::{Probe, until};

async fn template(bed: &Bed, kind: &str, namespace: &str, object: &str) -> Result<String> {
    let found = bed.get("apps/v1", kind, namespace, object).await?;
    Ok(found["spec"]["template"].to_string())
}

#[test]
#[ignore = "long"]
fn secret_change_rolls_its_consumers_and_no_others() -> Result<()> {
    INSTALLED.run(async |bed| {
        let consumers = [
            ("DaemonSet", "kube-system", "vsphere-cloud-controller-manager"),
            ("Deployment", "vmware-system-csi", "vsphere-csi-controller"),
        ];
        let others = [
            ("DaemonSet", "vmware-system-csi", "vsphere-csi-node"),
            ("DaemonSet", "vmware-system-csi", "vsphere-csi-node-windows"),
        ];
        until_at_rest(bed).await?;
        let mut before = BTreeMap::new();
        for (kind, ns, object) in consumers.iter().chain(&others) {
            before.insert(*object, template(bed, kind, ns, object).await?);
        }
        bed.apply(&bed.secret(NEXT_PASSWORD)).await?;
        for (kind, ns, object) in &consumers {
            until(&format!("{object} to roll"), PATIENCE, async || {
                let now = template(bed, kind, ns, object).await?;
                Ok(Probe::when(now != before[object], "its pod template is as it was"))
            })
            .await?;
        }
        for (kind, ns, object) in &others {
            assert_eq!(
                template(bed, kind, ns, object).await?,
                before[object],
                "{object} does not read the configuration and must not roll"
            );
        }
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        for (kind, ns, object) in &consumers {
            until(&format!("{object} to return"), PATIENCE, async || {
                let now = template(bed, kind, ns, object).await?;
                Ok(Probe::when(now == before[object], "its pod template is another"))
            })
            .await?;
        }
        bed.until_ready().await?;
        Ok(())
    })
}

/// A pin changes the version; what the new state no longer has is removed, after it is proven. Then the update policies.
#[test]
fn version_pin_replaces_and_prunes_and_policy_decides_without_it() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"version": "3.6.3", "windows": false}})))
            .await?;
        let config = bed.until_ready().await?;
        assert_eq!(
            config["status"]["drivers"][1]["version"], "3.6.3",
            "{}",
            config["status"]["drivers"]
        );
        assert_eq!(
            bed.get("apps/v1", "DaemonSet", "vmware-system-csi", "vsphere-csi-node-windows")
                .await?,
            Value::Null,
            "it is no longer asked for"
        );
        let image = template(bed, "Deployment", "vmware-system-csi", "vsphere-csi-controller").await?;
        assert!(image.contains("driver:v3.6.3"), "{image}");
        until("an event to name both versions", PATIENCE, async || {
            let mut reported = bed.list("events.k8s.io/v1", "Event", "").await?;
            reported.retain(|event| event["reason"] == "VersionChanged" && event["regarding"]["uid"] == config["metadata"]["uid"]);
            let said = reported
                .iter()
                .any(|event| event["note"] == "CSI 3.8.0 was replaced by CSI 3.6.3, which is healthy");
            Ok(Probe::when(said, format!("{reported:?}")))
        })
        .await?;

        // Policy Compatible: without the pin what runs stays, because it still fits.
        bed.apply(&bed.config(json!({"cloudProvider": {}, "storageProvider": {"windows": false}})))
            .await?;
        let config = bed.until_ready().await?;
        assert_eq!(config["status"]["drivers"][1]["version"], "3.6.3");
        assert_eq!(config["status"]["drivers"][1]["available"], "3.8.0");
        // Policy Latest moves on.
        bed.apply(&bed.config(json!({"updatePolicy": "Latest", "cloudProvider": {}, "storageProvider": {}})))
            .await?;
        let config = bed.until_ready().await?;
        assert_eq!(config["status"]["drivers"][1]["version"], "3.8.0");
        Ok(())
    })
}

#[test]
fn management_state_paused_reports_writes_and_makes_none() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.apply(&bed.config(json!({"managementState": "Paused", "cloudProvider": {}, "storageProvider": {"version": "3.6.3"}})))
            .await?;
        let found = bed.until_reason("Ready", "Paused").await?;
        assert!(found["message"].to_string().contains("changes would be made"), "{found}");
        let written = written(bed, mark).await?;
        ensure!(written.is_empty(), "while paused the operator wrote:\n{written}");
        bed.apply(&bed.config(json!({}))).await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// Removed: the drivers go and the object stays. Managed: all is back.
#[test]
#[ignore = "long"]
fn management_state_removed_uninstalls_and_managed_installs() -> Result<()> {
    INSTALLED.run(async |bed| {
        let mark = bed.cluster.audit().mark().await?;
        bed.apply(&bed.config(json!({"managementState": "Removed"}))).await?;
        bed.until_reason("Ready", "Removed").await?;
        let left: Vec<String> = bed.owned().await?.iter().map(name).collect();
        ensure!(left.is_empty(), "left behind: {left:?}");
        assert_eq!(bed.status().await?["drivers"], Value::Null);

        bed.apply(&bed.config(json!({}))).await?;
        bed.until_ready().await?;
        ensure_secrets_are_watched_by_name(bed, mark).await?;
        ensure_nothing_was_forbidden(bed, mark).await
    })
}
