// SPDX-License-Identifier: Apache-2.0
//! Explains what blocks an object that is being deleted (finalizers, pods, namespace content), and computes since when it is terminating.

use crate::manifest::Object;
use k8s_openapi::jiff::Timestamp;
use std::time::Duration;

/// How long ago the deletion of an object was asked for.
pub(super) fn waited(live: &Object, now: Timestamp) -> Option<Duration> {
    let since: Timestamp = live.text("/metadata/deletionTimestamp").parse().ok()?;
    Duration::try_from(now.duration_since(since)).ok()
}

/// What keeps an object that is being deleted, and who must act.
#[must_use]
pub fn blocker(live: &Object) -> String {
    let since = live.text("/metadata/deletionTimestamp");
    let list = |pointer: &str| -> Vec<&str> {
        let all = live.value().pointer(pointer).and_then(serde_json::Value::as_array);
        all.into_iter().flatten().filter_map(serde_json::Value::as_str).collect()
    };
    let mut finalizers = list("/metadata/finalizers");
    let dependents = finalizers.contains(&"foregroundDeletion");
    finalizers.retain(|f| *f != "foregroundDeletion");
    let mut why = Vec::new();
    if let [finalizer] = finalizers.as_slice() {
        why.push(format!(
            "the object has the finalizer {finalizer}, which its controller must remove; if the controller no longer exists, remove the \
             finalizer by hand"
        ));
    } else if !finalizers.is_empty() {
        why.push(format!(
            "the object has the finalizers {}, which their controllers must remove; if a controller no longer exists, remove its finalizer \
             by hand",
            finalizers.join(", ")
        ));
    }
    if dependents {
        why.push(
            "its pods must terminate first; look for pods that remain Terminating: the usual cause is a node that does not answer".into(),
        );
    }
    let conditions = live.value().pointer("/status/conditions").and_then(serde_json::Value::as_array);
    let speaks = |c: &&serde_json::Value| c["status"] == "True" && c["type"].as_str().is_some_and(|t| t.starts_with("Namespace"));
    why.extend(
        conditions
            .into_iter()
            .flatten()
            .filter(speaks)
            .filter_map(|c| c["message"].as_str())
            .map(|message| message.chars().take(300).collect::<String>()),
    );
    let state = if since.starts_with(|c: char| c.is_ascii_digit()) {
        format!("has been terminating since {since}")
    } else {
        "is being deleted".to_owned()
    };
    if why.is_empty() {
        state
    } else {
        format!("{state}: {}", why.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn uninstall_terminating_namespace_reports_remaining_content() {
        let status = json!({"conditions": [
            {"type": "NamespaceContentRemaining", "status": "True", "message": "Some resources are remaining: pods. has 1 resource instances"},
            {"type": "NamespaceDeletionDiscoveryFailure", "status": "False", "message": "all is discovered"}]});
        let value = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": status});
        assert_eq!(
            blocker(&Object::new(value).expect("an object")),
            "has been terminating since 2026-01-01T00:00:00Z: Some resources are remaining: pods. has 1 resource instances"
        );
    }

    #[test]
    fn blocker_names_what_keeps_an_object_and_who_acts() {
        let say = |since: &str, finalizers: serde_json::Value, conditions: serde_json::Value| {
            let metadata = json!({"name": "n", "deletionTimestamp": since, "finalizers": finalizers});
            let value = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "status": {"conditions": conditions}});
            blocker(&Object::new(value).expect("an object"))
        };
        let time = "2026-01-01T00:00:00Z";
        let long = "x".repeat(400);
        for (what, said, expected) in [
            ("nothing is known", say("", json!([]), json!([])), "is being deleted".to_owned()),
            (
                "it goes",
                say(time, json!([]), json!([])),
                format!("has been terminating since {time}"),
            ),
            (
                "its pods",
                say(time, json!(["foregroundDeletion"]), json!([])),
                format!(
                    "has been terminating since {time}: its pods must terminate first; look for pods that remain Terminating: the usual cause is a node that does not answer"
                ),
            ),
            (
                "a finalizer",
                say(time, json!(["a/b", "c/d"]), json!([])),
                format!(
                    "has been terminating since {time}: the object has the finalizers a/b, c/d, which their controllers must remove; if a controller \
                     no longer exists, remove its finalizer by hand"
                ),
            ),
            (
                "a condition of something else",
                say(time, json!([]), json!([{"type": "Ready", "status": "True", "message": "m"}])),
                format!("has been terminating since {time}"),
            ),
            (
                "a long message",
                say(
                    time,
                    json!([]),
                    json!([{"type": "NamespaceDeletionContentFailure", "status": "True", "message": long}]),
                ),
                format!("has been terminating since {time}: {}", &long[..300]),
            ),
        ] {
            assert_eq!(said, expected, "{what}");
        }
    }

    #[test]
    fn waited_time_counts_from_the_deletion() {
        let object = |metadata: serde_json::Value| {
            Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).expect("an object")
        };
        let now = "2026-01-01T00:10:00Z".parse().expect("a time");
        let leaving = object(json!({"name": "n", "deletionTimestamp": "2026-01-01T00:08:00Z"}));
        assert_eq!(waited(&leaving, now), Some(Duration::from_secs(120)));
        assert_eq!(waited(&object(json!({"name": "n"})), now), None);
    }
}
