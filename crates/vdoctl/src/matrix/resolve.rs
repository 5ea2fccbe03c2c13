// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix resolve`: prints the chosen version of each driver, or the reason for the rejection of every candidate.

use super::super::args::{Format, Global, Resolve as Args};
use super::super::views::matrix_resolve::{ChosenView, NoFitView, PreconditionView, RejectedView, ResolutionView, StepView, VcenterView};
use super::super::{Answer, CliError, Exit, style};
use super::notes::remarks;
use super::query::{self, Question};
use super::{Loaded, what_if};
use vdo_api::types::{DriverName, DriverVersion, VcenterVersion, count, verb};
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
    let view = view(&loaded, &question, &result);
    let answer = Answer::view(format, &view, || text(&loaded, &question, &result, format == Format::Wide))?;
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
            text.push_str(&style::table(&["DRIVER", "FROM", "VERSION", "NEWEST FIT", "REASON"], &rows));
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
        return format!("\n{}\n", style::table(&["DRIVER", "VERSION", "REASON FOR THE REJECTION"], &rows));
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
            Some((_, all, _)) => *all += 1,
            None => groups.push((kind, 1, format!("{version} {reason}"))),
        }
    }
    let line = |(_, all, newest): (&str, usize, String)| match all - 1 {
        0 => newest,
        older => format!(
            "{newest}; {} {} rejected for similar reasons",
            count(older, "older version"),
            verb(older, "is", "are")
        ),
    };
    groups.into_iter().map(line).collect()
}

/// The drivers that have a version: the operator installs them without the other.
pub(super) fn fitting(error: &NoFit) -> String {
    let fitting: Vec<String> = error.fitting.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let verb = match fitting.len() {
        0 => return String::new(),
        1 => "fits, and the operator does",
        _ => "fit, and the operator does",
    };
    format!("\n{} {verb} not wait for the other driver.\n", fitting.join(" and "))
}

/// The steps of a way, for programs.
pub(super) fn steps(loaded: &Loaded, path: &[Step]) -> Vec<StepView> {
    let precondition = |name: &String| PreconditionView {
        name: name.clone(),
        means: loaded.index.preconditions.get(name).cloned(),
    };
    let step = |step: &Step| StepView {
        version: step.version.clone(),
        preconditions: step.preconditions.iter().map(precondition).collect(),
    };
    path.iter().map(step).collect()
}

/// The versions of a way.
pub(super) fn path(path: &[Step]) -> Vec<DriverVersion> {
    path.iter().map(|step| step.version.clone()).collect()
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

fn view(loaded: &Loaded, question: &Question, result: &Result<Resolution, Box<NoFit>>) -> ResolutionView {
    let driver = |(name, pick): (&DriverName, &Pick)| ChosenView {
        name: name.clone(),
        version: pick.version.clone(),
        newest: pick.newest.clone(),
        target: pick.target.clone(),
        from: pick.from.clone(),
        leaves: pick.leaves.as_ref().map(ToString::to_string),
        path: path(&pick.path),
        steps: steps(loaded, &pick.path),
        preconditions: pick.preconditions().to_vec(),
        waits: pick.waits.as_ref().map(ToString::to_string),
        because: pick.because.clone(),
        overridden: pick.overridden.clone(),
        deprecated: pick.deprecated.clone(),
        chart: pick.chart.clone(),
    };
    let failure = |error: &NoFit| {
        let rejected = error.rejected.iter().map(|rejected| RejectedView {
            version: rejected.version.clone(),
            reason: rejected.reason.to_string(),
        });
        NoFitView {
            driver: error.driver.clone(),
            message: headline(error),
            advice: error.advice.clone(),
            rejected: rejected.collect(),
        }
    };
    let error = result.as_ref().err();
    let failures: Vec<NoFitView> = error.into_iter().flat_map(|error| error.all()).map(failure).collect();
    ResolutionView {
        matrix: loaded.view(),
        kubernetes: question.kubernetes.clone(),
        vcenters: vcenters(&question.vcenters),
        fits: result.is_ok(),
        drivers: result.iter().flat_map(|resolution| &resolution.picks).map(driver).collect(),
        failure: failures.first().cloned(),
        failures,
        fitting: error.map(|error| error.fitting.clone()),
    }
}

/// Connections with the versions of their vCenters, for programs.
pub(super) fn vcenters(all: &[(String, VcenterVersion)]) -> Vec<VcenterView> {
    let of = |(connection, version): &(String, VcenterVersion)| VcenterView {
        connection: connection.clone(),
        version: version.clone(),
    };
    all.iter().map(of).collect()
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
                "3.7.3 supports Kubernetes up to 1.35, not 1.37; 1 older version is rejected for similar reasons",
                "3.7.2 has manifests but no chart, and VDO installs only versions with a chart",
            ]
        );
    }
}
