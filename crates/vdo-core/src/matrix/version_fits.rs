// SPDX-License-Identifier: Apache-2.0
//! Decides whether one driver version fits: its Kubernetes and vCenter ranges, features, preconditions, state and upgrade path.
//! `rejection.rs` has the texts, and `resolve.rs` selects among the versions that fit.

use super::index::{Driver, Entry, State};
use super::rejection::{Rejected, Rejection};
use super::resolve::{DriverRequest, Query};
use std::collections::BTreeMap;
use vdo_api::types::{DriverVersion, VcenterVersion, VersionRange};

/// The feature that more than one vCenter asks for. A driver that has it in no version is not asked.
pub const MULTI_VCENTER: &str = "multiVcenter";

/// Everything that keeps a version from being taken, weightiest first. Empty: it fits.
///
/// Pre-releases, downgrades and upgrade paths are not misfits: a pin overrules them.
#[must_use]
pub fn misfits(driver: &Driver, entry: &Entry, query: &Query<'_>, request: &DriverRequest) -> Vec<Rejection> {
    each(entry, query, &Constraints::new(driver, query, request)).collect()
}

/// What is asked of every version of one driver.
pub(super) struct Constraints<'a> {
    /// Features, each with who asks for it.
    features: BTreeMap<String, String>,
    /// The vCenters that it will speak to.
    vcenters: Vec<&'a (String, VcenterVersion)>,
    /// Feature states that are set.
    pub(super) states: BTreeMap<String, bool>,
    /// No one asks for several vCenters but the connections themselves.
    several: bool,
    unmet: Option<BTreeMap<String, String>>,
}

impl<'a> Constraints<'a> {
    /// The features of the request, and several vCenters when it is to speak to several.
    pub(super) fn new(driver: &Driver, query: &Query<'a>, request: &DriverRequest) -> Self {
        let uses = |name: &String| request.connections.as_ref().is_none_or(|used| used.contains(name));
        let vcenters: Vec<_> = query.vcenters.iter().filter(|(name, _)| uses(name)).collect();
        let mut features = request.features.clone();
        let several = vcenters.len() > 1
            && !features.contains_key(MULTI_VCENTER)
            && driver.versions.iter().any(|entry| entry.features.contains_key(MULTI_VCENTER));
        if several {
            let by = format!("the use of {} vSphere connections", vcenters.len());
            features.insert(MULTI_VCENTER.to_owned(), by);
        }
        Self {
            features,
            vcenters,
            states: request.states.clone(),
            several,
            unmet: request.unmet.clone(),
        }
    }
}

/// The first misfit.
pub(super) fn misfit(entry: &Entry, query: &Query<'_>, constraints: &Constraints<'_>) -> Option<Rejection> {
    each(entry, query, constraints).next()
}

/// Everything that keeps a version from being taken, weightiest first.
pub(super) fn each<'a>(entry: &'a Entry, query: &'a Query<'a>, constraints: &'a Constraints<'a>) -> impl Iterator<Item = Rejection> + 'a {
    let chart = entry.chart.urls.is_empty().then_some(Rejection::NoChart);
    let withdrawn = match &entry.state {
        State::Withdrawn(verdict) => Some(Rejection::Withdrawn {
            reason: verdict.reason.clone(),
            instead: verdict.instead.clone(),
        }),
        State::Good | State::Deprecated(_) => None,
    };
    let platform = kubernetes(entry, query).into_iter().chain(vsphere(entry, constraints));
    let requires = entry
        .requires
        .iter()
        .filter(|required| !query.drivers.contains_key(&required.driver) && required.counts(&constraints.states));
    let requires = requires.map(|missing| Rejection::Requires {
        driver: missing.driver.clone(),
        reason: missing.reason.clone(),
    });
    let features = constraints
        .features
        .iter()
        .filter_map(move |(feature, by)| cannot(entry, constraints, feature, by));
    withdrawn.into_iter().chain(platform).chain(requires).chain(features).chain(chart)
}

fn kubernetes(entry: &Entry, query: &Query<'_>) -> Option<Rejection> {
    (!entry.kubernetes.range.contains(query.kubernetes.numbers())).then(|| Rejection::Kubernetes {
        supported: entry.kubernetes.range.clone(),
        actual: query.kubernetes.clone(),
    })
}

/// The vCenters in use that a range leaves out, in no order.
pub(super) fn outside<'a>(range: &VersionRange, constraints: &Constraints<'a>) -> impl Iterator<Item = &'a (String, VcenterVersion)> {
    let all = constraints.vcenters.iter().copied();
    all.filter(move |(_, version)| !range.contains(version.numbers()))
}

fn vsphere(entry: &Entry, constraints: &Constraints<'_>) -> Option<Rejection> {
    outside(&entry.vsphere.range, constraints)
        .min()
        .map(|(connection, actual)| Rejection::Vsphere {
            supported: entry.vsphere.range.clone(),
            connection: connection.clone(),
            actual: actual.clone(),
        })
}

