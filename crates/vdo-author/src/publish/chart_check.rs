// SPDX-License-Identifier: Apache-2.0
//! Checks whether a chart may be published: lint, and render on every supported Kubernetes minor without APIs that are not served there.

use super::removed_apis::removed_in;
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use vdo_core::chart::{self, Chart, Context, RenderError};

/// The objects of a chart on this minor of Kubernetes.
///
/// # Errors
/// When it does not render.
pub fn rendered(chart: &Chart, minor: &str, values: &Value) -> Result<Vec<Value>, RenderError> {
    let mut context = Context::default();
    if !minor.is_empty() {
        context.cluster.version = format!("v{minor}.0");
        minor.clone_into(&mut context.cluster.minor);
    }
    chart::render(chart, values, &context)
}

/// Everything that keeps a chart from being published, each once, with the minors where it is so.
#[must_use]
pub fn problems(chart: &Chart, minors: &[String]) -> Vec<String> {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for minor in minors {
        for values in [Value::Null, chart::everything(chart)] {
            let problems = match rendered(chart, minor, &values) {
                Ok(objects) => objects.iter().filter_map(|object| unserved(object, minor)).collect(),
                Err(error) => vec![whole(&error)],
            };
            for problem in problems {
                let at = found.entry(problem).or_default();
                if at.last() != Some(&minor.as_str()) {
                    at.push(minor);
                }
            }
        }
    }
    let mut all = chart::lint(chart);
    all.extend(
        found
            .into_iter()
            .map(|(problem, at)| format!("on Kubernetes {}: {problem}", at.join(", "))),
    );
    all
}

fn unserved(object: &Value, minor: &str) -> Option<String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (api, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    let removed = removed_in(api, kind)?;
    let minor: u64 = minor.split('.').nth(1)?.parse().ok()?;
    (removed <= minor).then(|| format!("{kind} {name}: Kubernetes 1.{removed} and newer do not serve {api} {kind}"))
}

fn whole(error: &dyn Error) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), |source| format!("{error}: {}", whole(source)))
}
