// SPDX-License-Identifier: Apache-2.0
//! `vdoctl doctor` as its users meet it: as a process, before an installation and after it, with what is wrong made wrong.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::{EMPTY, Fixture, INSTALLED, OPERATOR};
use anyhow::{Context, Result, ensure};
use insta::{assert_snapshot, with_settings};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use vdo_testbed::soap::{Lockout, SoapOptions, SoapProxy};
use vdo_testbed::{Logins, Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const FLAGS: &[(&str, &str)] = &[("connection-interval", "1s")];
const RUNNING: Fixture = INSTALLED.flags(FLAGS);

/// What a command has shown.
struct Seen {
    code: i32,
    out: String,
    talk: String,
}

impl Seen {
    fn all(&self) -> String {
        format!("exit {}\n--- stdout\n{}--- stderr\n{}", self.code, self.out, self.talk)
    }

    fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.out).with_context(|| self.all())
    }
}

/// Runs it without any environment but a kubeconfig, if there is one, and with something on stdin.
fn doctor(kubeconfig: Option<&Path>, stdin: &str, arguments: &[&str]) -> Result<Seen> {
    let mut command = Command::new(vdo_testbed::vdoctl());
    command.env_clear().arg("doctor").args(arguments);
    if let Some(path) = kubeconfig {
        command.env("VDO_KUBECONFIG", path);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // It may end without having read it.
    let _ = child.stdin.take().context("stdin")?.write_all(stdin.as_bytes());
    let output = child.wait_with_output()?;
    Ok(Seen {
        code: output.status.code().context("a code")?,
        out: String::from_utf8(output.stdout)?,
        talk: String::from_utf8(output.stderr)?,
    })
}

/// Without ports, fingerprints, folders and times, which are others each time.
fn lasting(text: &str) -> String {
    let mut out = String::new();
    // Its path may have a space.
    let text = text.replace(&*std::env::temp_dir().to_string_lossy(), "/tmp");
    for word in text.split_inclusive([' ', '\n', '"', ',', ';']) {
        let (own, end) = word.split_at(word.len() - 1);
        let core = own.trim_end_matches(['.', ':', ')']);
        let port = core
            .rsplit_once(':')
            .filter(|(_, port)| port.len() >= 4 && port.chars().all(|c| c.is_ascii_digit()));
        match port {
            _ if own.matches(':').count() > 15 => out.push('…'),
            // In quotes where its path has a space.
            _ if own.trim_start_matches('\'').starts_with("/tmp/") => out.push_str("/tmp/…"),
            _ if own.len() == 36 && own.matches('-').count() == 4 => out.push_str("UID"),
            Some((host, _)) => {
                out.push_str(host);
                out.push_str(":PORT");
                out.push_str(&own[core.len()..]);
            }
            None => out.push_str(own),
        }
        out.push_str(end);
    }
    out
}

fn snap(name: &str, seen: &Seen) {
    with_settings!({ omit_expression => true }, { assert_snapshot!(format!("doctor_{name}"), lasting(&seen.all())) });
}

/// The checks of what is installed, as the administrator.
fn ask(bed: &Bed, arguments: &[&str]) -> Result<Seen> {
    doctor(Some(&bed.cluster.kubeconfig()), "", arguments)
}

/// The checks before an installation, and the vCenter that they ask: one that locks accounts.
struct Before<'a> {
    bed: &'a Bed,
    proxy: SoapProxy,
    address: String,
    password: String,
}

impl<'a> Before<'a> {
    async fn start(bed: &'a Bed) -> Result<Self> {
        let options = SoapOptions {
            lockout: Some(Lockout::default()),
            ..SoapOptions::default()
        };
        let proxy = SoapProxy::start(&bed.vcenter, options).await?;
        Ok(Self {
            bed,
            address: format!("{}:{}", proxy.host(), proxy.port()),
            password: format!("{}\n", bed.vcenter.password()),
            proxy,
        })
    }

