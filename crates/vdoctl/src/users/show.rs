// SPDX-License-Identifier: Apache-2.0
//! `vdoctl users list` and `users verify`: prints the accounts and roles that vdoctl created; reviews missing and surplus privileges.

use super::super::args::{Global, UsersAccount, UsersVcenter};
use super::super::context::Context;
use super::super::style::{bad, good, warn};
use super::super::views::users::{ListedRoleView, ListedUserView, ListedUsersView, ReviewedUserView, UsersReviewView, UsersView};
use super::super::{Answer, CliError, Exit};
use super::failed;
use super::login_and_datastores::{Looked, enter, log_in};
use super::site::{Site, Target, cluster_uid, place};
use std::collections::BTreeSet;
use vdo::cluster::ClusterError;
use vdo::reconcile::{ReconcileError, connection_objects};
use vdo_admin::accounts::{Principal, Review, Role, Via, held_by_group, review};
use vdo_api::types::count;
use vdo_vsphere::vsphere::ManagedObject;

pub(super) async fn list(args: &UsersVcenter, global: &Global) -> Result<Answer, CliError> {
    let context = Context::open(global).await?;
    let connections = match connection_objects(&context.ports.reader, &global.namespace).await {
        Err(ReconcileError::Cluster(ClusterError::NotServed { .. })) => Vec::new(),
        result => result?,
    };
    let (endpoint, _) = place(args, &context, &connections).await?;
    let cluster = cluster_uid(&context).await?;
    let (admin, warning) = log_in(args, &endpoint).await?;
    let looked = Looked::at(admin).await?;
    let result = listed(args, &looked, &cluster).await;
    looked.admin.close().await;
    result.map(|answer| warning.into_iter().fold(answer, Answer::note))
}

async fn listed(args: &UsersVcenter, looked: &Looked, cluster: &str) -> Result<Answer, CliError> {
    let accounts = looked.ours(&args.domain).await.map_err(|error| failed(&error))?;
    let live = &looked.live;
    let mut lines = Vec::new();
    let mut documents = Vec::new();
    for (principal, mark, person) in &accounts {
        let permissions = live.of(principal).count();
        let drivers: Vec<&str> = mark.drivers.iter().map(String::as_str).collect();
        let here = if mark.cluster == cluster { "this cluster" } else { &mark.cluster };
        let there = if mark.vcenter == looked.vcenter {
            String::new()
        } else {
            format!(" in vCenter {}", mark.vcenter)
        };
        let state = match (person.locked, person.disabled) {
            (true, _) => ", locked",
            (_, true) => ", disabled",
            _ => "",
        };
        lines.push(format!(
            "{principal}  {} of {here}{there}, {}{state}",
            drivers.join(","),
            count(permissions, "permission")
        ));
        documents.push(ListedUserView {
            user: principal.to_string(),
            drivers: mark.drivers.clone(),
            cluster: mark.cluster.clone(),
            vcenter: mark.vcenter.clone(),
            permissions,
            locked: person.locked,
            disabled: person.disabled,
        });
    }
    let roles: Vec<&Role> = live.roles.iter().filter(|role| role.is_ours()).collect();
    let mut shown = Vec::new();
    for role in roles {
        let users: BTreeSet<&str> = live
            .permissions
            .iter()
            .filter(|one| one.role == role.id)
            .map(|one| one.principal.as_str())
            .collect();
        let used = match users.is_empty() {
            true => "not used".to_owned(),
            false => format!("used by {}", users.iter().copied().collect::<Vec<_>>().join(", ")),
        };
        lines.push(format!("role {}  {}, {used}", role.name, count(role.privileges.len(), "privilege")));
        shown.push(ListedRoleView {
            name: role.name.clone(),
            privileges: role.privileges.clone(),
            used_by: users.into_iter().map(str::to_owned).collect(),
        });
    }
    if lines.is_empty() {
        lines.push("vdoctl has created no accounts and no roles in this vCenter".into());
    }
    let view = UsersView::Listed(ListedUsersView {
        accounts: documents,
        roles: shown,
    });
    super::answer(args.output, &view, lines.join("\n") + "\n")
}

