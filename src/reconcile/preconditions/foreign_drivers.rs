// SPDX-License-Identifier: Apache-2.0
//! NoForeignDriver: whether another manager runs a driver in the cluster, checked before the first write and watched afterwards (effect).

use crate::cluster::{ClusterError, Reader, Select, Watch, may};
use crate::reconcile::Ports;
use crate::reconcile::driver_run::DriverRuns;
use crate::reconcile::error::ReconcileError;
use crate::reconcile::observe::{ClusterState, installed};
use kube::Client;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::{ConditionType, Reason};
use vdo_core::drivers;
use vdo_core::installed::GO_ON;
use vdo_core::manifest::Object;
use vdo_core::plan::{self, Desired, Foreigner, ORIGINAL_OPERATOR, foreigners};
use vdo_core::status::Precondition;

/// Workloads in namespaces of tenants that are asked about; as many as a tenant may create cannot keep a reconcile busy.
const ASKED: usize = 50;

/// The condition, and whom it concerns. A driver that does not run yet is not installed against another one, nor is one of which no workload is left;
/// one that runs is kept, because to stop repairing it would help no one. A workload that has nothing of a driver but the name is mentioned, and keeps nothing from being installed.
///
/// # Errors
/// When it cannot be found out.
pub(in crate::reconcile) async fn foreign_drivers(
    ports: &Ports,
    state: &ClusterState,
    runs: &mut DriverRuns,
    home: &str,
) -> Result<Precondition, ReconcileError> {
    let desired: Vec<Desired> = runs.objects().cloned().collect();
    let by_openshift = refused_by_openshift(state, &desired);
    for (driver, message) in by_openshift
        .iter()
        .filter(|(driver, _)| !state.running.contains_key(driver.as_str()))
    {
        let message = message.clone();
        runs.fail(&BTreeSet::from([driver.clone()]), ReconcileError::ForeignDriver { message });
    }
    let watches = watches(&desired);
    let view = ports.reader.load(watches.clone()).await?;
    let mut found: Vec<Object> = watches.iter().flat_map(|watch| view.list(watch)).collect();
    let is_new = |driver: &str| !has_workload(state, &desired, driver);
    if desired.iter().any(|desired| is_new(&desired.driver)) {
        found.extend(installed::static_pods(&ports.client).await?.into_iter().map(|pod| pod.object));
    }
    let (all, namesakes) = proven(&ports.client, foreigners(&desired, &found, (state.apply_set.as_str(), home))).await?;
    let kind = ConditionType::NoForeignDriver;
    let Some(first) = all.first() else {
        let messages: Vec<String> = by_openshift.into_values().collect();
        return Ok(match messages.is_empty() {
            true => Precondition::holds(kind, alone(&namesakes, &plan::moved(&found, home))),
            false => Precondition::fails(kind, Reason::NotOurs, messages.join("; ")),
        });
    };
    let more = if all.len() > 1 {
        format!("; {} more objects block the installation", all.len() - 1)
    } else {
        String::new()
    };
    let messages = by_openshift.into_values().chain([format!("{}{more}", first.message)]);
    let message = messages.collect::<Vec<_>>().join("; ");
    let precondition = Precondition::fails(kind, Reason::NotOurs, message.clone());
    // Another tool manages vSphere drivers here, so none is installed beside it.
    let concerned: BTreeSet<String> = match all.iter().any(|foreigner| is_new(&foreigner.driver)) {
        true => desired
            .iter()
            .map(|d| d.driver.to_string())
            .filter(|driver| is_new(driver))
            .collect(),
        false => BTreeSet::new(),
    };
    runs.fail(&concerned, ReconcileError::ForeignDriver { message });
    Ok(precondition)
}

/// What would be in the way of both drivers, before anything of ours is there: of each workload why.
///
/// # Errors
/// When it cannot be found out.
pub async fn rivals(client: &Client, reader: &Reader, apply_set: &str, home: &str) -> Result<Vec<String>, ReconcileError> {
    let mut found = Vec::new();
    let workloads = installed::of_others(reader, apply_set).await?;
    for one in workloads.into_iter().chain(installed::static_pods(client).await?) {
        found.push(installed::attributed(client, one).await?);
    }
    let (all, _) = proven(client, plan::rivals(&found, apply_set, home)).await?;
    Ok(all.into_iter().map(|rival| rival.message).collect())
}

/// Whether a driver has a workload here.
fn has_workload(state: &ClusterState, desired: &[Desired], driver: &str) -> bool {
    let mut workloads = desired.iter().filter(|d| *d.driver == *driver && d.object.pod_spec().is_some());
    state.running.contains_key(driver) && workloads.any(|d| state.live.contains_key(&d.object.id()))
}

/// Why OpenShift does not let a driver be installed beside its own, by driver. Its own are seen before it has written anything of them.
fn refused_by_openshift(state: &ClusterState, desired: &[Desired]) -> BTreeMap<String, String> {
    let Some(openshift) = &state.openshift else {
        return BTreeMap::new();
    };
    let drivers: BTreeSet<&str> = desired.iter().map(|d| &*d.driver).collect();
    let refused = |driver: &str| Some((driver.to_owned(), openshift.refusal(drivers::role(driver))?));
    drivers.into_iter().filter_map(refused).collect()
}

/// Those who are in the way, and those who only have a name. Any tenant may give a name; the rights of a driver only an administrator.
async fn proven(client: &Client, found: Vec<Foreigner>) -> Result<(Vec<Foreigner>, Vec<Foreigner>), ReconcileError> {
    let (mut all, mut namesakes) = (Vec::new(), Vec::new());
    for foreigner in found {
        let is_one = match &foreigner.claim {
            None => true,
            Some(_) if namesakes.len() >= ASKED => false,
            Some(claim) => match may(client, claim).await {
                // An operator with older rights may not ask.
                Err(ClusterError::Forbidden { .. }) => false,
                asked => asked?,
            },
        };
        let list = if is_one { &mut all } else { &mut namesakes };
        list.push(foreigner);
    }
    Ok((all, namesakes))
}

fn alone(namesakes: &[Foreigner], moved: &[String]) -> String {
    if let [first, rest @ ..] = moved {
        let more = match rest.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        return format!("{first}{more} is being moved to VDO; continue with: {GO_ON}; undo with: {GO_ON} --undo");
    }
    let alone = "no other manager runs a vSphere driver in this cluster";
    match namesakes {
        [] => alone.to_owned(),
        [first, rest @ ..] => {
            let more = match rest.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let what = &first.what;
            format!(
                "{alone}; {what}{more} only looks like a driver: its ServiceAccount has no rights of a driver, so it does not block the \
                 installation"
            )
        }
    }
}

/// The CSIDriver, the workloads that run a driver in all namespaces, and the original operator.
pub(in crate::reconcile) fn watches(desired: &[Desired]) -> BTreeSet<Watch> {
    let named = |api_version: &str, kind: &str, name: &str| Watch::new(api_version, kind, "", Select::Name(name.to_owned()));
    let mut all = BTreeSet::from([named("apps/v1", "Deployment", ORIGINAL_OPERATOR)]);
    all.extend(installed::watches());
    for d in desired {
        let object = &d.object;
        if object.kind() == "CSIDriver" {
            all.insert(named(object.api_version(), object.kind(), object.name()));
        }
    }
    all
}