fn cannot(entry: &Entry, constraints: &Constraints<'_>, feature: &str, by: &str) -> Option<Rejection> {
    let Some(known) = entry.features.get(feature) else {
        if constraints.several && feature == MULTI_VCENTER {
            let connections = constraints.vcenters.len();
            return Some(Rejection::OneVcenter { connections });
        }
        return Some(Rejection::Feature {
            feature: feature.to_owned(),
            by: by.to_owned(),
        });
    };
    outside(&known.vsphere, constraints)
        .min()
        .map(|(connection, actual)| Rejection::FeatureVsphere {
            feature: feature.to_owned(),
            by: by.to_owned(),
            supported: known.vsphere.clone(),
            connection: connection.clone(),
            actual: actual.clone(),
        })
}

/// The first precondition of an upgrade to this version that is not known to hold.
fn unmet(entry: &Entry, constraints: &Constraints<'_>) -> Option<Rejection> {
    let mut named = entry.upgrades_from.iter().flat_map(|from| &from.preconditions);
    named.find_map(|name| {
        Some(Rejection::Unmet {
            name: name.clone(),
            what: constraints.unmet.as_ref()?.get(name)?.clone(),
        })
    })
}

/// Why a version is not to be chosen without being asked for, in a word; [`Verdicts::reason`] has the sentence, which an index of any
/// size could not afford to hold for each of its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exclusion {
    Misfit,
    Prerelease,
    Downgrade,
    Unmet,
    NoPath,
    NotMirrored,
}

/// Every version of a driver, newest first, with what excludes it.
pub(super) struct Verdicts<'a> {
    pub(super) judged: Vec<(&'a Entry, Option<Exclusion>)>,
    pub(super) constraints: Constraints<'a>,
    query: Query<'a>,
    installed: Option<&'a DriverVersion>,
}

/// Looks at every version of a driver.
pub(super) fn judge<'a>(
    driver: &'a Driver,
    query: &Query<'a>,
    constraints: Constraints<'a>,
    installed: Option<&'a DriverVersion>,
) -> Verdicts<'a> {
    let mut entries: Vec<&Entry> = driver.versions.iter().collect();
    entries.sort_unstable_by(|left, right| right.version.cmp(&left.version));
    // going back is refused while the installed version fits, or while the matrix knows nothing about it
    let stays = installed.is_some_and(|version| {
        driver
            .entry(version)
            .is_none_or(|entry| misfit(entry, query, &constraints).is_none())
    });
    let exclusion = |entry: &Entry| match installed {
        _ if misfit(entry, query, &constraints).is_some() => Some(Exclusion::Misfit),
        _ if !entry.is_here && installed != Some(&entry.version) => Some(Exclusion::NotMirrored),
        _ if entry.version.is_prerelease() && installed != Some(&entry.version) => Some(Exclusion::Prerelease),
        Some(installed) if stays && *installed > entry.version => Some(Exclusion::Downgrade),
        Some(installed) if *installed < entry.version && unmet(entry, &constraints).is_some() => Some(Exclusion::Unmet),
        _ => None,
    };
    let mut judged: Vec<_> = entries.into_iter().map(|entry| (entry, exclusion(entry))).collect();
    if let Some(installed) = installed {
        super::upgrade_path::close(&mut judged, installed);
    }
    Verdicts {
        judged,
        constraints,
        query: *query,
        installed,
    }
}

impl<'a> Verdicts<'a> {
    /// The versions that may be taken, newest first.
    pub(super) fn good(&self) -> impl Iterator<Item = &'a Entry> {
        self.judged
            .iter()
            .filter(|(_, exclusion)| exclusion.is_none())
            .map(|(entry, _)| *entry)
    }

    /// What excludes a version, if anything does and there is such a version.
    pub(super) fn exclusion(&self, version: &DriverVersion) -> Option<(&'a Entry, Exclusion)> {
        let (entry, exclusion) = self.judged.iter().find(|(entry, _)| entry.version == *version)?;
        Some((entry, (*exclusion)?))
    }

    /// What excludes a version, in a sentence.
    pub(super) fn reason(&self, entry: &Entry, exclusion: Exclusion) -> Option<Rejection> {
        let installed = || self.installed.cloned();
        match exclusion {
            Exclusion::Misfit => misfit(entry, &self.query, &self.constraints),
            Exclusion::Prerelease => Some(Rejection::Prerelease),
            Exclusion::NotMirrored => Some(Rejection::NotMirrored),
            Exclusion::Downgrade => Some(Rejection::Downgrade { installed: installed()? }),
            Exclusion::Unmet => unmet(entry, &self.constraints),
            Exclusion::NoPath => Some(Rejection::NoPath {
                installed: installed()?,
                from: super::upgrade_path::from(entry)?.clone(),
            }),
        }
    }

    /// Every version that is excluded, newest first.
    pub(super) fn rejected(&self) -> impl Iterator<Item = Rejected> {
        self.judged.iter().filter_map(|(entry, exclusion)| {
            Some(Rejected {
                version: entry.version.clone(),
                reason: self.reason(entry, (*exclusion)?)?,
            })
        })
    }
}
