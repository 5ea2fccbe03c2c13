// SPDX-License-Identifier: Apache-2.0
//! The operator from its image, with what deploy/ gives it: file system, user, service account, probes, restarts and end.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE, image};
use crate::fixture::{IMAGES, alone};
use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vdo_testbed::{ContainerRun, Isolation, Probe, until};

const ACCOUNT: &str = "var/run/secrets/kubernetes.io/serviceaccount";

/// The folder of a process, whose `root` is the root file system that it sees.
fn process(run: &ContainerRun) -> Result<PathBuf> {
    Ok(Path::new("/proc").join(run.pid.context("the operator does not run")?.to_string()))
}

/// A line of the process's status, such as `Uid`.
fn field(process: &Path, name: &str) -> Result<String> {
    let text = std::fs::read_to_string(process.join("status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(line.with_context(|| format!("no {name}"))?.trim().to_owned())
}

/// What a token says about itself.
fn claims(token: &str) -> Result<Value> {
    let body = token.split('.').nth(1).context("a token has three parts")?;
    Ok(serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body)?)?)
}

fn signal(run: &ContainerRun, signal: nix::sys::signal::Signal) -> Result<()> {
    let pid = i32::try_from(run.pid.context("the operator does not run")?)?;
    Ok(nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal)?)
}

async fn holder(bed: &Bed) -> Result<Value> {
    let lease = bed.get("coordination.k8s.io/v1", "Lease", "kube-system", "vdo-operator").await?;
    Ok(lease["spec"]["holderIdentity"].clone())
}

/// The events of the operator's pods with this reason.
async fn events(bed: &Bed, reason: &str) -> Result<Vec<String>> {
    let all = bed.list("v1", "Event", "").await?;
    let ours = all
        .iter()
        .filter(|event| event["involvedObject"]["namespace"] == NS && event["reason"] == reason);
    Ok(ours.map(|event| event["message"].as_str().unwrap_or_default().to_owned()).collect())
}

/// Only the pod's user, no capability, and nothing that it could write to.
fn ensure_is_confined(run: &ContainerRun) -> Result<()> {
    let process = process(run)?;
    // The one user of its namespace, and the user outside that it is.
    for (map, id) in [("uid_map", "65532"), ("gid_map", "65532")] {
        let text = std::fs::read_to_string(process.join(map))?;
        let words: Vec<&str> = text.split_whitespace().collect();
        ensure!(matches!(words[..], [inside, _, "1"] if inside == id), "{map}: {text}");
    }
    for (name, wanted) in [("CapEff", "0000000000000000"), ("CapPrm", "0000000000000000"), ("NoNewPrivs", "1")] {
        assert_eq!(field(&process, name)?, wanted, "{name}");
    }
    let root = process.join("root");
    for place in ["new", "etc/new", "etc/passwd", "var/run/secrets/kubernetes.io/serviceaccount/token"] {
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(root.join(place));
        let kind = opened.err().map(|error| error.kind());
        ensure!(kind == Some(ErrorKind::ReadOnlyFilesystem), "{place} can be written to: {kind:?}");
    }
    let mut names: Vec<_> = std::fs::read_dir(&root)?.flatten().map(|entry| entry.file_name()).collect();
    // The libraries of the program.
    names.retain(|name| !name.to_string_lossy().starts_with("lib"));
    names.sort();
    assert_eq!(
        names,
        ["dev", "etc", "proc", "usr", "var"],
        "what is in the image, and where the kubelet mounts"
    );
    Ok(())
}

#[test]
#[ignore = "long"]
fn operator_image_with_deployed_manifests_runs_confined_and_survives_a_kill() -> Result<()> {
    IMAGES.run(async |bed| {
        bed.deploy().await?;
        let (pod, run) = bed.until_operator_pod_is_ready(0).await?;
        assert_eq!(pod["spec"]["nodeName"], "cp-1");
        match bed.agent.isolation() {
            Isolation::Namespaces => ensure_is_confined(&run)?,
            Isolation::None(why) => println!("SKIPPED: needs user namespaces: user and root file system of the operator ({why})"),
        }
        if bed.agent.isolation() == Isolation::Namespaces {
            let account = process(&run)?.join("root").join(ACCOUNT);
            let token = claims(&std::fs::read_to_string(account.join("token"))?)?;
            assert_eq!(token["kubernetes.io"]["pod"]["uid"], pod["metadata"]["uid"]);
            assert_eq!(token["kubernetes.io"]["serviceaccount"]["name"], "vdo-operator");
            assert_eq!(std::fs::read_to_string(account.join("namespace"))?, NS);
        }

        bed.apply_samples().await?;
        bed.until_ready().await?;
        assert_eq!(holder(bed).await?, pod["metadata"]["name"], "the Lease is held by the pod's name");

        signal(&run, nix::sys::signal::Signal::SIGKILL)?;
        let (restarted, again) = bed.until_operator_pod_is_ready(1).await?;
        assert_eq!(restarted["metadata"]["uid"], pod["metadata"]["uid"], "the same pod");
        let last = &restarted["status"]["containerStatuses"][0]["lastState"]["terminated"];
        assert_eq!(last["exitCode"], 137, "{last}");
        assert_ne!(run.pid, again.pid);
        let change = json!({"spec": {"storageProvider": {"clusterDistribution": "after-the-kill"}}});
        bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", change).await?;
        bed.until_ready().await?;

        bed.delete("apps/v1", "Deployment", NS, "vdo-operator").await?;
        until("the operator's pod to be gone", PATIENCE, async || {
            Ok(Probe::when(bed.operator_pod().await?.is_null(), "it is there"))
        })
        .await?;
        assert_eq!(holder(bed).await?, "", "an operator that is asked to end frees the Lease");
        ensure!(bed.operator_containers().is_empty(), "its process is left");
        Ok(())
    })
}

