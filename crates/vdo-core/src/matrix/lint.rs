// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix lint`: finds every mistake in an index at once, each with its line, for the author of an index.
//! [`Index::parse`](super::Index::parse) stops at the first one that matters.

mod legacy;
mod reachable;
mod structure;
mod versions;
mod whole;

use super::index::{Image, Index};
use serde_json::Value;
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
    // What it holds instead may be anything, and is not repeated.
    if !index.is_object() {
        report.add(&IndexPath::default(), "", "this is not a matrix index: it has no fields");
        return report;
    }
    if super::legacy_format::is(&index) {
        legacy::check(&index, lender, &mut report);
        return report;
    }
    structure::check(&index, &mut report);
    whole::check(&index, &mut report);
    let mut candidates = Vec::new();
    for (name, driver) in drivers(&index) {
        candidates.extend(versions::check(&index, name, driver, &mut report));
    }
    reachable::check(candidates, &mut report);
    whole::circles(&index, &mut report);
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
