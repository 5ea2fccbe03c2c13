// SPDX-License-Identifier: Apache-2.0
//! `vdoctl logs`: selects the pods of the operator, a driver or a node, and prints the last lines of their containers.

mod follow;

use super::args::{Global, Logs as Args};
use super::context::Context;
use super::error::sentence;
use super::printer::Printer;
use super::style::head;
use super::vdo_namespaces::{is_ours, namespaces};
use super::{Answer, CliError, Exit};
use std::collections::BTreeSet;
use vdo::cluster::{Select, Watch, list, pod_log_tail};
use vdo_api::api::DRIVER_LABEL;
use vdo_core::drivers::KNOWN;
use vdo_core::install::OPERATOR;
use vdo_core::manifest::Object;

/// The most bytes of one container.
const BYTES: i64 = 4 << 20;

/// Whose logs are shown.
#[derive(Debug, PartialEq, Eq)]
enum Of {
    Operator,
    /// The driver with these workloads, each as namespace and name.
    Driver(BTreeSet<(String, String)>),
    Node(String),
}

pub(super) async fn run(args: &Args, global: &Global, printer: &mut Printer) -> Result<Answer, CliError> {
    let context = Context::open(global).await?;
    let of = of(&args.of, &context).await?;
    if args.follow {
        return follow::follow(args, &context, &of, printer).await;
    }
    let client = &context.ports.client;
    let pods = pods_of(args, &context, &of).await?;
    let (mut text, mut unread, mut shown) = (String::new(), Vec::new(), 0);
    for pod in &pods {
        for container in containers(pod) {
            if args.container.as_ref().is_some_and(|wanted| *wanted != container) {
                continue;
            }
            shown += 1;
            let log = pod_log_tail(client, pod.namespace(), pod.name(), &container, !args.previous, args.tail, BYTES).await;
            match log {
                Ok(log) => {
                    let node = pod.text("/spec/nodeName");
                    let title = format!("{}/{} {container} on {node}", pod.namespace(), pod.name());
                    text.push_str(&format!("{}\n{}\n\n", head(&title), log.trim_end()));
                }
                Err(error) => unread.push(format!("{}/{} {container}: {}", pod.namespace(), pod.name(), sentence(&error))),
            }
        }
    }
    let answer = Answer::text(text).of_others();
    let is_whole = unread.len() < shown;
    let answer = unread.into_iter().fold(answer, Answer::note);
    Ok(if is_whole { answer } else { answer.exit(Exit::Differences) })
}

/// The pods that are meant, some of which have the container that is asked for.
async fn pods_of(args: &Args, context: &Context, of: &Of) -> Result<Vec<Object>, CliError> {
    let places = match of {
        Of::Operator => BTreeSet::from([context.namespace().to_owned()]),
        Of::Driver(workloads) => workloads.iter().map(|(namespace, _)| namespace.clone()).collect(),
        Of::Node(_) => namespaces(context),
    };
    let mut pods = Vec::new();
    for namespace in places {
        let found = list(&context.ports.client, &Watch::new("v1", "Pod", &namespace, Select::All)).await?;
        pods.extend(found.into_iter().filter(|pod| is_of(of, pod)));
    }
    if pods.is_empty() {
        let what = format!("no pod of {} exists in cluster {}", args.of, context.name);
        return Err(CliError::new(
            Exit::NotFound,
            what,
            "To see whether the operator and the drivers run: vdoctl status",
        ));
    }
    let mut known: Vec<String> = pods.iter().flat_map(containers).collect();
    match &args.container {
        Some(wanted) if !known.contains(wanted) => {
            known.sort();
            known.dedup();
            let what = format!("no pod of {} has a container {wanted}", args.of);
            Err(CliError::new(Exit::NotFound, what, format!("Available: {}.", known.join(", "))))
        }
        _ => Ok(pods),
    }
}

