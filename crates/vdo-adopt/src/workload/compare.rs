// SPDX-License-Identifier: Apache-2.0
//! Lists the differences between a live workload and the chart's workload: variables, arguments, resources, tolerations, replicas, images.
//!
//! It skips the fields that no person sets, such as the fields that the API server fills in.

use super::Role;
use super::containers::{self, fields, program, variables};
use super::flags;
use super::images::{self, Images};
use super::placement::{further_labels, further_tolerations, is_not_spread, other_affinity};
use crate::origin::{Origin, named};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use vdo_core::chart::ImageSource;
use vdo_core::chart::values::merge;
use vdo_core::manifest::Object;

/// Variables by which the parts of a pod find each other; none is a setting.
const STRUCTURE: [&str; 11] = [
    "ADDRESS",
    "CSI_ENDPOINT",
    "CSI_NAMESPACE",
    "DRIVER_REG_SOCK_PATH",
    "GODEBUG",
    "NODE_NAME",
    "PLUGIN_REG_DIR",
    "POD_NAMESPACE",
    "VSPHERE_CSI_CONFIG",
    "X_CSI_LOG_LEVEL",
    "X_CSI_MODE",
];

/// Fields of pods that an API server fills in, each with its value.
const FILLED_IN: [(&str, &str); 4] = [
    ("dnsPolicy", "ClusterFirst"),
    ("restartPolicy", "Always"),
    ("schedulerName", "default-scheduler"),
    ("preemptionPolicy", "PreemptLowerPriority"),
];

/// Fields of pods that no setting of the charts changes.
const POD_FIELDS: [&str; 11] = [
    "dnsConfig",
    "dnsPolicy",
    "hostAliases",
    "hostNetwork",
    "hostPID",
    "initContainers",
    "priorityClassName",
    "runtimeClassName",
    "schedulerName",
    "securityContext",
    "topologySpreadConstraints",
];

/// A difference.
#[derive(Debug, Clone)]
pub(super) struct Difference {
    pub role: Role,
    /// The program of the container.
    pub container: Option<&'static str>,
    pub aspect: Aspect,
    pub origin: Origin,
}

