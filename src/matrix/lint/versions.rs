//! Mistakes in the entries of one driver.

use super::{Report, chart, entries};
use crate::types::{DriverVersion, VersionRange};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn check(index: &Value, name: &str, driver: &Value, report: &mut Report) {
    let known: BTreeSet<DriverVersion> = entries(name, driver).filter_map(|(_, entry)| version(entry)).collect();
    let mut seen = BTreeSet::new();
    for (at, entry) in entries(name, driver) {
        match version(entry) {
            Some(version) if !seen.insert(version.clone()) => {
                report.add(
                    &at,
                    "version",
                    "it overlaps with an earlier entry of the same version; keep one entry",
                );
            }
            Some(version) => {
                edges(&at, entry, &version, &known, report);
                state(name, driver, &at, entry, &version, report);
            }
            None => {}
        }
        ranges(index, &at, entry, report);
        requires(index, name, &at, entry, report);
        for condition in entry["upgradesFrom"]["preconditions"].as_array().into_iter().flatten() {
            if index["preconditions"].get(condition.as_str().unwrap_or_default()).is_none() {
                let problem = format!("{condition} is not under preconditions; say there what it means");
                report.add(&at, "upgradesFrom.preconditions", problem);
            }
        }
        report.charts.extend(chart(entry).map(|chart| (at, chart)));
    }
}

fn version(entry: &Value) -> Option<DriverVersion> {
    entry["version"].as_str()?.parse().ok()
}

/// A range, where both bounds are versions.
fn range(value: &Value) -> Option<VersionRange> {
    VersionRange::new(value["min"].as_str(), value["max"].as_str()).ok()
}

fn disjoint(left: &VersionRange, right: &VersionRange) -> bool {
    let gap = |low: &VersionRange, high: &VersionRange| VersionRange::new(low.min(), high.max()).is_ok_and(|range| range.is_empty());
    gap(left, right) || gap(right, left)
}

fn ranges(index: &Value, at: &str, entry: &Value, report: &mut Report) {
    for field in ["kubernetes", "vsphere"] {
        let support = &entry[field];
        if let Some(range) = range(support).filter(VersionRange::is_empty) {
            report.add(at, field, format!("no version lies in the range {range}; swap min and max"));
        }
        evidence(index, at, field, support, report);
        let silent = support["evidence"].as_array().is_none_or(Vec::is_empty);
        if silent && ["primary", "secondary"].iter().any(|word| support["confidence"] == *word) {
            let problem = "it names no evidence; name some under evidence, or write confidence: unverified";
            report.add(at, &format!("{field}.confidence"), problem);
        }
    }
    for (name, feature) in entry["features"].as_object().into_iter().flatten() {
        let field = format!("features.{name}");
        evidence(index, at, &field, feature, report);
        let Some(own) = range(&feature["vsphere"]) else { continue };
        let field = format!("{field}.vsphere");
        if own.is_empty() {
            report.add(at, &field, format!("no version lies in the range {own}; swap min and max"));
        } else if let Some(whole) = range(&entry["vsphere"]).filter(|whole| disjoint(whole, &own)) {
            report.add(
                at,
                &field,
                format!("{own} lies outside of the vCenters that the version supports ({whole})"),
            );
        }
    }
}

pub(super) fn evidence(index: &Value, at: &str, field: &str, holder: &Value, report: &mut Report) {
    for name in holder["evidence"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if index["sources"].get(name).is_none() {
            let problem = format!("{name:?} is not under sources; add it there");
            report.add(at, &format!("{field}.evidence"), problem);
        }
    }
}

fn edges(at: &str, entry: &Value, version: &DriverVersion, known: &BTreeSet<DriverVersion>, report: &mut Report) {
    const FIELD: &str = "upgradesFrom.min";
    let min = entry["upgradesFrom"]["min"].as_str();
    let Some(min) = min.and_then(|text| text.parse::<DriverVersion>().ok()) else {
        return;
    };
    if min >= *version {
        report.add(at, FIELD, format!("{min} is not older than {version}: the edge makes a cycle"));
    } else if !known.contains(&min) {
        report.add(at, FIELD, format!("{min} is no version of this driver; name one that is listed"));
    }
}

fn state(name: &str, driver: &Value, at: &str, entry: &Value, version: &DriverVersion, report: &mut Report) {
    const FIELD: &str = "state.use";
    let replacement = |entry: &Value| entry["state"]["use"].as_str()?.parse::<DriverVersion>().ok();
    let find = |wanted: &DriverVersion| {
        let mut all = entries(name, driver).map(|(_, entry)| entry);
        all.find(|entry| self::version(entry).as_ref() == Some(wanted))
    };
    let mut here = entry;
    let mut passed = BTreeSet::from([version.clone()]);
    while let Some(next) = replacement(here) {
        if !passed.insert(next.clone()) {
            report.add(at, FIELD, format!("it leads to {next} in a cycle; name a version that is good"));
            return;
        }
        let Some(found) = find(&next) else {
            report.add(at, FIELD, format!("{next} is no version of this driver; name one that is listed"));
            return;
        };
        if found["state"]["kind"] == "withdrawn" && replacement(found).is_none() {
            report.add(at, FIELD, format!("{next} is withdrawn itself; name a version that is good"));
        }
        here = found;
    }
}

fn requires(index: &Value, own: &str, at: &str, entry: &Value, report: &mut Report) {
    for required in entry["requires"].as_array().into_iter().flatten() {
        let Some(name) = required["driver"].as_str() else { continue };
        let Some(other) = index["drivers"].get(name) else {
            report.add(at, "requires", format!("{name:?} is no driver of this index"));
            continue;
        };
        if name == own {
            report.add(at, "requires", "it requires itself");
            continue;
        }
        let bound = |field: &str| required[field].as_str().and_then(|text| text.parse::<DriverVersion>().ok());
        let (min, max) = (bound("min"), bound("max"));
        if let (Some(min), Some(max)) = (&min, &max)
            && min > max
        {
            report.add(
                at,
                "requires",
                format!("no version of {name} lies between {min} and {max}; swap min and max"),
            );
            continue;
        }
        let accepted =
            |version: &DriverVersion| min.as_ref().is_none_or(|min| version >= min) && max.as_ref().is_none_or(|max| version <= max);
        let listed: Vec<&Value> = entries(name, other).map(|(_, entry)| entry).collect();
        let suits = listed
            .iter()
            .filter(|entry| version(entry).is_some_and(|version| accepted(&version)));
        let good: Vec<_> = suits.filter(|entry| entry["state"]["kind"] != "withdrawn").collect();
        let meets = |other: &&&Value| {
            let apart = |field: &str| Some(disjoint(&range(&entry[field])?, &range(&other[field])?));
            ["kubernetes", "vsphere"].iter().all(|field| apart(field) != Some(true))
        };
        if good.is_empty() {
            report.add(
                at,
                "requires",
                format!("it can never be chosen: no version of {name} is the one it needs"),
            );
        } else if !good.iter().any(meets) {
            let problem =
                format!("it can never be chosen: what it supports and what the versions of {name} it needs support has nothing in common");
            report.add(at, "requires", problem);
        }
    }
}
