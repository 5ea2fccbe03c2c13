// SPDX-License-Identifier: Apache-2.0
//! `DriverRun`: the state of one driver in one reconcile: request, chosen version, source of its objects, errors (pure).
//!
//! Each phase reads the results of the earlier phases for a driver and adds its own. An error of one driver concerns this driver only: its
//! last applied objects are kept, and the other drivers continue.

use super::error::ReconcileError;
use super::rollback::Back;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vdo_api::api::ManagementState;
use vdo_api::types::DriverName;
use vdo_core::chart::Chart;
use vdo_core::matrix::{DriverRequest, Index, Pick, Resolution};
use vdo_core::patches::Origins;
use vdo_core::plan::{Desired, Wait};
use vdo_core::status::Failure;

/// One driver in one reconcile.
pub struct DriverRun {
    /// Its name in the matrix.
    pub name: DriverName,
    /// What the specification asks for; `None` of a driver that is only installed, or is to be removed.
    pub(super) asked: Option<Asked>,
    /// How the specification wants it managed.
    pub(super) management: ManagementState,
    /// The version that was chosen.
    pub(super) pick: Option<Pick>,
    /// Where its objects come from.
    pub(super) source: Option<Source>,
    /// The objects that should exist of it.
    pub(super) objects: Vec<Desired>,
    /// Which patches of the specification are in them.
    pub(super) patched: Origins,
    /// What it waits for before anything of it is changed: what an administrator brings, or confirms.
    pub(super) wait: Option<Wait>,
    /// Why no version could be chosen. A revision that is brought back needs no choice.
    unfit: Vec<Arc<ReconcileError>>,
    /// What else is wrong with it.
    failures: Vec<(Stage, Arc<ReconcileError>)>,
}

/// How far a driver had come when something went wrong: what goes wrong first is reported first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Asked,
    Chosen,
    Loaded,
}

/// What the specification asks of a driver.
pub(super) struct Asked {
    /// What the resolver is asked.
    pub question: DriverRequest,
    /// The vSphere connections that it uses, by name.
    pub connections: Vec<String>,
}

/// Where the objects of a driver come from.
pub(super) enum Source {
    /// The chart of the version that was chosen.
    Chart(Arc<Chart>),
    /// A revision of its history.
    Revision(Box<Back>),
    /// What was applied last: nothing else is known of it, or nothing else is asked for.
    LastApplied,
}

impl DriverRun {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            asked: None,
            management: ManagementState::Managed,
            pick: None,
            source: None,
            objects: Vec::new(),
            patched: Origins::default(),
            wait: None,
            unfit: Vec::new(),
            failures: Vec::new(),
        }
    }

    fn stage(&self) -> Stage {
        match (&self.source, &self.pick) {
            (Some(_), _) => Stage::Loaded,
            (None, Some(_)) => Stage::Chosen,
            (None, None) => Stage::Asked,
        }
    }

    fn staged_errors(&self) -> impl Iterator<Item = (Stage, &Arc<ReconcileError>)> {
        let unfit = match self.source {
            Some(Source::Revision(_)) => &[][..],
            _ => &self.unfit,
        };
        let unfit = unfit.iter().map(|error| (Stage::Chosen, error));
        unfit.chain(self.failures.iter().map(|(stage, error)| (*stage, error)))
    }

    /// What is wrong with it.
    pub(super) fn errors(&self) -> impl Iterator<Item = &Arc<ReconcileError>> {
        self.staged_errors().map(|(_, error)| error)
    }

    /// Whether something is wrong with it.
    pub(super) fn has_failed(&self) -> bool {
        self.errors().next().is_some()
    }

    /// Whether it was wrong already before a version was chosen.
    pub(super) fn is_unusable(&self) -> bool {
        !self.failures.is_empty()
    }

    /// Something is wrong with it alone.
    pub(super) fn fail(&mut self, error: ReconcileError) {
        self.share(Arc::new(error));
    }

    fn share(&mut self, error: Arc<ReconcileError>) {
        self.failures.push((self.stage(), error));
    }

    /// The chart that its objects are rendered from.
    pub(super) fn chart(&self) -> Option<&Arc<Chart>> {
        match &self.source {
            Some(Source::Chart(chart)) => Some(chart),
            _ => None,
        }
    }

    /// The revision that it is brought back to, or kept at.
    pub(super) fn back(&self) -> Option<&Back> {
        match &self.source {
            Some(Source::Revision(back)) => Some(back),
            _ => None,
        }
    }

    /// Whether it is left at what was applied last.
    pub(super) fn is_kept(&self) -> bool {
        matches!(self.source, Some(Source::LastApplied))
    }

    /// Whether nothing of it is written.
    pub(super) fn is_paused(&self) -> bool {
        self.management == ManagementState::Paused
    }

    /// Whether another manager runs it now, and nothing of what was applied last is recreated beside that one.
    pub(super) fn is_displaced(&self) -> bool {
        self.is_kept() && self.errors().any(|error| matches!(**error, ReconcileError::ForeignDriver { .. }))
    }

    /// Whether it is to be removed.
    pub(super) fn is_removed(&self) -> bool {
        self.management == ManagementState::Removed
    }

    /// Whether it uses this connection.
    pub(super) fn uses(&self, connection: &str) -> bool {
        self.asked
            .as_ref()
            .is_some_and(|asked| asked.connections.iter().any(|name| name == connection))
    }
}

