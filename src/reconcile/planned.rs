// SPDX-License-Identifier: Apache-2.0
//! `Planned`: all drivers with their desired objects, live objects, plan and approved state, and the computation of a new plan (pure).

use super::choose::Choice;
use super::driver_run::{DriverFailure, DriverRuns, Source};
use super::gates;
use super::live_objects::remember_adopted;
use super::observe::ClusterState;
use super::render::{RenderInput, last_configuration};
use super::site::Site;
use super::webhook::Served;
use kube::ResourceExt;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::{Approval, FINALIZER, STATE, VDOConfig};
use vdo_api::types::{DriverName, ObjectId};
use vdo_core::drivers::{CLOUD_PROVIDER, STORAGE};
use vdo_core::manifest::Object;
use vdo_core::plan::{self, Closed, Desired, Input, Last, Needs, Observed, Plan, Record, RevisionFailure, Step, Wait};
use vdo_core::status::{DriverReport, Report};

/// What was planned: `new` before the objects were looked for, `replan` after that and whenever a later phase has changed a run (content, dry
/// run), `describe` for the report.
pub struct Planned {
    /// The drivers.
    pub runs: DriverRuns,
    /// All objects that should exist. Of a driver that is kept: what was applied of it last.
    pub desired: Vec<Desired>,
    /// What was found of them.
    pub observed: Observed,
    /// What goes into the history.
    pub record: Record,
    /// The whole way.
    pub plan: Plan,
    pub(super) config: VDOConfig,
    pub(super) site: Site,
    pub(super) choice: Choice,
    pub(super) webhook: Option<Served>,
    /// The state that a person has approved, where approval is asked for.
    pub(super) approved: Option<String>,
    /// What the drivers that are not healthy wait for.
    pub(super) unhealthy: Vec<Wait>,
    /// The drivers that are left at what was applied last, by name.
    pub(super) kept: BTreeSet<DriverName>,
}

impl Planned {
    /// With everything that is known before anything new is looked at.
    pub(super) fn new(
        config: &VDOConfig,
        state: &ClusterState,
        (site, choice, runs): (Site, Choice, DriverRuns),
        webhook: Option<Served>,
        record: Record,
    ) -> Self {
        let approved = state.inventory.approved.clone();
        Self {
            desired: runs.iter().flat_map(|run| &run.objects).cloned().collect(),
            kept: runs.iter().filter(|run| run.is_kept()).map(|run| run.name.clone()).collect(),
            approved: approved.filter(|_| config.spec.approval == Approval::Manual),
            unhealthy: gates::unproven(&state.running),
            observed: Observed::default(),
            plan: Plan::default(),
            config: config.clone(),
            runs,
            record,
            site,
            choice,
            webhook,
        }
    }

    /// Whether the version of the CSI driver that was chosen knows the machine of a node by the cloud provider.
    pub(super) fn is_after_nodes(&self) -> bool {
        self.choice.requires(&self.runs, STORAGE.name, CLOUD_PROVIDER.name)
    }

    /// Plans the whole way, with the gates that are known before the server is asked.
    pub(super) fn replan(&mut self, state: &ClusterState) {
        let mut plan = plan::plan(&self.input(state));
        tracing::debug!(steps = plan.steps.len(), "planned");
        plan.close_all(gates::closed(self, state), &self.needs(state));
        if let Some((wait, plugins)) = gates::topology::node_plugins(&plan, &self.desired, &state.live) {
            plan.close_steps(wait, |step| step.id().is_some_and(|id| plugins.contains(&id)));
        }
        self.plan = plan;
    }

    /// Which driver must not go on without which other one.
    pub(super) fn needs(&self, state: &ClusterState) -> Needs {
        let mut needs = self.choice.needs.clone();
        needs.extend(gates::needs(&self.desired, &state.running));
        needs
    }

    /// What may be written now.
    #[must_use]
    pub fn steps(&self, state: &ClusterState) -> Vec<Step> {
        self.plan.run(&self.input(state), &self.last(state))
    }

    /// The objects that were applied last of each driver whose change is held.
    fn last(&self, state: &ClusterState) -> Last {
        let held: Vec<&str> = self
            .plan
            .held_drivers()
            .into_iter()
            .filter(|driver| !self.kept.contains(*driver))
            .collect();
        let secrets = if held.is_empty() { Vec::new() } else { self.last_secrets(state) };
        held.into_iter()
            .filter_map(|driver| {
                let mut last = last_applied(state, driver, &secrets)?;
                remember_adopted(&mut last, &state.live, state);
                Some((driver.to_owned(), last))
            })
            .collect()
    }

    /// Secrets as they may have been applied last, by which what is not kept of them is known again.
    fn last_secrets(&self, state: &ClusterState) -> Vec<Object> {
        let input = RenderInput::of(state, &self.site, &self.choice, self.webhook.as_ref());
        last_configuration(&input, &self.runs, state)
    }

