// SPDX-License-Identifier: Apache-2.0
//! `vdoctl upgrade apply`: asks for confirmation, pins the new versions, waits until the drivers are healthy, and removes the pins.

use super::super::args::{Global, MatrixFile, UpgradeApply};
use super::super::context::{Context, id, now};
use super::super::matrix::repeated;
use super::super::object_write::Change;
use super::super::operator_running::Presence;
use super::super::plan_and_diff::Planned;
use super::super::printer::Printer;
use super::super::progress::{Mark, Progress};
use super::super::wait_until_healthy::{Watcher, until_ready};
use super::super::{Answer, CliError, Exit, prompt};
use super::pins::{lifted, own_pins, taken_back};
use super::{NOTHING, Targets, Upgrade, command, hindrances};
use kube::ResourceExt as _;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use vdo_api::api::{ConditionType, Reason, VDOConfigStatus};
use vdo_api::types::{DriverVersion, Later as _};
use vdo_core::drivers::short;
use vdo_core::manifest::Object;

/// How long the operator may take to look at a change; a reconcile begins within a second of it.
const VERDICT: Duration = Duration::from_secs(60);
const PACE: Duration = Duration::from_millis(500);

/// What became of pins.
enum Verdict {
    /// The operator acts on them.
    Taken,
    /// It does not take the version of a driver, for this reason.
    Refused(String),
    /// It has not looked at them in time.
    Unknown,
}

pub(crate) async fn apply(args: &UpgradeApply, global: &Global, printer: &Printer) -> Result<Answer, CliError> {
    let mut progress = Progress::new(printer, args.output.or_table());
    let answer = upgrade(args, global, &mut progress).await;
    match progress.end() {
        Some(exit) => answer.map(|answer| answer.exit(exit)),
        None => answer,
    }
}

async fn upgrade(args: &UpgradeApply, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    // --timeout is for the drivers; a request is answered soon or not at all.
    let requests = Global {
        timeout: None,
        ..global.clone()
    };
    let upgrade = match Upgrade::plan(&args.to, &args.index, &requests).await? {
        Ok(upgrade) => upgrade,
        Err(used) => {
            progress.step(Mark::Note, &used.line());
            used.warning().into_iter().for_each(|line| progress.step(Mark::Note, &line));
            return nothing_to_do(args, &requests, global, progress).await;
        }
    };
    upgrade.context.matrix_lines().for_each(|line| progress.step(Mark::Note, &line));
    for driver in &upgrade.planned.drivers {
        progress.step(Mark::Note, driver.lines().trim_end());
    }
    let waits = upgrade.planned.waiting.iter().chain(&upgrade.planned.blocked);
    waits.for_each(|wait| progress.step(Mark::Note, &wait.message));
    let wrong = upgrade.hindrances();
    if !wrong.is_empty() {
        let show = format!("vdoctl upgrade plan -o wide{}", repeated(&args.index, global));
        return Err(CliError::new(
            Exit::Refused,
            format!("the upgrade cannot be made, so nothing was changed: {}", wrong.join("; ")),
            format!("Fix the problem and run the same command again; {show} shows the whole plan."),
        ));
    }
    agreed_by_operator(&upgrade, &requests).await?;
    // The other one is read as if the upgrade were made.
    let context = Context::open(&requests).await?;
    operator_runs(&context).await?;
    consent(args, &context)?;
    let before = versions(context.acting().await?.status.as_ref());
    upgrade.change.make(&context).await?;
    progress.step(Mark::Done, &format!("{} was updated", upgrade.live));
    taken(&context, &upgrade, &before, global, progress).await?;
    if args.no_wait {
        let again = command(&args.to, &repeated(&args.index, global));
        return Ok(Answer::text("").note(format!(
            "To see the progress of the upgrade: vdoctl status --watch. When the upgrade is done, run this command to remove the temporary \
             version pins from the VDOConfig: {again}"
        )));
    }
    finished(&context, global, progress).await
}

