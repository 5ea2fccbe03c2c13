// SPDX-License-Identifier: Apache-2.0
//! What people see of installed drivers: status, columns, metrics, vdoctl.

use super::until_at_rest;
use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::INSTALLED;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::process::Command;
use vdo_testbed::{Binaries, Part, Probe, until};

#[test]
fn status_of_installed_drivers_is_healthy_in_every_condition() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        for (kind, status) in [
            ("Ready", "True"),
            ("Reconciling", "False"),
            ("Stalled", "False"),
            ("CloudProviderReady", "True"),
            ("StorageReady", "True"),
            ("ConnectionsReady", "True"),
            ("NodesInitialized", "True"),
        ] {
            let found = condition(&config, kind);
            assert_eq!(found["status"], status, "{kind}: {found}");
            assert_eq!(found["observedGeneration"], config["metadata"]["generation"], "{found}");
        }
        assert_eq!(config["status"]["health"], "Healthy");
        assert_eq!(config["status"]["nodes"], json!({"total": 4, "initialized": 4, "csiRegistered": 4}));
        Ok(())
    })
}

#[test]
fn status_of_connection_shows_credential_and_machines() -> Result<()> {
    INSTALLED.run(async |bed| {
        let connection = until("the connection to have found 4 machines", PATIENCE, async || {
            let connection = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
            let machines = &connection["status"]["machines"];
            Ok(if machines["found"] == 4 {
                Probe::Ready(connection)
            } else {
                Probe::not_yet(machines)
            })
        })
        .await?;
        for kind in ["Authenticated", "DatacentersFound", "NodesFound"] {
            let found = condition(&connection, kind);
            assert_eq!(found["status"], "True", "{kind}: {found}");
        }
        let credential = &connection["status"]["credential"];
        assert_eq!(credential["verified"], credential["version"], "{credential}");
        Ok(())
    })
}

#[test]
fn kubectl_get_shows_versions_health_and_short_names() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let columns = kubectl(bed, &["get", "vdoconfig,vsphereconnection", "-n", NS])?;
        println!("{columns}");
        for word in [
            "READY",
            "HEALTH",
            "CPI",
            "CSI",
            "1.34.0",
            "3.8.0",
            "Healthy",
            "ADDRESS",
            "8.0.3",
            "administrator@vsphere.local",
        ] {
            assert!(columns.contains(word), "{word} is not in:\n{columns}");
        }
        let wide = kubectl(bed, &["get", "vdoconfig", "-n", NS, "-o", "wide"])?;
        println!("{wide}");
        for word in ["CPI RUNNING", "CSI RUNNING", "NEXT RETRY", "UPGRADEABLE", "MATRIX", "REASON"] {
            assert!(wide.contains(word), "{word} is not in:\n{wide}");
        }
        assert_eq!(wide.matches("3.8.0").count(), 2, "wanted and running:\n{wide}");
        for alias in ["vsc", "vsphereconnections", "vsphere"] {
            assert!(kubectl(bed, &["get", alias, "-n", NS])?.contains("vc1"), "kubectl get {alias}");
        }
        assert!(kubectl(bed, &["get", "vdo", "-n", NS])?.contains("HEALTH"), "kubectl get vdo");
        Ok(())
    })
}

fn kubectl(bed: &Bed, args: &[&str]) -> Result<String> {
    let output = Command::new(Binaries::ensure(&[Part::Kubectl])?.path(Part::Kubectl))
        .arg("--kubeconfig")
        .arg(bed.cluster.kubeconfig())
        .args(args)
        .output()?;
    ensure!(
        output.status.success(),
        "kubectl {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn metrics_and_probes_show_driver_and_connection() -> Result<()> {
    INSTALLED.run(async |bed| {
        let lines = [
            "vdo_driver_info{driver=\"vsphere-cpi\",version=\"1.34.0\"} 1",
            "vdo_connection_up{connection=\"vc1\"} 1",
        ];
        // A process that was started for this test has to look first.
        until("the metrics of driver and connection", PATIENCE, async || {
            let metrics = bed.fetch("/metrics").await?;
            Ok(Probe::when(lines.iter().all(|line| metrics.contains(line)), metrics))
        })
        .await?;
        assert!(bed.fetch("/readyz").await?.starts_with("HTTP/1.1 200"));
        assert!(bed.fetch("/healthz").await?.starts_with("HTTP/1.1 200"));
        Ok(())
    })
}

#[test]
fn vdoctl_status_shows_cluster_vcenter_and_drivers() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let (code, status, _) = bed.vdoctl(&["status"])?;
        println!("{status}");
        assert_eq!(code, 0, "{status}");
        for word in [
            "v1.34.4",
            "4 nodes",
            "8.0.3 build 24022515",
            "administrator@vsphere.local",
            "CPI",
            "1.34.0",
            "CSI",
            "3.8.0",
            "healthy",
        ] {
            assert!(status.contains(word), "{word} is not in:\n{status}");
        }
        let (code, json, _) = bed.vdoctl(&["status", "-o", "json"])?;
        assert_eq!(
            (code, serde_json::from_str::<Value>(&json)?["apiVersion"].as_str()),
            (0, Some("vdoctl/v1"))
        );
        Ok(())
    })
}

#[test]
fn vdoctl_matrix_resolve_chooses_what_is_installed() -> Result<()> {
    INSTALLED.run(async |bed| {
        let (code, chosen, _) = bed.vdoctl(&["matrix", "resolve"])?;
        assert_eq!(code, 0, "{chosen}");
        assert!(chosen.contains("1.34.0") && chosen.contains("3.8.0"), "{chosen}");
        Ok(())
    })
}

#[test]
fn vdoctl_render_gives_installed_objects_and_masks_secrets() -> Result<()> {
    use base64::Engine as _;
    INSTALLED.run(async |bed| {
        let (code, rendered, _) = bed.vdoctl(&["render"])?;
        assert_eq!(code, 0);
        let count = vdo_api::yaml::load_all(&rendered)?.len();
        // What an earlier test labelled as ours may still be on its way out.
        until("as many objects as are rendered", PATIENCE, async || {
            let owned = bed.owned().await?.len();
            Ok(Probe::when(owned == count, format!("{owned} instead of {count}")))
        })
        .await?;
        let password = base64::engine::general_purpose::STANDARD.encode(bed.vcenter.password());
        assert!(!rendered.contains(&password) && rendered.contains("******"), "secrets are masked");
        assert!(bed.vdoctl(&["render", "--show-secrets"])?.1.contains(&password), "unless asked for");
        Ok(())
    })
}

#[test]
fn vdoctl_diff_is_empty_at_rest_and_names_drift() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let (code, out, err) = bed.vdoctl(&["diff"])?;
        assert_eq!(code, 0, "{out}{err}");
        bed.kill_operator();
        let (ns, map) = ("vmware-system-csi", "internal-feature-states.csi.vsphere.vmware.com");
        bed.merge("v1", "ConfigMap", ns, map, json!({"data": {"trigger-csi-fullsync": "true"}}))
            .await?;
        let (code, out, _) = bed.vdoctl(&["diff"])?;
        println!("{out}");
        assert_eq!(code, 1, "{out}");
        assert!(
            out.contains(map) && out.contains("trigger-csi-fullsync") && out.contains("true") && out.contains("false"),
            "{out}"
        );
        bed.start_operator().await?;
        until("the edit to be undone", PATIENCE, async || {
            let found = bed.get("v1", "ConfigMap", ns, map).await?;
            Ok(Probe::when(found["data"]["trigger-csi-fullsync"] == "false", &found["data"]))
        })
        .await
    })
}
