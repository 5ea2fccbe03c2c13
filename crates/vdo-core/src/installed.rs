// SPDX-License-Identifier: Apache-2.0
//! Recognises workloads that run a vSphere driver, whichever tool installed them: by the content of their pods, not by name, kind or
//! namespace (pure).
//!
//! Evidence has degrees. A workload that serves a driver, or runs a program of one, runs a driver; a workload that only mentions a driver may be
//! a backup tool or a monitor.

mod evidence;
mod moved_workload;
mod recognise_image;

pub use evidence::Evidence;
pub use moved_workload::{GO_ON, MOVED, Moving, NODE_PORT, Phase, has_node_port};
pub use recognise_image::{Image, version};

use crate::drivers::{Driver, KNOWN};
use crate::manifest::{Object, consumed_by};
use crate::plan::{Ownership, ownership};
use serde_json::Value;
use std::collections::BTreeSet;
use vdo_api::types::{DriverVersion, ObjectId};

/// The kinds in which people run drivers, each with its API version.
pub const KINDS: [(&str, &str); 3] = [("apps/v1", "DaemonSet"), ("apps/v1", "Deployment"), ("apps/v1", "StatefulSet")];

/// A workload that runs a driver, or speaks of one.
#[derive(Clone)]
pub struct Installed {
    /// The driver.
    pub driver: &'static Driver,
    /// How it is known.
    pub evidence: Evidence,
    /// The version, by the tag of the driver's image.
    pub version: Option<DriverVersion>,
    /// The workload.
    pub object: Object,
}

impl Installed {
    /// The driver that a workload runs; `None` of all other workloads.
    #[must_use]
    pub fn of(object: &Object) -> Option<Self> {
        let pod = object.pod_spec().or_else(|| static_pod(object))?;
        let (driver, evidence) = KNOWN
            .into_iter()
            .filter_map(|driver| Some((driver, (driver.runs)(pod)?)))
            .max_by_key(|(_, evidence)| evidence.degree())?;
        let images = containers(pod).filter_map(|container| Image::parse(container["image"].as_str()?));
        let version = images
            .filter(|image| (driver.is_image)(image))
            .find_map(|image| version(image.tag?));
        Some(Self {
            driver,
            evidence,
            version,
            object: object.clone(),
        })
    }

    /// Whether it is a pod that a kubelet runs from a file of its node. Nothing in the cluster can change or delete it.
    #[must_use]
    pub fn is_static(&self) -> bool {
        static_pod(&self.object).is_some()
    }

    /// Whether it may have pods. People take a Deployment out of the way by scaling it to 0; a DaemonSet without pods gets some with the next
    /// node that fits.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.object.number("/spec/replicas") != Some(0) && !self.object.is_terminating()
    }

    /// To whom it belongs, where `apply_set` is ours.
    #[must_use]
    pub fn ownership(&self, apply_set: &str) -> Ownership {
        ownership(&self.object, apply_set)
    }

    /// The Secrets and ConfigMaps that its pods read.
    #[must_use]
    pub fn configuration(&self) -> BTreeSet<ObjectId> {
        let namespace = self.object.namespace();
        let named = self.object.pod_spec().map(consumed_by).unwrap_or_default();
        let ids = named.into_iter().map(|(kind, name)| ObjectId::new("", &kind, namespace, name));
        ids.collect()
    }
}

/// What a kubelet shows of a pod that it runs from a file of its node.
fn static_pod(object: &Object) -> Option<&Value> {
    let is_mirror = object.kind() == "Pod" && object.annotation("kubernetes.io/config.mirror").is_some();
    object.value().get("spec").filter(|_| is_mirror)
}

/// The words of the command and of the arguments of a container.
pub(crate) fn words(container: &Value) -> impl Iterator<Item = &str> + Clone {
    let list = |key: &str| container[key].as_array().into_iter().flatten();
    let texts = list("command").chain(list("args")).filter_map(Value::as_str);
    texts.flat_map(str::split_whitespace)
}

/// All containers of a pod.
pub(crate) fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let list = |key: &str| pod[key].as_array().into_iter().flatten();
    list("containers").chain(list("initContainers"))
}

#[cfg(test)]
mod tests;
