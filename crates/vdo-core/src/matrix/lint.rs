//! Every mistake in an index at once, with its place. [`Index::parse`](super::Index::parse) stops at the first one that matters;
//! this is for the author of an index.

mod legacy;
mod reachable;
mod structure;
mod versions;

use super::index::{Image, Index};
use serde_json::Value;
use std::collections::BTreeMap;
use std::num::NonZero;
use vdo_api::types::{ChartRef, Digest, DriverName, DriverVersion};
use vdo_api::yaml::{self, YamlError};

/// Something wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The line, from 1, where it is known.
    pub line: Option<u64>,
    /// The place, as `drivers.vsphere-csi 3.7.3`; empty for the top.
    pub at: String,
    /// The field there, as `kubernetes.min`; empty when it is about the whole.
    pub field: String,
    /// What is wrong, and what to write instead.
    pub problem: String,
    /// The same place as keys and numbers.
    path: Vec<String>,
}

/// A place in an index: a version, a driver, or the top.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexPath {
    /// For people.
    name: String,
    /// As keys, and numbers in lists.
    path: Vec<String>,
}

impl IndexPath {
    fn new(name: impl Into<String>, path: &[&str]) -> Self {
        Self {
            name: name.into(),
            path: path.iter().map(|part| (*part).to_owned()).collect(),
        }
    }

    fn driver(name: &str) -> Self {
        Self::new(format!("drivers.{name}"), &["drivers", name])
    }

    fn entry(driver: &str, i: usize, entry: &Value) -> Self {
        let path = ["drivers", driver, "versions", &i.to_string()];
        Self::new(super::parse::place(driver, i, entry), &path)
    }
}

/// What an entry says about its chart, for a caller that can read files to compare with the package.
#[derive(Debug, Clone, PartialEq)]
pub struct Promise {
    /// The place in the index.
    pub place: IndexPath,
    /// The driver.
    pub driver: DriverName,
    /// The version.
    pub version: DriverVersion,
    /// Where the chart is, and its digest.
    pub chart: ChartRef,
    /// The images, unless the entry names none.
    pub images: Vec<Image>,
}

/// What was found, and what is left to check for a caller that can read files.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The mistakes, in the order in which they were found.
    pub findings: Vec<Finding>,
    /// The charts the index names.
    pub charts: Vec<Promise>,
}

impl Report {
    /// Adds a mistake.
    pub fn add(&mut self, at: &IndexPath, field: &str, problem: impl Into<String>) {
        let parts = field.split('.').filter(|part| !part.is_empty()).map(str::to_owned);
        self.findings.push(Finding {
            line: None,
            at: at.name.clone(),
            field: field.to_owned(),
            problem: problem.into(),
            path: at.path.iter().cloned().chain(parts).collect(),
        });
    }

    /// The mistakes with their lines, in the order of the text. One about something that is not there has the line of what should
    /// hold it.
    #[must_use]
    pub fn located(mut self, text: &str) -> Vec<Finding> {
        if self.findings.iter().any(|finding| finding.line.is_none()) {
            let lines = yaml::lines(text);
            for finding in self.findings.iter_mut().filter(|finding| finding.line.is_none()) {
                let mut path = finding.path.as_slice();
                while let Some((_, parent)) = path.split_last().filter(|_| finding.line.is_none()) {
                    finding.line = lines.get(path).copied();
                    path = parent;
                }
            }
        }
        self.findings.sort_by_key(|finding| finding.line);
        self.findings
    }
}

/// Looks for mistakes in the text of an index. A file of the original operator names no charts; it gets those of the lender, as when
/// it is used.
#[must_use]
pub fn lint(text: &str, lender: &Index) -> Report {
    let mut report = Report::default();
    let index = match yaml::load_long(text) {
        Ok(index) => index,
        Err(error) => {
            report.add(&IndexPath::default(), "", error.to_string());
            if let (YamlError::Read { line, column, message }, Some(finding)) = (error, report.findings.first_mut()) {
                finding.line = NonZero::new(line).map(NonZero::get);
                finding.problem = format!("{message} (column {column})");
            }
            return report;
        }
    };
    if super::legacy_format::is(&index) {
        legacy::check(&index, lender, &mut report);
        return report;
    }
    structure::check(&index, &mut report);
    top(&index, &mut report);
    let mut candidates = Vec::new();
    for (name, driver) in drivers(&index) {
        candidates.extend(versions::check(&index, name, driver, &mut report));
    }
    reachable::check(candidates, &mut report);
    circles(&index, &mut report);
    report
}

fn drivers(index: &Value) -> impl Iterator<Item = (&String, &Value)> {
    index["drivers"].as_object().into_iter().flatten()
}

/// The entries of a driver, each with its place.
fn entries<'a>(name: &'a str, driver: &'a Value) -> impl Iterator<Item = (IndexPath, &'a Value)> {
    let all = driver["versions"].as_array().into_iter().flatten();
    all.enumerate().map(move |(i, entry)| (IndexPath::entry(name, i, entry), entry))
}

fn top(index: &Value, report: &mut Report) {
    let here = IndexPath::default();
    let time = |field: &str| index[field].as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    for field in ["generated", "expires"] {
        if index[field].is_string() && time(field).is_none() {
            report.add(&here, field, "this is no time; write for example 2026-11-20T00:00:00Z");
        }
    }
    if let (Some(generated), Some(expires)) = (time("generated"), time("expires"))
        && expires <= generated
    {
        report.add(&here, "expires", "it expires before it was generated");
    }
    let mut seen = BTreeMap::new();
    for (i, floor) in index["vcenterBuilds"].as_array().into_iter().flatten().enumerate() {
        let field = format!("vcenterBuilds.{i}");
        if let Some(other) = seen.insert((floor["reported"].to_string(), floor["build"].to_string()), i) {
            report.add(&here, &field, format!("it overlaps with vcenterBuilds.{other}; keep one of them"));
        }
        versions::evidence(index, &here, &field, floor, report);
    }
}

/// Drivers that need each other in a circle: none could be installed first. One that needs itself is reported at its version.
fn circles(index: &Value, report: &mut Report) {
    let needs = |name: &str| -> Vec<String> {
        let entries = index["drivers"][name]["versions"].as_array().into_iter().flatten();
        let required = entries.flat_map(|entry| entry["requires"].as_array().into_iter().flatten());
        let others = required.filter_map(|r| r["driver"].as_str()).filter(|other| *other != name);
        let mut all: Vec<String> = others.map(str::to_owned).collect();
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
                &IndexPath::driver(start),
                "requires",
                format!("it needs itself in a circle (through {way}); one of them has to do without"),
            );
        }
    }
}

/// What an entry says about its chart, where that can be read.
fn promise(place: &IndexPath, driver: &str, version: &DriverVersion, entry: &Value) -> Option<Promise> {
    let digest: Digest = format!("sha256:{}", entry["chart"]["sha256"].as_str()?).parse().ok()?;
    let urls = entry["chart"]["urls"].as_array()?.iter().filter_map(Value::as_str);
    Some(Promise {
        place: place.clone(),
        driver: driver.to_owned(),
        version: version.clone(),
        chart: ChartRef {
            urls: urls.map(str::to_owned).collect(),
            digest,
        },
        images: serde_json::from_value(entry["images"].clone()).unwrap_or_default(),
    })
}
