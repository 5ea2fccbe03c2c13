// SPDX-License-Identifier: Apache-2.0
//! Prints the planned changes of accounts and asks for confirmation; `--dry-run` and `--emit` of `vdoctl users`.

use super::super::args::UsersChange;
use super::super::progress::{Mark, Progress};
use super::super::views::users::{ChangedUserView, ChangedUsersView, UsersPlanView};
use super::super::{Answer, CliError, prompt};
use super::failed;
use super::login_and_datastores::Looked;
use vdo_admin::accounts::{Step, commands};
use vdo_api::types::count;

/// The steps for one account.
pub(super) struct Planned {
    /// What the account is called in a sentence.
    pub(super) account: String,
    pub(super) steps: Vec<Step>,
    /// What happens in the cluster afterwards.
    pub(super) after: Vec<String>,
}

/// The plan as a text.
fn text(plans: &[Planned]) -> String {
    let mut lines = Vec::new();
    for plan in plans {
        let number = plan.steps.len();
        lines.push(match number {
            0 => format!("{}: nothing to change in the vCenter", plan.account),
            _ => format!("{}: {}", plan.account, count(number, "change")),
        });
        lines.extend(Step::lines(&plan.steps).iter().chain(&plan.after).map(|line| format!("  {line}")));
    }
    lines.join("\n") + "\n"
}

/// Shows the plan and asks. An answer ends the command before anything is changed; so does what this administrator may not do.
pub(super) async fn ask(
    looked: &Looked,
    args: &UsersChange,
    plans: &[Planned],
    progress: &mut Progress,
) -> Result<Option<Answer>, CliError> {
    let steps = || plans.iter().flat_map(|plan| plan.steps.iter().cloned()).collect::<Vec<Step>>();
    if let Some(tool) = args.emit {
        return Ok(Some(Answer::text(commands(tool.into(), &steps())).note("Nothing was changed.")));
    }
    looked.admin.permits(&steps()).await.map_err(|error| failed(&error))?;
    if args.dry_run {
        let view = UsersPlanView(ChangedUsersView {
            changed: false,
            accounts: views(plans),
        });
        let answer = super::answer(args.account.vcenter.output, &view, text(plans))?;
        return Ok(Some(answer.note("This was a dry run; nothing was changed.")));
    }
    if !progress.is_data() {
        progress.step(Mark::Note, text(plans).trim_end());
    }
    if args.yes || plans.iter().all(|plan| plan.steps.is_empty() && plan.after.is_empty()) {
        return Ok(None);
    }
    let question = format!("Make {}?", count(steps().len(), "change"));
    let confirm = "Check the changes with --dry-run, and confirm the changes with --yes.";
    prompt::confirmed(&question, "nothing was changed", confirm, "").map(|()| None)
}

/// The plans for programs.
pub(super) fn views(plans: &[Planned]) -> Vec<ChangedUserView> {
    let view = |plan: &Planned| ChangedUserView {
        account: plan.account.clone(),
        steps: plan.steps.clone(),
        then: plan.after.clone(),
        password: None,
    };
    plans.iter().map(view).collect()
}