    /// Runs them with the password from a file, or from stdin for `-`.
    fn ask(&self, kubeconfig: Option<&Path>, file: &str, stdin: &str, more: &[&str]) -> Result<Seen> {
        let (address, user) = (self.address.as_str(), self.bed.vcenter.user());
        let own = ["--pre", "--vcenter", address, "--user", user, "--password-file", file];
        doctor(kubeconfig, stdin, &[&own[..], more].concat())
    }

    /// The same with the thumbprint of the vCenter and the password on stdin.
    fn ask_trusting(&self, kubeconfig: &Path, stdin: &str) -> Result<Seen> {
        self.ask(Some(kubeconfig), "-", stdin, &["--thumbprint", &self.proxy.thumbprint_sha256()])
    }

    async fn until_logged_out(&self) -> Result<()> {
        until("all sessions to be logged out", PATIENCE, async || {
            let sessions = self.proxy.sessions();
            Ok(Probe::when(sessions.live == 0, format!("{sessions:?}")))
        })
        .await
    }
}

/// Waits until the operator has logged in with the Secret as it is now: before that, vdoctl sends no password.
async fn until_logged_in(bed: &Bed) -> Result<()> {
    let secret = bed.get("v1", "Secret", NS, "vc1-credentials").await?;
    let version = &secret["metadata"]["resourceVersion"];
    until("the operator to have logged in", PATIENCE, async || {
        let connection = bed.get(VDO, "VsphereCloudConfig", NS, "vc1").await?;
        let verified = &connection["status"]["credential"]["verified"];
        Ok(Probe::when(verified == version, verified))
    })
    .await
}

/// Waits until the operator says this of a check of connection vc1.
async fn until_noticed(bed: &Bed, kind: &str, status: &str) -> Result<()> {
    until(&format!("the operator to say {status} of {kind}"), PATIENCE, async || {
        let found = condition(&bed.get(VDO, "VsphereCloudConfig", NS, "vc1").await?, kind);
        Ok(Probe::when(found["status"] == status, found))
    })
    .await
}

const PRE: [&str; 5] = ["--pre", "--vcenter", "127.0.0.1:1", "--user", "u"];

