// SPDX-License-Identifier: Apache-2.0
//! Decides whether OpenShift's own cloud provider or storage driver prevents the installation of a driver by VDO (pure).
//!
//! Facts from the operators of OpenShift: the cloud provider is theirs on platform VSphere; the storage driver is switched off by
//! `managementState: Removed` of its ClusterCSIDriver, which is accepted from 4.14 on, and from 4.17 on removes the objects of the driver. If a
//! CSIDriver of that name is not theirs, they refuse every upgrade of OpenShift.

pub mod constraint;
pub mod proposal;
pub mod proxy;
mod version;

pub use version::{FIRST, OpenShiftVersion};

use crate::drivers::CSI_DRIVER;
use crate::manifest::Object;
use vdo_api::types::DriverRole;

/// The API version and the kind of what OpenShift allows pods to do.
pub const CONSTRAINTS: (&str, &str) = ("security.openshift.io/v1", "SecurityContextConstraints");
/// The object that says on what OpenShift runs, of the kind Infrastructure (config.openshift.io/v1).
pub const INFRASTRUCTURE: &str = "cluster";
/// The object with the version of OpenShift, of the kind ClusterVersion (config.openshift.io/v1).
pub const VERSION: &str = "version";
/// The namespace of OpenShift's storage drivers.
pub const DRIVERS: &str = "openshift-cluster-csi-drivers";
/// The workloads of its storage driver for vSphere there, by kind and name.
pub const WORKLOADS: [(&str, &str); 3] = [
    ("Deployment", "vmware-vsphere-csi-driver-controller"),
    ("DaemonSet", "vmware-vsphere-csi-driver-node"),
    ("Deployment", "vmware-vsphere-csi-driver-webhook"),
];
/// The annotation of a CSIDriver that is OpenShift's.
const MANAGED: &str = "csi.openshift.io/managed";

/// From this minor version on (of 4) the storage driver can be switched off.
const SWITCH: u64 = 14;
/// From this one on, what was installed of it is removed then.
const REMOVES: u64 = 17;

/// What runs OpenShift, as its own objects say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Platform {
    /// It manages virtual machines of vSphere itself.
    VSphere,
    /// Someone else brings what a platform needs; whether a cloud provider is expected from outside.
    External {
        /// Nodes wait for that cloud provider.
        cloud_provider: bool,
    },
    /// Another platform, or none, by its name; empty where it is not known.
    Other(String),
}

/// What was found of OpenShift.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenShift {
    /// Its version.
    pub version: String,
    /// What it runs on; `None` where no object says that.
    pub platform: Option<Platform>,
    /// The management state of its storage driver for vSphere, where it knows one.
    pub storage: Option<String>,
    /// What there is of that driver.
    pub operands: Vec<String>,
    /// Whether pods need SecurityContextConstraints.
    pub constraints: bool,
}

impl OpenShift {
    /// From its objects: Infrastructure, ClusterVersion, ClusterCSIDriver, the CSIDriver, and the workloads of its driver.
    #[must_use]
    pub fn of(
        infrastructure: Option<&Object>,
        version: Option<&Object>,
        storage: Option<&Object>,
        csi_driver: Option<&Object>,
        workloads: &[Object],
    ) -> Self {
        let own = csi_driver.filter(|object| object.annotation(MANAGED) == Some("true"));
        Self {
            version: version
                .map(|object| object.text("/status/desired/version").to_owned())
                .unwrap_or_default(),
            platform: infrastructure.map(platform),
            storage: storage.map(|object| match object.text("/spec/managementState") {
                "" => "Managed".to_owned(),
                state => state.to_owned(),
            }),
            operands: workloads.iter().chain(own).map(|object| object.id().to_string()).collect(),
            constraints: false,
        }
    }

    /// Why a driver of this role is not installed here; `None` where it may be.
    #[must_use]
    pub fn refusal(&self, role: DriverRole) -> Option<String> {
        match role {
            DriverRole::CloudProvider => self.cloud_provider_refusal(),
            DriverRole::Storage => self.storage_refusal(),
            _ => None,
        }
    }

