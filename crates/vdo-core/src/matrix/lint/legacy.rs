// SPDX-License-Identifier: Apache-2.0
//! Finds all mistakes in a compatibility file of the original operator; `legacy_format.rs` stops at the first one.

use super::reachable::{Candidate, Need};
use super::{IndexPath, Report};
use crate::matrix::index::Index;
use crate::matrix::legacy_format::{TABLES, required_driver};
use serde_json::Value;
use vdo_api::types::{DriverVersion, VersionRange, nearest};

const VERSION: [&str; 4] = ["vSphere", "k8s", "isCPIRequired", "deploymentPath"];
const BOUNDS: [&str; 3] = ["min", "max", "skewVersion"];

pub(super) fn check(index: &Value, lender: &Index, report: &mut Report) {
    let mut candidates = Vec::new();
    for (table, versions) in index.as_object().into_iter().flatten() {
        let at = IndexPath::new(table, &[table]);
        let Some(known) = TABLES.into_iter().find(|driver| driver.short == table) else {
            report.add(&at, "", unknown(table, &TABLES.map(|driver| driver.short)));
            continue;
        };
        let Some(versions) = versions.as_object() else {
            report.add(&at, "", "it is not a map of versions");
            continue;
        };
        for (name, entry) in versions {
            let at = IndexPath::new(format!("{table}.{name}"), &[table, name]);
            candidates.extend(version(at, known.name, name, entry, lender, report));
        }
    }
    super::reachable::check(candidates, report);
}

fn version(at: IndexPath, driver: &str, name: &str, entry: &Value, lender: &Index, report: &mut Report) -> Option<Candidate> {
    let parsed = name.parse::<DriverVersion>();
    if let Err(error) = &parsed {
        report.add(&at, "", error.to_string());
    }
    let Some(fields) = entry.as_object() else {
        report.add(&at, "", "it is not a map; it has the fields vSphere and k8s");
        return None;
    };
    for name in fields.keys().filter(|name| !VERSION.contains(&name.as_str())) {
        report.add(&at, name, unknown(name, &VERSION));
    }
    let needy = &entry["isCPIRequired"];
    if !needy.is_boolean() && !needy.is_null() {
        report.add(&at, "isCPIRequired", format!("{needy} is neither true nor false"));
    }
    let path = &entry["deploymentPath"];
    if !path.is_null() && !path.as_array().is_some_and(|all| all.iter().all(Value::is_string)) {
        report.add(&at, "deploymentPath", "it is not a list of addresses");
    }
    let (kubernetes, vsphere) = (bounds(&at, "k8s", entry, report), bounds(&at, "vSphere", entry, report));
    let version = parsed.ok()?;
    if lender.drivers.get(driver).is_none_or(|known| known.entry(&version).is_none()) {
        let problem = "it can never be chosen: a file of this format names no charts, and this vdoctl has no chart of this version; remove \
                       the version, or write an index that names a chart";
        report.add(&at, "", problem);
        return None;
    }
    let need = || Need {
        driver: required_driver(),
        min: None,
        max: None,
    };
    Some(Candidate {
        place: at,
        driver: driver.to_owned(),
        version,
        kubernetes: kubernetes?,
        vsphere: vsphere?,
        barred: false,
        needs: (*needy == true).then(need).into_iter().collect(),
        field: "isCPIRequired",
    })
}

/// A range that some version lies in, or what is wrong with it.
fn bounds(at: &IndexPath, field: &str, entry: &Value, report: &mut Report) -> Option<VersionRange> {
    let Some(fields) = entry[field].as_object() else {
        report.add(
            at,
            field,
            "this field is missing; write min and max (a cloud provider can have skewVersion instead)",
        );
        return None;
    };
    let mut good = true;
    for (name, value) in fields {
        let problem = if !BOUNDS.contains(&name.as_str()) {
            unknown(name, &BOUNDS)
        } else if value.is_null() {
            continue;
        } else if let Some(text) = value.as_str() {
            match VersionRange::new(Some(text), None) {
                Ok(_) => continue,
                Err(error) => error.to_string(),
            }
        } else {
            format!("{value} is not text; put versions in quotes, because 1.30 without quotes is read as 1.3")
        };
        good = false;
        report.add(at, &format!("{field}.{name}"), problem);
    }
    let skew = fields.get("skewVersion").and_then(Value::as_str);
    let bound = |name: &str| fields.get(name).and_then(Value::as_str);
    if skew.is_some() && (bound("min").is_some() || bound("max").is_some()) {
        report.add(
            at,
            field,
            "it has skewVersion as well as min or max; remove skewVersion, or remove min and max",
        );
        return None;
    }
    let range = VersionRange::new(bound("min").or(skew), bound("max").or(skew))
        .ok()
        .filter(|_| good)?;
    if range.is_empty() {
        report.add(at, field, format!("no version lies in the range {range}; swap min and max"));
        return None;
    }
    Some(range)
}

fn unknown(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("this name is not known; did you mean {near}?"),
        None => format!("this name is not known; the known names are {}", known.join(", ")),
    }
}
