// SPDX-License-Identifier: Apache-2.0
//! `vdoctl users create`: creates accounts with only the privileges that the features in use need, checks them, and writes their Secrets.

use super::super::args::{Global, UsersAccount, UsersCreate};
use super::super::doctor::check::{Check, Mark as Verdict};
use super::super::doctor::connection_subject;
use super::super::doctor::exit_code::worst;
use super::super::error::capital;
use super::super::password_file::password;
use super::super::progress::{Mark, Progress};
use super::super::{Answer, CliError, Exit};
use super::consent::{Planned, ask, views};
use super::login_and_datastores::{Looked, enter};
use super::site::{Site, Target};
use super::store::{new_password, store, stored, taken, writable};
use super::{done, failed, next_command, now};
use kube::ResourceExt;
use std::collections::BTreeSet;
use vdo::reconcile::connection::{Permission, examine, inputs, inspect};
use vdo_admin::accounts::{ChangeError, Principal, Step, plan_create};
use vdo_api::api::{ConditionType, Reason};
use vdo_api::facts::Credentials;
use vdo_api::types::{Remedy as _, Secret, count};
use vdo_vsphere::vcenter::Budget;
use vdo_vsphere::vsphere::{ConnectionReport, InspectionRequest, SessionError, report};

const GOES_ON: &str = "run the same command again: the command continues where it stopped.";

/// An account, the way to it, and what its Secret is going to hold.
pub(super) struct Work<'a> {
    pub(super) target: &'a Target,
    pub(super) principal: Principal,
    /// The password that is known before anything is changed.
    pub(super) known: Option<Secret>,
    /// Whether the Secret is written afterwards.
    pub(super) stores: bool,
}

pub(super) async fn run(args: &UsersCreate, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let (site, looked, warning) = enter(&args.change.account, global).await?;
    let result = create(args, &site, &looked, progress).await;
    looked.admin.close().await;
    let (answer, made) = result?;
    let answer = warning.into_iter().fold(answer, Answer::note);
    let next = made.then(|| next_command::command(&site, args, global)).flatten();
    Ok(next.into_iter().fold(answer, Answer::note))
}

/// The same for one account of all drivers, before there is a connection. With the name of its Secret, unless nothing was to be changed.
pub(crate) async fn create_shared(
    args: &UsersCreate,
    global: &Global,
    progress: &mut Progress,
) -> Result<(Answer, Option<String>), CliError> {
    let (site, looked, warning) = enter(&args.change.account, global).await?;
    let result = create(args, &site, &looked, progress).await;
    looked.admin.close().await;
    let (answer, made) = result?;
    let answer = warning.into_iter().fold(answer, Answer::note);
    let target = site.targets.first().filter(|_| made);
    Ok((answer, target.map(|target| target.secret.name.to_string())))
}

/// The answer, and whether the accounts are there now.
async fn create(args: &UsersCreate, site: &Site, looked: &Looked, progress: &mut Progress) -> Result<(Answer, bool), CliError> {
    let mut plans = Vec::new();
    let mut works = Vec::new();
    let mut talk = Vec::new();
    let mut roles = BTreeSet::new();
    for target in &site.targets {
        let (work, mut planned, note) = plan(args, site, looked, target).await?;
        // A role that another account of this command needs too is created once.
        planned
            .steps
            .retain(|step| !matches!(step, Step::CreateRole(role) if !roles.insert(role.name.clone())));
        talk.extend(note);
        plans.push(planned);
        works.push(work);
    }
    if let Some(answer) = ask(looked, &args.change, &plans, progress).await? {
        return Ok((talk.into_iter().fold(answer, Answer::note), false));
    }
    for work in works.iter().filter(|work| work.stores) {
        if let Some(namespace) = writable(&site.context, &work.target.secret, progress).await? {
            step(progress, &format!("{namespace} was created"));
        }
    }
    let mut shown = Vec::new();
    let mut accounts = views(&plans);
    for (at, (work, planned)) in works.iter().zip(&plans).enumerate() {
        let password = carry_out(site, looked, work, planned, progress).await?;
        let Some(password) = password else {
            talk.push(format!(
                "vdoctl did not log in as {}, because it does not know the password.",
                work.principal
            ));
            continue;
        };
        verified(site, work, &args.change.account, &password, progress).await?;
        if work.stores {
            let new = Credentials {
                user: work.principal.to_string(),
                password: password.clone(),
            };
            store(site, work.target, &new, work.target.seen(), None, progress).await?;
            step(
                progress,
                &format!("Secret {} contains the credentials of {}", work.target.place(), work.principal),
            );
        }
        if args.show_once && work.known.is_none() {
            shown.push(format!("password of {}: {}", work.principal, password.expose()));
            accounts[at].password = Some(password.expose().to_owned());
        }
    }
    let text = shown.iter().map(|line| format!("{line}\n")).collect();
    let answer = super::answer(args.change.account.vcenter.output, &done(accounts), text)?;
    Ok((talk.into_iter().fold(answer, Answer::note), true))
}

