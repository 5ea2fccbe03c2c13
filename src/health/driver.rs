use super::{Pods, Verdict, assess, worst_pod};
use crate::api::Reason;
use crate::facts::Node;
use crate::manifest::Object;
use crate::types::{CPI, CSI};

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
}

/// The health of a driver from its live objects, its pods and the nodes.
///
/// Beyond its workloads, a cloud provider works when every node is initialised, and a CSI driver when every Linux node has
/// it registered.
#[must_use]
pub fn driver_health(driver: &str, objects: &[&Object], pods: &[&Object], nodes: &[Node]) -> DriverHealth {
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
        let (reason, message) = match worst_pod(pods.iter().copied()) {
            Some(pod) if pod.contains("finds no node") => (reason, format!("{message}; {pod}")),
            Some(pod) => (
                Reason::PodsFailing,
                format!("{message}; {pod}. Read its log: kubectl logs --previous {}", log_of(&pod)),
            ),
            None => (reason, message),
        };
        return DriverHealth {
            ready: false,
            reason,
            message,
            pods: total,
        };
    }
    let (lacking, reason, what): (Vec<&Node>, _, _) = match driver {
        CPI => (
            nodes.iter().filter(|n| n.lacks().is_some()).collect(),
            Reason::WaitingForNodes,
            "initialised by the cloud provider",
        ),
        CSI => (
            nodes.iter().filter(|n| n.linux && !n.csi_registered).collect(),
            Reason::WaitingForCsiNodes,
            "registered with the CSI driver",
        ),
        _ => (Vec::new(), Reason::Healthy, ""),
    };
    if !lacking.is_empty() {
        let message = format!("{} of {} nodes are not yet {what}: {}", lacking.len(), nodes.len(), names(&lacking));
        return DriverHealth {
            ready: false,
            reason,
            message,
            pods: total,
        };
    }
    DriverHealth {
        ready: true,
        reason: Reason::Healthy,
        message: format!("all {} pods are ready", total.wanted),
        pods: total,
    }
}

/// At most five names, and how many more there are.
pub(super) fn names(nodes: &[&Node]) -> String {
    let mut text = nodes.iter().take(5).map(|n| n.name.as_str()).collect::<Vec<_>>().join(", ");
    if nodes.len() > 5 {
        text.push_str(&format!(" and {} more", nodes.len() - 5));
    }
    text
}

/// `-n NAMESPACE NAME` of the pod that a message of [`worst_pod`] begins with.
fn log_of(message: &str) -> String {
    let pod = message.trim_start_matches("pod ").split([':', ' ']).next().unwrap_or_default();
    let (namespace, name) = pod.split_once('/').unwrap_or(("", pod));
    format!("-n {namespace} {name}")
}
