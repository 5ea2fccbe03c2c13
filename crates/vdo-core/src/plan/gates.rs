//! Whether a step may start, and what it waits for. A gate never adds a step or changes one.

use super::drift::contended;
use super::{Contention, Plan, RepairHistory, Step, Wait};
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeMap;
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

/// The drivers that are left at what was applied last, each with what it waits for.
pub type Held = BTreeMap<DriverName, Wait>;

impl Plan {
    /// Closes the open steps of which this is true.
    pub fn close(&mut self, gate: &Gate, which: impl Fn(&Step) -> bool) {
        let open = self.steps.iter_mut().filter(|planned| planned.gate == Gate::Open);
        for planned in open.filter(|planned| which(&planned.step)) {
            planned.gate = gate.clone();
        }
    }

    /// Closes every step of a driver that leads to another state. What was applied of it last is repaired meanwhile.
    pub fn hold(&mut self, driver: &str, gate: &Gate) {
        if let (Gate::Waits(wait) | Gate::Refused(wait), false) = (gate, self.held.contains_key(driver)) {
            // What else a driver waits for matters less.
            self.waiting.insert(self.held.len().min(self.waiting.len()), wait.clone());
            self.held.insert(driver.to_owned(), wait.clone());
        }
        self.close(gate, |step| step.driver() == driver && step.is_transition());
    }

    /// Holds these drivers, and those that must not go on without one of them.
    pub fn hold_all(&mut self, refused: Held, needs: &Needs) {
        for (driver, wait) in refused {
            self.hold(&driver, &Gate::Refused(wait));
        }
        while let Some(wait) = self.next_dependent(needs) {
            self.hold(&wait.driver.clone(), &Gate::Waits(wait));
        }
    }

    /// A driver that waits for one that is held, because of what the matrix says or because one of its steps depends on a step of it.
    fn next_dependent(&self, needs: &Needs) -> Option<Wait> {
        let mut others = self.steps.iter().filter(|planned| {
            let step = &planned.step;
            step.is_transition() && !self.held.contains_key(step.driver())
        });
        others.find_map(|planned| {
            let driver = planned.step.driver();
            let by_need = self.held.keys().find_map(|other| {
                let why = needs.get(&(driver.to_owned(), other.clone()))?;
                Some((other.as_str(), why.clone()))
            });
            let by_step = || {
                let all = planned.depends_on.iter().map(|earlier| &self.steps[*earlier].step);
                let other = all
                    .filter(|step| step.is_transition() && !step.removes())
                    .find(|step| self.held.contains_key(step.driver()))?;
                Some((other.driver(), format!("{} needs {}", planned.step.id()?, other.id()?)))
            };
            let (other, why) = by_need.or_else(by_step)?;
            Some(Wait {
                driver: driver.to_owned(),
                reason: Reason::WaitingForDriver,
                message: format!("{driver} waits for {other}, which cannot go on: {why}"),
            })
        })
    }

    /// Lets nothing of this driver from a wave on start, and prunes nothing of it.
    pub fn hold_waves(&mut self, from: u8, wait: &Wait) {
        let gate = Gate::Waits(wait.clone());
        self.close(&gate, |step| {
            step.driver() == wait.driver && (step.wave().is_some_and(|wave| wave >= from) || step.removes() && step.wave().is_none())
        });
        self.unfinished.insert(wait.driver.clone());
        self.waiting.push(wait.clone());
    }

    /// Whether a driver has not reached what is wanted.
    #[must_use]
    pub fn is_unfinished(&self, driver: &str) -> bool {
        self.unfinished.contains(driver)
    }

    /// Writes nothing at all of a driver.
    pub fn pause(&mut self, driver: &str) {
        self.close(&Gate::Paused, |step| step.driver() == driver);
        self.paused.insert(driver.to_owned());
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

    /// Whether the steps of a driver that lead to another state are all closed, and so it is repaired to what was applied last.
    pub(super) fn is_held(&self, driver: &str) -> bool {
        let waits_for_approval = |step: &super::PlannedStep| step.gate == Gate::NeedsApproval && step.step.driver() == driver;
        self.held.contains_key(driver) || self.kept.contains(driver) || self.steps.iter().any(waits_for_approval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::{CPI, CSI};
    use crate::manifest::Object;
    use crate::plan::{Change, PlannedStep, dependencies};
    use serde_json::{Value, json};
    use vdo_api::types::ObjectId;

    fn create(driver: &str, wave: u8, value: Value) -> Step {
        Step::Apply {
            object: Object::new(value).expect("an object"),
            change: Change::Create,
            wave,
            driver: driver.into(),
            take: false,
        }
    }

    fn of(driver: &str, kind: &str, name: &str, wave: u8) -> Step {
        create(
            driver,
            wave,
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "n"}}),
        )
    }

    fn plan(steps: &[Step]) -> Plan {
        let planned = steps.iter().cloned().zip(dependencies(steps));
        let planned = planned.map(|(step, depends_on)| PlannedStep {
            step,
            depends_on,
            gate: Gate::Open,
        });
        Plan {
            steps: planned.collect(),
            ..Plan::default()
        }
    }

