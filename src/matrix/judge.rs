//! Whether one version fits the platform and what is asked of it.

use super::index::{Driver, Entry, State};
use super::rejection::Rejection;
use super::resolve::{DriverRequest, Query};
use crate::types::DriverVersion;

/// The feature that more than one vCenter asks for. A driver that has it in no version is not asked.
pub const MULTI_VCENTER: &str = "multiVcenter";

/// Everything that keeps a version from being taken, weightiest first. Empty: it fits.
///
/// Pre-releases, downgrades and upgrade paths are no misfits: a pin overrules them.
#[must_use]
pub fn misfits(driver: &Driver, entry: &Entry, query: &Query<'_>, request: &DriverRequest) -> Vec<Rejection> {
    each(entry, query, &wanted(driver, query, request)).collect()
}

/// The features that are asked of a driver: those of the request, and several vCenters when there are several.
pub(super) fn wanted(driver: &Driver, query: &Query<'_>, request: &DriverRequest) -> Vec<String> {
    let mut wanted = request.features.clone();
    let several = query.vcenters.len() > 1 && driver.versions.iter().any(|entry| entry.features.contains_key(MULTI_VCENTER));
    if several && !wanted.iter().any(|feature| feature == MULTI_VCENTER) {
        wanted.push(MULTI_VCENTER.to_owned());
    }
    wanted
}

/// The first misfit.
pub(super) fn misfit(entry: &Entry, query: &Query<'_>, wanted: &[String]) -> Option<Rejection> {
    each(entry, query, wanted).next()
}

fn each<'a>(entry: &'a Entry, query: &'a Query<'a>, wanted: &'a [String]) -> impl Iterator<Item = Rejection> + 'a {
    let chart = entry.chart.urls.is_empty().then_some(Rejection::NoChart);
    let withdrawn = match &entry.state {
        State::Withdrawn(verdict) => Some(Rejection::Withdrawn {
            reason: verdict.reason.clone(),
            instead: verdict.instead.clone(),
        }),
        State::Good | State::Deprecated(_) => None,
    };
    let platform = kubernetes(entry, query).into_iter().chain(vsphere(entry, query));
    let requires = entry
        .requires
        .iter()
        .filter(|required| !query.drivers.contains_key(&required.driver));
    let requires = requires.map(|missing| Rejection::Requires {
        driver: missing.driver.clone(),
        reason: missing.reason.clone(),
    });
    let features = wanted.iter().filter_map(move |feature| cannot(entry, query, feature));
    withdrawn.into_iter().chain(platform).chain(requires).chain(features).chain(chart)
}

fn kubernetes(entry: &Entry, query: &Query<'_>) -> Option<Rejection> {
    (!entry.kubernetes.range.contains(query.kubernetes.numbers())).then(|| Rejection::Kubernetes {
        supported: entry.kubernetes.range.clone(),
        actual: query.kubernetes.clone(),
    })
}

fn vsphere(entry: &Entry, query: &Query<'_>) -> Option<Rejection> {
    let outside = query
        .vcenters
        .iter()
        .filter(|(_, version)| !entry.vsphere.range.contains(version.numbers()));
    outside.min().map(|(connection, actual)| Rejection::Vsphere {
        supported: entry.vsphere.range.clone(),
        connection: connection.clone(),
        actual: actual.clone(),
    })
}

fn cannot(entry: &Entry, query: &Query<'_>, feature: &str) -> Option<Rejection> {
    let Some(known) = entry.features.get(feature) else {
        return Some(Rejection::Feature {
            feature: feature.to_owned(),
        });
    };
    let outside = query
        .vcenters
        .iter()
        .filter(|(_, version)| !known.vsphere.contains(version.numbers()));
    outside.min().map(|(connection, actual)| Rejection::FeatureVsphere {
        feature: feature.to_owned(),
        supported: known.vsphere.clone(),
        connection: connection.clone(),
        actual: actual.clone(),
    })
}

/// Every version, newest first, with the reason it is not to be chosen without being asked for.
pub(super) fn judge<'a>(
    driver: &'a Driver,
    query: &Query<'_>,
    wanted: &[String],
    installed: Option<&DriverVersion>,
) -> Vec<(&'a Entry, Option<Rejection>)> {
    let mut entries: Vec<&Entry> = driver.versions.iter().collect();
    entries.sort_by(|left, right| right.version.cmp(&left.version));
    // going back is refused while the installed version fits, or while the matrix knows nothing about it
    let stays = installed.is_some_and(|version| driver.entry(version).is_none_or(|entry| misfit(entry, query, wanted).is_none()));
    let judged = entries.into_iter().map(|entry| {
        let is_installed = installed == Some(&entry.version);
        let prerelease = (entry.version.is_prerelease() && !is_installed).then_some(Rejection::Prerelease);
        let older = installed.filter(|installed| stays && **installed > entry.version);
        let downgrade = older.map(|installed| Rejection::Downgrade {
            installed: installed.clone(),
        });
        let reason = misfit(entry, query, wanted).or(prerelease).or(downgrade);
        (entry, reason)
    });
    let mut judged = judged.collect();
    if let Some(installed) = installed {
        super::steps::close(&mut judged, installed);
    }
    judged
}
