// SPDX-License-Identifier: Apache-2.0
//! Draws the SVG picture of the HTML report: the Kubernetes minor versions that each driver version supports.

use super::super::views::matrix::VersionView;
use super::page::environment;
use minijinja::Error;
use minijinja::value::{Serde, Value};
use serde::Serialize;
use std::collections::BTreeMap;
use vdo_api::types::span;
use vdo_core::matrix::Confidence;

const TEMPLATE: &str = include_str!("bars.svg.j2");

/// Sizes in pixels.
const NAME: usize = 190;
const CELL: usize = 34;
const LINE: usize = 22;
const MARGIN: usize = 10;

/// How many minors before that of the cluster are shown.
const BEFORE: Minor = 3;

/// A Kubernetes minor, of major version 1.
pub(super) type Minor = u64;

/// Driver, its minor with the newest first, the first and the last Kubernetes minor, and how it is drawn.
type Line = (String, std::cmp::Reverse<Vec<u64>>, Minor, Minor, &'static str);

/// Versions with the same range.
struct Row {
    name: String,
    from: Minor,
    to: Minor,
    class: &'static str,
}

/// What the template draws; in pixels.
#[derive(Serialize)]
struct Picture {
    margin: usize,
    width: usize,
    height: usize,
    cell: usize,
    /// Where the cluster's minor begins.
    here: Option<usize>,
    /// Each minor, with the middle of its column.
    minors: Vec<(Minor, usize)>,
    bars: Vec<Bar>,
}

/// A bar, and the name in front of it.
#[derive(Serialize)]
struct Bar {
    name: String,
    class: &'static str,
    from: Minor,
    to: Minor,
    x: usize,
    y: usize,
    width: usize,
}

/// The picture of all drivers; the cluster's minor is marked. Empty where nothing is known.
///
/// # Errors
/// When the template is wrong.
pub(super) fn svg(versions: &[VersionView], cluster: Option<Minor>) -> Result<String, Error> {
    match picture(versions, cluster) {
        Some(picture) => environment().render_str(TEMPLATE, Value::from(Serde(picture))),
        None => Ok(String::new()),
    }
}

fn picture(versions: &[VersionView], cluster: Option<Minor>) -> Option<Picture> {
    let bounds = versions
        .iter()
        .flat_map(|version| [&version.kubernetes.min, &version.kubernetes.max]);
    let bounds: Vec<Minor> = bounds.filter_map(|bound| minor(bound.as_deref()?)).collect();
    let (first, last) = (bounds.iter().copied().min()?, bounds.iter().copied().max()?);
    // What is long past for this cluster would only make the picture wider than a telephone.
    let first = cluster.map_or(first, |here| here.saturating_sub(BEFORE).clamp(first, last));
    // A matrix may name any number; a picture has room for so many.
    let last = *span(first, last).end();
    let rows = rows(versions, first, last);
    let columns = usize::try_from(last.saturating_sub(first).saturating_add(1)).unwrap_or(1);
    let x = |minor: Minor| NAME + usize::try_from(minor.min(last).saturating_sub(first)).unwrap_or(0) * CELL;
    let (width, height) = (NAME + columns * CELL, (rows.len() + 1) * LINE + 6);
    let bars = rows.into_iter().enumerate().map(|(at, row)| Bar {
        x: x(row.from) + 2,
        y: (at + 1) * LINE,
        width: (x(row.to) + CELL).saturating_sub(x(row.from)).saturating_sub(4),
        name: row.name,
        class: row.class,
        from: row.from,
        to: row.to,
    });
    Some(Picture {
        margin: MARGIN,
        width,
        height,
        cell: CELL,
        here: cluster.filter(|here| (first..=last).contains(here)).map(x),
        minors: span(first, last).map(|minor| (minor, x(minor) + CELL / 2)).collect(),
        bars: bars.collect(),
    })
}

/// Versions of one minor with the same range and state are one line; the newest come first.
fn rows(versions: &[VersionView], first: Minor, last: Minor) -> Vec<Row> {
    let mut groups: BTreeMap<Line, Vec<String>> = BTreeMap::new();
    for version in versions.iter().filter(|version| version.state.word != "withdrawn") {
        let number = version.version.to_string();
        let parts: Vec<u64> = number
            .split(['.', '-', '+'])
            .take(2)
            .map(|part| part.parse().unwrap_or(0))
            .collect();
        let range = &version.kubernetes;
        let bound = |bound: &Option<String>| minor(bound.as_deref()?);
        let (from, to) = (bound(&range.min).unwrap_or(first), bound(&range.max).unwrap_or(last));
        let class = match (version.state.word.as_str(), range.confidence) {
            ("deprecated", _) => "old",
            (_, Confidence::Unverified) => "unsure",
            _ => "fits",
        };
        groups
            .entry((version.driver.clone(), std::cmp::Reverse(parts), from, to, class))
            .or_default()
            .push(number);
    }
    let row = |((driver, _, from, to, class), mut all): (Line, Vec<String>)| {
        all.sort_by_key(|number| number.split('.').map(|part| part.parse::<u64>().unwrap_or(0)).collect::<Vec<_>>());
        let span = match all.as_slice() {
            [one] => one.clone(),
            [first, .., last] => format!("{first}–{last}"),
            [] => String::new(),
        };
        Row {
            name: format!("{} {span}", vdo_core::drivers::short(&driver)),
            from,
            to,
            class,
        }
    };
    groups.into_iter().map(row).filter(|row| row.to >= first).collect()
}

/// The minor of a version such as `1.34`.
pub(super) fn minor(version: &str) -> Option<Minor> {
    version.split('.').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn version(version: &str, min: &str, max: &str) -> VersionView {
        let support = json!({"min": min, "max": max, "confidence": "primary", "evidence": []});
        let view = json!({"driver": "vsphere-csi", "version": version, "kubernetes": support, "vsphere": support, "requires": [],
            "state": {"word": "newer", "reason": null, "use": null}, "chart": {"urls": [], "digest": format!("sha256:{}", "0".repeat(64))}});
        serde_json::from_value(view).expect("a version")
    }

    /// Without a cluster every minor is shown; with one those from three before its own, and no version that ended earlier.
    #[test]
    fn bars_begin_shortly_before_the_minor_of_the_cluster() {
        let all = [
            version("2.4.0", "1.20", "1.22"),
            version("3.7.0", "1.29", "1.34"),
            version("3.8.0", "1.31", "1.36"),
        ];
        for (cluster, minors, bars) in [
            (None, 20..=36, 3),
            (Some(34), 31..=36, 2),
            (Some(21), 20..=36, 3),
            (Some(50), 36..=36, 1),
        ] {
            let shown = picture(&all, cluster).expect("a picture");
            let found: Vec<Minor> = shown.minors.iter().map(|(minor, _)| *minor).collect();
            assert_eq!(found, minors.collect::<Vec<_>>(), "{cluster:?}");
            assert_eq!(shown.bars.len(), bars, "{cluster:?}");
            assert!(shown.bars.iter().all(|bar| bar.x + bar.width <= shown.width), "{cluster:?}");
        }
    }
}
