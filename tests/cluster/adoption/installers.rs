// SPDX-License-Identifier: Apache-2.0
//! The drivers as other installers bring them, with their own manifests: recognised by what they run, and named with the way out.

use super::{kubectl, manifests_of_others};
use crate::common::Bed;
use crate::fixture::EMPTY;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// An installer, by the files of its manifests.
struct Installer {
    files: &'static [&'static str],
    /// The configuration that the cluster's administrator brings: kind, namespace, name, key and content.
    configured: &'static [[&'static str; 5]],
    /// Workloads that run a driver, each with its version.
    runs: &'static [(&'static str, &'static str)],
    /// What is in the way of VDO's own, by commands that take it out of the way; nothing where it is adopted.
    out_of_the_way: &'static [&'static str],
}

const YAML: &str =
    "global: {port: 443, insecureFlag: true}\nvcenter: {vc: {server: vc01.example.com, user: k8s@vsphere.local, password: secret}}\n";
const CONF: &str = "[Global]\ncluster-id = \"default/cluster\"\n[VirtualCenter \"vc01.example.com\"]\nuser = \"k8s@vsphere.local\"\npassword = \"secret\"\n";

impl Installer {
    fn configuration(&self) -> Vec<Value> {
        let object = |[kind, namespace, name, key, content]: &[&str; 5]| {
            let data = if *kind == "Secret" { "stringData" } else { "data" };
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, data: {*key: content}})
        };
        self.configured.iter().map(object).collect()
    }
}

const INSTALLERS: [Installer; 4] = [
    Installer {
        files: &["installers/rancher-cpi.yaml", "installers/rancher-csi.yaml"],
        configured: &[],
        runs: &[
            ("DaemonSet kube-system/rancher-vsphere-cpi-cloud-controller-manager", "1.34.0"),
            ("Deployment kube-system/vsphere-csi-controller", "3.7.2"),
            ("DaemonSet kube-system/vsphere-csi-node", "3.7.2"),
        ],
        out_of_the_way: &[
            "rancher-vsphere-cpi-cloud-controller-manager",
            "vsphere-csi-controller",
            "vsphere-csi-node",
        ],
    },
    Installer {
        files: &["installers/upstream-cpi.yaml"],
        configured: &[],
        runs: &[("DaemonSet kube-system/vsphere-cpi", "1.36.0")],
        out_of_the_way: &["vsphere-cpi"],
    },
    Installer {
        files: &["installers/capv-cpi.yaml"],
        configured: &[["ConfigMap", "kube-system", "cloud-config", "vsphere.conf", YAML]],
        runs: &[("DaemonSet kube-system/vsphere-cpi", "1.37.0-rc.0")],
        out_of_the_way: &["vsphere-cpi"],
    },
    Installer {
        files: &["installers/capv-csi-ns.yaml", "installers/capv-csi.yaml"],
        configured: &[["Secret", "vmware-system-csi", "vsphere-config-secret", "csi-vsphere.conf", CONF]],
        runs: &[
            ("Deployment vmware-system-csi/vsphere-csi-controller", "3.3.1"),
            ("DaemonSet vmware-system-csi/vsphere-csi-node", "3.3.1"),
        ],
        out_of_the_way: &[],
    },
];

fn view(bed: &Bed, args: &[&str]) -> Result<Value> {
    let (_, out, err) = bed.vdoctl(args)?;
    serde_json::from_str(&out).with_context(|| format!("{out}{err}"))
}

/// What is shown before anything is written.
fn pictured(bed: &Bed, installer: &Installer) -> Result<()> {
    let view = view(bed, &["adopt", "-o", "json"])?;
    let workloads = view["workloads"].as_array().context("workloads")?;
    for (workload, version) in installer.runs {
        let found = workloads.iter().find(|one| {
            let object = &one["object"];
            let text = |key: &str| object[key].as_str().unwrap_or_default();
            format!("{} {}/{}", text("kind"), text("namespace"), text("name")) == *workload
        });
        let found = found.with_context(|| format!("{workload} is not in {workloads:#?}"))?;
        ensure!(found["version"] == *version, "{found:#}");
    }
    let failed = view["failedChecks"].as_array().context("failed checks")?;
    let foreign = failed.iter().find(|check| check["check"] == "NoForeignDriver");
    let said = foreign.map(|check| check["message"].to_string()).unwrap_or_default();
    ensure!(foreign.is_some() != installer.out_of_the_way.is_empty(), "{failed:#?}");
    for name in installer.out_of_the_way {
        let commands = [format!("delete daemonset {name}"), format!("scale deployment {name} --replicas 0")];
        let named = commands.iter().any(|command| said.contains(command)) || said.contains("helm uninstall");
        ensure!(named, "no command for {name} in {said}");
    }
    Ok(())
}

#[test]
#[ignore = "needs VDO_UPSTREAM_DIR, a folder with the manifests of installers"]
fn adoption_pictures_each_installer_and_names_the_way_out() -> Result<()> {
    EMPTY.run(async |bed| {
        for installer in &INSTALLERS {
            let mut objects = manifests_of_others(installer.files)?;
            objects.extend(installer.configuration());
            kubectl(bed, &["apply", "-f", "-"], &objects)?;
            pictured(bed, installer).with_context(|| installer.files.join(" and "))?;
            // A namespace that is still being deleted takes no objects of what comes next.
            kubectl(bed, &["delete", "--ignore-not-found", "--timeout=60s", "-f", "-"], &objects)?;
        }
        Ok(())
    })
}
