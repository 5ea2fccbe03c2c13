// SPDX-License-Identifier: Apache-2.0
//! A newer vdoctl upgrades the operator, with the drivers running; an older one refuses, unless it is allowed to.

use super::{ADMIN, command, err, out};
use crate::common::{Bed, NS, PATIENCE, condition, image};
use crate::fixture::IMAGES;
use crate::operator_upgrade::{change_definition, versions};
use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::process::Output;
use vdo_testbed::{Probe, until};

const OWN: &str = env!("CARGO_PKG_VERSION");
const EXTENSIONS: &str = "apiextensions.k8s.io/v1";
const DEFINITION: &str = "vdoconfigs.vdo.vmware.com";

/// Applies deploy/ as an operator of another version has it: with its image, which runs the same program here.
async fn deploy_version(bed: &Bed, version: &str) -> Result<String> {
    let usual = image::reference()?;
    let (name, _) = usual.rsplit_once(':').context("a tag")?;
    let reference = format!("{name}:v{version}");
    bed.agent.serve_image(&reference, &image::layout()?).await?;
    bed.deploy().await?;
    let containers = json!([{"name": "operator", "image": reference}]);
    let change = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let deployments = bed.api("apps/v1", "Deployment", NS);
    deployments
        .patch("vdo-operator", &PatchParams::default(), &Patch::Strategic(change))
        .await?;
    Ok(reference)
}

/// Waits until the operator's pod runs this image.
pub async fn until_runs(bed: &Bed, reference: &str) -> Result<()> {
    until(&format!("the operator of {reference} to be ready"), PATIENCE, async || {
        let pods = bed.list("v1", "Pod", "app.kubernetes.io/name=vdo-operator").await?;
        let images: Vec<String> = pods.iter().map(|pod| pod["spec"]["containers"][0]["image"].to_string()).collect();
        let ready = pods.first().is_some_and(|pod| condition(pod, "Ready")["status"] == "True");
        Ok(Probe::when(ready && images == [format!("{reference:?}")], format!("{images:?}")))
    })
    .await
}

/// The drivers' workloads: instances and generations.
pub async fn workloads(bed: &Bed) -> Result<Vec<Value>> {
    let owned = "app.kubernetes.io/managed-by=vdo,vdo.vmware.com/driver";
    let all = [
        bed.list("apps/v1", "Deployment", owned).await?,
        bed.list("apps/v1", "DaemonSet", owned).await?,
    ];
    let of = |object: &Value| json!([object["metadata"]["uid"], object["metadata"]["generation"]]);
    Ok(all.concat().iter().map(of).collect())
}

pub fn ensure_ended(output: &Output, code: i32, words: &[&str]) -> Result<()> {
    let text = format!("{}{}", out(output), err(output));
    ensure!(output.status.code() == Some(code), "{:?} {text}", output.status);
    for word in words {
        ensure!(text.contains(word), "{word:?} is not in {text}");
    }
    Ok(())
}

#[test]
#[ignore = "long"]
fn deploy_of_a_newer_vdoctl_upgrades_the_operator_and_an_older_one_needs_leave() -> Result<()> {
    IMAGES.run(async |bed| {
        let old = deploy_version(bed, "0.0.1").await?;
        until_runs(bed, &old).await?;
        bed.apply_samples().await?;
        bed.until_ready().await?;
        let (before, config) = (
            workloads(bed).await?,
            bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?,
        );

        // No flag but how long it may take: the configuration stays.
        let run = async |args: &[&str]| -> Result<Output> {
            let mut command = command(bed, &[], args);
            Ok(tokio::task::spawn_blocking(move || command.output()).await??)
        };
        let output = run(&["--timeout", "4m"]).await?;
        let upgraded = format!("operator 0.0.1 will be upgraded to {OWN}");
        ensure_ended(&output, 0, &[&upgraded, "installed and healthy"])?;
        let usual = image::reference()?;
        until_runs(bed, &usual).await?;
        ensure!(workloads(bed).await? == before, "the drivers were touched");
        let now = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        ensure!(now["spec"] == config["spec"], "{} {}", now["spec"], config["spec"]);

        // Now this vdoctl is the older one.
        let newer = deploy_version(bed, "99.0.0").await?;
        until_runs(bed, &newer).await?;
        let mark = bed.cluster.audit().mark().await?;
        let words = [
            "the operator in the cluster has version 99.0.0, which is newer than this vdoctl",
            "--allow-downgrade",
        ];
        ensure_ended(&run(&[]).await?, 4, &words)?;
        let writes = bed.cluster.audit().since(mark).await?.of(ADMIN).writes();
        ensure!(writes.is_empty(), "something was written: {writes}");
        let replaced = format!("operator 99.0.0 will be replaced by the older {OWN}");
        let output = run(&["--allow-downgrade", "--timeout", "4m"]).await?;
        ensure_ended(&output, 0, &[&replaced, "installed and healthy"])?;
        until_runs(bed, &usual).await?;
        ensure!(workloads(bed).await? == before, "the drivers were touched");

        // Objects that are stored in a version which this vdoctl does not know are left to one that does, with or without leave.
        let status = json!({"status": {"storedVersions": ["v1alpha1", "v9"]}});
        let definitions = bed.api(EXTENSIONS, "CustomResourceDefinition", "");
        let mut all = versions(bed).await?;
        let mut further = all[0].clone();
        (further["name"], further["storage"]) = (json!("v9"), json!(false));
        all.push(further);
        change_definition(bed, &all).await?;
        definitions
            .patch_status(DEFINITION, &PatchParams::default(), &Patch::Merge(status))
            .await?;
        let mark = bed.cluster.audit().mark().await?;
        for args in [&[][..], &["--allow-downgrade"]] {
            ensure_ended(
                &run(args).await?,
                4,
                &["are stored in version v9, which this vdoctl does not know", "nothing was changed"],
            )?;
        }
        let writes = bed.cluster.audit().since(mark).await?.of(ADMIN).writes();
        ensure!(writes.is_empty(), "something was written: {writes}");
        Ok(())
    })
}
