// SPDX-License-Identifier: Apache-2.0
//! Translates the differences of a workload into fields of the VDOConfig (`spec`) and into values of the chart.

use super::compare::{Aspect, Difference, has_password};
use super::images::Images;
use super::{Role, Workloads};
use crate::origin::Origin;
use serde_json::{Value, json};
use vdo_core::chart::values::merge;

/// A field, by its path in the VDOConfig.
#[derive(Debug)]
pub(super) struct Setting {
    pub path: Vec<String>,
    pub value: Value,
    pub origin: Origin,
    /// Whether it is for several containers.
    pub is_shared: bool,
}

/// How the differences can be expressed, as far as they can.
pub(super) fn settings(workloads: &Workloads<'_>, differences: &[Difference]) -> Vec<Setting> {
    let mut all: Vec<Setting> = Vec::new();
    for difference in differences {
        let Some((below, value)) = expressed(workloads, difference) else {
            continue;
        };
        let path: Vec<String> = match below {
            Place::Spec(path) => join(&["spec"], path),
            Place::Field(path) => join(&["spec", workloads.field()], path),
            Place::Values(path) => join(&["spec", workloads.field(), "values"], path),
        };
        // The first container counts.
        if all.iter().all(|known| known.path != path) {
            let own = ["env", "resources", "features", "extraFeatureStates"];
            all.push(Setting {
                is_shared: !path.iter().any(|step| own.contains(&step.as_str())),
                path,
                value,
                origin: difference.origin.clone(),
            });
        }
    }
    all
}

fn join(start: &[&str], path: Vec<String>) -> Vec<String> {
    start.iter().map(|step| (*step).to_owned()).chain(path).collect()
}

enum Place {
    Spec(Vec<String>),
    Field(Vec<String>),
    Values(Vec<String>),
}

fn values(path: &[&str]) -> Place {
    Place::Values(path.iter().map(|step| (*step).to_owned()).collect())
}

/// The part of the values that is about a workload, and the place of a container in it.
fn part(role: Role, rest: &[&str]) -> Place {
    let part: &[&str] = match role {
        Role::Manager => &[],
        Role::Controller => &["controller"],
        Role::Node | Role::Windows => &["node"],
    };
    values(&[part, rest].concat())
}

fn expressed(workloads: &Workloads<'_>, difference: &Difference) -> Option<(Place, Value)> {
    let role = difference.role;
    let field = |path: &[&str]| Place::Field(path.iter().map(|step| (*step).to_owned()).collect());
    let spec = |path: &[&str]| Place::Spec(path.iter().map(|step| (*step).to_owned()).collect());
    Some(match &difference.aspect {
        Aspect::Variable(name, value) => return variable(difference, name, value.as_deref()?),
        Aspect::Flag(name, value) => return flag(difference, name, value.as_deref()),
        Aspect::Resources(found, true) => {
            let place = match role {
                Role::Manager => values(&["resources"]),
                _ => part(role, &["resources", difference.container?]),
            };
            (place, found.clone())
        }
        Aspect::Tolerations(further) => {
            let place = part(role, &["tolerations"]);
            (place, json!(further))
        }
        Aspect::Labels(labels) => (part(role, &["nodeSelector"]), Value::Object(labels.clone())),
        Aspect::Affinity(affinity) if matches!(role, Role::Manager | Role::Controller) => (part(role, &["affinity"]), affinity.clone()),
        Aspect::NotSpread => (values(&["controller", "spread"]), "none".into()),
        Aspect::Replicas(count) if role == Role::Controller => (values(&["controller", "replicas"]), (*count).into()),
        Aspect::Images(Images::Mirror(registry)) => (values(&["images", "registry"]), registry.clone().into()),
        Aspect::PullSecrets(names) => (spec(&["images", "pullSecrets"]), json!(names)),
        Aspect::KubeletPath(path) => (field(&["customKubeletPath"]), path.clone().into()),
        Aspect::NoSnapshotter => (values(&["snapshots", "enabled"]), false.into()),
        Aspect::NoWindows => (field(&["windows"]), false.into()),
        Aspect::State(name, state) => {
            let on: bool = state.parse().ok()?;
            let known = &workloads.chart.values["featureStates"];
            let mut tried = json!({"featureStates": known.clone()});
            merge(&mut tried, &json!({"featureStates": {name: on}}));
            match vdo_core::chart::accepted(workloads.chart, &tried).is_ok() {
                true => (field(&["features", name]), on.into()),
                false => (values(&["extraFeatureStates", name]), on.into()),
            }
        }
        Aspect::Affinity(_)
        | Aspect::Replicas(_)
        | Aspect::Images(_)
        | Aspect::Pod(_)
        | Aspect::Field(_)
        | Aspect::Further(_)
        | Aspect::Resources(..) => {
            return None;
        }
    })
}

/// What overrides the drivers' files is not a value: a rendered file would say something else than what the driver does.
fn variable(difference: &Difference, name: &str, value: &str) -> Option<(Place, Value)> {
    if name.starts_with("VSPHERE_") || name.starts_with("VCENTER_") || has_password(value) {
        return None;
    }
    let (role, container) = (difference.role, difference.container?);
    let own = match (role, container) {
        (Role::Manager, "manager") => part(role, &["env", name]),
        (Role::Controller, "driver" | "syncer") => part(role, &["env", container, name]),
        (Role::Node | Role::Windows, "driver") => part(role, &["env", name]),
        _ => return None,
    };
    // The driver's controller says it for all; what another container says otherwise is its own.
    let first = matches!(container, "manager" | "driver") && matches!(role, Role::Manager | Role::Controller);
    let number = || value.parse::<i64>().ok().map(Value::from);
    Some(match name {
        "HTTP_PROXY" if first => (values(&["proxy", "http"]), value.into()),
        "HTTPS_PROXY" if first => (values(&["proxy", "https"]), value.into()),
        "NO_PROXY" if first => (values(&["proxy", "no"]), value.into()),
        "LOGGER_LEVEL" if first => (values(&["logLevel"]), value.into()),
        "SKIP_NODE_DELETION" if value == "true" => (values(&["skipNodeDeletion"]), true.into()),
        "FULL_SYNC_INTERVAL_MINUTES" if container == "syncer" && number().is_some() => {
            (values(&["controller", "fullSyncMinutes"]), number().unwrap_or_default())
        }
        _ => (own, value.into()),
    })
}

fn flag(difference: &Difference, name: &str, value: Option<&str>) -> Option<(Place, Value)> {
    let number = || value.and_then(|value| value.parse::<i64>().ok()).map(Value::from);
    Some(match (difference.role, difference.container?, name) {
        (Role::Manager, _, "v") => (values(&["logLevel"]), number()?),
        (Role::Controller, "attacher" | "resizer" | "provisioner" | "snapshotter" | "livenessProbe", "v") => {
            (values(&["controller", "sidecarLogLevel"]), number()?)
        }
        (Role::Controller, "provisioner", "default-fstype") => (values(&["controller", "defaultFsType"]), value?.into()),
        (Role::Controller, "provisioner", "feature-gates") => match value {
            Some("Topology=true") => (values(&["topology", "enabled"]), true.into()),
            None => (values(&["topology", "enabled"]), false.into()),
            Some(_) => return None,
        },
        (Role::Controller, "provisioner", "strict-topology") if value.is_none() => (values(&["topology", "strict"]), false.into()),
        _ => return None,
    })
}
