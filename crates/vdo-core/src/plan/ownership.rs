// SPDX-License-Identifier: Apache-2.0
//! Decides whether a live object is owned by this operator, can be adopted, or belongs to another controller, from the object alone.

use crate::install::VDOCTL;
use crate::manifest::{Object, is_owned};
use serde_json::Value;
use std::fmt;
use vdo_api::api::{GROUP, MANAGED_BY, MANAGED_BY_LABEL, PART_OF_LABEL};
use vdo_api::types::FIELD_MANAGER;

/// To whom a live object belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// It bears the labels of our apply set.
    Ours,
    /// It was made by hand or by a tool that does not watch it, so taking it over starts no fight.
    Adoptable {
        /// By what.
        how: Adoption,
    },
    /// A live manager that would undo our changes, or remove the object, owns it.
    Foreign {
        /// Who, with the mark that shows it.
        who: String,
    },
}

/// What made an object that may be taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Adoption {
    /// `kubectl apply` of a manifest.
    Kubectl,
    /// A Helm release.
    Helm {
        /// The release, as namespace/name; empty where the object does not say.
        release: String,
    },
    /// The original operator (vmware-tanzu).
    OriginalOperator,
    /// Something that leaves no mark but the name under which it wrote the fields.
    Manager {
        /// The field manager.
        name: String,
    },
    /// Something that leaves no mark.
    Unmarked,
}

impl fmt::Display for Adoption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kubectl => f.write_str("kubectl apply"),
            Self::Helm { release } if release.is_empty() => f.write_str("Helm"),
            Self::Helm { release } => write!(f, "Helm release {release}"),
            Self::OriginalOperator => f.write_str("the original VDO"),
            Self::Manager { name } => write!(f, "field manager {name}"),
            Self::Unmarked => f.write_str("an unknown manager"),
        }
    }
}

impl fmt::Display for Ownership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours => f.write_str(MANAGED_BY),
            Self::Adoptable { how } => how.fmt(f),
            Self::Foreign { who } => f.write_str(who),
        }
    }
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Marks of controllers that keep an object as they want it: the key of a label or annotation, and who sets it.
const CONTROLLERS: [(&str, &str); 10] = [
    ("csi.openshift.io/managed", "OpenShift's CSI operator"),
    ("operator.openshift.io/spec-hash", "an OpenShift operator"),
    (
        "include.release.openshift.io/self-managed-high-availability",
        "OpenShift's version operator",
    ),
    ("helm.toolkit.fluxcd.io/name", "Flux HelmRelease"),
    ("kustomize.toolkit.fluxcd.io/name", "Flux Kustomization"),
    ("argocd.argoproj.io/tracking-id", "Argo CD application"),
    ("argocd.argoproj.io/instance", "Argo CD application"),
    ("objectset.rio.cattle.io/owner-name", "Rancher object"),
    ("olm.owner", "OLM"),
    ("kapp.k14s.io/app", "kapp application"),
];

/// Whose `live` is, where `apply_set` is ours.
///
/// An object of another apply set is foreign even if that is one of another VDO: its operator may be alive, and whether it
/// is alive cannot be seen in the object.
#[must_use]
pub fn ownership(live: &Object, apply_set: &str) -> Ownership {
    if is_owned(live, apply_set) {
        return Ownership::Ours;
    }
    if let Some(owner) = owner_reference(live) {
        return owner;
    }
    if let Some(set) = live.label(PART_OF_LABEL).filter(|set| *set != apply_set) {
        let name = if live.label(MANAGED_BY_LABEL) == Some(MANAGED_BY) {
            "another VDOConfig"
        } else {
            "another apply set"
        };
        return foreign(format!("{name} (label {PART_OF_LABEL}={set})"));
    }
    if let Some(who) = controller(live) {
        return foreign(who);
    }
    let adoptable = |how| Ownership::Adoptable { how };
    match live.label(MANAGED_BY_LABEL) {
        Some("Helm" | "Tiller") => adoptable(Adoption::Helm { release: release(live) }),
        // Ours without its apply set, for example after a user has edited labels; and tools that do not stay.
        Some(MANAGED_BY | "kubectl" | "kustomize") | None if live.annotation(LAST_APPLIED).is_some() => adoptable(Adoption::Kubectl),
        Some(MANAGED_BY | "kubectl" | "kustomize") | None => {
            adoptable(first_manager(live).map_or(Adoption::Unmarked, |name| Adoption::Manager { name }))
        }
        Some(other) => foreign(format!("{other} (label {MANAGED_BY_LABEL})")),
    }
}

/// The field manager that wrote an object first, where the record of field managers was read with it.
fn first_manager(live: &Object) -> Option<String> {
    let all = live.value().pointer("/metadata/managedFields").and_then(Value::as_array)?;
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let of_others = all.iter().filter(|entry| {
        let is_own = [FIELD_MANAGER, VDOCTL].contains(&text(entry, "manager").as_str());
        !is_own && text(entry, "subresource").is_empty()
    });
    // Of the same second the first one of the record counts.
    let first = of_others.min_by_key(|entry| text(entry, "time"))?;
    Some(text(first, "manager")).filter(|name| !name.is_empty())
}

fn foreign(who: String) -> Ownership {
    Ownership::Foreign { who }
}

