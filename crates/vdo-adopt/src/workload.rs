// SPDX-License-Identifier: Apache-2.0
//! Converts the settings on a driver's workloads into fields of the VDOConfig: compares each workload with the rendered chart, translates
//! the differences, and reports differences that still exist afterwards as losses.

mod compare;
mod containers;
mod flags;
mod images;
mod placement;
mod translate;

use crate::origin::{Losses, Origin, named};
pub(crate) use containers::variables;
pub(crate) use flags::of as flags;

use crate::draft::Draft;
use compare::{Aspect, Difference};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::VDOConfigSpec;
use vdo_core::chart::{Chart, Cluster, Context, ControlPlane, accepted, render};
use vdo_core::drivers::{self, STORAGE};
use vdo_core::installed::Installed;
use vdo_core::manifest::Object;

/// What a workload of a driver does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// The cloud provider.
    Manager,
    /// The controller of the CSI driver.
    Controller,
    /// Its node plugin on Linux.
    Node,
    /// Its node plugin on Windows.
    Windows,
}

impl Role {
    /// What a workload of a driver does, by the pods.
    pub(crate) fn of(object: &Object, driver: &str) -> Option<Self> {
        let pod = object.pod_spec()?;
        if driver != STORAGE.name {
            return Some(Self::Manager);
        }
        let windows =
            pod["nodeSelector"]["kubernetes.io/os"] == "windows" || containers::has_variable(pod, "X_CSI_MODE", "node") && on_windows(pod);
        match containers::has_variable(pod, "X_CSI_MODE", "controller") {
            true => Some(Self::Controller),
            false if windows => Some(Self::Windows),
            false if containers::has_variable(pod, "X_CSI_MODE", "node") || object.kind() == "DaemonSet" => Some(Self::Node),
            false => Some(Self::Controller),
        }
    }

    /// What it is called in keys of losses.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Manager => "manager",
            Self::Controller => "controller",
            Self::Node => "node",
            Self::Windows => "windows",
        }
    }
}

/// Paths of nodes with Windows begin with a drive.
fn on_windows(pod: &Value) -> bool {
    let volumes = pod["volumes"].as_array().into_iter().flatten();
    let mut paths = volumes.filter_map(|volume| volume["hostPath"]["path"].as_str());
    paths.any(|path| path.starts_with("C:") || path.starts_with(r"\\.\"))
}

/// The workloads of a driver, each with what it does.
pub(crate) struct Workloads<'a> {
    /// The workloads.
    pub all: BTreeMap<Role, &'a Object>,
    /// The feature states of the CSI driver.
    pub states: Option<&'a Object>,
    /// The chart that they are compared with.
    pub chart: &'a Chart,
    /// Nodes of the control plane.
    pub control_planes: u32,
}

impl<'a> Workloads<'a> {
    /// Those of one driver; of several that do the same the first.
    pub(crate) fn of(installed: &[&'a Installed], states: Option<&'a Object>, chart: &'a Chart, control_planes: u32) -> Self {
        let mut all = BTreeMap::new();
        for one in installed {
            if let Some(role) = Role::of(&one.object, one.driver.name) {
                all.entry(role).or_insert(&one.object);
            }
        }
        Self {
            all,
            states,
            chart,
            control_planes,
        }
    }

    /// Takes along what can be.
    pub(crate) fn settings(&self, config: &mut Draft) {
        let mut tried = BTreeSet::new();
        // A setting is for several containers, or for one. The first come before the others, which then say what is otherwise.
        for shared in [true, true, false, false] {
            let differences = self.differences(config);
            for setting in translate::settings(self, &differences) {
                if setting.is_shared == shared && (!shared || tried.insert(setting.path.clone())) {
                    self.try_out(config, &setting);
                }
            }
        }
    }

    /// Lists what a specification does not say.
    pub(crate) fn losses(&self, config: &Draft, losses: &mut Losses) {
        for difference in self.differences(config) {
            let because = difference.because();
            losses.add(&difference.key(), difference.origin.clone(), because);
        }
    }

    /// The field of the specification.
    pub(crate) fn field(&self) -> &'static str {
        drivers::known(&self.chart.metadata.name).map_or("", |driver| driver.field)
    }

    /// Sets what the chart accepts.
    fn try_out(&self, config: &mut Draft, setting: &translate::Setting) {
        let mut tried = config.clone();
        let path: Vec<&str> = setting.path.iter().map(String::as_str).collect();
        let before = path
            .iter()
            .try_fold(&tried.object, |at, step| at.get(*step))
            .and_then(Value::as_array);
        let value = match (before, &setting.value) {
            // The other driver has set some already.
            (Some(before), Value::Array(further)) if path.ends_with(&["pullSecrets"]) => [before.clone(), further.clone()].concat().into(),
            _ => setting.value.clone(),
        };
        tried.set(&path, value, &setting.origin);
        let spec = spec(&tried);
        let fits = spec.is_some_and(|spec| accepted(self.chart, &drivers::values(&spec, self.chart, None)).is_ok());
        if fits {
            *config = tried;
        }
    }

    /// Where the workloads differ from what the chart renders for a specification.
    fn differences(&self, config: &Draft) -> Vec<Difference> {
        let rendered = self.rendered(config);
        let of = |role: Role| rendered.iter().find(|base| Role::of(base, &self.chart.metadata.name) == Some(role));
        let mut all = Vec::new();
        for (role, live) in &self.all {
            if let Some(base) = of(*role) {
                all.extend(compare::workloads(
                    *role,
                    live,
                    base,
                    &self.chart.release.images,
                    self.control_planes,
                ));
            }
        }
        all.extend(self.absent(&rendered));
        all.extend(self.state_differences(&rendered));
        all
    }

    /// Parts that a chart can leave out, and that are not there.
    fn absent(&self, rendered: &[Object]) -> Option<Difference> {
        let plugin = self.all.get(&Role::Node)?;
        let rendered = rendered
            .iter()
            .any(|base| base.pod_spec().is_some() && Role::of(base, STORAGE.name) == Some(Role::Windows));
        let missing = rendered && !self.all.contains_key(&Role::Windows);
        missing.then(|| Difference {
            role: Role::Node,
            container: None,
            aspect: Aspect::NoWindows,
            origin: Origin::new(named(plugin.identity()), "no such workload for Windows"),
        })
    }

    fn state_differences(&self, rendered: &[Object]) -> Vec<Difference> {
        let Some(states) = self.states else { return Vec::new() };
        let base = rendered
            .iter()
            .find(|base| base.kind() == "ConfigMap" && base.name().contains("feature-states"));
        base.map(|base| compare::states(states, base)).unwrap_or_default()
    }

    fn rendered(&self, config: &Draft) -> Vec<Object> {
        let Some(spec) = spec(config) else { return Vec::new() };
        let context = Context {
            cluster: Cluster {
                control_plane: ControlPlane {
                    count: self.control_planes,
                },
                ..Cluster::default()
            },
            ..Context::default()
        };
        let objects = render(self.chart, &drivers::values(&spec, self.chart, None), &context).unwrap_or_default();
        objects.into_iter().filter_map(|object| Object::new(object).ok()).collect()
    }
}

/// The specification of a VDOConfig under construction.
pub(crate) fn spec(config: &Draft) -> Option<VDOConfigSpec> {
    let spec = config.object.get("spec").cloned().unwrap_or_else(|| json!({}));
    serde_json::from_value(spec).ok()
}
