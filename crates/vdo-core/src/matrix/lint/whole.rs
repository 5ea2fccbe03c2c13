// SPDX-License-Identifier: Apache-2.0
//! Checks the index as a whole: its dates, its builds of vCenter, and drivers that need each other in a circle.

use super::{IndexPath, Report, drivers, versions};
use serde_json::Value;
use std::collections::BTreeMap;

/// The fields beside the drivers.
pub(super) fn check(index: &Value, report: &mut Report) {
    let here = IndexPath::default();
    let time = |field: &str| index[field].as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    for field in ["generated", "expires"] {
        if index[field].is_string() && time(field).is_none() {
            report.add(&here, field, "this is not a time; write for example 2026-11-20T00:00:00Z");
        }
    }
    if let (Some(generated), Some(expires)) = (time("generated"), time("expires"))
        && expires <= generated
    {
        report.add(&here, "expires", "this time must be later than generated");
    }
    let mut seen = BTreeMap::new();
    for (i, floor) in index["vcenterBuilds"].as_array().into_iter().flatten().enumerate() {
        let field = format!("vcenterBuilds.{i}");
        if let Some(other) = seen.insert((floor["reported"].to_string(), floor["build"].to_string()), i) {
            report.add(&here, &field, format!("it overlaps with vcenterBuilds.{other}; keep one of them"));
        }
        versions::evidence(index, &here, &field, floor, report);
    }
}

/// Drivers that need each other in a circle: none could be installed first. One that needs itself is reported at its version.
pub(super) fn circles(index: &Value, report: &mut Report) {
    let needs = |name: &str| -> Vec<String> {
        let entries = index["drivers"][name]["versions"].as_array().into_iter().flatten();
        let required = entries.flat_map(|entry| entry["requires"].as_array().into_iter().flatten());
        let others = required.filter_map(|r| r["driver"].as_str()).filter(|other| *other != name);
        let mut all: Vec<String> = others.map(str::to_owned).collect();
        all.sort();
        all.dedup();
        all
    };
    for (start, _) in drivers(index) {
        let mut reached = needs(start);
        let mut i = 0;
        while let Some(name) = reached.get(i).cloned() {
            let more: Vec<String> = needs(&name).into_iter().filter(|other| !reached.contains(other)).collect();
            reached.extend(more);
            i += 1;
        }
        if reached.contains(start) {
            let way = reached.join(", ");
            report.add(
                &IndexPath::driver(start),
                "requires",
                format!("it requires itself in a cycle (through {way}); remove one of these requirements"),
            );
        }
    }
}
