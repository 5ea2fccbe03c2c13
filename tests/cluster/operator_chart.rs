// SPDX-License-Identifier: Apache-2.0
//! The operator's Helm chart and the overlays of deploy/ on a real control plane: what its API server says of them, and the life of a
//! release. No operator runs; kwok plays its pods.

mod make;

use crate::fixture::BARE;
use crate::page::{commands, open};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use vdo_testbed::{Binaries, Cluster, Helm, Part};

const NAMESPACE: &str = "vmware-system-vdo";
/// As little of the Prometheus operator's definitions as the API server needs to know the kinds; their fields are not checked.
const MONITORING: [(&str, &str); 2] = [("ServiceMonitor", "servicemonitors"), ("PrometheusRule", "prometheusrules")];

pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A user of kubectl, whose current context is this cluster.
pub(super) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    pub(super) fn of(cluster: &Cluster) -> Result<Self> {
        Ok(Self {
            program: Binaries::ensure(&[Part::Kubectl])?.path(Part::Kubectl),
            kubeconfig: cluster.kubeconfig(),
        })
    }

    pub(super) fn try_run(&self, args: &[&str], input: &str) -> Result<Output> {
        let mut child = Command::new(&self.program)
            .env("KUBECONFIG", &self.kubeconfig)
            .current_dir(root())
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().context("stdin")?;
        let input = input.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output()?;
        // kubectl may end before it has read everything.
        let _ = writer.join();
        Ok(output)
    }

    pub(super) fn run(&self, args: &[&str]) -> Result<String> {
        let output = self.try_run(args, "")?;
        ensure!(
            output.status.success(),
            "kubectl {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// An object, or null.
    pub(super) fn get(&self, kind: &str, name: &str) -> Result<Value> {
        let text = self.run(&["get", kind, name, "-n", NAMESPACE, "-o", "json", "--ignore-not-found"])?;
        if text.is_empty() {
            Ok(Value::Null)
        } else {
            Ok(serde_json::from_str(&text)?)
        }
    }

    /// What the API server says of these objects, of which none is stored.
    fn judge(&self, objects: &[Value]) -> Result<Result<(), String>> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let args = [
            "apply",
            "--server-side",
            "--dry-run=server",
            "--validate=strict",
            "--force-conflicts",
            "-f",
            "-",
        ];
        let output = self.try_run(&args, &list.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(if output.status.success() { Ok(()) } else { Err(said) })
    }
}

fn documents(text: &str) -> Result<Vec<Value>> {
    let all = vdo_api::yaml::load_all(text)?;
    Ok(all.into_iter().filter(|object| !object.is_null()).collect())
}

/// The pod that the Deployment among these objects would create.
fn pod(objects: &[Value]) -> Result<Value> {
    let deployment = objects
        .iter()
        .find(|object| object["kind"] == "Deployment")
        .context("no Deployment")?;
    let mut pod = deployment["spec"]["template"].clone();
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = "vdo-operator-0".into();
    pod["metadata"]["namespace"] = NAMESPACE.into();
    Ok(pod)
}

fn chart() -> String {
    root().join("deploy/chart").to_string_lossy().into_owned()
}

/// Each listed combination of values and each overlay, with its objects.
async fn variants(kubectl: &Kubectl, helm: &Helm) -> Result<Vec<(String, Vec<Value>)>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(root().join("deploy/chart/ci"))? {
        let values = entry?.path().to_string_lossy().into_owned();
        let usual = ["template", "vdo", &chart(), "--namespace", NAMESPACE, "--kube-version", "1.34.0"];
        let text = helm.run(&[&usual[..], &["--values", &values]].concat()).await?;
        all.push((values, documents(&text)?));
    }
    for overlay in ["before-1.30", "bootstrap", "metrics-auth", "mirror"] {
        let text = kubectl.run(&["kustomize", &format!("overlays/{overlay}")])?;
        all.push((format!("overlay {overlay}"), documents(&text)?));
    }
    Ok(all)
}

