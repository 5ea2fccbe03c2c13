//! What people see of it: columns, status, vdoctl, kubectl.

use crate::bed::{Bed, NS, condition};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::process::Command;
use vdo_testbed::{Binaries, Part};

/// Conditions, columns, events, metrics.
pub async fn what_is_shown(bed: &Bed) -> Result<()> {
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
    let connection = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
    for kind in ["Authenticated", "DatacentersFound", "NodesFound"] {
        let found = condition(&connection, kind);
        assert_eq!(found["status"], "True", "{kind}: {found}");
    }
    let credential = &connection["status"]["credential"];
    assert_eq!(credential["verified"], credential["version"], "{credential}");
    assert_eq!(connection["status"]["machines"]["found"], 4, "{}", connection["status"]["machines"]);
    assert_eq!(config["status"]["nodes"], json!({"total": 4, "initialized": 4, "csiRegistered": 4}));
    let columns = kubectl(bed, &["get", "vdoconfig,vsphereconnection", "-n", NS])?;
    println!("{columns}");
    for word in [
        "READY",
        "HEALTH",
        "CPI",
        "CSI",
        "1.34.0",
        "3.7.3",
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
    assert_eq!(wide.matches("3.7.3").count(), 2, "wanted and running:\n{wide}");
    for alias in ["vsc", "vsphereconnections", "vsphere"] {
        assert!(kubectl(bed, &["get", alias, "-n", NS])?.contains("vc1"), "kubectl get {alias}");
    }
    let events = bed.list("events.k8s.io/v1", "Event", "").await?;
    let ready: Vec<&Value> = events
        .iter()
        .filter(|e| e["regarding"]["kind"] == "VDOConfig" && e["reason"] == "Healthy")
        .collect();
    assert_eq!(ready.len(), 1, "one event for one transition: {ready:?}");
    let metrics = bed.fetch("/metrics").await?;
    for line in [
        "vdo_driver_info{driver=\"vsphere-cpi\",version=\"1.34.0\"} 1",
        "vdo_connection_up{connection=\"vc1\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in:\n{metrics}");
    }
    assert!(bed.fetch("/readyz").await?.starts_with("HTTP/1.1 200"));
    assert!(bed.fetch("/healthz").await?.starts_with("HTTP/1.1 200"));
    Ok(())
}

pub fn kubectl(bed: &Bed, args: &[&str]) -> Result<String> {
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

pub async fn people_see_the_same(bed: &mut Bed) -> Result<()> {
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
        "3.7.3",
        "healthy",
    ] {
        assert!(status.contains(word), "{word} is not in:\n{status}");
    }
    let (code, json, _) = bed.vdoctl(&["status", "-o", "json"])?;
    assert_eq!(
        (code, serde_json::from_str::<Value>(&json)?["apiVersion"].as_str()),
        (0, Some("vdoctl/v1"))
    );
    let (code, chosen, _) = bed.vdoctl(&["matrix", "resolve"])?;
    assert_eq!(code, 0, "{chosen}");
    assert!(chosen.contains("1.34.0") && chosen.contains("3.7.3"), "{chosen}");

    let (code, rendered, _) = bed.vdoctl(&["render"])?;
    assert_eq!(code, 0);
    assert_eq!(
        vdo::yaml::load_all(&rendered)?.len(),
        bed.owned().await?.len(),
        "as many objects as there are"
    );
    use base64::Engine as _;
    let password = base64::engine::general_purpose::STANDARD.encode(bed.vcenter.password());
    assert!(!rendered.contains(&password) && rendered.contains("******"), "secrets are masked");
    assert!(bed.vdoctl(&["render", "--show-secrets"])?.1.contains(&password), "unless asked for");

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
    bed.start_operator().await
}