pub(super) async fn verify(args: &UsersAccount, global: &Global) -> Result<Answer, CliError> {
    let (site, looked, warning) = enter(args, global).await?;
    let result = verified(args, &site, &looked).await;
    looked.admin.close().await;
    result.map(|answer| warning.into_iter().fold(answer, Answer::note))
}

async fn verified(args: &UsersAccount, site: &Site, looked: &Looked) -> Result<Answer, CliError> {
    let (mut text, mut documents, mut exit) = (String::new(), Vec::new(), Exit::Ok);
    for target in &site.targets {
        let principal = target.principal(args)?;
        if args.existing.is_none() && looked.person(args, &principal).await?.is_none() {
            return Err(CliError::new(
                Exit::NotFound,
                format!("there is no user {principal} for {}", target.name()),
                "To create the user: vdoctl users create. To check another user, name that user with --existing.",
            ));
        }
        let found = reviewed(args, site, looked, target, &principal).await?;
        if !found.missing.is_empty() || !found.surplus.is_empty() {
            exit = Exit::Differences;
        }
        text.push_str(&shown(&principal, target, &found));
        documents.push(ReviewedUserView {
            review: found,
            account: principal.to_string(),
        });
    }
    super::answer(args.vcenter.output, &UsersReviewView { accounts: documents }, text).map(|answer| answer.exit(exit))
}

/// What an account lacks and what it has beyond its needs.
pub(super) async fn reviewed(
    args: &UsersAccount,
    site: &Site,
    looked: &Looked,
    target: &Target,
    principal: &Principal,
) -> Result<Review, CliError> {
    let needs = looked.needs(args, site, target).await?;
    let own = looked.live.of(principal).map(|(permission, _)| permission.object.clone());
    let required = needs.required.iter().map(|one| one.object.clone());
    let granted = needs.grants.iter().map(|grant| grant.object.clone());
    let objects: BTreeSet<ManagedObject> = required.chain(granted).chain(own).collect();
    let objects: Vec<ManagedObject> = objects.into_iter().collect();
    let effective = match principal.group {
        true => held_by_group(principal, &objects, &looked.live, &looked.inventory),
        false => looked.admin.effective(principal, &objects).await.map_err(|error| failed(&error))?,
    };
    Ok(review(
        principal,
        &needs.required,
        &needs.grants,
        &effective,
        &looked.live,
        &looked.inventory,
    ))
}

fn shown(principal: &Principal, target: &Target, found: &Review) -> String {
    let mut lines = Vec::new();
    let head = format!("{principal} for {}", target.name());
    if found.missing.is_empty() && found.surplus.is_empty() {
        return format!("{} {head}: has exactly the needed privileges\n", good("✓"));
    }
    lines.push(format!(
        "{} {head}: lacks {}, has {} that it does not need",
        bad("✗"),
        count(found.missing.len(), "privilege"),
        count(found.surplus.len(), "privilege")
    ));
    for lack in &found.missing {
        lines.push(format!(
            "  {} lacks {} on {} {}",
            bad("✗"),
            lack.privilege,
            lack.object.kind,
            lack.path
        ));
    }
    for one in &found.surplus {
        lines.push(format!(
            "  {} has {} on {} {}, through {}",
            warn("!"),
            one.privilege,
            one.object.kind,
            one.path,
            one.via
        ));
    }
    if !found.missing.is_empty() {
        lines.push("  To add the missing privileges: vdoctl users create".into());
    }
    let elsewhere = found.surplus.iter().any(|one| matches!(one.via, Via::Elsewhere { .. }));
    if found.surplus.iter().any(|one| !matches!(one.via, Via::Elsewhere { .. })) {
        lines.push(
            "  To remove the privileges that the account does not need: vdoctl users shrink. This command does not change your own roles."
                .into(),
        );
    }
    if elsewhere {
        lines.push("  Privileges that come from groups: remove the account from these groups in vCenter.".into());
    }
    lines.join("\n") + "\n"
}
