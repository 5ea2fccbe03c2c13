// SPDX-License-Identifier: Apache-2.0
//! Finds drivers that must not change while another driver is still at its installed version, because the two versions do not run together.

use super::index::{Index, Requirement};
use super::resolve::{Query, Resolution};
use std::collections::BTreeMap;
use vdo_api::types::DriverName;

/// (driver, other) → why the driver must not be changed while the other one stays at its version: they were chosen for each other, and a
/// version of one may need one of the other that is not installed yet, or be too new for the installed one.
#[must_use]
pub fn apart(index: &Index, query: &Query<'_>, resolution: &Resolution) -> BTreeMap<(DriverName, DriverName), String> {
    let mut apart = BTreeMap::new();
    for (name, pick) in &resolution.picks {
        // A driver that keeps its version is already compatible; a forced pin skips the check.
        if pick.from.as_ref() == Some(&pick.version) || pick.overridden.is_some() {
            continue;
        }
        for (other, stays) in resolution.picks.iter().filter(|(other, _)| *other != name) {
            let needs = |driver: &DriverName, version, of: &DriverName| -> Vec<&Requirement> {
                let states = query.drivers.get(driver).map(|request| &request.states);
                let entry = index.drivers.get(driver).and_then(|driver| driver.entry(version));
                let all = entry.into_iter().flat_map(|entry| &entry.requires);
                all.filter(|need| need.driver == *of && states.is_none_or(|states| need.counts(states)))
                    .collect()
            };
            let unmet = needs(name, &pick.version, other)
                .into_iter()
                .find(|need| !stays.from.as_ref().is_some_and(|there| need.accepts(there)))
                .map(|need| format!("version {} requires {need}", pick.version));
            let broken = || {
                let there = stays.from.as_ref()?;
                let need = needs(other, there, name).into_iter().find(|need| !need.accepts(&pick.version))?;
                Some(format!("version {there}, which remains installed for now, requires {need}"))
            };
            if let Some(why) = unmet.or_else(broken) {
                apart.insert((name.clone(), other.clone()), why);
            }
        }
    }
    apart
}
