//! Templates made to do harm end with a clear error and little memory; values reach their own places and no others.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a failing test should stop where it fails"
)]

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

/// The bounds themselves are tested in `crates/minijinja-budget`; here, that a chart's templates have them, and what charts add.
#[test]
fn hostile_template_in_chart_ends_with_error() {
    for (name, template, expected) in [
        (
            "doubled string",
            format!(
                "{{% set s = 'aaaaaaaaaaaaaaaa' %}}{}x: {{{{ s }}}}\n",
                "{% set s = s ~ s %}".repeat(40)
            ),
            "own.yaml:1: engine ran out of fuel: the templates handle more than 16 MiB",
        ),
        (
            "loops in loops",
            "{% for a in range(10000) %}\n{% for b in range(10000) %}{% endfor %}{% endfor %}".to_owned(),
            "own.yaml:2: engine ran out of fuel",
        ),
        ("includes itself", "{% include 'templates/own.yaml' %}".to_owned(), "recursion"),
        (
            "unlisted filter",
            "a: 1\nx: {{ 'a'|tojson }}\n".to_owned(),
            "own.yaml:2: there is no filter",
        ),
        ("large template", "# a\n".repeat(20_000), "larger than 60000 bytes"),
        // Its size comes first: what looks for tags may take longer the longer a line is.
        ("many tags on one line", "{% if true %}".repeat(20_000), "larger than 60000 bytes"),
        ("deep tags on one line", "{% if true %}".repeat(4_600), "own.yaml:1"),
        (
            "many values on one line",
            format!("a: [{}1]\n", "{{ 1 }}, ".repeat(501)),
            "more than 500 interpolations on one line",
        ),
        (
            "many values in what is written",
            format!("a: [{}1]\n", "[],".repeat(15_000)).repeat(4) + "{% for a in range(40) %}{{ [[],[],[]] }}\n{% endfor %}",
            "own.yaml",
        ),
        (
            "much output",
            format!("{{% for a in range(10000) %}}{}{{% endfor %}}", "a".repeat(5_000)),
            "above 2 MiB",
        ),
        ("a file", "{% include '/etc/passwd' %}".to_owned(), "template not found"),
        (
            "a file of the chart that is no template",
            "{% include 'release.yaml' %}".to_owned(),
            "template not found",
        ),
        (
            "a file above by a path",
            "{% include 'templates/../release.yaml' %}".to_owned(),
            "template not found",
        ),
        (
            "a file by a value",
            "{% include values.namespace %}".to_owned(),
            "template not found",
        ),
    ] {
        let error = outcome(&template, "").unwrap_err();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

/// `ignore missing` forgives what is not there; it must not find what is not the chart's.
#[test]
fn template_include_outside_chart_is_missing() {
    let template = "{% include '/etc/passwd' ignore missing %}\n{% include '../Chart.yaml' ignore missing %}\n";
    assert_eq!(outcome(template, "").unwrap_or_default(), Vec::<Value>::new());
}
