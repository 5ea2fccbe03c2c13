// SPDX-License-Identifier: Apache-2.0
//! `vdoctl adopt --move` and `--move --undo`: carries out the steps that replace another tool's drivers with the operator's drivers.
//!
//! ```text
//! observed -> the next step -> carried out, or waited for -> observed …
//! ```

mod observe;

use super::super::args::{Adopt as Args, Format, Global};
use super::super::context::{Context, Deciding};
use super::super::progress::{Mark, Progress};
use super::super::style::head;
use super::super::views::adopt::{MoveStepView, MoveView};
use super::super::views::plan::ObjectView;
use super::super::{Answer, CliError, Exit};
use super::{confirm, find};
use observe::state;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use vdo::cluster::ClusterError;
use vdo_adopt::moving::{Config, Next, State, Step, Wait, Write};
use vdo_api::api::{ACCEPTED_LOSSES, accepted_losses};
use vdo_api::types::Later as _;
use vdo_core::install::VDOCTL;
use vdo_core::installed::MOVED;
use vdo_core::manifest::Object;

/// How often is looked at what is waited for.
const PACE: Duration = Duration::from_secs(1);

/// That the cluster does not answer for so long ends a move; it goes on when it is repeated.
const SILENCE: Duration = Duration::from_secs(120);

/// Where a move leads.
fn next(args: &Args) -> fn(&State) -> Next {
    if args.undo { State::back } else { State::next }
}

pub(super) async fn moved(args: &Args, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let reading = async {
        let context = Context::open(global).await?.choosing_from(&args.index, global).await?;
        let state = state(&context).await?;
        Ok((context, state))
    };
    let (context, first) = super::super::within(global, reading).await?;
    let mut done = Vec::new();
    if let Next::Blocked { what, remedy } = next(args)(&first) {
        return Err(CliError::new(Exit::Refused, what, remedy));
    }
    if !args.undo && !is_begun(&first) && !is_idle(&first) {
        let found = super::super::within(global, find::found(&context, &args.config)).await?;
        confirm::known(&args.accepted, &found.adoption)?;
        confirm::losses(args, &accepted(&first), &found.adoption)?;
    }
    let steps = first.clone().outline(next(args));
    if args.dry_run {
        return answer(args, progress, &context, steps.iter().filter_map(step).collect(), &first);
    }
    if !matches!(steps.first(), Some(Next::Done) | None) {
        confirm::asked(args, &context, &question(args, &context, &steps))?;
        done = carried_out(args, global, &context, progress).await?;
    }
    let last = super::super::within(global, state(&context)).await?;
    answer(args, progress, &context, done, &last)
}

/// The losses that were confirmed when the VDOConfig was written.
fn accepted(state: &State) -> Vec<&str> {
    match &state.config {
        Config::Managed { object, .. } => accepted_losses(object.annotation(ACCEPTED_LOSSES)).collect(),
        Config::Missing | Config::Paused { .. } => Vec::new(),
    }
}

/// Whether a workload has been stopped for it already.
fn is_begun(state: &State) -> bool {
    state.old.iter().any(|old| old.object.annotation(MOVED).is_some())
}

/// Whether there is nothing to move.
fn is_idle(state: &State) -> bool {
    matches!(state.next(), Next::Done)
}

fn question(args: &Args, context: &Context, steps: &[Next]) -> String {
    let lines: String = steps.iter().filter_map(step).map(|step| format!("  {}\n", step.message)).collect();
    let what = if args.undo {
        "Return the drivers of cluster"
    } else {
        "Move the drivers of cluster"
    };
    let whither = if args.undo { "to their previous state" } else { "to VDO" };
    format!("{lines}{what} {} {whither}?", context.name)
}

/// Takes step after step, until there is none.
///
/// # Errors
/// When something blocks it, when another manager undoes a step, and when something does not come in time.
async fn carried_out(args: &Args, global: &Global, context: &Deciding, progress: &mut Progress) -> Result<Vec<MoveStepView>, CliError> {
    let patience = global.timeout_with_drivers();
    let (mut taken, mut done) = (BTreeSet::new(), Vec::new());
    let mut end = Instant::now().later(patience);
    loop {
        let state = patiently(context, progress).await?;
        let step = match next(args)(&state) {
            Next::Done => return Ok(done),
            Next::Blocked { what, remedy } => return Err(CliError::new(Exit::Refused, what, remedy)),
            Next::Wait(wait) => {
                if Instant::now() >= end {
                    return Err(late(args, &wait, patience));
                }
                progress.waiting(&[format!("waiting for {wait}")]);
                sleep(PACE).await;
                continue;
            }
            Next::Do(step) => step,
        };
        let object = step.object().to_string();
        if !taken.insert((step.word(), object.clone())) {
            return Err(CliError::new(
                Exit::Refused,
                format!("{object} was changed back by another manager during the move"),
                format!(
                    "Find out which manager writes the object and stop that manager, then repeat: {}",
                    command(args)
                ),
            ));
        }
        match write(context, &step).await {
            Ok(true) => {
                progress.step(Mark::Done, &step.to_string());
                done.push(view(&step));
                end = Instant::now().later(patience);
            }
            // It has changed since it was read.
            Ok(false) => drop(taken.remove(&(step.word(), object))),
            Err(error) => return Err(error.into()),
        }
    }
}

