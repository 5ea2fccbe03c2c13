//! `vdoctl matrix resolve`: the choice with its reasons, or why there is none; and what an upgrade of the platform would do.

use super::super::args::{Global, Resolve as Args};
use super::super::output::document;
use super::super::{Answer, CliError, Exit, style};
use super::notes::remarks;
use super::query::{self, Question};
use super::{Loaded, what_if};
use crate::matrix::{self, NoFit, Pick, Resolution, Step};
use crate::types::{DriverName, DriverVersion};
use serde_json::{Value, json};

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let loaded = Loaded::read(&args.index, global).await?;
    let question = query::question(&args.platform, global, &loaded).await?;
    if args.what_if_kubernetes.is_some() || !args.what_if_vcenter.is_empty() {
        return what_if::answer(args, &loaded, &question);
    }
    let result = matrix::resolve(&loaded.index, &question.query());
    let exit = if result.is_ok() { Exit::Ok } else { Exit::Differences };
    let answer = Answer::formatted(
        args.output.or_table(),
        || json(&loaded, &question, &result),
        || text(&loaded, &question, &result),
    )?;
    Ok(question.answer(loaded.answer(answer)).exit(exit))
}

fn text(loaded: &Loaded, question: &Question, result: &Result<Resolution, Box<NoFit>>) -> String {
    let mut text = format!("{}\n\n", question.title());
    match result {
        Ok(resolution) => {
            let version = |version: Option<&DriverVersion>| version.map_or_else(|| "-".to_owned(), ToString::to_string);
            let row = |(name, pick): (&DriverName, &Pick)| {
                vec![
                    name.clone(),
                    version(pick.from.as_ref()),
                    pick.version.to_string(),
                    version(pick.newest.as_ref()),
                    pick.because.clone(),
                ]
            };
            let rows: Vec<Vec<String>> = resolution.picks.iter().map(row).collect();
            text.push_str(&style::table(&["DRIVER", "FROM", "VERSION", "NEWEST FIT", "BECAUSE"], &rows));
            let remarks: Vec<String> = resolution
                .picks
                .iter()
                .flat_map(|(name, pick)| remarks(&loaded.index, name, pick))
                .collect();
            if !remarks.is_empty() {
                text.push_str(&format!("\n{}\n", remarks.join("\n")));
            }
        }
        Err(all) => text.push_str(&refusals(all)),
    }
    text
}

/// Every driver without a choice, with its candidates.
pub(super) fn refusals(error: &NoFit) -> String {
    let mut text = String::new();
    for (i, error) in error.all().enumerate() {
        {
            if i > 0 {
                text.push('\n');
            }
            text.push_str(&format!("{} {}\n\n", style::bad("✗"), headline(error)));
            let rows: Vec<Vec<String>> = error
                .rejected
                .iter()
                .map(|r| vec![error.driver.clone(), r.version.to_string(), r.reason.to_string()])
                .collect();
            if !rows.is_empty() {
                text.push_str(&style::table(&["DRIVER", "VERSION", "REJECTED BECAUSE IT"], &rows));
            }
            if let Some(advice) = &error.advice {
                text.push_str(&format!("\n{advice}.\n"));
            }
        }
    }
    text.push_str(&fitting(error));
    text
}

/// The drivers that have a version: the operator installs them without the other.
pub(super) fn fitting(error: &NoFit) -> String {
    let fitting: Vec<String> = error.fitting.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let verb = match fitting.len() {
        0 => return String::new(),
        1 => "fits and does",
        _ => "fit and do",
    };
    format!("\n{} {verb} not wait for it.\n", fitting.join(" and "))
}

/// The steps of a way, for programs.
pub(super) fn steps(loaded: &Loaded, path: &[Step]) -> Vec<Value> {
    let step = |step: &Step| {
        let preconditions: Vec<Value> = step
            .preconditions
            .iter()
            .map(|name| json!({"name": name, "means": loaded.index.preconditions.get(name)}))
            .collect();
        json!({"version": step.version, "preconditions": preconditions})
    };
    path.iter().map(step).collect()
}

/// What could not be chosen, without the candidates: they are in the table.
pub(super) fn headline(error: &NoFit) -> String {
    match &error.cause {
        matrix::Cause::NothingFits => format!("no version of {} fits {}", error.driver, error.platform),
        _ => NoFit {
            advice: None,
            others: Vec::new(),
            ..error.clone()
        }
        .to_string(),
    }
}

fn json(loaded: &Loaded, question: &Question, result: &Result<Resolution, Box<NoFit>>) -> Value {
    let vcenters: Vec<Value> = question
        .vcenters
        .iter()
        .map(|(name, version)| json!({"connection": name, "version": version}))
        .collect();
    let picks = result.iter().flat_map(|r| &r.picks);
    let driver = |(name, pick): (&DriverName, &matrix::Pick)| {
        json!({
            "name": name,
            "version": pick.version,
            "newest": pick.newest,
            "target": pick.target,
            "from": pick.from,
            "leaves": pick.leaves.as_ref().map(ToString::to_string),
            "path": pick.path.iter().map(|step| &step.version).collect::<Vec<_>>(),
            "steps": steps(loaded, &pick.path),
            "preconditions": pick.preconditions(),
            "waits": pick.waits.as_ref().map(ToString::to_string),
            "because": pick.because,
            "overridden": pick.overridden,
            "deprecated": pick.deprecated,
            "chart": {"urls": pick.chart.urls, "digest": pick.chart.digest},
        })
    };
    let drivers: Vec<Value> = picks.map(driver).collect();
    let failure = |error: &NoFit| {
        let rejected: Vec<Value> = error
            .rejected
            .iter()
            .map(|r| json!({"version": r.version, "reason": r.reason.to_string()}))
            .collect();
        json!({"driver": error.driver, "message": headline(error), "advice": error.advice, "rejected": rejected})
    };
    let failures: Vec<Value> = result
        .as_ref()
        .err()
        .into_iter()
        .flat_map(|error| error.all())
        .map(failure)
        .collect();
    document(
        "Resolution",
        json!({
            "matrix": loaded.identity(),
            "kubernetes": question.kubernetes,
            "vcenters": vcenters,
            "fits": result.is_ok(),
            "drivers": drivers,
            "failure": failures.first(),
            "failures": failures,
            "fitting": result.as_ref().err().map(|error| &error.fitting),
        }),
    )
}
