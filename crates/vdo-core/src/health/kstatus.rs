// SPDX-License-Identifier: Apache-2.0
//! Judges one live object of any kind by the rules of kstatus, such as Services and CRDs; `rollout.rs` judges workloads.

use super::rollout::{self, condition};
use super::{Pods, Verdict};
use crate::manifest::Object;
use serde_json::Value;
use vdo_api::api::Reason;

/// The verdict on a live object, and its pods if it has any: the rules of kstatus for every kind that the charts bring.
///
/// What is on its way out is never current. The generation comes next: a controller that has not seen the newest
/// specification says nothing about it. Then the rules of the kind; kinds without any are current once they exist, unless
/// they bear one of the conditions that all controllers share.
#[must_use]
pub fn assess(object: &Object) -> (Verdict, Pods) {
    if object.is_terminating() {
        return (
            Verdict::Waiting(Reason::Progressing, format!("{object} is being deleted")),
            Pods::default(),
        );
    }
    if let Some(found) = rollout::assess(object) {
        return found;
    }
    let seen = object.has_status().then(|| object.number("/status/observedGeneration")).flatten();
    if seen.is_some() && seen != object.number("/metadata/generation") {
        return (
            Verdict::Waiting(Reason::Progressing, format!("{object} is not yet processed by its controller")),
            Pods::default(),
        );
    }
    let reported = match object.kind() {
        "Namespace" if object.text("/status/phase") == "Terminating" => Some(format!("{object} is being deleted")),
        "CustomResourceDefinition" => definition(object),
        "PersistentVolumeClaim" if object.text("/status/phase") != "Bound" => Some(format!("{object} is not bound")),
        "Namespace" | "PersistentVolumeClaim" | "CronJob" => None,
        "Service" => service(object),
        "PodDisruptionBudget" => budget(object),
        "APIService" => condition(object, "Available", "True").is_none().then(|| {
            let why = condition(object, "Available", "False").map_or(String::new(), |why| format!(": {why}"));
            format!("{object} is not available{why}")
        }),
        _ if !object.has_status() => None,
        _ => shared(object),
    };
    let verdict = reported.map_or(Verdict::Current, |message| Verdict::Waiting(Reason::Progressing, message));
    (verdict, Pods::default())
}

/// Whether there is anything to judge: objects of most kinds are as they should be once they exist.
#[must_use]
pub fn is_judged(object: &Object) -> bool {
    object.is_terminating()
        || object.has_status()
        || matches!(
            object.kind(),
            "DaemonSet"
                | "Deployment"
                | "StatefulSet"
                | "ReplicaSet"
                | "Pod"
                | "PodDisruptionBudget"
                | "APIService"
                | "CustomResourceDefinition"
                | "PersistentVolumeClaim"
                | "Job"
                | "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
        )
}

/// A load balancer has an address, in the cluster and outside of it; other Services are there once they exist.
fn service(object: &Object) -> Option<String> {
    if object.text("/spec/type") != "LoadBalancer" {
        return None;
    }
    let addresses = object.value().pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
    let lacks = object.text("/spec/clusterIP").is_empty() || addresses.is_none_or(Vec::is_empty);
    lacks.then(|| format!("{object} has no address from the load balancer yet"))
}

fn budget(object: &Object) -> Option<String> {
    let Some(desired) = object.number("/status/desiredHealthy") else {
        return Some(format!("{object} is not yet processed by its controller"));
    };
    let healthy = object.number("/status/currentHealthy").unwrap_or(0);
    (healthy < desired).then(|| format!("{object} is not met: {healthy} of {desired} pods are healthy"))
}

/// A definition can be used once its names are accepted and it is served.
fn definition(object: &Object) -> Option<String> {
    if let Some(why) = condition(object, "NamesAccepted", "False") {
        return Some(format!("{object} is not served: {why}"));
    }
    let established = condition(object, "Established", "True");
    established.is_none().then(|| format!("{object} is not served yet"))
}

