use super::{PodFailure, Pods, Verdict, assess, log_excerpt, unserved, worst_pod};
use crate::api::Reason;
use crate::drivers;
use crate::facts::Node;
use crate::manifest::Object;
use crate::types::name_list;
use std::sync::Arc;

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
}

impl DriverHealth {
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

/// The health of a driver from its live objects, its pods, the EndpointSlices of its webhooks and the nodes.
///
/// Beyond its workloads, a driver of the table works when it has done its work on every node.
#[must_use]
pub fn driver_health(driver: &str, objects: &[&Object], pods: &[&Object], slices: &[&Object], nodes: &[Arc<Node>]) -> DriverHealth {
    let mut total = Pods::default();
    let mut waiting = None;
    for object in objects {
        let (verdict, pods) = assess(object);
        total += pods;
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
        };
    }
    let not_ready = |reason, message| DriverHealth {
        ready: false,
        reason,
        message,
        pods: total,
        failure: None,
    };
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
    }
}
