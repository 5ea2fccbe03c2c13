// SPDX-License-Identifier: Apache-2.0
//! The phase choose: selects the versions of all drivers jointly, from matrix, platform and specification (effects: reads only).

use super::driver_run::DriverRuns;
use super::error::ReconcileError;
use super::observe::ClusterState;
use super::phase::{Collect, Phase};
use super::preconditions::{shared_volumes, upgrade};
use super::site::Site;
use super::windows::{self, Closed};
use super::{Ports, ReconcileInput, matrix_fallback, matrix_source, preconditions, rollback, upgradeable_kubernetes};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vdo_api::api::{UpdatePolicy, VDOConfig};
use vdo_api::facts::Connection;
use vdo_api::types::{DriverName, DriverVersion, VcenterVersion};
use vdo_core::matrix::{self, DriverRequest, Entry, Index, NoFit, Query, Resolution};
use vdo_core::mirror_lock::Lock;
use vdo_core::plan::{Inventory, Needs};
use vdo_core::status::Report;
use vdo_source::fetch::LoadedIndex;

/// The matrix that versions were chosen from, and how.
#[derive(Default)]
pub(super) struct Choice {
    /// Which driver must not go on without which other one.
    pub needs: Needs,
    /// The matrix.
    pub index: Option<Arc<Index>>,
    /// It with its bytes, which the cluster is to keep.
    pub loaded: Option<LoadedIndex>,
    /// What the mirror holds that it comes from, if it is one.
    pub lock: Option<Arc<Lock>>,
    /// When installed drivers are changed, where the matrix knows all versions and each driver has one.
    pub policy: Option<Policy>,
    /// What automatic changes wait for, where no maintenance window is open.
    pub window: Option<Closed>,
    /// The specification, matrix and platform under which this was chosen, as a digest; `None` where one of them is unknown.
    pub basis: Option<String>,
}

/// When installed drivers are changed.
#[derive(Clone, Copy)]
pub(super) struct Policy {
    pub policy: matrix::UpdatePolicy,
    /// The ConfigMap that overrules the specification, if one does.
    pub by: Option<&'static str>,
}

impl Choice {
    /// What the matrix says of a version.
    pub fn entry(&self, driver: &str, version: &DriverVersion) -> Option<&Entry> {
        self.index.as_ref()?.drivers.get(driver)?.entry(version)
    }

    /// Whether no version before this one can be installed after it.
    pub fn is_irreversible(&self, driver: &str, version: &DriverVersion) -> bool {
        let from = self.entry(driver, version).and_then(|entry| entry.upgrades_from.as_ref());
        from.is_some_and(|from| from.irreversible)
    }

    /// Whether the chosen version of a driver needs another one, with the feature states that are asked for.
    pub fn requires(&self, runs: &DriverRuns, driver: &str, other: &str) -> bool {
        let run = runs.get(driver);
        let pick = run.and_then(|run| run.pick.as_ref());
        let asked = run.and_then(|run| run.asked.as_ref());
        let (Some(pick), Some(asked)) = (pick, asked) else {
            return false;
        };
        let mut needs = self.entry(driver, &pick.version).into_iter().flat_map(|entry| &entry.requires);
        needs.any(|need| need.driver == other && need.counts(&asked.question.states))
    }
}

/// Chooses what is installed of each driver: a version, jointly with the other drivers; instead of a version the revision that the driver is
/// rolled back to or kept at; and while no maintenance window is open, the chart that was applied last.
pub(super) async fn choose(
    input: &ReconcileInput<'_>,
    ports: &Ports,
    state: &ClusterState,
    site: &Site,
    runs: &mut DriverRuns,
) -> Phase<Choice> {
    let mut found = Report::default();
    let mut choice = found.take(versions(input, ports, state, site, runs).await)?;
    choice.basis = rollback::basis(input.config, found.matrix.as_ref(), input.kubernetes.raw(), &site.connections);
    found.take(rollback::roll_back(input, ports, state, choice.basis.as_deref(), runs).await)?;
    if let Some(closed) = &choice.window {
        windows::keep_charts(closed, input.config, &ports.repository, &state.inventory, runs); // pure
    }
    Ok((choice, found))
}