/// The conditions that kstatus reads of any kind.
fn shared(object: &Object) -> Option<String> {
    let reported = |why: String| format!("{object} is not ready: {why}");
    condition(object, "Stalled", "True")
        .or_else(|| condition(object, "Reconciling", "True"))
        .or_else(|| condition(object, "Ready", "False"))
        .or_else(|| condition(object, "Ready", "Unknown"))
        .map(reported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn verdict(kind: &str, metadata: Value, spec: Value, status: Value) -> String {
        let mut object = json!({"apiVersion": "example/v1", "kind": kind, "metadata": {"name": "x", "namespace": "n", "generation": 2}, "spec": spec, "status": status});
        for (key, value) in metadata.as_object().expect("a map") {
            object["metadata"][key] = value.clone();
        }
        match assess(&Object::new(object).expect("an object")) {
            (Verdict::Current, pods) => format!("current {pods}"),
            (Verdict::Waiting(reason, message), pods) => format!("{reason} {message} ({pods})"),
        }
    }

    #[test]
    fn kstatus_each_status_gives_verdict() {
        let with = |kind: &str, conditions: Value| verdict(kind, json!({}), json!({}), json!({"conditions": conditions}));
        for (found, expected) in [
            (verdict("ConfigMap", json!({}), json!({}), json!({})), "current 0/0"),
            (
                verdict("Any", json!({}), json!({}), json!({"observedGeneration": 1})),
                "Progressing Any n/x is not yet processed by its controller (0/0)",
            ),
            (
                verdict("Namespace", json!({}), json!({}), json!({"phase": "Terminating"})),
                "Progressing Namespace n/x is being deleted (0/0)",
            ),
            (
                verdict("Namespace", json!({}), json!({}), json!({"phase": "Active"})),
                "current 0/0",
            ),
            (
                with("CustomResourceDefinition", json!([])),
                "Progressing CustomResourceDefinition n/x is not served yet (0/0)",
            ),
            (
                with(
                    "CustomResourceDefinition",
                    json!([{"type": "NamesAccepted", "status": "False", "reason": "PluralConflict", "message": "taken"}]),
                ),
                "Progressing CustomResourceDefinition n/x is not served: PluralConflict: taken (0/0)",
            ),
            (
                with(
                    "CustomResourceDefinition",
                    json!([{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]),
                ),
                "current 0/0",
            ),
            (
                verdict("PersistentVolumeClaim", json!({}), json!({}), json!({"phase": "Pending"})),
                "Progressing PersistentVolumeClaim n/x is not bound (0/0)",
            ),
            (verdict("CronJob", json!({}), json!({}), json!({})), "current 0/0"),
            (
                verdict("Service", json!({}), json!({"clusterIP": "10.0.0.1"}), json!({"loadBalancer": {}})),
                "current 0/0",
            ),
            (
                verdict(
                    "Service",
                    json!({}),
                    json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1"}),
                    json!({"loadBalancer": {}}),
                ),
                "Progressing Service n/x has no address from the load balancer yet (0/0)",
            ),
            (
                verdict(
                    "Service",
                    json!({}),
                    json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1"}),
                    json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}),
                ),
                "current 0/0",
            ),
            (
                verdict("PodDisruptionBudget", json!({}), json!({}), json!({})),
                "Progressing PodDisruptionBudget n/x is not yet processed by its controller (0/0)",
            ),
            (
                verdict(
                    "PodDisruptionBudget",
                    json!({}),
                    json!({}),
                    json!({"desiredHealthy": 2, "currentHealthy": 1}),
                ),
                "Progressing PodDisruptionBudget n/x is not met: 1 of 2 pods are healthy (0/0)",
            ),
            (
                verdict(
                    "PodDisruptionBudget",
                    json!({}),
                    json!({}),
                    json!({"desiredHealthy": 2, "currentHealthy": 2}),
                ),
                "current 0/0",
            ),
            (with("APIService", json!([])), "Progressing APIService n/x is not available (0/0)"),
            (
                with(
                    "APIService",
                    json!([{"type": "Available", "status": "False", "reason": "MissingEndpoints", "message": "m"}]),
                ),
                "Progressing APIService n/x is not available: MissingEndpoints: m (0/0)",
            ),
            (with("APIService", json!([{"type": "Available", "status": "True"}])), "current 0/0"),
            (with("Any", json!([{"type": "Ready", "status": "True"}])), "current 0/0"),
            (
                with(
                    "Any",
                    json!([{"type": "Ready", "status": "False", "reason": "No", "message": "way"}]),
                ),
                "Progressing Any n/x is not ready: No: way (0/0)",
            ),
            (
                with(
                    "Any",
                    json!([{"type": "Ready", "status": "True"}, {"type": "Stalled", "status": "True", "reason": "Stuck", "message": "m"}]),
                ),
                "Progressing Any n/x is not ready: Stuck: m (0/0)",
            ),
        ] {
            assert_eq!(found, expected);
        }
    }
}
