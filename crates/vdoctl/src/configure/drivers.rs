//! `vdoctl configure drivers`: a change of the VDOConfig, after the whole plan that it leads to was tried.

use super::super::args::{ConfigureDrivers as Args, Global};
use super::super::context::Context;
use super::super::plan_view::Planned;
use super::super::preview::suppose;
use super::super::progress::{Mark, Progress};
use super::super::{Answer, CliError, Exit};
use super::write;
use vdo_api::types::count;

pub(super) async fn run(args: &Args, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let mut context = Context::open(global).await?.choosing_from(&args.index, global).await?;
    context.matrix_lines().for_each(|line| progress.step(Mark::Note, &line));
    let changes = suppose(&mut context, &args.change).await?;
    if changes.is_empty() {
        return Err(CliError::new(
            Exit::Usage,
            "no change is given",
            "Name a field with --set FIELD=VALUE, or a file with -f FILE; kubectl explain vdoconfig.spec lists the fields.",
        ));
    }
    if let Some(other) = changes.iter().find(|change| change.after.kind() != "VDOConfig") {
        return Err(CliError::new(
            Exit::Usage,
            format!("{} is no VDOConfig", other.after),
            "Connections and their Secrets: vdoctl configure connection; all together: vdoctl deploy --values FILE.",
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

/// Shows what the change leads to.
///
/// # Errors
/// When the API server would refuse a part of it, or a driver would be left at what was applied last.
fn approved(planned: &Planned, args: &Args, progress: &mut Progress) -> Result<(), CliError> {
    for driver in &planned.drivers {
        progress.step(Mark::Note, driver.lines().trim_end());
    }
    planned.notes.iter().for_each(|note| progress.step(Mark::Note, note));
    for wait in planned.waiting.iter().chain(&planned.blocked) {
        progress.step(Mark::Note, &wait.message);
    }
    for (id, refusal) in &planned.refusals {
        progress.step(Mark::Failed, &format!("{id}: {refusal}"));
    }
    let what = match (&planned.left[..], planned.refusals.len()) {
        _ if args.writing.ignore_checks => return Ok(()),
        ([], 0) => return Ok(()),
        ([], refused) => format!("the API server would refuse {}, so nothing was written", count(refused, "object")),
        (left, _) => format!("{}, so nothing was written", left.join("; ")),
    };
    Err(CliError::new(
        Exit::Refused,
        what,
        "Put it right and run the same command again; --ignore-checks writes anyway.",
    ))
}
