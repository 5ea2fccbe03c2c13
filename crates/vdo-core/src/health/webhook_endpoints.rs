// SPDX-License-Identifier: Apache-2.0
//! Finds webhook configurations whose Service has no ready endpoint in its EndpointSlices.

use crate::manifest::Object;
use serde_json::Value;

/// The label of an EndpointSlice that names its Service.
const SERVICE: &str = "kubernetes.io/service-name";

/// The Services, as namespace and name, that the API server asks because of these webhook configurations.
fn services<'a>(objects: &[&'a Object]) -> Vec<(&'a Object, &'a str, &'a str)> {
    let text = |service: &'a Value, key: &str| service.get(key).and_then(Value::as_str).unwrap_or_default();
    objects
        .iter()
        .filter(|o| matches!(o.kind(), "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration"))
        .flat_map(|o| {
            let webhooks = o.value().get("webhooks").and_then(Value::as_array).into_iter().flatten();
            webhooks
                .filter_map(|webhook| webhook.pointer("/clientConfig/service"))
                .map(|service| (*o, text(service, "namespace"), text(service, "name")))
        })
        .collect()
}

/// The namespaces and label selectors of the EndpointSlices that tell whether webhooks among these objects are served.
#[must_use]
pub fn slices_of(objects: &[&Object]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = services(objects)
        .into_iter()
        .map(|(_, namespace, name)| (namespace.to_owned(), format!("{SERVICE}={name}")))
        .collect();
    all.dedup();
    all
}

/// Which webhook has no endpoint that is ready: the API server asks it in vain, and with failurePolicy Fail it refuses
/// requests therefore.
#[must_use]
pub fn unserved(objects: &[&Object], slices: &[&Object]) -> Option<String> {
    let ready = |endpoint: &Value| endpoint.pointer("/conditions/ready").and_then(Value::as_bool) != Some(false);
    let served = |namespace: &str, name: &str| {
        slices
            .iter()
            .filter(|slice| slice.namespace() == namespace && slice.label(SERVICE) == Some(name))
            .filter_map(|slice| slice.value().get("endpoints")?.as_array())
            .flatten()
            .any(ready)
    };
    services(objects)
        .into_iter()
        .find(|(_, namespace, name)| !served(namespace, name))
        .map(|(webhook, namespace, name)| {
            format!("a webhook of {webhook} cannot be called: Service {namespace}/{name} has no ready endpoint")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn webhook_without_ready_endpoint_is_reported() {
        let object = |value: Value| Object::new(value).expect("an object");
        let webhook = object(
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "w"},
            "webhooks": [{"clientConfig": {"service": {"namespace": "n", "name": "s"}}}, {"clientConfig": {"url": "https://elsewhere.example"}}]}),
        );
        let slice = |namespace: &str, ready: Value| {
            object(
                json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "s-1", "namespace": namespace, "labels": {SERVICE: "s"}},
                "endpoints": [{"conditions": {"ready": ready}}]}),
            )
        };
        assert_eq!(
            slices_of(&[&webhook]),
            [("n".to_owned(), "kubernetes.io/service-name=s".to_owned())]
        );
        let none = Some("a webhook of ValidatingWebhookConfiguration w cannot be called: Service n/s has no ready endpoint".to_owned());
        assert_eq!(unserved(&[&webhook], &[]), none);
        assert_eq!(unserved(&[&webhook], &[&slice("n", json!(false))]), none);
        assert_eq!(unserved(&[&webhook], &[&slice("other", json!(true))]), none);
        assert_eq!(unserved(&[&webhook], &[&slice("n", json!(false)), &slice("n", json!(true))]), None);
        // Not said means ready.
        assert_eq!(unserved(&[&webhook], &[&slice("n", Value::Null)]), None);
        assert_eq!(unserved(&[], &[]), None);
    }
}
