// SPDX-License-Identifier: Apache-2.0
//! What kstatus and Argo CD say of a VDOConfig and of a connection, with the operator itself and for each state that there is.

use super::recipes::document;
use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::INSTALLED;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vdo_testbed::{Probe, argocd_health, kstatus, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";

/// The check of a kind, as `argocd-cm` of the page has it.
pub fn script(kind: &str) -> Result<String> {
    let map = document("ConfigMap", "argocd-cm")?;
    let script = &map["data"][format!("resource.customizations.health.{}_{kind}", super::GROUP)];
    Ok(script.as_str().context("there is no check")?.to_owned())
}

/// The words of kstatus and of Argo CD.
fn both(object: &Value) -> Result<(String, String)> {
    let kind = object["kind"].as_str().context("a kind")?;
    let of_flux = kstatus(std::slice::from_ref(object))?.remove(0).status;
    let of_argo = argocd_health(&script(kind)?, std::slice::from_ref(object))?.remove(0).status;
    Ok((of_flux, of_argo))
}

fn states(object: Value, cases: &[(Value, &str, &str)]) -> Result<()> {
    for (status, of_flux, of_argo) in cases {
        let mut object = object.clone();
        object["status"] = status.clone();
        let found = both(&object)?;
        ensure!(found == ((*of_flux).to_owned(), (*of_argo).to_owned()), "{status}: {found:?}");
    }
    Ok(())
}

fn conditions(all: &[(&str, &str, &str)]) -> Value {
    let each = all
        .iter()
        .map(|(kind, status, reason)| json!({"type": kind, "status": status, "reason": reason, "message": "m"}));
    each.collect()
}

#[test]
fn gitops_health_of_every_state_of_a_vdoconfig() -> Result<()> {
    let config = json!({"apiVersion": VDO, "kind": "VDOConfig", "metadata": {"name": "vdo", "namespace": NS, "generation": 2}, "spec": {}});
    let of = |generation: i64, health: &str, all: &[(&str, &str, &str)]| json!({"observedGeneration": generation, "health": health, "conditions": conditions(all)});
    let idle = ("Reconciling", "False", "Idle");
    let fine = [("Ready", "True", "Healthy"), idle, ("Stalled", "False", "Idle")];
    let busy = [
        ("Ready", "Unknown", "Progressing"),
        ("Reconciling", "True", "Progressing"),
        ("Stalled", "False", "Idle"),
    ];
    let broken = [
        ("Ready", "False", "Degraded"),
        ("Reconciling", "True", "Degraded"),
        ("Stalled", "False", "Idle"),
    ];
    let stuck = [("Ready", "False", "RenderFailed"), idle, ("Stalled", "True", "RenderFailed")];
    let asking = [
        ("Ready", "False", "ApprovalRequired"),
        idle,
        ("Stalled", "True", "ApprovalRequired"),
    ];
    let paused = [
        ("Ready", "False", "Paused"),
        ("Reconciling", "False", "Paused"),
        ("Stalled", "False", "Idle"),
    ];
    states(
        config,
        &[
            (json!({"observedGeneration": -1}), "InProgress", "Progressing"),
            (of(1, "Healthy", &fine), "InProgress", "Progressing"),
            (of(2, "Healthy", &fine), "Current", "Healthy"),
            (of(2, "Progressing", &busy), "InProgress", "Progressing"),
            (of(2, "Degraded", &broken), "InProgress", "Degraded"),
            (of(2, "Blocked", &stuck), "Failed", "Degraded"),
            (of(2, "Blocked", &asking), "Failed", "Suspended"),
            (of(2, "Paused", &paused), "InProgress", "Suspended"),
            (of(2, "Paused", &fine), "Current", "Suspended"),
        ],
    )
}

#[test]
fn gitops_health_of_every_state_of_a_connection() -> Result<()> {
    let connection = json!({"apiVersion": VDO, "kind": "VsphereCloudConfig", "metadata": {"name": "vc1", "namespace": NS, "generation": 2},
        "spec": {"vcIp": "vc.test", "credentials": "s"}});
    let of =
        |generation: i64, ready: &str| json!({"observedGeneration": generation, "conditions": conditions(&[("Ready", ready, "Healthy")])});
    states(
        connection,
        &[
            (json!({"observedGeneration": -1}), "InProgress", "Progressing"),
            (of(1, "True"), "InProgress", "Progressing"),
            (of(2, "Unknown"), "InProgress", "Progressing"),
            (of(2, "False"), "InProgress", "Degraded"),
            (of(2, "True"), "Current", "Healthy"),
        ],
    )
}

/// Waits until both tools report this of an object.
async fn until_both(bed: &Bed, kind: &str, name: &str, wanted: (&str, &str)) -> Result<()> {
    until(&format!("{kind} {name} to be {wanted:?}"), PATIENCE, async || {
        let live = bed.get(VDO, kind, NS, name).await?;
        let found = both(&live)?;
        let is = (found.0.as_str(), found.1.as_str()) == wanted;
        Ok(Probe::when(is, format!("{found:?} {}", live["status"]["conditions"])))
    })
    .await
}

#[test]
fn gitops_health_follows_the_operator() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_both(bed, "VDOConfig", "vdo", ("Current", "Healthy")).await?;
        until_both(bed, "VsphereCloudConfig", "vc1", ("Current", "Healthy")).await?;
        let spec = |version: Value| json!({"cloudProvider": {}, "storageProvider": {"version": version}});
        bed.apply(&bed.config(spec("99.0.0".into()))).await?;
        until_both(bed, "VDOConfig", "vdo", ("Failed", "Degraded")).await?;
        bed.apply(&bed.config(json!({"managementState": "Paused"}))).await?;
        until_both(bed, "VDOConfig", "vdo", ("Current", "Suspended")).await?;
        bed.apply(&bed.config(json!({}))).await?;
        until_both(bed, "VDOConfig", "vdo", ("Current", "Healthy")).await?;
        // A wrong password is a matter of time for Flux, and bad news for Argo CD.
        bed.apply(&bed.secret("wrong")).await?;
        until_both(bed, "VsphereCloudConfig", "vc1", ("InProgress", "Degraded")).await?;
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        until_both(bed, "VsphereCloudConfig", "vc1", ("Current", "Healthy")).await
    })
}