/// What differs.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Aspect {
    /// A variable; none as its text where it is taken from another object.
    Variable(String, Option<String>),
    /// An argument that is not as in the chart; none where the chart has it and the workload does not.
    Flag(String, Option<String>),
    /// Requests and limits, and whether they have all that the chart sets.
    Resources(Value, bool),
    Tolerations(Vec<Value>),
    Labels(Map<String, Value>),
    Affinity(Value),
    NotSpread,
    Replicas(i64),
    Images(Images),
    PullSecrets(Vec<String>),
    KubeletPath(String),
    /// A field of the pod.
    Pod(&'static str),
    /// A field of a container.
    Field(&'static str),
    /// A container that the chart does not have.
    Further(String),
    /// The chart has a snapshotter.
    NoSnapshotter,
    /// The chart has a node plugin for Windows.
    NoWindows,
    /// A feature state, by name.
    State(String, String),
}

impl Difference {
    /// What it is called in losses.
    pub(super) fn key(&self) -> String {
        let place = match self.container {
            Some(container) => format!("{}/{container}", self.role.word()),
            None => self.role.word().to_owned(),
        };
        let what = match &self.aspect {
            Aspect::Variable(name, _) => format!("env/{name}"),
            Aspect::Flag(name, _) => format!("args/{name}"),
            Aspect::Resources(..) => "resources".to_owned(),
            Aspect::Tolerations(_) => "tolerations".to_owned(),
            Aspect::Labels(_) => "nodeSelector".to_owned(),
            Aspect::Affinity(_) | Aspect::NotSpread => "affinity".to_owned(),
            Aspect::Replicas(_) => "replicas".to_owned(),
            Aspect::Images(_) => "images".to_owned(),
            Aspect::PullSecrets(_) => "imagePullSecrets".to_owned(),
            Aspect::KubeletPath(_) => "kubeletPath".to_owned(),
            Aspect::Pod(field) | Aspect::Field(field) => (*field).to_owned(),
            Aspect::Further(name) => format!("containers/{name}"),
            Aspect::NoSnapshotter => "containers/csi-snapshotter".to_owned(),
            Aspect::NoWindows => "windows".to_owned(),
            Aspect::State(name, _) => return format!("feature-states/{name}"),
        };
        format!("{place}/{what}")
    }

    /// Why it is not taken along.
    pub(super) fn because(&self) -> String {
        match &self.aspect {
            Aspect::Variable(_, None) => {
                "the variable takes its value from another object (valueFrom), and the VDOConfig has no field for this".to_owned()
            }
            Aspect::Variable(name, _) if name.starts_with("VSPHERE_") || name.starts_with("VCENTER_") => {
                "the variable overrides the driver's configuration file; put the value into the vSphere connection".to_owned()
            }
            Aspect::Variable(_, Some(value)) if has_password(value) => {
                "the value contains a password, which every reader of the VDOConfig would see".to_owned()
            }
            Aspect::Images(Images::Elsewhere(path)) => {
                format!("images such as {path} have other paths than in the chart, so spec.images.registry cannot be used for them")
            }
            Aspect::Resources(_, false) => "the chart sets requests or limits, which the workload does not set".to_owned(),
            Aspect::Further(_) => "the chart has no such container".to_owned(),
            Aspect::State(..) => "the value is neither true nor false".to_owned(),
            _ => "there is no field and no chart value for this setting".to_owned(),
        }
    }
}

/// Whether a text is an address with a password.
pub(super) fn has_password(text: &str) -> bool {
    text.contains("://") && text.contains('@')
}

/// The differences of one workload.
pub(super) fn workloads(
    role: Role,
    live: &Object,
    base: &Object,
    sources: &BTreeMap<String, ImageSource>,
    control_planes: u32,
) -> Vec<Difference> {
    let (Some(pod), Some(own)) = (live.pod_spec(), base.pod_spec()) else {
        return Vec::new();
    };
    let one = |container: Option<&'static str>, place: &str, aspect: Aspect| Difference {
        role,
        container,
        aspect,
        origin: Origin::new(named(live.identity()), place),
    };
    let mut all = Vec::new();
    // Where each controller wants a node of the control plane for itself, more of them than nodes wait for ever.
    let is_spread = pod
        .pointer("/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution")
        .is_some();
    let most = |count: i64| {
        if is_spread {
            count.min(i64::from(control_planes.max(1)))
        } else {
            count
        }
    };
    let replicas = live
        .number("/spec/replicas")
        .filter(|count| base.number("/spec/replicas").map(most) != Some(most(*count)));
    all.extend(
        replicas
            .filter(|_| live.kind() != "DaemonSet" && base.kind() != "DaemonSet")
            .map(|count| one(None, "replicas", Aspect::Replicas(count))),
    );
    all.extend(
        of_pod(role, pod, own, sources)
            .into_iter()
            .map(|(place, aspect)| one(None, place, aspect)),
    );
    for container in containers::all(pod) {
        let name = container["name"].as_str().unwrap_or_default();
        let place = |what: &str| format!("container {name}, {what}");
        let known = program(container).and_then(|program| Some((program, containers::of(own, program)?)));
        let Some((program, other)) = known else {
            let what = match program(container) {
                // The only one that a chart can leave out, and does for this specification.
                Some("snapshotter") => continue,
                _ => Aspect::Further(name.to_owned()),
            };
            all.push(one(None, &format!("container {name}"), what));
            continue;
        };
        let found = of_container(container, other);
        all.extend(found.into_iter().map(|(what, aspect)| one(Some(program), &place(&what), aspect)));
    }
    let lacks = containers::of(own, "snapshotter").is_some() && containers::of(pod, "snapshotter").is_none();
    all.extend(lacks.then(|| one(None, "no such container", Aspect::NoSnapshotter)));
    all
}

