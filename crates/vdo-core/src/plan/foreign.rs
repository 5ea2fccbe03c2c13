//! A driver, or an operator of drivers, that another manager runs in the same cluster.

use super::{Desired, Ownership, ownership};
use crate::drivers;
use crate::manifest::Object;
use vdo_api::types::{DriverName, DriverRole};

/// The original operator (vmware-tanzu) installs the same drivers.
pub const ORIGINAL_OPERATOR: &str = "vdo-controller-manager";

/// Something that would work against a driver of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreigner {
    /// The driver that it is in the way of.
    pub driver: DriverName,
    /// What it is called: kind, namespace and name.
    pub what: String,
    /// Which object, whose it is, and what to do.
    pub message: String,
    /// What has to be true of a workload in a namespace where others than administrators may create one: a name alone proves nothing.
    pub claim: Option<Claim>,
}

/// A right that a driver needs in the whole cluster or in `kube-system`, and that only an administrator can give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The user who has to have it: the account of the workload.
    pub user: String,
    /// The verb.
    pub verb: &'static str,
    /// The API group.
    pub group: &'static str,
    /// The resource.
    pub resource: &'static str,
    /// A part of it, or empty.
    pub subresource: &'static str,
    /// Where; empty for the whole cluster.
    pub namespace: &'static str,
}

/// Where only administrators create workloads, beside the namespaces of the drivers and of the operator.
const KUBE_SYSTEM: &str = "kube-system";

/// Who is in the way of the drivers that are wanted, of objects that may be: the CSIDriver, workloads named like ours in any
/// namespace, the original operator. `home` is the namespace of the operator.
///
/// An object in its right place that no one keeps is no foreigner: it is adopted.
#[must_use]
pub fn foreigners(desired: &[Desired], found: &[Object], (apply_set, home): (&str, &str)) -> Vec<Foreigner> {
    let is_trusted = |namespace: &str| {
        let of_drivers = || desired.iter().any(|d| d.object.namespace() == namespace);
        namespace.is_empty() || namespace == KUBE_SYSTEM || namespace == home || of_drivers()
    };
    let judged = found.iter().filter_map(|object| {
        let mut foreigner = foreigner(desired, object, apply_set)?;
        if !is_trusted(object.namespace()) {
            foreigner.claim = Some(claim(object, &foreigner.driver));
        }
        Some(foreigner)
    });
    let mut all: Vec<Foreigner> = judged.collect();
    all.sort_by(|a, b| a.message.cmp(&b.message));
    all
}

/// What the account of a workload may do if it is what it is called.
fn claim(object: &Object, driver: &str) -> Claim {
    let account = object.pod_spec().and_then(|spec| spec["serviceAccountName"].as_str());
    let account = account.filter(|name| !name.is_empty()).unwrap_or("default");
    let (verb, group, resource, subresource, namespace) = match drivers::known(driver).map(|known| known.role) {
        _ if object.name() == ORIGINAL_OPERATOR => ("create", "apps", "daemonsets", "", KUBE_SYSTEM),
        Some(DriverRole::Storage) => ("create", "", "persistentvolumes", "", ""),
        _ => ("patch", "", "nodes", "status", ""),
    };
    Claim {
        user: format!("system:serviceaccount:{}:{account}", object.namespace()),
        verb,
        group,
        resource,
        subresource,
        namespace,
    }
}

fn foreigner(desired: &[Desired], object: &Object, apply_set: &str) -> Option<Foreigner> {
    // A workload without pods does nothing; that is also how people take one out of the way.
    if object.number("/spec/replicas") == Some(0) || object.is_terminating() {
        return None;
    }
    let because = |driver: &str, message: String| {
        Some(Foreigner {
            driver: driver.to_owned(),
            what: object.to_string(),
            message,
            claim: None,
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
            let found = foreigners(&desired, &[object(kind, namespace, name, more)], ("set", "vdo"));
            let said = found.first().map(|f| format!("{}: {}", f.driver, f.message)).unwrap_or_default();
            assert!(
                said.starts_with(expected) && said.is_empty() == expected.is_empty(),
                "{kind} {namespace}/{name} {more}: {said:?}"
            );
        }
        // A driver that no one wants competes with no one.
        assert_eq!(
            foreigners(&desired[..1], &[object("CSIDriver", "", CSI_DRIVER, &openshift)], ("set", "vdo")),
            []
        );
    }

    #[test]
    fn foreign_workload_of_a_tenant_has_to_prove_what_it_is() {
        let wanted = |driver: &str, kind, namespace, name| Desired {
            object: object(kind, namespace, name, &json!({})),
            driver: driver.into(),
            wave: 4,
        };
        let desired = [
            wanted(CPI, "DaemonSet", "kube-system", "ccm"),
            wanted(CSI, "Deployment", "csi", "controller"),
        ];
        let helm = json!({"labels": {"app.kubernetes.io/managed-by": "Helm"}});
        let flux = json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "x"}});
        for (kind, namespace, name, more, expected) in [
            ("Deployment", "kube-system", "controller", &json!({}), None),
            ("Deployment", "vdo", "controller", &json!({}), None),
            ("Deployment", "csi", "ccm", &json!({}), None),
            ("Deployment", "vdo", ORIGINAL_OPERATOR, &json!({}), None),
            ("Deployment", "kube-system", ORIGINAL_OPERATOR, &json!({}), None),
            ("Deployment", "shop", "controller", &json!({}), Some("create persistentvolumes")),
            ("Deployment", "shop", "controller", &helm, Some("create persistentvolumes")),
            ("Deployment", "shop", "controller", &flux, Some("create persistentvolumes")),
            ("DaemonSet", "shop", "ccm", &json!({}), Some("patch nodes")),
            ("Deployment", "shop", ORIGINAL_OPERATOR, &json!({}), Some("create daemonsets")),
            // Names that only look like those of the cluster.
            (
                "Deployment",
                "kube-system-2",
                "controller",
                &json!({}),
                Some("create persistentvolumes"),
            ),
            (
                "Deployment",
                "openshift-cluster-csi-drivers",
                "controller",
                &json!({}),
                Some("create persistentvolumes"),
            ),
        ] {
            let found = foreigners(&desired, &[object(kind, namespace, name, more)], ("set", "vdo"));
            let claim = found.first().expect("it is in the way").claim.as_ref();
            let right = claim.map(|claim| format!("{} {}", claim.verb, claim.resource));
            assert_eq!(right.as_deref(), expected, "{kind} {namespace}/{name} {more}");
            let user = format!("system:serviceaccount:{namespace}:default");
            assert!(claim.is_none_or(|claim| claim.user == user), "{claim:?}");
        }
    }
}