    fn refused(driver: &str) -> Held {
        let wait = Wait {
            driver: driver.into(),
            reason: Reason::AdmissionDenied,
            message: format!("a policy is against {driver}"),
        };
        [(driver.to_owned(), wait)].into()
    }

    /// A definition of CSI, an instance of it of another driver, and something of each other driver.
    fn all() -> [Step; 5] {
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "xs.g"},
            "spec": {"group": "g", "names": {"kind": "X"}}});
        [
            create(CSI, 0, definition),
            of(CSI, "ConfigMap", "csi", 2),
            of("other", "ConfigMap", "other", 2),
            create(
                "guest",
                2,
                json!({"apiVersion": "g/v1", "kind": "X", "metadata": {"name": "guest"}}),
            ),
            of(CPI, "DaemonSet", "cpi", 4),
        ]
    }

    #[test]
    fn hold_driver_holds_those_that_depend_on_it() {
        let delete = Step::Delete {
            id: ObjectId::new("", "ConfigMap", "kube-system", "old"),
            api_version: "v1".into(),
            uid: "u".into(),
            wave: 2,
            driver: CPI.into(),
        };
        let all = all();
        let begins: Needs = [((CSI.into(), CPI.into()), "it initialises the nodes".into())].into();
        for (steps, first, needs, expected) in [
            (all.to_vec(), None, &begins, vec![]),
            (all.to_vec(), Some("other"), &begins, vec!["other"]),
            // An instance of its definition waits with it.
            (all.to_vec(), Some(CSI), &begins, vec!["guest", CSI]),
            // And with what waits for it.
            (all.to_vec(), Some(CPI), &begins, vec!["guest", CPI, CSI]),
            (all.to_vec(), Some(CPI), &Needs::new(), vec![CPI]),
            // The definition exists.
            (all[1..].to_vec(), Some(CSI), &begins, vec![CSI]),
            // A driver that has nothing to do does not wait.
            (vec![delete.clone(), all[2].clone()], Some("other"), &begins, vec!["other"]),
            // A removal is a change of its driver.
            (
                vec![delete, all[2].clone()],
                Some("other"),
                &[((CPI.into(), "other".into()), "it is older".into())].into(),
                vec!["other", CPI],
            ),
        ] {
            let mut plan = plan(&steps);
            plan.hold_all(first.map(refused).unwrap_or_default(), needs);
            assert_eq!(
                plan.held.keys().map(String::as_str).collect::<Vec<_>>(),
                expected,
                "{first:?} {needs:?}"
            );
            for planned in &plan.steps {
                assert_eq!(
                    planned.gate == Gate::Open,
                    !plan.held.contains_key(planned.step.driver()),
                    "{planned:?}"
                );
            }
        }
        let mut plan = plan(&all);
        plan.hold_all(refused(CPI), &begins);
        let said: Vec<&str> = plan.waiting.iter().map(|wait| wait.message.as_str()).collect();
        assert_eq!(
            said,
            [
                "a policy is against vsphere-cpi",
                "vsphere-csi waits for vsphere-cpi, which cannot go on: it initialises the nodes",
                "guest waits for vsphere-csi, which cannot go on: X guest needs CustomResourceDefinition xs.g",
            ]
        );
    }

    #[test]
    fn hold_waves_closes_them_of_one_driver_and_keeps_first_gate() {
        let mut plan = plan(&[
            of(CSI, "ConfigMap", "a", 2),
            of(CSI, "DaemonSet", "b", 5),
            of(CPI, "DaemonSet", "c", 5),
        ]);
        let wait = |message: &str| Wait {
            driver: CSI.into(),
            reason: Reason::WaitingForNodes,
            message: message.into(),
        };
        plan.hold_waves(5, &wait("nodes"));
        plan.hold_waves(2, &wait("privileges"));
        let gates: Vec<&Gate> = plan.steps.iter().map(|planned| &planned.gate).collect();
        assert_eq!(gates, [&Gate::Waits(wait("privileges")), &Gate::Waits(wait("nodes")), &Gate::Open]);
        assert_eq!(plan.waiting.len(), 2);
    }

    #[test]
    fn approval_closes_what_leads_to_another_state() {
        let mut repair = of(CPI, "ConfigMap", "a", 2);
        if let Step::Apply { change, .. } = &mut repair {
            *change = Change::Restore;
        }
        let repairs = plan(&[repair.clone(), Step::Finish]);
        assert_eq!((repairs.is_transition(), repairs.changes()), (false, 1));
        let mut plan = plan(&[repair, of(CSI, "ConfigMap", "b", 2)]);
        assert_eq!((plan.is_transition(), plan.changes()), (true, 2));
        plan.await_approval();
        let gates: Vec<&Gate> = plan.steps.iter().map(|planned| &planned.gate).collect();
        assert_eq!(gates, [&Gate::Open, &Gate::NeedsApproval]);
        assert_eq!(plan.held_drivers(), [CSI].into());
    }

    fn gates(plan: &Plan) -> Vec<&Gate> {
        plan.steps.iter().map(|planned| &planned.gate).collect()
    }

    #[test]
    fn hold_waves_leaves_recreation_of_lower_wave_and_closes_removals() {
        let id = || ObjectId::new("", "ConfigMap", "n", "c");
        let delete = |driver: &str| Step::Delete {
            id: id(),
            api_version: "v1".into(),
            uid: "u".into(),
            wave: 2,
            driver: driver.into(),
        };
        let replace = Step::Replace {
            id: id(),
            api_version: "v1".into(),
            uid: "u".into(),
            keep_pods: false,
            digest: String::new(),
            fields: Vec::new(),
            wave: 2,
            driver: CSI.into(),
        };
        let mut plan = plan(&[replace, of(CSI, "DaemonSet", "b", 5), delete(CSI), delete(CPI)]);
        let wait = refused(CSI).remove(CSI).expect("one");
        plan.hold_waves(5, &wait);
        let closed = Gate::Waits(wait);
        assert_eq!(gates(&plan), [&Gate::Open, &closed, &closed, &Gate::Open]);
        assert!(plan.is_unfinished(CSI) && !plan.is_unfinished(CPI));
    }

    #[test]
    fn pause_closes_every_step_of_one_driver() {
        let mut plan = plan(&[of(CSI, "ConfigMap", "a", 2), of(CPI, "ConfigMap", "b", 2)]);
        plan.pause(CSI);
        assert_eq!(gates(&plan), [&Gate::Paused, &Gate::Open]);
        assert_eq!(plan.paused, [CSI.to_owned()].into());
    }

    /// What is of a wave in which something waits for its definition cannot be tried on the server, and neither can what follows.
    #[test]
    fn deferred_step_closes_its_wave_and_later_ones_of_its_driver() {
        let [definition, map, other, guest, _] = all();
        let steps = [
            definition,
            map,
            other,
            of("guest", "Secret", "first", 1),
            guest,
            of("guest", "DaemonSet", "last", 4),
        ];
        let mut plan = plan(&steps);
        plan.close_deferred();
        let closed: Vec<bool> = plan.steps.iter().map(|planned| planned.gate != Gate::Open).collect();
        assert_eq!(closed, [false, false, false, false, true, true]);
        let Gate::Waits(wait) = &plan.steps[5].gate else {
            panic!("{:?}", plan.steps[5].gate)
        };
        assert_eq!((wait.driver.as_str(), wait.reason), ("guest", Reason::Progressing));
        assert!(wait.message.starts_with("X guest is tried on the server when"), "{}", wait.message);
    }

    #[test]
    fn dropped_step_leaves_the_others_with_their_dependencies() {
        let steps = [
            of(CSI, "ConfigMap", "a", 2),
            of(CSI, "ConfigMap", "b", 2),
            of(CPI, "ConfigMap", "c", 2),
            of(CSI, "DaemonSet", "d", 5),
            of(CPI, "DaemonSet", "e", 4),
        ];
        let mut plan = plan(&steps);
        plan.drop_steps(|step| step.id().is_some_and(|id| id.name == "b"));
        let left: Vec<(String, &[usize])> = plan
            .steps
            .iter()
            .map(|planned| {
                (
                    planned.step.id().map(|id| id.name.clone()).unwrap_or_default(),
                    planned.depends_on.as_slice(),
                )
            })
            .collect();
        let expected: [(String, &[usize]); 4] = [("a".into(), &[]), ("c".into(), &[]), ("d".into(), &[0]), ("e".into(), &[1])];
        assert_eq!(left, expected);
    }

    #[test]
    fn contention_pauses_open_repair_and_not_change() {
        let now = Timestamp::from_second(1_000).expect("a time");
        let mut history = RepairHistory::default();
        let restore = |driver: &str, name: &str| match of(driver, "ConfigMap", name, 2) {
            Step::Apply {
                object,
                wave,
                driver,
                take,
                ..
            } => Step::Apply {
                object,
                change: Change::Restore,
                wave,
                driver,
                take,
            },
            other => other,
        };
        for name in ["a", "b", "c"] {
            let drift = crate::plan::Drift::deleted(ObjectId::new("", "ConfigMap", "n", name));
            for _ in 0..3 {
                history.repaired(&drift, now);
            }
        }
        let mut plan = plan(&[
            restore(CSI, "a"),
            of(CSI, "ConfigMap", "b", 2),
            restore(CPI, "c"),
            restore(CSI, "d"),
        ]);
        plan.pause(CPI);
        let contentions = plan.pause_contended(&history, now);
        assert_eq!(
            contentions.iter().map(|contention| contention.id.name.as_str()).collect::<Vec<_>>(),
            ["a"]
        );
        assert_eq!(gates(&plan), [&Gate::Contended, &Gate::Open, &Gate::Paused, &Gate::Open]);
    }
}
