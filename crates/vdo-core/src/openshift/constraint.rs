// SPDX-License-Identifier: Apache-2.0
//! Selects the SecurityContextConstraints that a workload's pods need, from their specification alone, and makes the RoleBindings for them.
//!
//! OpenShift admits a pod if a constraint allows it and the pod's account may use this constraint. Each constraint has a ClusterRole
//! `system:openshift:scc:NAME`, and a RoleBinding to that role in the namespace of the pods is enough.

use crate::rbac::GROUP;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use strum::IntoStaticStr;

/// The annotation of a pod that says which constraint is meant for it.
pub const REQUIRED: &str = "openshift.io/required-scc";

/// The constraints that OpenShift brings, from the narrowest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
pub enum Constraint {
    /// What every account may use.
    #[strum(serialize = "restricted-v2")]
    Restricted,
    /// A user of one's own choice, but not root.
    #[strum(serialize = "nonroot-v2")]
    NonRoot,
    /// The network and ports of the node.
    #[strum(serialize = "hostnetwork-v2")]
    HostNetwork,
    /// Root.
    #[strum(serialize = "anyuid")]
    AnyUser,
    /// Everything.
    #[strum(serialize = "privileged")]
    Privileged,
}

impl Constraint {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The narrowest one that allows these pods.
    #[must_use]
    pub fn of(pod: &Value) -> Self {
        let lists = ["initContainers", "containers"];
        let containers: Vec<&Value> = lists.iter().filter_map(|list| pod[list].as_array()).flatten().collect();
        let security = || {
            containers
                .iter()
                .map(|container| &container["securityContext"])
                .chain([&pod["securityContext"]])
        };
        let network = pod["hostNetwork"] == true || containers.iter().any(|container| ports(container));
        let user = security().any(|context| !context["runAsUser"].is_null() || !context["runAsGroup"].is_null());
        let root = security().any(|context| context["runAsUser"] == 0);
        let beyond = pod["hostPID"] == true
            || pod["hostIPC"] == true
            || pod["os"]["name"] == "windows"
            || pod["volumes"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|volume| !volume["hostPath"].is_null())
            || security().any(escalates);
        match (beyond, network, user, root) {
            (true, ..) | (false, true, true, _) => Self::Privileged,
            (false, true, false, _) => Self::HostNetwork,
            (false, false, true, true) => Self::AnyUser,
            (false, false, true, false) => Self::NonRoot,
            (false, false, false, _) => Self::Restricted,
        }
    }
}

fn ports(container: &Value) -> bool {
    let ports = container["ports"].as_array();
    ports
        .into_iter()
        .flatten()
        .any(|port| port["hostPort"].as_u64().is_some_and(|port| port > 0))
}

/// Whether a security context has what only `privileged` allows.
fn escalates(context: &Value) -> bool {
    let added = context["capabilities"]["add"].as_array();
    let more = added.into_iter().flatten().any(|capability| capability != "NET_BIND_SERVICE");
    let windows = context["windowsOptions"]["hostProcess"] == true;
    context["privileged"] == true || context["allowPrivilegeEscalation"] == true || more || windows
}

/// Names the constraint of its pods in every workload, so that OpenShift takes no other that the account may use as well, and adds the bindings.
pub fn require(objects: &mut Vec<Value>) {
    let bindings = bindings(objects);
    for object in objects.iter_mut() {
        let Some(constraint) = object.pointer("/spec/template/spec").map(Constraint::of) else {
            continue;
        };
        if let Some(template) = object.pointer_mut("/spec/template") {
            template["metadata"]["annotations"][REQUIRED] = constraint.name().into();
        }
    }
    objects.extend(bindings);
}