    fn cloud_provider_refusal(&self) -> Option<String> {
        const LEAVE_OUT: &str =
            "request only the storage driver: set spec.storageProvider of the VDOConfig, and leave out spec.cloudProvider";
        let name = self.name();
        match self.platform.as_ref()? {
            Platform::VSphere => Some(format!(
                "{name} runs the cloud provider itself (Infrastructure {INFRASTRUCTURE}: platform VSphere), and two cloud providers would \
                 overwrite each other's changes to its nodes; {LEAVE_OUT}"
            )),
            Platform::External { cloud_provider: true } => None,
            Platform::External { cloud_provider: false } => Some(format!(
                "{name} was installed without a cloud provider (Infrastructure {INFRASTRUCTURE}: platform External, cloud controller manager None), so \
                 no node would use the cloud provider of VDO; {LEAVE_OUT}"
            )),
            Platform::Other(platform) if platform.is_empty() => Some(format!(
                "Infrastructure {INFRASTRUCTURE} names no platform of {name}, so {name} may run a cloud provider itself; {LEAVE_OUT}"
            )),
            Platform::Other(platform) => Some(format!(
                "{name} runs its nodes without an external cloud provider (Infrastructure {INFRASTRUCTURE}: platform {platform}), so no node would use \
                 the cloud provider of VDO; {LEAVE_OUT}"
            )),
        }
    }

    fn storage_refusal(&self) -> Option<String> {
        let name = self.name();
        match self.storage.as_deref() {
            Some("Removed") if self.operands.is_empty() => None,
            Some("Removed") => Some(format!(
                "{name} has switched its storage driver off, and these objects of the driver still exist: {}; {}",
                self.operands.join(", "),
                self.rest()
            )),
            Some(state) => Some(format!(
                "{name} runs the storage driver itself (ClusterCSIDriver {CSI_DRIVER}: {state}); with a second storage driver, \
                 OpenShift would refuse every \
                 upgrade; {}",
                self.switch()
            )),
            None if self.operands.is_empty() => None,
            None => Some(format!(
                "{name} runs the storage driver itself: {}; use the operator that installed these objects to remove them",
                self.operands.join(", ")
            )),
        }
    }

    /// What happens after the driver was switched off.
    fn rest(&self) -> String {
        match self.minor() {
            Some(minor) if minor < REMOVES => {
                let workloads = WORKLOADS.map(|(kind, name)| format!("{}/{name}", kind.to_lowercase()));
                format!(
                    "OpenShift before 4.{REMOVES} does not delete them; delete them with: \
                     kubectl -n {DRIVERS} delete --ignore-not-found {}; kubectl delete csidriver {CSI_DRIVER}",
                    workloads.join(" ")
                )
            }
            _ => "the operator waits until OpenShift has removed them".to_owned(),
        }
    }

