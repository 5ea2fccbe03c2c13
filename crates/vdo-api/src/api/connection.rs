// SPDX-License-Identifier: Apache-2.0
//! The custom resource VsphereCloudConfig: the specification and the status of a vSphere connection.
#![allow(clippy::duplicated_attributes, reason = "every printer column has a name, a type and a path")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A vSphere connection: where a vCenter is, how it is trusted, and which Secret opens it.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "vdo.vmware.com",
    version = "v1alpha1",
    kind = "VsphereCloudConfig",
    plural = "vspherecloudconfigs",
    shortname = "vsphereconnection",
    shortname = "vsphereconnections",
    shortname = "vsc",
    category = "vsphere",
    namespaced,
    status = "VsphereCloudConfigStatus",
    doc = "A vSphere connection: where a vCenter is, how it is trusted, and which Secret opens it.",
    derive = "PartialEq",
    printcolumn(name = "Address", type_ = "string", json_path = ".spec.vcIp"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.about.version"),
    printcolumn(name = "User", type_ = "string", json_path = ".status.credential.user"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.caBundle) || !has(self.thumbprint) || self.thumbprint == ''")
        .message("write either caBundle or thumbprint, not both: one way of trusting the certificate is enough")
)]
pub struct VsphereCloudConfigSpec {
    /// What the connection leads to; default: VCenter.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self != 'Paravirtual'")
        .message("Paravirtual is not yet supported: a cluster that a Supervisor runs reaches the Supervisor and no vCenter, with other drivers than those of the matrix; leave type out to connect to a vCenter"))]
    pub connection_type: Option<ConnectionType>,
    /// The address of the vCenter: a host name, an IPv4 or an IPv6 address, without https:// and without a port.
    #[x_kube(validation = Rule::new("size(self) > 0 && !self.contains('/')")
        .message("write the host name or IP address alone, for example vcenter.example.com; the port has a field of its own"))]
    pub vc_ip: String,
    /// The HTTPS port of the vCenter.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// The name of a Secret of type kubernetes.io/basic-auth with the keys username and password.
    #[x_kube(validation = Rule::new("size(self) > 0").message("write the name of the Secret that holds username and password"))]
    pub credentials: String,
    /// The namespace of that Secret: that of this object, or kube-system; default: the one, then the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_namespace: Option<String>,
    /// The datacenters to look for machines in, by name or inventory path; empty means all.
    #[serde(default)]
    pub datacenters: Vec<String>,
    /// Do not verify the certificate of the vCenter at all. Passwords can then be read by anyone on the network path.
    #[serde(default)]
    pub insecure: bool,
    /// The SHA-256 or SHA-1 thumbprint of the vCenter's certificate, with or without colons, in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self.replace(':', '').matches('^([0-9a-fA-F]{40}|[0-9a-fA-F]{64})?$')")
        .message("write 40 (SHA-1) or 64 (SHA-256) hex digits, with or without colons"))]
    pub thumbprint: Option<String>,
    /// The certificate authorities that sign the vCenter's certificate; default: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<CaBundle>,
}

/// What a connection leads to; default: VCenter.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionType {
    /// A vCenter, with an account.
    #[default]
    VCenter,
    /// The Supervisor that runs this cluster, with a service account. It is not yet supported, and refused.
    Paravirtual,
}

fn default_port() -> i32 {
    443
}

/// Where PEM certificates are: in a ConfigMap or a Secret of the same namespace.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.configMap) != has(self.secret)").message("write either configMap or secret"))]
pub struct CaBundle {
    /// The name of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<String>,
    /// The name of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The key inside it.
    #[serde(default = "default_ca_key")]
    pub key: String,
}

fn default_ca_key() -> String {
    "ca.crt".into()
}

