use crate::manifest::Object;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const NAME: &str = "vdo-operator-workloads";

/// What a workload of a driver may be, over all versions of it.
#[derive(Default)]
struct Allowed {
    accounts: BTreeSet<String>,
    paths: BTreeSet<String>,
    secrets: BTreeSet<String>,
    /// Containers with more rights than a container has by itself.
    privileged: BTreeSet<String>,
    capabilities: BTreeSet<String>,
    /// `hostNetwork` and the like.
    host: BTreeSet<String>,
}

/// A ValidatingAdmissionPolicy and its binding: an account may write only these workloads, with no more of the node than they have in some
/// version.
#[must_use]
pub fn policy<'a>(user: &str, objects: impl IntoIterator<Item = &'a Object>) -> [Value; 2] {
    let mut all: BTreeMap<String, Allowed> = BTreeMap::new();
    for object in objects {
        let Some(spec) = object.pod_spec() else { continue };
        let key = format!("{}/{}/{}", object.kind(), object.namespace(), object.name());
        allow(all.entry(key).or_default(), spec);
    }
    let expressions = [
        ("true", "the operator may write only the workloads of the drivers".to_owned()),
        (
            "(has(variables.pod.serviceAccountName) ? variables.pod.serviceAccountName : '') in variables.accounts[variables.key]",
            "another service account than the driver's".to_owned(),
        ),
        (
            "variables.volumes.all(v, !has(v.hostPath) || v.hostPath.path in variables.paths[variables.key])",
            "a path of the node that the driver does not use".to_owned(),
        ),
        (
            "variables.volumes.all(v, !has(v.secret) || v.secret.secretName in variables.secrets[variables.key]) && \
             variables.volumes.all(v, !has(v.projected) || !has(v.projected.sources) || v.projected.sources.all(s, !has(s.secret))) && \
             variables.containers.all(c, !has(c.envFrom) || c.envFrom.all(e, !has(e.secretRef))) && \
             variables.containers.all(c, !has(c.env) || c.env.all(e, !has(e.valueFrom) || !has(e.valueFrom.secretKeyRef)))",
            "a Secret that the driver does not use".to_owned(),
        ),
        (
            "variables.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged \
             || c.name in variables.privileged[variables.key])",
            "a privileged container that is not privileged in the driver".to_owned(),
        ),
        (
            "variables.containers.all(c, !has(c.securityContext) || !has(c.securityContext.capabilities) \
             || !has(c.securityContext.capabilities.add) \
             || c.securityContext.capabilities.add.all(a, a in variables.capabilities[variables.key]))",
            "a capability that the driver does not have".to_owned(),
        ),
        (
            "(!has(variables.pod.hostNetwork) || !variables.pod.hostNetwork || 'hostNetwork' in variables.host[variables.key]) && \
             (!has(variables.pod.hostPID) || !variables.pod.hostPID || 'hostPID' in variables.host[variables.key]) && \
             (!has(variables.pod.hostIPC) || !variables.pod.hostIPC || 'hostIPC' in variables.host[variables.key])",
            "a namespace of the node that the driver does not share".to_owned(),
        ),
    ];
    let known = "variables.key in variables.accounts";
    let validations: Vec<Value> = expressions
        .into_iter()
        .map(|(expression, message)| match expression {
            "true" => json!({"expression": known, "message": message}),
            // A workload that is none of the drivers' is refused by the first.
            _ => json!({"expression": format!("!({known}) || ({expression})"), "message": format!("the operator may not give a driver {message}")}),
        })
        .collect();
    let list = |of: fn(&Allowed) -> &BTreeSet<String>| {
        let entries = all.iter().map(|(key, allowed)| {
            let words: Vec<String> = of(allowed).iter().map(|word| literal(word)).collect();
            format!("{}: [{}]", literal(key), words.join(", "))
        });
        format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
    };
    let variable = |name: &str, expression: String| json!({"name": name, "expression": expression});
    let definition = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["", "apps", "batch"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
                "resources": ["pods", "replicationcontrollers", "deployments", "daemonsets", "replicasets", "statefulsets", "jobs", "cronjobs"],
            }]},
            "matchConditions": [{"name": "by-the-operator", "expression": format!("request.userInfo.username == {}", literal(user))}],
            "variables": [
                variable("key", "request.kind.kind + '/' + request.namespace + '/' + request.name".to_owned()),
                variable("accounts", list(|allowed| &allowed.accounts)),
                variable("paths", list(|allowed| &allowed.paths)),
                variable("secrets", list(|allowed| &allowed.secrets)),
                variable("privileged", list(|allowed| &allowed.privileged)),
                variable("capabilities", list(|allowed| &allowed.capabilities)),
                variable("host", list(|allowed| &allowed.host)),
                variable("pod", "object.spec.template.spec".to_owned()),
                variable("volumes", "has(variables.pod.volumes) ? variables.pod.volumes : []".to_owned()),
                variable(
                    "containers",
                    "variables.pod.containers + (has(variables.pod.initContainers) ? variables.pod.initContainers : [])".to_owned(),
                ),
            ],
            "validations": validations,
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": NAME},
        "spec": {"policyName": NAME, "validationActions": ["Deny"]},
    });
    [definition, binding]
}

