// SPDX-License-Identifier: Apache-2.0
//! Asks for confirmation of `vdoctl adopt`: of each setting that would be lost (`--accept-loss`), and before objects are created (`--yes`).

use super::super::args::Adopt as Args;
use super::super::context::Context;
use super::super::error::unknown;
use super::super::object_write::Change;
use super::super::{CliError, Exit, prompt};
use vdo_adopt::{Adoption, Loss};
use vdo_api::types::count;

/// Whether each loss that was confirmed is one.
pub(super) fn known(accepted: &[String], adoption: &Adoption) -> Result<(), CliError> {
    let keys: Vec<&str> = adoption.losses.iter().map(|loss| loss.key.as_str()).collect();
    let wrong = accepted.iter().find(|key| !keys.contains(&key.as_str()));
    match wrong {
        None => Ok(()),
        Some(key) if keys.is_empty() => Err(CliError::new(
            Exit::NotFound,
            format!("there is no lost setting {key:?}: no setting would be lost"),
            "Leave out --accept-loss.",
        )),
        Some(key) => Err(unknown("lost setting", key, &keys)),
    }
}

/// Asks for each loss that was not confirmed, now or when the VDOConfig was written; without a terminal it is refused.
pub(super) fn losses(args: &Args, before: &[&str], adoption: &Adoption) -> Result<(), CliError> {
    let is_accepted = |loss: &&Loss| args.accepted.contains(&loss.key) || before.contains(&loss.key.as_str());
    let open: Vec<&Loss> = adoption.losses.iter().filter(|loss| !is_accepted(loss)).collect();
    if open.is_empty() {
        return Ok(());
    }
    let refused = |open: &[&Loss]| {
        let lines: String = open
            .iter()
            .map(|loss| format!("{}: {} ({})\n", loss.key, loss.because, loss.origin))
            .collect();
        let flags: Vec<String> = open.iter().map(|loss| format!("--accept-loss {}", quoted(&loss.key))).collect();
        CliError::new(
            Exit::Differences,
            format!("{} would be lost, so nothing was written", count(open.len(), "setting")),
            format!(
                "{lines}To accept the loss: vdoctl adopt {} {}",
                if args.moves { "--move" } else { "--write" },
                flags.join(" ")
            ),
        )
    };
    if !prompt::is_terminal() {
        return Err(refused(&open));
    }
    for loss in &open {
        let question = format!(
            "{} ({}) would be lost: {}. Continue without this setting?",
            loss.key, loss.origin, loss.because
        );
        if !prompt::yes(&question).map_err(|error| CliError::internal(&error))? {
            return Err(refused(&[loss]));
        }
    }
    Ok(())
}

/// Asks before the objects are created.
pub(super) fn creation(args: &Args, context: &Context, new: &[&Change]) -> Result<(), CliError> {
    let names: String = new.iter().map(|change| format!("  {}\n", change.after)).collect();
    asked(
        args,
        context,
        &format!("Create these objects in cluster {}?\n{names}", context.name),
    )
}

/// Asks before anything is written.
pub(super) fn asked(args: &Args, context: &Context, question: &str) -> Result<(), CliError> {
    if args.yes {
        return Ok(());
    }
    let nothing = format!("nothing was written to cluster {}", context.name);
    prompt::confirmed(question, &nothing, "Confirm with --yes.", "")
}

/// A word that a shell takes as it is.
fn quoted(key: &str) -> String {
    match key.contains(['[', ']', '*', '?', '$', '\'', '"', '\\']) {
        true => format!("'{}'", key.replace('\'', r"'\''")),
        false => key.to_owned(),
    }
}