/// Chooses the versions of all drivers of which everything is known, jointly. A driver that has no version fails; the others are then
/// chosen without it.
async fn versions(input: &ReconcileInput<'_>, ports: &Ports, state: &ClusterState, site: &Site, runs: &mut DriverRuns) -> Phase<Choice> {
    let mut report = Report::default();
    let config = input.config;
    let installed = state.versions();
    let (frozen, unheard) = matrix_source::follow(input, ports).await?;
    let all = runs.questions();
    let basis = match matrix_fallback::usable(&ports.repository, config, &state.inventory, &installed, &all).await {
        Ok(basis) => basis,
        Err(error) => {
            runs.unfit(&all.into_keys().collect(), error);
            return Ok((Choice::default(), report));
        }
    };
    let index: &Index = &basis.loaded.index;
    runs.leave_to(index);
    upgrade::hold_upgrades(&ports.reader, state, &site.objects, index, runs).await?;
    report.matrix = (!basis.narrowed).then(|| preconditions::matrix_status(&basis.loaded, &ports.repository, config));
    report
        .preconditions
        .push(preconditions::matrix(&basis, &ports.repository.to_string(), unheard, input.now));
    let vcenters = vcenters(&site.connections, index, runs);
    let asked_for = match frozen {
        Some(_) => UpdatePolicy::Disabled,
        // Taking over changes no version that fits; an upgrade is a step of its own afterwards.
        None if config.spec.update_policy == UpdatePolicy::Latest && !state.taken_over().is_empty() => UpdatePolicy::Compatible,
        None => config.spec.update_policy,
    };
    let query = Query {
        kubernetes: &state.cluster.version,
        vcenters: &vcenters,
        drivers: &runs.questions(),
        installed: &installed,
        policy: index.policy(policy(asked_for), input.now),
    };
    let window = windows::closed(config, input.now);
    let hold = window.as_ref().map(|closed| (closed, config, &state.inventory));
    let (needs, found) = resolve(ports, index, &query, hold, runs).await;
    report.preconditions.extend(found.preconditions);
    report.upgradeable = found.upgradeable.filter(|_| !basis.narrowed);
    let loaded = Some(basis.loaded.clone()).filter(|_| !basis.narrowed);
    let Some(needs) = needs else {
        let choice = Choice {
            loaded,
            window,
            ..Choice::default()
        };
        return Ok((choice, report));
    };
    let whole = !basis.narrowed && runs.asked().all(|(run, _)| run.pick.is_some());
    let choice = Choice {
        policy: whole.then_some(Policy {
            policy: query.policy,
            by: frozen,
        }),
        window,
        needs,
        index: Some(basis.loaded.index.clone()),
        lock: basis.loaded.lock.clone(),
        loaded,
        basis: None,
    };
    Ok((choice, report))
}

/// Resolves, leaves out what does not fit, and resolves again, until the versions of the remaining drivers fit together. Gives the choice, `None`
/// where none could be made, with the drivers that must not go on without another one, and the first answer, which is about all drivers.
async fn resolve(
    ports: &Ports,
    index: &Index,
    all: &Query<'_>,
    hold: Option<(&Closed, &VDOConfig, &Inventory)>,
    runs: &mut DriverRuns,
) -> (Option<Needs>, Report) {
    let mut report = Report::default();
    let mut drivers = undecided(all.drivers, runs);
    if drivers.is_empty() {
        let nowhere = Query { vcenters: &[], ..*all };
        report.preconditions.extend(preconditions::supported(index, &nowhere, None));
    }
    while !drivers.is_empty() {
        let query = Query { drivers: &drivers, ..*all };
        let held = hold.and_then(|(closed, config, inventory)| windows::hold(closed, (config, inventory, runs), index, &query));
        let query = Query {
            drivers: held.as_ref().unwrap_or(&drivers),
            ..query
        };
        let (shared, resolution) = shared_volumes::choose(&ports.reader, index, &query).await;
        if report.upgradeable.is_none() {
            report.upgradeable = Some(upgradeable_kubernetes::upgradeable(index, &query));
            report.preconditions.push(shared);
            report
                .preconditions
                .extend(preconditions::supported(index, &query, resolution.as_ref().ok()));
        }
        if let Some(needs) = accept(index, &query, resolution, runs) {
            return (Some(needs), report);
        }
        drivers = undecided(&drivers, runs);
    }
    (None, report)
}

/// The drivers with which nothing is wrong, which are to be chosen for jointly.
pub(super) fn undecided(drivers: &BTreeMap<DriverName, DriverRequest>, runs: &DriverRuns) -> BTreeMap<DriverName, DriverRequest> {
    let mut drivers = drivers.clone();
    drivers.retain(|driver, _| runs.get(driver).is_some_and(|run| !run.has_failed()));
    drivers
}

/// Gives each driver its version, and which driver must not go on without which other one. Where no versions fit together, the drivers in the
/// way fail instead.
pub(super) fn accept(index: &Index, query: &Query<'_>, resolution: Result<Resolution, Box<NoFit>>, runs: &mut DriverRuns) -> Option<Needs> {
    match resolution {
        Ok(resolution) => {
            let needs = matrix::apart(index, query, &resolution);
            for (driver, pick) in resolution.picks {
                runs.of(&driver).pick = Some(pick);
            }
            Some(needs)
        }
        Err(error) => {
            let unfit: BTreeSet<DriverName> = error.all().map(|unfit| unfit.driver.clone()).collect();
            runs.unfit(&unfit, error.into());
            None
        }
    }
}

/// The version of every vCenter in use. An old answer counts while there is no new one, but nothing counts that must not reach a driver.
/// A connection of which that is so, or nothing is known, fails the drivers that use it.
fn vcenters(connections: &[Connection], index: &Index, runs: &mut DriverRuns) -> Vec<(String, VcenterVersion)> {
    let mut known = Vec::new();
    for c in connections {
        let message = match (&c.version, &c.blocked) {
            (Some(version), None) => {
                known.push((c.name.clone(), index.vcenter(version, c.build.as_deref())));
                continue;
            }
            (Some(_), Some(because)) => because,
            (None, _) => &c.message,
        };
        let error = ReconcileError::ConnectionNotReady {
            connection: c.name.clone(),
            message: message.clone(),
        };
        runs.unfit(&runs.users(&c.name), error);
    }
    known
}

/// The policy of the specification in the words of the resolver.
#[must_use]
pub fn policy(policy: UpdatePolicy) -> matrix::UpdatePolicy {
    match policy {
        UpdatePolicy::Compatible => matrix::UpdatePolicy::Compatible,
        UpdatePolicy::Latest => matrix::UpdatePolicy::Latest,
        UpdatePolicy::Disabled => matrix::UpdatePolicy::Disabled,
    }
}