/// The differences of the pods of a workload, without their containers.
fn of_pod(role: Role, pod: &Value, own: &Value, sources: &BTreeMap<String, ImageSource>) -> Vec<(&'static str, Aspect)> {
    let mut all = Vec::new();
    let tolerations = further_tolerations(pod, own);
    if !tolerations.is_empty() {
        all.push(("tolerations", Aspect::Tolerations(tolerations)));
    }
    let labels = further_labels(pod, own);
    if !labels.is_empty() {
        all.push(("nodeSelector", Aspect::Labels(labels)));
    }
    if let Some(affinity) = other_affinity(pod, own) {
        all.push(("affinity", Aspect::Affinity(affinity)));
    } else if role == Role::Controller && is_not_spread(pod, own) {
        all.push(("no affinity", Aspect::NotSpread));
    }
    if let Some(images) = images::of(pod, own, sources) {
        all.push(("images", Aspect::Images(images)));
    }
    let secrets = |pod: &Value| -> Vec<String> {
        let list = pod["imagePullSecrets"].as_array().into_iter().flatten();
        list.filter_map(|secret| secret["name"].as_str().map(str::to_owned)).collect()
    };
    let own_secrets = secrets(own);
    let further: Vec<String> = secrets(pod).into_iter().filter(|name| !own_secrets.contains(name)).collect();
    if !further.is_empty() {
        all.push(("imagePullSecrets", Aspect::PullSecrets(further)));
    }
    let path = kubelet_path(pod).filter(|_| role == Role::Node);
    if let Some(path) = path.filter(|path| kubelet_path(own).as_ref() != Some(path)) {
        all.push(("volumes", Aspect::KubeletPath(path)));
    }
    for field in POD_FIELDS {
        let value = &pod[field];
        let filled = FILLED_IN.iter().any(|(name, text)| *name == field && value == text);
        let empty = value.is_null() || value == &Value::Bool(false) || value.as_object().is_some_and(Map::is_empty);
        if !filled && !empty && value != &own[field] {
            all.push((field, Aspect::Pod(field)));
        }
    }
    all
}

/// The folder of the kubelet, above that in which the driver listens.
fn kubelet_path(pod: &Value) -> Option<String> {
    let volumes = pod["volumes"].as_array()?.iter();
    let mut paths = volumes.filter_map(|volume| volume["hostPath"]["path"].as_str());
    let path = paths.find_map(|path| path.trim_end_matches('/').strip_suffix("/plugins/csi.vsphere.vmware.com"));
    path.filter(|path| path.starts_with('/')).map(str::to_owned)
}

/// The differences of a container.
fn of_container(live: &Value, base: &Value) -> Vec<(String, Aspect)> {
    let mut all = Vec::new();
    let own: BTreeMap<&str, Option<&str>> = variables(base).into_iter().collect();
    for (name, value) in variables(live) {
        if !STRUCTURE.contains(&name) && own.get(name) != Some(&value) && value != Some("") {
            all.push((name.to_owned(), Aspect::Variable(name.to_owned(), value.map(str::to_owned))));
        }
    }
    let (flags, own) = (flags::settings(live), flags::settings(base));
    for (name, value) in &flags {
        if own.get(name) != Some(value) {
            all.push((format!("argument --{name}"), Aspect::Flag(name.clone(), Some(value.clone()))));
        }
    }
    for name in own.keys().filter(|name| !flags.contains_key(*name)) {
        // What else the chart sets, this manifest has left to the program.
        if matches!(name.as_str(), "feature-gates" | "strict-topology") {
            all.push((format!("no argument --{name}"), Aspect::Flag(name.clone(), None)));
        }
    }
    let (resources, own) = (fields(&live["resources"]), fields(&base["resources"]));
    if resources != own {
        let resources = Value::Object(resources);
        let mut merged = Value::Object(own);
        merge(&mut merged, &resources);
        let is_whole = merged == resources;
        all.push(("resources".to_owned(), Aspect::Resources(resources, is_whole)));
    }
    for field in ["envFrom", "lifecycle"] {
        if !live[field].is_null() && live[field] != base[field] {
            all.push((field.to_owned(), Aspect::Field(field)));
        }
    }
    all
}

/// The feature states that are not as in the chart. One that is not there is off.
pub(super) fn states(live: &Object, base: &Object) -> Vec<Difference> {
    let (found, own) = (fields(&live.value()["data"]), fields(&base.value()["data"]));
    let mut all = Vec::new();
    let mut add = |name: &str, state: &str, place: String| {
        all.push(Difference {
            role: Role::Controller,
            container: None,
            aspect: Aspect::State(name.to_owned(), state.to_owned()),
            origin: Origin::new(named(live.identity()), place),
        });
    };
    for (name, state) in &found {
        let state = state.as_str().unwrap_or_default();
        let known = own.get(name).and_then(Value::as_str);
        if known.unwrap_or("false") != state {
            add(name, state, name.clone());
        }
    }
    for (name, _) in own.iter().filter(|(name, state)| *state == "true" && !found.contains_key(*name)) {
        add(name, "false", format!("no {name}"));
    }
    all
}
