// SPDX-License-Identifier: Apache-2.0
//! `vdoctl chart lint`: reports the mistakes in all releases of a chart folder, or in one chart package.

use super::super::args::ChartLint;
use super::super::views::publish::{ChartLintView, ChartMistakeView};
use super::super::{Answer, CliError, Exit, error, memory_limited_child, style};
use super::{file, folder};
use std::collections::BTreeMap;
use vdo_api::types::{DriverVersion, count};
use vdo_api::yaml;
use vdo_core::chart::{self, ArchiveError, Chart, Source};

/// What was found in the releases of a chart.
#[derive(Default)]
struct Report {
    chart: String,
    releases: Vec<DriverVersion>,
    /// Each mistake once, with the releases that have it.
    findings: BTreeMap<String, Vec<DriverVersion>>,
}

pub(super) async fn run(args: &ChartLint) -> Result<Answer, CliError> {
    if let Some(answer) = memory_limited_child::in_child("chart lint", &args.path).await? {
        return Ok(answer);
    }
    let mut report = if args.path.is_dir() {
        of_source(&folder::read(&args.path, "Name the folder of a chart or its package.")?)
    } else {
        let mut report = Report::default();
        let opened = chart::open(&file::bytes("the chart", &args.path)?);
        report.look(None, opened.map_err(|error| problem(&error)));
        report
    };
    if report.releases.is_empty() && report.findings.is_empty() {
        return Err(CliError::new(
            Exit::NotFound,
            format!(
                "{} contains no chart: no file in its releases folder lists a version",
                args.path.display()
            ),
            "Name the folder of one chart, such as charts/vsphere-csi, or its package.",
        ));
    }
    if report.chart.is_empty() {
        report.chart = args.path.display().to_string();
    }
    let exit = if report.findings.is_empty() { Exit::Ok } else { Exit::Differences };
    let answer = Answer::view(args.output.or_table(), &report.view(), || report.text())?;
    Ok(answer.exit(exit))
}

/// What is wrong with a chart that cannot be opened. That it is not a chart goes without saying where its mistakes are listed.
fn problem(error: &ArchiveError) -> String {
    match error {
        ArchiveError::Chart(inner) => error::sentence(inner),
        _ => error::sentence(error),
    }
}

fn of_source(source: &Source) -> Report {
    let metadata = source
        .files
        .get("Chart.yaml")
        .and_then(|bytes| yaml::load_value(&String::from_utf8_lossy(bytes)).ok());
    let name = metadata.as_ref().and_then(|metadata| metadata.get("name")?.as_str());
    let mut report = Report {
        chart: name.unwrap_or_default().to_owned(),
        ..Report::default()
    };
    for version in source.versions() {
        let opened = match chart::package(source, &version) {
            Ok(bytes) => chart::open(&bytes).map_err(|error| problem(&error)),
            Err(error) => Err(error::sentence(&error)),
        };
        report.look(Some(&version), opened);
    }
    for finding in source.strangers() {
        report.findings.insert(finding, Vec::new());
    }
    report
}

impl Report {
    /// Adds a release; one that cannot be opened has that as its mistake.
    fn look(&mut self, version: Option<&DriverVersion>, opened: Result<Chart, String>) {
        let version = version.or(opened.as_ref().ok().map(|chart| &chart.metadata.version)).cloned();
        let findings = match opened {
            Ok(chart) => {
                self.chart = chart.metadata.name.to_string();
                chart::lint(&chart)
            }
            Err(problem) => vec![problem],
        };
        self.releases.extend(version.clone());
        for finding in findings {
            self.findings.entry(finding).or_default().extend(version.clone());
        }
    }

    fn text(&self) -> String {
        let releases = count(self.releases.len(), "release");
        if self.findings.is_empty() {
            return format!("{} {}: no mistakes in {releases}\n", style::good("✓"), self.chart);
        }
        let mut text = String::new();
        for (finding, versions) in &self.findings {
            let place = match versions.as_slice() {
                [] => String::new(),
                [one] => format!(" {one}"),
                all if all.len() == self.releases.len() => format!(" (all {releases})"),
                [first, .., last] => format!(" ({} of {releases}, {first} to {last})", versions.len()),
            };
            text.push_str(&format!("{}{place}: {finding}\n", self.chart));
        }
        text.push_str(&format!(
            "{} {} in {releases}\n",
            style::bad("✗"),
            count(self.findings.len(), "mistake")
        ));
        text
    }

    fn view(&self) -> ChartLintView {
        let findings = self.findings.iter().map(|(problem, releases)| ChartMistakeView {
            releases: releases.clone(),
            problem: problem.clone(),
        });
        ChartLintView {
            chart: self.chart.clone(),
            releases: self.releases.clone(),
            good: self.findings.is_empty(),
            findings: findings.collect(),
        }
    }
}
