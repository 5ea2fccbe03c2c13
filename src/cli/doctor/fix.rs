//! `doctor --fix` and `doctor --undo`: what a command can fix in a vCenter, and the way back.
//!
//! ```text
//! site      the cluster and its vCenter, with an administrator logged in
//! plan      the fixes with their steps (pure, in the room `fixes`)
//! consent   each fix is shown and asked about
//! make      step by step: what is changed is looked at once more, recorded, and changed
//! ```

mod consent;
mod make;
mod site;
mod store;
mod taken_back;

use super::super::args::{Doctor as Args, Global};
use super::super::output::document;
use super::super::progress::Progress;
use super::super::style::{bad, good, warn};
use super::super::{Answer, CliError, Exit, users};
use super::check::Finding;
use super::view::remedy;
use crate::accounts::ChangeError;
use crate::api::Reason;
use crate::fixes::{Fix, Step};
use crate::vsphere::{Advice, SessionError};
use serde::Serialize;
use serde_json::json;
use site::Site;

/// What became of a fix, or of what was made before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    /// It would be made.
    Planned,
    /// It was made.
    Made,
    /// A person did not want it.
    Declined,
    /// No command can do it, or not now.
    ByHand,
    /// There was nothing to be done any more.
    Nothing,
}

/// A line of the answer, with what belongs to it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    message: String,
    steps: Vec<Step>,
    outcome: Outcome,
    remedy: Advice,
}

pub(super) async fn run(args: &Args, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let (site, warning) = Site::open(args, global).await?;
    let result = match args.fixing.undo {
        true => taken_back::run(args, &site, progress).await,
        false => make::run(args, &site, progress).await,
    };
    site.admin.close().await;
    let end = progress.end();
    let answer = warning.into_iter().fold(result?, Answer::note);
    Ok(match end {
        Some(exit) => answer.exit(exit),
        None => answer,
    })
}

/// The answer: what became of everything, and 1 where something is left to do.
fn answer(args: &Args, kind: &'static str, lines: &[Line], note: Option<String>) -> Result<Answer, CliError> {
    let left = lines.iter().any(|line| !matches!(line.outcome, Outcome::Made | Outcome::Nothing));
    let changed = lines.iter().any(|line| line.outcome == Outcome::Made);
    let fields = || document(kind, json!({"changed": changed, "fixes": lines}));
    let answer = Answer::formatted(args.output().or_table(), fields, || text(lines))?;
    let answer = note.into_iter().fold(answer, Answer::note);
    Ok(answer.exit(if left { Exit::Differences } else { Exit::Ok }))
}

fn text(lines: &[Line]) -> String {
    let mut text = String::new();
    // Steps that were made were shown when they were.
    for line in lines.iter().filter(|line| line.outcome != Outcome::Made) {
        let mark = match line.outcome {
            Outcome::Made | Outcome::Nothing => good("✓"),
            Outcome::Planned => warn("+"),
            Outcome::Declined => warn("-"),
            Outcome::ByHand => bad("✗"),
        };
        text.push_str(&format!("{mark} {}\n", line.message));
        line.steps.iter().for_each(|step| text.push_str(&format!("    - {step}\n")));
        if !line.remedy.is_empty() {
            let finding = Finding {
                reason: line.reason.map(|reason| reason.as_str().to_owned()).unwrap_or_default(),
                message: String::new(),
                remedy: line.remedy.clone(),
            };
            text.push_str(&remedy(&finding));
        }
    }
    text
}

impl Line {
    fn of(fix: &Fix, outcome: Outcome) -> Self {
        Self {
            reason: Some(fix.reason),
            message: fix.message.clone(),
            steps: fix.steps.clone(),
            outcome,
            remedy: fix.by_hand.clone(),
        }
    }
}

/// An error of the vCenter: what was done until then is recorded, so the same command goes on.
fn failed(error: &ChangeError, made: usize) -> CliError {
    let failed = users::failed(error);
    let again = "run the same command again: it goes on where this one stopped.";
    let first = match error {
        ChangeError::Session(SessionError::Lost { .. }) => None,
        ChangeError::NotPermitted { privilege, object, .. } => Some(format!(
            "Log in as a user with {privilege} on {object}; the role Administrator has it."
        )),
        ChangeError::Refused { .. } => Some("See the tasks and events of the object in the vSphere Client.".into()),
        _ => Some(failed.remedy),
    };
    let remedy = match first {
        Some(first) => format!("{first}\nThen {again}"),
        None => format!("Log in once more: {again}"),
    };
    let what = match made {
        0 => failed.what,
        made => format!("{} (after {})", failed.what, crate::types::count(made, "change")),
    };
    CliError { what, remedy, ..failed }
}
