// SPDX-License-Identifier: Apache-2.0
//! Finds the ConfigMaps, Secrets and ServiceAccounts that workloads of other tools use, so that they are not deleted (pure).

use crate::manifest::{Object, consumed_by, is_owned};
use vdo_api::types::{ById, ObjectId};

/// The kinds that any pod of the namespace may name.
pub(super) const USED: [&str; 3] = ["ConfigMap", "Secret", "ServiceAccount"];

/// The configuration and the accounts that workloads of others name, each with the first of these workloads.
#[must_use]
pub fn users(workloads: &[Object], apply_set: &str) -> ById<String> {
    let mut all = ById::default();
    let of_others = workloads
        .iter()
        .filter(|workload| !is_owned(workload, apply_set) && !workload.is_terminating());
    for workload in of_others {
        let Some(pod) = workload.pod_spec() else { continue };
        let account = pod["serviceAccountName"]
            .as_str()
            .map(|name| ("ServiceAccount".to_owned(), name.to_owned()));
        let pulls = pod["imagePullSecrets"].as_array().into_iter().flatten();
        let pulls = pulls.filter_map(|secret| Some(("Secret".to_owned(), secret["name"].as_str()?.to_owned())));
        for (kind, name) in consumed_by(pod).into_iter().chain(account).chain(pulls) {
            let id = ObjectId::new("", &kind, workload.namespace(), name);
            all.entry(id).or_insert_with(|| workload.to_string());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn users_are_workloads_of_others_that_name_an_object() {
        let workload = |name: &str, metadata: &serde_json::Value| {
            let pod = json!({"serviceAccountName": "account", "imagePullSecrets": [{"name": "pull"}],
                "volumes": [{"name": "v", "secret": {"secretName": "file"}}],
                "containers": [{"name": "c", "envFrom": [{"configMapRef": {"name": "settings"}}]}]});
            let mut value = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "n"},
                "spec": {"template": {"spec": pod}}});
            for (key, part) in metadata.as_object().into_iter().flatten() {
                value["metadata"][key] = part.clone();
            }
            Object::new(value).expect("an object")
        };
        let ours = json!({"labels": {"app.kubernetes.io/managed-by": "vdo", "applyset.kubernetes.io/part-of": "set"}});
        let ending = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        let found = users(&[workload("ours", &ours), workload("ending", &ending)], "set");
        assert!(found.is_empty(), "{found:?}");
        let found = users(&[workload("shop", &json!({}))], "set");
        let names: Vec<String> = found.iter().map(|(id, user)| format!("{id}: {user}")).collect();
        let mut expected = ["ConfigMap n/settings", "Secret n/file", "Secret n/pull", "ServiceAccount n/account"]
            .map(|id| format!("{id}: Deployment n/shop"))
            .to_vec();
        expected.sort();
        let mut names = names;
        names.sort();
        assert_eq!(names, expected);
    }
}
