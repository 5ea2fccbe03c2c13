// SPDX-License-Identifier: Apache-2.0
//! `vdoctl events` and `vdoctl logs` against an installation.

use crate::common::Bed;
use crate::common::PATIENCE;
use crate::fixture::{EMPTY, INSTALLED};
use crate::install::until_at_rest;
use anyhow::{Context as _, Result, bail, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use vdo_testbed::{Probe, until};

fn failed(bed: &Bed, args: &[&str], code: i32, says: &[&str]) -> Result<()> {
    let (ended, out, err) = bed.vdoctl(args)?;
    let silent = says.iter().find(|part| !err.contains(**part));
    ensure!(
        ended == code && silent.is_none(),
        "{args:?}: {ended}, {silent:?} is missing\n{out}{err}"
    );
    Ok(())
}

#[test]
fn events_are_those_of_the_operator_and_its_drivers() -> Result<()> {
    INSTALLED.run(async |bed| {
        for (name, namespace, kind, object) in [
            ("of-csi", "vmware-system-csi", "Warning", "vsphere-csi-node-x"),
            ("of-cpi", "kube-system", "Normal", "vsphere-cloud-controller-manager"),
            ("of-another", "kube-system", "Warning", "coredns"),
        ] {
            let about = json!({"kind": "Pod", "namespace": namespace, "name": object});
            bed.apply(
                &json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": namespace},
                "involvedObject": about, "type": kind, "reason": "OfATest", "message": "seen", "count": 3}),
            )
            .await?;
        }
        let (code, out, err) = bed.vdoctl(&["events", "-o", "json"])?;
        let document: Value = serde_json::from_str(&out)?;
        let of_test = |document: &Value| -> Vec<String> {
            let all = document["events"].as_array().into_iter().flatten();
            all.filter(|event| event["reason"] == "OfATest")
                .map(|event| event["name"].as_str().unwrap_or_default().to_owned())
                .collect()
        };
        let mut names = of_test(&document);
        names.sort();
        ensure!(
            code == 0 && names == ["vsphere-cloud-controller-manager", "vsphere-csi-node-x"],
            "{code} {names:?}\n{out}{err}"
        );
        ensure!(out.contains("\"VDOConfig\""), "{out}");
        let (_, out, err) = bed.vdoctl(&["events", "--warnings", "-o", "json"])?;
        ensure!(of_test(&serde_json::from_str(&out)?) == ["vsphere-csi-node-x"], "{out}{err}");
        let (_, out, _) = bed.vdoctl(&["events"])?;
        ensure!(
            out.contains("LAST SEEN") && out.contains("pod/vsphere-csi-node-x") && out.contains("(x3)"),
            "{out}"
        );
        Ok(())
    })
}

/// The next steps follow from what is in the cluster.
#[test]
#[ignore = "long"]
fn vdoctl_without_a_verb_names_steps_that_suit_the_cluster() -> Result<()> {
    let shows = |bed: &Bed, says: &[&str]| {
        let (code, out, err) = bed.vdoctl(&[])?;
        let silent = says.iter().find(|part| !out.contains(**part));
        ensure!(code == 0 && silent.is_none(), "{code}, {silent:?} is missing\n{out}{err}");
        Ok(())
    };
    EMPTY.run(async |bed| shows(bed, &["VDO is not deployed in cluster testbed", "vdoctl doctor --pre"]))?;
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        shows(bed, &["the drivers are healthy", "vdoctl upgrade plan"])?;
        bed.vdoctl(&["pause"])?;
        until("the operator to see the pause", PATIENCE, async || {
            let paused = shows(bed, &["Management is paused", "vdoctl resume"]);
            Ok(Probe::when(paused.is_ok(), format!("{paused:?}")))
        })
        .await?;
        bed.vdoctl(&["resume"])?;
        until_at_rest(bed).await
    })
}

/// Does this while the kubelet of w-1 is in reach. Another test of the same cluster expects that it is not.
async fn in_reach(bed: &Bed, work: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    let addresses = bed.get("v1", "Node", "", "w-1").await?["status"]["addresses"].clone();
    bed.cluster.bring_kubelet_into_reach("w-1").await?;
    work().await?;
    let before = json!({"status": {"addresses": addresses}});
    let nodes = bed.api("v1", "Node", "");
    nodes.patch_status("w-1", &PatchParams::default(), &Patch::Merge(&before)).await?;
    Ok(())
}

/// Whether a text has a time with a fraction of a second, such as 07:52:58.43Z.
fn has_fraction(text: &str) -> bool {
    text.split(':').any(|part| {
        let after = part.get(2..).unwrap_or_default();
        let is_second = part.len() > 3 && part[..2].bytes().all(|byte| byte.is_ascii_digit());
        is_second && after.starts_with('.') && after[1..].starts_with(|digit: char| digit.is_ascii_digit())
    })
}

