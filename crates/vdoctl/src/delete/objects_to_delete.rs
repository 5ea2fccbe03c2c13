// SPDX-License-Identifier: Apache-2.0
//! Lists the objects of VDO that `vdoctl delete` removes (all, `--keep-drivers`, `--drivers-only`), and the order of their kinds.

use super::super::args::Delete as Args;
use super::super::context::Context;
use super::super::error::CliError;
use super::super::operator_running::Installer;
use kube::ResourceExt;
use std::sync::Arc;
use vdo::cluster::{ClusterError, LEASE_NAME, LEASE_NAMESPACE, Select, Watch, get, list};
use vdo::reconcile::configs;
use vdo_api::api::{API_VERSION, MANAGED_BY_LABEL, VDOConfig};
use vdo_api::types::{ObjectId, count};
use vdo_core::install::{self, OPERATOR, REMOVAL_GUARD, Settings, VDOCTL};
use vdo_core::manifest::Object;

/// How much is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All of it.
    Everything,
    /// The operator; the drivers stay with what they need.
    Operator,
    /// The drivers; the operator stays.
    Drivers,
}

impl Scope {
    pub(super) fn of(args: &Args) -> Self {
        match (args.keep_drivers, args.drivers_only) {
            (true, _) => Self::Operator,
            (_, true) => Self::Drivers,
            _ => Self::Everything,
        }
    }
}

/// What is there.
pub(super) struct Target {
    /// How much of it is removed.
    pub scope: Scope,
    /// The VDOConfigs of the namespace, youngest first: the one that acts is the last.
    pub configs: Vec<Arc<VDOConfig>>,
    /// The connections and matrix objects of the namespace.
    pub connections: Vec<Object>,
    /// Secrets that `vdoctl deploy` created.
    pub secrets: Vec<Object>,
    /// What else of VDO is removed, in order.
    pub objects: Vec<Object>,
    /// What `vdoctl deploy` writes.
    pub desired: Vec<Object>,
    /// Objects of our kinds in other namespaces, which would be deleted with their definitions.
    pub elsewhere: Vec<ObjectId>,
    /// Who installed the operator, and has to remove it.
    pub manager: Option<Installer>,
}

impl Target {
    /// Reads what is there.
    pub(super) async fn find(context: &Context, namespace: &str, scope: Scope) -> Result<Self, CliError> {
        let reader = &context.ports.reader;
        let mut configs = match configs(reader, namespace).await {
            Err(ClusterError::NotServed { .. }) => Vec::new(),
            found => found?,
        };
        configs.sort_by_key(|config| std::cmp::Reverse((config.creation_timestamp().map(|at| at.0), config.name_any())));
        let mut target = Self {
            scope,
            configs,
            connections: Vec::new(),
            secrets: Vec::new(),
            objects: Vec::new(),
            desired: Vec::new(),
            elsewhere: Vec::new(),
            manager: None,
        };
        if scope == Scope::Drivers {
            return Ok(target);
        }
        for kind in ["VDOConfig", "VsphereCloudConfig", "CompatibilityConfig"] {
            let all = match list(&context.ports.client, &Watch::new(API_VERSION, kind, "", Select::All)).await {
                Err(ClusterError::NotServed { .. }) => Vec::new(),
                found => found?,
            };
            let (own, other): (Vec<Object>, Vec<Object>) = all.into_iter().partition(|object| object.namespace() == namespace);
            target.elsewhere.extend(other.iter().map(Object::id));
            if kind != "VDOConfig" {
                target.connections.extend(own);
            }
        }
        target.secrets = secrets(context, namespace).await?;
        target.desired = desired(namespace)?;
        target.objects = objects(context, namespace, scope, &target.desired).await?;
        let deployment = target.objects.iter().find(|object| object.kind() == "Deployment");
        target.manager = match deployment {
            Some(deployment) => Installer::find(context, deployment).await,
            None => None,
        };
        Ok(target)
    }

    /// Whether there is nothing to remove.
    pub(super) fn is_empty(&self) -> bool {
        self.configs.is_empty() && self.connections.is_empty() && self.secrets.is_empty() && self.objects.is_empty()
    }

    /// What will be removed, one line for each part.
    pub(super) fn summary(&self, drivers: &[String]) -> Vec<String> {
        let mut lines = Vec::new();
        let removed = |names: Vec<String>, lines: &mut Vec<String>| {
            if !names.is_empty() {
                lines.push(names.join(", "));
            }
        };
        if self.scope != Scope::Operator {
            removed(drivers.to_vec(), &mut lines);
        }
        let configs = self
            .configs
            .iter()
            .map(|config| format!("VDOConfig {}", super::super::context::id(config)));
        removed(configs.collect(), &mut lines);
        removed(
            self.connections.iter().chain(&self.secrets).map(|o| o.id().to_string()).collect(),
            &mut lines,
        );
        // Rights are many; the page on uninstalling lists them.
        lines.extend(by_kind(&self.objects));
        lines
    }
}

