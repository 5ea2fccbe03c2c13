// SPDX-License-Identifier: Apache-2.0
//! `vdoctl doctor --undo`: restores what `doctor --fix` changed in a vCenter, from the recorded fixes.

use super::super::super::args::Doctor as Args;
use super::super::super::progress::{Mark, Progress};
use super::super::super::views::doctor::{FixOutcome, FixView, UndoneView};
use super::super::super::{Answer, CliError, Exit};
use super::site::Site;
use super::store::Store;
use super::{answer, consent, failed};
use std::collections::BTreeSet;
use vdo_admin::accounts::ChangeError;
use vdo_admin::fixes::{Catalog, MachineState, Step, Subject, Undo, undo};
use vdo_vsphere::vsphere::{Advice, ManagedObject};

pub(super) async fn run(args: &Args, site: &Site, progress: &mut Progress) -> Result<Answer, CliError> {
    let mut store = Store::open(site)?;
    if store.record.steps.is_empty() {
        return Err(CliError::new(
            Exit::NotFound,
            format!("there is nothing to undo in {}", store.name()),
            "vdoctl doctor --fix records its changes in the folder in which it is run; name another file with --record FILE.",
        ));
    }
    let (mut planned, mut lines) = (Vec::new(), Vec::new());
    for group in groups(&store) {
        match look(site, &store, &group).await {
            Ok(plan) => planned.push(plan),
            Err(error) if error.is_of_one_object() => lines.extend(group.first().map(|step| FixView {
                steps: group.clone(),
                ..FixView::failed(None, step, &error, progress)
            })),
            Err(error) => return Err(failed(&error)),
        }
    }
    if !args.fixing.dry_run {
        let all: Vec<Vec<Step>> = planned
            .iter()
            .map(|plan| steps_of(plan))
            .filter(|steps| !steps.is_empty())
            .collect();
        consent::can_be_had(&args.fixing, all.iter().map(Vec::as_slice))?;
    }
    let mut has_ended = false;
    for plan in planned {
        let steps = steps_of(&plan);
        let left = match (args.fixing.dry_run, has_ended) {
            (true, _) => Some(FixOutcome::Planned),
            (false, true) => Some(FixOutcome::NotTried),
            _ if steps.is_empty() || consent::is_given(&args.fixing, "to restore the previous state:", &steps, progress)? => None,
            _ => Some(FixOutcome::Declined),
        };
        for (step, verdict) in plan {
            if let Some(outcome) = left.or(has_ended.then_some(FixOutcome::NotTried)) {
                lines.push(line(&step, verdict, outcome));
                continue;
            }
            match take_back(site, &mut store, &step, progress).await? {
                Ok(verdict) => lines.push(line(&step, verdict, FixOutcome::Made)),
                Err((back, error)) => {
                    lines.push(FixView::failed(None, &back, &error, progress));
                    has_ended = !error.is_of_one_object();
                }
            }
        }
    }
    let note = match args.fixing.dry_run {
        true => Some("This was a dry run; nothing was changed.".to_owned()),
        false if store.record.steps.is_empty() => None,
        false => Some(format!("The changes that remain are still recorded in {}.", store.name())),
    };
    answer(args, site, UndoneView, &lines, note).await
}

/// The steps that undo what can be undone.
fn steps_of(plan: &[(Step, Undo)]) -> Vec<Step> {
    let steps = plan.iter().filter_map(|(_, undo)| match undo {
        Undo::Step(step) => Some(step.clone()),
        _ => None,
    });
    steps.collect()
}

/// Undoes a step. Meanwhile a person may have been asked; what counts is what is there now. A step that failed is given with its error.
async fn take_back(
    site: &Site,
    store: &mut Store,
    step: &Step,
    progress: &mut Progress,
) -> Result<Result<Undo, (Step, ChangeError)>, CliError> {
    let (machine, catalog) = match live(site, std::slice::from_ref(step)).await {
        Err(error) => return Ok(Err((step.clone(), error))),
        Ok(live) => live,
    };
    let verdict = undo(step, &store.record.mark, machine.as_ref(), &catalog);
    match &verdict {
        Undo::Step(back) => {
            if let Err(error) = site.admin.repair(back, machine.as_ref(), &catalog, &store.record.mark).await {
                return Ok(Err((back.clone(), error)));
            }
            store.remove(step)?;
            if !progress.is_data() {
                progress.step(Mark::Done, &back.to_string());
            }
        }
        Undo::Nothing(_) => store.remove(step)?,
        Undo::Stays(_) => {}
    }
    Ok(Ok(verdict))
}

/// The recorded steps, the last one first, with those of one subject together. What cannot be undone comes at the end: a run that is killed
/// has not taken it out of the record before it was shown.
fn groups(store: &Store) -> Vec<Vec<Step>> {
    let mut groups: Vec<(Subject, Vec<Step>)> = Vec::new();
    for entry in store.record.steps.iter().rev() {
        let subject = entry.step.subject();
        match groups.iter_mut().find(|(own, _)| *own == subject) {
            Some((_, steps)) => steps.push(entry.step.clone()),
            None => groups.push((subject, vec![entry.step.clone()])),
        }
    }
    groups.sort_by_key(|(subject, _)| matches!(subject, Subject::Hardware(_)));
    groups.into_iter().map(|(_, steps)| steps).collect()
}

/// What undoing a group would do, each step after those before it.
async fn look(site: &Site, store: &Store, group: &[Step]) -> Result<Vec<(Step, Undo)>, ChangeError> {
    let (machine, mut catalog) = live(site, group).await?;
    let mut plan = Vec::new();
    for step in group {
        let verdict = undo(step, &store.record.mark, machine.as_ref(), &catalog);
        if let Undo::Step(back) = &verdict {
            catalog.apply(back, &store.record.mark, "");
        }
        plan.push((step.clone(), verdict));
    }
    Ok(plan)
}

/// What is there of what steps of one subject have changed.
async fn live(site: &Site, steps: &[Step]) -> Result<(Option<MachineState>, Catalog), ChangeError> {
    let machine = match steps.iter().find_map(Step::machine) {
        Some(machine) => site.admin.machine(&machine.object()).await?,
        None => None,
    };
    let categories: BTreeSet<&str> = steps
        .iter()
        .filter_map(|step| match step {
            Step::CreateCategory { category } | Step::CreateTag { category, .. } | Step::AttachTag { category, .. } => {
                Some(category.as_str())
            }
            _ => None,
        })
        .collect();
    if categories.is_empty() {
        return Ok((machine, Catalog::default()));
    }
    let objects: Vec<ManagedObject> = steps
        .iter()
        .filter_map(|step| match step {
            Step::AttachTag { object, .. } => Some(object.clone()),
            _ => None,
        })
        .collect();
    Ok((machine, site.admin.catalog(&categories, &objects, true).await?))
}

fn line(step: &Step, verdict: Undo, of_steps: FixOutcome) -> FixView {
    let (message, steps, outcome) = match verdict {
        Undo::Step(back) => (format!("undo: {step}"), vec![back], of_steps),
        Undo::Nothing(why) => (why, Vec::new(), FixOutcome::Nothing),
        Undo::Stays(why) => (why, Vec::new(), FixOutcome::ByHand),
    };
    FixView {
        reason: None,
        message,
        steps,
        outcome,
        remedy: Advice::default(),
        exit: outcome.exit(),
    }
}