/// The drivers of one reconcile, by name.
#[derive(Default)]
pub struct DriverRuns(BTreeMap<DriverName, DriverRun>);

/// What is wrong with some drivers.
pub struct DriverFailure {
    /// The drivers.
    pub drivers: BTreeSet<DriverName>,
    /// What is wrong.
    pub error: Arc<ReconcileError>,
}

impl DriverFailure {
    /// What is published of it.
    #[must_use]
    pub fn published(&self) -> Failure {
        Failure {
            drivers: self.drivers.clone(),
            ..Failure::from(self.error.as_ref())
        }
    }
}

impl DriverRuns {
    /// A driver; it joins the others if it is new.
    pub(super) fn of(&mut self, name: &str) -> &mut DriverRun {
        self.0.entry(name.to_owned()).or_insert_with(|| DriverRun::new(name))
    }

    /// A driver.
    pub(super) fn get(&self, name: &str) -> Option<&DriverRun> {
        self.0.get(name)
    }

    /// A driver, to be changed.
    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut DriverRun> {
        self.0.get_mut(name)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &DriverRun> {
        self.0.values()
    }

    /// All of them, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut DriverRun> {
        self.0.values_mut()
    }

    /// Those that are asked for, each with what is asked.
    pub(super) fn asked(&self) -> impl Iterator<Item = (&DriverRun, &Asked)> {
        self.iter().filter_map(|run| Some((run, run.asked.as_ref()?)))
    }

    /// Those with which nothing is wrong.
    pub(super) fn sound(&self) -> impl Iterator<Item = &DriverRun> {
        self.iter().filter(|run| !run.has_failed())
    }

