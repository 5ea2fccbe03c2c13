use crate::manifest::Object;
use serde_json::Value;

/// The state of the pod that is furthest from ready, as a sentence: the container, what it is doing, its exit code, or why
/// the pod finds no node. `None` when no pod says anything beyond "not yet".
#[must_use]
pub fn worst_pod<'a>(pods: impl IntoIterator<Item = &'a Object>) -> Option<String> {
    let mut found: Vec<(u8, String)> = pods.into_iter().filter_map(trouble).collect();
    found.sort();
    found.into_iter().next().map(|(_, message)| message)
}

/// What is wrong with a pod, and how bad it is (0 is worst).
fn trouble(pod: &Object) -> Option<(u8, String)> {
    let statuses = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let containers = statuses
        .iter()
        .filter_map(|pointer| pod.value().pointer(pointer)?.as_array())
        .flatten();
    for container in containers {
        let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
        if let Some(waiting) = container.pointer("/state/waiting") {
            let reason = waiting.get("reason").and_then(Value::as_str).unwrap_or_default();
            if !matches!(reason, "" | "ContainerCreating" | "PodInitializing") {
                let exit = container
                    .pointer("/lastState/terminated/exitCode")
                    .and_then(Value::as_i64)
                    .map(|code| format!(", last exit code {code}"))
                    .unwrap_or_default();
                let message = waiting
                    .get("message")
                    .and_then(Value::as_str)
                    .map(|text| format!(": {text}"))
                    .unwrap_or_default();
                return Some((
                    0,
                    format!(
                        "pod {}/{}: container {name} is in {reason}{exit}{message}",
                        pod.namespace(),
                        pod.name()
                    ),
                ));
            }
        }
        if let Some(code) = container
            .pointer("/state/terminated/exitCode")
            .and_then(Value::as_i64)
            .filter(|code| *code != 0)
        {
            return Some((
                1,
                format!(
                    "pod {}/{}: container {name} ended with exit code {code}",
                    pod.namespace(),
                    pod.name()
                ),
            ));
        }
    }
    let scheduled = pod
        .value()
        .pointer("/status/conditions")
        .and_then(Value::as_array)?
        .iter()
        .find(|c| {
            c.get("type").and_then(Value::as_str) == Some("PodScheduled") && c.get("status").and_then(Value::as_str) == Some("False")
        })?;
    let message = scheduled.get("message").and_then(Value::as_str).unwrap_or("no node fits");
    Some((2, format!("pod {}/{} finds no node: {message}", pod.namespace(), pod.name())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(status: Value) -> Object {
        Object::new(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "status": status}))
            .expect("a pod")
    }

    #[test]
    fn the_worst_pod_is_named_with_its_cause() {
        let healthy = pod(json!({"containerStatuses": [{"name": "c", "state": {"running": {}}}]}));
        let starting = pod(json!({"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}]}));
        let unscheduled = pod(json!({"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/4 nodes are available"}]}));
        let crashing = pod(
            json!({"containerStatuses": [{"name": "syncer", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}, "lastState": {"terminated": {"exitCode": 2}}}]}),
        );
        assert_eq!(worst_pod([&healthy, &starting]), None);
        assert_eq!(
            worst_pod([&healthy, &unscheduled]).as_deref(),
            Some("pod n/p finds no node: 0/4 nodes are available")
        );
        assert_eq!(
            worst_pod([&unscheduled, &healthy, &crashing]).as_deref(),
            Some("pod n/p: container syncer is in CrashLoopBackOff, last exit code 2: back-off 10s")
        );
    }
}
