// SPDX-License-Identifier: Apache-2.0
//! The gates of a plan: close steps or whole drivers until something holds, such as an approval, and report what they wait for.
//! A gate never adds a step or changes one.

use super::repair_pauses::contended;
use super::{Contention, Plan, PlannedStep, RepairHistory, Step, Wait};
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::Reason;
use vdo_api::types::DriverName;

/// The state of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Gate {
    /// It may start when the steps that it depends on are done.
    #[default]
    Open,
    /// It waits for this.
    Waits(Wait),
    /// The API server, or a rule, is against it.
    Refused(Wait),
    /// A person has to approve it.
    NeedsApproval,
    /// Another manager keeps undoing it. What depends on it goes on.
    Contended,
    /// Its driver is kept at what was applied last.
    Kept,
    /// Its driver is paused.
    Paused,
}

/// (dependent, dependency) → why the dependent must not change while the dependency is left at what was applied last.
pub type Needs = BTreeMap<(DriverName, DriverName), String>;

/// How much of a driver is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Every step.
    Everything,
    /// Every step that leads to another state. What was applied last is repaired meanwhile.
    Changes,
    /// Every step of this wave and of later ones, and what is pruned.
    WavesFrom(u8),
}

impl Extent {
    /// Whether a step of the driver is closed.
    fn takes(self, step: &Step) -> bool {
        match self {
            Self::Everything => true,
            Self::Changes => step.is_transition(),
            Self::WavesFrom(from) => step.wave().map_or_else(|| step.removes(), |wave| wave >= from),
        }
    }
}

/// A gate of a driver that is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The driver.
    pub driver: DriverName,
    /// How much of it.
    pub extent: Extent,
    /// The gate.
    pub gate: Gate,
}

impl Closed {
    /// A driver of which nothing is changed, because the API server, a rule or a missing right is against it.
    #[must_use]
    pub fn refused(wait: Wait) -> Self {
        Self {
            driver: wait.driver.clone(),
            extent: Extent::Changes,
            gate: Gate::Refused(wait),
        }
    }

    /// A driver of which nothing is changed for now.
    #[must_use]
    pub fn changes(wait: Wait) -> Self {
        Self {
            driver: wait.driver.clone(),
            extent: Extent::Changes,
            gate: Gate::Waits(wait),
        }
    }

    /// A driver of which nothing from this wave on starts.
    #[must_use]
    pub fn waves_from(wave: u8, wait: Wait) -> Self {
        Self {
            driver: wait.driver.clone(),
            extent: Extent::WavesFrom(wave),
            gate: Gate::Waits(wait),
        }
    }

    /// A driver that is left at what was applied last, because nothing else is known of it.
    pub(super) fn kept(driver: &str) -> Self {
        Self {
            driver: driver.to_owned(),
            extent: Extent::Changes,
            gate: Gate::Kept,
        }
    }

    /// A driver of which nothing at all is written.
    #[must_use]
    pub fn paused(driver: &str) -> Self {
        Self {
            driver: driver.to_owned(),
            extent: Extent::Everything,
            gate: Gate::Paused,
        }
    }
}

impl Gate {
    /// What it waits for.
    fn wait(&self) -> Option<&Wait> {
        match self {
            Self::Waits(wait) | Self::Refused(wait) => Some(wait),
            Self::Open | Self::NeedsApproval | Self::Contended | Self::Kept | Self::Paused => None,
        }
    }
}

impl Plan {
    /// Closes the open steps of which this is true.
    fn close(&mut self, gate: &Gate, which: impl Fn(&Step) -> bool) {
        let open = self.steps.iter_mut().filter(|planned| planned.gate == Gate::Open);
        for planned in open.filter(|planned| which(&planned.step)) {
            planned.gate = gate.clone();
        }
    }

    /// Closes gates, each on the steps that are still open, and those of the drivers that must not go on without one of these.
    pub fn close_all(&mut self, closed: impl IntoIterator<Item = Closed>, needs: &Needs) {
        let (waves, drivers): (Vec<Closed>, Vec<Closed>) =
            closed.into_iter().partition(|closed| matches!(closed.extent, Extent::WavesFrom(_)));
        drivers.into_iter().for_each(|closed| self.close_driver(closed));
        while let Some(wait) = self.next_dependent(needs) {
            self.close_driver(Closed::changes(wait));
        }
        waves.into_iter().for_each(|closed| self.close_waves(closed));
    }

    /// Closes a driver as a whole, or all of its changes. Only the first wait of a driver is reported.
    pub(super) fn close_driver(&mut self, Closed { driver, extent, gate }: Closed) {
        if self.is_paused(&driver) {
            return;
        }
        let first = !self.waits(&driver);
        if let (Some(wait), true) = (gate.wait(), first) {
            // What else a driver waits for matters less.
            let place = self.waiting_drivers().count().min(self.waiting.len());
            self.waiting.insert(place, wait.clone());
        }
        self.close(&gate, |step| step.driver() == driver && extent.takes(step));
        if first || gate == Gate::Paused {
            self.gates.insert(driver, gate);
        }
    }

    /// Lets nothing of a driver from a wave on start, and prunes nothing of it.
    fn close_waves(&mut self, Closed { driver, extent, gate }: Closed) {
        self.close(&gate, |step| step.driver() == driver && extent.takes(step));
        self.waiting.extend(gate.wait().cloned());
        self.unfinished.insert(driver);
    }

