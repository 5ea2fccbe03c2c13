// SPDX-License-Identifier: Apache-2.0
//! Finds versions that can never be selected on any platform, because the versions that they require do not exist or do not fit together.

use super::{IndexPath, Report};
use vdo_api::types::{DriverName, DriverVersion, VersionRange};

/// A version as far as it matters here.
pub(super) struct Candidate {
    pub place: IndexPath,
    pub driver: DriverName,
    pub version: DriverVersion,
    pub kubernetes: VersionRange,
    pub vsphere: VersionRange,
    /// Something else keeps it from being chosen, which was reported or is intended.
    pub barred: bool,
    /// What it needs, whatever is asked of it.
    pub needs: Vec<Need>,
    /// The field with that value.
    pub field: &'static str,
}

/// Another driver that is needed.
pub(super) struct Need {
    pub driver: DriverName,
    pub min: Option<DriverVersion>,
    pub max: Option<DriverVersion>,
}

impl Need {
    fn accepts(&self, other: &Candidate) -> bool {
        let (min, max) = (self.min.as_ref(), self.max.as_ref());
        other.driver == self.driver && min.is_none_or(|min| other.version >= *min) && max.is_none_or(|max| other.version <= *max)
    }
}

/// Takes away what lacks something until nothing more falls: what needs a version that falls may fall with it.
pub(super) fn check(mut all: Vec<Candidate>, report: &mut Report) {
    loop {
        let alive: Vec<&Candidate> = all.iter().filter(|candidate| !candidate.barred).collect();
        let lacking = |candidate: &Candidate| lack(candidate, &alive);
        let fallen: Vec<(usize, String)> = all
            .iter()
            .enumerate()
            .filter(|(_, candidate)| !candidate.barred)
            .filter_map(|(i, candidate)| Some((i, lacking(candidate)?)))
            .collect();
        if fallen.is_empty() {
            return;
        }
        for (i, problem) in fallen {
            all[i].barred = true;
            report.add(&all[i].place, all[i].field, format!("it can never be chosen: {problem}"));
        }
    }
}

/// What there is not for a version, if anything.
fn lack(candidate: &Candidate, alive: &[&Candidate]) -> Option<String> {
    let suits = |need: &Need| -> Vec<&Candidate> { alive.iter().copied().filter(|other| need.accepts(other)).collect() };
    let mut choices = Vec::new();
    for need in &candidate.needs {
        let suiting = suits(need);
        if suiting.is_empty() {
            return Some(format!(
                "the version of {} that it needs is not listed, or can never be chosen itself",
                need.driver
            ));
        }
        let meeting: Vec<&Candidate> = suiting.into_iter().filter(|other| meet(candidate, other)).collect();
        if meeting.is_empty() {
            return Some(format!(
                "no combination of Kubernetes and vCenter is supported both by this version and by the versions of {} that it needs",
                need.driver
            ));
        }
        choices.push(meeting);
    }
    (!together(&choices, &mut Vec::new())).then(|| {
        let names: Vec<&str> = candidate.needs.iter().map(|need| need.driver.as_str()).collect();
        format!(
            "the versions of {} that it needs are not compatible with each other",
            names.join(" and ")
        )
    })
}

/// Whether one of each can be had at once. Ranges that overlap in pairs have something in common all together.
fn together<'a>(choices: &[Vec<&'a Candidate>], taken: &mut Vec<&'a Candidate>) -> bool {
    let Some((first, rest)) = choices.split_first() else { return true };
    first.iter().copied().any(|choice| {
        if !taken.iter().all(|other| meet(choice, other)) {
            return false;
        }
        taken.push(choice);
        let found = together(rest, taken);
        taken.pop();
        found
    })
}

/// Whether there is a platform for both.
fn meet(left: &Candidate, right: &Candidate) -> bool {
    !disjoint(&left.kubernetes, &right.kubernetes) && !disjoint(&left.vsphere, &right.vsphere)
}

pub(super) fn disjoint(left: &VersionRange, right: &VersionRange) -> bool {
    let gap = |low: &VersionRange, high: &VersionRange| VersionRange::new(low.min(), high.max()).is_ok_and(|range| range.is_empty());
    gap(left, right) || gap(right, left)
}