/// Whom the owner references speak for. The original operator let the drivers belong to its VDOConfig.
fn owner_reference(live: &Object) -> Option<Ownership> {
    let all = live.value().pointer("/metadata/ownerReferences").and_then(Value::as_array)?;
    let text = |owner: &Value, key: &str| owner.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let of_others: Vec<&Value> = all
        .iter()
        .filter(|owner| !text(owner, "apiVersion").starts_with(&format!("{GROUP}/")))
        .collect();
    let controls = |owner: &&&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    // Whatever else owns an object, it goes when its last owner goes; the controller is the one to name.
    match of_others.iter().find(controls).or(of_others.first()) {
        Some(owner) if text(owner, "kind") == "Node" => Some(foreign(format!(
            "the kubelet of node {} (a file in its folder for static pods)",
            text(owner, "name")
        ))),
        Some(owner) => Some(foreign(format!("{} {}", text(owner, "kind"), text(owner, "name")))),
        None if all.is_empty() => None,
        None => Some(Ownership::Adoptable {
            how: Adoption::OriginalOperator,
        }),
    }
}

/// The first mark of a controller, with its value where that is a name.
fn controller(live: &Object) -> Option<String> {
    CONTROLLERS.iter().find_map(|(key, name)| {
        let value = live.label(key).or_else(|| live.annotation(key))?;
        Some(if key.contains("openshift") {
            format!("{name} ({key})")
        } else {
            format!("{name} {value} ({key})")
        })
    })
}

fn release(live: &Object) -> String {
    let part = |key: &str| live.annotation(key).unwrap_or_default();
    match (part("meta.helm.sh/release-namespace"), part("meta.helm.sh/release-name")) {
        (_, "") => String::new(),
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ownership_each_mark_means_ours_adopt_or_foreign() {
        let ours = json!({"labels": {"app.kubernetes.io/managed-by": "vdo", "applyset.kubernetes.io/part-of": "set"}});
        let owner = |api_version: &str, controller: bool| json!({"ownerReferences": [{"apiVersion": api_version, "kind": "Thing", "name": "t", "controller": controller}]});
        for (metadata, expected) in [
            (ours, "ours"),
            (json!({}), "adopt from an unknown manager"),
            (json!({"annotations": {LAST_APPLIED: "{}"}}), "adopt from kubectl apply"),
            // Without any other mark the first field manager is named; who only wrote the status, or moved it, did not make it.
            (
                json!({"managedFields": [
                    {"manager": "kubelet", "subresource": "status", "time": "2026-01-01T00:00:00Z"},
                    {"manager": "kube-controller", "time": "2026-03-01T00:00:00Z"},
                    {"manager": "before-first-apply", "time": "2026-02-01T00:00:00Z"},
                    {"manager": VDOCTL, "time": "2026-01-01T00:00:00Z"}]}),
                "adopt from field manager before-first-apply",
            ),
            (json!({"managedFields": [{"manager": VDOCTL}]}), "adopt from an unknown manager"),
            (
                json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "cp", "controller": true}]}),
                "the kubelet of node cp (a file in its folder for static pods)",
            ),
            (json!({"labels": {"app.kubernetes.io/managed-by": "Helm"}}), "adopt from Helm"),
            (
                json!({"labels": {"app.kubernetes.io/managed-by": "Helm"},
                    "annotations": {"meta.helm.sh/release-name": "csi", "meta.helm.sh/release-namespace": "kube-system"}}),
                "adopt from Helm release kube-system/csi",
            ),
            // A release that Flux keeps would be recreated at once.
            (
                json!({"labels": {"app.kubernetes.io/managed-by": "Helm", "helm.toolkit.fluxcd.io/name": "csi"}}),
                "Flux HelmRelease csi (helm.toolkit.fluxcd.io/name)",
            ),
            (
                json!({"labels": {"app.kubernetes.io/managed-by": "vdo"}}),
                "adopt from an unknown manager",
            ),
            (
                json!({"labels": {"app.kubernetes.io/managed-by": "vdo", "applyset.kubernetes.io/part-of": "other"}}),
                "another VDOConfig (label applyset.kubernetes.io/part-of=other)",
            ),
            (
                json!({"labels": {"applyset.kubernetes.io/part-of": "other"}}),
                "another apply set (label applyset.kubernetes.io/part-of=other)",
            ),
            (
                json!({"labels": {"app.kubernetes.io/managed-by": "storage-team"}}),
                "storage-team (label app.kubernetes.io/managed-by)",
            ),
            (
                json!({"annotations": {"csi.openshift.io/managed": "true"}}),
                "OpenShift's CSI operator (csi.openshift.io/managed)",
            ),
            (
                json!({"annotations": {"objectset.rio.cattle.io/owner-name": "rke2-vsphere", LAST_APPLIED: "{}"}}),
                "Rancher object rke2-vsphere (objectset.rio.cattle.io/owner-name)",
            ),
            (owner("apps/v1", true), "Thing t"),
            (owner("apps/v1", false), "Thing t"),
            (owner("vdo.vmware.com/v1alpha1", true), "adopt from the original VDO"),
            (json!({"ownerReferences": []}), "adopt from an unknown manager"),
            (
                json!({"ownerReferences": [
                    {"apiVersion": "v1", "kind": "Thing", "name": "first"},
                    {"apiVersion": "v1", "kind": "Thing", "name": "second", "controller": true},
                ]}),
                "Thing second",
            ),
        ] {
            let mut value = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": metadata});
            value["metadata"]["name"] = "csi.vsphere.vmware.com".into();
            let said = match ownership(&Object::new(value.clone()).expect("an object"), "set") {
                Ownership::Ours => "ours".to_owned(),
                Ownership::Adoptable { how } => format!("adopt from {how}"),
                Ownership::Foreign { who } => who,
            };
            assert_eq!(said, expected, "{value}");
        }
    }
}
