// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix resolve --what-if-kubernetes` and `--what-if-vcenter`: prints how the drivers change in an upgrade of the platform.

use super::super::args::Resolve as Args;
use super::super::views::matrix_resolve::{OutlookView, StageChangeView, StageFailureView, StageView};
use super::super::{Answer, CliError, Exit, style};
use super::notes::{checks, way};
use super::query::{Question, distinct, title};
use super::{Loaded, resolve};
use vdo_api::types::VcenterVersion;
use vdo_core::matrix::{self, Outlook, Stage, When};

pub(super) fn answer(args: &Args, loaded: &Loaded, question: &Question) -> Result<Answer, CliError> {
    let vcenters = targets(args, loaded, question)?;
    let outlook = matrix::outlook(&loaded.index, &question.query(), args.what_if_kubernetes.as_ref(), &vcenters);
    let fits = outlook.stages.iter().all(|stage| stage.unfit.is_none());
    let view = OutlookView {
        matrix: loaded.view(),
        fits,
        stages: outlook.stages.iter().map(|stage| view(loaded, stage)).collect(),
    };
    let answer = Answer::view(args.output.or_table(), &view, || text(loaded, &outlook))?;
    Ok(question
        .answer(loaded.answer(answer))
        .exit(if fits { Exit::Ok } else { Exit::Differences }))
}

/// Which vCenter becomes what; one without a name stands for all.
fn targets(args: &Args, loaded: &Loaded, question: &Question) -> Result<Vec<(String, VcenterVersion)>, CliError> {
    let mut targets = Vec::new();
    distinct(
        "--what-if-vcenter",
        args.what_if_vcenter.iter().map(|asked| asked.name.as_deref().unwrap_or_default()),
    )?;
    for asked in &args.what_if_vcenter {
        let version = loaded.index.vcenter(&asked.version, None);
        let names: Vec<&str> = question.vcenters.iter().map(|(name, _)| name.as_str()).collect();
        match &asked.name {
            None => targets.extend(names.iter().map(|name| ((*name).to_owned(), version.clone()))),
            Some(name) if names.contains(&name.as_str()) => targets.push((name.clone(), version)),
            Some(name) => return Err(super::super::error::unknown("vCenter", name, &names)),
        }
    }
    Ok(targets)
}

fn view(loaded: &Loaded, stage: &Stage) -> StageView {
    let changes = stage.changes.iter().map(|change| StageChangeView {
        driver: change.driver.clone(),
        from: change.from.clone(),
        path: resolve::path(&change.path),
        steps: resolve::steps(loaded, &change.path),
        when: match change.when {
            When::Before => "before",
            When::With => "with",
        }
        .to_owned(),
        because: change.because.clone(),
    });
    let failures = stage.unfit.iter().flat_map(|error| error.all()).map(|error| StageFailureView {
        driver: error.driver.clone(),
        message: resolve::headline(error),
        advice: error.advice.clone(),
    });
    StageView {
        kubernetes: stage.kubernetes.clone(),
        vcenters: resolve::vcenters(&stage.vcenters),
        fits: stage.unfit.is_none(),
        changes: changes.collect(),
        runs: stage.runs.clone(),
        failures: failures.collect(),
    }
}

fn text(loaded: &Loaded, outlook: &Outlook) -> String {
    let mut text = loaded.header();
    for (i, stage) in outlook.stages.iter().enumerate() {
        let title = title(&stage.kubernetes, &stage.vcenters);
        let word = if i == 0 { "Now" } else { "Then" };
        text.push_str(&format!("{word}: {}\n", style::head(&title)));
        if stage.changes.is_empty() && stage.unfit.is_none() {
            text.push_str("  nothing changes\n");
        }
        for change in &stage.changes {
            let path = way(change.from.as_ref(), &change.path);
            let when = match (i, change.when) {
                (0, _) => String::new(),
                (_, When::Before) => " before this step".to_owned(),
                (_, When::With) => " right after this step".to_owned(),
            };
            text.push_str(&format!("  {} {path}{when}: {}\n", change.driver, change.because));
            for line in checks(&loaded.index, &change.driver, &change.path) {
                text.push_str(&format!("    {line}\n"));
            }
        }
        for error in stage.unfit.iter().flat_map(|error| error.all()) {
            text.push_str(&format!("  {} {}\n", style::bad("✗"), resolve::headline(error)));
            for rejected in error.nearest().into_iter().take(3) {
                text.push_str(&format!("    {rejected}\n"));
            }
            if let Some(advice) = &error.advice {
                text.push_str(&format!("    {advice}.\n"));
            }
        }
        let runs: Vec<String> = stage.runs.iter().map(|(name, version)| format!("{name} {version}")).collect();
        if !runs.is_empty() {
            text.push_str(&format!("  {}\n", style::faint(&format!("result: {}", runs.join(", ")))));
        }
    }
    text
}