/// A line that stays, where people read.
pub(super) fn step(progress: &mut Progress, text: &str) {
    if !progress.is_data() {
        progress.step(Mark::Done, text);
    }
}

/// What is to be done for one account, and what to say of it.
async fn plan<'a>(
    args: &UsersCreate,
    site: &Site,
    looked: &Looked,
    target: &'a Target,
) -> Result<(Work<'a>, Planned, Option<String>), CliError> {
    let account = &args.change.account;
    let principal = target.principal(account)?;
    let needs = looked.needs(account, site, target).await?;
    let person = looked.person(account, &principal).await?;
    let stored = target.stored.as_ref().filter(|stored| principal.is(&stored.credentials.user));
    let known = match &args.account_password_file {
        Some(file) => Some(password(Some(file), &principal.to_string())?.0),
        None => stored.map(|stored| stored.credentials.password.clone()),
    };
    let mark = account.existing.is_none().then_some(&target.mark);
    let steps = plan_create(
        &principal,
        mark,
        person.as_ref(),
        known.is_some() && person.is_some(),
        &needs.grants,
        &looked.live,
    )
    .map_err(|error| CliError::new(Exit::Refused, error.to_string(), error.remedy().unwrap_or_default()))?;
    let new = steps
        .iter()
        .any(|step| matches!(step, Step::CreateUser { .. } | Step::SetPassword { .. }));
    let known = known.filter(|_| !new);
    if new {
        site.alone(target)?;
    }
    let stores = new || args.account_password_file.is_some();
    let mut after = Vec::new();
    if stores {
        let place = target.place();
        if !site.has_namespace(&target.secret.namespace) {
            after.push(format!("create Namespace {}", target.secret.namespace));
        }
        let old = target.stored.as_ref().map(|stored| stored.credentials.user.as_str());
        after.push(match old.filter(|old| !principal.is(old)) {
            Some(old) => format!("log in as {principal}, check its privileges, and write Secret {place} in place of {old}"),
            None => format!("log in as {principal}, check its privileges, and write Secret {place}"),
        });
    }
    let note = (needs.found.0 < needs.found.1).then(|| {
        let (found, all) = needs.found;
        format!(
            "{found} of {} are virtual machines in this vCenter; nodes in another vCenter need permissions there.",
            count(all, "node")
        )
    });
    let planned = Planned {
        account: format!("{principal} for {}", target.name()),
        steps,
        after,
    };
    let work = Work {
        target,
        principal,
        known,
        stores,
    };
    Ok((work, planned, note))
}

/// Makes the changes, one after the other. The password of the account, where it is known.
pub(super) async fn carry_out(
    site: &Site,
    looked: &Looked,
    work: &Work<'_>,
    planned: &Planned,
    progress: &mut Progress,
) -> Result<Option<Secret>, CliError> {
    let new = planned
        .steps
        .iter()
        .any(|step| matches!(step, Step::CreateUser { .. } | Step::SetPassword { .. }));
    let password = match (&work.known, new) {
        (_, true) => {
            let policy = looked
                .admin
                .policy(&work.principal.domain, now())
                .await
                .map_err(|error| failed(&error))?;
            Some(new_password(&policy)?)
        }
        (known, false) => known.clone(),
    };
    if planned.steps.iter().any(|step| matches!(step, Step::SetPassword { .. })) {
        unused(site, work).await?;
    }
    let none = Secret::default();
    changes(looked, &planned.steps, password.as_ref().unwrap_or(&none), progress).await?;
    if !planned.steps.is_empty() {
        step(
            progress,
            &format!("{}: {} made", planned.account, count(planned.steps.len(), "change")),
        );
    }
    Ok(password)
}

/// That no one has written the account into the Secret meanwhile, with a password that a new one would end.
async fn unused(site: &Site, work: &Work<'_>) -> Result<(), CliError> {
    let found = stored(&site.context, &work.target.secret).await?;
    match found.filter(|found| work.principal.is(&found.credentials.user)) {
        None => Ok(()),
        Some(found) => Err(taken(&found.credentials.user, &work.target.place())),
    }
}

