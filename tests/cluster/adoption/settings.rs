// SPDX-License-Identifier: Apache-2.0
//! `vdoctl adopt`: the settings of drivers that another tool installed, read from a real API server and created as objects of VDO.

use super::{Tool, reference, running};
use crate::common::{Bed, NS};
use crate::fixture::{EMPTY, OPERATOR};
use crate::foreign_driver::{static_pod, workload};
use crate::page::open;
use crate::pty::{screen_of, too_wide};
use crate::terminals::vdoctl;
use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;

const CONF: &str = "[Global]\ncluster-id = \"prod-1\"\ncnspvcprotection-cleanup-intervalinmin = 77\n[VirtualCenter \"vc01.example.com\"]\nuser = \"k8s@vsphere.local\"\n\
                    password = \"hunter;2\"\ninsecure-flag = \"true\"\nport = \"19846\"\n[Snapshot]\nglobal-max-snapshots-per-block-volume = 12\n";
const YAML: &str = "global: {port: 443, insecureFlag: true, secretName: cpi-creds, secretNamespace: kube-system}\n\
                    vcenter:\n  vc:\n    server: vc01.example.com\n    datacenters: [DC0]\nlabels: {region: k8s-region, zone: k8s-zone}\n";

/// The installation of another tool, with names of its own.
async fn install(bed: &Bed) -> Result<()> {
    let mut cpi = workload("DaemonSet", "kube-system", "rancher-vsphere-cpi");
    cpi["spec"].as_object_mut().unwrap().shift_remove("replicas");
    let pod = &mut cpi["spec"]["template"]["spec"];
    pod["tolerations"] = json!([{"operator": "Exists"}]);
    pod["imagePullSecrets"] = json!([{"name": "pull"}]);
    pod["containers"][0]["image"] = "mirror.example.com/vsphere/cloud-pv-vsphere/cloud-provider-vsphere:v1.34.0".into();
    pod["containers"][0]["args"] = json!(["--cloud-provider=vsphere", "--v=4", "--cloud-config=/etc/cloud/vsphere.yaml"]);
    mount(pod, json!({"configMap": {"name": "vsphere-cloud-config"}}));
    let mut csi = workload("Deployment", "kube-system", "vsphere-csi-controller");
    let pod = &mut csi["spec"]["template"]["spec"];
    pod["containers"][0]["image"] = "mirror.example.com/vsphere/csi-vsphere/driver:v3.6.3".into();
    pod["containers"][0]["env"] =
        json!([{"name": "X_CSI_MODE", "value": "controller"}, {"name": "HTTPS_PROXY", "value": "http://proxy:3128"}]);
    mount(pod, json!({"secret": {"secretName": "vsphere-config-secret"}}));
    let encoded = |text: &str| STANDARD.encode(text);
    for object in [
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vsphere-cloud-config", "namespace": "kube-system"},
            "data": {"vsphere.yaml": YAML}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cpi-creds", "namespace": "kube-system"},
            "data": {"vc01.example.com.username": encoded("k8s@vsphere.local"), "vc01.example.com.password": encoded("hunter;2")}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "vsphere-config-secret", "namespace": "kube-system"},
            "data": {"csi-vsphere.conf": encoded(CONF)}}),
        cpi,
        csi,
    ] {
        bed.apply(&object).await?;
    }
    Ok(())
}

/// A driver that runs beside the workloads of the cluster: a static pod.
async fn without_workloads(bed: &Bed) -> Result<()> {
    bed.apply(&static_pod(bed).await?).await?;
    let (code, _, err) = bed.vdoctl(&["adopt"])?;
    for words in [
        "Pod kube-system/vsphere-ccm-cp",
        "argument --cloud-provider=vsphere",
        "VDO adopts only workloads",
    ] {
        ensure!(code == 4 && err.contains(words), "{words:?}: {code} {err}");
    }
    bed.delete("v1", "Pod", "kube-system", "vsphere-ccm-cp").await
}

fn mount(pod: &mut Value, mut volume: Value) {
    volume["name"] = "config".into();
    pod["volumes"] = json!([volume]);
    pod["containers"][0]["volumeMounts"] = json!([{"name": "config", "mountPath": "/etc/cloud"}]);
}

