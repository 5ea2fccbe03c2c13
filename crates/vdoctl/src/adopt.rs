// SPDX-License-Identifier: Apache-2.0
//! `vdoctl adopt`: converts the drivers that another tool installed into a VDOConfig, connections and Secrets; prints or creates these.
//!
//! ```text
//! workloads -> what they mount and name -> charts of their versions -> objects and losses -> what the operator would do with them
//!   -> printed, or confirmed and created
//! ```

mod confirm;
mod find;
mod moving;
mod plan_after_adoption;
mod show;

use super::args::{Adopt as Args, Format, Global};
use super::context::Context;
use super::object_write::Change;
use super::printer::Printer;
use super::progress::{Mark, Progress};
use super::{Answer, CliError, Exit};
use vdo_adopt::Adoption;
use vdo_api::api::ACCEPTED_LOSSES;
use vdo_api::types::count;
use vdo_core::manifest::Object;

pub(super) async fn run(args: &Args, global: &Global, printer: &Printer) -> Result<Answer, CliError> {
    let mut progress = Progress::new(printer, args.output.or_table());
    let answer = match args.moves {
        true => moving::moved(args, global, &mut progress).await,
        false => adopt(args, global, &mut progress).await,
    };
    match progress.end() {
        Some(exit) => answer.map(|answer| answer.exit(exit)),
        None => answer,
    }
}

async fn adopt(args: &Args, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let reading = async {
        let context = Context::open(global).await?.choosing_from(&args.index, global).await?;
        let found = find::found(&context, &args.config).await?;
        Ok((context, found))
    };
    let (mut context, found) = super::within(global, reading).await?;
    let adoption = &found.adoption;
    confirm::known(&args.accepted, adoption)?;
    if !args.write || args.dry_run {
        let seen = if args.output.format == Some(Format::Yaml) {
            None
        } else {
            Some(plan_after_adoption::picture(&mut context, global, adoption).await)
        };
        let (picture, unknown) = match seen.transpose() {
            Ok(picture) => (picture, None),
            Err(error) => (
                None,
                Some(format!(
                    "It is not known how the objects of the drivers would change: {}",
                    error.what
                )),
            ),
        };
        let answer = show::answer(args, &found, picture.as_ref(), false)?;
        let answer = context.matrix_lines().chain(unknown).fold(answer, Answer::note);
        return Ok(next(answer, args, adoption));
    }
    let changes = changes(&context, adoption).await?;
    confirm::losses(args, &[], adoption)?;
    let new: Vec<&Change> = changes.iter().filter(|change| change.before.is_none()).collect();
    if !new.is_empty() {
        confirm::creation(args, &context, &new)?;
    }
    for change in &new {
        change.make(&context).await?;
        progress.step(Mark::Done, &format!("{} was created", change.after));
    }
    let said = match new.len() {
        0 => "All objects are in sync already.".to_owned(),
        made => format!(
            "{} created; the operator continues by itself, and vdoctl status --watch shows the progress.",
            count(made, "object")
        ),
    };
    if args.output.or_table() == Format::Table {
        return Ok(Answer::text("").note(said));
    }
    Ok(show::answer(args, &found, None, true)?.note(said))
}

/// What is created; the VDOConfig names the losses, each of which a person confirms before anything is written. Objects that are there already
/// stay as they are.
///
/// # Errors
/// When one of them is another than that of the adoption: who wrote it had a reason.
async fn changes(context: &Context, adoption: &Adoption) -> Result<Vec<Change>, CliError> {
    let mut all = Vec::new();
    let accepted: Vec<&str> = adoption.losses.iter().map(|loss| loss.key.as_str()).collect();
    for document in &adoption.documents {
        let mut document = document.object();
        if document["kind"] == "VDOConfig" && !accepted.is_empty() {
            document["metadata"]["annotations"][ACCEPTED_LOSSES] = accepted.join(" ").into();
        }
        let object = Object::new(document).map_err(|error| CliError::internal(&error))?;
        let change = Change::apply(context, &object).await?;
        if change.before.is_some() && !change.is_none() {
            return Err(CliError::new(
                Exit::Refused,
                format!("{object} already exists and differs from the object to be created, so nothing was written"),
                "Compare the object with vdoctl adopt -o yaml. Delete the object, or name another VDOConfig with --config.",
            ));
        }
        all.push(change);
    }
    Ok(all)
}

/// What comes next, after everything was shown.
fn next(answer: Answer, args: &Args, adoption: &Adoption) -> Answer {
    let losses = adoption.losses.iter().filter(|loss| !args.accepted.contains(&loss.key)).count();
    let answer = match losses {
        0 => answer,
        losses => answer
            .note(format!("{} would be lost.", count(losses, "setting")))
            .exit(Exit::Differences),
    };
    match args.output.format {
        Some(Format::Yaml) if !args.show_secrets => {
            answer.note("Secrets are left out, so do not apply this output with kubectl; --show-secrets prints them.")
        }
        Some(Format::Yaml | Format::Json | Format::Name) => answer,
        _ => answer.note("vdoctl adopt -o yaml prints the objects, vdoctl adopt --write creates them."),
    }
}
