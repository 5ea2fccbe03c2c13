//! `vdoctl matrix resolve`: the choice with its reasons, or why there is none; and what an upgrade of the platform would do.

use super::super::args::{Format, Global, Resolve as Args};
use super::super::output::document;
use super::super::{Answer, CliError, Exit, style};
use super::notes::remarks;
use super::query::{self, Question};
use super::{Loaded, what_if};
use serde_json::{Value, json};
use vdo_api::types::{DriverName, DriverVersion};
use vdo_core::matrix::{self, NoFit, Pick, Rejection, Resolution, Step};

pub(super) async fn run(args: &Args, global: &Global) -> Result<Answer, CliError> {
    let loaded = Loaded::read(&args.index, global).await?;
    let question = query::question(&args.platform, global, &loaded.index).await?;
    if args.what_if_kubernetes.is_some() || !args.what_if_vcenter.is_empty() {
        return what_if::answer(args, &loaded, &question);
    }
    let result = matrix::resolve(&loaded.index, &question.query());
    let exit = if result.is_ok() { Exit::Ok } else { Exit::Differences };
    let format = args.output.or_table();
    let answer = Answer::formatted(
        format,
        || json(&loaded, &question, &result),
        || text(&loaded, &question, &result, format == Format::Wide),
    )?;
    Ok(question.answer(loaded.answer(answer)).exit(exit))
}

fn text(loaded: &Loaded, question: &Question, result: &Result<Resolution, Box<NoFit>>, wide: bool) -> String {
    let mut text = format!("{}{}\n\n", loaded.header(), question.title());
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
        Err(error) => text.push_str(&refusals(error, wide)),
    }
    text
}

/// Every driver without a choice, with its candidates: each of them where `all` are asked for, else one line for each reason.
pub(super) fn refusals(error: &NoFit, all: bool) -> String {
    let mut text = String::new();
    for (i, error) in error.all().enumerate() {
        if i > 0 {
            text.push('\n');
        }
        text.push_str(&format!("{} {}\n", style::bad("✗"), headline(error)));
        text.push_str(&candidates(error, all));
        if let Some(advice) = &error.advice {
            text.push_str(&format!("{advice}.\n"));
        }
    }
    text.push_str(&fitting(error));
    text
}

/// Why no version was chosen.
fn candidates(error: &NoFit, all: bool) -> String {
    if error.rejected.is_empty() {
        return String::new();
    }
    if all {
        let rows: Vec<Vec<String>> = error
            .rejected
            .iter()
            .map(|r| vec![error.driver.clone(), r.version.to_string(), r.reason.to_string()])
            .collect();
        return format!("\n{}\n", style::table(&["DRIVER", "VERSION", "REJECTED BECAUSE IT"], &rows));
    }
    // Why other versions do not fit says nothing about the one that is pinned.
    if !matches!(error.cause, matrix::Cause::NothingFits) {
        return String::new();
    }
    let all = error.rejected.iter().map(|rejected| (&rejected.version, &rejected.reason));
    let mut text: String = folded(all).iter().map(|line| format!("  {line}\n")).collect();
    text.push_str(&format!("  {}\n", style::faint("-o wide lists every version with its reason")));
    text
}

/// One line for each kind of reason, with how many versions have it and the newest of them.
pub(super) fn folded<'a>(rejected: impl Iterator<Item = (&'a DriverVersion, &'a Rejection)>) -> Vec<String> {
    let mut groups: Vec<(&'static str, usize, String)> = Vec::new();
    for (version, reason) in rejected {
        let kind = <&'static str>::from(reason);
        match groups.iter_mut().find(|(known, ..)| *known == kind) {
            Some((_, count, _)) => *count += 1,
            None => groups.push((kind, 1, format!("{version} {reason}"))),
        }
    }
    let line = |(_, count, newest)| {
        if count == 1 {
            newest
        } else {
            format!("{count} versions, the newest of them {newest}")
        }
    };
    groups.into_iter().map(line).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejections_of_one_kind_are_one_line() {
        let range = |text: &str| Rejection::Kubernetes {
            supported: vdo_api::types::VersionRange::new(None, Some(text)).expect("a range"),
            actual: "1.37".parse().expect("a version"),
        };
        let all = [("3.7.3", range("1.35")), ("3.7.2", Rejection::NoChart), ("3.6.0", range("1.34"))];
        let all: Vec<(DriverVersion, Rejection)> = all
            .into_iter()
            .map(|(version, reason)| (version.parse().expect("a version"), reason))
            .collect();
        assert_eq!(
            folded(all.iter().map(|(version, reason)| (version, reason))),
            [
                "2 versions, the newest of them 3.7.3 supports Kubernetes up to 1.35, the cluster has 1.37",
                "3.7.2 has no chart, only manifests, which are never applied",
            ]
        );
    }
}
