// SPDX-License-Identifier: Apache-2.0
//! `vdoctl users shrink` and `vdoctl users delete`: removes surplus privileges from accounts, and deletes accounts that are not in use.

use super::super::args::{Global, UsersChange};
use super::super::progress::Progress;
use super::super::{Answer, CliError, Exit};
use super::consent::{Planned, ask, views};
use super::create::{changes, step};
use super::login_and_datastores::{Looked, enter};
use super::site::Site;
use super::store::users_of;
use super::{done, failed};
use vdo_admin::accounts::{Principal, plan_delete, plan_shrink};
use vdo_api::types::{Secret, count};

pub(super) async fn shrink(args: &UsersChange, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let (site, looked, warning) = enter(&args.account, global).await?;
    let result = async {
        let mut plans = Vec::new();
        let roles = looked.unused_roles(&args.account.vcenter.domain).await?;
        for target in &site.targets {
            let principal = target.principal(&args.account)?;
            let needs = looked.needs(&args.account, &site, target).await?;
            plans.push(Planned {
                account: format!("{principal} for {}", target.name()),
                steps: plan_shrink(&principal, &needs.grants, &looked.live, roles, |object| {
                    looked.inventory.path_of(object).to_owned()
                }),
                after: Vec::new(),
            });
        }
        carried_out(args, &looked, &plans, progress).await
    }
    .await;
    looked.admin.close().await;
    result.map(|answer| warning.into_iter().fold(answer, Answer::note))
}

pub(super) async fn delete(args: &UsersChange, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let (site, looked, warning) = enter(&args.account, global).await?;
    let result = async {
        let roles = looked.unused_roles(&args.account.vcenter.domain).await?;
        let chosen = chosen(args, &site, &looked).await?;
        let mut plans = Vec::new();
        let mut live = looked.live.clone();
        for (principal, is_ours) in &chosen {
            let users = users_of(&site, principal).await?;
            if !users.is_empty() {
                return Err(CliError::new(
                    Exit::Refused,
                    format!("{principal} is in use: {}", users.join("; ")),
                    "Give the connection another account in its Secret, or delete the drivers first: vdoctl delete.",
                ));
            }
            let steps = plan_delete(principal, *is_ours, &live, roles, |object| {
                looked.inventory.path_of(object).to_owned()
            });
            live.permissions
                .retain(|one| !principal.is(&one.principal) || one.group != principal.group);
            plans.push(Planned {
                account: principal.to_string(),
                steps,
                after: Vec::new(),
            });
        }
        if plans.is_empty() {
            return Ok(Answer::text("").note("There is no account of this cluster in this vCenter."));
        }
        carried_out(args, &looked, &plans, progress).await
    }
    .await;
    looked.admin.close().await;
    result.map(|answer| warning.into_iter().fold(answer, Answer::note))
}

/// The accounts to delete, and whether each was made by us: the one that was named, else all of this cluster.
async fn chosen(args: &UsersChange, site: &Site, looked: &Looked) -> Result<Vec<(Principal, bool)>, CliError> {
    if args.account.existing.is_some() {
        let target = site.targets.first();
        let principal = target.map(|target| target.principal(&args.account)).transpose()?;
        return Ok(principal.map(|principal| (principal, false)).into_iter().collect());
    }
    let mut all = looked.ours(&args.account.vcenter.domain).await.map_err(|error| failed(&error))?;
    all.retain(|(_, mark, _)| mark.cluster == site.cluster && mark.vcenter == looked.vcenter);
    if let Some(name) = &args.account.name {
        all.retain(|(principal, ..)| principal.name.eq_ignore_ascii_case(name));
        if all.is_empty() {
            return Err(CliError::new(
                Exit::NotFound,
                format!("there is no account {name} of this cluster in this vCenter"),
                "vdoctl users list shows the accounts.",
            ));
        }
    }
    Ok(all.into_iter().map(|(principal, ..)| (principal, true)).collect())
}

async fn carried_out(args: &UsersChange, looked: &Looked, plans: &[Planned], progress: &mut Progress) -> Result<Answer, CliError> {
    if let Some(answer) = ask(looked, args, plans, progress).await? {
        return Ok(answer);
    }
    for plan in plans {
        changes(looked, &plan.steps, &Secret::default(), progress).await?;
        if !plan.steps.is_empty() {
            step(progress, &format!("{}: {} made", plan.account, count(plan.steps.len(), "change")));
        }
    }
    super::answer(args.account.vcenter.output, &done(views(plans)), String::new())
}
