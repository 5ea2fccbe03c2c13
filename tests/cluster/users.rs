// SPDX-License-Identifier: Apache-2.0
//! `vdoctl users` in the life of a cluster: in a vCenter that enforces privileges, the operator and the cloud provider do their work with the
//! account that it made, while it is rotated and until it is deleted. Every command is one of docs/users.md.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod existing;
mod fresh;
mod killed;
mod lacking;
mod planted;
mod refused;
mod two;

use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::{Fixture, INSTALLED};
use crate::page::commands;
use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use vdo_api::facts::Credentials;
use vdo_api::types::Secret;
use vdo_testbed::{Probe, until};

const RUNNING: Fixture = INSTALLED.flags(&[("connection-interval", "1s")]);
const SECRET: (&str, &str) = ("Secret", "vc1-credentials");

/// The commands of the page by their verbs.
fn page() -> Result<BTreeMap<String, Vec<String>>> {
    let mut verbs = BTreeMap::new();
    for line in commands("users.md", "Commands")? {
        let words = shlex::split(line.split(" # ").next().unwrap_or_default()).context("words")?;
        ensure!(words.starts_with(&["vdoctl".to_owned(), "users".to_owned()]), "{line}");
        verbs.insert(words.get(2).context("a verb")?.clone(), words.into_iter().skip(1).collect());
    }
    let all = ["create", "list", "verify", "shrink", "rotate", "delete"].map(str::to_owned);
    ensure!(verbs.keys().eq(&BTreeSet::from(all)), "users.md shows {:?}", verbs.keys());
    Ok(verbs)
}

/// The command of the page with more flags, in a folder of its own.
fn command(bed: &Bed, verb: &str, more: &[&str]) -> Result<Command> {
    let folder = bed.cluster.dir().join("users");
    std::fs::create_dir_all(&folder)?;
    let mut command = Command::new(vdo_testbed::vdoctl());
    command
        .env_clear()
        .env("VDO_KUBECONFIG", bed.cluster.kubeconfig())
        .env("HOME", &folder)
        .env("TMPDIR", &folder)
        .current_dir(&folder)
        .args(&page()?[verb])
        .args(["--password-file", "-"])
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(command)
}

/// Starts a command with the administrator's password on stdin.
fn start(bed: &Bed, command: &mut Command) -> Result<Child> {
    let mut child = command.spawn()?;
    let password = format!("{}\n", bed.vcenter.password());
    // It may end without having read it.
    let _ = child.stdin.take().context("stdin")?.write_all(password.as_bytes());
    Ok(child)
}

/// Waits for its end: the code, and all that it has shown.
fn ended(bed: &Bed, child: Child) -> Result<(i32, String)> {
    let output = child.wait_with_output()?;
    let text = String::from_utf8(output.stdout)? + &String::from_utf8(output.stderr)?;
    planted::is_not_in(bed, "output", text.as_bytes())?;
    Ok((output.status.code().context("a code")?, text))
}

fn users(bed: &Bed, verb: &str, more: &[&str]) -> Result<(i32, String)> {
    ended(bed, start(bed, &mut command(bed, verb, more)?)?)
}

/// Runs it to its end, which has to be success.
pub fn done(bed: &Bed, verb: &str, more: &[&str]) -> Result<String> {
    let (code, text) = users(bed, verb, more)?;
    ensure!(code == 0, "users {verb} {more:?}: exit {code}\n{text}");
    Ok(text)
}

fn listed(bed: &Bed) -> Result<Value> {
    Ok(serde_json::from_str(&done(bed, "list", &["-o", "json"])?)?)
}

/// How the vCenter is named where there is no connection yet.
fn typed(bed: &Bed) -> Vec<String> {
    let print = bed.vcenter.thumbprint_sha256();
    vec!["--vcenter".into(), bed.vcenter.address(), "--thumbprint".into(), print]
}

/// The credentials in a Secret, if it is there.
async fn held(bed: &Bed, name: &str) -> Result<Option<Credentials>> {
    let secret = bed.get("v1", SECRET.0, NS, name).await?;
    if secret.is_null() {
        return Ok(None);
    }
    let text = |key: &str| -> Result<String> {
        let encoded = secret["data"][key].as_str().with_context(|| format!("no {key}"))?;
        Ok(String::from_utf8(base64::engine::general_purpose::STANDARD.decode(encoded)?)?)
    };
    Ok(Some(Credentials {
        user: text("username")?,
        password: Secret::new(text("password")?),
    }))
}

