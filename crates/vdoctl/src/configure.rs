// SPDX-License-Identifier: Apache-2.0
//! `vdoctl configure`: runs its verbs, and writes or (with `--dry-run`) shows the changes of objects, after a dry run and all checks.
//!
//! ```text
//! flags -> objects -> tried in the API server -> checked as if they were there -> written
//! ```

pub(super) mod connection;
mod drivers;
mod matrix;

use super::args::{Configure as Args, ConfigureVerb, Global, Writing};
use super::context::Context;
use super::object_write::Change;
use super::printer::Printer;
use super::progress::{Mark, Progress};
use super::status::{Kind, needed};
use super::views::configure::ConfiguredView;
use super::wait::after;
use super::{Answer, CliError, field_view};

pub(super) async fn run(args: &Args, global: &Global, printer: &Printer) -> Result<Answer, CliError> {
    let writing = match &args.verb {
        ConfigureVerb::Connection(args) => args.writing,
        ConfigureVerb::Drivers(args) => args.writing,
        ConfigureVerb::Matrix(args) => args.writing,
    };
    let mut progress = Progress::new(printer, writing.output.or_table());
    let answer = match &args.verb {
        ConfigureVerb::Connection(args) => connection::run(args, global, &mut progress).await,
        ConfigureVerb::Drivers(args) => drivers::run(args, global, &mut progress).await,
        ConfigureVerb::Matrix(args) => matrix::run(args, global, &mut progress).await,
    };
    let answer = match progress.end() {
        Some(exit) => answer.map(|answer| answer.exit(exit)),
        None => answer,
    };
    after(writing.waits(), answer, writing.output.or_table(), global, printer).await
}

/// Writes the changes in their order, or shows them.
pub(super) async fn write(context: &Context, changes: &[Change], writing: Writing, progress: &mut Progress) -> Result<Answer, CliError> {
    for change in changes {
        if !writing.dry_run {
            change.make(context).await?;
        }
        progress.step(
            if writing.dry_run { Mark::Note } else { Mark::Done },
            &line(change, writing.dry_run),
        );
    }
    let said = match (writing.dry_run, changes.iter().all(Change::is_none)) {
        (true, _) => vec!["Nothing was written.".to_owned()],
        (false, true) => vec!["Everything is in sync already.".to_owned()],
        (false, false) => goes_on(context).await,
    };
    if progress.is_data() {
        return Ok(progress.last(&ConfiguredView {
            dry_run: writing.dry_run,
            changes: changes.iter().map(Change::view).collect(),
        }));
    }
    Ok(said.into_iter().fold(Answer::text(""), Answer::note))
}

/// What comes of a change that is written: whether an operator acts on it. What it has reported is about what was asked for before.
async fn goes_on(context: &Context) -> Vec<String> {
    match needed(context)
        .await
        .filter(|need| matches!(need.kind, Kind::Operator | Kind::Paused))
    {
        None => vec!["The operator continues by itself; vdoctl status --watch shows the progress.".to_owned()],
        Some(need) => vec![format!("The change has no effect yet: {}.", need.what), need.remedy],
    }
}

/// What becomes, or became, of an object, with its fields.
fn line(change: &Change, dry_run: bool) -> String {
    let word = match (&change.before, change.is_none(), dry_run) {
        (_, true, _) => "is in sync",
        (None, _, true) => "would be created",
        (None, _, false) => "was created",
        (Some(_), _, true) if change.recreates() => "would be deleted and recreated",
        (Some(_), _, false) if change.recreates() => "was deleted and recreated",
        (Some(_), _, true) => "would be changed",
        (Some(_), _, false) => "was changed",
    };
    let fields: String = change.fields().iter().map(field_view::lines).collect();
    format!("{} {word}\n{fields}", change.after).trim_end().to_owned()
}
