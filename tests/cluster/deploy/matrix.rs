// SPDX-License-Identifier: Apache-2.0
//! `vdoctl deploy --matrix` with the operator's image: a signed folder of this machine is what the operator decides with, a later deployment
//! leaves it so, and another source replaces all of it.

use super::{Deploy, err, out};
use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::IMAGES;
use crate::matrix_source::{Publisher, embedded_index};
use crate::matrix_web::{CHART, release};
use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use vdo_testbed::{Probe, until};

async fn arguments(bed: &Bed) -> Result<String> {
    let deployment = bed.get("apps/v1", "Deployment", NS, "vdo-operator").await?;
    Ok(deployment["spec"]["template"]["spec"]["containers"][0]["args"].to_string())
}

#[test]
#[ignore = "long"]
fn deploy_with_a_signed_folder_decides_with_it_and_later_deployments_keep_it() -> Result<()> {
    IMAGES.run(async |bed| {
        let deploy = Deploy::to(bed)?;
        let (key, mut index) = (Publisher::new()?, embedded_index()?);
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::create_dir(path("charts"))?;
        std::fs::write(path(CHART), release(&mut index, false)?)?;
        index["version"] = 7001.into();
        std::fs::write(path("index.yaml"), index.to_string())?;
        std::fs::write(path("index.yaml.sig"), key.signature(index.to_string().as_bytes())?)?;
        std::fs::write(path("keys.pem"), key.public())?;
        let matrix = ["--matrix", &path(""), "--matrix-keys", &path("keys.pem")];

        // Keys for nothing, and an index that was changed, are found before anything is written.
        let keys_alone = deploy.run(bed, &matrix[2..])?;
        ensure!(
            keys_alone.status.code() == Some(2) && err(&keys_alone).contains("names none"),
            "{}",
            err(&keys_alone)
        );
        std::fs::write(path("index.yaml"), format!("{index} "))?;
        let changed = deploy.run(bed, &matrix)?;
        ensure!(
            !changed.status.success() && err(&changed).contains("changed after it was signed"),
            "{}",
            err(&changed)
        );
        ensure!(bed.get("v1", "Namespace", "", NS).await? == Value::Null, "something was written");
        std::fs::write(path("index.yaml"), index.to_string())?;
        let yaml = deploy.run(bed, &[&matrix[..], &["-o", "yaml"]].concat())?;
        for text in [
            &*STANDARD.encode("configmap://vmware-system-vdo/vdo-matrix-files"),
            "name: vdo-matrix-keys",
            "--matrix-keys=/etc/vdo/matrix-keys",
        ] {
            ensure!(out(&yaml).contains(text), "{text} is not in {}{}", out(&yaml), err(&yaml));
        }

        let done = deploy.command(bed, &[&matrix[..], &["--timeout", "4m"]].concat()).spawn()?;
        let done = tokio::task::spawn_blocking(move || done.wait_with_output()).await??;
        let text = out(&done);
        ensure!(
            done.status.success() && text.contains("CSI 3.8.1 installed and healthy"),
            "{text}{}",
            err(&done)
        );
        let status = bed.status().await?;
        ensure!(
            status["matrix"]["source"] == "configmap://vmware-system-vdo/vdo-matrix-files",
            "{status}"
        );
        ensure!(
            status["matrix"]["signer"].is_string() && status["matrix"]["version"] == 7001,
            "{status}"
        );
        let (code, text, _) = bed.vdoctl(&["status"])?;
        ensure!(code == 0 && text.contains("MATRIX") && text.contains("signed by sha256:"), "{text}");

        // An upgrade of the operator that does not name it.
        let again = deploy.run(bed, &["--no-wait"])?;
        ensure!(
            again.status.success() && out(&again).contains("in sync"),
            "{}{}",
            out(&again),
            err(&again)
        );
        ensure!(arguments(bed).await?.contains("--matrix-keys="), "keys were forgotten");

        // Another source without keys. It does not know what runs, which is found before anything is written.
        let refused = deploy.run(bed, &["--no-wait", "--matrix", "embedded"])?;
        ensure!(
            refused.status.code() == Some(1) && out(&refused).contains("3.8.1 is installed, and the matrix does not list that version"),
            "{}{}",
            out(&refused),
            err(&refused)
        );
        ensure!(arguments(bed).await?.contains("--matrix-keys="), "a refused deployment was written");
        let other = deploy.run(bed, &["--no-wait", "--ignore-checks", "--matrix", "embedded"])?;
        ensure!(other.status.success(), "{}{}", out(&other), err(&other));
        ensure!(!arguments(bed).await?.contains("--matrix-keys="), "keys are left");
        until("the operator's own matrix to be in use", PATIENCE, async || {
            let status = bed.status().await?;
            let fresh = condition(&bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?, "MatrixFresh");
            Ok(Probe::when(
                status["matrix"]["source"] == "embedded",
                format!("{} {fresh}", status["matrix"]),
            ))
        })
        .await
    })
}