/// Nothing newer fits. A command that was interrupted may have left its pins: they are lifted once the drivers are healthy, or at once where
/// the operator refuses them.
async fn nothing_to_do(args: &UpgradeApply, requests: &Global, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let context = Context::open(requests).await?;
    let live = context.acting_object().await?;
    if own_pins(&live).is_empty() {
        return Ok(Answer::text("").note(NOTHING));
    }
    let config = context.acting().await?;
    let status = config.status.clone().unwrap_or_default();
    let current = status.observed_generation == config.metadata.generation;
    let pins: Targets = own_pins(&live)
        .into_iter()
        .filter_map(|(name, version)| Some((name, version.parse().ok()?)))
        .collect();
    if let (true, Some(why)) = (current, refused(&status, &pins, &versions(Some(&status)))) {
        lift(&context, live).await?;
        progress.step(
            Mark::Done,
            "removed the version pins that an interrupted vdoctl upgrade apply had left in the VDOConfig",
        );
        return Ok(Answer::text("")
            .note(format!("The operator refuses these pins: {why}"))
            .note(NOTHING));
    }
    if args.no_wait {
        return Ok(Answer::text("").note(NOTHING));
    }
    operator_runs(&context).await?;
    finished(&context, global, progress).await
}

/// Whether the matrix that the operator decides with has these versions, too, where the upgrade was planned with another one.
///
/// # Errors
/// When it has not, or is not known.
async fn agreed_by_operator(upgrade: &Upgrade, requests: &Global) -> Result<(), CliError> {
    if upgrade.context.used.is_of_operator() {
        return Ok(());
    }
    let unknown = |why: &str| {
        CliError::new(
            Exit::Refused,
            format!("it is not known whether the operator accepts these versions, so nothing was changed: {why}"),
            "Name the matrix of the operator with --matrix; vdoctl matrix source shows it. Or ask for the right that is named above.",
        )
    };
    let named = MatrixFile::default();
    let mut context = Context::open(requests).await?.choosing_from(&named, requests).await?;
    if !context.used.is_of_operator() {
        let config = context.acting().await?;
        let reported = config.status.as_ref().and_then(|status| status.matrix.as_ref());
        return match reported {
            Some(matrix) if matrix.digest == upgrade.context.used.digest().to_string() => Ok(()),
            _ => Err(unknown(
                context.used.unknown().unwrap_or("the operator has not reported a matrix yet"),
            )),
        };
    }
    context.suppose(vec![upgrade.change.after.clone()]);
    let planned = match Planned::of(&context).await {
        Ok(planned) => hindrances(&upgrade.targets, &planned),
        Err(error) => vec![error.what],
    };
    if planned.is_empty() {
        return Ok(());
    }
    Err(CliError::new(
        Exit::Refused,
        format!(
            "the operator uses another matrix, {}, and does not accept these versions, so nothing was changed: {}",
            context.used.what(),
            planned.join("; ")
        ),
        format!(
            "To plan the upgrade with the matrix of the operator, leave out --matrix: vdoctl upgrade plan{}\n\
                 To have the operator use the other matrix: vdoctl configure matrix",
            repeated(&named, requests)
        ),
    ))
}

/// Whether an operator acts on what is going to be written.
///
/// # Errors
/// When none does.
async fn operator_runs(context: &Context) -> Result<(), CliError> {
    let config = context.acting().await?;
    let namespace = config.namespace().unwrap_or_default();
    let presence = Presence::find(context, &namespace).await?.confirmed(context, false).await?;
    let confirmed = config.status.as_ref().and_then(|status| status.last_confirmed.as_ref());
    let now = now();
    match presence.silence(confirmed.map(|at| at.0), now) {
        None => Ok(()),
        Some(silence) => Err(CliError::new(
            Exit::Refused,
            format!("{}, so nothing was changed", silence.what(now)),
            silence.remedy,
        )),
    }
}

/// Waits until the operator has looked at the pins, and takes them back where it refuses them.
///
/// # Errors
/// When it refuses them.
async fn taken(context: &Context, upgrade: &Upgrade, before: &Versions, global: &Global, progress: &mut Progress) -> Result<(), CliError> {
    let patience = global.timeout_with_drivers().min(VERDICT);
    let Verdict::Refused(why) = verdict(context, &upgrade.targets, before, patience, progress).await? else {
        return Ok(());
    };
    let live = context.acting_object().await?;
    let back = taken_back(&live, &upgrade.live, &upgrade.change.after, &upgrade.targets)?;
    Change::merge(context, live, back).await?.make(context).await?;
    Err(CliError::new(
        Exit::Refused,
        format!(
            "the operator refuses the upgrade: {why}; the change of {} was reverted",
            upgrade.live
        ),
        "vdoctl matrix source shows the matrix that the operator uses; vdoctl upgrade plan uses the same matrix.",
    ))
}

