// SPDX-License-Identifier: Apache-2.0
//! The same with the manifests of the installers themselves, and the configuration of this vCenter.

use super::super::{kubectl, manifests_of_others};
use super::{Brought, CLUSTER_ID, SNAPSHOTS, follow};
use crate::common::Bed;
use crate::fixture::OPERATOR;
use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use vdo_testbed::former::of_release;

/// What an administrator writes for the CSI driver.
fn ini(bed: &Bed) -> String {
    let (host, port) = (bed.vcenter.host(), bed.vcenter.port());
    let quoted = |text: &str| text.replace('\\', r"\\").replace('"', "\\\"");
    let (user, password) = (quoted(bed.vcenter.user()), quoted(bed.vcenter.password()));
    format!(
        "[Global]\ncluster-id = \"{CLUSTER_ID}\"\n[VirtualCenter \"{host}\"]\nuser = \"{user}\"\npassword = \"{password}\"\nport = \"{port}\"\n\
         insecure-flag = \"true\"\ndatacenters = \"DC0\"\n[Snapshot]\n{SNAPSHOTS} = 12\n"
    )
}

/// And for the cloud provider.
fn yaml(bed: &Bed) -> String {
    let (host, port) = (bed.vcenter.host(), bed.vcenter.port());
    let vcenter = json!({"server": host, "user": bed.vcenter.user(), "password": bed.vcenter.password(), "datacenters": ["DC0"]});
    json!({"global": {"port": port, "insecureFlag": true}, "vcenter": {"vc": vcenter}}).to_string()
}

/// The Secret that the documentation of the CSI driver has people create.
fn secret() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "vsphere-config-secret", "namespace": "vmware-system-csi"},
        "data": {"csi-vsphere.conf": ""}})
}

/// What the cluster lacks of the manifests, leading to this vCenter.
async fn leading(bed: &Bed, all: Vec<Value>) -> Result<Vec<Value>> {
    let mut new = Vec::new();
    for mut object in all {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (kind, named) = (text("/kind"), text("/metadata/name"));
        // Namespaces and rights of drivers are in the cluster already, some by the names that installers give them.
        let is_shared = kind == "Namespace" || text("/apiVersion").starts_with("rbac.");
        let is_there = is_shared && bed.get(&text("/apiVersion"), &kind, &text("/metadata/namespace"), &named).await? != Value::Null;
        match is_there {
            true if kind.ends_with("Binding") => object["metadata"]["name"] = format!("{named}:of-the-installer").into(),
            true => continue,
            false => {}
        }
        for key in ["vsphere.conf", "vsphere.yaml"] {
            if kind == "ConfigMap" && object["data"][key].is_string() {
                object["data"][key] = yaml(bed).into();
            }
        }
        if object["data"]["csi-vsphere.conf"].is_string() {
            object["data"]["csi-vsphere.conf"] = STANDARD.encode(ini(bed)).into();
        }
        new.push(object);
    }
    Ok(new)
}

#[test]
#[ignore = "needs VDO_UPSTREAM_DIR, a folder with the manifests of installers"]
fn adoption_of_upstream_rancher_is_followed_to_the_removal() -> Result<()> {
    OPERATOR.run(async |bed| {
        // RKE2 labels its nodes so, and its charts ask for the value.
        let role = "node-role.kubernetes.io/control-plane";
        kubectl(
            bed,
            &["label", "node", "--overwrite", "--selector", role, &format!("{role}=true")],
            &[],
        )?;
        let objects = leading(
            bed,
            manifests_of_others(&["installers/rancher-cpi.yaml", "installers/rancher-csi.yaml"])?,
        )
        .await?;
        let release = |object: Value| {
            let is_cpi = object["metadata"]["name"]
                .as_str()
                .is_some_and(|name| name.contains("cpi") || name.contains("cloud"));
            of_release(object, if is_cpi { "rancher-vsphere-cpi" } else { "vsphere-csi" })
        };
        let brought = Brought {
            objects: objects.into_iter().map(release).collect(),
            manager: Some("helm"),
            by: &[
                "Helm release kube-system/rancher-vsphere-cpi",
                "Helm release kube-system/vsphere-csi",
                "Helm release kube-system/vsphere-csi",
            ],
            is_moved: true,
            is_different: true,
            ..Brought::default()
        };
        follow(bed, &brought).await?;
        kubectl(bed, &["label", "node", "--overwrite", "--selector", role, &format!("{role}=")], &[])
    })
}

