// SPDX-License-Identifier: Apache-2.0
//! OpenShift's own admission code lets the pods of every version in with exactly the rights that VDO asks for, and the operator's without any.
#![allow(clippy::unwrap_used, reason = "a failing test should stop where it fails")]

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use vdo_core::admission::Allowed;
use vdo_core::chart::{self, Context};
use vdo_core::manifest::Object;
use vdo_core::openshift::constraint::{REQUIRED, require};
use vdo_core::rbac::is_prerequisite;
use vdo_source::fetch::embedded;
use vdo_testbed::admitted;

/// What volumes the narrower constraints allow.
const VOLUMES: [&str; 8] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// The constraints that OpenShift brings, as its documentation has them. The admission code insists on the older ones as well, which no one may
/// use here.
fn constraints() -> Vec<Value> {
    let base = |name: &str| {
        json!({
            "metadata": {"name": name}, "allowHostDirVolumePlugin": false, "allowHostIPC": false, "allowHostNetwork": false, "allowHostPID": false,
            "allowHostPorts": false, "allowPrivilegedContainer": false, "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": false,
            "allowedCapabilities": ["NET_BIND_SERVICE"], "requiredDropCapabilities": ["ALL"], "seccompProfiles": ["runtime/default"],
            "fsGroup": {"type": "MustRunAs"}, "runAsUser": {"type": "MustRunAsRange"}, "seLinuxContext": {"type": "MustRunAs"},
            "supplementalGroups": {"type": "RunAsAny"}, "volumes": VOLUMES,
        })
    };
    let with = |name: &str, more: Value| {
        let mut constraint = base(name);
        for (key, value) in more.as_object().unwrap() {
            constraint[key] = value.clone();
        }
        constraint
    };
    let any = json!({"type": "RunAsAny"});
    let mut all = vec![
        base("restricted-v2"),
        with("nonroot-v2", json!({"runAsUser": {"type": "MustRunAsNonRoot"}, "fsGroup": any})),
        with(
            "hostnetwork-v2",
            json!({"allowHostNetwork": true, "allowHostPorts": true, "supplementalGroups": {"type": "MustRunAs"}}),
        ),
        with(
            "anyuid",
            json!({"runAsUser": any, "fsGroup": any, "allowPrivilegeEscalation": true, "allowedCapabilities": null,
                "requiredDropCapabilities": ["MKNOD"], "priority": 10}),
        ),
        with(
            "privileged",
            json!({"allowHostDirVolumePlugin": true, "allowHostIPC": true, "allowHostNetwork": true, "allowHostPID": true, "allowHostPorts": true,
                "allowPrivilegedContainer": true, "allowPrivilegeEscalation": true, "allowedCapabilities": ["*"], "requiredDropCapabilities": null,
                "seccompProfiles": ["*"], "fsGroup": any, "runAsUser": any, "seLinuxContext": any, "volumes": ["*"]}),
        ),
    ];
    all.extend(["restricted", "nonroot", "hostaccess", "hostnetwork", "hostmount-anyuid"].map(base));
    all
}

/// The namespaces, with the ranges that OpenShift gives each.
fn namespaces(names: &BTreeSet<String>) -> Vec<Value> {
    let namespace = |name: &String| {
        json!({"metadata": {"name": name, "annotations": {"openshift.io/sa.scc.uid-range": "1000680000/10000",
            "openshift.io/sa.scc.supplemental-groups": "1000680000/10000", "openshift.io/sa.scc.mcs": "s0:c26,c15"}}})
    };
    names.iter().map(namespace).collect()
}

/// The pods of workloads. kube-system is outside of OpenShift's admission there, so that its pods are asked about in a namespace that is not.
fn pods(objects: &[Value]) -> Vec<Value> {
    let pod = |object: &Value| {
        let template = object.pointer("/spec/template")?;
        let mut metadata = template["metadata"].clone();
        metadata["name"] = object["metadata"]["name"].clone();
        metadata["namespace"] = inside(object["metadata"]["namespace"].as_str()?).into();
        Some(json!({"metadata": metadata, "spec": template["spec"]}))
    };
    objects.iter().filter_map(pod).collect()
}

fn inside(namespace: &str) -> String {
    namespace.replace("kube-system", "not-kube-system")
}

/// What the bindings among these objects grant, and what everyone has.
fn grants(objects: &[Value]) -> Vec<Value> {
    let grant = |binding: &Value| {
        let constraint = binding["roleRef"]["name"].as_str()?.strip_prefix("system:openshift:scc:")?;
        let account = &binding["subjects"][0]["name"];
        Some(json!({"namespace": inside(binding["metadata"]["namespace"].as_str()?), "account": account, "constraint": constraint}))
    };
    let everyone = json!({"namespace": "", "account": "", "constraint": "restricted-v2"});
    objects.iter().filter_map(grant).chain([everyone]).collect()
}