    /// The objects that should exist, of all with which nothing is wrong.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Desired> {
        self.sound().flat_map(|run| &run.objects)
    }

    /// Which patches of the specification are in the objects of the drivers with which nothing is wrong.
    #[must_use]
    pub fn patched(&self) -> Origins {
        let mut all = Origins::default();
        self.sound().for_each(|run| all.extend(run.patched.clone()));
        all
    }

    /// What is wrong with several drivers in the same way.
    pub(super) fn fail<'a>(&mut self, drivers: impl IntoIterator<Item = &'a DriverName>, error: ReconcileError) {
        let error = Arc::new(error);
        for driver in drivers {
            self.of(driver).share(error.clone());
        }
    }

    /// No version can be chosen for these drivers.
    pub(super) fn unfit(&mut self, drivers: &BTreeSet<DriverName>, error: ReconcileError) {
        let error = Arc::new(error);
        for driver in drivers {
            self.of(driver).unfit.push(error.clone());
        }
    }

    /// Whether a driver is asked for.
    #[must_use]
    pub fn wants(&self, driver: &str) -> bool {
        self.get(driver).is_some_and(|run| run.asked.is_some())
    }

    /// What the resolver is asked, of each driver that is asked for.
    #[must_use]
    pub fn questions(&self) -> BTreeMap<DriverName, DriverRequest> {
        let each = self.asked().map(|(run, asked)| (run.name.clone(), asked.question.clone()));
        each.collect()
    }

    /// The drivers that use a connection.
    pub(super) fn users(&self, connection: &str) -> BTreeSet<DriverName> {
        let users = self.iter().filter(|run| run.uses(connection));
        users.map(|run| run.name.clone()).collect()
    }

    /// All connections that some driver uses.
    #[must_use]
    pub fn used(&self) -> BTreeSet<&str> {
        let names = self.asked().flat_map(|(_, asked)| &asked.connections);
        names.map(String::as_str).collect()
    }

    /// Leaves out features of which a matrix says nothing in any version of the driver: what it does not know is not a no.
    pub fn leave_to(&mut self, index: &Index) {
        for run in self.0.values_mut() {
            let Some(asked) = &mut run.asked else { continue };
            let versions = || index.drivers.get(&run.name).into_iter().flat_map(|driver| &driver.versions);
            asked
                .question
                .features
                .retain(|feature, _| versions().any(|entry| entry.features.contains_key(feature)));
        }
    }

    /// The versions that were chosen.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        let picks = self.iter().filter_map(|run| Some((run.name.clone(), run.pick.clone()?)));
        Resolution { picks: picks.collect() }
    }

    /// What is wrong, each with the drivers that it concerns, in the order of the phases.
    #[must_use]
    pub fn failures(&self) -> Vec<DriverFailure> {
        let mut all: Vec<DriverFailure> = Vec::new();
        let each = self
            .iter()
            .flat_map(|run| run.staged_errors().map(move |(stage, error)| (stage, run, error)));
        let mut each: Vec<_> = each.collect();
        each.sort_by_key(|(stage, ..)| *stage);
        for (_, run, error) in each {
            let published = Failure::from(error.as_ref());
            match all.iter_mut().find(|known| Failure::from(known.error.as_ref()) == published) {
                Some(known) => drop(known.drivers.insert(run.name.clone())),
                None => all.push(DriverFailure {
                    drivers: [run.name.clone()].into(),
                    error: error.clone(),
                }),
            }
        }
        all
    }

    /// The first thing that is wrong, if something is wrong with each driver that is asked for.
    #[must_use]
    pub fn failure_of_all(&self) -> Option<Arc<ReconcileError>> {
        let all = self.asked().all(|(run, _)| run.has_failed());
        self.failures().into_iter().next().filter(|_| all).map(|failure| failure.error)
    }
}

#[cfg(test)]
impl DriverRun {
    /// A driver that is asked for, with these connections.
    pub(super) fn using(name: &str, connections: &[&str]) -> Self {
        let connections = connections.iter().map(|name| (*name).to_owned()).collect();
        Self {
            asked: Some(Asked {
                question: DriverRequest::default(),
                connections,
            }),
            ..Self::new(name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_core::drivers::{CPI, CSI};

    /// The first of them gives the reason of the status.
    #[test]
    fn driver_failures_come_in_the_order_of_the_phases_and_equal_ones_are_one() {
        let error = |name: &str| ReconcileError::NoConnections { namespace: name.into() };
        let mut runs = DriverRuns::default();
        runs.of(CPI).source = Some(Source::LastApplied);
        runs.of(CPI).fail(error("rendered"));
        runs.unfit(&[CSI.to_owned()].into(), error("chosen"));
        runs.of("other").fail(error("asked"));
        runs.fail(&[CPI.to_owned(), CSI.to_owned()], error("of both"));
        let reported: Vec<String> = runs
            .failures()
            .iter()
            .map(|failure| format!("{}: {}", Vec::from_iter(failure.drivers.clone()).join("+"), failure.error))
            .collect();
        let expected = [
            ("other", "asked"),
            ("vsphere-cpi+vsphere-csi", "of both"),
            ("vsphere-csi", "chosen"),
            ("vsphere-cpi", "rendered"),
        ];
        assert_eq!(
            reported,
            expected.map(|(drivers, name)| format!("{drivers}: there is no vSphere connection in namespace {name}"))
        );
    }
}
