// SPDX-License-Identifier: Apache-2.0
//! Draws the bars of `vdoctl matrix list`: the Kubernetes minor versions that each driver version supports.

use super::super::style;
use super::bounds::bounds;
use std::collections::BTreeMap;
use vdo_api::types::{KubernetesVersion, span};
use vdo_core::drivers::short;
use vdo_core::matrix::{Confidence, Entry, Index, State};

/// A Kubernetes minor.
type Minor = (u64, u64);

/// The Kubernetes minors that the index speaks of, from the lowest to the highest bound.
pub(crate) fn minors(index: &Index) -> Vec<Minor> {
    let entries = index.drivers.values().flat_map(|driver| &driver.versions);
    let bounds = entries
        .flat_map(|entry| [entry.kubernetes.range.min(), entry.kubernetes.range.max()])
        .flatten();
    let all: Vec<Minor> = bounds.filter_map(minor).collect();
    let (Some(first), Some(last)) = (all.iter().min(), all.iter().max()) else {
        return Vec::new();
    };
    // There has been one major version since 2015.
    span(first.1, last.1).map(|minor| (first.0, minor)).collect()
}

fn minor(bound: &str) -> Option<Minor> {
    let mut parts = bound.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

/// One line for each minor of a driver and each range that its versions support, below a ruler of the Kubernetes minors. The cluster's is
/// marked.
pub(super) fn draw(index: &Index, entries: &[(&str, &Entry)], cluster: Option<&KubernetesVersion>) -> String {
    let supported = |minor: &Minor| {
        entries
            .iter()
            .any(|(_, entry)| entry.kubernetes.range.contains(&[minor.0, minor.1]))
    };
    let minors: Vec<Minor> = minors(index).into_iter().filter(supported).collect();
    let here = cluster.and_then(|version| minor(&version.minor()));
    let major = minors.first().map_or(1, |minor| minor.0);
    let ruler = format!("{major}.{}", ruler(&minors, here));
    let mut rows = vec![vec![style::head("DRIVER"), style::head("VERSION"), ruler, style::head("VSPHERE")]];
    for ((driver, version, bar), versions) in grouped(&minors, entries) {
        rows.push(vec![
            short(&driver).to_owned(),
            title(&version, &versions),
            format!("  {}", row(&bar, &minors, here)),
            bounds(&versions[0].vsphere.range),
        ]);
    }
    let mut text = style::columns(rows.iter());
    let mark = here
        .map(|(major, minor)| format!("  [ ] Kubernetes {major}.{minor}"))
        .unwrap_or_default();
    let legend = format!("▇ supported  ▒ unconfirmed  ░ deprecated  x withdrawn{mark}; -o wide lists each version");
    text.push_str(&format!("\n{}\n", style::faint(&legend)));
    text
}

/// The minors as numbers above the cells of `row`. A number is as wide as a cell, so every other one is left out; that of the cluster, or the
/// newest, is there.
fn ruler(minors: &[Minor], here: Option<Minor>) -> String {
    let at = minors.iter().position(|minor| Some(*minor) == here);
    let shown = at.unwrap_or(minors.len().saturating_sub(1)) % 2;
    let cell = |(number, minor): (usize, &Minor)| match number % 2 == shown {
        true => format!("{:02}", minor.1),
        false => "  ".to_owned(),
    };
    minors.iter().enumerate().map(cell).collect()
}

/// One character for each minor, with a blank before it; that of the cluster is in brackets.
fn row(bar: &str, minors: &[Minor], here: Option<Minor>) -> String {
    let at = minors.iter().position(|minor| Some(*minor) == here);
    let mut text = String::new();
    for (number, sign) in bar.chars().enumerate() {
        text.push(match at {
            Some(at) if number == at => '[',
            Some(at) if number == at + 1 => ']',
            _ => ' ',
        });
        text.push(sign);
    }
    if at.is_some_and(|at| at + 1 == minors.len()) {
        text.push(']');
    }
    text
}

/// Driver, minor of the driver, and the bar.
type Line = (String, String, String);

/// Versions of one minor with the same bar are one line. The newest come first.
fn grouped<'a>(minors: &[Minor], entries: &[(&str, &'a Entry)]) -> Vec<(Line, Vec<&'a Entry>)> {
    let mut groups: BTreeMap<Line, Vec<&'a Entry>> = BTreeMap::new();
    for (name, entry) in entries {
        let key = ((*name).to_owned(), entry.version.minor(), bar(entry, minors));
        groups.entry(key).or_default().push(entry);
    }
    let mut all: Vec<_> = groups.into_iter().collect();
    for (_, versions) in &mut all {
        versions.sort_by(|a, b| a.version.cmp(&b.version));
    }
    let newest = |versions: &Vec<&Entry>| versions.last().map(|entry| entry.version.clone());
    all.sort_by(|((a, ..), old), ((b, ..), new)| a.cmp(b).then_with(|| newest(new).cmp(&newest(old))));
    all
}

/// `3.7.1–3.7.3`, `3.7.0`.
fn title(line: &str, versions: &[&Entry]) -> String {
    let text = |entry: Option<&&Entry>| entry.map_or_else(|| line.to_owned(), |entry| entry.version.to_string());
    match versions {
        [_] => text(versions.first()),
        _ => format!("{}–{}", text(versions.first()), text(versions.last())),
    }
}

/// What a version supports, one character for each minor.
fn bar(entry: &Entry, minors: &[Minor]) -> String {
    let sign = match (&entry.state, entry.kubernetes.confidence) {
        (State::Withdrawn(_), _) => 'x',
        (State::Deprecated(_), _) => '░',
        (State::Good, Confidence::Unverified) => '▒',
        (State::Good, _) => '▇',
    };
    let supports = |minor: &Minor| entry.kubernetes.range.contains(&[minor.0, minor.1]);
    minors.iter().map(|minor| if supports(minor) { sign } else { '·' }).collect()
}
