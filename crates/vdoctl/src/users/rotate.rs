// SPDX-License-Identifier: Apache-2.0
//! `vdoctl users rotate`: creates a second account, waits until the drivers use it, and deletes the first account.
//!
//! The vCenter accepts both accounts until the drivers use the new one, so no password is refused wherever the command is interrupted.
//! An annotation of the Secret names the old account until it is deleted.

use super::super::args::{Global, UsersChange};
use super::super::progress::Progress;
use super::super::{Answer, CliError, Exit};
use super::consent::{Planned, ask, views};
use super::create::{Work, carry_out, changes, step, verified};
use super::login_and_datastores::{Looked, enter};
use super::site::{Site, Target};
use super::store::{driver_secrets, rotated_from, store};
use super::{done, failed, now};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use vdo::cluster::{Select, Watch, list};
use vdo_admin::accounts::{Principal, plan_create, plan_delete};
use vdo_api::api::{ConditionType, Conditions, MANAGED_BY, MANAGED_BY_LABEL};
use vdo_api::facts::Credentials;
use vdo_api::types::{Later as _, Remedy as _, Secret};
use vdo_core::health::{Verdict, assess};

/// How often is looked at the drivers.
const PACE: Duration = Duration::from_secs(1);
/// So many looks in a row have to show the new account: a Secret is written a moment before the pods that read it.
const STEADY: usize = 3;

pub(super) async fn run(args: &UsersChange, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    if args.account.existing.is_some() || args.account.name.is_some() {
        return Err(CliError::new(
            Exit::Usage,
            "vdoctl rotates only accounts that it created and named",
            "For another user, change the password in its identity source, and write the new password into the Secret; the drivers then use it.",
        ));
    }
    let (site, looked, warning) = enter(&args.account, global).await?;
    let mut answer = Ok(Answer::text(""));
    for target in &site.targets {
        answer = rotate(args, global, &site, &looked, target, progress).await;
        if answer.is_err() {
            break;
        }
    }
    looked.admin.close().await;
    answer.map(|answer| warning.into_iter().fold(answer, Answer::note))
}

async fn rotate(
    args: &UsersChange,
    global: &Global,
    site: &Site,
    looked: &Looked,
    target: &Target,
    progress: &mut Progress,
) -> Result<Answer, CliError> {
    let names = target.mark.names().map(|name| Principal::user(&name, &args.account.vcenter.domain));
    let stored = target.stored.as_ref();
    let at = stored.and_then(|stored| names.iter().position(|name| name.is(&stored.credentials.user)));
    let (Some(at), Some(stored)) = (at, stored) else {
        let content = stored.map_or_else(
            || "no user".to_owned(),
            |stored| format!("{}, which is not an account that vdoctl created and named", stored.credentials.user),
        );
        return Err(CliError::new(
            Exit::Refused,
            format!("Secret {} contains {content}", target.place()),
            "Create an account first: vdoctl users create.",
        ));
    };
    let (now_used, other) = (&names[at], &names[1 - at]);
    site.alone(target)?;
    if let Some(old) = rotated_from(&site.context, target).await? {
        // An earlier run was stopped after the Secret was written: what is left is the old account.
        let old = old
            .parse::<Principal>()
            .ok()
            .filter(|old| old == other)
            .unwrap_or_else(|| other.clone());
        return finish(args, global, site, looked, target, &stored.credentials, &old, progress).await;
    }
    let needs = looked.needs(&args.account, site, target).await?;
    let person = looked.person(&args.account, other).await?;
    let steps = plan_create(other, Some(&target.mark), person.as_ref(), false, &needs.grants, &looked.live)
        .map_err(|error| CliError::new(Exit::Refused, error.to_string(), error.remedy().unwrap_or_default()))?;
    let plans = [Planned {
        account: format!("{other} for {}", target.name()),
        steps,
        after: vec![
            format!("log in as {other}, check its privileges, and write Secret {}", target.place()),
            "wait until the drivers use the new account".into(),
            format!("delete {now_used} with its permissions and end its sessions"),
        ],
    }];
    if let Some(answer) = ask(looked, args, &plans, progress).await? {
        return Ok(answer);
    }
    let work = Work {
        target,
        principal: other.clone(),
        known: None,
        stores: true,
    };
    let password = carry_out(site, looked, &work, &plans[0], progress).await?.unwrap_or_default();
    verified(site, &work, &args.account, &password, progress).await?;
    let new = Credentials {
        user: other.to_string(),
        password,
    };
    store(site, target, &new, target.seen(), Some(&now_used.to_string()), progress).await?;
    step(progress, &format!("Secret {} contains the credentials of {other}", target.place()));
    finish(args, global, site, looked, target, &new, now_used, progress).await
}

