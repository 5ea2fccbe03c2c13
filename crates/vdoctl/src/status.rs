// SPDX-License-Identifier: Apache-2.0
//! `vdoctl status`: reads the state that the operator has reported, and prints it once, with `--watch`, or from a support bundle.
//!
//! It uses only what the operator has written, so that it needs few rights and reports the same as the operator.

mod attention;
mod clusters;
mod judgement;
mod last_drift;
mod matrix;
mod next;
mod nodes;
mod problem;
mod read_status;
mod status_screen;

use super::args::{Format, Global, Status as Args};
use super::context::{Context, Deployed, now};
use super::printer::Printer;
use super::views::status::StatusView;
use super::wrap::columns_of;
use super::{Answer, CliError, Exit};
pub(super) use attention::attention;
pub(super) use clusters::row;
pub(super) use judgement::{Judgement, Kind, Need};
use k8s_openapi::jiff::Timestamp;
pub(super) use problem::Severity;
pub(super) use read_status::{Config, Picture};
use std::path::Path;
use std::time::Duration;
use vdo_api::api::Health;

/// How often `--watch` looks.
const PACE: Duration = Duration::from_secs(2);

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    if let Some(file) = &args.from {
        return recorded(file, args.output.or_table());
    }
    let context = Context::open(global).await?;
    Ok(look(&context, args).await?.0)
}

/// The same of several clusters.
pub(super) async fn of_several(args: &Args, global: &Global) -> Result<Answer, CliError> {
    clusters::run(args, global).await
}

/// Shows the status whenever it is another one, until interrupted. That the cluster does not answer once does not end it. On
/// a terminal the ages go on counting; a pipe hears of real changes only.
pub(super) async fn watch(args: &Args, global: &Global, printer: &mut Printer) -> Result<Answer, CliError> {
    let context = Context::open(global).await?;
    let mut last = None;
    loop {
        let silent = |what: String| (Answer::text("").note(&what), Err(what));
        let (answer, state) = match tokio::time::timeout(global.timeout(), look(&context, args)).await {
            Ok(Ok((answer, view))) => (answer, Ok(view)),
            Ok(Err(error)) if error.exit == Exit::Cluster => silent(error.what),
            Ok(Err(error)) => return Err(error),
            Err(_) => silent(CliError::timed_out(global.timeout()).what),
        };
        let new = last.as_ref() != Some(&state);
        if let Err(exit) = printer.redraw(&answer, new, last.is_some()) {
            return Ok(Answer::text("").exit(exit));
        }
        last = Some(state);
        tokio::time::sleep(PACE).await;
    }
}

/// The status that a support bundle holds, as it was when that was made.
fn recorded(file: &Path, format: Format) -> Result<Answer, CliError> {
    let bundle = super::support::read(file)?;
    let view: StatusView = bundle.view("status")?;
    let answer = shown(&view, format, bundle.taken().unwrap_or_else(now))?;
    Ok(bundle.answer("status", answer))
}

fn shown(view: &StatusView, format: Format, now: Timestamp) -> Result<Answer, CliError> {
    Answer::view(format, view, || status_screen::draw(view, layout(format), now))
}

/// How the screen is written.
fn layout(format: Format) -> status_screen::Layout {
    status_screen::Layout {
        columns: columns_of(&std::io::stdout()),
        wide: format == Format::Wide,
    }
}

/// What is seen of a cluster, and how the command ends that shows it.
struct Seen {
    view: StatusView,
    exit: Exit,
    /// What is to be said besides, a line each.
    talk: Vec<String>,
}

/// What is to be shown, and the state behind it.
async fn look(context: &Context, args: &Args) -> Result<(Answer, StatusView), CliError> {
    let seen = seen(context).await?;
    let answer = shown(&seen.view, args.output.or_table(), now())?.exit(seen.exit);
    Ok((seen.talk.into_iter().fold(answer, Answer::note), seen.view))
}

async fn seen(context: &Context) -> Result<Seen, CliError> {
    let deployed = context.find_config().await?;
    let picture = Picture::take(context, &deployed).await?;
    let view = picture.view(now());
    let (exit, talk) = match &deployed {
        Deployed::Config(config) => {
            let health = config.status.as_ref().and_then(|status| status.health);
            let own = view.config.as_ref();
            let old = own.is_some_and(|config| config.stuck.is_some() || config.silence.is_some());
            let exit = match health {
                _ if old || view.has_faults() => Exit::Differences,
                Some(Health::Healthy | Health::Paused | Health::Progressing) => Exit::Ok,
                Some(Health::Degraded | Health::Blocked | Health::Unknown) | None => Exit::Differences,
            };
            (exit, Vec::new())
        }
        other => {
            let missing = context.no_config_error(other);
            (missing.exit, vec![missing.what, format!("  {}", missing.remedy)])
        }
    };
    Ok(Seen { view, exit, talk })
}

/// What a person has to do before the operator acts on what a verb has just written, if anything. It is only looked for: the verb has done its
/// work, so what cannot be seen is not reported.
pub(super) async fn needed(context: &Context) -> Option<Need> {
    let deployed = context.find_config().await.ok()?;
    match Picture::take(context, &deployed).await.ok()?.judge(false, now()) {
        Judgement::Person(need) => Some(need),
        _ => None,
    }
}

/// The answer of a verb that hands something to the operator: what it did, and what comes of that. Where no operator acts, that is what it ends
/// with; a need of another kind is added where it is not `settled` by what was written.
pub(super) fn handed(done: &str, need: Option<Need>, settled: &[Kind]) -> Answer {
    let follow = "vdoctl status --watch shows the progress";
    match need.filter(|need| !settled.contains(&need.kind)) {
        None => Answer::text("").note(format!("{done}; {follow}")),
        Some(need) => {
            let exit = if need.kind == Kind::Operator { Exit::Differences } else { Exit::Ok };
            let answer = Answer::text("").note(done).note(format!("But {}.", need.what));
            let remedy = need.remedy.lines().map(|line| format!("  {line}"));
            remedy.fold(answer, Answer::note).exit(exit)
        }
    }
}