    /// Whether nothing but what was applied last is known, or written, of a driver.
    pub(super) fn is_apart(&self, driver: &str) -> bool {
        self.runs.get(driver).is_some_and(|run| run.is_kept() || run.is_paused())
    }

    /// Whether an object of this driver is to be written.
    pub(super) fn writes(&self, driver: &str, id: &ObjectId) -> bool {
        self.plan
            .writes()
            .any(|step| step.driver() == driver && step.id().as_ref() == Some(id))
    }

    /// Gives up the change of a driver: nothing more of it is written in this run, and its failure is recorded.
    pub(super) fn give_up(&mut self, driver: &str, failure: RevisionFailure, wait: Wait) {
        self.plan.close_all([Closed::changes(wait)], &Needs::new());
        self.record.failed.insert(driver.to_owned(), failure);
    }

    pub(super) fn input<'a>(&'a self, state: &'a ClusterState) -> Input<'a> {
        Input {
            apply_set: &state.apply_set,
            desired: &self.desired,
            observed: &self.observed,
            inventory: &state.inventory,
            cluster_id: Some(&self.site.cluster_id.id),
            approved: self.approved.as_deref(),
            rules: &self.config.spec.conflicts,
            kept: &self.kept,
            unhealthy: &self.unhealthy,
            record: &self.record,
            store: self.webhook.as_ref().and_then(|webhook| webhook.store.as_ref()),
            finalizer: self.config.finalizers().iter().any(|f| f == FINALIZER),
            uninstall: None,
        }
    }

    /// What there is to report of it.
    pub(super) fn describe(&self, found: &mut Report, state: &ClusterState) {
        let failures = self.runs.failures();
        found.failures.splice(0..0, failures.iter().map(DriverFailure::published));
        found.drivers = self.reports(state);
        found.inventory = Some((
            STATE.to_owned(),
            state.inventory.objects.len() + state.inventory.unlisted(&self.desired).count(),
        ));
        found.unrequested = self.kept.iter().filter(|driver| !self.runs.wants(driver)).cloned().collect();
        let removed = self.runs.iter().filter(|run| run.is_removed());
        found.removing = removed.map(|run| run.name.clone()).collect();
        found.skipped.clone_from(&self.plan.skipped);
        let id = &self.site.cluster_id;
        found.cluster_id = Some(id.id.clone()).filter(|_| id.used && id.doubt.is_none());
    }

    /// Every driver that was chosen, or is installed.
    fn reports(&self, state: &ClusterState) -> Vec<DriverReport> {
        let installed = state.reports().into_iter().map(|report| (report.name.clone(), report));
        let mut all: BTreeMap<DriverName, DriverReport> = installed.collect();
        for run in self.runs.iter() {
            let Some(pick) = &run.pick else { continue };
            let newest = pick.newest.as_ref().map(ToString::to_string).unwrap_or_default();
            if run.has_failed() {
                // What keeps a version from being installed does not keep it from being known.
                if let Some(report) = all.get_mut(&run.name) {
                    report.available = newest;
                }
                continue;
            }
            let report = DriverReport {
                name: run.name.clone(),
                version: pick.version.to_string(),
                installed: state.installed.get(&run.name).cloned(),
                revision: state.revision(&run.name),
                available: newest,
                chart: pick.chart.digest.to_string(),
                because: match &pick.waits {
                    Some(waits) => format!("{}; {waits}", pick.because),
                    None => pick.because.clone(),
                },
                objects: run.objects.len(),
                health: state.health(&run.name),
            };
            all.insert(run.name.clone(), report);
        }
        all.into_values().collect()
    }
}

/// Leaves the drivers that are installed, and of which nothing else is known or asked for, at what was applied of them last.
pub(super) fn keep(input: &RenderInput<'_>, state: &ClusterState, runs: &mut DriverRuns) {
    for run in runs.iter_mut().filter(|run| run.has_failed()) {
        run.objects.clear();
    }
    let is_kept = |driver: &DriverName| {
        let run = runs.get(driver);
        run.is_none_or(|run| run.objects.is_empty() && !run.is_removed())
    };
    let kept: Vec<DriverName> = state.inventory.drivers().into_iter().filter(is_kept).collect();
    let secrets = match kept.is_empty() {
        true => Vec::new(),
        false => last_configuration(input, runs, state),
    };
    for driver in kept {
        let run = runs.of(&driver);
        run.source = Some(Source::LastApplied);
        run.objects = last_applied(state, &driver, &secrets).unwrap_or_default();
    }
}

fn last_applied(state: &ClusterState, driver: &str, secrets: &[Object]) -> Option<Vec<Desired>> {
    state.inventory.last_applied(driver, |id| state.live.get(id), secrets)
}
