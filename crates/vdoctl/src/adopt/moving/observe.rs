// SPDX-License-Identifier: Apache-2.0
//! Reads what `vdoctl adopt --move` decides from: both sets of drivers, their pods, the nodes, shared objects and the VDOConfig's status.

use super::super::super::CliError;
use super::super::super::context::{Context, Deployed};
use super::super::find::running;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use vdo::cluster::{ClusterError, Select, Watch, get, list, with_managers};
use vdo_adopt::moving::{COPIED, Config, New, Node, Old, Pod, Shared, State};
use vdo_api::api::{API_VERSION, ConditionType, Conditions, ManagementState, Reason, VDOConfig, VDOConfigStatus};
use vdo_api::types::ObjectId;
use vdo_core::drivers::{CSI_DRIVER, Driver, KNOWN, requests};
use vdo_core::health::{Verdict, assess};
use vdo_core::install::VDOCTL;
use vdo_core::installed::{Installed, MOVED, Moving};
use vdo_core::manifest::Object;
use vdo_core::plan::{Ownership, ownership};

/// Reads it.
pub(super) async fn state(context: &Context) -> Result<State, CliError> {
    let all = running(context).await?;
    let (config, status) = config(context).await?;
    let ready = Conditions::find(&status.conditions, ConditionType::Ready);
    let pods = pods(context, &all).await?;
    let mut state = State {
        config,
        condition: ready.map(|ready| ready.message.clone()).unwrap_or_default(),
        obstacles: obstacles(&status),
        old: Vec::new(),
        new: Vec::new(),
        nodes: nodes(context).await?,
        shared: Vec::new(),
    };
    for found in &all {
        let its = pods.iter().filter(|pod| is_of(pod, &found.object));
        if found.object.owner().is_some() {
            state.new.push(new(found, its.map(waiting).collect()));
        } else if is_moved(found) {
            state.old.push(old(context, found, its.map(pod).collect()).await?);
        }
    }
    state.shared = shared(context, &all).await?;
    Ok(state)
}

/// Whether a workload takes part in a move. One in the place of the operator's is adopted as it runs.
fn is_moved(found: &Installed) -> bool {
    let (object, driver) = (&found.object, found.driver);
    let is_in_place = object.namespace() == driver.namespace && driver.workloads.contains(&object.name());
    !is_in_place && !object.is_terminating() && (found.is_active() || object.annotation(MOVED).is_some())
}

fn new(found: &Installed, pods: Vec<Pod>) -> New {
    let waits = match assess(&found.object).0 {
        Verdict::Current => None,
        Verdict::Waiting(_, message) => Some(message),
    };
    New {
        driver: found.driver,
        object: found.object.clone(),
        waits,
        pods,
    }
}

async fn old(context: &Context, found: &Installed, pods: Vec<Pod>) -> Result<Old, CliError> {
    let object = &found.object;
    let is_fought = Moving::of(object).is_some_and(|mark| !mark.is_kept(object));
    let writers = match is_fought {
        true => with_managers(&context.ports.client, object.api_version(), object.identity()).await?,
        false => None,
    };
    Ok(Old {
        driver: found.driver,
        object: object.clone(),
        owner: match ownership(object, "") {
            Ownership::Foreign { who } => Some(who),
            Ownership::Ours | Ownership::Adoptable { .. } => None,
        },
        writers: writers.as_ref().map(writers_of).unwrap_or_default(),
        pods,
    })
}

/// Who wrote the fields that a move changes, besides vdoctl.
fn writers_of(object: &Object) -> Vec<String> {
    let all = object.value().pointer("/metadata/managedFields").and_then(Value::as_array);
    let spec = |entry: &Value| entry["fieldsV1"]["f:spec"].clone();
    let writes = |entry: &&Value| {
        let spec = spec(entry);
        let affinity = spec.pointer("/f:template/f:spec/f:affinity").is_some();
        entry["manager"] != VDOCTL && (affinity || spec.get("f:replicas").is_some() || spec.get("f:updateStrategy").is_some())
    };
    let names: BTreeSet<String> = all
        .into_iter()
        .flatten()
        .filter(writes)
        .filter_map(|entry| entry["manager"].as_str().map(str::to_owned))
        .collect();
    names.into_iter().collect()
}

/// What the operator is asked for, and what it says of that.
async fn config(context: &Context) -> Result<(Config, VDOConfigStatus), CliError> {
    let Deployed::Config(config) = context.find_config().await? else {
        return Ok((Config::Missing, VDOConfigStatus::default()));
    };
    let status = config.status.clone().unwrap_or_default();
    let is_observed = status.observed_generation.is_some() && status.observed_generation == config.metadata.generation;
    let asked = match config.spec.management_state {
        ManagementState::Managed => asked(context, &config, is_observed).await?,
        ManagementState::Paused => Config::Paused { is_observed },
        ManagementState::Removed => Config::Missing,
    };
    Ok((asked, status))
}

async fn asked(context: &Context, config: &VDOConfig, is_observed: bool) -> Result<Config, CliError> {
    let managed = requests(&config.spec)
        .into_iter()
        .filter(|request| request.state == ManagementState::Managed);
    let drivers = managed.map(|request| request.driver).collect();
    let found = get(&context.ports.client, API_VERSION, &config.id()).await?;
    let managed = |object| Config::Managed {
        object,
        drivers,
        is_observed,
    };
    Ok(found.map_or(Config::Missing, managed))
}

