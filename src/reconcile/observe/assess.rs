// SPDX-License-Identifier: Apache-2.0
//! Reads the pods and endpoints of the installed drivers and computes the health of each driver (effect; the judgement is pure).

use super::ClusterState;
use crate::cluster::{ClusterError, Reader, Select, Watch};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use vdo_api::facts::Node;
use vdo_api::types::{DriverName, ObjectId};
use vdo_core::health::{DriverHealth, driver_health, is_judged, slices_of};
use vdo_core::manifest::{Object, is_owned};
use vdo_core::plan::unpullable;

/// How a driver is of which pods are meant to run.
pub(in crate::reconcile) struct Assessment {
    driver: DriverName,
    version: String,
    health: DriverHealth,
    /// When the newest of its ready pods was created.
    progress: Option<Timestamp>,
    /// The images that its pods wait for in vain, each with one of the pods.
    unpullable: BTreeMap<String, ObjectId>,
}

impl Assessment {
    /// From the objects of a driver, its pods and its endpoint slices; `None` where no object of it has pods.
    pub fn of(driver: &str, objects: &[&Object], pods: &[&Object], slices: &[&Object], nodes: &[Arc<Node>]) -> Option<Self> {
        let first = objects.iter().find(|object| object.pod_spec().is_some())?;
        Some(Self {
            driver: driver.to_owned(),
            version: first.label("app.kubernetes.io/version").unwrap_or_default().to_owned(),
            health: driver_health(driver, objects, pods, slices, nodes),
            progress: pods.iter().filter(|pod| is_ready(pod)).filter_map(created).max(),
            unpullable: unpullable(pods.iter().copied()),
        })
    }
}

impl ClusterState {
    /// The live objects by which each driver is judged.
    pub(in crate::reconcile) fn judged(&self) -> BTreeMap<&str, Vec<&Object>> {
        let mut by_driver: BTreeMap<&str, Vec<&Object>> = BTreeMap::new();
        let judged = self.live.iter().filter(|(_, object)| is_judged(object));
        for (id, object) in judged.filter(|(_, object)| is_owned(object, &self.apply_set)) {
            if let Some(entry) = self.inventory.objects.get(id) {
                by_driver.entry(&entry.driver).or_default().push(object);
            }
        }
        by_driver
    }

    /// Replaces what was known of how drivers are.
    pub(in crate::reconcile) fn judge(&mut self, assessments: Vec<Assessment>) {
        self.running.clear();
        self.installed.clear();
        self.progress.clear();
        self.unpullable.clear();
        for assessment in assessments {
            let driver = assessment.driver;
            self.running.insert(driver.clone(), assessment.health);
            self.installed.insert(driver.clone(), assessment.version);
            self.progress.extend(assessment.progress.map(|newest| (driver.clone(), newest)));
            self.unpullable.insert(driver, assessment.unpullable);
        }
    }
}

/// Reads the pods and endpoints of every driver.
///
/// # Errors
/// When a read fails.
pub(super) async fn assess(reader: &Reader, state: &ClusterState) -> Result<Vec<Assessment>, ClusterError> {
    let mut all = Vec::new();
    for (driver, objects) in state.judged() {
        let workloads = objects.iter().filter(|object| object.pod_spec().is_some());
        let watches: Vec<Watch> = workloads.filter_map(|object| pods_watch(object)).collect();
        let view = reader.load(watches.clone()).await?;
        let pods: Vec<Object> = watches.iter().flat_map(|watch| view.list(watch)).collect();
        let watches: Vec<Watch> = slices_of(&objects)
            .into_iter()
            .map(|(namespace, selector)| Watch::new("discovery.k8s.io/v1", "EndpointSlice", &namespace, Select::Labels(selector)))
            .collect();
        let view = reader.load(watches.clone()).await?;
        let slices: Vec<Object> = watches.iter().flat_map(|watch| view.list(watch)).collect();
        let (pods, slices): (Vec<&Object>, Vec<&Object>) = (pods.iter().collect(), slices.iter().collect());
        all.extend(Assessment::of(driver, &objects, &pods, &slices, &state.cluster.nodes));
    }
    Ok(all)
}

fn is_ready(pod: &Object) -> bool {
    let conditions = pod.value().pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|c| c["type"] == "Ready" && c["status"] == "True")
}

fn created(object: &&Object) -> Option<Timestamp> {
    object.text("/metadata/creationTimestamp").parse().ok()
}

/// The pods of a workload.
fn pods_watch(workload: &Object) -> Option<Watch> {
    let labels = workload.value().pointer("/spec/selector/matchLabels")?.as_object()?;
    let selector: Vec<String> = labels
        .iter()
        .filter_map(|(k, v)| Some(format!("{k}={}", Value::as_str(v)?)))
        .collect();
    Some(Watch::new("v1", "Pod", workload.namespace(), Select::Labels(selector.join(","))))
}
