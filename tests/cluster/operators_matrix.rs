// SPDX-License-Identifier: Apache-2.0
//! Every verb decides with the matrix that the operator decides with, whose source is not named at the desk; what it refuses is not written.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::INSTALLED;
use crate::install::until_at_rest;
use crate::matrix_config_maps::Folder;
use crate::matrix_web::{CHART, release, until_driver, until_version};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use vdo_testbed::{Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const PINS: &str = "vdo.vmware.com/upgrade-pins";

/// Of this test alone: in a shared cluster an older version in the same place is refused.
const PLACE: &str = "configmap://vmware-system-vdo/desk";
const REFUSED: &str = "configmap://vmware-system-vdo/refused";

/// Runs vdoctl, which ends with this code; stdout and stderr in one.
fn ends(bed: &Bed, code: i32, args: &[&str]) -> Result<String> {
    let (found, out, err) = bed.vdoctl(args)?;
    ensure!(
        found == code,
        "vdoctl {} ended with {found} instead of {code}:\n{out}---\n{err}",
        args.join(" ")
    );
    Ok(format!("{out}\n{err}"))
}

fn has(text: &str, words: &[&str]) -> Result<()> {
    for word in words {
        ensure!(text.contains(word), "{word:?} is not in:\n{text}");
    }
    Ok(())
}

fn lacks(text: &str, words: &[&str]) -> Result<()> {
    for word in words {
        ensure!(!text.contains(word), "{word:?} is in:\n{text}");
    }
    Ok(())
}

fn withdraw(index: &mut Value, version: &str) -> Result<()> {
    let versions = index["drivers"]["vsphere-csi"]["versions"].as_array_mut().context("versions")?;
    let entry = versions
        .iter_mut()
        .find(|entry| entry["version"] == version)
        .context("the version")?;
    entry["state"] = json!({"kind": "withdrawn", "reason": "it loses data", "since": "2026-11-01"});
    Ok(())
}

/// What a person writes of a VDOConfig.
async fn written(bed: &Bed) -> Result<(Value, Value)> {
    let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
    Ok((config["spec"].clone(), config["metadata"]["annotations"][PINS].clone()))
}

/// CSI runs in this version, which the specification does not ask for any more.
async fn install(bed: &Bed, version: &str) -> Result<()> {
    ends(
        bed,
        0,
        &["configure", "drivers", "--set", &format!("storageProvider.version={version}")],
    )?;
    until_driver(bed, version).await?;
    ends(bed, 0, &["configure", "drivers", "--set", "storageProvider.version=null"])?;
    until_at_rest(bed).await
}

async fn follow(bed: &Bed, folder: &mut Folder, place: &str, version: u64) -> Result<()> {
    folder.sign(version)?;
    folder.load(bed)?;
    bed.name_source(place).await?;
    until_version(bed, place, version).await?;
    until_at_rest(bed).await
}

#[test]
#[ignore = "long"]
fn verbs_decide_with_the_matrix_of_the_operator() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let cluster = "the operator of cluster";
        has(&ends(bed, 0, &["plan"])?, &["MATRIX version", "embedded", cluster])?;
        install(bed, "3.7.3").await?;
        let mut folder = Folder::new(PLACE)?;
        withdraw(&mut folder.index, "3.8.0")?;
        follow(bed, &mut folder, PLACE, 7001).await?;
        let before = written(bed).await?;

        // What the operator's matrix has withdrawn is recommended nowhere, and written nowhere.
        let header = ["MATRIX version 7001, configmap://vmware-system-vdo/desk", cluster];
        has(&ends(bed, 0, &["upgrade", "plan"])?, &header)?;
        let doctor = ends(bed, 0, &["doctor"])?;
        has(&doctor, &["version 7001, configmap://vmware-system-vdo/desk"])?;
        lacks(&doctor, &["3.8.0"])?;
        has(
            &ends(bed, 0, &["upgrade", "apply", "--yes"])?,
            &["Every driver has the newest version that fits."],
        )?;
        for verb in [&["matrix", "resolve"][..], &["matrix", "list"], &["matrix", "explain"]] {
            has(&ends(bed, 0, verb)?, &header)?;
        }
        has(
            &ends(bed, 1, &["matrix", "why-not", "csi", "3.8.0"])?,
            &["is withdrawn: it loses data"],
        )?;
        has(&ends(bed, 0, &["matrix", "show", "csi", "3.8.0"])?, &["withdrawn"])?;
        let refused = ends(bed, 4, &["configure", "drivers", "--set", "storageProvider.version=3.8.0"])?;
        has(&refused, &["withdrawn", "so nothing was written"])?;
        let plan = ends(bed, 4, &["upgrade", "plan", "--to", "csi=3.8.0"])?;
        has(
            &plan,
            &[
                "CSI cannot be upgraded to 3.8.0",
                "withdrawn",
                "no differences for CPI; CSI cannot be planned",
            ],
        )?;
        lacks(&plan, &["To upgrade"])?;
        has(
            &ends(bed, 4, &["upgrade", "apply", "--yes", "--to", "csi=3.8.0"])?,
            &["nothing was changed", "withdrawn"],
        )?;
        // Not with another matrix either: the operator decides.
        let other = ["upgrade", "apply", "--yes", "--to", "csi=3.8.0", "--matrix", "embedded"];
        has(&ends(bed, 4, &other)?, &["the operator uses another matrix", PLACE])?;
        let plan = ends(bed, 1, &["upgrade", "plan", "--matrix", "embedded"])?;
        has(
            &plan,
            &[
                "given with --matrix",
                "CSI 3.7.3 → 3.8.0 (upgrade): newest that supports Kubernetes",
                "upgrade apply --kubeconfig",
                "--matrix embedded",
            ],
        )?;
        ensure!(written(bed).await? == before, "a refused version was written");

        // What it adds is known at the desk, with its chart.
        std::fs::write(folder.path(CHART), release(&mut folder.index, false)?)?;
        let versions = folder.index["drivers"]["vsphere-csi"]["versions"]
            .as_array_mut()
            .context("versions")?;
        versions[0].as_object_mut().context("an entry")?.remove("state");
        follow(bed, &mut folder, PLACE, 7002).await?;
        let plan = ends(bed, 1, &["upgrade", "plan"])?;
        has(
            &plan,
            &[
                "CSI 3.7.3 → 3.8.1 (upgrade): newest that supports Kubernetes",
                "To upgrade: vdoctl upgrade apply",
            ],
        )?;
        has(
            &ends(bed, 1, &["upgrade", "plan", "--to", "csi=3.8.1"])?,
            &["CSI 3.7.3 → 3.8.1 (upgrade): requested with --to"],
        )?;
        ends(
            bed,
            0,
            &["configure", "drivers", "--set", "storageProvider.version=3.8.1", "--dry-run"],
        )?;
        ends(bed, 0, &["upgrade", "apply", "--yes", "--timeout", "4m"])?;
        until_driver(bed, "3.8.1").await?;
        until_at_rest(bed).await?;
        for verb in ["plan", "diff", "render"] {
            has(&ends(bed, 0, &[verb])?, &["MATRIX version 7002"])?;
        }
        let upgradeable = bed.status().await?["conditions"]
            .as_array()
            .and_then(|all| all.iter().find(|condition| condition["type"] == "Upgradeable").cloned())
            .context("Upgradeable")?;
        let (_, text, err) = bed.vdoctl(&["doctor", "-o", "json"])?;
        let doctor: Value = serde_json::from_str(&text).with_context(|| err.clone())?;
        let subjects = doctor["subjects"].as_array().context("subjects")?;
        let mut checks = subjects.iter().filter_map(|subject| subject["checks"].as_array()).flatten();
        let own = checks.find(|check| check["check"] == "Upgradeable").context("a check")?;
        ensure!(own["message"] == upgradeable["message"], "{own}\n{upgradeable}");
        has(&ends(bed, 0, &["version"])?, &["in use", "version 7002", "3.8.1"])?;
        let (_, text, _) = bed.vdoctl(&["matrix", "list", "-o", "json"])?;
        let list: Value = serde_json::from_str(&text)?;
        ensure!(
            list["matrix"]["decidedBy"] == "operator" && list["matrix"]["version"] == 7002,
            "{}",
            list["matrix"]
        );

        // Without the source: what is kept suffices.
        bed.kill_operator();
        let maps = bed.list("v1", "ConfigMap", "vdo.vmware.com/matrix=desk").await?;
        ensure!(!maps.is_empty());
        bed.delete("v1", "Secret", NS, "desk").await?;
        for map in maps {
            bed.delete("v1", "ConfigMap", NS, map["metadata"]["name"].as_str().context("a name")?)
                .await?;
        }
        has(&ends(bed, 0, &["plan"])?, &["MATRIX version 7002"])?;
        has(&ends(bed, 0, &["matrix", "show", "csi", "3.8.1"])?, &["MATRIX version 7002"])?;
        // Who may not read that gets an answer with a warning.
        let limited = ends(bed, 0, &["matrix", "list", "--as", "guest"])?;
        has(
            &limited,
            &["built into this vdoctl", "warning:", "you lack the right to list", "rule"],
        )?;
        folder.load(bed)?;
        bed.start_operator().await?;
        until_version(bed, PLACE, 7002).await
    })
}