#[test]
fn usage_error_exits_with_2() -> Result<()> {
    let with = |more: &[&'static str]| [&PRE[..], more].concat();
    for arguments in [
        vec!["--pre"],
        vec!["--pre", "--vcenter", "vc"],
        vec!["--vcenter", "vc"],
        vec!["--user", "u"],
        // Never as an argument.
        with(&["--password", "hunter2"]),
        with(&["--thumbprint", "xyz"]),
        with(&["--insecure", "--ca-file", "x"]),
        with(&["--password-file", "/no/such/file"]),
        with(&["--password-file", "-", "--ca-file", "/no/such/file"]),
        // No terminal, and nothing to read.
        PRE.to_vec(),
        with(&["--password-file", "-"]),
        vec!["connection"],
        vec!["bogus"],
    ] {
        let seen = doctor(None, "", &arguments)?;
        ensure!(
            seen.code == 2 && seen.out.is_empty() && !seen.talk.contains("hunter2'"),
            "{arguments:?}: {}",
            seen.all()
        );
    }
    Ok(())
}

#[test]
fn usage_without_password_says_how_to_give_it() -> Result<()> {
    snap("no_password", &doctor(None, "", &PRE)?);
    Ok(())
}

#[test]
fn usage_without_cluster_says_how_to_name_it() -> Result<()> {
    snap("no_cluster", &doctor(None, "", &[])?);
    Ok(())
}

#[test]
fn before_installation_sound_environment_passes() -> Result<()> {
    EMPTY.run(async |bed| {
        let before = Before::start(bed).await?;
        let seen = before.ask_trusting(&bed.cluster.kubeconfig(), &before.password)?;
        snap("pre", &seen);
        ensure!(seen.code == 0, "{}", seen.all());
        before.until_logged_out().await
    })
}

/// The password comes from a file, and the administrator hears that others may read it.
#[test]
fn before_installation_without_cluster_the_vcenter_is_checked_alone() -> Result<()> {
    EMPTY.run(async |bed| {
        let before = Before::start(bed).await?;
        let file = bed.cluster.dir().join("doctor-password");
        std::fs::write(&file, bed.vcenter.password())?;
        // Whatever the umask is.
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        let print = before.proxy.thumbprint_sha256();
        let seen = before.ask(None, &file.display().to_string(), "", &["--thumbprint", &print])?;
        ensure!(seen.code == 0 && seen.talk.contains("chmod 600"), "{}", seen.all());
        snap("pre_without_a_cluster", &seen);
        before.until_logged_out().await
    })
}

#[test]
fn before_installation_cluster_without_answer_exits_with_5() -> Result<()> {
    EMPTY.run(async |bed| {
        let before = Before::start(bed).await?;
        let nowhere = bed.cluster.dir().join("nowhere.kubeconfig");
        let text = std::fs::read_to_string(bed.cluster.kubeconfig())?.replace(&bed.cluster.server_url(), "https://127.0.0.1:1");
        std::fs::write(&nowhere, text)?;
        let seen = before.ask_trusting(&nowhere, &before.password)?;
        ensure!(seen.code == 5 && seen.out.contains("✓ Authenticated"), "{}", seen.all());
        before.until_logged_out().await
    })
}

/// What to compare is shown.
#[test]
fn before_installation_unknown_certificate_gets_no_password() -> Result<()> {
    EMPTY.run(async |bed| {
        let before = Before::start(bed).await?;
        let logins = before.proxy.logins();
        let seen = before.ask(Some(&bed.cluster.kubeconfig()), "-", &before.password, &[])?;
        snap("pre_unknown_certificate", &seen);
        ensure!(seen.code == 6 && before.proxy.logins() == logins, "{}", seen.all());
        before.until_logged_out().await
    })
}

#[test]
fn before_installation_wrong_password_is_sent_once() -> Result<()> {
    EMPTY.run(async |bed| {
        let before = Before::start(bed).await?;
        let seen = before.ask_trusting(&bed.cluster.kubeconfig(), "wrong\n")?;
        snap("pre_wrong_password", &seen);
        let failed = before.proxy.logins()[bed.vcenter.user()].failed;
        ensure!(seen.code == 6 && failed == 1, "{failed}: {}", seen.all());
        ensure!(!seen.all().contains("wrong\n"));
        before.until_logged_out().await
    })
}

#[test]
fn before_installation_kubelet_that_waits_for_no_cloud_provider_is_named() -> Result<()> {
    EMPTY.run(async |bed| {
        let before = Before::start(bed).await?;
        let taints = bed.get("v1", "Node", "", "w-3").await?["spec"]["taints"].clone();
        ensure!(taints.is_array(), "w-3 waits for no cloud provider");
        bed.merge("v1", "Node", "", "w-3", json!({"spec": {"taints": null}})).await?;
        let seen = before.ask_trusting(&bed.cluster.kubeconfig(), &before.password)?;
        snap("pre_kubelet", &seen);
        ensure!(seen.code == 1, "{}", seen.all());
        let seen = ask(bed, &[])?;
        ensure!(
            seen.code == 3 && seen.out.contains("✗ KubeletsExternal") && seen.out.contains("kubectl taint node w-3"),
            "{}",
            seen.all()
        );
        bed.merge("v1", "Node", "", "w-3", json!({"spec": {"taints": taints}})).await?;
        before.until_logged_out().await
    })
}

#[test]
fn before_installation_without_pre_says_how_to_go_on() -> Result<()> {
    EMPTY.run(async |bed| {
        let seen = ask(bed, &[])?;
        snap("not_deployed", &seen);
        ensure!(seen.code == 3, "{}", seen.all());
        Ok(())
    })
}

#[test]
fn cluster_with_sound_drivers_passes() -> Result<()> {
    OPERATOR.flags(FLAGS).run(async |bed| {
        bed.apply(&bed.secret(bed.vcenter.password())).await?;
        bed.apply(&bed.connection("vc1")).await?;
        // Snapshots need definitions that are not in this cluster.
        let without = json!({"storageProvider": {"values": {"snapshots": {"enabled": false}}}, "cloudProvider": {}});
        bed.apply(&bed.config(without)).await?;
        bed.until_ready().await?;
        let seen = ask(bed, &[])?;
        snap("well", &seen);
        ensure!(seen.code == 0, "{}", seen.all());
        let seen = ask(bed, &["nodes"])?;
        snap("nodes_well", &seen);
        ensure!(seen.code == 0, "{}", seen.all());
        Ok(())
    })
}

/// Two machines are not as they should be.
#[test]
fn machine_faults_are_listed_by_nodes_and_by_connection() -> Result<()> {
    RUNNING.run(async |bed| {
        until_logged_in(bed).await?;
        bed.vcenter
            .set("VirtualMachine", "w-3", &[("disk-uuid", "false"), ("hardware", "vmx-13")])
            .await?;
        bed.vcenter
            .set("VirtualMachine", "w-2", &[("tools", "guestToolsNotRunning")])
            .await?;
        let seen = ask(bed, &["nodes"])?;
        snap("nodes", &seen);
        ensure!(seen.code == 1 && seen.out.contains("disk.enableUUID"), "{}", seen.all());
        let json = ask(bed, &["nodes", "-o", "json"])?.json()?;
        ensure!(
            json["kind"] == "Doctor" && json["apiVersion"] == "vdoctl/v1" && json["exit"] == 1,
            "{json}"
        );
        let sick: Vec<&str> = json["nodes"]
            .as_array()
            .context("nodes")?
            .iter()
            .filter(|n| n["findings"][0].is_object())
            .filter_map(|n| n["node"].as_str())
            .collect();
        ensure!(sick.len() == 2, "{sick:?}");
        let seen = ask(bed, &["connection", "vc1"])?;
        snap("connection", &seen);
        ensure!(seen.code == 1, "{}", seen.all());

        until_noticed(bed, "NodesFound", "False").await?;
        bed.vcenter
            .set("VirtualMachine", "w-3", &[("disk-uuid", "true"), ("hardware", "vmx-19")])
            .await?;
        bed.vcenter.set("VirtualMachine", "w-2", &[("tools", "guestToolsRunning")]).await?;
        until_noticed(bed, "NodesFound", "True").await
    })
}

#[test]
fn missing_privileges_are_listed_with_their_objects() -> Result<()> {
    RUNNING.run(async |bed| {
        until_logged_in(bed).await?;
        bed.vcenter
            .deny(bed.vcenter.user(), &["Cns.Searchable", "Datastore.FileManagement"])
            .await?;
        let seen = ask(bed, &["privileges"])?;
        snap("privileges", &seen);
        ensure!(seen.code == 1, "{}", seen.all());
        let seen = ask(bed, &["privileges", "--surplus"])?;
        ensure!(seen.out.contains("+ has"), "{}", seen.all());

        bed.until_condition("VsphereCloudConfig", "vc1", "Authorized", "PrivilegesMissing")
            .await?;
        bed.vcenter.deny(bed.vcenter.user(), &[]).await?;
        until_noticed(bed, "Ready", "True").await?;
        bed.until_reason("ConnectionsReady", "Healthy").await?;
        Ok(())
    })
}

#[test]
fn connection_that_does_not_exist_exits_with_3() -> Result<()> {
    RUNNING.run(async |bed| {
        let seen = ask(bed, &["connection", "vc2"])?;
        snap("no_such_connection", &seen);
        ensure!(seen.code == 3, "{}", seen.all());
        Ok(())
    })
}

/// However often the checks are made; another password is sent when it is given. The connection is one that no driver has used, so
/// that all logins there are of the operator and of vdoctl.
#[test]
fn connection_with_refused_password_is_not_tried_again() -> Result<()> {
    RUNNING.run(async |bed| {
        let proxy = SoapProxy::start(&bed.vcenter, SoapOptions::default()).await?;
        let mut secret = bed.secret("wrong");
        secret["metadata"]["name"] = "doctor-credentials".into();
        bed.apply(&secret).await?;
        let mut connection = bed.connection("doctor");
        connection["spec"]["port"] = proxy.port().into();
        connection["spec"]["thumbprint"] = proxy.thumbprint_sha256().into();
        connection["spec"]["credentials"] = "doctor-credentials".into();
        bed.apply(&connection).await?;
        bed.until_condition("VsphereCloudConfig", "doctor", "Authenticated", "InvalidCredentials")
            .await?;
        let logins = || proxy.logins().get(bed.vcenter.user()).copied().unwrap_or_default();
        let before = logins();
        for _ in 0..3 {
            let seen = ask(bed, &["connection", "doctor"])?;
            ensure!(seen.code == 6 && seen.out.contains("✗ Authenticated"), "{}", seen.all());
        }
        ensure!(logins() == before, "an attempt was added");
        let seen = doctor(
            Some(&bed.cluster.kubeconfig()),
            bed.vcenter.password(),
            &["connection", "doctor", "--password-file", "-"],
        )?;
        ensure!(seen.out.contains("✓ Authenticated"), "{}", seen.all());
        let after = logins();
        ensure!(
            after
                == Logins {
                    succeeded: before.succeeded + 1,
                    ..before
                },
            "{before:?} {after:?}"
        );
        Ok(())
    })
}

/// The change could be tried out on the API server: doctor only looks, and diff does.
#[test]
fn doctor_with_a_change_to_make_sends_no_dry_run() -> Result<()> {
    RUNNING.run(async |bed| {
        bed.kill_operator();
        let more =
            json!({"storageProvider": {"values": {"snapshots": {"enabled": false}}, "clusterDistribution": "Upstream"}, "cloudProvider": {}});
        bed.apply(&bed.config(more)).await?;
        let mut tried = Vec::new();
        for command in ["doctor", "diff"] {
            let mark = bed.cluster.audit().mark().await?;
            let (_, out, talk) = bed.vdoctl(&[command])?;
            let requests = bed.cluster.audit().since(mark).await?.only(|entry| entry.tries());
            println!("{command}: {} requests with dryRun\n{out}{talk}", requests.len());
            tried.push(requests.len());
        }
        ensure!(tried[0] == 0 && tried[1] > 0, "{tried:?}");
        Ok(())
    })
}

/// One rule to ask for, and not a wall of errors.
#[test]
fn account_without_rights_is_shown_the_missing_rule() -> Result<()> {
    EMPTY.run(async |bed| {
        bed.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "guest", "namespace": NS}}))
            .await?;
        let guest = bed.cluster.service_account_kubeconfig(NS, "guest").await?;
        let seen = doctor(Some(&guest), "", &[])?;
        snap("forbidden", &seen);
        ensure!(seen.code == 4, "{}", seen.all());
        Ok(())
    })
}

#[test]
fn connection_during_vcenter_outage_exits_with_6() -> Result<()> {
    RUNNING.run(async |bed| {
        bed.vcenter.stop();
        let seen = ask(bed, &["connection", "vc1"])?;
        ensure!(seen.code == 6 && seen.out.contains("✗ Connected"), "{}", seen.all());
        until("the operator to have noticed", PATIENCE, async || {
            let object = bed.get(VDO, "VsphereCloudConfig", NS, "vc1").await?;
            Ok(Probe::when(
                condition(&object, "Connected")["status"] != "True",
                object["status"].clone(),
            ))
        })
        .await?;
        bed.vcenter.resume().await?;
        until_noticed(bed, "Ready", "True").await?;
        bed.until_reason("ConnectionsReady", "Healthy").await?;
        Ok(())
    })
}
