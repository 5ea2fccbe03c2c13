//! Which Kubernetes minors the versions of a driver support, as a picture.

use super::super::views::matrix::VersionView;
use std::collections::BTreeMap;
use vdo_api::types::span;
use vdo_core::matrix::Confidence;

/// Sizes in pixels.
const NAME: usize = 190;
const CELL: usize = 34;
const LINE: usize = 22;
const MARGIN: usize = 10;

/// A Kubernetes minor, of major version 1.
pub(super) type Minor = u64;

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
pub(super) fn svg(versions: &[VersionView], cluster: Option<Minor>) -> String {
    let bounds = versions
        .iter()
        .flat_map(|version| [&version.kubernetes.min, &version.kubernetes.max]);
    let bounds: Vec<Minor> = bounds.filter_map(|bound| minor(bound.as_deref()?)).collect();
    let (Some(first), Some(last)) = (bounds.iter().copied().min(), bounds.iter().copied().max()) else {
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
    groups.into_iter().map(row).collect()
}

/// The minor of a version such as `1.34`.
pub(super) fn minor(version: &str) -> Option<Minor> {
    version.split('.').nth(1)?.parse().ok()
}

/// A text as it may stand in a page.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