#[test]
#[ignore = "needs VDO_UPSTREAM_DIR, a folder with the manifests of installers"]
fn adoption_of_upstream_chart_of_the_cloud_provider_is_followed_to_the_removal() -> Result<()> {
    OPERATOR.run(async |bed| {
        let objects = leading(bed, manifests_of_others(&["installers/upstream-cpi.yaml"])?).await?;
        let brought = Brought {
            objects: objects.into_iter().map(|object| of_release(object, "vsphere-cpi")).collect(),
            manager: Some("helm"),
            by: &["Helm release kube-system/vsphere-cpi"],
            is_moved: true,
            is_different: true,
            ..Brought::default()
        };
        follow(bed, &brought).await
    })
}

/// Its CSI driver is too old for the cluster, and is upgraded where it is.
#[test]
#[ignore = "needs VDO_UPSTREAM_DIR, a folder with the manifests of installers"]
fn adoption_of_upstream_cluster_api_is_followed_to_the_removal() -> Result<()> {
    OPERATOR.run(async |bed| {
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cloud-config", "namespace": "kube-system"},
            "data": {"vsphere.conf": ""}});
        let mut all = manifests_of_others(&["installers/capv-cpi.yaml", "installers/capv-csi.yaml"])?;
        all.extend([config, secret()]);
        let brought = Brought {
            objects: leading(bed, all).await?,
            manager: Some("manager"),
            by: &["field manager manager"; 4],
            is_moved: true,
            is_different: true,
            pin: Some("cloudProvider.version=1.34.0"),
            ..Brought::default()
        };
        follow(bed, &brought).await
    })
}

/// What the documentation of both drivers has people apply, in two versions.
fn upstream(csi: &str, cpi: &str) -> Result<()> {
    let mut all = manifests_of_others(&[
        format!("cloud-provider-vsphere/{cpi}/vsphere-cloud-controller-manager.yaml"),
        format!("vsphere-csi-driver/{csi}/vsphere-csi-driver.yaml"),
    ])?;
    all.push(secret());
    // Upstream's webhook waits for a certificate that is not there.
    all.retain(|object| object["metadata"]["name"] != "vsphere-webhook-svc" && object["metadata"]["name"] != "vsphere-csi-webhook");
    OPERATOR.run(async |bed| {
        let brought = Brought {
            objects: leading(bed, all.clone()).await?,
            by: &["kubectl apply"; 4],
            is_different: true,
            ..Brought::default()
        };
        follow(bed, &brought).await
    })
}

#[test]
#[ignore = "needs VDO_UPSTREAM_DIR, a folder with the drivers' own manifests"]
fn adoption_of_upstream_3_6_3_is_followed_to_the_removal() -> Result<()> {
    upstream("3.6.3", "1.34.0")
}

#[test]
#[ignore = "needs VDO_UPSTREAM_DIR, a folder with the drivers' own manifests"]
fn adoption_of_upstream_3_8_0_is_followed_to_the_removal() -> Result<()> {
    upstream("3.8.0", "1.34.0")
}

#[test]
#[ignore = "needs VDO_UPSTREAM_DIR, a folder with the drivers' own manifests"]
fn adoption_of_upstream_3_7_0_is_followed_to_the_removal() -> Result<()> {
    upstream("3.7.0", "1.32.3")
}

#[test]
#[ignore = "needs VDO_UPSTREAM_DIR, a folder with the drivers' own manifests"]
fn adoption_of_upstream_3_3_1_is_followed_to_the_removal() -> Result<()> {
    upstream("3.3.1", "1.30.1")
}

#[test]
#[ignore = "needs VDO_UPSTREAM_DIR, a folder with the drivers' own manifests"]
fn adoption_of_upstream_2_7_3_is_followed_to_the_removal() -> Result<()> {
    upstream("2.7.3", "1.28.0")
}
