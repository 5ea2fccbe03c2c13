// SPDX-License-Identifier: Apache-2.0
//! Builds the operator's ValidatingAdmissionPolicy from the content that charts render, and checks an object against it before a write.
//!
//! ```text
//! chart --probe--> objects with many values --learn--> shapes --+--> expressions of a ValidatingAdmissionPolicy (the API server)
//!                                                               +--> check (the operator, before it writes)
//! ```
//!
//! RBAC limits the kinds and names of the objects that an account may write, but not their content. A shape is an allow list: the union of
//! what the charts render for one object, with the places where their schemas let a user write. The policy and the check refuse the rest.

mod cel;
mod field_rules;
mod shape;

pub(crate) use field_rules::below;
pub use shape::Violation;

use crate::chart::{self, Chart, Placeholders};
use crate::manifest::{Object, TRIAL_POD};
use field_rules::BY_NAME;
use serde_json::{Value, json};
use shape::{Marks, Shape};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use vdo_api::api::{FINALIZER, STATE, STATE_TYPE};
use vdo_api::types::{ObjectId, Remedy};

/// The name of the policy and of its binding.
pub const NAME: &str = "vdo-operator";

/// An object by its kind, namespace and name; `*` is any name.
type ObjectKey = String;

/// The content that objects may have, by object.
#[derive(Debug, Clone, Default)]
pub struct Allowed(BTreeMap<ObjectKey, Shape>);

/// An object has a content that no chart gives it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object} has content that its chart does not allow: {violation}")]
pub struct ContentRefused {
    /// The object.
    pub object: ObjectId,
    /// The place in it.
    pub violation: Violation,
}

impl Remedy for ContentRefused {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("The object was not written. Find out who changed the chart, the stored history or the values, and revert that change.".into())
    }
}

fn place(kind: &str, namespace: &str, name: &str) -> ObjectKey {
    format!("{kind}/{namespace}/{name}")
}

impl Allowed {
    /// Adds what a chart renders and the operator writes. `base` are values that stay.
    pub fn learn(&mut self, chart: &Chart, base: &Value, is_written: impl Fn(&ObjectId) -> bool) {
        self.learn_until(chart, base, is_written, |_| false);
    }

