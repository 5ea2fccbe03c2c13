//! `vdoctl chart compare`: a chart against the driver's own manifests.

use super::super::answer::document;
use super::super::args::{ChartCompare, Global};
use super::super::{Answer, CliError, Exit};
use super::{Rendered, file, rendered};
use crate::chart::compare::{self, Deviation, Difference, Kind};
use crate::chart::{self, Chart};
use crate::types::count;
use crate::yaml;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// What was found.
struct Found {
    /// Every difference, with the deviation that intends it.
    differences: Vec<(Difference, Option<Deviation>)>,
    /// Listed deviations that are not there.
    stale: Vec<Deviation>,
}

impl Found {
    fn intended(&self) -> usize {
        self.differences.iter().filter(|(_, deviation)| deviation.is_some()).count()
    }
}

pub(in super::super) async fn run(args: &ChartCompare, global: &Global) -> Result<Answer, CliError> {
    let Rendered { chart, values, objects } = rendered(&args.with, global).await?;
    let original = manifests(args)?;
    let found = found(&chart, &values, &original, &objects)?;
    let summary = format!(
        "{}: {} compared with {} of the driver: {}, {} of them intended",
        chart.label(),
        count(objects.len(), "object"),
        original.len(),
        count(found.differences.len(), "difference"),
        found.intended(),
    );
    let same = found.stale.is_empty() && found.intended() == found.differences.len();
    let answer = Answer::formatted(args.output.or_table(), || json(&chart, &found), || text(&found))?;
    Ok(answer.say(summary).exit(if same { Exit::Ok } else { Exit::Differences }))
}

fn found(chart: &Chart, values: &Value, original: &[Value], objects: &[Value]) -> Result<Found, CliError> {
    let differences = compare::compare(original, objects).map_err(|error| CliError::of(Exit::Refused, &error))?;
    let effective = chart::accepted(chart, values).map_err(|error| CliError::of(Exit::Refused, &error))?;
    let listed = compare::applicable(&chart.deviations, &chart.metadata.version, &effective);
    let stale = compare::judge(&differences, &listed).stale;
    let intention = |difference: &Difference| listed.iter().find(|deviation| deviation.intends(difference)).cloned();
    Ok(Found {
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

/// The objects of all files. Something in a file that is not an object is refused with its place.
fn manifests(args: &ChartCompare) -> Result<Vec<Value>, CliError> {
    let mut all = Vec::new();
    for path in &args.files {
        let remedy = "Name the files as the driver ships them.";
        let wrong = |problem: String| CliError::new(Exit::Refused, format!("the manifest {}: {problem}", path.display()), remedy);
        let text = file::text("the manifest", path)?;
        let documents = yaml::load_all(&text).map_err(|error| wrong(error.to_string()))?;
        for (index, document) in documents.into_iter().enumerate() {
            let id = chart::object_id(&document);
            id.map_err(|error| wrong(format!("document {} is not a Kubernetes object: {error}", index + 1)))?;
            all.push(document);
        }
    }
    Ok(all)
}

fn text(found: &Found) -> String {
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
            let _ = writeln!(out, "  because   {}", deviation.reason);
        }
    }
    for deviation in &found.stale {
        let space = if deviation.path.is_empty() { "" } else { " " };
        let _ = writeln!(
            out,
            "NOT THERE: {}{space}{} is listed as a deviation; remove it from deviations.yaml",
            deviation.object, deviation.path
        );
    }
    out
}

fn json(chart: &Chart, found: &Found) -> Value {
    let difference = |(difference, deviation): &(Difference, Option<Deviation>)| {
        json!({
            "object": difference.object,
            "path": difference.path,
            "kind": difference.kind,
            "original": difference.original,
            "rendered": difference.rendered,
            "intended": deviation.is_some(),
            "reason": deviation.as_ref().map(|d| &d.reason),
        })
    };
    document(
        "ChartComparison",
        json!({
            "driver": chart.metadata.name,
            "version": chart.metadata.version,
            "differences": found.differences.iter().map(difference).collect::<Vec<_>>(),
            "stale": found.stale,
        }),
    )
}
