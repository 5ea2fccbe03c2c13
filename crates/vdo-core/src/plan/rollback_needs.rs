// SPDX-License-Identifier: Apache-2.0
//! Lists the kinds and images that a revision needs for a rollback, and the images that nodes have or cannot pull.

use super::dependencies::brings;
use crate::manifest::Object;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::ObjectId;

/// An API version and a kind.
pub type Kind = (String, String);

/// The kinds of these objects that are not defined by one of them, each with the first object.
#[must_use]
pub fn needed_kinds(objects: &[Object]) -> BTreeMap<Kind, ObjectId> {
    let mut kinds = BTreeMap::new();
    for object in objects {
        if !objects.iter().any(|other| brings(other, object)) {
            let kind = (object.api_version().to_owned(), object.kind().to_owned());
            kinds.entry(kind).or_insert_with(|| object.id());
        }
    }
    kinds
}

/// The images of the pods that these objects lead to.
#[must_use]
pub fn needed_images(objects: &[Object]) -> BTreeSet<String> {
    let pods = objects.iter().filter_map(Object::pod_spec);
    let images = pods.flat_map(containers).filter_map(|container| container["image"].as_str());
    images.map(str::to_owned).collect()
}

/// The images that a pod waits for in vain, each with the pod. That an image is wrong for one node says nothing of others, so this is
/// evidence and no proof.
#[must_use]
pub fn unpullable<'a>(pods: impl IntoIterator<Item = &'a Object>) -> BTreeMap<String, ObjectId> {
    let mut images = BTreeMap::new();
    for pod in pods {
        let waiting = pod.container_statuses().filter(|status| {
            let reason = status.pointer("/state/waiting/reason").and_then(Value::as_str);
            matches!(
                reason,
                Some("ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull")
            )
        });
        let names: BTreeSet<&str> = waiting.filter_map(|status| status["name"].as_str()).collect();
        // The status may spell the image in another way.
        let spec = pod.value().get("spec").into_iter();
        let waiting = spec
            .flat_map(containers)
            .filter(|c| c["name"].as_str().is_some_and(|name| names.contains(name)));
        for image in waiting.filter_map(|container| container["image"].as_str()) {
            images.entry(image.to_owned()).or_insert_with(|| pod.id());
        }
    }
    images
}

/// The images that nodes report. A kubelet may report no image, or not every one: that an image is missing here is no proof.
#[must_use]
pub fn images_on(nodes: &[Object]) -> BTreeSet<String> {
    let lists = nodes.iter().filter_map(|node| node.value().pointer("/status/images")?.as_array());
    let names = lists.flatten().filter_map(|image| image["names"].as_array()).flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainers", "containers"].into_iter();
    lists.filter_map(|key| pod.get(key)?.as_array()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        Object::new(value).expect("an object")
    }

    #[test]
    fn revision_needs_kinds_that_it_does_not_define_itself() {
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "as.g"},
            "spec": {"group": "g", "names": {"kind": "A"}}});
        let all = [
            object(definition),
            object(json!({"apiVersion": "g/v1", "kind": "A", "metadata": {"name": "own"}})),
            object(json!({"apiVersion": "g/v1", "kind": "B", "metadata": {"name": "first"}})),
            object(json!({"apiVersion": "g/v1", "kind": "B", "metadata": {"name": "second"}})),
            object(json!({"apiVersion": "g/v2", "kind": "B", "metadata": {"name": "third"}})),
        ];
        let found: Vec<String> = needed_kinds(&all)
            .into_iter()
            .map(|((version, kind), id)| format!("{version} {kind} {}", id.name))
            .collect();
        let definitions = "apiextensions.k8s.io/v1 CustomResourceDefinition as.g";
        assert_eq!(found, [definitions, "g/v1 B first", "g/v2 B third"]);
    }

    #[test]
    fn images_of_a_pod_are_named_as_in_its_specification() {
        let pod = |state: &str| {
            object(
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"},
                "spec": {"initContainers": [{"name": "i", "image": "r/i:1"}], "containers": [{"name": "c", "image": "r/c:1"}]},
                "status": {"containerStatuses": [{"name": "c", "image": "docker.io/r/c:1", "state": {"waiting": {"reason": state}}}]}}),
            )
        };
        let template = json!({"spec": pod("").value()["spec"]});
        let set = object(
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": "n"}, "spec": {"template": template}}),
        );
        assert_eq!(needed_images(&[set]), ["r/c:1".to_owned(), "r/i:1".to_owned()].into());
        for (state, expected) in [
            ("ErrImagePull", vec!["r/c:1"]),
            ("ImagePullBackOff", vec!["r/c:1"]),
            ("CrashLoopBackOff", vec![]),
            ("ContainerCreating", vec![]),
        ] {
            let found = unpullable([&pod(state)]);
            assert_eq!(found.keys().collect::<Vec<_>>(), expected, "{state}");
        }
        let node =
            |images: Value| object(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "w"}, "status": {"images": images}}));
        let nodes = [
            node(json!([{"names": ["a", "a@sha256:1"]}, {"names": null}])),
            node(json!([{"names": ["b"]}])),
            node(Value::Null),
        ];
        assert_eq!(images_on(&nodes).iter().collect::<Vec<_>>(), ["a", "a@sha256:1", "b"]);
        assert_eq!(images_on(&[node(json!([]))]), BTreeSet::new());
    }
}