/// What is known of a vCenter.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct VsphereCloudConfigStatus {
    /// The generation of the specification that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, and one condition for each stage of the check, in order.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// What the vCenter says of itself. The last answer is kept while the vCenter cannot be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<AboutStatus>,
    /// The certificate that the vCenter presented last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateStatus>,
    /// Which credentials are in use, never what they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<CredentialStatus>,
    /// When the vCenter was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<ProbeStatus>,
    /// Whether the account has the privileges that the features in use need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privileges: Option<PrivilegesStatus>,
    /// Which nodes are which virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<MachinesStatus>,
    /// The volumes that are registered under the cluster id that the CSI driver is about to use for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes: Option<RegisteredVolumesStatus>,
    /// The tag categories that the drivers read, and whether the vCenter has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub tag_categories: Vec<TagCategoryStatus>,
}

/// A tag category that a driver reads.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TagCategoryStatus {
    /// Its name.
    pub name: String,
    /// Whether the vCenter has it.
    pub found: bool,
}

/// What a vCenter says of itself.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AboutStatus {
    /// The product version, for example 8.0.3.
    pub version: String,
    /// The build number.
    pub build: String,
    /// The kind of server; VirtualCenter for a vCenter.
    pub api_type: String,
    /// The identity of this vCenter, which survives a change of its address.
    pub instance_uuid: String,
}

/// A certificate, by its fingerprint and dates.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CertificateStatus {
    /// The SHA-256 fingerprint.
    pub sha256: String,
    /// The SHA-1 fingerprint, which older drivers compare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha1: Option<String>,
    /// When it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Time>,
}

/// Which credentials are in use.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CredentialStatus {
    /// The Secret, as namespace/name.
    pub secret: String,
    /// The user name in it.
    pub user: String,
    /// The resource version of the Secret.
    pub version: String,
    /// The resource version that logged in last. A driver gets these credentials only when this is the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<String>,
    /// Logins with this version in a row that were begun and did not succeed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: i32,
    /// When the last of them was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_tried: Option<Time>,
    /// The reason for which the vCenter refused it; absent when it did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// Whether the account has the privileges that the features in use need.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PrivilegesStatus {
    /// The account as the vCenter spells it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub principal: String,
    /// How many pairs of object and privilege were looked at.
    #[serde(default)]
    pub checked: i32,
    /// How many of them are missing.
    #[serde(default)]
    pub missing: i32,
    /// The first fifty that are missing, with their objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<String>,
    /// The drivers that cannot do their work without them. They are not installed before it is there; what runs goes on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drivers: Vec<String>,
}

/// The volumes that a vCenter has registered under a cluster id.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredVolumesStatus {
    /// The cluster id.
    pub cluster_id: String,
    /// How many there are.
    #[serde(default)]
    pub volumes: i32,
    /// How many of them have no PersistentVolume in this cluster.
    #[serde(default)]
    pub foreign: i32,
    /// The first ten of those, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The cluster ids under which the vCenter has the volumes of PersistentVolumes of this cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registered_under: Vec<String>,
    /// Why the vCenter could not be asked, where asking again would not help. The installation does not wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_checked: Option<String>,
}

/// Which nodes are which virtual machines.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MachinesStatus {
    /// How many nodes the cluster has.
    pub nodes: i32,
    /// How many of them are exactly one virtual machine of this vCenter.
    pub found: i32,
    /// How many of them are not found or not as the drivers need them.
    #[serde(default)]
    pub with_problems: i32,
    /// The first hundred of them, those with a problem first.
    #[serde(default)]
    pub list: Vec<MachineStatus>,
}

/// A node and its virtual machine.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// The node.
    pub node: String,
    /// The inventory path of its machine; empty when there is not exactly one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// By what it was found: its BIOS UUID, its instance UUID, its name or its address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The hardware version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hardware: String,
    /// The ESXi host that it runs on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The version of ESXi there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub esxi: String,
    /// The power state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub power: String,
    /// The reasons of what is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// What is wrong, in the order of the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// When the vCenter was asked.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ProbeStatus {
    /// The last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Time>,
    /// The next time, unless something changes before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Time>,
}
