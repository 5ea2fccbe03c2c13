// SPDX-License-Identifier: Apache-2.0
//! Decides which workloads and CSIDrivers of other tools block an installation of the drivers, and has the commands that remove them.

use super::{Adoption, Desired, Ownership, ownership};
use crate::drivers;
use crate::installed::{Evidence, GO_ON, Installed, Moving};
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

/// Who is in the way of the drivers that are wanted, of objects that may be: the CSIDriver, workloads in any namespace that run a driver,
/// the original operator. `home` is the namespace of the operator.
///
/// An object in its right place that no other manager keeps is not in the way: it is adopted.
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
    if object.name() == ORIGINAL_OPERATOR && object.kind() == "Deployment" {
        let idle = object.number("/spec/replicas") == Some(0) || object.is_terminating();
        let message =
            format!("{object} is the original VDO operator, which would undo the changes of this operator; scale it to 0 or delete it");
        return desired.first().filter(|_| !idle).and_then(|d| because(&d.driver, message));
    }
    let installed = Installed::of(object);
    if installed.as_ref().is_some_and(|found| !is_in_the_way(found)) || object.is_terminating() {
        return None;
    }
    let own = desired.iter().find(|d| d.object.id() == object.id());
    let driver = match (own, &installed) {
        (Some(own), _) => &*own.driver,
        (None, Some(found)) if found.evidence.is_proof() => found.driver.name,
        (None, _) => {
            drivers::KNOWN
                .into_iter()
                .find(|known| known.csi_driver == Some(object.name()))?
                .name
        }
    };
    let is_desired = desired.iter().any(|d| *d.driver == *driver);
    if !is_desired {
        return None;
    }
    let evidence = installed.map(|found| found.evidence);
    because(driver, in_the_way(object, driver, evidence.as_ref(), &whose, own.is_some())?)
}

/// Whether a workload may have pods beside which no driver is installed. One that is moved is in the way until its pods were seen to be gone.
fn is_in_the_way(found: &Installed) -> bool {
    match Moving::of(&found.object) {
        Some(mark) => !found.object.is_terminating() && !mark.is_out_of_the_way(&found.object),
        None => found.is_active(),
    }
}

/// The workloads that are moved, of those that run a driver where only administrators create workloads; the drivers of the operator take
/// their place meanwhile.
#[must_use]
pub fn moved(found: &[Object], home: &str) -> Vec<String> {
    let is_trusted = |found: &Installed| [KUBE_SYSTEM, home, found.driver.namespace].contains(&found.object.namespace());
    let workloads = found.iter().filter_map(Installed::of);
    let moved = workloads.filter(|found| found.evidence.is_proof() && is_trusted(found) && Moving::of(&found.object).is_some());
    moved.map(|found| found.object.to_string()).collect()
}

/// Why an object is in the way of a driver; `None` of one that is adopted, because it is in the driver's own place.
fn in_the_way(object: &Object, driver: &str, evidence: Option<&Evidence>, whose: &Ownership, is_in_place: bool) -> Option<String> {
    let what = drivers::known(driver).map_or("the driver", |known| known.what);
    let field = drivers::field(driver);
    let evidence = evidence.map(|evidence| format!(" ({evidence})")).unwrap_or_default();
    if Moving::of(object).is_some() {
        return Some(format!(
            "{object} is being moved to VDO and its pods still exist{evidence}; continue with: {GO_ON}; undo with: {GO_ON} --undo"
        ));
    }
    match (whose, is_in_place) {
        (Ownership::Foreign { who }, _) => Some(format!(
            "{object} belongs to {who}, which reverts changes to it{evidence}; remove {what} from what {who} installs, or leave {field} out of the VDOConfig"
        )),
        (Ownership::Adoptable { how }, false) => Some(format!(
            "{object} runs {what} under a name or in a namespace that VDO does not use{evidence}; the object was created by {how}, and \
             vdoctl adopt shows its settings; move it with: {GO_ON}, or remove it with: {}; to keep it, leave {field} out of the VDOConfig",
            removal(object, driver, how)
        )),
        (Ownership::Adoptable { .. } | Ownership::Ours, _) => None,
    }
}

/// Who would be in the way of both drivers, of the workloads that run one, before anything of ours is there.
#[must_use]
pub fn rivals(found: &[Installed], apply_set: &str, home: &str) -> Vec<Foreigner> {
    let running = found.iter().filter(|found| found.evidence.is_proof() && is_in_the_way(found));
    let rival = |found: &Installed| {
        let (object, driver) = (&found.object, found.driver);
        let is_at_home = object.namespace() == driver.namespace;
        let is_in_place = is_at_home && driver.workloads.contains(&object.name());
        let message = in_the_way(object, driver.name, Some(&found.evidence), &found.ownership(apply_set), is_in_place)?;
        let is_trusted = is_at_home || object.namespace() == KUBE_SYSTEM || object.namespace() == home;
        Some(Foreigner {
            driver: driver.name.to_owned(),
            what: object.to_string(),
            message,
            claim: (!is_trusted).then(|| claim(object, driver.name)),
        })
    };
    running.filter_map(rival).collect()
}