#[test]
#[ignore = "long"]
fn operator_chart_listed_values_and_overlays_are_valid_for_the_api_server() -> Result<()> {
    BARE.run(async |bed| {
        let cluster = &bed.cluster;
        let (kubectl, helm) = (Kubectl::of(cluster)?, Helm::of(cluster).await?);
        kubectl.run(&["apply", "--server-side", "-f", "deploy/namespace.yaml"])?;
        kubectl.run(&["apply", "--server-side", "-k", "deploy"])?;
        for (kind, plural) in MONITORING {
            cluster.apply_yaml(&definition(kind, plural).to_string()).await?;
        }
        for (variant, objects) in variants(&kubectl, &helm).await? {
            if let Err(said) = kubectl.judge(&objects)? {
                bail!("{variant}: {said}");
            }
            let mut wrong = objects.clone();
            let deployment = wrong
                .iter_mut()
                .find(|object| object["kind"] == "Deployment")
                .context("no Deployment")?;
            deployment["spec"]["replicaz"] = 1.into();
            let said = kubectl.judge(&wrong)?.expect_err("an unknown field is refused");
            ensure!(said.contains("replicaz"), "{variant}: {said}");

            // The namespace admits the pod, and with the network of the node only the namespace of that overlay does.
            let pod = pod(&objects)?;
            let on_the_host = pod["spec"]["hostNetwork"] == true;
            match kubectl.judge(std::slice::from_ref(&pod))? {
                Ok(()) => ensure!(!on_the_host, "{variant}: restricted admits the network of the node"),
                Err(said) => ensure!(on_the_host && said.contains("violates PodSecurity"), "{variant}: {said}"),
            }
            if on_the_host {
                kubectl.run(&["apply", "--server-side", "-f", "overlays/bootstrap/namespace.yaml"])?;
                let said = kubectl.judge(&[pod])?;
                ensure!(said.is_ok(), "{variant}: {said:?}");
                kubectl.run(&["apply", "--server-side", "-f", "deploy/namespace.yaml"])?;
            }
        }
        let mirrored = std::fs::read_to_string(root().join("overlays/mirror/vdoconfig.yaml"))?;
        let said = kubectl.judge(&documents(&mirrored)?)?;
        ensure!(said.is_ok(), "{said:?}");
        Ok(())
    })
}

