// SPDX-License-Identifier: Apache-2.0
//! Computes the steps of an upgrade through intermediate versions, from the `upgradesFrom` of each version.

use super::index::Entry;
use super::version_fits::Exclusion;
use std::ops::{Bound, RangeBounds};
use vdo_api::types::DriverVersion;

/// A version on the way of an upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The version.
    pub version: DriverVersion,
    /// What must hold before it is installed and was not checked, by name.
    pub preconditions: Vec<String>,
}

impl Step {
    /// The step to an entry, with what its edges name.
    pub(super) fn to(entry: &Entry) -> Self {
        let named = entry.upgrades_from.iter().flat_map(|from| &from.preconditions);
        Self {
            version: entry.version.clone(),
            preconditions: named.cloned().collect(),
        }
    }
}

type Judged<'a> = [(&'a Entry, Option<Exclusion>)];

/// From which version on an entry can be reached, where that is known.
pub(super) fn from(entry: &Entry) -> Option<&DriverVersion> {
    entry.upgrades_from.as_ref()?.min.as_ref()
}

/// Rejects, of versions newest first, those that no steps lead to.
///
/// An edge has only a lower end, so a version is in reach when the newest one in reach below it is new enough.
pub(super) fn close(judged: &mut Judged<'_>, installed: &DriverVersion) {
    let mut newest = installed;
    for (entry, reason) in judged.iter_mut().rev() {
        let entry: &Entry = entry;
        if entry.version <= *installed || reason.is_some() {
            continue;
        }
        match from(entry).filter(|from| *from > newest) {
            Some(_) => *reason = Some(Exclusion::NoPath),
            None => newest = &entry.version,
        }
    }
}

/// The versions to be installed one after the other, the target last: as few as possible, through versions that fit.
/// Nothing when the target is installed, or older, or the way is barred.
pub(super) fn steps<'a>(judged: &Judged<'a>, installed: &DriverVersion, target: &'a Entry) -> Vec<&'a Entry> {
    let mut way: Vec<&Entry> = Vec::new();
    if target.version <= *installed {
        return way;
    }
    // Every round adds a version or ends, so there are no more rounds than versions.
    for _ in judged {
        let here = way.last().map_or(installed, |entry| &entry.version);
        let open = |entry: &Entry| from(entry).is_none_or(|from| from <= here);
        if open(target) {
            way.push(target);
            return way;
        }
        let ahead = (Bound::Excluded(here), Bound::Excluded(&target.version));
        let between = judged
            .iter()
            .filter(|(entry, reason)| reason.is_none() && ahead.contains(&entry.version) && open(entry));
        match between.map(|(entry, _)| *entry).max_by(|a, b| a.version.cmp(&b.version)) {
            Some(next) => way.push(next),
            None => break,
        }
    }
    Vec::new()
}