#[test]
#[ignore = "long"]
fn operator_image_that_cannot_be_pulled_is_reported_until_it_can() -> Result<()> {
    IMAGES.run(async |bed| {
        let reference = image::reference()?;
        bed.agent.withdraw_image(&reference);
        bed.deploy().await?;
        until("the pod to wait for its image", PATIENCE, async || {
            let state = bed.operator_pod().await?["status"]["containerStatuses"][0]["state"].clone();
            Ok(Probe::when(state["waiting"]["reason"] == "ImagePullBackOff", state))
        })
        .await?;
        let failed = events(bed, "Failed").await?;
        ensure!(failed.iter().any(|message| message.contains(&reference)), "{failed:?}");
        ensure!(failed.contains(&"Error: ErrImagePull".to_owned()), "{failed:?}");
        bed.agent.serve_image(&reference, &image::layout()?).await?;
        bed.until_operator_pod_is_ready(0).await?;
        Ok(())
    })
}

/// A pod is ready when the operator reports readiness, and restarted when it does not answer.
#[test]
#[ignore = "long"]
fn operator_image_probes_decide_about_readiness_and_restarts() -> Result<()> {
    IMAGES.run(async |bed| {
        bed.deploy().await?;
        let probe = |path: &str| json!({"httpGet": {"path": path, "port": "http"}, "periodSeconds": 1, "failureThreshold": 2});
        let mut liveness = probe("/healthz");
        liveness["terminationGracePeriodSeconds"] = 1.into();
        let change = |readiness: &str| {
            let container = json!({"name": "operator", "livenessProbe": liveness, "readinessProbe": probe(readiness)});
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "vdo-operator", "namespace": NS},
                "spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}, "template": {"spec": {"containers": [container]}}}})
        };
        let patch = async |change: Value| -> Result<()> {
            let api = bed.api("apps/v1", "Deployment", NS);
            let params = kube::api::PatchParams::default();
            api.patch("vdo-operator", &params, &kube::api::Patch::Strategic(change)).await?;
            Ok(())
        };
        patch(change("/never")).await?;
        until("a pod whose readiness probe has failed", PATIENCE, async || {
            let failed = events(bed, "Unhealthy").await?;
            Ok(Probe::when(
                failed.iter().any(|message| message.contains("statuscode: 404")),
                format!("{failed:?}"),
            ))
        })
        .await?;
        let pod = bed.operator_pod().await?;
        assert_eq!(pod["status"]["phase"], "Running");
        assert_eq!(crate::common::condition(&pod, "Ready")["status"], "False");

        patch(change("/readyz")).await?;
        let (_, run) = bed.until_operator_pod_is_ready(0).await?;
        signal(&run, nix::sys::signal::Signal::SIGSTOP)?;
        bed.until_operator_pod_is_ready(1).await?;
        let killed = events(bed, "Killing").await?;
        let message = "Container operator failed liveness probe, will be restarted";
        ensure!(killed.contains(&message.to_owned()), "{killed:?}");
        Ok(())
    })
}

/// Where a machine permits no namespaces, everything but the confinement is still shown.
#[test]
#[ignore = "long"]
fn operator_image_without_namespaces_runs_with_the_account_of_its_pod() -> Result<()> {
    alone(async || {
        let bed = Bed::start_for_images().await?;
        bed.agent.forbid_namespaces();
        bed.deploy().await?;
        let mark = bed.cluster.audit().mark().await?;
        let (pod, run) = bed.until_operator_pod_is_ready(0).await?;
        ensure!(matches!(bed.agent.isolation(), Isolation::None(_)));
        // Its root file system is hidden, as it must not be dumped; the path of its program is one of this machine.
        let command = std::fs::read_to_string(process(&run)?.join("cmdline"))?;
        ensure!(command.starts_with(&*bed.cluster.dir().to_string_lossy()), "{command:?}");
        // A follower is ready, too.
        until("the pod to hold the Lease", PATIENCE, async || {
            let holder = holder(&bed).await?;
            Ok(Probe::when(holder == pod["metadata"]["name"], format!("{holder} holds it")))
        })
        .await?;
        let asked = bed.cluster.audit().since(mark).await?.of(crate::common::OPERATOR);
        ensure!(!asked.is_empty(), "it asked nothing under its account");
        let address = run.ports.get(&8080).context("its port")?;
        let mut stream = tokio::time::timeout(Duration::from_secs(5), tokio::net::TcpStream::connect(address)).await??;
        tokio::io::AsyncWriteExt::shutdown(&mut stream).await?;
        Ok(())
    })
}