fn definition(kind: &str, plural: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

/// One release from its first day to its second installation, with a VDOConfig all the time.
#[test]
#[ignore = "long"]
fn operator_chart_uninstall_keeps_vdoconfig_and_next_install_continues() -> Result<()> {
    BARE.run(async |bed| {
        let cluster = &bed.cluster;
        let (kubectl, helm) = (Kubectl::of(cluster)?, Helm::of(cluster).await?);
        let release = async |verb: &str, chart: &str, more: &[&str]| {
            let usual = [verb, "vdo", chart, "--namespace", NAMESPACE, "--wait", "--timeout", "2m"];
            helm.run(&[&usual, more].concat()).await
        };
        // As docs/install.md has it, but for the place of the chart.
        let (typed, chart_here) = (commands("install.md", "With Helm")?.join(" "), chart());
        let here = |word| if word == "deploy/chart" { chart_here.as_str() } else { word };
        let words: Vec<&str> = typed.split_whitespace().skip(1).map(here).collect();
        let notes = helm.run(&[&words[..], &["--wait", "--timeout", "2m"]].concat()).await?;
        ensure!(notes.contains("vdoctl deploy") && notes.contains(NAMESPACE), "{notes}");
        ensure!(
            kubectl.get("deployment", "vdo-operator")?["status"]["readyReplicas"] == 1,
            "the pod runs"
        );

        cluster.apply_file(root().join("deploy/samples/vdoconfig.yaml")).await?;
        let config = kubectl.get("vdoconfig", "vdo")?;
        ensure!(config["metadata"]["uid"].is_string(), "{config}");
        let same_config = |when: &str| {
            let now = kubectl.get("vdoconfig", "vdo")?;
            ensure!(now == config, "{when}: {now}");
            Ok(())
        };

        let folder = tempfile::tempdir()?;
        let next = next_version(folder.path())?;
        release("upgrade", &next, &["--set", "replicas=2"]).await?;
        ensure!(column(&kubectl)? == "Next", "helm upgrade upgrades the definitions");
        ensure!(
            kubectl.get("pdb", "vdo-operator")?["spec"]["maxUnavailable"] == 1,
            "two replicas have a budget"
        );
        same_config("after the upgrade")?;

        // As docs/monitoring.md has it, where the Prometheus operator is.
        for (kind, plural) in MONITORING {
            cluster.apply_yaml(&definition(kind, plural).to_string()).await?;
        }
        open(bed, "monitoring.md")?.set("VDO", root().display()).run("helm upgrade")?;
        for (kind, plural) in MONITORING {
            ensure!(!kubectl.get(plural, "vdo-operator")?.is_null(), "no {kind}");
        }
        ensure!(column(&kubectl)? == "Health", "the definitions are those of the chart");

        let drivers = documents(&std::fs::read_to_string(root().join("deploy/drivers-rbac.yaml"))?)?;
        let stored = |kubectl: &Kubectl| -> Result<Vec<String>> {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": drivers});
            let output = kubectl.try_run(&["get", "-f", "-", "-o", "jsonpath={.items[*].metadata.uid}"], &list.to_string())?;
            ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Ok(String::from_utf8(output.stdout)?.split(' ').map(str::to_owned).collect())
        };
        let rights = stored(&kubectl)?;
        ensure!(rights.len() == drivers.len(), "{rights:?}");

        helm.run(&["uninstall", "vdo", "--namespace", NAMESPACE, "--wait"]).await?;
        for (kind, name) in [
            ("deployment", "vdo-operator"),
            ("serviceaccount", "vdo-operator"),
            ("clusterrole", "vdo-operator"),
            ("service", "vdo-operator"),
            ("networkpolicy", "vdo-operator"),
            ("pdb", "vdo-operator"),
        ] {
            ensure!(kubectl.get(kind, name)?.is_null(), "{kind} {name} is left");
        }
        same_config("after the uninstallation")?;
        ensure!(stored(&kubectl)? == rights, "the drivers' rights are what they were");

        release("install", &chart(), &[]).await?;
        ensure!(column(&kubectl)? == "Health", "the definitions are those of the chart again");
        ensure!(
            kubectl.get("deployment", "vdo-operator")?["status"]["readyReplicas"] == 1,
            "the pod runs again"
        );
        same_config("after the second installation")?;
        ensure!(stored(&kubectl)? == rights, "the drivers' rights are what they were");
        Ok(())
    })
}

/// A copy of the chart with another definition of VDOConfig.
fn next_version(folder: &Path) -> Result<String> {
    let copied = Command::new("cp").arg("-R").arg(chart()).arg(folder).status()?;
    ensure!(copied.success(), "the chart is not copied");
    let chart = folder.join("chart");
    let file = chart.join("files/crds/vdo.vmware.com_vdoconfigs.yaml");
    let text = std::fs::read_to_string(&file)?;
    let changed = text.replace("      name: Health\n", "      name: Next\n");
    ensure!(changed != text, "the definition is as before");
    std::fs::write(&file, changed)?;
    Ok(chart.to_string_lossy().into_owned())
}

/// The column of VDOConfigs that is called `Next` in that version.
fn column(kubectl: &Kubectl) -> Result<Value> {
    Ok(kubectl.get("crd", "vdoconfigs.vdo.vmware.com")?["spec"]["versions"][0]["additionalPrinterColumns"][1]["name"].clone())
}

#[test]
#[ignore = "long"]
fn operator_chart_takes_over_what_kubectl_applied_when_asked_to() -> Result<()> {
    BARE.run(async |bed| {
        let cluster = &bed.cluster;
        let (kubectl, helm) = (Kubectl::of(cluster)?, Helm::of(cluster).await?);
        kubectl.run(&["apply", "--server-side", "-f", "deploy/namespace.yaml"])?;
        kubectl.run(&["apply", "--server-side", "-k", "deploy"])?;
        cluster.apply_file(root().join("deploy/samples/vdoconfig.yaml")).await?;
        let config = kubectl.get("vdoconfig", "vdo")?;
        let chart = chart();
        let install = ["install", "vdo", &chart, "--namespace", NAMESPACE];
        let refused = helm.run(&install).await.expect_err("objects of no release").to_string();
        ensure!(refused.contains("invalid ownership metadata"), "{refused}");
        helm.run(&[&install[..], &["--take-ownership"]].concat()).await?;
        let deployment = kubectl.get("deployment", "vdo-operator")?;
        ensure!(
            deployment["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm",
            "{}",
            deployment["metadata"]
        );
        ensure!(kubectl.get("vdoconfig", "vdo")? == config, "the VDOConfig is untouched");
        Ok(())
    })
}
