// SPDX-License-Identifier: Apache-2.0
//! Finds workloads that use a driver configuration which an adoption changes; such a plan waits for approval (effect: reads).
//!
//! Workloads are listed only if another tool installed such a configuration.

use super::observe::installed;
use super::planned::Planned;
use crate::cluster::{ClusterError, Reader};
use std::collections::BTreeSet;
use vdo_api::types::ObjectId;
use vdo_core::installed::Installed;
use vdo_core::manifest::Object;
use vdo_core::plan::users;

/// What a plan changes for workloads of others, a sentence each (effect: reads workloads where it may be something).
///
/// # Errors
/// When the workloads cannot be read.
pub(super) async fn used_by_others(
    reader: &Reader,
    apply_set: &str,
    planned: &Planned,
    replaced: &[(Object, Object)],
) -> Result<Vec<String>, ClusterError> {
    let changed: Vec<ObjectId> = replaced
        .iter()
        .filter(|(before, after)| before.content() != after.content())
        .map(|(before, _)| before.id())
        .collect();
    let namespaces: BTreeSet<&str> = changed.iter().map(|id| id.namespace.as_str()).collect();
    let mut workloads = Vec::new();
    for namespace in namespaces {
        workloads.extend(installed::workloads(reader, namespace).await?);
    }
    let wanted: BTreeSet<&ObjectId> = planned.desired.iter().map(|desired| desired.object.identity()).collect();
    workloads.retain(|workload| !wanted.contains(workload.identity()) && !runs_a_driver(workload));
    Ok(sentences(&changed, &workloads, apply_set))
}

/// One that runs a driver is replaced itself.
fn runs_a_driver(workload: &Object) -> bool {
    Installed::of(workload).is_some_and(|found| found.evidence.is_proof())
}

fn sentences(changed: &[ObjectId], workloads: &[Object], apply_set: &str) -> Vec<String> {
    let users = users(workloads, apply_set);
    let used = changed.iter().filter_map(|id| Some((id, users.get(id)?)));
    used.map(|(id, user)| format!("the content of {id} would change, and {user} uses it"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn change_of_what_another_workload_mounts_is_said() {
        let pod = json!({"containers": [{"name": "c"}], "volumes": [{"name": "v", "configMap": {"name": "settings"}}]});
        let workload = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop", "namespace": "n"},
            "spec": {"template": {"spec": pod}}});
        let workloads = [Object::new(workload).expect("a workload")];
        let id = |name: &str| ObjectId::new("", "ConfigMap", "n", name);
        assert_eq!(sentences(&[id("other")], &workloads, "set"), Vec::<String>::new());
        assert_eq!(
            sentences(&[id("other"), id("settings")], &workloads, "set"),
            ["the content of ConfigMap n/settings would change, and Deployment n/shop uses it"]
        );
    }
}
