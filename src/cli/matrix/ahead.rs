//! `vdoctl matrix resolve --what-if-…`: what an upgrade of the platform would do.

use super::super::answer::document;
use super::super::args::Resolve as Args;
use super::super::{Answer, CliError, Exit, style};
use super::question::Question;
use super::{Loaded, resolve};
use crate::matrix::{self, Outlook, Stage, When};
use crate::types::VcenterVersion;
use serde_json::{Value, json};

pub(super) fn answer(args: &Args, loaded: &Loaded, question: &Question) -> Result<Answer, CliError> {
    let vcenters = targets(args, loaded, question)?;
    let outlook = matrix::outlook(&loaded.index, &question.query(), args.what_if_kubernetes.as_ref(), &vcenters);
    let fits = outlook.stages.iter().all(|stage| stage.result.is_ok());
    let answer = Answer::formatted(
        args.output.or_table(),
        || {
            let stages: Vec<Value> = outlook.stages.iter().map(json).collect();
            document("Outlook", json!({"matrix": loaded.identity(), "fits": fits, "stages": stages}))
        },
        || text(&outlook),
    )?;
    Ok(answer.exit(if fits { Exit::Ok } else { Exit::Differences }))
}

/// Which vCenter becomes what; one without a name stands for all.
fn targets(args: &Args, loaded: &Loaded, question: &Question) -> Result<Vec<(String, VcenterVersion)>, CliError> {
    let mut targets = Vec::new();
    for asked in &args.what_if_vcenter {
        let version = loaded.index.vcenter(&asked.version, None);
        let names: Vec<&str> = question.vcenters.iter().map(|(name, _)| name.as_str()).collect();
        match &asked.name {
            None => targets.extend(names.iter().map(|name| ((*name).to_owned(), version.clone()))),
            Some(name) if names.contains(&name.as_str()) => targets.push((name.clone(), version)),
            Some(name) => return Err(super::super::failure::unknown("vCenter", name, &names)),
        }
    }
    Ok(targets)
}

fn json(stage: &Stage) -> Value {
    let vcenters: Vec<Value> = stage
        .vcenters
        .iter()
        .map(|(name, v)| json!({"connection": name, "version": v}))
        .collect();
    let changes: Vec<Value> = stage
        .result
        .iter()
        .flatten()
        .map(|change| {
            let when = match change.when {
                When::Before => "before",
                When::With => "with",
            };
            json!({"driver": change.driver, "from": change.from, "path": change.path, "when": when, "because": change.because})
        })
        .collect();
    let failures = stage.result.as_ref().err().into_iter().flat_map(|error| error.all());
    let failures: Vec<Value> = failures
        .map(|e| json!({"driver": e.driver, "message": resolve::headline(e), "advice": e.advice}))
        .collect();
    json!({"kubernetes": stage.kubernetes, "vcenters": vcenters, "fits": stage.result.is_ok(), "changes": changes, "runs": stage.runs, "failures": failures})
}

fn text(outlook: &Outlook) -> String {
    let mut text = String::new();
    for (i, stage) in outlook.stages.iter().enumerate() {
        let mut vcenters: Vec<String> = stage.vcenters.iter().map(|(_, version)| version.to_string()).collect();
        vcenters.dedup();
        let title = format!("Kubernetes {}, vCenter {}", stage.kubernetes, vcenters.join(" and "));
        let word = if i == 0 { "Now" } else { "Then" };
        text.push_str(&format!("{word}: {}\n", style::head(&title)));
        match &stage.result {
            Ok(changes) if changes.is_empty() => text.push_str("  nothing changes\n"),
            Ok(changes) => {
                for change in changes {
                    let path: Vec<String> = change.from.iter().chain(&change.path).map(ToString::to_string).collect();
                    let when = match (i, change.when) {
                        (0, _) => String::new(),
                        (_, When::Before) => " before this step".to_owned(),
                        (_, When::With) => " right after this step".to_owned(),
                    };
                    text.push_str(&format!("  {} {}{when}: {}\n", change.driver, path.join(" → "), change.because));
                }
            }
            Err(error) => {
                for error in error.all() {
                    text.push_str(&format!("  {} {}\n", style::bad("✗"), resolve::headline(error)));
                    for rejected in error.nearest().into_iter().take(3) {
                        text.push_str(&format!("    {rejected}\n"));
                    }
                    if let Some(advice) = &error.advice {
                        text.push_str(&format!("    {advice}.\n"));
                    }
                }
            }
        }
        if stage.result.is_ok() {
            let runs: Vec<String> = stage.runs.iter().map(|(name, version)| format!("{name} {version}")).collect();
            text.push_str(&format!("  {}\n", style::faint(&format!("runs {}", runs.join(", ")))));
        }
    }
    text
}