/// Waits until no driver uses the old account, and deletes it.
#[expect(clippy::too_many_arguments, reason = "the end of one function that is reached on two ways")]
async fn finish(
    args: &UsersChange,
    global: &Global,
    site: &Site,
    looked: &Looked,
    target: &Target,
    new: &Credentials,
    old: &Principal,
    progress: &mut Progress,
) -> Result<Answer, CliError> {
    if site.config.is_some() {
        drivers_use(global, site, old, progress).await?;
        step(progress, &format!("the drivers use {}", new.user));
    }
    let live = looked.admin.authorization().await.map_err(|error| failed(&error))?;
    let ended = looked.admin.end_sessions(old).await.map_err(|error| failed(&error))?;
    let steps = match looked.admin.person(old, now()).await.map_err(|error| failed(&error))? {
        Some(person) if person.description.parse().as_ref() == Ok(&target.mark) => {
            let roles = looked.unused_roles(&old.domain).await?;
            plan_delete(old, true, &live, roles, |object| looked.inventory.path_of(object).to_owned())
        }
        _ => Vec::new(),
    };
    changes(looked, &steps, &Secret::default(), progress).await?;
    store(site, target, new, Some(new), None, progress).await?;
    step(
        progress,
        &format!("deleted {old}, and ended {}", vdo_api::types::count(ended, "session")),
    );
    let planned = Planned {
        account: new.user.clone(),
        steps,
        after: Vec::new(),
    };
    super::answer(args.account.vcenter.output, &done(views(&[planned])), String::new())
}

/// Waits until the configuration of no driver names the old account, every workload is rolled out, and the VDOConfig is Ready.
async fn drivers_use(global: &Global, site: &Site, old: &Principal, progress: &mut Progress) -> Result<(), CliError> {
    let end = Instant::now().later(global.timeout_with_drivers());
    let mut steady = 0;
    loop {
        let waiting = not_ready_yet(site, old).await?;
        steady = if waiting.is_empty() { steady + 1 } else { 0 };
        if steady == STEADY {
            return Ok(());
        }
        if Instant::now() >= end {
            return Err(CliError::new(
                Exit::TimedOut,
                format!("the drivers do not use the new account yet: {}", waiting.join("; ")),
                "Both accounts work. vdoctl status shows what is wrong; run the same command again to continue waiting.",
            ));
        }
        if !progress.is_data() {
            progress.waiting(&waiting);
        }
        sleep(PACE).await;
    }
}

async fn not_ready_yet(site: &Site, old: &Principal) -> Result<Vec<String>, CliError> {
    let secrets = driver_secrets(&site.context, old).await?;
    let mut waiting: Vec<String> = secrets
        .iter()
        .map(|secret| format!("{secret} does not have the new account yet"))
        .collect();
    for kind in ["Deployment", "DaemonSet"] {
        let watch = Watch::new("apps/v1", kind, "", Select::Labels(format!("{MANAGED_BY_LABEL}={MANAGED_BY}")));
        for workload in list(&site.context.ports.client, &watch).await? {
            if let (Verdict::Waiting(_, why), _) = assess(&workload) {
                waiting.push(why);
            }
        }
    }
    let config = site.context.acting().await?;
    let status = config.status.unwrap_or_default();
    let ready = Conditions::find(&status.conditions, ConditionType::Ready);
    let current = status.observed_generation == config.metadata.generation;
    if let Some(ready) = ready.filter(|ready| !current || ready.status != "True") {
        waiting.push(format!("the drivers are not ready: {}", ready.message));
    }
    Ok(waiting)
}