/// What a word stands for: the operator, a driver by its name or its short one, a driver of spec.drivers, or a node.
async fn of(word: &str, context: &Context) -> Result<Of, CliError> {
    if matches!(word, "operator" | OPERATOR) {
        return Ok(Of::Operator);
    }
    let client = &context.ports.client;
    if let Some(driver) = KNOWN
        .iter()
        .find(|driver| driver.name == word || driver.short.eq_ignore_ascii_case(word))
    {
        let workloads = driver.workloads.iter();
        return Ok(Of::Driver(
            workloads.map(|name| (driver.namespace.to_owned(), (*name).to_owned())).collect(),
        ));
    }
    let mut workloads = Vec::new();
    for kind in ["Deployment", "DaemonSet"] {
        let labels = Select::Labels(format!("{DRIVER_LABEL}={word}"));
        if word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            workloads.extend(list(client, &Watch::new("apps/v1", kind, "", labels)).await?);
        }
    }
    if !workloads.is_empty() {
        let places = workloads.iter();
        return Ok(Of::Driver(
            places
                .map(|object| (object.namespace().to_owned(), object.name().to_owned()))
                .collect(),
        ));
    }
    let nodes = list(client, &Watch::new("v1", "Node", "", Select::All)).await?;
    if nodes.iter().any(|node| node.name() == word) {
        return Ok(Of::Node(word.to_owned()));
    }
    let names: Vec<&str> = nodes.iter().map(Object::name).collect();
    Err(CliError::new(
        Exit::NotFound,
        format!(
            "{word:?} is neither the operator, nor a driver, nor a node of cluster {}",
            context.name
        ),
        format!("Name operator, cpi, csi, or a node: {}.", vdo_api::types::name_list(&names)),
    ))
}

fn is_of(of: &Of, pod: &Object) -> bool {
    let owner = pod.text("/metadata/ownerReferences/0/name");
    // A Deployment owns its pods through a ReplicaSet, which has a hash behind its name.
    let owner = match pod.text("/metadata/ownerReferences/0/kind") {
        "ReplicaSet" => owner.rsplit_once('-').map_or(owner, |(before, _)| before),
        _ => owner,
    };
    match of {
        Of::Operator => pod.label("app.kubernetes.io/name") == Some(OPERATOR),
        Of::Driver(workloads) => workloads.contains(&(pod.namespace().to_owned(), owner.to_owned())),
        Of::Node(node) => is_ours(pod.namespace(), pod) && pod.text("/spec/nodeName") == node,
    }
}

/// The containers of a pod that have begun.
fn containers(pod: &Object) -> Vec<String> {
    let names = pod.container_statuses().filter_map(|status| status["name"].as_str());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(kind: &str, owner: &str, node: &str) -> Object {
        let value = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n",
            "ownerReferences": [{"kind": kind, "name": owner}]}, "spec": {"nodeName": node}, "status": {"containerStatuses": [{"name": "main"}]}});
        Object::new(value).expect("a pod")
    }

    #[test]
    fn pods_are_those_of_a_driver_or_of_a_node() {
        let of = |names: &[&str]| Of::Driver(names.iter().map(|name| ("n".to_owned(), (*name).to_owned())).collect());
        let csi = of(&["vsphere-csi-controller", "vsphere-csi-node"]);
        for (of, kind, owner, expected) in [
            (&csi, "DaemonSet", "vsphere-csi-node", true),
            (&csi, "ReplicaSet", "vsphere-csi-controller-5d8f7c", true),
            (&csi, "DaemonSet", "vsphere-csi-node-windows", false),
            (&csi, "DaemonSet", "vsphere-cloud-controller-manager", false),
            (&Of::Node("w-1".into()), "DaemonSet", "anything", true),
            (&Of::Node("w-2".into()), "DaemonSet", "anything", false),
            (&Of::Operator, "ReplicaSet", "vdo-operator-5d8f7c", false),
        ] {
            assert_eq!(is_of(of, &pod(kind, owner, "w-1")), expected, "{of:?} {owner}");
        }
        assert_eq!(containers(&pod("Job", "o", "w-1")), ["main"]);
    }
}