/// Of one revision, of a support bundle and in the report; programs get all that is known.
#[test]
fn times_that_people_read_have_no_fraction_of_a_second() -> Result<()> {
    INSTALLED.run(async |bed| {
        ensure!(has_fraction("at 2026-11-25T07:52:58.43357148Z") && !has_fraction("at 2026-11-25T07:52:58Z, 10.0.0.1:22"));
        until_at_rest(bed).await?;
        let folder = tempfile::tempdir()?;
        let bundle = folder.path().join("bundle.tgz").display().to_string();
        let (code, _, err) = bed.vdoctl(&["support-bundle", "-o", &bundle])?;
        ensure!(code == 0, "{code}\n{err}");
        let (_, history, _) = bed.vdoctl(&["history", "csi", "-o", "json"])?;
        let history: Value = serde_json::from_str(&history)?;
        let revision = history["drivers"][0]["revisions"][0]["number"].to_string();
        for args in [
            &["history"][..],
            &["history", "csi", &revision],
            &["status"],
            &["status", "--from", &bundle],
            &["doctor", "--from", &bundle],
            &["events"],
            &["report", "--html", "-"],
            &["report", "--html", "-", "--from", &bundle],
        ] {
            let (code, out, err) = bed.vdoctl(args)?;
            ensure!(code <= 1 && !out.is_empty(), "{args:?}: {code}\n{out}{err}");
            let fraction = out.lines().chain(err.lines()).find(|line| has_fraction(line));
            ensure!(fraction.is_none(), "{args:?}: {fraction:?}");
        }
        Ok(())
    })
}

/// Lines come as they are logged, and an interrupted command ends.
#[test]
fn logs_that_are_followed_show_lines_as_they_come() -> Result<()> {
    INSTALLED.run(async |bed| {
        bed.cluster.containers_say("what it says", "before")?;
        in_reach(bed, async || follow(bed).await).await
    })
}

async fn follow(bed: &Bed) -> Result<()> {
    let mut following = tokio::process::Command::new(vdo_testbed::vdoctl())
        .arg("--kubeconfig")
        .arg(bed.cluster.kubeconfig())
        .args(["logs", "w-1", "--follow", "--tail", "1", "--container", "vsphere-csi-node"])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(following.stdout.take().context("stdout")?).lines();
    let mut until_line = async |expected: &str| -> Result<()> {
        let look = async {
            while let Some(line) = lines.next_line().await? {
                if line.starts_with("[vsphere-csi-node-") && line.ends_with(expected) {
                    return Ok(());
                }
            }
            bail!("it ended before it showed {expected:?}")
        };
        tokio::time::timeout(PATIENCE, look).await?
    };
    until_line("/vsphere-csi-node] what it says").await?;
    bed.cluster.containers_also_say("what came later")?;
    until_line("/vsphere-csi-node] what came later").await?;
    // A command in a log is text of others: it gets no flag of this command line.
    bed.cluster.containers_also_say("hint: kubectl get pods")?;
    until_line("/vsphere-csi-node] hint: kubectl get pods").await?;
    let process = nix::unistd::Pid::from_raw(i32::try_from(following.id().context("it runs")?)?);
    nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGINT)?;
    let ended = tokio::time::timeout(PATIENCE, following.wait()).await??;
    ensure!(ended.code() == Some(130), "{ended}");
    Ok(())
}

/// Logs of a node that is in reach; of others each log is named that cannot be read.
#[test]
fn logs_are_those_of_a_driver_or_a_node() -> Result<()> {
    INSTALLED.run(async |bed| {
        let named = async |args: &[&str], has: &[&str], lacks: &str| {
            let (code, out, err) = bed.vdoctl(args)?;
            let missing = has.iter().find(|part| !err.contains(**part));
            ensure!(
                code == 1 && missing.is_none() && !err.contains(lacks),
                "{args:?}: {code} {missing:?}\n{out}{err}"
            );
            Ok(())
        };
        let csi = [
            "vmware-system-csi/vsphere-csi-controller-",
            "vsphere-csi-node-",
            " vsphere-syncer: ",
        ];
        named(&["logs", "csi", "--tail", "3"], &csi, "vsphere-cloud-controller").await?;
        named(&["logs", "w-1"], &["vsphere-csi-node-", "https://w-1:"], "https://w-2:").await?;
        bed.cluster.containers_say("what it says", "what the one before it said")?;
        in_reach(bed, async || {
            for (more, said) in [("--tail=5", "what it says"), ("--previous", "what the one before it said")] {
                let (code, out, err) = bed.vdoctl(&["logs", "w-1", more])?;
                let title = " vsphere-csi-node on w-1\n";
                ensure!(
                    code == 0 && out.contains(title) && out.contains(said) && !out.contains("on w-2"),
                    "{more}: {code}\n{out}{err}"
                );
            }
            Ok(())
        })
        .await?;
        failed(bed, &["logs", "w-77"], 3, &["w-77", "cpi, csi, or a node", "w-1"])?;
        failed(
            bed,
            &["logs", "csi", "--container", "none"],
            3,
            &["no pod of csi has a container none", "Available: "],
        )?;
        failed(bed, &["logs", "csi", "--tail", "0"], 2, &["--tail"])
    })
}
