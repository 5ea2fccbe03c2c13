//! Which workloads run a driver for vSphere and are not ours (effect: reads).

use crate::cluster::{ClusterError, Reader, Select, Watch};
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::{DriverName, DriverVersion};
use vdo_core::installed::{Installed, KINDS};
use vdo_core::manifest::{Object, is_owned};

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
