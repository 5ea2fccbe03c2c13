// SPDX-License-Identifier: Apache-2.0
//! Recognises that Helm or OLM installed the operator, and has their commands to upgrade and to remove it (pure).
//! Helm and OLM would undo changes that another program writes to the operator's objects.

use super::manifests::HELM_RELEASE;
use crate::manifest::Object;
use vdo_api::api::MANAGED_BY_LABEL;

/// The program that installed the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manager {
    /// Helm, with the name of the release.
    Helm(String),
    /// OLM v0, with the name of the ClusterServiceVersion.
    ClusterServiceVersion(String),
    /// OLM v1, with the name of the ClusterExtension.
    ClusterExtension(String),
}

const OWNER: &str = "olm.owner";
const OWNER_KIND: &str = "olm.owner.kind";
const EXTENSION_KIND: &str = "olm.operatorframework.io/owner-kind";
const EXTENSION: &str = "olm.operatorframework.io/owner-name";

impl Manager {
    /// From the marks that it leaves on the operator's Deployment. OLM v1 installs with Helm's library, so its own mark comes first.
    #[must_use]
    pub fn of(deployment: &Object) -> Option<Self> {
        let label = |key: &str| deployment.label(key).map(str::to_owned);
        if deployment.label(EXTENSION_KIND) == Some("ClusterExtension") {
            return label(EXTENSION).map(Self::ClusterExtension);
        }
        if deployment.label(OWNER_KIND) == Some("ClusterServiceVersion") {
            return label(OWNER).map(Self::ClusterServiceVersion);
        }
        let helm = deployment.label(MANAGED_BY_LABEL) == Some("Helm");
        let release = deployment.annotation(HELM_RELEASE);
        (helm || release.is_some()).then(|| Self::Helm(release.unwrap_or("vdo").to_owned()))
    }

    /// By whom and as what the operator was installed, as the end of a sentence.
    #[must_use]
    pub fn installed_by(&self) -> String {
        match self {
            Self::Helm(release) => format!("by Helm as release {release}"),
            Self::ClusterServiceVersion(name) => format!("by OLM as ClusterServiceVersion {name}"),
            Self::ClusterExtension(name) => format!("by OLM as ClusterExtension {name}"),
        }
    }

    /// How to get another version of the operator there.
    #[must_use]
    pub fn upgrade(&self, namespace: &str) -> String {
        match self {
            Self::Helm(release) => format!("Upgrade the operator with Helm: helm upgrade {release} CHART -n {namespace}"),
            Self::ClusterServiceVersion(_) => format!(
                "The Subscription of the operator decides the version: \
                 kubectl -n {namespace} get subscriptions.operators.coreos.com,installplans. \
                 To configure the drivers, use vdoctl configure or change the VDOConfig."
            ),
            Self::ClusterExtension(name) => format!(
                "The ClusterExtension of the operator decides the version: kubectl edit clusterextension {name}. \
                 To configure the drivers, use vdoctl configure or change the VDOConfig."
            ),
        }
    }

    /// The command that removes the operator. OLM would install it again by its Subscription, where that is known.
    #[must_use]
    pub fn removal(&self, namespace: &str, subscription: Option<&str>) -> String {
        match (self, subscription) {
            (Self::Helm(release), _) => format!("helm uninstall {release} --namespace {namespace}"),
            (Self::ClusterServiceVersion(name), None) => format!("kubectl -n {namespace} delete clusterserviceversion {name}"),
            (Self::ClusterServiceVersion(name), Some(subscription)) => {
                format!(
                    "kubectl -n {namespace} delete subscriptions.operators.coreos.com/{subscription} clusterserviceversions.operators.coreos.com/{name}"
                )
            }
            (Self::ClusterExtension(name), _) => format!("kubectl delete clusterextension {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(labels: Value, annotations: Value) -> Option<Manager> {
        let metadata = json!({"name": "vdo-operator", "labels": labels, "annotations": annotations});
        let object = Object::new(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}));
        Manager::of(&object.expect("an object"))
    }

    #[test]
    fn manager_is_known_by_its_marks() {
        let none = || json!({});
        let helm = json!({"app.kubernetes.io/managed-by": "Helm"});
        assert_eq!(of(json!({"app.kubernetes.io/name": "vdo-operator"}), none()), None);
        assert_eq!(of(helm.clone(), json!({HELM_RELEASE: "mine"})), Some(Manager::Helm("mine".into())));
        assert_eq!(of(helm, none()), Some(Manager::Helm("vdo".into())));
        let csv = json!({"olm.owner": "vdo.v0.1.0", "olm.owner.kind": "ClusterServiceVersion", "olm.managed": "true"});
        assert_eq!(of(csv, none()), Some(Manager::ClusterServiceVersion("vdo.v0.1.0".into())));
        // As operator-controller labels what its Helm library installs.
        let extension = json!({"app.kubernetes.io/managed-by": "Helm", EXTENSION_KIND: "ClusterExtension", EXTENSION: "vdo"});
        assert_eq!(of(extension, none()), Some(Manager::ClusterExtension("vdo".into())));
    }
}