    /// A driver that waits for another driver that is held: by the matrix, or because a step of the first depends on a step of the second.
    fn next_dependent(&self, needs: &Needs) -> Option<Wait> {
        let mut others = self.steps.iter().filter(|planned| {
            let driver = planned.step.driver();
            planned.step.is_transition() && !self.waits(driver) && !self.is_paused(driver)
        });
        others.find_map(|planned| {
            let driver = planned.step.driver();
            let by_need = self.waiting_drivers().find_map(|other| {
                let why = needs.get(&(driver.to_owned(), other.clone()))?;
                Some((other.as_str(), why.clone()))
            });
            let by_step = || {
                let all = planned.depends_on.iter().map(|earlier| &self.steps[*earlier].step);
                let other = all
                    .filter(|step| step.is_transition() && !step.removes())
                    .find(|step| self.waits(step.driver()))?;
                Some((other.driver(), format!("{} needs {}", planned.step.id()?, other.id()?)))
            };
            let (other, why) = by_need.or_else(by_step)?;
            Some(Wait {
                driver: driver.to_owned(),
                reason: Reason::WaitingForDriver,
                message: format!("{driver} waits for {other}, which cannot be changed at the moment: {why}"),
            })
        })
    }

    /// The drivers that wait for something as a whole.
    fn waiting_drivers(&self) -> impl Iterator<Item = &DriverName> {
        self.gates.keys().filter(|driver| self.waits(driver))
    }

    /// The gate of a driver as a whole.
    #[must_use]
    pub fn gate(&self, driver: &str) -> &Gate {
        self.gates.get(driver).unwrap_or(&Gate::Open)
    }

    /// Whether a driver as a whole waits for something, or something is against it.
    #[must_use]
    pub fn waits(&self, driver: &str) -> bool {
        self.gate(driver).wait().is_some()
    }

    /// Whether nothing at all of a driver is written.
    pub(super) fn is_paused(&self, driver: &str) -> bool {
        *self.gate(driver) == Gate::Paused
    }

    /// Whether a driver has not reached what is wanted.
    #[must_use]
    pub fn is_unfinished(&self, driver: &str) -> bool {
        self.unfinished.contains(driver)
    }

    /// Closes steps of single objects, such as one that another manager is deleting.
    pub fn close_steps(&mut self, wait: Wait, which: impl Fn(&Step) -> bool) {
        self.close(&Gate::Waits(wait.clone()), which);
        self.waiting.push(wait);
    }

    /// Lets nothing start of the waves from the first step on that the server cannot be asked about yet.
    pub fn close_deferred(&mut self) {
        let deferred: Vec<(String, u8, Wait)> = (0..self.steps.len())
            .filter_map(|at| {
                let (skip, step) = (self.deferral(at)?, &self.steps[at].step);
                let wait = Wait {
                    driver: step.driver().to_owned(),
                    reason: Reason::Progressing,
                    message: skip.message,
                };
                Some((step.driver().to_owned(), step.wave()?, wait))
            })
            .collect();
        for (driver, from, wait) in deferred {
            self.close(&Gate::Waits(wait), |step| {
                step.driver() == driver && step.wave().is_some_and(|wave| wave >= from)
            });
        }
    }

    /// Leaves out steps of which it turns out that they would change nothing.
    pub fn drop_steps(&mut self, which: impl Fn(&Step) -> bool) {
        let mut places = Vec::new();
        let mut left = 0;
        for planned in &self.steps {
            let stays = !which(&planned.step);
            places.push(stays.then_some(left));
            left += usize::from(stays);
        }
        let mut at = 0;
        self.steps.retain(|_| {
            at += 1;
            places[at - 1].is_some()
        });
        for planned in &mut self.steps {
            planned.depends_on = planned.depends_on.iter().filter_map(|earlier| places[*earlier]).collect();
        }
    }

    /// Leaves everything that leads to another state to a person's approval.
    pub fn await_approval(&mut self) {
        self.close(&Gate::NeedsApproval, Step::is_transition);
    }

    /// Pauses the repairs that another manager keeps undoing; a change of what is wanted goes on.
    pub fn pause_contended(&mut self, history: &RepairHistory, now: Timestamp) -> Vec<Contention> {
        let contentions = history.contentions(now);
        let mut paused = Vec::new();
        for planned in self.steps.iter_mut().filter(|planned| planned.gate == Gate::Open) {
            if let Some(contention) = contended(&planned.step, &contentions) {
                planned.gate = Gate::Contended;
                paused.push(contention.clone());
            }
        }
        paused
    }

    /// The drivers that are repaired to what was applied last, because all of their steps that lead to another state are closed.
    #[must_use]
    pub fn held_drivers(&self) -> BTreeSet<&str> {
        let awaits = |planned: &&PlannedStep| planned.gate == Gate::NeedsApproval;
        let approval = self.steps.iter().filter(awaits).map(|planned| planned.step.driver());
        let gates = self.gates.iter().filter(|(_, gate)| gate.wait().is_some() || **gate == Gate::Kept);
        gates.map(|(driver, _)| driver.as_str()).chain(approval).collect()
    }
}

#[cfg(test)]
mod tests;
