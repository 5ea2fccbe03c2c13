//! Objects that are being deleted: since when, and what keeps them.

use crate::manifest::Object;
use k8s_openapi::jiff::Timestamp;
use std::time::Duration;

/// How long ago the deletion of an object was asked for.
pub(super) fn waited(live: &Object, now: Timestamp) -> Option<Duration> {
    let since: Timestamp = live.text("/metadata/deletionTimestamp").parse().ok()?;
    Duration::try_from(now.duration_since(since)).ok()
}

/// What keeps an object that is being deleted, and who must act.
pub(super) fn blocker(live: &Object) -> String {
    let since = live.text("/metadata/deletionTimestamp");
    let list = |pointer: &str| -> Vec<&str> {
        let all = live.value().pointer(pointer).and_then(serde_json::Value::as_array);
        all.into_iter().flatten().filter_map(serde_json::Value::as_str).collect()
    };
    let mut finalizers = list("/metadata/finalizers");
    let dependents = finalizers.contains(&"foregroundDeletion");
    finalizers.retain(|f| *f != "foregroundDeletion");
    let mut why = Vec::new();
    if !finalizers.is_empty() {
        why.push(format!(
            "whoever set its finalizers {} must remove them; if that one is gone for good, remove them by hand",
            finalizers.join(", ")
        ));
    }
    if dependents {
        why.push("its pods have to end; look for pods that stay Terminating, mostly on a node that is lost".into());
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
    let since = if since.starts_with(|c: char| c.is_ascii_digit()) {
        format!(" since {since}")
    } else {
        String::new()
    };
    if why.is_empty() {
        format!("is being deleted{since}")
    } else {
        format!("is being deleted{since}: {}", why.join("; "))
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
            "is being deleted since 2026-01-01T00:00:00Z: Some resources are remaining: pods. has 1 resource instances"
        );
    }
}
