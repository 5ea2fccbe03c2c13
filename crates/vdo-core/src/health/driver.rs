use super::scheduling::refusal;
use super::{PodFailure, Pods, Verdict, assess, log_excerpt, unserved, worst_pod};
use crate::drivers;
use crate::manifest::Object;
use std::sync::Arc;
use vdo_api::api::Reason;
use vdo_api::facts::Node;
use vdo_api::types::{ObjectId, name_list};

/// Whether a driver works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverHealth {
    /// It does.
    pub ready: bool,
    /// Why, as a reason.
    pub reason: Reason,
    /// Why, as a sentence.
    pub message: String,
    /// Its pods.
    pub pods: Pods,
    /// The pod that is furthest from ready, if one says why.
    pub failure: Option<PodFailure>,
    /// A DaemonSet of which pods are not even made. Unlike a Deployment, it has no condition that says why; an event does.
    pub unmade: Option<Unmade>,
}

/// A workload of which pods are not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmade {
    /// The workload.
    pub workload: ObjectId,
    /// Its UID, by which its events are known.
    pub uid: String,
}

/// The longest part of a refusal that is shown: one of OpenShift has a reason for each of its constraints.
const REFUSAL: usize = 600;

impl DriverHealth {
    /// Says why pods are not even made, in the words of the API server.
    #[must_use]
    pub fn with_refusal(mut self, why: &str) -> Self {
        if let Some(unmade) = &self.unmade {
            let cut = why.char_indices().nth(REFUSAL).map_or(why, |(end, _)| &why[..end]);
            let more = if cut.len() < why.len() { "…" } else { "" };
            self.reason = Reason::PodsFailing;
            self.message = format!("{} cannot make its pods: FailedCreate: {cut}{more}", unmade.workload);
        }
        self
    }

    /// Adds what the log of the failing container said last, else what it left as its termination message, without these secrets; and
    /// how to read all of it.
    #[must_use]
    pub fn with_log_excerpt(mut self, words: Option<&str>, secrets: &[&str]) -> Self {
        let Some((pod, container)) = self.failure.as_ref().and_then(|t| Some((t, t.container.as_ref()?))) else {
            return self;
        };
        let left = || log_excerpt(&container.ended.as_ref()?.message, secrets);
        if let Some(words) = words.map(str::to_owned).or_else(left) {
            self.message.push_str(&format!("; it said: {words}"));
        }
        if container.ended.is_some() {
            let read = format!("; kubectl logs --previous -n {} {} -c {}", pod.namespace, pod.pod, container.name);
            self.message.push_str(&read);
        }
        self
    }
}

/// Why a driver whose workloads are as specified does not run: one that is scaled to zero, or nodes of which none takes its pods. A
/// DaemonSet for other nodes than there are, such as those with Windows, is as it should be beside pods that run.
fn without_pods(objects: &[&Object], total: Pods, nodes: &[Arc<Node>]) -> Option<String> {
    let is_scaled = |object: &&&Object| matches!(object.kind(), "Deployment" | "StatefulSet") && object.number("/spec/replicas") == Some(0);
    if let Some(scaled) = objects.iter().find(is_scaled) {
        return Some(format!("{scaled} is scaled to 0, so no pod of it runs"));
    }
    let daemons = objects.iter().find(|object| object.kind() == "DaemonSet")?;
    if total.wanted > 0 || nodes.is_empty() {
        return None;
    }
    let of = vdo_api::types::count(nodes.len(), "node");
    let why = nodes.iter().find_map(|node| Some((node, refusal(daemons.pod_spec()?, node)?)));
    let why = why.map_or(String::new(), |(node, why)| format!("; {}: {why}", node.name));
    Some(format!("{daemons} wants 0 pods, because none of {of} takes them{why}"))
}

/// The health of a driver from its live objects, its pods, the EndpointSlices of its webhooks and the nodes.
///
/// Beyond its workloads, a driver of the table works when it has done its work on every node.
#[must_use]
pub fn driver_health(driver: &str, objects: &[&Object], pods: &[&Object], slices: &[&Object], nodes: &[Arc<Node>]) -> DriverHealth {
    let mut total = Pods::default();
    let mut waiting = None;
    for object in objects {
        let (verdict, pods) = assess(object);
        total.add(pods);
        if let (Verdict::Waiting(reason, message), None) = (verdict, &waiting) {
            waiting = Some((reason, message));
        }
    }
    if let Some((reason, message)) = waiting {
        let failure = worst_pod(pods.iter().copied());
        let (reason, message) = match &failure {
            Some(pod) if pod.container.is_none() => (reason, format!("{message}; {pod}")),
            Some(pod) => (Reason::PodsFailing, format!("{message}; {pod}")),
            None => (reason, message),
        };
        return DriverHealth {
            ready: false,
            reason,
            message,
            pods: total,
            failure,
            unmade: objects.iter().find_map(|object| unmade(object)),
        };
    }
    let not_ready = |reason, message| DriverHealth {
        ready: false,
        reason,
        message,
        pods: total,
        failure: None,
        unmade: None,
    };
    if let Some(message) = without_pods(objects, total, nodes) {
        return not_ready(Reason::WaitingForPods, message);
    }
    if let Some(message) = unserved(objects, slices) {
        return not_ready(Reason::WebhookNotServed, message);
    }
    if let Some(rule) = drivers::known(driver).map(|driver| &driver.on_nodes) {
        let due = nodes.iter().filter(|node| (rule.waits_for)(node).is_some());
        let names: Vec<&str> = due.map(|node| node.name.as_str()).collect();
        if !names.is_empty() {
            let message = format!(
                "{} of {} nodes are not yet {}: {}",
                names.len(),
                nodes.len(),
                rule.done,
                name_list(&names)
            );
            return not_ready(rule.reason, message);
        }
    }
    DriverHealth {
        ready: true,
        reason: Reason::Healthy,
        message: format!("{} of {} pods are ready", total.ready, total.wanted),
        pods: total,
        failure: None,
        unmade: None,
    }
}

