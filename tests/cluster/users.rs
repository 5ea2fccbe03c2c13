//! `vdoctl users` in the life of a cluster: in a vCenter that enforces privileges, the operator and the cloud provider do their work with the
//! account that it made, while it is rotated and until it is deleted.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::{Fixture, INSTALLED};
use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use vdo_testbed::{Probe, until};

const RUNNING: Fixture = INSTALLED.flags(&[("connection-interval", "1s")]);
const SECRET: (&str, &str) = ("Secret", "vc1-credentials");
const DISK: &str = "VirtualMachine.Config.AddExistingDisk";

/// Starts the command with the administrator's password on stdin.
fn start(bed: &Bed, verb: &str, more: &[&str]) -> Result<Child> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_vdoctl"))
        .env_clear()
        .env("VDO_KUBECONFIG", bed.cluster.kubeconfig())
        .args(["users", verb, "--user", bed.vcenter.user(), "--password-file", "-"])
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let password = format!("{}\n", bed.vcenter.password());
    // It may end without having read it.
    let _ = child.stdin.take().context("stdin")?.write_all(password.as_bytes());
    Ok(child)
}

/// Runs it to its end: the code, and all that it has shown.
fn users(bed: &Bed, verb: &str, more: &[&str]) -> Result<(i32, String)> {
    let output = start(bed, verb, more)?.wait_with_output()?;
    let text = String::from_utf8(output.stdout)? + &String::from_utf8(output.stderr)?;
    ensure!(!text.contains(bed.vcenter.password()), "the administrator's password is shown");
    Ok((output.status.code().context("a code")?, text))
}

fn done(bed: &Bed, verb: &str, more: &[&str]) -> Result<String> {
    let (code, text) = users(bed, verb, more)?;
    ensure!(code == 0, "users {verb} {more:?}: exit {code}\n{text}");
    Ok(text)
}

async fn user_in_secret(bed: &Bed) -> Result<String> {
    let secret = bed.get("v1", SECRET.0, NS, SECRET.1).await?;
    let text = secret["data"]["username"].as_str().context("a user")?;
    Ok(String::from_utf8(base64::engine::general_purpose::STANDARD.decode(text)?)?)
}

/// Waits until the operator has logged in with the Secret as it is, and everything is well.
async fn until_used(bed: &Bed) -> Result<()> {
    let secret = bed.get("v1", SECRET.0, NS, SECRET.1).await?;
    let version = secret["metadata"]["resourceVersion"].clone();
    until("the operator to have logged in", PATIENCE, async || {
        let connection = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
        let verified = connection["status"]["credential"]["verified"].clone();
        Ok(Probe::when(verified == version, verified))
    })
    .await?;
    bed.until_condition("VsphereCloudConfig", "vc1", "Ready", "Healthy").await?;
    bed.until_ready().await.map(|_| ())
}

#[test]
fn users_account_is_made_used_rotated_and_deleted() -> Result<()> {
    RUNNING.run(async |bed| {
        bed.vcenter.enforce(true).await?;
        let ended = life(bed).await;
        // The administrator's account is back, whatever happened.
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        let annotations = json!({"vdo.vmware.com/servers": null, "users.vdo.vmware.com/rotated-from": null});
        bed.merge("v1", SECRET.0, NS, SECRET.1, json!({"metadata": {"annotations": annotations}}))
            .await?;
        ended?;
        gone(bed).await
    })
}

async fn life(bed: &Bed) -> Result<()> {
    let (code, text) = users(bed, "create", &[])?;
    ensure!(code == 4 && text.contains("no terminal to ask on"), "exit {code}\n{text}");
    let script = done(bed, "create", &["--emit", "govc"])?;
    ensure!(
        script.contains("govc permissions.set") && script.contains("read -r PASSWORD"),
        "{script}"
    );
    let plan = done(bed, "create", &["--dry-run", "-o", "yaml"])?;
    ensure!(
        plan.contains("kind: UsersPlan") && plan.contains(DISK) && plan.contains("changed: false"),
        "{plan}"
    );
    ensure!(user_in_secret(bed).await? == bed.vcenter.user(), "a dry run wrote the Secret");

    let text = done(bed, "create", &["--yes"])?;
    let first = user_in_secret(bed).await?;
    ensure!(
        first.starts_with("vdo-cpi-csi-") && first.ends_with("-a@vsphere.local"),
        "{first}\n{text}"
    );
    until_used(bed).await?;
    let text = done(bed, "create", &["--yes"])?;
    ensure!(text.contains("nothing to change"), "{text}");
    let text = done(bed, "verify", &[])?;
    ensure!(text.contains("has exactly what is needed"), "{text}");

    // One privilege less on one machine: the same is named by `verify` and by the operator.
    let machine = bed.vcenter.id("VirtualMachine", "w-2").await?;
    bed.vcenter.deny_on(&first, &machine, &[DISK]).await?;
    let (code, text) = users(bed, "verify", &["-o", "json"])?;
    let found: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
    let account = &found["accounts"][0];
    ensure!(
        code == 1 && account["missing"].as_array().map(Vec::len) == Some(1) && account["surplus"] == json!([]),
        "exit {code}: {text}"
    );
    ensure!(
        account["missing"][0]["privilege"] == DISK && account["missing"][0]["path"] == "/DC0/vm/w-2",
        "{text}"
    );
    bed.until_condition("VsphereCloudConfig", "vc1", "Authorized", "PrivilegesMissing")
        .await?;
    let connection = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
    ensure!(
        connection["status"]["privileges"]["list"] == json!([format!("{DISK} on VirtualMachine /DC0/vm/w-2")]),
        "{}",
        connection["status"]["privileges"]
    );
    bed.vcenter.deny(&first, &[]).await?;

    let (code, text) = users(bed, "delete", &["--yes"])?;
    ensure!(code == 4 && text.contains("is in use: connection vc1"), "exit {code}\n{text}");

    // Killed as soon as the Secret has the new account, and run again.
    let mut child = start(bed, "rotate", &["--yes"])?;
    until("the Secret to have the other account", PATIENCE, async || {
        let user = user_in_secret(bed).await?;
        let over = child.try_wait()?.is_some();
        ensure!(!over || user != first, "rotate ended early");
        Ok(Probe::when(user != first, user))
    })
    .await?;
    child.kill()?;
    child.wait()?;
    done(bed, "rotate", &["--yes"])?;
    let second = user_in_secret(bed).await?;
    ensure!(second.ends_with("-b@vsphere.local"), "{second}");
    until_used(bed).await?;
    let listed: Value = serde_json::from_str(&done(bed, "list", &["-o", "json"])?)?;
    ensure!(
        listed["accounts"].as_array().map(Vec::len) == Some(1) && listed["accounts"][0]["user"] == second.as_str(),
        "{listed}"
    );
    let logins = bed.vcenter.logins().await?;
    for account in [&first, &second] {
        let own = logins.get(account).copied().unwrap_or_default();
        // vdoctl, the operator and the cloud provider.
        ensure!(own.failed == 0 && own.succeeded >= 3, "{account}: {own:?}");
    }
    Ok(())
}

/// Without a user, the account and everything of ours are deleted.
async fn gone(bed: &Bed) -> Result<()> {
    until_used(bed).await?;
    done(bed, "delete", &["--yes"])?;
    let listed: Value = serde_json::from_str(&done(bed, "list", &["-o", "json"])?)?;
    ensure!(listed["accounts"] == json!([]) && listed["roles"] == json!([]), "{listed}");
    bed.vcenter.enforce(false).await
}
