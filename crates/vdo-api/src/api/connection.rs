// SPDX-License-Identifier: Apache-2.0
//! The specification and the status of the custom resource VsphereCloudConfig, a vSphere connection.
#![allow(clippy::duplicated_attributes, reason = "every printer column has a name, a type and a path")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A vSphere connection: the address of a vCenter, the way to verify its certificate, and the Secret with the credentials.
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
    doc = "A vSphere connection: the address of a vCenter, how its certificate is verified, and the Secret with the credentials.",
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
        .message("write either caBundle or thumbprint, not both")
)]
pub struct VsphereCloudConfigSpec {
    /// The kind of the server at the address; default: VCenter.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self != 'Paravirtual'")
        .message("Paravirtual is not yet supported; leave type out to connect to a vCenter. A cluster that a vSphere Supervisor runs \
                  has no access to a vCenter and needs drivers that are not in the matrix"))]
    pub connection_type: Option<ConnectionType>,
    /// The address of the vCenter: a host name, an IPv4 or an IPv6 address, without https:// and without a port.
    #[x_kube(validation = Rule::new("size(self) > 0 && !self.contains('/')")
        .message("write only the host name or IP address, for example vcenter.example.com; write the port into spec.port"))]
    pub vc_ip: String,
    /// The HTTPS port of the vCenter.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// The name of a Secret of type kubernetes.io/basic-auth with the keys username and password.
    #[x_kube(validation = Rule::new("size(self) > 0").message("write the name of a Secret with the keys username and password"))]
    pub credentials: String,
    /// The namespace of the Secret in credentials: the namespace of this object, or kube-system. By default, the operator looks in the
    /// namespace of this object first, and then in kube-system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_namespace: Option<String>,
    /// The datacenters that contain the virtual machines of the nodes, by name or inventory path. Empty means all datacenters.
    #[serde(default)]
    pub datacenters: Vec<String>,
    /// If true, the certificate of the vCenter is not verified. Anyone on the network path can then read the password.
    #[serde(default)]
    pub insecure: bool,
    /// The SHA-256 or SHA-1 thumbprint of the vCenter's certificate, with or without colons, in upper or lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("self.replace(':', '').matches('^([0-9a-fA-F]{40}|[0-9a-fA-F]{64})?$')")
        .message("write 40 (SHA-1) or 64 (SHA-256) hex digits, with or without colons"))]
    pub thumbprint: Option<String>,
    /// The certificate authorities that sign the vCenter's certificate; default: the certificate authorities of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<CaBundle>,
}

/// The kind of the server at the address; default: VCenter.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionType {
    /// A vCenter, with an account.
    #[default]
    VCenter,
    /// The Supervisor that runs this cluster, with a service account. This kind is not yet supported, and is refused.
    Paravirtual,
}

fn default_port() -> i32 {
    443
}

/// PEM certificates in a ConfigMap or a Secret of the same namespace.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.configMap) != has(self.secret)").message("write either configMap or secret"))]
pub struct CaBundle {
    /// The name of the ConfigMap with the PEM certificates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<String>,
    /// The name of the Secret with the PEM certificates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The key in the ConfigMap or the Secret.
    #[serde(default = "default_ca_key")]
    pub key: String,
}

fn default_ca_key() -> String {
    "ca.crt".into()
}

/// The results of the last check of the vCenter.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct VsphereCloudConfigStatus {
    /// The generation of the specification that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The condition Ready, and one condition for each stage of the check, in the order of the stages.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The version and the identity that the vCenter reports. While the vCenter cannot be reached, the last reported values are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<AboutStatus>,
    /// The certificate that the vCenter presented last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateStatus>,
    /// Which credentials are in use. The password is never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<CredentialStatus>,
    /// When the operator checks the vCenter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<ProbeStatus>,
    /// Whether the account has the privileges that the features in use need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privileges: Option<PrivilegesStatus>,
    /// The virtual machines of the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<MachinesStatus>,
    /// The volumes that the vCenter has registered under the cluster id of this cluster. The operator checks these volumes before the CSI
    /// driver uses the id for the first time.
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
    /// The name of the tag category.
    pub name: String,
    /// Whether the vCenter has the tag category.
    pub found: bool,
}

