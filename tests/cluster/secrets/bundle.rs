// SPDX-License-Identifier: Apache-2.0
//! What other programs keep in objects of a cluster reaches neither a support bundle nor a report.

use super::vdoctl;
use crate::common::{Bed, NS};
use crate::fixture::INSTALLED;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::io::Read as _;

const PLANTED: &str = "huntertwo-correct-horse";
const CSI: &str = "vmware-system-csi";

fn planted() -> Vec<Value> {
    let p = PLANTED;
    let container = json!({
        "name": "c", "image": "registry.example.com/vsphere/x:1", "command": ["/bin/sh", "-c", format!("echo {p}")],
        "args": ["--v=4", "--password", p, format!("--unheard-of={p}"), format!("-p{p}")],
        "env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": p}, {"name": "ENCRYPTION_KEY", "value": p}, {"name": "DATABASE_URL", "value": format!("postgres://u:{p}@db/x")}],
    });
    let of_other =
        json!({"driver": "smb.csi.k8s.io", "volumeHandle": p, "volumeAttributes": {"source": format!("//h/{p}"), "password": p}});
    let workload = json!({"replicas": 0, "selector": {"matchLabels": {"app": "vsphere-planted"}}, "template": {
        "metadata": {"labels": {"app": "vsphere-planted"}, "annotations": {"vault.example.com/token": p}}, "spec": {"containers": [container]}}});
    vec![
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": workload,
            "metadata": {"name": "vsphere-planted", "namespace": "kube-system", "annotations": {"example.com/dsn": format!("u:{p}@tcp(db:1)/x")}}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vsphere-planted", "namespace": CSI},
            "data": {"app.yaml": format!("db:\n  password: |\n    {p}\n"), "nested": format!("{{\"clientSecret\":\"{p}\"}}")}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "planted", "namespace": NS, "annotations": {"example.com/plain": p}}, "stringData": {"key": p}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "planted"},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": of_other}}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "planted"}, "provisioner": "smb.csi.k8s.io", "parameters": {"password": p}}),
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "planted", "namespace": NS}, "type": "Warning", "reason": "Failed",
            "involvedObject": {"kind": "Pod", "namespace": NS, "name": "x"},
            "message": format!("run with --password {p}, DB_PASSWORD={p}, https://u:{p}@h/x?sig={p}, Authorization: Bearer {p}")}),
    ]
}

async fn remove(bed: &Bed) -> Result<()> {
    for object in planted() {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (version, kind) = (text("/apiVersion"), text("/kind"));
        bed.delete(&version, &kind, &text("/metadata/namespace"), &text("/metadata/name"))
            .await?;
    }
    Ok(())
}

#[test]
#[ignore = "long"]
fn bundle_and_report_hold_nothing_that_other_programs_keep_in_objects() -> Result<()> {
    INSTALLED.run(async |bed| {
        for object in planted() {
            bed.apply(&object).await?;
        }
        let change = json!({"metadata": {"annotations": {"example.com/join-token": PLANTED}}});
        bed.merge("v1", "Node", "", "w-1", change).await?;
        let file = bed.cluster.dir().join("planted.tar.gz");
        let name = file.display().to_string();
        vdoctl(bed, &["support-bundle", "--output", &name])?;
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(std::fs::File::open(&file)?).read_to_end(&mut unpacked)?;
        let live = vdoctl(bed, &["report", "--html", "-"])?;
        let from = vdoctl(bed, &["report", "--html", "-", "--from", &name])?;
        let status = vdoctl(bed, &["status", "--from", &name])?;
        std::fs::remove_file(&file)?;
        remove(bed).await?;
        bed.merge(
            "v1",
            "Node",
            "",
            "w-1",
            json!({"metadata": {"annotations": {"example.com/join-token": null}}}),
        )
        .await?;
        for (place, bytes) in [
            ("bundle", &unpacked),
            ("report", &live),
            ("report of a bundle", &from),
            ("status of a bundle", &status),
        ] {
            let text = String::from_utf8_lossy(bytes);
            let found: Vec<&str> = text.lines().filter(|line| line.contains("huntertwo")).collect();
            ensure!(found.is_empty(), "{place}:\n{}", found.join("\n"));
        }
        // What helps is there.
        let text = String::from_utf8_lossy(&unpacked);
        for part in [
            "--fss-name=internal-feature-states.csi.vsphere.vmware.com",
            "vsphere-planted",
            "csi.vsphere.vmware.com",
            "\"readyReplicas\"",
            "vdo.vmware.com/config-checksum",
            "AWS_SECRET_ACCESS_KEY",
        ] {
            ensure!(text.contains(part), "{part} is not in the bundle");
        }
        ensure!(
            String::from_utf8_lossy(&status).contains("vsphere-csi") || String::from_utf8_lossy(&status).contains("CSI"),
            "no status"
        );
        Ok(())
    })
}
