// SPDX-License-Identifier: Apache-2.0
//! `vdoctl selftest`: runs all steps in each zone, deletes the test objects, and prints the result.
//!
//! The steps and their judgement are pure (`steps`), as are the objects (`objects`). The causes of a failed step come from the diagnosis of
//! `vdoctl doctor volumes`. A signal ends the steps, and everything is deleted; the next run deletes what a killed run has left.

mod junit;
mod objects;
mod run;
mod steps;
mod storage_class_and_zones;
mod test_namespace;

pub(crate) use steps::{Outcome, Step};

use super::args::{Format, Global, Selftest as Args, SelftestFormat};
use super::context::{Context, now};
use super::printer::Printer;
use super::progress::{Mark, Progress};
use super::style::{bad, good, warn};
use super::views::selftest::SelftestView;
use super::{Answer, CliError, Exit, stopping};
use objects::{Place, Setting};
use run::Run;
use std::time::Duration;
use storage_class_and_zones::Found;
use test_namespace::Home;
use tokio::time::Instant;
use vdo_core::volume_diagnosis::Finding;

pub(super) async fn run(args: &Args, global: &Global, printer: &Printer) -> Result<Answer, CliError> {
    let (context, found) = super::within(global, prepared(args, global)).await?;
    let setting = setting(args, &found);
    if args.dry_run {
        return dry_run(&setting, &found);
    }
    let format = args.format.unwrap_or(SelftestFormat::Table);
    let (quiet, began) = (Printer::auto(), Instant::now());
    quiet.silence();
    let printer = if format == SelftestFormat::Table { printer } else { &quiet };
    let mut progress = Progress::new(printer, Format::Table);
    let timeout = global.timeout.unwrap_or(run::STEP);
    let mut run = Run {
        context: &context,
        global,
        setting: &setting,
        driver: &found.driver,
        timeout,
        steps: Vec::new(),
    };
    let stopped = all(args, &found, &mut run, timeout, &mut progress).await;
    progress.end();
    let view = view(run.steps, &setting, stopped?, began.elapsed());
    answer(&view, format)
}

async fn prepared(args: &Args, global: &Global) -> Result<(Context, Found), CliError> {
    let context = Context::open(global).await?;
    let found = storage_class_and_zones::find(args, &context).await?;
    Ok((context, found))
}

fn setting(args: &Args, found: &Found) -> Setting {
    Setting {
        namespace: args.test_namespace.clone(),
        run: format!("{:x}-{:x}", now().as_nanosecond(), std::process::id()),
        class: found.class.clone(),
        access_mode: <&str>::from(args.access_mode).to_owned(),
        image: found.image.clone(),
        user_is_assigned: found.user_is_assigned,
    }
}

fn dry_run(setting: &Setting, found: &Found) -> Result<Answer, CliError> {
    let mut objects = vec![setting.namespace()];
    for (place, known) in &found.places {
        let class = known.snapshots.as_deref().ok().filter(|_| !known.shared);
        objects.extend(setting.all(place, class));
    }
    let mut documents = String::new();
    for object in &objects {
        let text = vdo_api::yaml::dump(object).map_err(|error| CliError::internal(&error))?;
        documents.push_str(&format!("---\n{text}"));
    }
    Ok(Answer::yaml(documents))
}

/// The steps in every place, and the removal of everything. The signal that has stopped it.
async fn all(args: &Args, found: &Found, run: &mut Run<'_>, timeout: Duration, progress: &mut Progress) -> Result<Option<Exit>, CliError> {
    let mut home = Home::new(run.context, &run.setting.namespace, timeout);
    let with_snapshots = found.places.iter().any(|(_, known)| known.snapshots.is_ok() && !known.shared);
    home.may(with_snapshots).await?;
    home.vacate(progress).await?;
    let _armed = stopping::arm();
    // Not while a signal is listened to: a namespace that is being made would be left.
    home.enter(run.setting).await?;
    let stopped = tokio::select! {
        biased;
        exit = stopping::asked() => Some(exit),
        () = steps(run, &found.places, progress) => None,
    };
    if let Some(exit) = stopped {
        progress.step(
            Mark::Note,
            &format!(
                "stopped ({}); vdoctl deletes all test objects",
                exit.meaning().trim_end_matches('.')
            ),
        );
    }
    let failed = run.steps.iter().any(|step| step.result == Outcome::Failed);
    let began = Instant::now();
    if args.keep && failed && stopped.is_none() {
        let kept = format!("namespace {} is kept", run.setting.namespace);
        run.note((Step::Delete, String::new()), Outcome::Skipped, (began, kept), Vec::new(), progress);
        return Ok(None);
    }
    let deleted = home.delete(progress).await;
    let (result, message, findings) = match deleted {
        Ok(()) => (Outcome::Passed, String::new(), Vec::new()),
        Err(error) => (Outcome::Failed, run::whole(&error), run.findings().await),
    };
    run.note((Step::Delete, String::new()), result, (began, message), findings, progress);
    Ok(stopped)
}

async fn steps(run: &mut Run<'_>, places: &[(Place, steps::Known)], progress: &mut Progress) {
    for (place, known) in places {
        run.place(place, known, progress).await;
    }
}

fn view(steps: Vec<super::views::selftest::StepView>, setting: &Setting, stopped: Option<Exit>, took: Duration) -> (SelftestView, Exit) {
    let failed = steps.iter().any(|step| step.result == Outcome::Failed);
    let exit = match (stopped, failed) {
        (Some(exit), _) => exit,
        (None, true) => Exit::Differences,
        (None, false) => Exit::Ok,
    };
    let view = SelftestView {
        result: if exit == Exit::Ok { Outcome::Passed } else { Outcome::Failed },
        interrupted: stopped.is_some(),
        namespace: setting.namespace.clone(),
        storage_class: setting.class.clone(),
        access_mode: setting.access_mode.clone(),
        image: setting.image.clone(),
        milliseconds: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        steps,
    };
    (view, exit)
}

fn answer((view, exit): &(SelftestView, Exit), format: SelftestFormat) -> Result<Answer, CliError> {
    let answer = match format {
        SelftestFormat::Table => Answer::text(sum(view)),
        SelftestFormat::Json => Answer::view(Format::Json, view, String::new)?,
        SelftestFormat::Yaml => Answer::view(Format::Yaml, view, String::new)?,
        SelftestFormat::Junit => Answer::bytes(junit::text(view).into_bytes()),
    };
    Ok(answer.exit(*exit))
}

fn sum(view: &SelftestView) -> String {
    let mut parts = vec![good(&format!("{} passed", view.count(Outcome::Passed)))];
    for (count, text) in [
        (view.count(Outcome::Failed), bad(&format!("{} failed", view.count(Outcome::Failed)))),
        (
            view.count(Outcome::Skipped),
            warn(&format!("{} skipped", view.count(Outcome::Skipped))),
        ),
    ] {
        if count > 0 {
            parts.push(text);
        }
    }
    format!(
        "\nStorageClass {}, {}: {} in {} s\n",
        view.storage_class,
        view.access_mode,
        parts.join(", "),
        view.milliseconds / 1000
    )
}

/// The lines of findings.
fn found(findings: &[Finding]) -> Vec<String> {
    let lines = |finding: &Finding| {
        let first = format!("{} {}: {}", finding.cause, finding.object(), finding.message);
        [first, finding.remedy.clone(), finding.command.clone()]
    };
    findings.iter().flat_map(lines).filter(|line| !line.is_empty()).collect()
}