/// The RoleBindings by which exactly the accounts of these workloads may use exactly what they need. What every account may use needs none.
#[must_use]
pub fn bindings(objects: &[Value]) -> Vec<Value> {
    let text = |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let needs = objects.iter().filter_map(|object| {
        let pod = object.pointer("/spec/template/spec")?;
        let constraint = Constraint::of(pod);
        let account = match text(pod, "/serviceAccountName") {
            empty if empty.is_empty() => "default".to_owned(),
            name => name,
        };
        (constraint != Constraint::Restricted).then(|| (text(object, "/metadata/namespace"), account, constraint))
    });
    let needs: BTreeSet<(String, String, Constraint)> = needs.collect();
    needs
        .iter()
        .map(|(namespace, account, constraint)| binding(namespace, account, *constraint))
        .collect()
}

fn binding(namespace: &str, account: &str, constraint: Constraint) -> Value {
    let name = constraint.name();
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "RoleBinding",
        "metadata": {"name": format!("{account}-scc-{name}"), "namespace": namespace},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": format!("system:openshift:scc:{name}")},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(pod: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "n"},
            "spec": {"template": {"metadata": {}, "spec": pod}}})
    }

    #[test]
    fn constraint_is_the_narrowest_that_allows_the_pods() {
        use Constraint::{AnyUser, HostNetwork, NonRoot, Privileged, Restricted};
        let container = |more: Value| json!({"containers": [{"name": "first"}, more]});
        for (pod, expected) in [
            (
                json!({"containers": [{"name": "c", "securityContext": {"runAsNonRoot": true}}]}),
                Restricted,
            ),
            (json!({"containers": [], "securityContext": {"runAsUser": 65532}}), NonRoot),
            (
                container(json!({"securityContext": {"runAsUser": 65532, "runAsGroup": 65532}})),
                NonRoot,
            ),
            (container(json!({"securityContext": {"runAsUser": 0}})), AnyUser),
            (
                json!({"containers": [], "initContainers": [{"securityContext": {"runAsUser": 0}}]}),
                AnyUser,
            ),
            (json!({"hostNetwork": true, "containers": []}), HostNetwork),
            (container(json!({"ports": [{"containerPort": 80, "hostPort": 80}]})), HostNetwork),
            (container(json!({"ports": [{"containerPort": 80}]})), Restricted),
            // Its users are those of the namespace's range, which a fixed one is not in.
            (
                json!({"hostNetwork": true, "containers": [], "securityContext": {"runAsUser": 1001}}),
                Privileged,
            ),
            (json!({"containers": [], "volumes": [{"hostPath": {"path": "/dev"}}]}), Privileged),
            (json!({"containers": [], "volumes": [{"emptyDir": {}}, {"secret": {}}]}), Restricted),
            (container(json!({"securityContext": {"privileged": true}})), Privileged),
            (
                container(json!({"securityContext": {"capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]}}})),
                Privileged,
            ),
            (
                container(json!({"securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}}})),
                Restricted,
            ),
            (json!({"hostPID": true, "containers": []}), Privileged),
            (json!({"os": {"name": "windows"}, "containers": []}), Privileged),
        ] {
            assert_eq!(Constraint::of(&pod), expected, "{pod}");
        }
    }

    #[test]
    fn constraint_bindings_are_one_for_each_account_that_needs_one() {
        let pod = |account: &str, more: Value| {
            let mut pod = json!({"serviceAccountName": account, "containers": []});
            pod["hostPID"] = more;
            workload(pod)
        };
        let all = [pod("a", true.into()), pod("a", true.into()), pod("b", false.into())];
        let found = bindings(&all);
        assert_eq!(
            found,
            [
                json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "a-scc-privileged", "namespace": "n"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:openshift:scc:privileged"},
                "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "n"}]})
            ]
        );
    }

    #[test]
    fn constraint_is_named_in_the_pods_of_a_workload() {
        let mut objects = vec![
            workload(json!({"containers": [], "hostNetwork": true})),
            json!({"kind": "ConfigMap"}),
        ];
        require(&mut objects);
        assert_eq!(
            objects[0]["spec"]["template"]["metadata"]["annotations"][REQUIRED],
            "hostnetwork-v2"
        );
        assert_eq!(objects[1], json!({"kind": "ConfigMap"}));
        assert_eq!(objects[2]["roleRef"]["name"], "system:openshift:scc:hostnetwork-v2");
    }
}
