// SPDX-License-Identifier: Apache-2.0
//! Decides for which cluster id a connection asks its vCenter, and lists the PersistentVolumes that the cluster has under that id.

use crate::cluster::{Reader, Select, Watch, list_kept};
use crate::reconcile::cluster_id::{claimed, given, is_registered};
use crate::reconcile::error::ReconcileError;
use crate::reconcile::is_uninstalled;
use crate::reconcile::observe::cluster;
use kube::Client;
use vdo_api::api::VDOConfig;
use vdo_core::drivers::{CSI_DRIVER, STORAGE};
use vdo_core::manifest::Object;
use vdo_vsphere::vsphere::{Claim, Requirements};

/// The cluster id that the CSI driver is about to use for the first time, if it uses the connection that this is required of.
///
/// # Errors
/// When kube-system, whose UID is the default, cannot be read.
pub async fn claimed_id(reader: &Reader, config: &VDOConfig, requirements: &Requirements) -> Result<Option<String>, ReconcileError> {
    if is_uninstalled(config) || !requirements.drivers.contains(STORAGE.name) {
        return Ok(None);
    }
    Ok(claimed(config, &cluster::cluster_uid(reader).await?))
}

/// That cluster id with the volumes that the cluster knows (effect). They are listed and not watched: it is asked a few times in the life
/// of a cluster.
///
/// # Errors
/// When they cannot be read.
pub async fn claim(
    client: &Client,
    reader: &Reader,
    config: &VDOConfig,
    requirements: &Requirements,
) -> Result<Option<Claim>, ReconcileError> {
    let Some(id) = claimed_id(reader, config, requirements).await? else {
        return Ok(None);
    };
    // One that is given may be that of a driver that is about to be adopted.
    if given(config).is_some() && is_registered(client).await? {
        return Ok(None);
    }
    let found = list_kept(client, &Watch::new("v1", "PersistentVolume", "", Select::All)).await?;
    Ok(Some(of(id, &found)))
}

/// The cluster id under which the driver registers its volumes through a connection, once it has used it.
#[must_use]
pub fn counted(config: Option<&VDOConfig>, requirements: &Requirements) -> Option<String> {
    let status = config?.status.as_ref()?;
    status.cluster_id.clone().filter(|_| requirements.drivers.contains(STORAGE.name))
}

fn of(cluster_id: String, volumes: &[Object]) -> Claim {
    let in_tree = |o: &&Object| o.value().pointer("/spec/vsphereVolume").is_some();
    let ours = volumes.iter().filter(|o| o.text("/spec/csi/driver") == CSI_DRIVER);
    Claim {
        cluster_id,
        handles: ours.map(|o| o.text("/spec/csi/volumeHandle").to_owned()).collect(),
        names: volumes.iter().filter(in_tree).map(|o| o.name().to_owned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn claim_knows_handles_of_the_driver_and_names_of_its_predecessor() {
        let volume = |name: &str, spec| {
            Object::new(json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}))
                .expect("an object")
        };
        let found = of(
            "demo".into(),
            &[
                volume("pv-1", json!({"csi": {"driver": CSI_DRIVER, "volumeHandle": "id-1"}})),
                volume("pv-2", json!({"csi": {"driver": "ebs", "volumeHandle": "id-2"}})),
                volume("pv-3", json!({"vsphereVolume": {"volumePath": "[ds] v"}})),
                volume("pv-4", json!({"nfs": {}})),
            ],
        );
        let expected = Claim {
            cluster_id: "demo".into(),
            handles: ["id-1".to_owned()].into(),
            names: ["pv-3".to_owned()].into(),
        };
        assert_eq!(found, expected);
    }
}
