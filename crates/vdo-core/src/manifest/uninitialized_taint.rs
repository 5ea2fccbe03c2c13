// SPDX-License-Identifier: Apache-2.0
//! Adds the toleration of the taint `uninitialized` to new workloads that do not need the cloud provider, so that their pods start early.

use super::Object;
use super::labels::seal;
use serde_json::{Value, json};
use vdo_api::api::APPLIED_ANNOTATION;

/// The taint of a node that waits for its cloud provider.
pub const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// Lets the pods of a new workload run on nodes that wait for their cloud provider, if it does not need that one; `before` is the workload
/// as it is there, or was applied last. One that is there already keeps its template, so that no pod is restarted.
pub fn start_early(object: &mut Object, before: Option<&Object>, independent: bool, salt: &str) {
    if tolerates(object) || !before.map_or(independent, tolerates) {
        return;
    }
    object.remove_annotation(APPLIED_ANNOTATION);
    object.add_toleration(json!({"key": UNINITIALIZED, "operator": "Exists", "effect": "NoSchedule"}));
    seal(object, salt);
}

fn tolerates(object: &Object) -> bool {
    let tolerations = object.pod_spec().and_then(|pod| pod.get("tolerations")).and_then(Value::as_array);
    let text = |toleration: &Value, key: &str| toleration.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    tolerations.into_iter().flatten().any(|toleration| {
        let key = text(toleration, "key");
        key == UNINITIALIZED || (key.is_empty() && text(toleration, "operator") == "Exists")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(tolerations: &Value) -> Object {
        let spec = json!({"template": {"spec": {"tolerations": tolerations}}});
        let metadata = json!({"name": "c", "namespace": "n", "annotations": {"a": "b"}});
        let value = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec});
        let mut object = Object::new(value).expect("an object");
        seal(&mut object, "uid");
        object
    }

    /// What is new starts early if it may; what is there, or was, stays as it was.
    #[test]
    fn early_start_is_for_new_workloads_and_stays() {
        let (plain, early) = (
            json!([{"key": "role"}]),
            json!([{"key": "role"}, {"key": UNINITIALIZED, "operator": "Exists", "effect": "NoSchedule"}]),
        );
        let any = json!([{"operator": "Exists"}]);
        for (wanted, before, independent, expected) in [
            (&plain, None, true, &early),
            (&plain, None, false, &plain),
            (&plain, Some(&plain), true, &plain),
            (&plain, Some(&early), true, &early),
            (&plain, Some(&early), false, &early),
            (&plain, Some(&any), false, &early),
            (&any, None, true, &any),
            (&early, Some(&plain), false, &early),
        ] {
            let mut object = workload(wanted);
            start_early(&mut object, before.map(workload).as_ref(), independent, "uid");
            assert_eq!(object, workload(expected), "{wanted} after {before:?}, {independent}");
        }
        let mut map = Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})).expect("an object");
        let same = map.clone();
        start_early(&mut map, Some(&workload(&plain)), true, "uid");
        assert_eq!(map, same);
    }
}
