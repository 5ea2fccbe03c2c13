// SPDX-License-Identifier: Apache-2.0
//! Checks the version entries of one driver: ranges, evidence, `upgradesFrom`, state and requirements.

use super::reachable::{Candidate, Need, disjoint};
use super::{IndexPath, Report, entries, promise};
use serde_json::Value;
use std::collections::BTreeSet;
use vdo_api::types::{DriverVersion, VersionRange};

/// Looks at every entry; what is left to see is whether they can be chosen together with what they need.
pub(super) fn check(index: &Value, name: &str, driver: &Value, report: &mut Report) -> Vec<Candidate> {
    let known: BTreeSet<DriverVersion> = entries(name, driver).filter_map(|(_, entry)| version(entry)).collect();
    let mut seen = BTreeSet::new();
    let mut candidates = Vec::new();
    for (at, entry) in entries(name, driver) {
        ranges(index, &at, entry, report);
        for (i, condition) in preconditions(entry).enumerate() {
            if index["preconditions"].get(condition).is_none() {
                let problem = format!("{condition} is not defined under preconditions");
                report.add(&at, &format!("upgradesFrom.preconditions.{i}"), problem);
            }
        }
        let needs = needs(index, name, &at, entry, report);
        let Some(version) = version(entry) else { continue };
        if !seen.insert(version.clone()) {
            let problem = "it overlaps with an earlier entry of the same version; keep one entry";
            report.add(&at, "version", problem);
            continue;
        }
        edges(&at, entry, &version, &known, report);
        state(name, driver, &at, entry, &version, report);
        report.charts.extend(promise(&at, name, &version, entry));
        candidates.extend(candidate(name, at, version, entry, needs));
    }
    candidates
}

fn preconditions(entry: &Value) -> impl Iterator<Item = &str> {
    let named = entry["upgradesFrom"]["preconditions"].as_array().into_iter().flatten();
    named.filter_map(Value::as_str)
}

/// `None` for what was reported already.
fn candidate(driver: &str, place: IndexPath, version: DriverVersion, entry: &Value, needs: Option<Vec<Need>>) -> Option<Candidate> {
    let good = |field: &str| range(&entry[field]).filter(|range| !range.is_empty());
    Some(Candidate {
        place,
        driver: driver.to_owned(),
        version,
        kubernetes: good("kubernetes")?,
        vsphere: good("vsphere")?,
        barred: entry["state"]["kind"] == "withdrawn",
        needs: needs?,
        field: "requires",
    })
}

fn version(entry: &Value) -> Option<DriverVersion> {
    entry["version"].as_str()?.parse().ok()
}

/// A range, where both bounds are versions.
fn range(value: &Value) -> Option<VersionRange> {
    VersionRange::new(value["min"].as_str(), value["max"].as_str()).ok()
}

fn ranges(index: &Value, at: &IndexPath, entry: &Value, report: &mut Report) {
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
                format!("the range {own} contains no vCenter version that this driver version supports ({whole})"),
            );
        }
    }
}

pub(super) fn evidence(index: &Value, at: &IndexPath, field: &str, holder: &Value, report: &mut Report) {
    let named = holder["evidence"].as_array().into_iter().flatten().enumerate();
    for (i, name) in named.filter_map(|(i, name)| Some((i, name.as_str()?))) {
        if index["sources"].get(name).is_none() {
            let problem = format!("{name:?} is not listed under sources; add it to sources");
            report.add(at, &format!("{field}.evidence.{i}"), problem);
        }
    }
}

fn edges(at: &IndexPath, entry: &Value, version: &DriverVersion, known: &BTreeSet<DriverVersion>, report: &mut Report) {
    const FIELD: &str = "upgradesFrom.min";
    let min = entry["upgradesFrom"]["min"].as_str();
    let Some(min) = min.and_then(|text| text.parse::<DriverVersion>().ok()) else {
        return;
    };
    if min >= *version {
        report.add(
            at,
            FIELD,
            format!("{min} is not older than {version}, so the upgrade path would be a cycle"),
        );
    } else if !known.contains(&min) {
        report.add(at, FIELD, format!("{min} is not a version of this driver; name one that is listed"));
    }
}

fn state(name: &str, driver: &Value, at: &IndexPath, entry: &Value, version: &DriverVersion, report: &mut Report) {
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
            report.add(
                at,
                FIELD,
                format!("it refers to {next} in a cycle; name a version that is neither deprecated nor withdrawn"),
            );
            return;
        }
        let Some(found) = find(&next) else {
            report.add(
                at,
                FIELD,
                format!("{next} is not a version of this driver; name one that is listed"),
            );
            return;
        };
        if found["state"]["kind"] == "withdrawn" && replacement(found).is_none() {
            report.add(
                at,
                FIELD,
                format!("{next} is withdrawn itself; name a version that is not withdrawn"),
            );
        }
        here = found;
    }
}

/// What the entry needs whatever is asked of it; `None` when one of its needs makes no sense.
fn needs(index: &Value, own: &str, at: &IndexPath, entry: &Value, report: &mut Report) -> Option<Vec<Need>> {
    let mut needs = Some(Vec::new());
    for (i, required) in entry["requires"].as_array().into_iter().flatten().enumerate() {
        evidence(index, at, &format!("requires.{i}"), required, report);
        let Some(driver) = required["driver"].as_str() else {
            needs = None;
            continue;
        };
        let bound = |field: &str| required[field].as_str().and_then(|text| text.parse::<DriverVersion>().ok());
        let (min, max) = (bound("min"), bound("max"));
        let problem = if index["drivers"].get(driver).is_none() {
            Some(format!("{driver:?} is not a driver of this index"))
        } else if driver == own {
            Some("it requires itself".to_owned())
        } else if let (Some(min), Some(max)) = (&min, &max)
            && min > max
        {
            Some(format!("no version of {driver} lies between {min} and {max}; swap min and max"))
        } else {
            None
        };
        if let Some(problem) = problem {
            report.add(at, &format!("requires.{i}"), problem);
            needs = None;
        } else if required["when"].is_null()
            && let Some(needs) = &mut needs
        {
            let driver = driver.to_owned();
            needs.push(Need { driver, min, max });
        }
    }
    needs
}
