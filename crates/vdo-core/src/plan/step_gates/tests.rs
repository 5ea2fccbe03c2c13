// SPDX-License-Identifier: Apache-2.0
//! Tests which steps a closed gate, an approval or a repair pause closes.

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

fn refused(driver: &str) -> Wait {
    Wait {
        driver: driver.into(),
        reason: Reason::AdmissionDenied,
        message: format!("a policy is against {driver}"),
    }
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
fn closed_driver_closes_those_that_depend_on_it() {
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
        plan.close_all(first.map(refused).map(Closed::refused), needs);
        assert_eq!(Vec::from_iter(plan.held_drivers()), expected, "{first:?} {needs:?}");
        for planned in &plan.steps {
            assert_eq!(planned.gate == Gate::Open, !plan.waits(planned.step.driver()), "{planned:?}");
        }
    }
    let mut plan = plan(&all);
    plan.close_all([Closed::refused(refused(CPI))], &begins);
    let said: Vec<&str> = plan.waiting.iter().map(|wait| wait.message.as_str()).collect();
    assert_eq!(
        said,
        [
            "a policy is against vsphere-cpi",
            "vsphere-csi waits for vsphere-cpi, which cannot be changed at the moment: it initialises the nodes",
            "guest waits for vsphere-csi, which cannot be changed at the moment: X guest needs CustomResourceDefinition xs.g",
        ]
    );
}

#[test]
fn closed_waves_are_those_of_one_driver_and_keeps_first_gate() {
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
    let closed = [Closed::waves_from(5, wait("nodes")), Closed::waves_from(2, wait("privileges"))];
    plan.close_all(closed, &Needs::new());
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
fn closed_waves_leave_recreation_of_lower_wave_and_take_removals() {
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
    let wait = refused(CSI);
    plan.close_all([Closed::waves_from(5, wait.clone())], &Needs::new());
    let closed = Gate::Waits(wait);
    assert_eq!(gates(&plan), [&Gate::Open, &closed, &closed, &Gate::Open]);
    assert!(plan.is_unfinished(CSI) && !plan.is_unfinished(CPI));
}

#[test]
fn pause_closes_every_step_of_one_driver() {
    let mut plan = plan(&[of(CSI, "ConfigMap", "a", 2), of(CPI, "ConfigMap", "b", 2)]);
    plan.close_all([Closed::paused(CSI)], &Needs::new());
    assert_eq!(gates(&plan), [&Gate::Paused, &Gate::Open]);
    assert_eq!((plan.gate(CSI), plan.gate(CPI)), (&Gate::Paused, &Gate::Open));
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
    assert!(
        wait.message.starts_with("the server-side dry run of X guest waits until"),
        "{}",
        wait.message
    );
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
    plan.close_all([Closed::paused(CPI)], &Needs::new());
    let contentions = plan.pause_contended(&history, now);
    assert_eq!(
        contentions.iter().map(|contention| contention.id.name.as_str()).collect::<Vec<_>>(),
        ["a"]
    );
    assert_eq!(gates(&plan), [&Gate::Contended, &Gate::Open, &Gate::Paused, &Gate::Open]);
}
