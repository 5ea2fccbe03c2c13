//! `vdoctl doctor` as its users meet it: as a process, before an installation and after it, with what is wrong made wrong.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod bed;

use anyhow::{Context, Result, ensure};
use bed::{Bed, NS, PATIENCE};
use insta::{assert_snapshot, with_settings};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use vdo_testbed::soap::{Lockout, SoapOptions, SoapProxy};
use vdo_testbed::{Logins, Probe, until};

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
    let mut command = Command::new(env!("CARGO_BIN_EXE_vdoctl"));
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
    for word in text.split_inclusive([' ', '\n', '"', ',', ';']) {
        let (own, end) = word.split_at(word.len() - 1);
        let core = own.trim_end_matches(['.', ':', ')']);
        let port = core
            .rsplit_once(':')
            .filter(|(_, port)| port.len() >= 4 && port.chars().all(|c| c.is_ascii_digit()));
        match port {
            _ if own.matches(':').count() > 15 => out.push('…'),
            _ if own.starts_with("/tmp/") => out.push_str("/tmp/…"),
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

#[test]
fn what_makes_no_sense_ends_with_2() -> Result<()> {
    let pre = ["--pre", "--vcenter", "127.0.0.1:1", "--user", "u"];
    let with = |more: &[&'static str]| [&pre[..], more].concat();
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
        pre.to_vec(),
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
    snap("no_password", &doctor(None, "", &pre)?);
    snap("no_cluster", &doctor(None, "", &[])?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn before_an_installation() -> Result<()> {
    bed::prepare();
    let bed = Bed::start().await?;
    let options = SoapOptions {
        lockout: Some(Lockout::default()),
        ..SoapOptions::default()
    };
    let proxy = SoapProxy::start(&bed.vcenter, options).await?;
    let address = format!("{}:{}", proxy.host(), proxy.port());
    let print = proxy.thumbprint_sha256();
    let kubeconfig = bed.cluster.kubeconfig();
    let with = |more: &[&str]| -> Vec<String> {
        let pre = ["--pre", "--vcenter", &address, "--user", bed.vcenter.user(), "--password-file", "-"];
        pre.iter().chain(more).map(|word| (*word).to_owned()).collect()
    };
    let ask = |kubeconfig: Option<&Path>, stdin: &str, more: &[&str]| {
        let arguments = with(more);
        doctor(kubeconfig, stdin, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let password = format!("{}\n", bed.vcenter.password());
    let trusted = ["--thumbprint", print.as_str()];

    let seen = ask(Some(&kubeconfig), &password, &trusted)?;
    snap("pre", &seen);
    ensure!(seen.code == 0, "{}", seen.all());
    // A file of one's own works as well, and one that others may read is spoken of.
    let file = bed.cluster.dir().join("password");
    std::fs::write(&file, bed.vcenter.password())?;
    let name = file.display().to_string();
    let arguments = [
        "--pre",
        "--vcenter",
        &address,
        "--user",
        bed.vcenter.user(),
        "--thumbprint",
        &print,
        "--password-file",
        &name,
    ];
    let seen = doctor(None, "", &arguments)?;
    ensure!(seen.code == 0 && seen.talk.contains("chmod 600"), "{}", seen.all());
    snap("pre_without_a_cluster", &seen);
    // The cluster is named and does not answer.
    let nowhere: PathBuf = bed.cluster.dir().join("nowhere.kubeconfig");
    let text = std::fs::read_to_string(&kubeconfig)?.replace(&bed.cluster.server_url(), "https://127.0.0.1:1");
    std::fs::write(&nowhere, text)?;
    let seen = ask(Some(&nowhere), &password, &trusted)?;
    ensure!(seen.code == 5 && seen.out.contains("✓ Authenticated"), "{}", seen.all());

    // A certificate that nobody knows: what to compare is shown, and no password is sent.
    let before = proxy.logins();
    let seen = ask(Some(&kubeconfig), &password, &[])?;
    snap("pre_unknown_certificate", &seen);
    ensure!(seen.code == 6 && proxy.logins() == before, "{}", seen.all());
    // A wrong password costs one attempt.
    let seen = ask(Some(&kubeconfig), "wrong\n", &trusted)?;
    snap("pre_wrong_password", &seen);
    let failed = proxy.logins()[bed.vcenter.user()].failed;
    ensure!(seen.code == 6 && failed == 1, "{failed}: {}", seen.all());
    ensure!(!seen.all().contains("wrong\n"));
    // A kubelet that waits for nobody.
    bed.merge("v1", "Node", "", "w-3", json!({"spec": {"taints": null}})).await?;
    let seen = ask(Some(&kubeconfig), &password, &trusted)?;
    snap("pre_kubelet", &seen);
    ensure!(seen.code == 1, "{}", seen.all());

    // Nothing is deployed: that is said, and how to go on.
    let seen = doctor(Some(&kubeconfig), "", &[])?;
    snap("not_deployed", &seen);
    ensure!(seen.code == 3, "{}", seen.all());
    ensure!(proxy.sessions().live == 0, "{:?}", proxy.sessions());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_installation() -> Result<()> {
    bed::prepare();
    let mut bed = Bed::start().await?;
    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    bed.apply(&bed.connection("vc1")).await?;
    // Snapshots need definitions that are not in this cluster.
    let without = json!({"storageProvider": {"values": {"snapshots": {"enabled": false}}}, "cloudProvider": {}});
    bed.apply(&bed.config(without)).await?;
    bed.start_operator().await?;
    bed.until_ready().await?;
    let kubeconfig = bed.cluster.kubeconfig();
    let ask = |arguments: &[&str]| doctor(Some(&kubeconfig), "", arguments);

    let seen = ask(&[])?;
    snap("well", &seen);
    ensure!(seen.code == 0, "{}", seen.all());
    let seen = ask(&["nodes"])?;
    snap("nodes_well", &seen);
    ensure!(seen.code == 0, "{}", seen.all());

    // Two machines that are not as they should be.
    bed.vcenter
        .set("VirtualMachine", "w-3", &[("disk-uuid", "false"), ("hardware", "vmx-13")])
        .await?;
    bed.vcenter
        .set("VirtualMachine", "w-2", &[("tools", "guestToolsNotRunning")])
        .await?;
    let seen = ask(&["nodes"])?;
    snap("nodes", &seen);
    ensure!(seen.code == 1 && seen.out.contains("disk.enableUUID"), "{}", seen.all());
    let json = ask(&["nodes", "-o", "json"])?.json()?;
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
    let seen = ask(&["connection", "vc1"])?;
    snap("connection", &seen);
    ensure!(seen.code == 1, "{}", seen.all());

    bed.vcenter
        .deny(bed.vcenter.user(), &["Cns.Searchable", "Datastore.FileManagement"])
        .await?;
    let seen = ask(&["privileges"])?;
    snap("privileges", &seen);
    ensure!(seen.code == 1, "{}", seen.all());
    let seen = ask(&["privileges", "--surplus"])?;
    ensure!(seen.out.contains("+ has"), "{}", seen.all());
    bed.vcenter.deny(bed.vcenter.user(), &[]).await?;

    let seen = ask(&["connection", "vc2"])?;
    snap("no_such_connection", &seen);
    ensure!(seen.code == 3, "{}", seen.all());

    // A password that was refused is not sent again, however often somebody asks; another one is, when it is given.
    bed.apply(&bed.secret("wrong")).await?;
    bed.until_condition("VsphereCloudConfig", "vc1", "Authenticated", "InvalidCredentials")
        .await?;
    let user = bed.vcenter.user().to_owned();
    let logins = async || anyhow::Ok(bed.vcenter.logins().await?.get(&user).copied().unwrap_or_default());
    let before = logins().await?;
    for _ in 0..3 {
        let seen = ask(&["connection", "vc1"])?;
        ensure!(seen.code == 6 && seen.out.contains("✗ Authenticated"), "{}", seen.all());
    }
    ensure!(logins().await? == before, "an attempt was added");
    let seen = doctor(
        Some(&kubeconfig),
        bed.vcenter.password(),
        &["connection", "vc1", "--password-file", "-"],
    )?;
    ensure!(seen.out.contains("✓ Authenticated"), "{}", seen.all());
    let after = logins().await?;
    ensure!(
        after
            == Logins {
                succeeded: before.succeeded + 1,
                ..before
            },
        "{before:?} {after:?}"
    );

    // Who only looks rehearses nothing, even where there is something to do; a diff does.
    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    bed.until_condition("VsphereCloudConfig", "vc1", "Authenticated", "Healthy").await?;
    bed.kill_operator();
    let more =
        json!({"storageProvider": {"values": {"snapshots": {"enabled": false}}, "clusterDistribution": "Upstream"}, "cloudProvider": {}});
    bed.apply(&bed.config(more)).await?;
    let mut rehearsed = Vec::new();
    for command in ["doctor", "diff"] {
        let mark = bed.cluster.audit().mark().await?;
        let (_, out, talk) = bed.vdoctl(&[command])?;
        let tried = bed.cluster.audit().since(mark).await?.only(|entry| entry.tries());
        println!("{command}: {} requests with dryRun\n{out}{talk}", tried.len());
        rehearsed.push(tried.len());
    }
    ensure!(rehearsed[0] == 0 && rehearsed[1] > 0, "{rehearsed:?}");
    bed.flags.push(("connection-interval", "2s"));
    bed.start_operator().await?;
    bed.until_ready().await?;

    // Somebody with few rights sees what is missing, not a wall.
    bed.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "guest", "namespace": NS}}))
        .await?;
    let guest = bed.cluster.service_account_kubeconfig(NS, "guest").await?;
    let seen = doctor(Some(&guest), "", &[])?;
    snap("forbidden", &seen);
    ensure!(seen.code == 4, "{}", seen.all());

    // The vCenter is away: the drivers are not, and the operator's word on them stays.
    bed.vcenter.stop();
    let seen = ask(&["connection", "vc1"])?;
    ensure!(seen.code == 6 && seen.out.contains("✗ Connected"), "{}", seen.all());
    until("the operator to have noticed", PATIENCE, async || {
        let object = bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1").await?;
        Ok(Probe::when(
            bed::condition(&object, "Connected")["status"] != "True",
            object["status"].clone(),
        ))
    })
    .await?;
    Ok(())
}
