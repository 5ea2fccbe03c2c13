// SPDX-License-Identifier: Apache-2.0
//! `vdoctl doctor --fix` and `--undo`: plans and makes the fixes in a vCenter by the steps below, prints each outcome, sets the exit code.
//!
//! ```text
//! site      the cluster and its vCenter, with an administrator logged in
//! plan      the fixes with their steps (pure, in the module `fixes`)
//! consent   each fix is shown and must be confirmed
//! make      step by step: the object is read once more, recorded, and changed
//! ```

mod consent;
mod make;
mod site;
mod store;
mod undo;

use super::super::args::{Doctor as Args, Global};
use super::super::output::View;
use super::super::progress::{Mark, Progress};
use super::super::style::{bad, good, warn};
use super::super::views::doctor::{FixOutcome, FixView, FixesView};
use super::super::{Answer, CliError, Exit, users};
use super::check::Finding;
use super::view::remedy;
use site::Site;
use vdo_admin::accounts::ChangeError;
use vdo_admin::fixes::{Fix, Step};
use vdo_api::api::Reason;
use vdo_vsphere::vsphere::SessionError;

impl FixOutcome {
    /// The code that it ends the command with; that of a failure depends on the error.
    fn exit(self) -> Exit {
        match self {
            Self::Made | Self::Nothing => Exit::Ok,
            _ => Exit::Differences,
        }
    }
}

pub(super) async fn run(args: &Args, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let (site, warning) = Site::open(args, global).await?;
    let result = match args.fixing.undo {
        true => undo::run(args, &site, progress).await,
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

/// The answer, and the operator's next look where something was changed: what became of everything. It ends with the code of what failed, else with 1 where something is left to do.
async fn answer<'a, V: View>(
    args: &Args,
    site: &Site,
    kind: fn(FixesView<'a>) -> V,
    lines: &'a [FixView],
    note: Option<String>,
) -> Result<Answer, CliError> {
    const WORST_FIRST: [Exit; 3] = [Exit::Vcenter, Exit::Refused, Exit::Differences];
    let exit = WORST_FIRST.into_iter().find(|exit| lines.iter().any(|line| line.exit == *exit));
    let changed = lines.iter().any(|line| line.outcome == FixOutcome::Made);
    let view = kind(FixesView { changed, fixes: lines });
    let answer = Answer::view(args.output().or_table(), &view, || text(lines))?;
    let failed = lines.iter().filter(|line| line.outcome == FixOutcome::Failed).count();
    let again = (failed > 0).then(|| {
        format!(
            "{} failed. Run the same command again: it continues with the remaining changes.",
            vdo_api::types::count(failed, "change")
        )
    });
    let unseen = if changed { site.look_again().await } else { None };
    let answer = note.into_iter().chain(again).chain(unseen).fold(answer, Answer::note);
    Ok(answer.exit(exit.unwrap_or(Exit::Ok)))
}

fn text(lines: &[FixView]) -> String {
    let mut text = String::new();
    // Steps that were made were shown when they were.
    for line in lines.iter().filter(|line| line.outcome != FixOutcome::Made) {
        let mark = match line.outcome {
            FixOutcome::Made | FixOutcome::Nothing => good("✓"),
            FixOutcome::Planned => warn("+"),
            FixOutcome::Declined | FixOutcome::NotTried => warn("-"),
            FixOutcome::ByHand | FixOutcome::Failed => bad("✗"),
        };
        text.push_str(&format!("{mark} {}\n", line.message));
        // The message of a failure names its step.
        let (named, before) = match line.outcome {
            FixOutcome::Failed => (1, "not tried: "),
            _ => (0, ""),
        };
        for step in line.steps.iter().skip(named) {
            text.push_str(&format!("    - {before}{step}\n"));
        }
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

impl FixView {
    fn of(fix: &Fix, outcome: FixOutcome) -> Self {
        Self {
            reason: Some(fix.reason),
            message: fix.message.clone(),
            steps: fix.steps.clone(),
            outcome,
            remedy: fix.by_hand.clone(),
            exit: outcome.exit(),
        }
    }

    /// A step that failed; a person sees it at once.
    fn failed(reason: Option<Reason>, step: &Step, error: &ChangeError, progress: &mut Progress) -> Self {
        let failed = failed(error);
        if !progress.is_data() {
            progress.step(Mark::Failed, &failed.what);
        }
        Self {
            reason,
            message: failed.what,
            steps: vec![step.clone()],
            outcome: FixOutcome::Failed,
            remedy: failed.remedy.into(),
            exit: failed.exit,
        }
    }
}

/// An error of the vCenter.
fn failed(error: &ChangeError) -> CliError {
    let failed = users::failed(error);
    let remedy = match error {
        ChangeError::Session(SessionError::Lost { .. }) => "Log in once more: run the same command again.".into(),
        ChangeError::NotPermitted { privilege, object, .. } => {
            format!("Log in as a user with {privilege} on {object}; the role Administrator has this privilege.")
        }
        ChangeError::Refused { .. } => "See the tasks and events of the object in the vSphere Client.".into(),
        _ => failed.remedy,
    };
    CliError { remedy, ..failed }
}