/// What there is. A cluster that does not answer for a moment ends nothing that is under way.
async fn patiently(context: &Deciding, progress: &mut Progress) -> Result<State, CliError> {
    let end = Instant::now().later(SILENCE);
    loop {
        match state(context).await {
            Err(error) if error.exit == Exit::Cluster && Instant::now() < end => {
                progress.waiting(&[error.what]);
                sleep(PACE).await;
            }
            result => return result,
        }
    }
}

/// Takes a step; `false` where the object is another one than was seen.
async fn write(context: &Context, step: &Step) -> Result<bool, ClusterError> {
    let writer = context.ports.writer.clone().named(VDOCTL);
    let written = match step.write() {
        Write::Merge(object, mut patch) => {
            if object.pod_spec().is_some() {
                patch["metadata"]["resourceVersion"] = object.resource_version().into();
            }
            writer
                .merge(object.api_version(), object.identity(), &patch, false)
                .await
                .map(|_| true)
        }
        Write::Apply(value) => match Object::new(value) {
            Ok(object) => writer.apply(&object, true).await.map(|_| true),
            Err(_) => Ok(false),
        },
        Write::Delete(object) => writer.delete_as_seen(object.api_version(), &object, false).await,
    };
    match written {
        Err(ClusterError::Conflict { .. }) => Ok(false),
        Err(ClusterError::Refused { source, .. }) if source.code == 409 => Ok(false),
        written => written,
    }
}

fn command(args: &Args) -> &'static str {
    if args.undo {
        "vdoctl adopt --move --undo"
    } else {
        "vdoctl adopt --move"
    }
}

fn late(args: &Args, wait: &Wait, patience: Duration) -> CliError {
    let back = if args.undo {
        ""
    } else {
        "\nTo undo the move: vdoctl adopt --move --undo"
    };
    CliError::new(
        Exit::TimedOut,
        format!("the move stopped: it waited {} s for {wait}", patience.as_secs()),
        format!(
            "vdoctl status shows what the operator waits for. To continue: {}{back}",
            command(args)
        ),
    )
}

fn view(step: &Step) -> MoveStepView {
    let object = step.object();
    MoveStepView {
        action: step.word().to_owned(),
        object: Some(ObjectView {
            api_version: object.api_version().to_owned(),
            kind: object.kind().to_owned(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
        }),
        message: step.to_string(),
    }
}

/// What a person is shown of a next step.
fn step(next: &Next) -> Option<MoveStepView> {
    match next {
        Next::Do(step) => Some(view(step)),
        Next::Wait(wait) => Some(MoveStepView {
            action: "wait".to_owned(),
            object: None,
            message: format!("wait for {wait}"),
        }),
        Next::Blocked { .. } | Next::Done => None,
    }
}

fn answer(args: &Args, progress: &Progress, context: &Deciding, steps: Vec<MoveStepView>, state: &State) -> Result<Answer, CliError> {
    let blocked = match next(args)(state) {
        Next::Blocked { what, .. } => Some(what),
        _ => None,
    };
    let nothing = steps.is_empty() && (args.undo || !state.has_old());
    let view = MoveView {
        dry_run: args.dry_run,
        undo: args.undo,
        done: !args.dry_run && matches!(next(args)(state), Next::Done),
        blocked,
        last_step: if args.undo {
            Vec::new()
        } else {
            state.last_step().unwrap_or_default()
        },
        steps,
    };
    if progress.is_data() {
        return Ok(progress.last(&view));
    }
    if args.output.or_table() != Format::Table {
        return Answer::view(args.output.or_table(), &view, String::new);
    }
    if nothing {
        let what = match args.undo {
            true => "There is no move to undo",
            false => "No driver that the VDOConfig requests runs under another name or in another namespace",
        };
        return Ok(Answer::text("").note(format!("{what} in cluster {}.", context.name)));
    }
    Ok(Answer::text(text(&view)).note(note(&view)))
}

fn text(view: &MoveView) -> String {
    let mut text = String::new();
    if view.dry_run {
        text.push_str(&format!("{}\n", head("Planned steps:")));
        text.extend(view.steps.iter().map(|step| format!("  {}\n", step.message)));
    }
    if !view.last_step.is_empty() {
        text.push_str(&format!("{}\n", head("The last step, which cannot be undone:")));
        text.extend(view.last_step.iter().map(|command| format!("  {command}\n")));
    }
    text
}

fn note(view: &MoveView) -> &'static str {
    match (view.dry_run, view.undo) {
        (true, _) => "This was a dry run, and nothing was changed.",
        (false, true) => {
            "The drivers are as they were before the move, and the VDOConfig is paused. To remove VDO: vdoctl delete --keep-drivers. To try the \
             move again: vdoctl resume, then vdoctl adopt --move."
        }
        (false, false) => {
            "VDO runs the drivers now. The old drivers are stopped. Before they are deleted, vdoctl adopt --move --undo reverts the move."
        }
    }
}
