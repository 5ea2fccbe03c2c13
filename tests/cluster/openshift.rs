// SPDX-License-Identifier: Apache-2.0
//! OpenShift, played with its own definitions: what it runs itself is left to it, and what it asks of pods is given to the drivers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod image;
mod proposal;

use crate::common::{Bed, NODES, NS, PATIENCE, condition};
use crate::fixture::{INSTALLED, alone, written};
use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::path::Path;
use vdo_testbed::{Binaries, Part, Probe, until};

const VDO: &str = "vdo.vmware.com/v1alpha1";
const CONFIG: &str = "config.openshift.io/v1";
const OPERATOR: &str = "operator.openshift.io/v1";
const RBAC: &str = "rbac.authorization.k8s.io/v1";
const CSI: &str = "csi.vsphere.vmware.com";
/// Where OpenShift's storage drivers are.
const ITS_DRIVERS: &str = "openshift-cluster-csi-drivers";
const CSI_NS: &str = "vmware-system-csi";

/// A cluster with the definitions of OpenShift, the rights that it asks for, and no operator yet.
async fn cluster() -> Result<Bed> {
    let bed = Bed::start().await?;
    for file in Binaries::ensure(&[Part::Kubectl])?.openshift_definitions()? {
        bed.cluster.apply_file(file).await?;
    }
    let rights = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/openshift-rbac.yaml");
    bed.cluster.apply_file(rights).await?;
    Ok(bed)
}

/// Makes an object of OpenShift, with the status that its operators would write.
async fn play(bed: &Bed, api_version: &str, kind: &str, name: &str, spec: Value, status: Value) -> Result<()> {
    bed.apply(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}))
        .await?;
    let change = Patch::Merge(json!({"status": status}));
    bed.api(api_version, kind, "")
        .patch_status(name, &PatchParams::default(), &change)
        .await
        .with_context(|| format!("status of {kind} {name}"))?;
    Ok(())
}

async fn platform(bed: &Bed, platform: Value) -> Result<()> {
    let spec = json!({"cloudConfig": {"name": ""}, "platformSpec": {"type": platform["type"]}});
    let status = json!({"infrastructureName": "ocp-x7k2p", "platform": platform["type"], "platformStatus": platform,
        "apiServerURL": "https://api.example.com:6443", "apiServerInternalURI": "https://api-int.example.com:6443",
        "controlPlaneTopology": "HighlyAvailable", "infrastructureTopology": "HighlyAvailable"});
    play(bed, CONFIG, "Infrastructure", "cluster", spec, status).await
}

async fn version(bed: &Bed, version: &str) -> Result<()> {
    let spec = json!({"clusterID": "6f8d1f4e-0000-4000-8000-000000000000"});
    let status = json!({"desired": {"version": version, "image": "registry.example.com/release"}, "observedGeneration": 1, "versionHash": "x",
        "availableUpdates": [], "history": [], "capabilities": {}});
    play(bed, CONFIG, "ClusterVersion", "version", spec, status).await
}

/// The storage driver that OpenShift runs.
async fn its_storage_driver(bed: &Bed) -> Result<()> {
    bed.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ITS_DRIVERS}}))
        .await?;
    for (kind, name) in [
        ("Deployment", "vmware-vsphere-csi-driver-controller"),
        ("DaemonSet", "vmware-vsphere-csi-driver-node"),
    ] {
        let labels = json!({"app": name});
        // Its annotation is that of all objects that OpenShift's operators apply.
        let metadata = json!({"name": name, "namespace": ITS_DRIVERS, "annotations": {"operator.openshift.io/spec-hash": "1"}});
        bed.apply(
            &json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {"selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "csi-driver", "image": "example.com/csi:1"}]}}}}),
        )
        .await?;
    }
    bed.apply(
        &json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": CSI, "annotations": {"csi.openshift.io/managed": "true"}},
        "spec": {"attachRequired": true, "podInfoOnMount": false}}),
    )
    .await
}

/// What OpenShift's cloud provider does to the nodes.
async fn initialised(bed: &Bed) -> Result<()> {
    for (name, _) in NODES {
        let change = json!({"spec": {"providerID": format!("vsphere://{name}"), "taints": []}});
        bed.merge("v1", "Node", "", name, change).await?;
    }
    Ok(())
}

async fn switch(bed: &Bed, state: &str) -> Result<()> {
    let spec = json!({"managementState": state, "logLevel": "Normal", "operatorLogLevel": "Normal"});
    bed.apply(&json!({"apiVersion": OPERATOR, "kind": "ClusterCSIDriver", "metadata": {"name": CSI}, "spec": spec}))
        .await
}

/// A connection, and a VDOConfig with this specification.
async fn ask(bed: &Bed, spec: Value) -> Result<()> {
    bed.apply(&bed.secret(bed.vcenter.password())).await?;
    bed.apply(&bed.connection("vc1")).await?;
    bed.apply(&bed.config(spec)).await
}

