// SPDX-License-Identifier: Apache-2.0
//! In which order a plan is carried out, on random plans with random answers.

use super::properties::config;
use super::simulation::{Case, case};
use proptest::prelude::*;
use std::collections::BTreeSet;
use vdo_core::plan::{Schedule, Step, dependencies};

/// Writes that are under way at the same time.
const AT_ONCE: usize = 8;

/// What became of the steps of a plan.
#[derive(Default)]
struct Outcome {
    /// In the order in which they were started, with what was done and what had failed by then.
    started: Vec<(usize, BTreeSet<usize>, Vec<usize>)>,
    done: Vec<usize>,
    failed: Vec<usize>,
}

/// Carries out a plan as the operator does; the dice say which of the writes under way is answered next, and whether it failed.
fn carry_out(steps: &[Step], dice: &[(prop::sample::Index, bool)], fails: bool) -> Outcome {
    let (mut schedule, mut outcome, mut under_way) = (Schedule::of(steps), Outcome::default(), Vec::new());
    for (which, failed) in dice.iter().cycle() {
        while under_way.len() < AT_ONCE
            && let Some(step) = schedule.start()
        {
            let done = outcome.done.iter().copied().collect();
            outcome.started.push((step, done, outcome.failed.clone()));
            under_way.push(step);
        }
        if under_way.is_empty() {
            break;
        }
        let step = under_way.swap_remove(which.index(under_way.len()));
        if fails && *failed {
            schedule.failed(step);
            outcome.failed.push(step);
        } else {
            schedule.done(step);
            outcome.done.push(step);
        }
    }
    outcome
}

fn dice() -> impl Strategy<Value = Vec<(prop::sample::Index, bool)>> {
    prop::collection::vec((any::<prop::sample::Index>(), prop::bool::weighted(0.2)), 1..20)
}

/// The next increment, and everything that is left to do, which has applies and deletes in one.
fn plans(case: &Case) -> [Vec<Step>; 3] {
    let whole = case.world.whole(&case.desired).writes().cloned().collect();
    [case.plan(&case.world).steps, whole, case.world.uninstall().steps]
}

fn place(step: &Step) -> Option<(&str, u8)> {
    match step {
        Step::Apply { driver, wave, .. } | Step::Replace { driver, wave, .. } => Some((driver, *wave)),
        _ => None,
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn schedule_steps_start_after_dependencies_and_all_finish(case in case(), dice in dice()) {
        for steps in plans(&case) {
            let (waits, outcome) = (dependencies(&steps), carry_out(&steps, &dice, false));
            for (step, done, _) in &outcome.started {
                prop_assert!(waits[*step].iter().all(|earlier| done.contains(earlier)), "{step} of {:?}", steps);
            }
            let mut all = outcome.done;
            all.sort_unstable();
            prop_assert_eq!(all, (0..steps.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn schedule_failed_step_stops_only_dependents(case in case(), dice in dice()) {
        for steps in plans(&case) {
            let (waits, outcome) = (dependencies(&steps), carry_out(&steps, &dice, true));
            let started: BTreeSet<usize> = outcome.started.iter().map(|(step, ..)| *step).collect();
            prop_assert_eq!(started.len(), outcome.started.len(), "something was started twice");
            prop_assert_eq!(started.len(), outcome.done.len() + outcome.failed.len(), "something was not awaited");
            let stopped = |at: usize, failed: &[usize]| {
                let failed = failed.iter().filter_map(|failed| place(&steps[*failed]).zip(place(&steps[at])));
                failed.into_iter().any(|((driver, failed), (own, wave))| driver == own && failed < wave)
            };
            for (step, done, failed) in &outcome.started {
                prop_assert!(waits[*step].iter().all(|earlier| done.contains(earlier)), "{step} of {:?}", steps);
                prop_assert!(!stopped(*step, failed), "{step} of {:?} in spite of {failed:?}", steps);
            }
            for (at, step) in steps.iter().enumerate().filter(|(at, _)| !started.contains(at)) {
                let lacks = waits[at].iter().any(|earlier| !outcome.done.contains(earlier));
                prop_assert!(lacks || stopped(at, &outcome.failed), "{step:?} was left out for no reason");
            }
            let removed = |step: &Step| matches!(step, Step::Delete { .. } | Step::Release { .. });
            let failed: BTreeSet<&str> = outcome.failed.iter().map(|failed| &steps[*failed]).filter(|step| place(step).is_some()).map(Step::driver).collect();
            let lost = started.iter().map(|step| &steps[*step]).find(|step| removed(step) && failed.contains(step.driver()));
            prop_assert!(lost.is_none(), "{lost:?} was removed in spite of a failure");
        }
    }

    /// Whatever order the answers come in, the cluster is the same in the end, and what is ours is in the inventory all the while.
    #[test]
    fn schedule_any_answer_order_converges_to_same_end(case in case(), dice in dice()) {
        let (mut world, unaccounted) = (case.world.clone(), case.world.unaccounted());
        for _ in 0..12 {
            let plan = case.plan(&world);
            for step in carry_out(&plan.steps, &dice, false).done {
                world.carry(&plan.steps[step]);
                prop_assert!(world.unaccounted().is_subset(&unaccounted), "{:?}", plan.steps[step]);
            }
            world.tick();
        }
        prop_assert_eq!(world.shape(), case.converge(None).0.shape());
    }
}