const VDO: &str = "vdo.vmware.com/v1alpha1";

#[test]
#[ignore = "long"]
fn vdoctl_adopt_shows_settings_and_losses_and_creates_what_was_confirmed() -> Result<()> {
    EMPTY.run(async |bed| {
        let (code, _, err) = bed.vdoctl(&["adopt"])?;
        ensure!(code == 3 && err.contains("no other tool runs a vSphere driver"), "{code} {err}");
        without_workloads(bed).await?;
        install(bed).await?;

        let (code, out, err) = bed.vdoctl(&["adopt"])?;
        ensure!(code == 1, "{code} {out} {err}");
        for words in [
            "vsphere-csi  3.6.3    Deployment kube-system/vsphere-csi-controller",
            "VDOConfig spec.storageProvider.clusterId",
            "Secret kube-system/vsphere-config-secret, csi-vsphere.conf, line 2",
            "csi/global/cnspvcprotection-cleanup-intervalinmin",
            "ConfigMap kube-system/vsphere-cloud-config, vsphere.yaml, line 5",
            // Who has to go first, and how.
            "What the operator would do:",
            "kubectl --namespace kube-system delete daemonset rancher-vsphere-cpi",
        ] {
            ensure!(out.contains(words), "{words:?} is missing:\n{out}");
        }
        ensure!(!out.contains("hunter"), "a password is printed:\n{out}");

        for columns in [80, 40] {
            let screen = screen_of(vdoctl(bed, "adopt")?, columns);
            ensure!(
                too_wide(&screen, columns).is_empty() && screen.contains("Settings that would be lost"),
                "{screen}"
            );
        }
        let (code, _, err) = bed.vdoctl(&["adopt", "--as", "a-tenant"])?;
        ensure!(
            code == 4 && err.contains("you lack the right to list") && err.contains("Ask for a role"),
            "{code} {err}"
        );
        let (code, _, err) = bed.vdoctl(&[
            "adopt",
            "--write",
            "--accept-loss",
            "csi/global/cnspvcprotection-cleanup-intervalinmins",
        ])?;
        ensure!(
            code == 3 && err.contains("Did you mean csi/global/cnspvcprotection-cleanup-intervalinmin?"),
            "{code} {err}"
        );

        let (code, yaml, _) = bed.vdoctl(&["adopt", "-o", "yaml", "--show-secrets"])?;
        ensure!(
            code == 1 && yaml.contains("clusterId: prod-1  # Secret kube-system/vsphere-config-secret, csi-vsphere.conf, line 2"),
            "{yaml}"
        );
        let objects = vdo_api::yaml::load_all(&yaml)?;
        let config = objects.last().unwrap()["spec"].clone();
        ensure!(
            config["images"] == json!({"registry": "mirror.example.com/vsphere", "pullSecrets": ["pull"]}),
            "{config:#}"
        );
        ensure!(config["cloudProvider"]["values"]["logLevel"] == 4, "{config:#}");
        ensure!(
            config["storageProvider"]["values"]["proxy"]["https"] == "http://proxy:3128",
            "{config:#}"
        );

        // Nothing is written while a loss is open.
        let (code, _, err) = bed.vdoctl(&["adopt", "--write", "--yes"])?;
        ensure!(
            code == 1 && err.contains("--accept-loss csi/global/cnspvcprotection-cleanup-intervalinmin"),
            "{code} {err}"
        );
        ensure!(bed.get(VDO, "VDOConfig", NS, "vdo").await?.is_null(), "it was written");
        let (code, out, _) = bed.vdoctl(&["adopt", "-o", "json"])?;
        let view: Value = serde_json::from_str(&out)?;
        ensure!(code == 1, "{view:#}");
        let mut line = vec!["adopt".to_owned(), "--write".to_owned(), "--yes".to_owned()];
        for loss in view["losses"].as_array().unwrap() {
            line.extend(["--accept-loss".to_owned(), loss["key"].as_str().unwrap().to_owned()]);
        }
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let (code, _, err) = bed.vdoctl(&line)?;
        ensure!(code == 0, "{code} {err}");
        for object in &objects {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let live = bed.get(text("/apiVersion"), text("/kind"), NS, text("/metadata/name")).await?;
            ensure!(object["data"] == live["data"], "{object:#} {live:#}");
        }
        let live = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        ensure!(live["spec"]["storageProvider"]["clusterId"] == "prod-1", "{live:#}");
        let (code, _, err) = bed.vdoctl(&line)?;
        ensure!(code == 0 && err.contains("in sync already"), "{code} {err}");

        // What is there already is left as it is.
        let other = json!({"spec": {"vcIp": "other.example.com"}});
        let name = objects.iter().find(|object| object["kind"] == "VsphereCloudConfig").unwrap()["metadata"]["name"]
            .as_str()
            .unwrap();
        bed.merge(VDO, "VsphereCloudConfig", NS, name, other).await?;
        let (code, _, err) = bed.vdoctl(&line)?;
        ensure!(code == 4 && err.contains("already exists and differs"), "{code} {err}");
        Ok(())
    })
}