async fn verdict(
    context: &Context,
    targets: &Targets,
    before: &Versions,
    patience: Duration,
    progress: &mut Progress,
) -> Result<Verdict, CliError> {
    let written = context.acting_object().await?.number("/metadata/generation").unwrap_or_default();
    let end = Instant::now().later(patience);
    loop {
        let config = context.acting().await?;
        let status = config.status.clone().unwrap_or_default();
        if status.observed_generation.is_some_and(|seen| seen >= written) {
            return Ok(refused(&status, targets, before).map_or(Verdict::Taken, Verdict::Refused));
        }
        if Instant::now() >= end {
            return Ok(Verdict::Unknown);
        }
        progress.waiting(&[format!("the operator has not acted on VDOConfig {} yet", id(&config))]);
        sleep(PACE).await;
    }
}

/// The version that the operator wants of each driver.
type Versions = BTreeMap<String, String>;

fn versions(status: Option<&VDOConfigStatus>) -> Versions {
    let drivers = status.iter().flat_map(|status| &status.drivers);
    drivers.map(|driver| (driver.name.clone(), driver.version.clone())).collect()
}

/// Why the operator does not take a version: what it wants of the driver is as it was `before`, and it says that a pin is wrong.
fn refused(status: &VDOConfigStatus, targets: &Targets, before: &Versions) -> Option<String> {
    let now = versions(Some(status));
    let stays = |(name, version): &(&String, &DriverVersion)| {
        let wanted = now.get(*name);
        wanted != Some(&version.to_string()) && wanted == before.get(*name)
    };
    let (driver, version) = targets.iter().find(stays)?;
    // What these say is about the next platform, not about what is asked for now.
    let outlook = [ConditionType::Upgradeable, ConditionType::UpgradeAvailable].map(ConditionType::as_str);
    let pin = [Reason::UnknownVersion, Reason::IncompatiblePin, Reason::NoCompatibleVersion].map(Reason::as_str);
    let mut conditions = status
        .conditions
        .iter()
        .filter(|condition| !outlook.contains(&condition.type_.as_str()));
    let why = conditions.find(|condition| pin.contains(&condition.reason.as_str()))?;
    Some(format!("{} {version}: {}", short(driver), why.message))
}

/// Waits until the drivers are healthy, and lifts the pins that were set for the upgrade.
async fn finished(context: &Context, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let summary = until_ready(Watcher::new(context, false), global.timeout_with_drivers(), progress).await?;
    progress.step(Mark::Done, &summary);
    lift(context, context.acting_object().await?).await?;
    Ok(Answer::text(""))
}

/// Lifts the pins that were set for an upgrade.
async fn lift(context: &Context, live: Object) -> Result<(), CliError> {
    let change = lifted(&live)?;
    Change::merge(context, live, change).await?.make(context).await
}

fn consent(args: &UpgradeApply, context: &Context) -> Result<(), CliError> {
    if args.yes {
        return Ok(());
    }
    let question = format!("    Upgrade the drivers of cluster {} at {}?", context.name, context.server);
    prompt::confirmed(
        &question,
        &format!("nothing was changed in cluster {}", context.name),
        "Confirm the upgrade with --yes.",
        "Choose another version with --to, or another cluster with --context.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pins_are_refused_where_the_version_stays_and_a_pin_is_wrong() {
        let targets = Targets::from([("vsphere-csi".to_owned(), "3.7.3".parse().expect("a version"))]);
        let before = Versions::from([("vsphere-csi".to_owned(), "3.7.2".to_owned())]);
        let status = |version: &str, kind: &str, reason: &str| -> VDOConfigStatus {
            let driver = json!({"name": "vsphere-csi", "version": version, "available": "", "chart": "", "objects": 0, "pods": "", "ready": "", "because": ""});
            let condition = json!({"type": kind, "status": "False", "reason": reason, "message": "it is pinned", "lastTransitionTime": "2026-01-01T00:00:00Z"});
            serde_json::from_value(json!({"drivers": [driver], "conditions": [condition]})).expect("a status")
        };
        for (version, kind, reason, expected) in [
            ("3.7.2", "Ready", "IncompatiblePin", true),
            ("3.7.2", "Ready", "UnknownVersion", true),
            // The pin of another driver is wrong, or the next platform does not go with this one.
            ("3.7.3", "Ready", "IncompatiblePin", false),
            ("3.7.2", "Upgradeable", "IncompatiblePin", false),
            // A step on the way.
            ("3.7.1", "Ready", "IncompatiblePin", false),
            ("3.7.2", "Ready", "ConnectionNotReady", false),
        ] {
            let found = refused(&status(version, kind, reason), &targets, &before);
            assert_eq!(found.is_some(), expected, "{version} {kind} {reason}");
        }
    }
}