    /// The same, but only as many renders as are enough. What is allowed then would be allowed after all renders, too.
    pub fn learn_until(&mut self, chart: &Chart, base: &Value, is_written: impl Fn(&ObjectId) -> bool, is_enough: impl Fn(&Self) -> bool) {
        chart::probe(chart, base, &mut |objects, placeholders| {
            for object in objects {
                if chart::object_id(object).is_ok_and(|id| is_written(&id)) {
                    self.learn_render(object, placeholders);
                }
            }
            match is_enough(self) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
    }

    fn learn_render(&mut self, object: &Value, placeholders: &Placeholders) {
        let marks = Marks {
            words: &placeholders.words,
            digits: &placeholders.digits,
            numbers: &placeholders.numbers,
            pinned: false,
        };
        self.add(object, marks);
    }

    /// Adds an object as it is.
    pub fn learn_object(&mut self, object: &Value) {
        self.add(object, Marks::default());
    }

    fn add(&mut self, object: &Value, marks: Marks<'_>) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name = match text("/metadata/name") {
            name if marks.find(name).is_some() => "*",
            name => name,
        };
        let shape = self.0.entry(place(text("/kind"), text("/metadata/namespace"), name)).or_default();
        let by_name = BY_NAME.contains(&text("/kind"));
        let fields = object.as_object().into_iter().flat_map(|fields| fields.keys()).map(String::as_str);
        let free = fields.filter(|field| by_name && *field != "metadata");
        for field in free.chain(["apiVersion", "kind", "status"]) {
            shape.fields.insert(field.to_owned(), Shape::anything());
        }
        let mut content = object.clone();
        if let Some(fields) = content.as_object_mut() {
            fields.retain(|field, _| !shape.fields.get(field).is_some_and(|known| known.any));
        }
        shape.learn(&content, text("/kind"), marks);
    }

    /// Adds the Secrets and ConfigMaps with the configuration of a driver, which is in no chart.
    pub fn learn_configuration(&mut self, kind: &str, namespace: &str, name: &str) {
        for kind_of_secret in ["Opaque", "kubernetes.io/tls"] {
            let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}});
            if kind == "Secret" {
                object["type"] = kind_of_secret.into();
            }
            self.learn_object(&object);
        }
    }

    /// Adds what the operator writes for itself in its namespace and in `kube-system`; `certificate` is the Secret with the webhook's.
    pub fn learn_own(&mut self, home: &str, certificate: &str) {
        let named = |api_version: &str, kind: &str, namespace: &str, name: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}});
        // The VDOConfig owns these, so that they are deleted with it.
        let owner = Placeholders {
            words: vec!["vdomark-name".into(), "vdomark-uid".into()],
            ..Placeholders::default()
        };
        for (kind, name) in [(STATE_TYPE, STATE), ("Opaque", certificate)] {
            let mut secret = named("v1", "Secret", home, name);
            secret["type"] = kind.into();
            self.learn_object(&secret);
            let reference =
                json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig", "name": "vdomark-name", "uid": "vdomark-uid"});
            secret["metadata"]["ownerReferences"] = json!([reference]);
            self.learn_render(&secret, &owner);
        }
        self.learn_object(&named("coordination.k8s.io/v1", "Lease", "kube-system", "vdo-operator"));
        let event = self.0.entry(place("Event", home, "*")).or_default();
        *event = Shape::anything();
        // Of the specification nothing may change, which every shape allows.
        for kind in ["VDOConfig", "VsphereCloudConfig"] {
            let mut config = named("vdo.vmware.com/v1alpha1", kind, home, "*");
            self.learn_object(&config);
            config["metadata"]["finalizers"] = json!([FINALIZER]);
            self.learn_object(&config);
        }
    }

    /// Whether the operator may write this content.
    ///
    /// # Errors
    /// With the first field that no chart has.
    pub fn check(&self, object: &Object) -> Result<(), ContentRefused> {
        let refused = |violation| ContentRefused {
            object: object.id(),
            violation,
        };
        let at = |name: &str| self.0.get(&place(object.kind(), object.namespace(), name));
        match at(object.name()).or_else(|| at("*")) {
            Some(shape) => shape.check(object.value(), "").map_err(refused),
            None => Err(refused(Violation {
                path: "metadata.name".into(),
                why: "no chart has this object".into(),
            })),
        }
    }

    /// Whether there is a content for objects of this resource, namespace and name; without a name, for any.
    #[must_use]
    pub fn knows(&self, resource: &str, namespace: &str, name: Option<&str>) -> bool {
        // The status is a part of its object.
        let resource = resource.split('/').next().unwrap_or_default();
        if resource == "pods" {
            return name == Some(TRIAL_POD);
        }
        self.0.keys().any(|known| {
            let mut parts = known.splitn(3, '/');
            let kind = parts.next().unwrap_or_default();
            let end = if kind.ends_with('s') { "es" } else { "s" };
            let fits = format!("{}{end}", kind.to_lowercase()) == resource && parts.next() == Some(namespace);
            fits && name.is_none_or(|name| parts.next().is_some_and(|known| known == name || known == "*"))
        })
    }

    /// A ValidatingAdmissionPolicy and its binding: an account may write only these objects with only this content, of all that it has
    /// a right to write. What an object had before may stay.
    #[must_use]
    pub fn policy(&self, user: &str, written: &BTreeSet<(String, String)>) -> [Value; 2] {
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (group, resource) in written {
            groups.entry(group).or_default().push(resource);
        }
        let rules: Vec<Value> = groups
            .into_iter()
            .map(|(group, resources)| json!({"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": resources}))
            .collect();
        let definition = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": NAME},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": rules},
                "matchConditions": [{"name": "by-the-operator", "expression": format!("request.userInfo.username == {}", cel::literal(user))}],
                "variables": cel::variables(self.0.iter()),
                "validations": [
                    {
                        // A pod is tried and never created: controllers do that.
                        "expression": "request.resource.resource == 'pods' ? has(request.dryRun) && request.dryRun : \
                                       variables.place in variables.places",
                        "message": "the operator may write only its own objects and the objects of the drivers",
                    },
                    {
                        "expression": "!(variables.place in variables.places) || variables.refused == ''",
                        "messageExpression": "variables.place + ': no chart of the drivers contains this content: ' + variables.refused",
                        "message": "no chart of the drivers contains this content",
                    },
                ],
            },
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": NAME},
            "spec": {"policyName": NAME, "validationActions": ["Deny"]},
        });
        [definition, binding]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(spec: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"}, "spec": spec})
    }

    fn learnt(specs: &[Value], words: &[&str]) -> Allowed {
        let mut allowed = Allowed::default();
        let placeholders = Placeholders {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            digits: Vec::new(),
            numbers: vec![chart::Number {
                word: 1387,
                lowest: 1,
                highest: 2000,
            }],
        };
        for spec in specs {
            allowed.learn_render(&service(spec.clone()), &placeholders);
        }
        allowed
    }

    #[test]
    fn content_of_the_chart_alone_cannot_be_left_out() {
        let allowed = learnt(&[json!({"selector": {"app": "a"}, "ports": [{"port": 1387}]})], &[]);
        for (spec, refused) in [
            (json!({"selector": {"app": "a"}}), None),
            (
                json!({"ports": [{"port": 7}]}),
                Some("spec.selector: the field is missing, and every chart has it"),
            ),
        ] {
            let object = Object::new(service(spec.clone())).expect("an object");
            let found = allowed.check(&object).err().map(|error| error.violation.to_string());
            assert_eq!(found.as_deref(), refused, "{spec}");
        }
    }

    #[test]
    fn content_is_the_union_of_what_was_rendered_with_users_values_in_their_places() {
        let allowed = learnt(
            &[
                json!({"selector": {"app": "a"}, "ports": [{"port": 80}]}),
                json!({"selector": {"app": "b", "vdomark-x": "vdomark-x"}, "ports": [{"port": 1387}], "other": "--v=1387", "more": "pre-vdomark-x-post"}),
            ],
            &["vdomark-x"],
        );
        for (spec, refused) in [
            (json!({"selector": {"app": "a"}, "ports": [{"port": 80}]}), None),
            (json!({"selector": {"app": "b", "any": "thing"}, "ports": [{"port": 2000}]}), None),
            (
                json!({"selector": {"app": "a"}, "ports": [], "other": "--v=7", "more": "pre-x-post"}),
                None,
            ),
            (json!({"selector": {"app": "c"}, "ports": []}), None),
            (
                json!({"selector": {"app": "a"}, "ports": [{"port": 2001}]}),
                Some("spec.ports[0].port: no chart has the value 2001 in this field"),
            ),
            (json!({"selector": {"app": "a"}}), None),
            (json!({"ports": []}), None),
            (
                json!({"selector": {"app": "a"}, "ports": [], "more": "x-post"}),
                Some("spec.more: no chart has the value \"x-post\" in this field"),
            ),
            (
                json!({"selector": {"app": "a"}, "ports": [], "externalIPs": ["192.0.2.1"]}),
                Some("spec.externalIPs: no chart has this field"),
            ),
            (
                json!({"selector": {"app": "a"}, "ports": {"port": 80}}),
                Some("spec.ports: no chart has a map in this field"),
            ),
        ] {
            let object = Object::new(service(spec.clone())).expect("an object");
            let found = allowed.check(&object).err().map(|error| error.violation.to_string());
            assert_eq!(found.as_deref(), refused, "{spec}");
        }
    }

    /// The API server stores no empty text, so what the operator reads and writes again lacks the field.
    #[test]
    fn content_empty_value_of_a_variable_may_be_left_out() {
        let pod = |env: Value| {
            let spec = json!({"template": {"spec": {"containers": [{"name": "c", "env": env}]}}});
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": "n"}, "spec": spec})
        };
        let mut allowed = Allowed::default();
        allowed.learn_object(&pod(json!([{"name": "EMPTY", "value": ""}, {"name": "FULL", "value": "x"}])));
        for (env, refused) in [
            (json!([{"name": "EMPTY"}, {"name": "FULL", "value": "x"}]), None),
            (json!([{"name": "EMPTY", "value": ""}, {"name": "FULL", "value": "x"}]), None),
            (
                json!([{"name": "EMPTY", "value": "y"}]),
                Some("no chart has the value \"y\" in this field"),
            ),
            (json!([{"name": "FULL"}]), Some("the field is missing, and every chart has it")),
        ] {
            let found = allowed.check(&Object::new(pod(env.clone())).expect("an object"));
            assert_eq!(found.err().map(|error| error.violation.why).as_deref(), refused, "{env}");
        }
    }

    #[test]
    fn content_of_an_object_that_no_chart_has_is_refused() {
        let mut other = service(json!({}));
        other["metadata"]["name"] = "other".into();
        let error = learnt(&[json!({})], &[])
            .check(&Object::new(other).expect("an object"))
            .expect_err("unknown");
        assert_eq!(
            error.to_string(),
            "Service n/other has content that its chart does not allow: metadata.name: no chart has this object"
        );
    }

    #[test]
    fn policy_asks_for_the_account_and_for_every_resource_that_is_written() {
        let written = [("", "services"), ("apps", "daemonsets")].map(|(group, resource)| (group.to_owned(), resource.to_owned()));
        let [policy, binding] = learnt(&[json!({"type": "it's \\ a"})], &[]).policy("me", &written.into());
        assert_eq!(
            policy["spec"]["matchConditions"][0]["expression"],
            "request.userInfo.username == 'me'"
        );
        assert_eq!(policy["spec"]["failurePolicy"], "Fail");
        let resources = policy.pointer("/spec/matchConstraints/resourceRules").expect("rules");
        assert_eq!(
            (&resources[0]["resources"], &resources[1]["resources"]),
            (&json!(["services"]), &json!(["daemonsets"]))
        );
        let variables = policy["spec"]["variables"].as_array().expect("a list");
        let words = variables.iter().find(|one| one["name"] == "words").expect("the words");
        assert!(words["expression"].as_str().expect("a text").contains(r"'it\'s \\ a'"));
        assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
    }
}