    /// How it is switched off, and what that means.
    fn switch(&self) -> String {
        let command =
            format!(r#"kubectl patch clustercsidriver {CSI_DRIVER} --type=merge -p '{{"spec":{{"managementState":"Removed"}}}}'"#);
        let meanwhile = "existing volumes then belong to VDO's driver, because both drivers have the same name; no volume is attached or detached until VDO's driver runs";
        match self.minor() {
            Some(minor) if minor < SWITCH => {
                format!(
                    "this driver can be switched off only in OpenShift 4.{SWITCH} and newer: upgrade OpenShift first, or leave out \
                     spec.storageProvider"
                )
            }
            Some(minor) if minor < REMOVES => format!(
                "to switch off the installed \
                 driver: {command}; OpenShift before 4.{REMOVES} does not delete its objects, so delete them by hand; {meanwhile}"
            ),
            Some(_) => format!("to switch off the installed driver: {command}; {meanwhile}"),
            None => format!("from OpenShift 4.{REMOVES} on, to switch off the installed driver: {command}; {meanwhile}"),
        }
    }

    fn name(&self) -> String {
        if self.version.is_empty() {
            "OpenShift".to_owned()
        } else {
            format!("OpenShift {}", self.version)
        }
    }

    /// The minor version of OpenShift 4.
    fn minor(&self) -> Option<u64> {
        let mut numbers = self.version.split('.');
        let major: u64 = numbers.next()?.parse().ok()?;
        let minor = numbers.next()?.parse().ok()?;
        // Every version after 4 has what the last of 4 had.
        (major >= 4).then_some(if major == 4 { minor } else { u64::MAX })
    }
}

fn platform(infrastructure: &Object) -> Platform {
    let first = ["/status/platformStatus/type", "/spec/platformSpec/type", "/status/platform"];
    let name = first
        .map(|pointer| infrastructure.text(pointer))
        .into_iter()
        .find(|name| !name.is_empty());
    match name.unwrap_or_default() {
        "VSphere" => Platform::VSphere,
        "External" => Platform::External {
            cloud_provider: infrastructure.text("/status/platformStatus/external/cloudControllerManager/state") == "External",
        },
        other => Platform::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn object(kind: &str, more: Value) -> Object {
        let mut value = json!({"apiVersion": "x/v1", "kind": kind, "metadata": {"name": "n"}});
        for (key, more) in more.as_object().into_iter().flatten() {
            value[key] = more.clone();
        }
        Object::new(value).expect("an object")
    }

    fn openshift(version: &str, infrastructure: Value, state: Option<&str>, workloads: &[Object]) -> OpenShift {
        let storage = state.map(|state| object("ClusterCSIDriver", json!({"spec": {"managementState": state}})));
        let version = object("ClusterVersion", json!({"status": {"desired": {"version": version}}}));
        OpenShift::of(
            Some(&object("Infrastructure", infrastructure)),
            Some(&version),
            storage.as_ref(),
            None,
            workloads,
        )
    }

    #[test]
    fn openshift_cloud_provider_is_refused_but_where_one_is_expected_from_outside() {
        let status = |platform: Value| json!({"status": {"platformStatus": platform}});
        for (infrastructure, expected) in [
            (status(json!({"type": "VSphere"})), Some("platform VSphere")),
            (json!({"status": {"platform": "VSphere"}}), Some("platform VSphere")),
            (json!({"spec": {"platformSpec": {"type": "VSphere"}}}), Some("platform VSphere")),
            (status(json!({"type": "None"})), Some("platform None")),
            (status(json!({"type": "BareMetal"})), Some("platform BareMetal")),
            (
                status(json!({"type": "External", "external": {"cloudControllerManager": {"state": "External"}}})),
                None,
            ),
            (status(json!({"type": "External"})), Some("cloud controller manager None")),
            (json!({}), Some("names no platform of OpenShift")),
        ] {
            let found = openshift("4.18.3", infrastructure.clone(), None, &[]).refusal(DriverRole::CloudProvider);
            match (&found, expected) {
                (Some(found), Some(expected)) => assert!(found.contains(expected), "{found}"),
                (found, expected) => assert_eq!(found.as_deref(), expected, "{infrastructure}"),
            }
        }
    }

    #[test]
    fn openshift_storage_driver_is_refused_until_it_is_removed_and_gone() {
        let left = [object("DaemonSet", json!({}))];
        let patch = "kubectl patch clustercsidriver csi.vsphere.vmware.com";
        for (version, state, left, contains, lacks) in [
            ("4.18.3", None, &[][..], None, ""),
            ("4.18.3", Some(""), &[], Some(patch), "by hand"),
            ("4.18.3", Some("Managed"), &[], Some(patch), "by hand"),
            ("4.18.3", Some("Unmanaged"), &left, Some(patch), "by hand"),
            ("4.15.0", Some("Managed"), &left, Some("so delete them by hand"), "from 4.14"),
            ("4.13.9", Some("Managed"), &left, Some("only in OpenShift 4.14 and newer"), patch),
            (
                "",
                Some("Managed"),
                &left,
                Some("from OpenShift 4.17 on, to switch off the installed driver"),
                "by hand",
            ),
            ("5.0.1", Some("Managed"), &left, Some(patch), "by hand"),
            ("4.18.3", Some("Removed"), &[], None, ""),
            (
                "4.18.3",
                Some("Removed"),
                &left,
                Some("DaemonSet n; the operator waits until OpenShift has removed them"),
                "delete",
            ),
            (
                "4.16.0",
                Some("Removed"),
                &left,
                Some("kubectl delete csidriver csi.vsphere.vmware.com"),
                "operator waits",
            ),
            ("4.18.3", None, &left, Some("runs the storage driver itself: DaemonSet n"), patch),
        ] {
            let found = openshift(version, json!({}), state, left).refusal(DriverRole::Storage);
            let found = found.as_deref();
            match contains {
                None => assert_eq!(found, None, "{version} {state:?}"),
                Some(text) => {
                    let found = found.expect("a refusal");
                    assert!(found.contains(text) && !found.contains(lacks), "{version} {state:?}: {found}");
                }
            }
        }
    }

    #[test]
    fn openshift_csi_driver_with_its_mark_is_an_operand() {
        let csi_driver = |annotations: Value| object("CSIDriver", json!({"metadata": {"name": CSI_DRIVER, "annotations": annotations}}));
        for (annotations, expected) in [(json!({MANAGED: "true"}), 1), (json!({}), 0)] {
            let found = OpenShift::of(None, None, None, Some(&csi_driver(annotations)), &[]);
            assert_eq!(found.operands.len(), expected);
        }
        assert_eq!(OpenShift::of(None, None, None, None, &[]).refusal(DriverRole::CloudProvider), None);
    }
}