/// The user that the Secret of the connection names.
pub async fn user_in_secret(bed: &Bed) -> Result<String> {
    Ok(held(bed, SECRET.1).await?.context("the Secret")?.user)
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
#[ignore = "long"]
fn users_account_is_made_used_rotated_and_deleted() -> Result<()> {
    RUNNING.run(async |bed| {
        bed.vcenter.enforce(true).await?;
        let ended = life(bed).await;
        // The administrator's account is back, whatever happened.
        bed.vcenter.open_gate().await?;
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        let annotations = json!({"vdo.vmware.com/servers": null, "users.vdo.vmware.com/rotated-from": null});
        bed.merge("v1", SECRET.0, NS, SECRET.1, json!({"metadata": {"annotations": annotations}}))
            .await?;
        ended?;
        gone(bed).await?;
        // Roles, permissions and users were written by the administrator.
        bed.vcenter.forget_calls("vdo").await
    })
}

async fn life(bed: &Bed) -> Result<()> {
    let administrator = bed.vcenter.user();
    // Tests before this one sent wrong passwords of this account.
    let before = bed.vcenter.logins().await?.get(administrator).copied().unwrap_or_default();
    asked(bed).await?;
    existing::only_gets_roles(bed).await?;
    two::make_one_account(bed).await?;
    refused::each_changes_nothing(bed).await?;

    killed::until_done(bed, "create").await?;
    let first = user_in_secret(bed).await?;
    ensure!(first.starts_with("vdo-cpi-csi-") && first.ends_with("-a@vsphere.local"), "{first}");
    until_used(bed).await?;
    let text = done(bed, "create", &["--yes"])?;
    ensure!(text.contains("nothing to change"), "{text}");
    let text = done(bed, "verify", &[])?;
    ensure!(text.contains("has exactly the needed privileges"), "{text}");
    let text = done(bed, "shrink", &["--yes"])?;
    ensure!(text.contains("nothing to change"), "{text}");
    lacking::each_is_named(bed, &first).await?;
    refused::when_locked(bed, &first).await?;
    let (code, text) = users(bed, "delete", &["--yes"])?;
    ensure!(code == 4 && text.contains("is in use: connection vc1"), "exit {code}\n{text}");

    let second = killed::rotated(bed).await?;
    until_used(bed).await?;
    let text = done(bed, "verify", &[])?;
    ensure!(text.contains("has exactly the needed privileges"), "{text}");
    let found = listed(bed)?;
    ensure!(
        found["accounts"].as_array().map(Vec::len) == Some(1) && found["accounts"][0]["user"] == second.as_str(),
        "{found}"
    );
    planted::is_nowhere(bed).await?;
    let logins = bed.vcenter.logins().await?;
    let own = |account: &str| logins.get(account).copied().unwrap_or_default();
    for account in [&first, &second] {
        // vdoctl, the operator and the cloud provider.
        ensure!(
            own(account).failed == 0 && own(account).succeeded >= 3,
            "{account}: {:?}",
            own(account)
        );
    }
    let after = own(administrator);
    ensure!(after.failed == before.failed, "{administrator}: {before:?}, then {after:?}");
    Ok(())
}

/// Nothing is changed without consent.
async fn asked(bed: &Bed) -> Result<()> {
    let (code, text) = users(bed, "create", &[])?;
    ensure!(code == 4 && text.contains("no terminal on which to confirm"), "exit {code}\n{text}");
    let script = done(bed, "create", &["--emit", "govc"])?;
    ensure!(
        script.contains("govc permissions.set") && script.contains("read -r PASSWORD"),
        "{script}"
    );
    let plan = done(
        bed,
        "create",
        &["--dry-run", "-o", "yaml", "--storage-policy", "vSAN Default Storage Policy"],
    )?;
    ensure!(
        plan.contains("kind: UsersPlan") && plan.contains(lacking::DISK) && plan.contains("changed: false"),
        "{plan}"
    );
    // The drivers encrypt with this policy, which no class names yet.
    ensure!(!plan.contains("Cryptographer"), "{plan}");
    let encrypted = done(
        bed,
        "create",
        &["--dry-run", "-o", "yaml", "--storage-policy", "VM Encryption Policy"],
    )?;
    ensure!(encrypted.contains("Cryptographer"), "{encrypted}");
    ensure!(user_in_secret(bed).await? == bed.vcenter.user(), "a dry run wrote the Secret");
    // Before there is a connection, each driver gets an account of its own.
    let own = typed(bed);
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let text = done(bed, "create", &[&own[..], &["--for", "both", "--dry-run", "-o", "json"]].concat())?;
    let plan: Value = serde_json::from_str(text.split("\nThis was a dry run").next().unwrap_or_default())?;
    let names: Vec<&str> = plan["accounts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["account"].as_str())
        .collect();
    ensure!(
        matches!(&names[..], [cpi, csi] if cpi.starts_with("vdo-cpi-") && csi.starts_with("vdo-csi-")),
        "{plan}"
    );
    Ok(())
}

/// Without a user, the account and everything of ours are deleted; roles stay while another vCenter shares the domain.
async fn gone(bed: &Bed) -> Result<()> {
    until_used(bed).await?;
    let linked = refused::user_of_another_vcenter(bed, true).await?;
    let text = done(bed, "delete", &["--dry-run"])?;
    ensure!(
        text.contains("delete user vdo-cpi-csi-") && !text.contains("delete role") && !text.contains(&linked),
        "{text}"
    );
    refused::user_of_another_vcenter(bed, false).await?;
    killed::until_done(bed, "delete").await?;
    let found = listed(bed)?;
    ensure!(found["accounts"] == json!([]) && found["roles"] == json!([]), "{found}");
    bed.vcenter.enforce(false).await
}
