//! Which Kubernetes minors the versions of a driver support, as a picture.

use super::html::escaped;
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_api::types::span;

/// Sizes in pixels.
const NAME: usize = 190;
const CELL: usize = 34;
const LINE: usize = 22;
const MARGIN: usize = 10;

/// A Kubernetes minor, of major version 1.
type Minor = u64;

/// Driver, its minor with the newest first, the first and the last Kubernetes minor, and how it is drawn.
type Line = (String, std::cmp::Reverse<Vec<u64>>, Minor, Minor, &'static str);

/// A line of versions with the same range.
struct Row {
    name: String,
    from: Minor,
    to: Minor,
    class: &'static str,
}

/// The picture of all drivers; the cluster's minor is marked. Empty where nothing is known.
pub(super) fn svg(versions: &[Value], cluster: Option<Minor>) -> String {
    let bounds = |key: &'static str| versions.iter().filter_map(move |version| minor(&version["kubernetes"][key]));
    let (Some(first), Some(last)) = (bounds("min").chain(bounds("max")).min(), bounds("max").chain(bounds("min")).max()) else {
        return String::new();
    };
    // A matrix may name any number; a picture has room for so many.
    let last = *span(first, last).end();
    let rows = rows(versions, first, last);
    let columns = usize::try_from(last.saturating_sub(first).saturating_add(1)).unwrap_or(1);
    let (width, height) = (NAME + columns * CELL, (rows.len() + 1) * LINE + 6);
    let (whole, high) = (width + 2 * MARGIN, height + 2 * MARGIN);
    let x = |minor: Minor| NAME + usize::try_from(minor.min(last).saturating_sub(first)).unwrap_or(0) * CELL;
    let mut text = format!(
        "<svg viewBox=\"-{MARGIN} -{MARGIN} {whole} {high}\" width=\"{whole}\" role=\"img\" \
         aria-label=\"Kubernetes minors that each version supports\">"
    );
    if let Some(here) = cluster.filter(|here| (first..=last).contains(here)) {
        text.push_str(&format!(
            "<rect class=\"here\" x=\"{}\" y=\"0\" width=\"{CELL}\" height=\"{height}\"/>",
            x(here)
        ));
    }
    for minor in span(first, last) {
        text.push_str(&format!(
            "<text x=\"{}\" y=\"15\" text-anchor=\"middle\">1.{minor}</text>",
            x(minor) + CELL / 2
        ));
    }
    for (at, row) in rows.iter().enumerate() {
        let y = (at + 1) * LINE;
        let length = (x(row.to) + CELL).saturating_sub(x(row.from));
        text.push_str(&format!(
            "<text x=\"0\" y=\"{}\">{}</text><rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"12\" rx=\"3\"><title>{}</title></rect>",
            y + 15,
            escaped(&row.name),
            row.class,
            x(row.from) + 2,
            y + 5,
            length.saturating_sub(4),
            escaped(&format!("{}: Kubernetes 1.{} to 1.{}", row.name, row.from, row.to))
        ));
    }
    text + "</svg>"
}

/// Versions of one minor with the same range and state are one line; the newest come first.
fn rows(versions: &[Value], first: Minor, last: Minor) -> Vec<Row> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut groups: BTreeMap<Line, Vec<String>> = BTreeMap::new();
    for version in versions.iter().filter(|version| version["state"]["word"] != "withdrawn") {
        let number = text(&version["version"]);
        let parts: Vec<u64> = number
            .split(['.', '-', '+'])
            .take(2)
            .map(|part| part.parse().unwrap_or(0))
            .collect();
        let (from, to) = (
            minor(&version["kubernetes"]["min"]).unwrap_or(first),
            minor(&version["kubernetes"]["max"]).unwrap_or(last),
        );
        let class = match (version["state"]["word"].as_str(), version["kubernetes"]["confidence"].as_str()) {
            (Some("deprecated"), _) => "old",
            (_, Some("unverified")) => "unsure",
            _ => "fits",
        };
        groups
            .entry((text(&version["driver"]), std::cmp::Reverse(parts), from, to, class))
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
    groups.into_iter().map(row).collect()
}

fn minor(bound: &Value) -> Option<Minor> {
    bound.as_str()?.split('.').nth(1)?.parse().ok()
}
