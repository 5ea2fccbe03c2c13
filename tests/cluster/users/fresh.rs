// SPDX-License-Identifier: Apache-2.0
//! The documented first steps on an empty cluster, in a vCenter that enforces privileges: an account, then the drivers with it.

use super::{NS, planted};
use crate::common::Bed;
use crate::deploy::operate;
use crate::fixture::BARE;
use crate::operation::private;
use crate::page::commands;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::process::{Command, Output, Stdio};

const SECRET: &str = "vdo-cpi-csi-credentials";

/// `vdoctl` in the environment of a person who has chosen the cluster.
fn vdoctl(bed: &Bed, args: &[String]) -> Command {
    let mut command = Command::new(vdo_testbed::vdoctl());
    command
        .env_clear()
        .env("KUBECONFIG", bed.cluster.kubeconfig())
        .env("HOME", bed.cluster.dir())
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn shown(bed: &Bed, output: &Output) -> Result<String> {
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    planted::is_not_in(bed, "output", text.as_bytes())?;
    Ok(text)
}

fn done(bed: &Bed, args: &[String]) -> Result<String> {
    let output = vdoctl(bed, args).output()?;
    let text = shown(bed, &output)?;
    ensure!(output.status.success(), "vdoctl {args:?}: {:?}\n{text}", output.status.code());
    Ok(text)
}

/// The command of a page, with the names of this test in place of the examples.
fn typed(bed: &Bed, line: &str, password: &str) -> Result<Vec<String>> {
    let words = shlex::split(line.split(" # ").next().unwrap_or_default()).context("words")?;
    let mut args: Vec<String> = words.into_iter().skip(1).collect();
    for word in &mut args {
        match word.as_str() {
            "vcenter.example.com" => *word = bed.vcenter.address(),
            "administrator@vsphere.local" => *word = bed.vcenter.user().to_owned(),
            _ => {}
        }
    }
    let print = bed.vcenter.thumbprint_sha256();
    let more = ["--thumbprint", &print, "--password-file", password, "--yes"];
    args.extend(more.map(str::to_owned));
    Ok(args)
}

/// Starts it, has the operator run once it is deployed, and waits for the end.
async fn deployed(bed: &mut Bed, args: &[String]) -> Result<String> {
    let waiting = vdoctl(bed, args).spawn()?;
    operate(bed).await?;
    let output = waiting.wait_with_output()?;
    let text = shown(bed, &output)?;
    ensure!(output.status.success(), "vdoctl {args:?}: {:?}\n{text}", output.status.code());
    ensure!(text.contains("installed and healthy"), "{text}");
    Ok(text)
}

/// Everything of it is gone again, in the cluster and in the vCenter.
async fn removed(bed: &mut Bed, password: &str) -> Result<()> {
    done(bed, &["delete", "--yes", "--timeout", "3m"].map(str::to_owned))?;
    bed.kill_operator();
    let line = "vdoctl users delete --vcenter vcenter.example.com --user administrator@vsphere.local --shared";
    done(bed, &typed(bed, line, password)?)?;
    ensure!(bed.get("v1", "Namespace", "", NS).await?.is_null(), "the namespace is left");
    Ok(())
}

/// The connection takes the credentials from the Secret that was made, and no other Secret has a password.
async fn ensure_one_secret(bed: &Bed) -> Result<()> {
    let connection = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
    ensure!(connection["spec"]["credentials"] == SECRET, "{}", connection["spec"]);
    let secrets = bed.list("v1", "Secret", "app.kubernetes.io/managed-by=vdoctl").await?;
    let names: Vec<&Value> = secrets.iter().map(|secret| &secret["metadata"]["name"]).collect();
    ensure!(names == [SECRET], "{names:?}");
    Ok(())
}

#[test]
#[ignore = "long"]
fn first_steps_on_an_empty_cluster_lead_from_an_account_to_drivers() -> Result<()> {
    BARE.run(async |bed| {
        bed.vcenter.enforce(true).await?;
        let ended = steps(bed).await;
        bed.vcenter.open_gate().await?;
        bed.vcenter.enforce(false).await?;
        ended?;
        bed.vcenter.forget_calls("vdo").await
    })
}

async fn steps(bed: &mut Bed) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let password = private(folder.path(), "administrator", bed.vcenter.password())?;
    let lines = commands("install.md", "An account")?;
    let [create, follow, both] = &lines[..] else {
        anyhow::bail!("install.md has other commands: {lines:?}");
    };
    // First the account, which is one that is shown before it is made.
    let plan = done(bed, &[typed(bed, create, &password)?, vec!["--dry-run".into()]].concat())?;
    ensure!(plan.contains("create Namespace vmware-system-vdo"), "{plan}");
    ensure!(bed.get("v1", "Namespace", "", NS).await?.is_null(), "a dry run made the namespace");
    let text = done(bed, &typed(bed, create, &password)?)?;
    let namespace = bed.get("v1", "Namespace", "", NS).await?;
    ensure!(
        namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted",
        "{namespace}"
    );
    // The last line goes on, as the page has it with its names.
    let next = text
        .lines()
        .last()
        .and_then(|line| line.strip_prefix("Continue with: "))
        .context(text.clone())?;
    let page = follow.replace("vcenter.example.com", &bed.vcenter.address());
    let words: Vec<&str> = page
        .split_whitespace()
        .filter(|word| !next.split_whitespace().any(|other| other == *word))
        .collect();
    ensure!(words.is_empty(), "{words:?} of {page:?} are not in {next:?}");
    let mut args: Vec<String> = shlex::split(next).context("words")?.into_iter().skip(1).collect();
    args.push("--yes".into());
    // A Secret that is not there ends it before anything is written.
    let wrong: Vec<String> = args.iter().map(|word| word.replace(SECRET, "other")).collect();
    let output = vdoctl(bed, &wrong).output()?;
    ensure!(
        output.status.code() == Some(3) && shown(bed, &output)?.contains("users create"),
        "{output:?}"
    );
    deployed(bed, &args).await?;
    ensure_one_secret(bed).await?;
    removed(bed, &password).await?;

    // In one command.
    let args = typed(bed, both, &password)?;
    let dry = done(bed, &[&args[..], &["--dry-run".to_owned()]].concat())?;
    ensure!(
        dry.contains("create user") && bed.get("v1", "Namespace", "", NS).await?.is_null(),
        "{dry}"
    );
    let text = deployed(bed, &args).await?;
    ensure!(!text.contains("Continue with"), "{text}");
    ensure_one_secret(bed).await?;
    // Again: nothing is left to do.
    let again = done(bed, &args)?;
    ensure!(
        again.contains("nothing to change") && again.contains("installed and healthy"),
        "{again}"
    );
    removed(bed, &password).await
}
