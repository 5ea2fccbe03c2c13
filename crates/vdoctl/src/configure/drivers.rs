// SPDX-License-Identifier: Apache-2.0
//! `vdoctl configure drivers`: changes the VDOConfig (`--set`, `-f`, `--storage-policy`), after a dry run of the resulting plan.

use super::super::args::{ConfigureDrivers as Args, Global, Preview, Setting};
use super::super::context::{Context, Left, joined};
use super::super::plan_and_diff::Planned;
use super::super::preview::suppose;
use super::super::progress::{Mark, Progress};
use super::super::{Answer, CliError, Exit};
use super::write;
use std::collections::BTreeSet;
use vdo::reconcile::TakenAway;
use vdo_api::types::count;

pub(super) async fn run(args: &Args, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let mut context = Context::open(global).await?.choosing_from(&args.index, global).await?;
    context.matrix_lines().for_each(|line| progress.step(Mark::Note, &line));
    let changes = suppose(&mut context, &change(args)).await?;
    if changes.is_empty() {
        return Err(CliError::new(
            Exit::Usage,
            "no change is given",
            "Name a field with --set FIELD=VALUE, a storage policy with --storage-policy NAME, or a file with -f FILE; kubectl explain vdoconfig.spec lists the fields.",
        ));
    }
    if let Some(other) = changes.iter().find(|change| change.after.kind() != "VDOConfig") {
        return Err(CliError::new(
            Exit::Usage,
            format!("{} is not a VDOConfig", other.after),
            "To configure connections and their Secrets: vdoctl configure connection. To apply a whole configuration: vdoctl deploy --values FILE.",
        ));
    }
    match Planned::of(&context).await {
        Ok(planned) => approved(&planned, args, progress)?,
        Err(error) if args.writing.ignore_checks => progress.step(Mark::Failed, &error.what),
        Err(error) => {
            return Err(CliError {
                what: format!("{}, so nothing was written", error.what),
                ..error
            });
        }
    }
    write(&context, &changes, args.writing, progress).await
}

/// The change, with the default StorageClass of --storage-policy.
fn change(args: &Args) -> Preview {
    let mut change = args.change.clone();
    if let Some(policy) = &args.storage_policy {
        let fields = [("mode", "Auto"), ("storagePolicy", policy)];
        let path = |field: &str| ["storageProvider", "defaultStorageClass", field].map(str::to_owned).to_vec();
        change
            .settings
            .extend(fields.map(|(field, value)| Setting::text(path(field), value)));
    }
    change
}

/// Shows what the change leads to.
///
/// # Errors
/// When the API server would refuse a part of it, a driver would be left at what was applied last, or the change takes away what volumes or drivers depend on.
fn approved(planned: &Planned, args: &Args, progress: &mut Progress) -> Result<(), CliError> {
    for driver in &planned.drivers {
        progress.step(Mark::Note, driver.lines().trim_end());
    }
    planned.notes.iter().for_each(|note| progress.step(Mark::Note, note));
    for wait in planned.waiting.iter().chain(&planned.blocked) {
        progress.step(Mark::Note, &wait.message);
    }
    for refusal in &planned.refusals {
        progress.step(Mark::Failed, &refusal.to_string());
    }
    // The change is not why another manager is there; it may be what has to come first.
    let (kept_out, left): (Vec<&Left>, Vec<&Left>) = planned.left.iter().partition(|left| left.is_kept_out);
    kept_out.iter().for_each(|left| progress.step(Mark::Note, &left.to_string()));
    let what = match (&left[..], planned.refusals.len()) {
        _ if args.writing.ignore_checks => return Ok(()),
        ([], 0) => {
            let all: Vec<String> = planned.taken_away.iter().map(TakenAway::message).collect();
            if all.is_empty() {
                return Ok(());
            }
            let remedies: BTreeSet<&str> = planned.taken_away.iter().map(TakenAway::remedy).collect();
            let remedies = Vec::from_iter(remedies).join(" ");
            return Err(CliError::new(
                Exit::Refused,
                format!("{}, so nothing was written", all.join(", and ")),
                remedies,
            ));
        }
        ([], refused) => format!("the API server would refuse {}, so nothing was written", count(refused, "object")),
        (left, _) => format!("{}, so nothing was written", joined(left.iter().copied())),
    };
    Err(CliError::new(
        Exit::Refused,
        what,
        "Fix the problem and run the same command again; --ignore-checks writes despite failed checks.",
    ))
}
