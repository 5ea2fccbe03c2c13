// SPDX-License-Identifier: Apache-2.0
//! The job for a real vCenter, against a simulated one that enforces privileges: what has its variables is run and passes, the rest is listed,
//! and nothing is left.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::accounts::lab::{Lab, NODES, user};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;
use vdo_admin::accounts::Step;
use vdo_vsphere::vsphere::Feature;

const READER: (&str, &str) = ("half@vsphere.local", "half");

/// Exit code and output of the job with these variables, which have the prefix `VDO_TEST_`.
fn job(variables: &BTreeMap<&str, String>) -> Result<(i32, String)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real-vcenter.sh");
    let mut command = Command::new("bash");
    command.arg(script).arg(std::env::current_exe()?);
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    for (name, value) in variables {
        command.env(format!("VDO_TEST_{name}"), value);
    }
    let output = command.output()?;
    let text = String::from_utf8(output.stdout)? + &String::from_utf8(output.stderr)?;
    Ok((output.status.code().context("a code")?, text))
}

/// A file with a password that only its owner can read.
fn private(folder: &Path, name: &str, password: &str) -> Result<String> {
    let path = folder.join(name);
    let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(&path)?;
    std::io::Write::write_all(&mut file, password.as_bytes())?;
    Ok(path.to_string_lossy().into_owned())
}

fn passed(text: &str, test: &str) -> bool {
    // Between name and result is what the test prints.
    let part = text.split_once(&format!("test real_vcenter::{test} ... ")).map(|(_, rest)| rest);
    part.is_some_and(|rest| rest.split("\ntest ").next().unwrap_or_default().trim_end().ends_with("ok"))
}

#[tokio::test(flavor = "multi_thread")]
async fn vcenter_job_runs_what_has_its_variables_lists_the_rest_and_leaves_nothing() -> Result<()> {
    let lab = Lab::small().await?;
    let k8s = user("k8s");
    lab.carry_out(&lab.plan(&k8s, &[Feature::CloudProvider, Feature::Block], false).await?)
        .await?;
    let reads = Step::Grant {
        principal: "VSPHERE.LOCAL\\half".into(),
        group: false,
        object: lab.inventory.root.clone(),
        path: "/".into(),
        role: "ReadOnly".into(),
        propagate: true,
        replaces: None,
    };
    lab.carry_out(&[reads]).await?;
    let before = lab.all().await?;

    let folder = tempfile::tempdir()?;
    let file = |name: &str, password: &str| private(folder.path(), name, password);
    let mut variables: BTreeMap<&str, String> = BTreeMap::new();
    let (code, text) = job(&variables)?;
    ensure!(code == 2 && text.contains("docs/testing-real-vcenter.md"), "exit {code}\n{text}");
    variables.insert("VCENTER", lab.vcenter.address());
    variables.insert("CA_FILE", file("ca", lab.vcenter.ca_pem())?);
    let (code, text) = job(&variables)?;
    ensure!(code == 2 && text.contains("no test has all that it needs"), "exit {code}\n{text}");

    variables.insert("USER", k8s.to_string());
    variables.insert("PASSWORD_FILE", file("k8s", lab.password.expose())?);
    variables.insert("READONLY_USER", READER.0.into());
    variables.insert("READONLY_PASSWORD_FILE", file("reader", READER.1)?);
    variables.insert("ADMIN_USER", lab.vcenter.user().into());
    variables.insert("ADMIN_PASSWORD_FILE", file("admin", lab.vcenter.password())?);
    variables.insert("WRONG_USER", READER.0.into());
    variables.insert("NODES", NODES.map(|(name, address)| format!("{name}={address}")).join(","));
    let (code, text) = job(&variables)?;
    ensure!(code == 0 && text.contains("test result: ok. 5 passed"), "exit {code}\n{text}");
    for test in [
        "real_vcenter_documented_roles_pass_every_stage",
        "real_vcenter_readonly_account_reports_missing_privileges",
        "real_vcenter_account_is_made_and_leaves_nothing",
        "real_vcenter_wrong_password_is_invalid_credentials",
        "real_vcenter_other_thumbprint_stops_before_login",
    ] {
        ensure!(passed(&text, test), "{test}\n{text}");
    }
    let locked =
        "SKIPPED: needs VDO_TEST_LOCKED_USER VDO_TEST_LOCKED_PASSWORD_FILE (real_vcenter::real_vcenter_locked_account_is_account_locked)";
    ensure!(text.contains(locked), "{text}");
    ensure!(
        !text.contains(lab.vcenter.password()) && !text.contains(lab.password.expose()),
        "a password"
    );
    ensure!(lab.all().await? == before, "something was left:\n{text}");
    let failed = |logins: &BTreeMap<String, vdo_testbed::Logins>, who: &str| logins.get(who).map(|one| one.failed);
    let logins = lab.vcenter.logins().await?;
    ensure!(failed(&logins, READER.0) == Some(1), "one wrong password: {logins:?}");
    ensure!(failed(&logins, &k8s.to_string()) == Some(0), "{logins:?}");

    // An account without the roles: the job fails and names what is missing.
    variables.insert("USER", READER.0.into());
    variables.insert("PASSWORD_FILE", variables["READONLY_PASSWORD_FILE"].clone());
    let (code, text) = job(&variables)?;
    ensure!(
        code == 1 && !passed(&text, "real_vcenter_documented_roles_pass_every_stage"),
        "exit {code}\n{text}"
    );
    variables.insert("PASSWORD_FILE", "/nowhere/password".into());
    let (code, text) = job(&variables)?;
    ensure!(
        code == 2 && text.contains("VDO_TEST_PASSWORD_FILE: file /nowhere/password cannot be read"),
        "exit {code}\n{text}"
    );
    Ok(())
}
