// SPDX-License-Identifier: Apache-2.0
//! Finds the workloads in the cluster that `vdoctl adopt` can adopt, the charts of their versions, and the reason when there are none.

use super::super::context::{Context, Deciding};
use super::super::{CliError, Exit};
use serde_json::Value;
use std::collections::BTreeMap;
use vdo::cluster::{ClusterError, Select, Watch, get, list};
use vdo::reconcile::{attributed, connections_watch, static_pods};
use vdo_adopt::{AdoptError, Adoption, Installation, Objects, adoption, missing};
use vdo_api::types::name_list;
use vdo_core::chart::Chart;
use vdo_core::drivers::{CSI_DRIVER, KNOWN};
use vdo_core::installed::{Installed, KINDS};
use vdo_core::manifest::Object;

/// What was found and what it means.
pub(super) struct Found {
    /// The workloads that run a driver, and static pods that do.
    pub workloads: Vec<Installed>,
    /// What they are described by.
    pub adoption: Adoption,
}

/// Reads the installation of another tool.
pub(super) async fn found(context: &Deciding, name: &str) -> Result<Found, CliError> {
    let static_pods = static_pods(&context.ports.client).await?;
    let workloads = workloads(context).await?;
    if workloads.is_empty() {
        return Err(nothing(context, &static_pods).await?);
    }
    let charts = charts(context, &workloads).await?;
    let control_planes = control_planes(context).await?;
    let connections = connections(context).await?;
    let (mut known, mut objects) = (Vec::<Object>::new(), Objects::default());
    loop {
        let installation = Installation {
            workloads: &workloads,
            objects: &objects,
            charts: &charts,
            connections: &connections,
            control_planes,
            namespace: context.namespace(),
            name,
        };
        let mut more = Vec::new();
        for id in missing(&installation) {
            more.extend(get(&context.ports.client, "v1", &id).await?);
        }
        if more.is_empty() {
            let adoption = adoption(&installation).map_err(|error| refused(&error))?;
            let workloads = workloads.into_iter().chain(static_pods).collect();
            return Ok(Found { workloads, adoption });
        }
        known.append(&mut more);
        objects = Objects::new(known.iter().cloned());
    }
}

/// Why there is nothing to adopt; with what runs a driver and is no workload.
async fn nothing(context: &Context, static_pods: &[Installed]) -> Result<CliError, CliError> {
    if let Some(first) = static_pods.first() {
        let (object, driver) = (&first.object, first.driver);
        return Ok(CliError::new(
            Exit::Refused,
            format!(
                "{object} runs {} ({}) and belongs to {}",
                driver.what,
                first.evidence,
                first.ownership("")
            ),
            "VDO adopts only workloads, and this driver is a static pod. Move the pod's file out of this folder on the node, then: vdoctl deploy --vcenter HOST --user NAME",
        ));
    }
    let mut nodes = Vec::new();
    for node in list(&context.ports.client, &Watch::new("storage.k8s.io/v1", "CSINode", "", Select::All)).await? {
        let drivers = node.value().pointer("/spec/drivers").and_then(Value::as_array);
        if drivers.into_iter().flatten().any(|driver| driver["name"] == CSI_DRIVER) {
            nodes.push(node.name().to_owned());
        }
    }
    let none = format!("no other tool runs a vSphere driver as a workload in cluster {}", context.name);
    if nodes.is_empty() {
        return Ok(CliError::new(
            Exit::NotFound,
            none,
            "To install the drivers: vdoctl deploy --vcenter HOST --user NAME",
        ));
    }
    Ok(CliError::new(
        Exit::NotFound,
        format!(
            "{none}, but {CSI_DRIVER} is registered on {}, so this driver runs outside of the cluster, or was stopped a moment ago",
            name_list(&nodes)
        ),
        "Stop the driver's processes on these nodes and its controller outside of the cluster, then: vdoctl deploy --vcenter HOST --user NAME",
    ))
}

fn refused(error: &AdoptError) -> CliError {
    CliError::of(Exit::Refused, error)
}

/// The connections in the operator's namespace; none where their definition is not in the cluster.
async fn connections(context: &Context) -> Result<Vec<Object>, CliError> {
    match list(&context.ports.client, &connections_watch(context.namespace())).await {
        Err(ClusterError::NotServed { .. }) => Ok(Vec::new()),
        found => Ok(found?),
    }
}

/// The workloads that run a driver and that are not the operator's.
async fn workloads(context: &Context) -> Result<Vec<Installed>, CliError> {
    let all = running(context).await?;
    let mut others = Vec::new();
    for one in all.into_iter().filter(|one| one.object.owner().is_none()) {
        others.push(attributed(&context.ports.client, one).await?);
    }
    Ok(others)
}

/// The workloads that run a driver.
pub(super) async fn running(context: &Context) -> Result<Vec<Installed>, CliError> {
    let mut all = Vec::new();
    for (api_version, kind) in KINDS {
        let watch = Watch::new(api_version, kind, "", Select::Drivers);
        let found = list(&context.ports.client, &watch).await?;
        all.extend(found.iter().filter_map(Installed::of).filter(|one| one.evidence.is_proof()));
    }
    Ok(all)
}

/// The chart of each driver that runs: of its version, or of the nearest one that the matrix has.
async fn charts(context: &Deciding, workloads: &[Installed]) -> Result<BTreeMap<&'static str, Chart>, CliError> {
    let repository = &context.ports.repository;
    let index = repository.known().await;
    let mut charts = BTreeMap::new();
    for driver in KNOWN {
        let versions = workloads.iter().filter(|one| one.driver.name == driver.name);
        let mut versions = versions.map(|one| one.version.clone()).collect::<Vec<_>>();
        versions.sort();
        let Some(version) = versions.pop() else { continue };
        let Some(entries) = index.as_ref().and_then(|index| index.drivers.get(driver.name)) else {
            continue;
        };
        let near = version.as_ref().map(|version| entries.nearest(version)).unwrap_or_default();
        let newest = entries.versions.iter().map(|entry| entry.version.clone()).max();
        let candidates = version.into_iter().chain(near).chain(newest);
        let entry = candidates.into_iter().find_map(|version| entries.entry(&version));
        if let Some(entry) = entry {
            let chart = repository.chart(&entry.chart).await;
            let chart = chart.map_err(|error| CliError::of(Exit::Refused, &error))?;
            charts.insert(driver.name, Chart::clone(&chart));
        }
    }
    Ok(charts)
}

/// Nodes of the control plane: the operator gives the CSI controller a replica for each.
async fn control_planes(context: &Context) -> Result<u32, CliError> {
    let watch = Watch::new("v1", "Node", "", Select::Labels("node-role.kubernetes.io/control-plane".to_owned()));
    match list(&context.ports.client, &watch).await {
        Ok(nodes) => Ok(u32::try_from(nodes.len()).unwrap_or(u32::MAX)),
        Err(ClusterError::Forbidden { .. }) => Ok(3),
        Err(error) => Err(error.into()),
    }
}