/// That a DaemonSet has fewer pods than nodes that should have one.
fn unmade(object: &Object) -> Option<Unmade> {
    let number = |field: &str| object.number(&format!("/status/{field}"));
    let lacks = object.kind() == "DaemonSet" && number("currentNumberScheduled")? < number("desiredNumberScheduled")?;
    lacks.then(|| Unmade {
        workload: object.id(),
        uid: object.uid().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vdo_api::facts::Place;

    fn workload(kind: &str, replicas: i64, selector: &str) -> Object {
        let status = json!({"observedGeneration": 1, "desiredNumberScheduled": replicas, "numberReady": replicas, "numberAvailable": replicas,
            "updatedNumberScheduled": replicas, "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas});
        Object::new(
            json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x", "namespace": "n", "generation": 1},
            "spec": {"replicas": replicas, "template": {"spec": {"nodeSelector": {"role": selector}}}}, "status": status}),
        )
        .expect("an object")
    }

    fn nodes(labels: &[&str]) -> Vec<Arc<Node>> {
        let node = |label: &&str| {
            Arc::new(Node {
                name: format!("node-{label}"),
                place: Place {
                    labels: [("role".to_owned(), (*label).to_owned())].into(),
                    ..Place::default()
                },
                ..Node::default()
            })
        };
        labels.iter().map(node).collect()
    }

    #[test]
    fn driver_health_of_refused_pods_is_in_the_words_of_the_api_server() {
        let mut refused = workload("DaemonSet", 2, "worker").into_value();
        for (field, value) in [("currentNumberScheduled", 0), ("numberReady", 0), ("numberAvailable", 0)] {
            refused["status"][field] = value.into();
        }
        let refused = Object::new(refused).expect("an object");
        let health = driver_health("further", &[&refused], &[], &[], &nodes(&["worker"]));
        assert_eq!(
            health.unmade.as_ref().map(|unmade| unmade.workload.to_string()).as_deref(),
            Some("DaemonSet n/x")
        );
        let said = health.with_refusal("Error creating: pods \"x-\" is forbidden");
        assert_eq!(said.reason, Reason::PodsFailing);
        assert_eq!(
            said.message,
            "DaemonSet n/x cannot make its pods: FailedCreate: Error creating: pods \"x-\" is forbidden"
        );
        let long = driver_health("further", &[&refused], &[], &[], &[]).with_refusal(&"ä".repeat(700));
        assert!(
            long.message.ends_with("ä…") && long.message.chars().count() < 700,
            "{}",
            long.message
        );
        let made = workload("DaemonSet", 2, "worker");
        assert_eq!(driver_health("further", &[&made], &[], &[], &[]).unmade, None);
    }

    /// A driver of which no pod is wanted does not work, unless there is no node at all.
    #[test]
    fn driver_health_without_pods_is_not_healthy() {
        let none = workload("DaemonSet", 0, "master");
        let some = workload("DaemonSet", 2, "worker");
        let scaled = workload("Deployment", 0, "worker");
        let runs = workload("Deployment", 1, "worker");
        for (objects, labels, expected) in [
            (
                vec![&none],
                &["worker"][..],
                Some("DaemonSet n/x wants 0 pods, because none of 1 node takes them; node-worker: it lacks the label role=master"),
            ),
            (vec![&none], &[], None),
            (vec![&none, &some], &["worker"], None),
            (vec![&none, &runs], &["worker"], None),
            (
                vec![&scaled],
                &["worker"],
                Some("Deployment n/x is scaled to 0, so no pod of it runs"),
            ),
            (
                vec![&scaled, &some],
                &["worker"],
                Some("Deployment n/x is scaled to 0, so no pod of it runs"),
            ),
            (vec![&runs], &["worker"], None),
            (vec![], &["worker"], None),
        ] {
            let health = driver_health("further", &objects, &[], &[], &nodes(labels));
            assert_eq!((!health.ready).then_some(health.message.as_str()), expected, "{labels:?}");
            if expected.is_some() {
                assert_eq!(health.reason, Reason::WaitingForPods);
            }
        }
    }
}