fn ask(pods: &[Value], grants: &[Value]) -> Vec<Value> {
    let names = pods
        .iter()
        .map(|pod| pod["metadata"]["namespace"].as_str().unwrap().to_owned())
        .collect();
    let question = json!({"constraints": constraints(), "namespaces": namespaces(&names), "grants": grants, "pods": pods});
    admitted(&question).unwrap()
}

/// Everything that any version renders, with its constraints and their bindings.
fn rendered() -> Vec<(String, Vec<Value>)> {
    let mut all = Vec::new();
    for (driver, source) in embedded::sources() {
        let newest = source.versions().into_iter().max();
        for version in source.versions() {
            let chart = chart::open(&chart::package(&source, &version).unwrap()).unwrap();
            let mut objects = chart::render(&chart, &chart::everything(&chart), &Context::default()).unwrap();
            require(&mut objects);
            // To learn what a chart renders takes seconds, and the rule for the annotation is the same in all.
            if newest.as_ref() == Some(&version) {
                let mut allowed = Allowed::default();
                allowed.learn(&chart, &json!({}), |id| !is_prerequisite(id));
                let refused = objects
                    .iter()
                    .filter(|object| object.pointer("/spec/template").is_some())
                    .map(|object| Object::new(object.clone()).unwrap())
                    .find(|object| allowed.check(object).is_err());
                assert!(refused.is_none(), "{driver} {version}: the annotation is refused: {refused:?}");
            }
            all.push((format!("{driver} {version}"), objects));
        }
    }
    all
}

/// With the bindings every pod is let in by the constraint that it names; without them only those that need none; and with the next narrower one
/// it is not, so that what is asked for is the least.
#[test]
fn openshift_lets_the_pods_of_every_version_in_with_their_bindings_and_refuses_them_without() {
    let versions = rendered();
    assert!(versions.len() > 50, "{} versions", versions.len());
    let objects: Vec<Value> = versions.iter().flat_map(|(_, objects)| objects.clone()).collect();
    let names: Vec<&str> = versions
        .iter()
        .flat_map(|(name, objects)| pods(objects).into_iter().map(move |_| name.as_str()))
        .collect();
    let (pods, grants) = (pods(&objects), grants(&objects));
    let (with, without) = (ask(&pods, &grants), ask(&pods, &grants[grants.len() - 1..]));
    let mut seen = BTreeSet::new();
    for (((pod, version), with), without) in pods.iter().zip(names).zip(with).zip(without) {
        let wanted = &pod["metadata"]["annotations"][REQUIRED];
        let what = format!("{version}, {}", pod["metadata"]["name"]);
        assert_eq!(&with["constraint"], wanted, "{what}: {with}");
        match wanted.as_str().unwrap() {
            "restricted-v2" => assert_eq!(without["constraint"], "restricted-v2", "{what}: {without}"),
            _ => assert!(without["refused"].is_string(), "{what} is let in without a binding: {without}"),
        }
        seen.insert(wanted.as_str().unwrap().to_owned());
    }
    assert!(seen.contains("privileged") && seen.contains("nonroot-v2"), "{seen:?}");
    // Each account that needs one may use only that one, of all that are narrower than privileged.
    let narrower: Vec<Value> = pods
        .iter()
        .map(|pod| {
            let mut pod = pod.clone();
            let next = match pod["metadata"]["annotations"][REQUIRED].as_str().unwrap() {
                "privileged" => "hostnetwork-v2",
                "anyuid" => "nonroot-v2",
                _ => "restricted-v2",
            };
            pod["metadata"]["annotations"][REQUIRED] = next.into();
            pod
        })
        .collect();
    let everything: Vec<Value> = ["restricted-v2", "nonroot-v2", "hostnetwork-v2", "anyuid", "privileged"]
        .map(|constraint| json!({"namespace": "", "account": "", "constraint": constraint}))
        .to_vec();
    for (pod, answer) in pods.iter().zip(ask(&narrower, &everything)) {
        let wanted = &pod["metadata"]["annotations"][REQUIRED];
        assert!(
            wanted == "restricted-v2" || answer["refused"].is_string(),
            "{} asks for {wanted}, and less is enough: {answer}",
            pod["metadata"]["name"]
        );
    }
}

/// The operator of deploy/ and of the chart has what every account may use.
#[test]
fn openshift_lets_the_operator_in_without_any_right() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/operator.yaml")).unwrap();
    let operator: Vec<Value> = vdo_api::yaml::load_all(&text).unwrap();
    let pods = pods(&operator);
    assert_eq!(pods.len(), 1);
    let everyone = [json!({"namespace": "", "account": "", "constraint": "restricted-v2"})];
    let answers = ask(&pods, &everyone);
    assert_eq!(answers, [json!({"constraint": "restricted-v2"})]);
}