/// The version and the identity that a vCenter reports.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct AboutStatus {
    /// The product version, for example 8.0.3.
    pub version: String,
    /// The build number.
    pub build: String,
    /// The kind of server: VirtualCenter for a vCenter.
    pub api_type: String,
    /// The unique ID of the vCenter, which does not change when the address changes.
    pub instance_uuid: String,
}

/// A certificate, by its fingerprint and dates.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CertificateStatus {
    /// The SHA-256 fingerprint.
    pub sha256: String,
    /// The SHA-1 fingerprint, which older driver versions verify.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha1: Option<String>,
    /// When the certificate becomes valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
    /// When the certificate expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Time>,
}

/// Which credentials are in use.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct CredentialStatus {
    /// The Secret with the credentials, as namespace/name.
    pub secret: String,
    /// The user name in the Secret.
    pub user: String,
    /// The resource version of the Secret.
    pub version: String,
    /// The resource version of the Secret that was used for the last successful login. A driver gets the credentials only if this is the
    /// current resource version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<String>,
    /// The number of consecutive failed logins with this version of the Secret.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: i32,
    /// The start time of the last of these failed logins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_tried: Option<Time>,
    /// The reason for which the vCenter refused the last of these failed logins. Absent if the vCenter did not answer.
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
    /// The account name as the vCenter spells it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub principal: String,
    /// The number of checks. Each check tests one privilege on one vCenter object.
    #[serde(default)]
    pub checked: i32,
    /// The number of checks that found a missing privilege.
    #[serde(default)]
    pub missing: i32,
    /// The first fifty missing privileges, each with its vCenter object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<String>,
    /// The drivers that cannot work without the missing privileges. The operator does not install these drivers until the account has the
    /// privileges. Installed drivers keep running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drivers: Vec<String>,
}

/// The volumes that a vCenter has registered under a cluster id.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredVolumesStatus {
    /// The cluster id.
    pub cluster_id: String,
    /// The number of volumes that are registered under the cluster id.
    #[serde(default)]
    pub volumes: i32,
    /// The number of volumes under the cluster id that have no PersistentVolume in this cluster.
    #[serde(default)]
    pub foreign: i32,
    /// The names of the first ten volumes that have no PersistentVolume in this cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The cluster ids under which the vCenter has registered the volumes of this cluster's PersistentVolumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registered_under: Vec<String>,
    /// Why the operator cannot check the volumes in the vCenter. Set only if a retry would not help; the installation of the CSI driver
    /// then does not wait for this check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_checked: Option<String>,
}

/// The virtual machines of the nodes.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MachinesStatus {
    /// The number of nodes in the cluster.
    pub nodes: i32,
    /// The number of nodes for which the operator found exactly one virtual machine in this vCenter.
    pub found: i32,
    /// The number of nodes with a problem: the virtual machine is not found, or does not have the settings that the drivers need.
    #[serde(default)]
    pub with_problems: i32,
    /// The first hundred nodes. Nodes with a problem come first.
    #[serde(default)]
    pub list: Vec<MachineStatus>,
}

/// A node and its virtual machine.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// The name of the node.
    pub node: String,
    /// The inventory path of the virtual machine. Empty if no virtual machine or several virtual machines match the node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// How the operator found the virtual machine: by BIOS UUID, instance UUID, name or address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The hardware version of the virtual machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hardware: String,
    /// The ESXi host that runs the virtual machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// The ESXi version of the host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub esxi: String,
    /// The power state of the virtual machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub power: String,
    /// The reasons of the problems of this node, in CamelCase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// The problems of this node as sentences, in the same order as the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// When the operator checks the vCenter.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ProbeStatus {
    /// The time of the last check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Time>,
    /// The time of the next check. A change of the connection, its Secret or the nodes starts a check earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Time>,
}
