// SPDX-License-Identifier: Apache-2.0
//! The drivers as other tools bring them, made from the manifests that `vdoctl render` prints.

use serde_json::{Value, json};

const CSI: &str = "vmware-system-csi";
/// Where Rancher has both drivers.
pub const OLD: &str = "kube-system";
/// The cloud provider of Rancher.
pub const RANCHER_CPI: &str = "rancher-vsphere-cpi-cloud-controller-manager";

/// A manifest without the marks of VDO.
pub fn bare(mut manifest: Value) -> Value {
    for field in ["labels", "annotations"] {
        if let Some(map) = manifest["metadata"][field].as_object_mut() {
            map.retain(|key, _| {
                let marks = ["vdo.vmware.com/", "applyset.kubernetes.io/", "app.kubernetes.io/"];
                !marks.iter().any(|mark| key.starts_with(mark))
            });
            if map.is_empty()
                && let Some(metadata) = manifest["metadata"].as_object_mut()
            {
                metadata.remove(field);
            }
        }
    }
    manifest
}

/// The manifests as Rancher's charts have them: the CSI driver in kube-system, the cloud provider under another name.
pub fn elsewhere(manifests: &[Value]) -> Vec<Value> {
    brought(manifests).map(moved_elsewhere).collect()
}

/// What an installer brings beside namespaces and rights.
pub fn brought(manifests: &[Value]) -> impl Iterator<Item = Value> {
    let is_brought = |object: &&Value| {
        let kind = object["kind"].as_str().unwrap_or_default();
        !matches!(kind, "Namespace" | "ClusterRole" | "ClusterRoleBinding" | "Role" | "RoleBinding")
    };
    manifests.iter().filter(is_brought).cloned()
}

fn moved_elsewhere(object: Value) -> Value {
    let release = if object["metadata"]["namespace"] == CSI {
        "vsphere-csi"
    } else {
        "vsphere-cpi"
    };
    of_release(renamed(in_kube_system(object), RANCHER_CPI), release)
}

/// An object of the CSI driver as installers have it that keep it in kube-system.
pub fn in_kube_system(mut object: Value) -> Value {
    if object["metadata"]["namespace"] == CSI {
        object["metadata"]["namespace"] = OLD.into();
    }
    object
}

/// The cloud provider's workload under another name, with another selector.
pub fn renamed(mut object: Value, name: &str) -> Value {
    if object["metadata"]["name"] == "vsphere-cloud-controller-manager" && object["kind"] == "DaemonSet" {
        object["metadata"]["name"] = name.into();
        let labels = json!({"app": name});
        object["spec"]["selector"] = json!({"matchLabels": labels});
        object["spec"]["template"]["metadata"]["labels"] = labels;
    }
    object
}

/// An object with the marks of a release of Helm.
pub fn of_release(mut object: Value, release: &str) -> Value {
    object["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "Helm".into();
    object["metadata"]["annotations"]["meta.helm.sh/release-name"] = release.into();
    object["metadata"]["annotations"]["meta.helm.sh/release-namespace"] = OLD.into();
    object
}

/// What the accounts of a CSI driver in kube-system may do: the roles of VDO's, from these manifests, bound to those accounts.
pub fn rights(manifests: &[Value]) -> Vec<Value> {
    let is_of_csi = |object: &&Value| {
        let is_bound = object["subjects"][0]["namespace"] == CSI;
        is_bound || object["kind"] == "Role" && object["metadata"]["namespace"] == CSI
    };
    let mut all: Vec<Value> = manifests.iter().filter(is_of_csi).cloned().collect();
    for object in &mut all {
        let name = format!("old-{}", object["metadata"]["name"].as_str().unwrap_or_default());
        object["metadata"] = match object["metadata"]["namespace"].is_string() {
            true => json!({"name": object["metadata"]["name"], "namespace": OLD}),
            false => json!({"name": name}),
        };
        for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
            subject["namespace"] = OLD.into();
        }
    }
    all
}
