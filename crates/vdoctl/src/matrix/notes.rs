// SPDX-License-Identifier: Apache-2.0
//! The lines below a chosen version in `matrix resolve`, `explain` and `--what-if-…`: upgrade steps, preconditions, downgrade, deprecation.

use super::super::style;
use vdo_api::types::DriverVersion;
use vdo_core::matrix::{Index, Pick, Step};

/// The lines below a choice.
pub(super) fn remarks(index: &Index, name: &str, pick: &Pick) -> Vec<String> {
    let mut lines = Vec::new();
    let from = pick.from.as_ref();
    let down = from.filter(|from| **from > pick.target);
    match (from, &pick.leaves) {
        (Some(from), Some(reason)) if down.is_some() => lines.push(format!(
            "{name} {} from {from} to {}: {from} {reason}",
            style::warn("is downgraded"),
            pick.target
        )),
        (Some(from), Some(reason)) => lines.push(format!("{name} {from} {}: it {reason}", style::warn("cannot stay installed"))),
        (Some(from), None) if down.is_some() => {
            lines.push(format!("{name} {} from {from} to {}", style::warn("is downgraded"), pick.target));
        }
        _ => {}
    }
    if let Some(reason) = &pick.overridden {
        lines.push(format!("{name} {} {}: it {reason}", pick.version, style::bad("does not fit")));
    }
    if let Some(reason) = &pick.deprecated {
        lines.push(format!("{name} {} is {}: {reason}", pick.version, style::warn("deprecated")));
    }
    if let Some(waits) = &pick.waits {
        lines.push(format!("{name} {waits}"));
    }
    if pick.path.len() > 1 {
        lines.push(format!(
            "{name} is upgraded in {} steps: {}",
            pick.path.len(),
            way(from, &pick.path)
        ));
    }
    lines.extend(checks(index, name, &pick.path));
    lines
}

/// `3.5.1 → 3.6.3 → 3.7.3`.
pub(super) fn way(from: Option<&DriverVersion>, path: &[Step]) -> String {
    let versions: Vec<String> = from
        .into_iter()
        .chain(path.iter().map(|step| &step.version))
        .map(ToString::to_string)
        .collect();
    versions.join(" → ")
}

/// What must hold before each step, in the words of the matrix.
pub(super) fn checks(index: &Index, name: &str, path: &[Step]) -> Vec<String> {
    let mut lines = Vec::new();
    for step in path.iter().filter(|step| !step.preconditions.is_empty()) {
        lines.push(format!("Required before {name} {}:", step.version));
        for precondition in &step.preconditions {
            let what = index.preconditions.get(precondition).map_or("", String::as_str);
            lines.push(format!("  {precondition}  {what}"));
        }
    }
    lines
}
