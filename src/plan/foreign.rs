//! A driver, or an operator of drivers, that another manager runs in the same cluster.

use super::{Desired, Ownership, ownership};
use crate::drivers;
use crate::manifest::Object;
use crate::types::DriverName;

/// The original operator (vmware-tanzu) installs the same drivers.
pub const ORIGINAL_OPERATOR: &str = "vdo-controller-manager";

/// Something that would work against a driver of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreigner {
    /// The driver that it is in the way of.
    pub driver: DriverName,
    /// Which object, whose it is, and what to do.
    pub message: String,
}

/// Who is in the way of the drivers that are wanted, of objects that may be: the CSIDriver, workloads named like ours in any
/// namespace, the original operator.
///
/// An object in its right place that no one keeps is no foreigner: it is adopted.
#[must_use]
pub fn foreigners(desired: &[Desired], found: &[Object], apply_set: &str) -> Vec<Foreigner> {
    let mut all: Vec<Foreigner> = found.iter().filter_map(|object| foreigner(desired, object, apply_set)).collect();
    all.sort_by(|a, b| a.message.cmp(&b.message));
    all
}

fn foreigner(desired: &[Desired], object: &Object, apply_set: &str) -> Option<Foreigner> {
    // A workload without pods does nothing; that is also how people take one out of the way.
    if object.number("/spec/replicas") == Some(0) || object.is_terminating() {
        return None;
    }
    let because = |driver: &str, message: String| {
        Some(Foreigner {
            driver: driver.to_owned(),
            message,
        })
    };
    let whose = ownership(object, apply_set);
    if whose == Ownership::Ours {
        return None;
    }
    if object.name() == ORIGINAL_OPERATOR {
        let message = format!("{object} is the original VDO operator, which would undo what this one does; scale it to 0 or delete it");
        return desired.first().and_then(|d| because(&d.driver, message));
    }
    let own = desired.iter().find(|d| d.object.id() == object.id());
    let driver = match own {
        Some(own) => &*own.driver,
        None => {
            let rival = |d: &&Desired| d.object.pod_spec().is_some() && d.object.name() == object.name();
            let known = |d: &&Desired| drivers::known(&d.driver).is_some_and(|known| known.csi_driver == Some(object.name()));
            &*desired.iter().find(|d| rival(d) || known(d))?.driver
        }
    };
    let what = drivers::known(driver).map_or("the driver", |known| known.what);
    match (whose, own) {
        (Ownership::Foreign { who }, _) => because(
            driver,
            format!("{object} belongs to {who}, which keeps it as it is; remove {what} there, or leave it out of the VDOConfig"),
        ),
        (Ownership::Adoptable { how }, None) => because(
            driver,
            format!("{object} runs {what} in another place, made by {how}; delete it or scale it to 0, volumes and nodes stay as they are"),
        ),
        (Ownership::Adoptable { .. } | Ownership::Ours, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::{CPI, CSI, CSI_DRIVER};
    use serde_json::{Value, json};

    fn object(kind: &str, namespace: &str, name: &str, more: &Value) -> Object {
        let mut value = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": {"template": {"spec": {}}}});
        if namespace.is_empty() {
            value["apiVersion"] = "storage.k8s.io/v1".into();
        } else {
            value["metadata"]["namespace"] = namespace.into();
        }
        for (key, part) in more.as_object().into_iter().flatten() {
            if key == "replicas" {
                value["spec"]["replicas"] = part.clone();
            } else {
                value["metadata"][key] = part.clone();
            }
        }
        Object::new(value).expect("an object")
    }

    #[test]
    fn foreign_workload_or_csidriver_is_detected() {
        let wanted = |driver: &str, kind, namespace, name| Desired {
            object: object(kind, namespace, name, &json!({})),
            driver: driver.into(),
            wave: 4,
        };
        let desired = [
            wanted(CPI, "DaemonSet", "kube-system", "ccm"),
            wanted(CSI, "Deployment", "csi", "controller"),
            wanted(CSI, "CSIDriver", "", CSI_DRIVER),
        ];
        let openshift = json!({"annotations": {"csi.openshift.io/managed": "true"}});
        let ours = json!({"labels": {"app.kubernetes.io/managed-by": "vdo", "applyset.kubernetes.io/part-of": "set"}});
        let other = json!({"labels": {"app.kubernetes.io/managed-by": "vdo", "applyset.kubernetes.io/part-of": "other"}});
        let none = json!({});
        for (kind, namespace, name, more, expected) in [
            (
                "CSIDriver",
                "",
                CSI_DRIVER,
                &openshift,
                "vsphere-csi: CSIDriver csi.vsphere.vmware.com belongs to OpenShift's CSI operator",
            ),
            ("CSIDriver", "", CSI_DRIVER, &none, ""),
            ("Deployment", "csi", "controller", &none, ""),
            ("Deployment", "csi", "controller", &ours, ""),
            (
                "Deployment",
                "csi",
                "controller",
                &other,
                "vsphere-csi: Deployment csi/controller belongs to another VDOConfig",
            ),
            (
                "Deployment",
                "kube-system",
                "controller",
                &none,
                "vsphere-csi: Deployment kube-system/controller runs the driver in another place",
            ),
            ("Deployment", "kube-system", "controller", &json!({"replicas": 0}), ""),
            (
                "Deployment",
                "kube-system",
                "controller",
                &json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
                "",
            ),
            (
                "Deployment",
                "openshift",
                "ccm",
                &none,
                "vsphere-cpi: Deployment openshift/ccm runs the cloud provider in another place",
            ),
            ("Deployment", "shop", "else", &none, ""),
            (
                "Deployment",
                "vdo",
                ORIGINAL_OPERATOR,
                &none,
                "vsphere-cpi: Deployment vdo/vdo-controller-manager is the original VDO",
            ),
        ] {
            let found = foreigners(&desired, &[object(kind, namespace, name, more)], "set");
            let said = found.first().map(|f| format!("{}: {}", f.driver, f.message)).unwrap_or_default();
            assert!(
                said.starts_with(expected) && said.is_empty() == expected.is_empty(),
                "{kind} {namespace}/{name} {more}: {said:?}"
            );
        }
        // A driver that no one wants competes with no one.
        assert_eq!(
            foreigners(&desired[..1], &[object("CSIDriver", "", CSI_DRIVER, &openshift)], "set"),
            []
        );
    }
}