/// What is said of each object before anything is written: all that is there is taken over, and no pod restarts.
fn picture(view: &Value) -> Result<()> {
    ensure!(view["failedChecks"] == json!([]), "{:#}", view["failedChecks"]);
    let objects = view["plan"]["objects"].as_array().context("a plan")?;
    let workload = |object: &&Value| matches!(object["object"]["kind"].as_str(), Some("DaemonSet" | "Deployment"));
    let workloads: Vec<&Value> = objects.iter().filter(workload).collect();
    ensure!(
        !workloads.is_empty() && workloads.iter().all(|object| object["action"] == "adopt"),
        "{workloads:#?}"
    );
    for driver in view["plan"]["drivers"].as_array().context("drivers")? {
        ensure!(driver["restarts"] == json!([]), "{driver:#}");
    }
    Ok(())
}

/// What docs/taking-over.md says of settings, and of a driver with a changed argument: it runs on, with the same pods.
#[test]
#[ignore = "long"]
fn adoption_of_settings_keeps_pods_and_what_was_set() -> Result<()> {
    OPERATOR.run(async |bed| {
        let mut manifests = reference(bed).await?.manifests;
        for object in manifests.iter_mut().filter(|object| object["kind"] == "DaemonSet") {
            let args = object
                .pointer_mut("/spec/template/spec/containers/0/args")
                .and_then(Value::as_array_mut);
            for arg in args.into_iter().flatten().filter(|arg| **arg == "--v=2") {
                *arg = "--v=4".into();
            }
        }
        bed.delete(VDO, "VsphereCloudConfig", NS, "vc1").await?;
        Tool::Kubectl.install(bed, &manifests).await?;
        let before = running(bed).await?;

        let mut page = open(bed, "taking-over.md")?;
        page.run("vdoctl adopt")?;
        ensure!(bed.owned().await?.is_empty(), "a preview has written");
        let (code, out, err) = bed.vdoctl(&["adopt", "-o", "json"])?;
        let view: Value = serde_json::from_str(&out)?;
        ensure!(code == 0 && view["losses"] == json!([]), "{view:#} {err}");
        picture(&view)?;
        let (_, yaml, _) = bed.vdoctl(&["adopt", "-o", "yaml", "--show-secrets"])?;
        let file = bed.cluster.dir().join("adopted.yaml");
        std::fs::write(&file, yaml)?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
        let (code, out, err) = bed.vdoctl(&["plan", "-f", &file.display().to_string()])?;
        ensure!(code == 1 && err.contains("to adopt"), "{code} {out} {err}");
        let (code, out, err) = bed.vdoctl(&["adopt", "-o", "name"])?;
        ensure!(code == 0 && out.contains("vdoconfig.vdo.vmware.com/vdo"), "{out} {err}");
        let (code, _, err) = bed.vdoctl(&["adopt", "--write"])?;
        ensure!(code == 4 && err.contains("no terminal on which to confirm"), "{code} {err}");
        let (code, _, err) = bed.vdoctl(&["adopt", "--write", "--yes"])?;
        ensure!(code == 0, "{code} {err}");
        let config = bed.until_ready().await?;
        ensure!(config["spec"]["cloudProvider"]["values"]["logLevel"] == 4, "{config:#}");
        ensure!(running(bed).await? == before, "pods were restarted");
        bed.uninstall().await
    })
}