fn allow(allowed: &mut Allowed, pod: &Value) {
    let text = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let list = |key: &str| pod.get(key).and_then(Value::as_array).into_iter().flatten();
    allowed.accounts.insert(text(pod, "/serviceAccountName").unwrap_or_default());
    for volume in list("volumes") {
        allowed.paths.extend(text(volume, "/hostPath/path"));
        allowed.secrets.extend(text(volume, "/secret/secretName"));
    }
    for container in list("containers").chain(list("initContainers")) {
        if container.pointer("/securityContext/privileged") == Some(&Value::Bool(true)) {
            allowed.privileged.extend(text(container, "/name"));
        }
        let added = container.pointer("/securityContext/capabilities/add").and_then(Value::as_array);
        allowed
            .capabilities
            .extend(added.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
    }
    let host = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|key| pod[*key] == true);
    allowed.host.extend(host.map(str::to_owned));
}

/// A text in CEL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admission_policy_is_the_union_of_what_the_workloads_have() {
        let workload = |account: &str, path: &str, privileged: bool| {
            let container = json!({"name": "c", "securityContext": {"privileged": privileged, "capabilities": {"add": ["SYS_ADMIN"]}}});
            let plain = json!({"name": "d", "securityContext": {"privileged": false}});
            let pod = json!({"serviceAccountName": account, "hostNetwork": true, "containers": [container, plain],
                "volumes": [{"name": "v", "hostPath": {"path": path}}, {"name": "w", "secret": {"secretName": "s"}}]});
            let value = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": "n"},
                "spec": {"template": {"spec": pod}}});
            Object::new(value).expect("an object")
        };
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}});
        let other = Object::new(other).expect("an object");
        let all = [workload("a", "/b", false), workload("a", r"\\.\pipe\it's", true), other];
        let [policy, binding] = policy("me", &all);
        let variables: BTreeMap<&str, &str> = policy["spec"]["variables"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|variable| Some((variable["name"].as_str()?, variable["expression"].as_str()?)))
            .collect();
        for (name, expression) in [
            ("accounts", "{'DaemonSet/n/d': ['a']}"),
            ("paths", r"{'DaemonSet/n/d': ['/b', '\\\\.\\pipe\\it\'s']}"),
            ("secrets", "{'DaemonSet/n/d': ['s']}"),
            ("privileged", "{'DaemonSet/n/d': ['c']}"),
            ("capabilities", "{'DaemonSet/n/d': ['SYS_ADMIN']}"),
            ("host", "{'DaemonSet/n/d': ['hostNetwork']}"),
        ] {
            assert_eq!(variables[name], expression, "{name}");
        }
        assert_eq!(
            policy["spec"]["matchConditions"][0]["expression"],
            "request.userInfo.username == 'me'"
        );
        assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
    }

    /// The first expression alone refuses what no driver has. The others would end with an error there, so they let it pass.
    #[test]
    fn admission_policy_unknown_workload_is_refused_by_first_expression() {
        let [policy, _] = policy("me", []);
        let validations = policy["spec"]["validations"].as_array().expect("a list");
        let (first, others) = validations.split_first().expect("one at least");
        assert_eq!(first["expression"], "variables.key in variables.accounts");
        assert_eq!(first["message"], "the operator may write only the workloads of the drivers");
        for other in others {
            let expression = other["expression"].as_str().expect("a text");
            assert!(
                expression.starts_with("!(variables.key in variables.accounts) || ("),
                "{expression}"
            );
        }
    }
}
