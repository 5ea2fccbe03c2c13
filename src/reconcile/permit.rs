// SPDX-License-Identifier: Apache-2.0
//! The phase permit: calls the checks before a driver's first write: rights, administrator's objects, cluster id, foreign drivers (effect).

use super::choose::Choice;
use super::cluster_id::{claimed, doubtful, hold};
use super::driver_run::DriverRuns;
use super::observe::ClusterState;
use super::phase::{Collect, Phase};
use super::preconditions::foreign_drivers::foreign_drivers;
use super::site::Site;
use super::upgrade_available::newer;
use super::{Ports, ReconcileInput, driver_rights_missing, rights};
use kube::ResourceExt;
use vdo_api::api::Class;
use vdo_core::drivers::STORAGE;
use vdo_core::plan::Wait;
use vdo_core::status::{Failure, Report};

/// Fails the drivers that must not be written, and lets those wait that a person can help.
pub(super) async fn permit(
    input: &ReconcileInput<'_>,
    ports: &Ports,
    state: &ClusterState,
    (site, choice): (&Site, &Choice),
    runs: &mut DriverRuns,
) -> Phase<()> {
    let mut found = Report::default();
    found.or_stop(rights::permitted(ports, runs).await)?;
    let missing = found.or_stop(driver_rights_missing::check(ports, runs).await)?;
    found.failures.extend(missing);
    if let Some((wait, class)) = cluster_id_waits(input, state, site, runs) {
        found.failures.push(Failure::of_wait(&wait, class));
        let run = runs.of(STORAGE.name);
        // A changed id matters more than a missing right.
        if site.cluster_id.doubt.is_some() || run.wait.is_none() {
            run.wait = Some(wait);
        }
    }
    found.newer = newer(choice, runs);
    let alone = found.or_stop(foreign_drivers(ports, state, runs, &site.namespace).await)?;
    found.preconditions.push(alone);
    Ok(((), found))
}

/// What the storage driver waits for before it uses its cluster id.
fn cluster_id_waits(input: &ReconcileInput<'_>, state: &ClusterState, site: &Site, runs: &DriverRuns) -> Option<(Wait, Class)> {
    let found = &site.cluster_id;
    if let Some(wait) = doubtful(input.config, found) {
        return Some((wait, Class::Terminal));
    }
    let storage = runs.get(STORAGE.name).filter(|run| !run.has_failed() && !run.objects.is_empty())?;
    let id = claimed(input.config, &state.cluster.uid).filter(|_| !found.used)?;
    hold(&id, site.objects.iter().filter(|object| storage.uses(&object.name_any())))
}