/// A pin that the operator refuses because its matrix has changed since: it is taken back. And no operator, no pin.
#[test]
#[ignore = "long"]
fn upgrade_apply_takes_back_what_the_operator_refuses() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let mut folder = Folder::new(REFUSED)?;
        follow(bed, &mut folder, REFUSED, 7001).await?;
        let before = written(bed).await?;
        // Its Lease still holds for some seconds, as that of an operator that is being restarted.
        bed.kill_operator();
        withdraw(&mut folder.index, "3.7.3")?;
        folder.sign(7002)?;
        folder.load(bed)?;
        let child = Command::new(vdo_testbed::vdoctl())
            .arg("--kubeconfig")
            .arg(bed.cluster.kubeconfig())
            .args(["upgrade", "apply", "--yes", "--to", "csi=3.7.3", "--timeout", "3m"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        until("the pin to be written", PATIENCE, async || {
            let found = written(bed).await?;
            Ok(Probe::when(found != before, &found.0))
        })
        .await?;
        let pinned = written(bed).await?;
        ensure!(pinned.1 == "vsphere-csi=3.7.3", "{}", pinned.1);
        let (_, status, _) = bed.vdoctl(&["status", "-o", "json"])?;
        let status: Value = serde_json::from_str(&status)?;
        ensure!(status["config"]["upgradePins"]["vsphere-csi"] == "3.7.3", "{}", status["config"]);
        bed.start_operator().await?;
        let output = tokio::task::spawn_blocking(move || child.wait_with_output()).await??;
        let text = format!("{}{}", String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
        ensure!(output.status.code() == Some(4), "{:?}\n{text}", output.status);
        has(&text, &["the operator refuses the upgrade: CSI 3.7.3", "withdrawn", "was reverted"])?;
        ensure!(written(bed).await? == before, "{:?}", written(bed).await?);
        until_version(bed, REFUSED, 7002).await?;
        until_at_rest(bed).await?;

        if let Some(mut operator) = bed.operator.take() {
            operator.stop(PATIENCE);
        }
        let (code, out, err) = bed.vdoctl(&["upgrade", "apply", "--yes", "--to", "csi=3.7.0", "--timeout", "6s"])?;
        ensure!(code == 4, "{code}\n{out}\n{err}");
        has(&err, &["no operator has run for", "so nothing was changed"])?;
        ensure!(written(bed).await? == before, "a pin was written without an operator");
        bed.start_operator().await
    })
}
