// SPDX-License-Identifier: Apache-2.0
//! Values that ConfigMaps and Secrets bring.

use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::INSTALLED;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, until};

const CSI: &str = "vmware-system-csi";
const VDO: &str = "vdo.vmware.com/v1alpha1";

fn source(kind: &str, name: &str, text: &str) -> Value {
    let field = if kind == "Secret" { "stringData" } else { "data" };
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": NS}, field: {"values.yaml": text}})
}

async fn controller(bed: &Bed) -> Result<Value> {
    bed.get("apps/v1", "Deployment", CSI, "vsphere-csi-controller").await
}

async fn until_level(bed: &Bed, level: &str) -> Result<()> {
    until(&format!("the controller to log at level {level}"), PATIENCE, async || {
        let found = controller(bed).await?;
        Ok(Probe::when(found.to_string().contains(level), &found["spec"]["template"]))
    })
    .await
}

/// A change is followed at once, the specification has precedence, and what vanishes changes nothing.
#[test]
#[ignore = "long"]
fn values_from_objects_are_followed_and_their_loss_changes_nothing() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.apply(&source(
            "ConfigMap",
            "more",
            "logLevel: DEVELOPMENT\nproxy: {http: \"http://a.example:1\", https: \"http://a.example:1\"}\n",
        ))
        .await?;
        bed.apply(&source("Secret", "most", "proxy: {http: \"http://b.example:1\"}\n"))
            .await?;
        let sources = json!([{"kind": "ConfigMap", "name": "more"}, {"kind": "Secret", "name": "most"}]);
        let change = json!({"spec": {"storageProvider": {"valuesFrom": sources}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", change).await?;
        until_level(bed, "DEVELOPMENT").await?;
        let template = controller(bed).await?["spec"]["template"].to_string();
        ensure!(
            template.contains("http://b.example:1") && template.contains("http://a.example:1"),
            "{template}"
        );
        bed.apply(&source("ConfigMap", "more", "logLevel: PRODUCTION\n")).await?;
        until_level(bed, "PRODUCTION").await?;
        bed.until_ready().await?;

        let before = controller(bed).await?["metadata"]["generation"].clone();
        bed.delete("v1", "Secret", NS, "most").await?;
        bed.until_condition("VDOConfig", "vdo", "Ready", "ValuesNotFound").await?;
        let (code, _, said) = bed.vdoctl(&["wait", "--timeout", "2m"])?;
        ensure!(
            code == 7 && said.contains("valuesFrom[1] names Secret most, which does not exist"),
            "{code} {said}"
        );
        ensure!(controller(bed).await?["metadata"]["generation"] == before, "it was changed");
        bed.apply(&source("Secret", "most", "hunter2")).await?;
        until("the status to say that it is not a map", PATIENCE, async || {
            let status = bed.get(VDO, "VDOConfig", NS, "vdo").await?["status"].to_string();
            ensure!(!status.contains("hunter2"), "{status}");
            Ok(Probe::when(status.contains("is not a map of values"), status))
        })
        .await?;
        // What the chart does not accept is not repeated.
        bed.apply(&source("Secret", "most", "logLevel: hunter2\n")).await?;
        let refused = bed.until_condition("VDOConfig", "vdo", "Ready", "InvalidValues").await?;
        ensure!(!refused.to_string().contains("hunter2"), "{refused}");
        let change = json!({"spec": {"storageProvider": {"valuesFrom": null}}});
        bed.merge(VDO, "VDOConfig", NS, "vdo", change).await?;
        bed.until_ready().await?;
        Ok(())
    })
}