/// Waits until the condition says that OpenShift is in the way, with these words.
async fn until_refused(bed: &Bed, words: &[&str]) -> Result<()> {
    until(&format!("NoForeignDriver to say {words:?}"), PATIENCE, async || {
        let found = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "NoForeignDriver");
        let message = found["message"].as_str().unwrap_or_default();
        let said = found["status"] == "False" && found["reason"] == "NotOurs" && words.iter().all(|word| message.contains(word));
        Ok(Probe::when(said, &found))
    })
    .await
}

async fn constraint(bed: &Bed, kind: &str, name: &str) -> Result<Value> {
    let workload = bed.get("apps/v1", kind, CSI_NS, name).await?;
    Ok(workload["spec"]["template"]["metadata"]["annotations"]["openshift.io/required-scc"].clone())
}

/// OpenShift's storage driver is there: nothing is written, until it is switched off and gone. Then VDO's is installed, with the constraints that
/// its pods need; a binding that is taken away is named, and tears nothing down.
#[test]
#[ignore = "long"]
fn openshift_storage_driver_is_left_alone_until_it_is_removed_and_gone() -> Result<()> {
    alone(async || {
        let mut bed = cluster().await?;
        platform(&bed, json!({"type": "VSphere", "vsphere": {}})).await?;
        version(&bed, "4.18.3").await?;
        initialised(&bed).await?;
        switch(&bed, "Managed").await?;
        its_storage_driver(&bed).await?;
        bed.start_operator().await?;
        let mark = bed.cluster.audit().mark().await?;
        ask(&bed, json!({"storageProvider": {}})).await?;
        until_refused(
            &bed,
            &[
                "OpenShift 4.18.3 runs the storage driver itself (ClusterCSIDriver csi.vsphere.vmware.com: Managed)",
                "kubectl patch clustercsidriver csi.vsphere.vmware.com --type=merge",
            ],
        )
        .await?;
        switch(&bed, "Unmanaged").await?;
        until_refused(&bed, &["Unmanaged"]).await?;
        // As the message says, and no other way.
        let found = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "NoForeignDriver");
        let message = found["message"].as_str().unwrap_or_default();
        let command = message
            .split("to switch off the installed driver: ")
            .nth(1)
            .and_then(|rest| rest.split(';').next());
        crate::page::run(&bed, command.context("no command")?)?;
        until_refused(
            &bed,
            &[
                "Deployment openshift-cluster-csi-drivers/vmware-vsphere-csi-driver-controller",
                "DaemonSet openshift-cluster-csi-drivers/vmware-vsphere-csi-driver-node",
                "CSIDriver csi.vsphere.vmware.com",
            ],
        )
        .await?;
        bed.delete("apps/v1", "Deployment", ITS_DRIVERS, "vmware-vsphere-csi-driver-controller")
            .await?;
        bed.delete("storage.k8s.io/v1", "CSIDriver", "", CSI).await?;
        until("only the DaemonSet to be waited for", PATIENCE, async || {
            let found = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "NoForeignDriver");
            let message = found["message"].as_str().unwrap_or_default();
            let done = message.contains("still exist: DaemonSet") && !message.contains("Deployment");
            Ok(Probe::when(done, &found))
        })
        .await?;
        let early = written(&bed, mark).await?;
        ensure!(early.is_empty(), "beside OpenShift's driver it wrote:\n{early}");
        bed.delete("apps/v1", "DaemonSet", ITS_DRIVERS, "vmware-vsphere-csi-driver-node")
            .await?;
        bed.until_ready().await?;
        assert_eq!(constraint(&bed, "Deployment", "vsphere-csi-controller").await?, "nonroot-v2");
        assert_eq!(constraint(&bed, "DaemonSet", "vsphere-csi-node").await?, "privileged");
        let binding = "vsphere-csi-node-scc-privileged";
        let mark = bed.cluster.audit().mark().await?;
        bed.delete(RBAC, "RoleBinding", CSI_NS, binding).await?;
        bed.until_reason("Ready", "RightsMissing").await?;
        let (code, lacking, _) = bed.vdoctl(&["rights", "--missing"])?;
        ensure!(code == 0 && lacking.contains(binding), "{lacking}");
        let touched = written(&bed, mark).await?;
        ensure!(touched.is_empty(), "without a binding it wrote:\n{touched}");
        bed.cluster.apply_yaml(&lacking).await?;
        bed.until_ready().await?;
        // OpenShift's driver is switched on again: VDO's is kept, and the condition says what that means.
        switch(&bed, "Managed").await?;
        until_refused(&bed, &["OpenShift would refuse every upgrade"]).await?;
        ensure!(
            bed.get("apps/v1", "DaemonSet", CSI_NS, "vsphere-csi-node").await? != Value::Null,
            "a driver that runs was removed"
        );
        Ok(())
    })
}

