// SPDX-License-Identifier: Apache-2.0
//! Checks that the user has every right (RBAC) that `vdoctl delete` needs, before the first object is deleted.

use super::objects_to_delete::{Scope, Target};
use crate::context::Context;
use crate::{CliError, Exit};
use std::collections::BTreeMap;
use vdo::cluster::{ClusterError, LEASE_NAME, LEASE_NAMESPACE, rights};
use vdo_api::api::API_VERSION;
use vdo_api::types::{ObjectId, count};
use vdo_core::plan::{Plan, Step};

/// Verbs on an object of this API version.
type Need = (&'static [&'static str], String, ObjectId);

/// Refuses when a right is missing. `plan` is the removal of the drivers, where this process has to make it itself.
pub(super) async fn require(context: &Context, target: &Target, plan: Option<&Plan>) -> Result<(), CliError> {
    let mut by_namespace: BTreeMap<String, Vec<Need>> = BTreeMap::new();
    for need in needs(target, plan) {
        by_namespace.entry(need.2.namespace.clone()).or_default().push(need);
    }
    let mut missing = Vec::new();
    for (namespace, needs) in by_namespace {
        let own = rights(&context.ports.client, &namespace).await?;
        missing.extend(
            needs
                .iter()
                .filter_map(|(verbs, api_version, id)| own.require(verbs, api_version, id).err()),
        );
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(refused(&context.name, &missing)),
    }
}

fn needs(target: &Target, plan: Option<&Plan>) -> Vec<Need> {
    let lease = || ObjectId::new("coordination.k8s.io", "Lease", LEASE_NAMESPACE, LEASE_NAME);
    let mut all: Vec<Need> = Vec::new();
    for config in &target.configs {
        all.push((&["get", "list", "delete", "patch"], API_VERSION.into(), config.id()));
    }
    if !target.configs.is_empty() {
        all.push((&["get", "create", "update"], "coordination.k8s.io/v1".into(), lease()));
    }
    if target.scope != Scope::Drivers {
        let objects = target.connections.iter().chain(&target.secrets).chain(&target.objects);
        all.extend(objects.map(|object| -> Need { (&["get", "delete"], object.api_version().to_owned(), object.id()) }));
    }
    for step in plan.into_iter().flat_map(Plan::writes) {
        match step {
            Step::Delete { id, api_version, .. } => all.push((&["list", "delete"], api_version.clone(), id.clone())),
            Step::Release { id, api_version, .. } => all.push((&["patch"], api_version.clone(), id.clone())),
            _ => {}
        }
    }
    all
}

fn refused(cluster: &str, missing: &[ClusterError]) -> CliError {
    let (mut lacking, mut rules) = (BTreeMap::<String, Vec<String>>::new(), Vec::new());
    for error in missing {
        if let ClusterError::Forbidden { verb, id, rule, .. } = error {
            let place = if id.namespace.is_empty() {
                String::new()
            } else {
                format!("{}/", id.namespace)
            };
            lacking.entry(format!("{verb} {}", id.kind())).or_default().push(place + &id.name);
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }
    let each = lacking.iter().map(|(what, names)| format!("{what} {}", names.join(", ")));
    CliError::new(
        Exit::Refused,
        format!(
            "in cluster {cluster} you lack {} ({}), so nothing was removed",
            count(missing.len(), "right"),
            each.collect::<Vec<_>>().join("; ")
        ),
        format!("Ask for a role with these rules:\n{}", rules.join("\n")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rights_are_one_refusal_with_every_rule_once() {
        let lacking = |name: &str| ClusterError::Forbidden {
            verb: "delete".into(),
            id: ObjectId::new("rbac.authorization.k8s.io", "ClusterRole", "", name),
            rule: "one rule".into(),
            source: vdo::cluster::ApiMessage {
                code: 403,
                message: String::new(),
            },
        };
        let few = refused("demo", &[lacking("a"), lacking("b")]);
        assert_eq!(few.exit, Exit::Refused);
        let what = "in cluster demo you lack 2 rights (delete ClusterRole a, b), so nothing was removed";
        assert_eq!(few.what, what);
        assert_eq!(few.remedy, "Ask for a role with these rules:\none rule");
    }
}