/// Makes changes in a vCenter, and says how far it is.
pub(super) async fn changes(looked: &Looked, steps: &[Step], password: &Secret, progress: &mut Progress) -> Result<(), CliError> {
    for (done, one) in steps.iter().enumerate() {
        if let Err(error) = looked.admin.carry_out(one, password, now()).await {
            // A lost session has no other remedy.
            let lost = matches!(error, ChangeError::Session(SessionError::Lost { .. }));
            let error = failed(&error);
            let what = format!("{} (after {done} of {})", error.what, count(steps.len(), "change"));
            let remedy = match lost {
                true => capital(GOES_ON),
                false => format!("{}\nThen {GOES_ON}", error.remedy),
            };
            return Err(CliError { what, remedy, ..error });
        }
        if done % 20 == 19 && !progress.is_data() {
            progress.waiting(&[format!("{} of {} made", done + 1, count(steps.len(), "change"))]);
        }
    }
    Ok(())
}

/// Logs in as the account and makes all checks of a connection. Only what the vCenter gives counts.
pub(super) async fn verified(
    site: &Site,
    work: &Work<'_>,
    args: &UsersAccount,
    password: &Secret,
    progress: &mut Progress,
) -> Result<(), CliError> {
    let target = work.target;
    let request = InspectionRequest {
        server: site.endpoint.server.clone(),
        datacenters: target
            .connection
            .as_ref()
            .map(|one| one.spec.datacenters.clone())
            .unwrap_or_default(),
        nodes: site.nodes.clone(),
        requirements: target.requirements.clone(),
        claim: None,
        counted: None,
        alone: site.connections.len() < 2,
        surplus: false,
        machine_tags: false,
        index: None,
    };
    let reported = match (&target.connection, work.known.is_some() && args.existing.is_none()) {
        // A password that is in use is only sent where the vCenter has accepted it before.
        (Some(connection), true) => {
            let inputs = inputs(&site.context.ports.reader, connection).await;
            let seen = inspect(
                connection,
                &inputs,
                request,
                Permission::Recorded(&site.connections, now()),
                &Budget::default(),
            )
            .await;
            report(&seen, false, now())
        }
        _ => {
            let credentials = Credentials {
                user: work.principal.to_string(),
                password: password.clone(),
            };
            examine(&site.endpoint, &credentials, request, now(), &Budget::default()).await
        }
    };
    judge(work, &reported, progress)
}

fn judge(work: &Work<'_>, reported: &ConnectionReport, progress: &mut Progress) -> Result<(), CliError> {
    let name = work
        .target
        .connection
        .as_ref()
        .map_or_else(|| work.principal.to_string(), ResourceExt::name_any);
    let subject = connection_subject(&name, reported);
    let found = |kind: ConditionType| subject.checks.iter().find(|check| check.check == kind.as_str());
    let stage = |check: &Check| {
        let exit = worst(std::slice::from_ref(&subject), &[]);
        CliError::new(
            if exit == Exit::Ok { Exit::Differences } else { exit },
            format!("{} was created, but {}; no Secret was written", work.principal, check.message),
            match work.known {
                // The vCenter has just been given the password.
                None if check.reason == Reason::InvalidCredentials.as_str() => {
                    format!(
                        "Another administrator has just changed the password of the account. {}",
                        capital(GOES_ON)
                    )
                }
                _ => format!("{}\nThen {GOES_ON}", check.remedy),
            },
        )
    };
    for kind in [ConditionType::Authenticated, ConditionType::Authorized] {
        if let Some(check) = found(kind).filter(|check| check.status == Verdict::False) {
            return Err(stage(check));
        }
    }
    if found(ConditionType::Authenticated).is_none_or(|check| check.status != Verdict::True) {
        // A password that the operator has not tried yet is the operator's to try.
        step(
            progress,
            &format!(
                "vdoctl did not check the login of {}; vdoctl doctor shows the result of the operator",
                work.principal
            ),
        );
        return Ok(());
    }
    let passed = subject.count(Verdict::True);
    step(
        progress,
        &format!("logged in as {}: {} passed", work.principal, count(passed, "check")),
    );
    // What is wrong beside the account is for `vdoctl doctor`.
    let others = subject
        .checks
        .iter()
        .filter(|check| check.status == Verdict::False && !check.is_not_requested());
    for check in others.filter(|_| !progress.is_data()).collect::<Vec<_>>() {
        progress.step(Mark::Failed, &format!("{}: {}", check.check, check.message));
    }
    Ok(())
}