/// The cloud provider is OpenShift's on vSphere, and is not asked on most other platforms.
#[test]
#[ignore = "long"]
fn openshift_cloud_provider_is_installed_only_where_one_is_expected() -> Result<()> {
    alone(async || {
        let mut bed = cluster().await?;
        platform(&bed, json!({"type": "VSphere", "vsphere": {}})).await?;
        version(&bed, "4.18.3").await?;
        bed.start_operator().await?;
        let mark = bed.cluster.audit().mark().await?;
        ask(&bed, json!({"cloudProvider": {}})).await?;
        until_refused(
            &bed,
            &[
                "OpenShift 4.18.3 runs the cloud provider itself",
                "platform VSphere",
                "spec.storageProvider",
            ],
        )
        .await?;
        platform(&bed, json!({"type": "None"})).await?;
        until_refused(&bed, &["platform None"]).await?;
        let early = written(&bed, mark).await?;
        ensure!(early.is_empty(), "where no cloud provider is expected it wrote:\n{early}");
        let external = json!({"type": "External", "external": {"cloudControllerManager": {"state": "External"}}});
        platform(&bed, external).await?;
        bed.until_ready().await?;
        let cpi = bed
            .get("apps/v1", "DaemonSet", "kube-system", "vsphere-cloud-controller-manager")
            .await?;
        assert_eq!(
            cpi["spec"]["template"]["metadata"]["annotations"]["openshift.io/required-scc"], "privileged",
            "{cpi}"
        );
        Ok(())
    })
}

/// Pods that the API server refuses, as one of OpenShift does without a constraint, are reported in its words: also those of a DaemonSet, which has
/// no condition that has the cause.
#[test]
#[ignore = "long"]
fn pods_that_are_refused_are_reported_in_the_words_of_the_api_server() -> Result<()> {
    const ADMISSION: &str = "admissionregistration.k8s.io/v1";
    INSTALLED.run(async |bed| {
        let refused = "unable to validate against any security context constraint";
        bed.apply(
            &json!({"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "no-node-plugin"}, "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
            "validations": [{"expression": "!object.metadata.generateName.startsWith('vsphere-csi-node')", "message": refused}]}}),
        )
        .await?;
        bed.apply(
            &json!({"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "no-node-plugin"}, "spec": {
            "policyName": "no-node-plugin", "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": CSI_NS}}}}}),
        )
        .await?;
        until("pods to be refused", PATIENCE, async || {
            for pod in bed.list("v1", "Pod", "app=vsphere-csi-node").await? {
                let name = pod["metadata"]["name"].as_str().unwrap_or_default();
                bed.delete("v1", "Pod", CSI_NS, name).await?;
            }
            let left = bed.list("v1", "Pod", "app=vsphere-csi-node").await?.len();
            Ok(Probe::when(left == 0, format!("{left} pods are there")))
        })
        .await?;
        until("the refusal in the condition", PATIENCE, async || {
            let found = condition(&bed.get(VDO, "VDOConfig", NS, "vdo").await?, "StorageReady");
            let message = found["message"].as_str().unwrap_or_default();
            let said = message.contains("DaemonSet vmware-system-csi/vsphere-csi-node cannot create its pods") && message.contains(refused);
            Ok(Probe::when(said && found["reason"] == "PodsFailing", &found))
        })
        .await?;
        for kind in ["ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"] {
            bed.delete(ADMISSION, kind, "", "no-node-plugin").await?;
        }
        // The DaemonSet controller tries again only minutes after so many refusals.
        let restart = json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}}}}});
        bed.merge("apps/v1", "DaemonSet", CSI_NS, "vsphere-csi-node", restart).await?;
        bed.until_ready().await?;
        Ok(())
    })
}

/// A version of OpenShift means the Kubernetes in it.
#[test]
#[ignore = "long"]
fn upgrade_plan_for_openshift_is_that_of_its_kubernetes() -> Result<()> {
    INSTALLED.run(async |bed| {
        let (openshift, kubernetes) = (
            bed.vdoctl(&["upgrade", "plan", "--openshift", "4.22"])?,
            bed.vdoctl(&["upgrade", "plan", "--kubernetes", "1.35"])?,
        );
        ensure!(
            openshift == kubernetes && openshift.1.contains("1.35"),
            "{openshift:?}\n{kubernetes:?}"
        );
        let (code, _, reported) = bed.vdoctl(&["upgrade", "plan", "--openshift", "3.11"])?;
        ensure!(
            code == 2 && reported.contains("is not a version of OpenShift"),
            "{code}: {reported}"
        );
        Ok(())
    })
}
