// SPDX-License-Identifier: Apache-2.0
//! Lists the workloads of other tools that run a driver for vSphere, also as static pods (effect: reads).

use crate::cluster::{ClusterError, Reader, Select, Watch, list, with_managers};
use kube::Client;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::{DriverName, DriverVersion};
use vdo_core::drivers::KNOWN;
use vdo_core::installed::{Installed, KINDS};
use vdo_core::manifest::{Object, is_owned};
use vdo_core::plan::{Adoption, Ownership};

/// The watches that show workloads which run a driver, of any name and in any namespace.
pub(in crate::reconcile) fn watches() -> BTreeSet<Watch> {
    KINDS
        .map(|(api_version, kind)| Watch::new(api_version, kind, "", Select::Drivers))
        .into()
}

/// The workloads of others, in the order of their ids. A person who may not see all workloads plans without: the operator decides with them.
///
/// # Errors
/// When they cannot be read.
pub(in crate::reconcile) async fn of_others(reader: &Reader, apply_set: &str) -> Result<Vec<Installed>, ClusterError> {
    let view = match reader.load(watches()).await {
        Err(ClusterError::Forbidden { .. }) if reader.cache().is_none() => return Ok(Vec::new()),
        found => found?,
    };
    let found = watches().iter().flat_map(|watch| view.list(watch)).collect::<Vec<Object>>();
    let others = found.iter().filter(|object| !is_owned(object, apply_set));
    Ok(others.filter_map(Installed::of).collect())
}

/// Every workload of a namespace (effect: reads).
///
/// # Errors
/// When they cannot be read.
pub(in crate::reconcile) async fn workloads(reader: &Reader, namespace: &str) -> Result<Vec<Object>, ClusterError> {
    let mut all = Vec::new();
    for (api_version, kind) in KINDS {
        all.extend(reader.now(&Watch::new(api_version, kind, namespace, Select::All)).await?);
    }
    Ok(all)
}

/// The static pods that run a driver, in the namespaces of the drivers: of others only an administrator knows more than the name. A person who
/// may not see pods there sees none.
///
/// # Errors
/// When they cannot be read.
pub async fn static_pods(client: &Client) -> Result<Vec<Installed>, ClusterError> {
    let namespaces: BTreeSet<&str> = KNOWN.iter().map(|driver| driver.namespace).collect();
    let mut all = Vec::new();
    for namespace in namespaces {
        match list(client, &Watch::new("v1", "Pod", namespace, Select::Drivers)).await {
            Err(ClusterError::Forbidden { .. }) => {}
            found => all.extend(found?.iter().filter_map(Installed::of).filter(|found| found.evidence.is_proof())),
        }
    }
    Ok(all)
}

/// A workload with the record of its field managers, where nothing else says who made it.
///
/// # Errors
/// When it cannot be read.
pub async fn attributed(client: &Client, found: Installed) -> Result<Installed, ClusterError> {
    let is_unmarked = matches!(found.ownership(""), Ownership::Adoptable { how: Adoption::Unmarked });
    let object = match is_unmarked {
        true => with_managers(client, found.object.api_version(), found.object.identity()).await?,
        false => None,
    };
    Ok(match object {
        Some(object) => Installed { object, ..found },
        None => found,
    })
}

/// The version of each driver that runs in the namespace of the driver and is not ours: where parts of one differ, the oldest. Only
/// administrators make workloads there; what a tenant calls a driver decides nothing.
pub(in crate::reconcile) fn versions(of_others: &[Installed]) -> BTreeMap<DriverName, DriverVersion> {
    let mut all: BTreeMap<DriverName, DriverVersion> = BTreeMap::new();
    let home = |found: &&Installed| found.object.namespace() == found.driver.namespace;
    for found in of_others
        .iter()
        .filter(home)
        .filter(|found| found.evidence.is_proof() && found.is_active())
    {
        let Some(version) = &found.version else { continue };
        let known = all.entry(found.driver.name.to_owned()).or_insert_with(|| version.clone());
        if version < known {
            known.clone_from(version);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn installed_version_is_the_oldest_in_the_namespace_of_the_driver() {
        let workload = |namespace: &str, image: &str| {
            let pod = json!({"containers": [{"name": "c", "image": image}]});
            let object = Object::new(
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "any", "namespace": namespace},
                "spec": {"template": {"spec": pod}}}),
            );
            Installed::of(&object.expect("an object")).expect("a driver")
        };
        let found = [
            workload("vmware-system-csi", "example.com/csi-vsphere/driver:v3.7.0"),
            workload("vmware-system-csi", "example.com/csi-vsphere/driver:v3.6.3"),
            workload("shop", "example.com/csi-vsphere/driver:v1.0.0"),
            workload("shop", "example.com/cloud-provider-vsphere:v1.20.0"),
            workload("kube-system", "example.com/cloud-provider-vsphere@sha256:00"),
        ];
        let versions: Vec<String> = versions(&found)
            .iter()
            .map(|(driver, version)| format!("{driver} {version}"))
            .collect();
        assert_eq!(versions, ["vsphere-csi 3.6.3"]);
    }
}
