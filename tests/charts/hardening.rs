//! Templates made to do harm end with a clear error and little memory; values reach their own places and no others.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a failing test should stop where it fails; a child process is told by the environment what to render"
)]

mod hostile;
mod language;
mod values;

use crate::fixture::chain;
use crate::hardening::hostile::{MEMORY, hostile};
use serde_json::Value;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use vdo::chart::{self, Chart, Context};
use vdo::fetch::embedded;

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

const CASE: &str = "VDO_TEST_HOSTILE_TEMPLATE";

/// The highest resident size this process ever had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn hostile_template_child_renders_one_case() {
    let Ok(name) = std::env::var(CASE) else { return };
    let (_, template, _) = hostile().into_iter().find(|(case, _, _)| *case == name).unwrap();
    let before = peak();
    let result = outcome(&template, "");
    println!("grown={} outcome={result:?}", peak() - before);
}

#[test]
fn hostile_template_ends_with_error_and_little_memory() {
    const MOST: u64 = 96 << 10;
    let itself = std::env::current_exe().unwrap();
    let (wrong, most) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    side_by_side(hostile(), |(name, _, expected)| {
        let child = Command::new(&itself)
            .args(["--exact", "hardening::hostile_template_child_renders_one_case", "--nocapture"])
            .env(CASE, name)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        let grown = text
            .split("grown=")
            .nth(1)
            .and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        most.fetch_max(grown.unwrap_or(u64::MAX), Ordering::Relaxed);
        // the meter's error names the engine's fuel too, so a missing limit of steps must not hide behind it
        let own = expected == MEMORY || !text.contains(MEMORY);
        let fits = own && text.contains("outcome=Err(") && text.contains(expected) && grown.is_some_and(|grown| grown <= MOST);
        if !fits {
            let shown: String = text.chars().take(600).collect();
            wrong.lock().unwrap().push(format!(
                "{name}: expected {expected:?}, grew by {grown:?} KiB, {}: {shown}",
                child.status
            ));
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!(
        "{} hostile templates, the largest grew by {} KiB",
        hostile().len(),
        most.into_inner()
    );
    assert!(hostile().len() >= 40);
}

/// `ignore missing` forgives what is not there; it must not find what is not the chart's.
#[test]
fn template_include_outside_chart_is_missing() {
    let template = "{% include '/etc/passwd' ignore missing %}\n{% include '../Chart.yaml' ignore missing %}\n";
    assert_eq!(outcome(template, "").unwrap_or_default(), Vec::<Value>::new());
}
