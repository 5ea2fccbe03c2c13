//! Every mistake in an index at once, with its place. [`Index::parse`](super::Index::parse) stops at the first one that matters;
//! this is for whoever writes an index.

mod versions;

use crate::types::{ChartRef, Digest};
use crate::yaml;
use serde_json::Value;
use std::collections::BTreeMap;

/// The published schema, which says what fields there are.
const SCHEMA: &str = include_str!("../../docs/schema/matrix-v1.json");

/// Something wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The place, as `drivers.vsphere-csi 3.7.3`; empty for the top.
    pub at: String,
    /// The field there, as `kubernetes.min`; empty when it is about the whole.
    pub field: String,
    /// What is wrong, and what to write instead.
    pub problem: String,
}

/// What was found, and what is left to check for whoever can read files.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The mistakes, in the order of the text.
    pub findings: Vec<Finding>,
    /// The charts the index names, by the place that names them.
    pub charts: Vec<(String, ChartRef)>,
}

impl Report {
    fn add(&mut self, at: &str, field: &str, problem: impl Into<String>) {
        self.findings.push(Finding {
            at: at.to_owned(),
            field: field.to_owned(),
            problem: problem.into(),
        });
    }
}

/// Looks for mistakes in the text of an index.
#[must_use]
pub fn lint(text: &str) -> Report {
    let mut report = Report::default();
    let index = match yaml::load_value(text) {
        Ok(index) => index,
        Err(error) => {
            report.add("", "", error.to_string());
            return report;
        }
    };
    if super::original::is(&index) {
        original(text, &mut report);
        return report;
    }
    structure(&index, &mut report);
    top(&index, &mut report);
    for (name, driver) in drivers(&index) {
        versions::check(&index, name, driver, &mut report);
    }
    circles(&index, &mut report);
    report
}

fn original(text: &str, report: &mut Report) {
    match super::Index::parse(text.as_bytes()) {
        Ok(index) => index
            .unknown_fields
            .iter()
            .for_each(|field| report.add("", field, "this field is not known")),
        Err(super::IndexError::Invalid { at, problem }) => report.add(&at, "", problem),
        Err(error) => report.add("", "", error.to_string()),
    }
}

fn drivers(index: &Value) -> impl Iterator<Item = (&String, &Value)> {
    index["drivers"].as_object().into_iter().flatten()
}

/// The entries of a driver, each with its place.
fn entries<'a>(name: &'a str, driver: &'a Value) -> impl Iterator<Item = (String, &'a Value)> {
    let all = driver["versions"].as_array().into_iter().flatten();
    all.enumerate().map(move |(i, entry)| (place(name, i, entry), entry))
}

fn place(driver: &str, i: usize, entry: &Value) -> String {
    match entry["version"].as_str() {
        Some(version) => format!("drivers.{driver} {version}"),
        None => format!("drivers.{driver} entry {}", i + 1),
    }
}

/// What the schema says: unknown fields, missing ones, wrong kinds of values.
fn structure(index: &Value, report: &mut Report) {
    use jsonschema::error::ValidationErrorKind as Kind;
    let schema: Value = serde_json::from_str(SCHEMA).unwrap_or_default();
    let Ok(validator) = jsonschema::validator_for(&schema) else {
        report.add("", "", "the schema of this build is broken");
        return;
    };
    for error in validator.iter_errors(index) {
        let path: Vec<&str> = error.instance_path().as_str().split('/').skip(1).collect();
        let (at, field) = match path.as_slice() {
            ["drivers", driver, "versions", i, rest @ ..] => {
                let number = i.parse().unwrap_or(0);
                (
                    place(driver, number, &index["drivers"][*driver]["versions"][number]),
                    rest.join("."),
                )
            }
            ["drivers", driver, rest @ ..] => (format!("drivers.{driver}"), rest.join(".")),
            all => (String::new(), all.join(".")),
        };
        if let Kind::AdditionalProperties { unexpected } = error.kind() {
            for name in unexpected {
                let field = if field.is_empty() {
                    name.clone()
                } else {
                    format!("{field}.{name}")
                };
                report.add(&at, &field, "this field is not known; docs/matrix.md lists those there are");
            }
            continue;
        }
        let mut problem = error.to_string();
        if error.instance().is_number() && problem.contains("string") {
            problem.push_str("; put versions in quotes, 1.30 is not 1.3");
        }
        report.add(&at, &field, problem);
    }
}

fn top(index: &Value, report: &mut Report) {
    let time = |field: &str| index[field].as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    for field in ["generated", "expires"] {
        if index[field].is_string() && time(field).is_none() {
            report.add("", field, "this is no time; write for example 2026-11-20T00:00:00Z");
        }
    }
    if let (Some(generated), Some(expires)) = (time("generated"), time("expires"))
        && expires <= generated
    {
        report.add("", "expires", "it expires before it was generated");
    }
    let mut seen = BTreeMap::new();
    for (i, floor) in index["vcenterBuilds"].as_array().into_iter().flatten().enumerate() {
        let field = format!("vcenterBuilds.{i}");
        if let Some(other) = seen.insert((floor["reported"].to_string(), floor["build"].to_string()), i) {
            report.add("", &field, format!("it overlaps with vcenterBuilds.{other}; keep one of them"));
        }
        versions::evidence(index, "", &field, floor, report);
    }
}

/// Drivers that need each other in a circle: none could be installed first.
fn circles(index: &Value, report: &mut Report) {
    let needs = |name: &str| -> Vec<String> {
        let entries = index["drivers"][name]["versions"].as_array().into_iter().flatten();
        let required = entries.flat_map(|entry| entry["requires"].as_array().into_iter().flatten());
        let mut all: Vec<String> = required.filter_map(|r| r["driver"].as_str()).map(str::to_owned).collect();
        all.sort();
        all.dedup();
        all
    };
    for (start, _) in drivers(index) {
        let mut reached = needs(start);
        let mut i = 0;
        while let Some(name) = reached.get(i).cloned() {
            let more: Vec<String> = needs(&name).into_iter().filter(|other| !reached.contains(other)).collect();
            reached.extend(more);
            i += 1;
        }
        if reached.contains(start) {
            let way = reached.join(", ");
            report.add(
                &format!("drivers.{start}"),
                "requires",
                format!("it needs itself in a circle (through {way}); one of them has to do without"),
            );
        }
    }
}

/// The chart an entry names, when what it says about it can be read.
fn chart(entry: &Value) -> Option<ChartRef> {
    let digest: Digest = format!("sha256:{}", entry["chart"]["sha256"].as_str()?).parse().ok()?;
    let urls = entry["chart"]["urls"]
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned);
    Some(ChartRef {
        urls: urls.collect(),
        digest,
    })
}