/// The Secrets and ConfigMaps that `vdoctl deploy` created, which are not the user's own.
async fn secrets(context: &Context, namespace: &str) -> Result<Vec<Object>, CliError> {
    let mut all = Vec::new();
    for kind in ["Secret", "ConfigMap"] {
        let select = Select::Labels(format!("{MANAGED_BY_LABEL}={VDOCTL}"));
        match list(&context.ports.client, &Watch::new("v1", kind, namespace, select)).await {
            // Who may not see them leaves them.
            Err(ClusterError::Forbidden { .. }) => {}
            found => all.extend(found?),
        }
    }
    Ok(all)
}

/// What `vdoctl deploy` writes to a cluster, wherever it has to write the most.
fn desired(namespace: &str) -> Result<Vec<Object>, CliError> {
    let settings = Settings {
        namespace: namespace.to_owned(),
        openshift: true,
        ..Settings::default()
    };
    install::objects(&settings).map_err(|error| CliError::internal(&error))
}

/// What there is of deploy/, in the order of its removal.
async fn objects(context: &Context, namespace: &str, scope: Scope, desired: &[Object]) -> Result<Vec<Object>, CliError> {
    // That of the operator, and that of vdoctl deploy.
    let leases = [LEASE_NAME, VDOCTL].map(|name| {
        let id = ObjectId::new("coordination.k8s.io", "Lease", LEASE_NAMESPACE, name);
        ("coordination.k8s.io/v1".to_owned(), id)
    });
    // No VDOConfig is left that it protects.
    let guard = ["ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"].map(|kind| {
        let group = "admissionregistration.k8s.io";
        (format!("{group}/v1"), ObjectId::new(group, kind, "", REMOVAL_GUARD))
    });
    let mut wanted: Vec<(String, ObjectId)> = desired
        .iter()
        .filter(|object| scope == Scope::Everything || is_of_operator(object, namespace))
        .map(|object| (object.api_version().to_owned(), object.id()))
        .chain(leases)
        .chain(guard)
        .collect();
    wanted.sort_by_key(|(_, id)| rank(id.kind()));
    let mut found = Vec::new();
    for (api_version, id) in wanted {
        match get(&context.ports.client, &api_version, &id).await {
            Err(ClusterError::NotServed { .. }) => {}
            Err(error) => return Err(error.into()),
            Ok(live) => found.extend(live),
        }
    }
    Ok(found)
}

/// Whether the operator needs an object, and not the drivers.
fn is_of_operator(object: &Object, namespace: &str) -> bool {
    object.kind() == "CustomResourceDefinition"
        || object.namespace() == namespace
        || object.name() == OPERATOR
        || (object.kind() == "Namespace" && object.name() == namespace)
}

/// When a kind is removed: what acts goes first, then its rights, then what holds other objects. The Lease goes when no
/// operator has the right to create it again, such as one on a node that does not answer.
pub(super) fn rank(kind: &str) -> u8 {
    match kind {
        "Deployment" => 0,
        "ServiceAccount" => 2,
        "ClusterRoleBinding" | "RoleBinding" => 3,
        "ClusterRole" | "Role" => 4,
        "CustomResourceDefinition" | "Lease" => 5,
        "Namespace" => 6,
        _ => 1,
    }
}

/// Up to three objects of a kind by their names, more by their number.
pub(super) fn by_kind(objects: &[Object]) -> Vec<String> {
    let mut kinds: Vec<(&str, Vec<String>)> = Vec::new();
    for object in objects {
        let name = match object.namespace() {
            "" => object.name().to_owned(),
            namespace => format!("{namespace}/{}", object.name()),
        };
        match kinds.iter_mut().find(|(kind, _)| *kind == object.kind()) {
            Some((_, names)) => names.push(name),
            None => kinds.push((object.kind(), vec![name])),
        }
    }
    let words = |(kind, names): (&str, Vec<String>)| match names.len() {
        0..=3 => format!("{kind} {}", names.join(", ")),
        many => count(many, kind),
    };
    kinds.into_iter().map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_kept_with_drivers_are_their_rights_and_namespace() {
        let all = install::objects(&Settings::default()).expect("objects");
        let (own, kept): (Vec<&Object>, Vec<&Object>) = all.iter().partition(|o| is_of_operator(o, vdo_api::api::OPERATOR_NAMESPACE));
        assert!(kept.iter().any(|o| o.kind() == "Namespace" && o.name() == "vmware-system-csi"));
        assert!(
            kept.iter()
                .any(|o| o.kind() == "ClusterRole" && o.name() == "vsphere-csi-controller-role")
        );
        assert!(kept.iter().all(|o| o.name() != OPERATOR), "a right of the operator stays");
        assert!(own.iter().any(|o| o.kind() == "Role" && o.namespace() == "kube-system"));
        assert!(own.iter().filter(|o| o.kind() == "CustomResourceDefinition").count() == 3);
    }

    #[test]
    fn order_of_removal_ends_with_definitions_and_namespaces() {
        let mut all = install::objects(&Settings::default()).expect("objects");
        all.sort_by_key(|object| rank(object.kind()));
        let kinds: Vec<&str> = all.iter().map(Object::kind).collect();
        assert_eq!(kinds.first(), Some(&"Deployment"));
        assert!(rank("Lease") > rank("Role"), "an operator could create it again");
        assert_eq!(
            kinds[kinds.len() - 5..],
            [
                "CustomResourceDefinition",
                "CustomResourceDefinition",
                "CustomResourceDefinition",
                "Namespace",
                "Namespace"
            ]
        );
    }
}
