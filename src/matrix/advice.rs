//! The smallest change that would make a choice possible.

use super::index::Driver;
use super::judge::{Wish, each};
use super::rejection::{Cause, Rejected, Rejection};
use super::resolve::{DriverRequest, Query};
use crate::types::{KubernetesVersion, VersionRange};
use std::collections::BTreeSet;

/// `Kubernetes 1.34 and vCenter 7.0.3 and 8.0.3`.
pub(super) fn platform(query: &Query<'_>) -> String {
    let versions: BTreeSet<_> = query.vcenters.iter().map(|(_, version)| version).collect();
    let versions: Vec<String> = versions.into_iter().map(ToString::to_string).collect();
    let kubernetes = query.kubernetes.minor();
    if versions.is_empty() {
        return format!("Kubernetes {kubernetes}");
    }
    format!("Kubernetes {kubernetes} and vCenter {}", versions.join(" and "))
}

pub(super) fn advice(
    driver: &Driver,
    query: &Query<'_>,
    request: Option<&DriverRequest>,
    cause: &Cause,
    rejected: &[Rejected],
) -> Option<String> {
    match cause {
        Cause::UnknownDriver { .. } => None,
        Cause::UnknownPin { .. } => Some("Pin a listed version, remove the pin, or use a matrix that has it".to_owned()),
        Cause::PinRejected { fits: Some(_), .. } => Some("Remove the pin, or set allowIncompatible to insist on it".to_owned()),
        Cause::PinRejected { .. } => Some("Set allowIncompatible to insist on it".to_owned()),
        Cause::InstalledUnknown { .. } => Some("Pin a listed version, or change updatePolicy, to let it be managed".to_owned()),
        Cause::NothingFits => request
            .and_then(|request| one_feature(driver, query, request, rejected))
            .or_else(|| nothing_fits(driver, query, rejected)),
    }
}

/// The newest version that a single feature keeps away, and what would give way to it.
fn one_feature(driver: &Driver, query: &Query<'_>, request: &DriverRequest, rejected: &[Rejected]) -> Option<String> {
    /// The newest are what somebody would want; an index may hold any number of others.
    const LOOKED_AT: usize = 32;
    let wish = Wish::new(driver, query, request);
    let lacking = |rejected: &&Rejected| matches!(rejected.reason, Rejection::Feature { .. } | Rejection::FeatureVsphere { .. });
    rejected.iter().filter(lacking).take(LOOKED_AT).find_map(|rejected| {
        let entry = driver.entry(&rejected.version)?;
        match each(entry, query, &wish).collect::<Vec<_>>().as_slice() {
            [Rejection::Feature { by, .. }] => Some(format!("Without {by} {} would fit", rejected.version)),
            [
                Rejection::FeatureVsphere {
                    by, supported, connection, ..
                },
            ] => Some(format!(
                "{connection} at vCenter {supported} would let {} be installed; without {by} it fits as it is",
                rejected.version
            )),
            _ => None,
        }
    })
}

/// Looks for one thing to change: a vCenter, another driver, the cluster; in that order, newest version first.
fn nothing_fits(driver: &Driver, query: &Query<'_>, rejected: &[Rejected]) -> Option<String> {
    let vcenter = rejected.iter().find_map(|rejected| match &rejected.reason {
        Rejection::Vsphere { supported, connection, .. } => Some(format!(
            "{connection} at vCenter {supported} would let {} be installed",
            rejected.version
        )),
        _ => None,
    });
    let required = rejected.iter().find_map(|rejected| match &rejected.reason {
        Rejection::Requires { driver, .. } => Some(format!("Installing {driver} too would let {} be installed", rejected.version)),
        _ => None,
    });
    let downgrade = rejected.iter().find_map(|rejected| match &rejected.reason {
        Rejection::Downgrade { .. } => Some(format!("Pin {} to go back to it", rejected.version)),
        _ => None,
    });
    let unmet = rejected.iter().find_map(|rejected| match &rejected.reason {
        Rejection::Unmet { name, .. } => Some(format!("When {name} holds, {} can be installed", rejected.version)),
        _ => None,
    });
    vcenter
        .or(required)
        .or(downgrade)
        .or(unmet)
        .or_else(|| kubernetes(driver, query, rejected))
}

fn kubernetes(driver: &Driver, query: &Query<'_>, rejected: &[Rejected]) -> Option<String> {
    let ranges = rejected.iter().filter_map(|rejected| match &rejected.reason {
        Rejection::Kubernetes { supported, .. } => Some((supported, &rejected.version)),
        _ => None,
    });
    // the lowest range that starts above the cluster needs the smallest upgrade
    let mut above: Vec<_> = ranges.clone().filter(|(range, _)| below(query.kubernetes, range)).collect();
    above.sort_by_key(|(range, version)| {
        (
            range.min().and_then(|min| min.parse::<KubernetesVersion>().ok()),
            (*version).clone(),
        )
    });
    if let Some((range, version)) = above.iter().find(|(range, _)| range.min().is_some()) {
        let min = range.min()?;
        return Some(format!("Kubernetes {min} would let {version} be installed"));
    }
    let newest = ranges.map(|(_, version)| version).max()?;
    driver.entry(newest)?;
    Some(format!(
        "A newer matrix may know a version for Kubernetes {}; until then {newest} can be pinned with allowIncompatible",
        query.kubernetes.minor()
    ))
}

/// Whether the version lies below the range.
fn below(version: &KubernetesVersion, range: &VersionRange) -> bool {
    VersionRange::new(range.min(), None).is_ok_and(|from| !from.contains(version.numbers()))
}