/// The command that takes a workload out of the way, for its kind and for what made it. Volumes and nodes stay as they are: with the release
/// of a CSI driver Helm would delete the CSIDriver and the Secret with the cluster id, and it reads an annotation that keeps objects in the
/// release alone, not on the objects.
fn removal(object: &Object, driver: &str, how: &Adoption) -> String {
    let (namespace, name) = (object.namespace(), object.name());
    if let Adoption::Helm { release } = how
        && drivers::role(driver) == DriverRole::CloudProvider
        && let Some((place, release)) = release.split_once('/')
    {
        return format!("helm uninstall {release} --namespace {place}");
    }
    match object.kind() {
        "DaemonSet" => format!("kubectl --namespace {namespace} delete daemonset {name}"),
        kind => format!("kubectl --namespace {namespace} scale {} {name} --replicas 0", kind.to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::{CPI, CSI, CSI_DRIVER};
    use crate::installed::MOVED;
    use serde_json::{Value, json};

    fn object(kind: &str, namespace: &str, name: &str, more: &Value) -> Object {
        let image = match name {
            "ccm" => "registry.example.com/cloud-provider-vsphere:v1.34.0",
            "controller" => "registry.example.com/csi-vsphere/driver:v3.6.3",
            _ => "registry.example.com/shop:1",
        };
        let pod = json!({"containers": [{"name": "c", "image": image}]});
        let mut value = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": {"template": {"spec": pod}}});
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
                "vsphere-csi: Deployment kube-system/controller runs the driver under a name or in a namespace that VDO does not use",
            ),
            ("Deployment", "kube-system", "controller", &json!({"replicas": 0}), ""),
            (
                "Deployment",
                "kube-system",
                "controller",
                &json!({"replicas": 0, "annotations": {MOVED: r#"{"phase":"stopping","before":{"/replicas":3}}"#}}),
                "vsphere-csi: Deployment kube-system/controller is being moved to VDO and its pods still exist",
            ),
            (
                "Deployment",
                "kube-system",
                "controller",
                &json!({"replicas": 0, "annotations": {MOVED: r#"{"phase":"stopped","before":{"/replicas":3}}"#}}),
                "",
            ),
            // Another manager has started it again.
            (
                "Deployment",
                "kube-system",
                "controller",
                &json!({"replicas": 3, "annotations": {MOVED: r#"{"phase":"stopped","before":{"/replicas":3}}"#}}),
                "vsphere-csi: Deployment kube-system/controller is being moved to VDO and its pods still exist",
            ),
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
                "vsphere-cpi: Deployment openshift/ccm runs the cloud provider under a name or in a namespace that VDO does not use",
            ),
            // Another name and another kind; of the driver's name alone nothing follows.
            (
                "StatefulSet",
                "kube-system",
                "ccm",
                &none,
                "vsphere-cpi: StatefulSet kube-system/ccm runs the cloud provider under a name or in a namespace that VDO does not use \
                 (image registry.example.com/cloud-provider-vsphere:v1.34.0); the object was \
                 created by an unknown manager, and vdoctl adopt shows its settings; move it with: vdoctl adopt --move, or remove it with: \
                 kubectl --namespace kube-system scale statefulset ccm --replicas 0; to keep it, leave spec.cloudProvider out",
            ),
            ("DaemonSet", "kube-system", "vsphere-csi-node", &none, ""),
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
        // A driver that is not desired competes with none.
        assert_eq!(
            foreigners(&desired[..1], &[object("CSIDriver", "", CSI_DRIVER, &openshift)], ("set", "vdo")),
            []
        );
    }

    /// What Helm deletes with a release of the cloud provider is its own; with one of the CSI driver it is the identity of volumes.
    #[test]
    fn foreign_workload_of_helm_is_removed_without_the_identity_of_volumes() {
        let helm = Adoption::Helm {
            release: "rancher/storage".into(),
        };
        for (driver, kind, expected) in [
            (CPI, "DaemonSet", "helm uninstall storage --namespace rancher"),
            (CSI, "Deployment", "kubectl --namespace n scale deployment w --replicas 0"),
            (CSI, "DaemonSet", "kubectl --namespace n delete daemonset w"),
        ] {
            assert_eq!(removal(&object(kind, "n", "w", &json!({})), driver, &helm), expected);
        }
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
