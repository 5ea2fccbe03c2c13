// SPDX-License-Identifier: Apache-2.0
//! Templates made to do harm end with a clear error and little memory; values reach their own places and no others.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a failing test should stop where it fails"
)]

mod hostile;
mod language;
mod values;

use crate::fixture::chain;
use serde_json::Value;
use std::sync::Mutex;
use vdo_core::chart::{self, Chart, Context};
use vdo_source::fetch::embedded;

/// A chart with one template of its own, and helpers in `templates/_own.yaml`.
fn with_template(text: &str, helpers: &str) -> Result<Chart, chart::ArchiveError> {
    let mut source = embedded::sources().remove("vsphere-cpi").unwrap();
    source.files.retain(|path, _| !path.starts_with("templates/"));
    source.files.insert("templates/own.yaml".to_owned(), text.as_bytes().to_vec());
    source.files.insert("templates/_own.yaml".to_owned(), helpers.as_bytes().to_vec());
    let version = source.versions().last().unwrap().clone();
    chart::open(&chart::package(&source, &version).unwrap())
}

fn outcome(text: &str, helpers: &str) -> Result<Vec<Value>, String> {
    let chart = with_template(text, helpers).map_err(|error| chain(&error))?;
    chart::render(&chart, &Value::Null, &Context::default()).map_err(|error| chain(&error))
}

/// Does the same with every item, on all cores.
fn side_by_side<T: Send>(items: impl IntoIterator<Item = T>, work: impl Fn(T) + Sync) {
    let items = Mutex::new(items.into_iter().collect::<Vec<_>>());
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let Some(item) = items.lock().unwrap().pop() else { break };
                    work(item);
                }
            });
        }
    });
}

#[test]
fn hostile_values_of_chart_are_counted_before_they_are_built() {
    let mut source = embedded::sources().remove("vsphere-cpi").unwrap();
    let many = format!("x: [{}[]]\n", "[],".repeat(20_000));
    source.files.insert("values.yaml".to_owned(), many.into_bytes());
    let version = source.versions().last().unwrap().clone();
    let error = chart::open(&chart::package(&source, &version).unwrap()).unwrap_err();
    let error = chain(&error);
    assert!(error.contains("values.yaml") && error.contains("20001"), "{error}");
}

#[test]
fn hostile_templates_together_are_limited() {
    let mut source = embedded::sources().remove("vsphere-cpi").unwrap();
    let large = "# a template\n".repeat(4_500).into_bytes();
    source
        .files
        .extend((0..75).map(|at| (format!("templates/{at}.yaml"), large.clone())));
    let version = source.versions().last().unwrap().clone();
    let error = chain(&chart::open(&chart::package(&source, &version).unwrap()).unwrap_err());
    assert!(error.contains("4 MiB"), "{error}");
}

/// `ignore missing` forgives what is not there; it must not find what is not the chart's.
#[test]
fn template_include_outside_chart_is_missing() {
    let template = "{% include '/etc/passwd' ignore missing %}\n{% include '../Chart.yaml' ignore missing %}\n";
    assert_eq!(outcome(template, "").unwrap_or_default(), Vec::<Value>::new());
}
