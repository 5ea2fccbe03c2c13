// SPDX-License-Identifier: Apache-2.0
//! Reads the cluster id from the configuration of an installed CSI driver, and counts its PersistentVolumes (effect: reads).

use crate::cluster::{ClusterError, Select, Watch, list, list_kept};
use kube::Client;
use std::collections::BTreeSet;
use vdo_api::types::ObjectId;
use vdo_core::drivers::{self, CSI_DRIVER, STORAGE};
use vdo_core::installed::Installed;

/// What was found.
#[derive(Default)]
pub(in crate::reconcile) struct Registered {
    /// The identities, each with the place where it was found.
    pub ids: Vec<(String, String)>,
    /// Configuration of drivers that runs and that the operator may not read.
    pub unreadable: Vec<ObjectId>,
    /// Configuration of drivers in namespaces of others, which is not read: a tenant might have written it.
    pub elsewhere: Vec<ObjectId>,
}

/// The identities in the configuration of every driver that runs, and where installers keep it (effect). An object of a tenant says nothing:
/// only namespaces of administrators are read.
///
/// # Errors
/// When a place cannot be read that the operator has the right for.
pub(in crate::reconcile) async fn registered(client: &Client, of_others: &[Installed]) -> Result<Registered, ClusterError> {
    let (places, elsewhere) = places(of_others);
    let mut found = Registered {
        elsewhere,
        ..Registered::default()
    };
    for id in places {
        let watch = Watch::new("v1", id.kind(), &id.namespace, Select::Name(id.name.clone()));
        let objects = match list(client, &watch).await {
            Err(ClusterError::Forbidden { .. }) if !is_standard(&id) => {
                found.unreadable.push(id);
                continue;
            }
            objects => objects?,
        };
        let named = objects.first().and_then(drivers::cluster_id);
        found.ids.extend(named.map(|named| (named, id.to_string())));
    }
    Ok(found)
}

/// Whether any place has one (effect).
///
/// # Errors
/// As [`registered`].
pub(in crate::reconcile) async fn is_registered(client: &Client) -> Result<bool, ClusterError> {
    Ok(!registered(client, &[]).await?.ids.is_empty())
}

fn is_standard(id: &ObjectId) -> bool {
    let mut all = drivers::cluster_id_places().into_iter();
    all.any(|(kind, namespace, name)| (id.kind(), id.namespace.as_str(), id.name.as_str()) == (kind, namespace, name))
}

/// The places in the order in which they count, and those that are not read.
fn places(of_others: &[Installed]) -> (Vec<ObjectId>, Vec<ObjectId>) {
    let standard = drivers::cluster_id_places().map(|(kind, namespace, name)| ObjectId::new("", kind, namespace, name));
    let mut all = Vec::from(standard);
    let namespaces: BTreeSet<&str> = drivers::cluster_id_places()
        .into_iter()
        .map(|(_, namespace, _)| namespace)
        .collect();
    let mut elsewhere = Vec::new();
    let storage = of_others
        .iter()
        .filter(|found| found.driver.name == STORAGE.name && found.evidence.is_proof());
    for id in storage.flat_map(Installed::configuration) {
        let list = if namespaces.contains(id.namespace.as_str()) {
            &mut all
        } else {
            &mut elsewhere
        };
        if matches!(id.kind(), "Secret" | "ConfigMap") && !list.contains(&id) {
            list.push(id);
        }
    }
    (all, elsewhere)
}

/// How many PersistentVolumes of the driver there are (effect).
///
/// # Errors
/// When they cannot be read.
pub(super) async fn volumes(client: &Client) -> Result<usize, ClusterError> {
    let all = list_kept(client, &Watch::new("v1", "PersistentVolume", "", Select::All)).await?;
    Ok(all.iter().filter(|volume| volume.text("/spec/csi/driver") == CSI_DRIVER).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vdo_core::manifest::Object;

    #[test]
    fn registered_places_are_the_usual_ones_and_configuration_of_administrators() {
        let workload = |namespace: &str, secret: &str| {
            let pod = json!({"containers": [{"name": "c", "image": "example.com/csi-vsphere/driver:v3.7.0"}],
                "volumes": [{"name": "v", "secret": {"secretName": secret}}]});
            let object = Object::new(
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "any", "namespace": namespace},
                "spec": {"template": {"spec": pod}}}),
            );
            Installed::of(&object.expect("an object")).expect("a driver")
        };
        let found = [
            workload("kube-system", "csi-file"),
            workload("shop", "forged"),
            workload("kube-system", "vsphere-config-secret"),
        ];
        let (places, elsewhere) = places(&found);
        let all: Vec<String> = places.iter().map(ToString::to_string).collect();
        assert_eq!(
            all,
            [
                "Secret vmware-system-csi/vsphere-config-secret",
                "ConfigMap vmware-system-csi/vsphere-csi-cluster-id",
                "Secret kube-system/vsphere-config-secret",
                "ConfigMap kube-system/vsphere-csi-cluster-id",
                "Secret kube-system/csi-file",
            ]
        );
        let elsewhere: Vec<String> = elsewhere.iter().map(ToString::to_string).collect();
        assert_eq!(elsewhere, ["Secret shop/forged"]);
    }
}
