// SPDX-License-Identifier: Apache-2.0
//! `vdoctl chart compare`: reports the fields in which a rendered chart differs from the driver's manifests, and checks `deviations.yaml`.

use super::super::args::{ChartCompare, Global};
use super::super::views::publish::{ChartComparisonView, DifferenceView};
use super::super::{Answer, CliError, Exit};
use super::{Rendered, manifests, rendered};
use serde_json::Value;
use std::fmt::Write as _;
use vdo_api::types::count;
use vdo_core::chart::compare::{self, Deviation, Difference, Kind};
use vdo_core::chart::{self, Chart};

/// How a chart differs from the manifests of its publisher.
pub(super) struct DeviationReport {
    /// Every difference, with the deviation that intends it.
    pub(super) differences: Vec<(Difference, Option<Deviation>)>,
    /// Listed deviations that are not there.
    pub(super) stale: Vec<Deviation>,
}

impl DeviationReport {
    fn intended(&self) -> usize {
        self.differences.len() - self.unexpected()
    }

    /// Differences that no deviation intends.
    pub(super) fn unexpected(&self) -> usize {
        self.differences.iter().filter(|(_, deviation)| deviation.is_none()).count()
    }

    /// Whether nothing differs but what is listed, and everything that is listed is there.
    pub(super) fn is_intended(&self) -> bool {
        self.stale.is_empty() && self.unexpected() == 0
    }
}

pub(in super::super) async fn run(args: &ChartCompare, global: &Global) -> Result<Answer, CliError> {
    let Rendered { chart, values, objects } = rendered(&args.with, global).await?;
    let original: Vec<Value> = manifests::read(&args.files)?
        .into_iter()
        .flat_map(|manifest| manifest.objects)
        .collect();
    let found = found(&chart, &values, &original, &objects)?;
    let summary = format!(
        "{}: {} of the chart compared with {} of the manifests; {}, {} of them intended",
        chart.label(),
        count(objects.len(), "object"),
        original.len(),
        count(found.differences.len(), "difference"),
        found.intended(),
    );
    let answer = Answer::view(args.output.or_table(), &view(&chart, &found), || text(&found))?;
    Ok(answer
        .note(summary)
        .exit(if found.is_intended() { Exit::Ok } else { Exit::Differences }))
}

fn found(chart: &Chart, values: &Value, original: &[Value], objects: &[Value]) -> Result<DeviationReport, CliError> {
    let differences = compare::compare(original, objects).map_err(|error| CliError::of(Exit::Refused, &error))?;
    let effective = chart::accepted(chart, values).map_err(|error| CliError::of(Exit::Refused, &error))?;
    let listed = compare::applicable(&chart.deviations, &chart.metadata.version, &effective);
    let stale = compare::judge(&differences, &listed).stale;
    let intention = |difference: &Difference| listed.iter().find(|deviation| deviation.intends(difference)).cloned();
    Ok(DeviationReport {
        differences: differences
            .into_iter()
            .map(|difference| {
                let deviation = intention(&difference);
                (difference, deviation)
            })
            .collect(),
        stale,
    })
}

/// Each difference, and each deviation that is not there.
pub(super) fn text(found: &DeviationReport) -> String {
    let mut out = String::new();
    for (difference, deviation) in &found.differences {
        let (object, path) = (&difference.object, &difference.path);
        let word = match difference.kind {
            Kind::Absent => "not rendered",
            Kind::Added => "only rendered",
            Kind::Changed => "changed",
        };
        let mark = if deviation.is_some() { "intended" } else { "DIFFERENT" };
        let space = if path.is_empty() { "" } else { " " };
        let _ = writeln!(out, "{mark}: {object}{space}{path} {word}");
        if !path.is_empty() {
            for (side, value) in [("original", &difference.original), ("rendered", &difference.rendered)] {
                if let Some(value) = value {
                    let _ = writeln!(out, "  {side}  {value}");
                }
            }
        }
        if let Some(deviation) = deviation {
            let _ = writeln!(out, "  reason    {}", deviation.reason);
        }
    }
    for deviation in &found.stale {
        let space = if deviation.path.is_empty() { "" } else { " " };
        let _ = writeln!(
            out,
            "NOT FOUND: {}{space}{} is listed as a deviation and does not differ; remove it from deviations.yaml",
            deviation.object, deviation.path
        );
    }
    out
}

fn view(chart: &Chart, found: &DeviationReport) -> ChartComparisonView {
    let difference = |(difference, deviation): &(Difference, Option<Deviation>)| DifferenceView {
        object: difference.object.clone(),
        path: difference.path.clone(),
        kind: difference.kind,
        original: difference.original.clone(),
        rendered: difference.rendered.clone(),
        intended: deviation.is_some(),
        reason: deviation.as_ref().map(|deviation| deviation.reason.clone()),
    };
    ChartComparisonView {
        driver: chart.metadata.name.clone(),
        version: chart.metadata.version.clone(),
        differences: found.differences.iter().map(difference).collect(),
        stale: found.stale.clone(),
    }
}