/// What keeps drivers from being installed, but for the old ones.
fn obstacles(status: &VDOConfigStatus) -> BTreeMap<&'static str, String> {
    let obstacle = |driver: &&'static Driver| {
        let found = Conditions::find(&status.conditions, driver.condition)?;
        let waits = found.status != "True" && found.reason != Reason::NotOurs.as_str();
        waits.then(|| (driver.name, found.message.clone()))
    };
    KNOWN.iter().filter_map(obstacle).collect()
}

/// The pods in the namespaces of the drivers.
async fn pods(context: &Context, all: &[Installed]) -> Result<Vec<Object>, CliError> {
    let namespaces: BTreeSet<&str> = all.iter().map(|found| found.object.namespace()).collect();
    let mut pods = Vec::new();
    for namespace in namespaces {
        pods.extend(list(&context.ports.client, &Watch::new("v1", "Pod", namespace, Select::All)).await?);
    }
    let ended = |pod: &Object| matches!(pod.value()["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    pods.retain(|pod| !ended(pod));
    Ok(pods)
}

/// Whether a pod is one of a workload: its own, or of a ReplicaSet of it.
fn is_of(pod: &Object, workload: &Object) -> bool {
    let owners = pod.value().pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let mut owners = owners.into_iter().flatten();
    let replicas = format!("{}-", workload.name());
    let is_owner = |owner: &Value| {
        let of_replicas = owner["kind"] == "ReplicaSet" && owner["name"].as_str().is_some_and(|name| name.starts_with(&replicas));
        owner["uid"] == workload.uid() || workload.kind() == "Deployment" && of_replicas
    };
    let wanted = workload.value().pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let mut wanted = wanted.into_iter().flatten();
    pod.namespace() == workload.namespace() && owners.any(is_owner) && wanted.all(|(key, value)| pod.label(key) == value.as_str())
}

fn pod(object: &Object) -> Pod {
    let value = object.value();
    let conditions = value.pointer("/status/conditions").and_then(Value::as_array);
    let is_ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    Pod {
        name: format!("{}/{}", object.namespace(), object.name()),
        node: value["spec"]["nodeName"].as_str().unwrap_or_default().to_owned(),
        ready: !object.is_terminating() && conditions.into_iter().flatten().any(is_ready),
    }
}

/// A new pod, which may still wait for its node. An old one that no node has runs nothing, and the DaemonSet controller leaves it where its
/// node is moved.
fn waiting(object: &Object) -> Pod {
    let mut pod = pod(object);
    if pod.node.is_empty() {
        pod.node = meant_for(object.value());
    }
    pod
}

/// The node that a pod of a DaemonSet waits for.
fn meant_for(pod: &Value) -> String {
    let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let terms = pod.pointer(terms).and_then(Value::as_array).into_iter().flatten();
    let fields = terms.filter_map(|term| term["matchFields"].as_array()).flatten();
    let mut names = fields
        .filter(|field| field["key"] == "metadata.name")
        .filter_map(|field| field["values"][0].as_str());
    names.next().unwrap_or_default().to_owned()
}

async fn nodes(context: &Context) -> Result<Vec<Node>, CliError> {
    let client = &context.ports.client;
    let plugins = list(client, &Watch::new("storage.k8s.io/v1", "CSINode", "", Select::All)).await?;
    let has_driver = |object: &&Object| {
        let drivers = object.value().pointer("/spec/drivers").and_then(Value::as_array);
        drivers.into_iter().flatten().any(|driver| driver["name"] == CSI_DRIVER)
    };
    let registered: BTreeSet<&str> = plugins.iter().filter(has_driver).map(Object::name).collect();
    let nodes = list(client, &Watch::new("v1", "Node", "", Select::All)).await?;
    let node = |object: Object| Node {
        is_registered: registered.contains(object.name()),
        object,
    };
    Ok(nodes.into_iter().map(node).collect())
}

/// What old workloads read in the namespace in which the operator keeps the driver, and its copies.
async fn shared(context: &Context, all: &[Installed]) -> Result<Vec<Shared>, CliError> {
    let client = &context.ports.client;
    let old = all.iter().filter(|found| found.object.owner().is_none() && is_moved(found));
    let mut ids: BTreeMap<ObjectId, (Option<Object>, Option<Object>)> = BTreeMap::new();
    for id in old.flat_map(|found| {
        let namespace = found.driver.namespace;
        found.configuration().into_iter().filter(move |id| id.namespace == namespace)
    }) {
        ids.entry(id).or_default();
    }
    for kind in ["ConfigMap", "Secret"] {
        for namespace in vdo_core::drivers::KNOWN.map(|driver| driver.namespace) {
            let watch = Watch::new("v1", kind, namespace, Select::Labels(MOVED.to_owned()));
            let copies = match list(client, &watch).await {
                Err(ClusterError::Forbidden { .. }) => Vec::new(),
                found => found?,
            };
            for copy in copies {
                if let Some(name) = copy.name().strip_suffix(COPIED) {
                    let id = ObjectId::new("", kind, namespace, name);
                    ids.entry(id).or_default().1 = Some(copy);
                }
            }
        }
    }
    for (id, (live, _)) in &mut ids {
        *live = get(client, "v1", id).await?;
    }
    let shared = ids.into_values().map(|(live, saved)| Shared {
        is_ours: live.as_ref().is_some_and(|live| live.owner().is_some()),
        live,
        saved,
    });
    Ok(shared.collect())
}
