// SPDX-License-Identifier: Apache-2.0
//! Finds the remedy when no version fits: the smallest change of specification, vCenter, other driver or cluster that makes one fit.

use super::index::{Driver, Entry, State};
use super::rejection::{Cause, Rejected, Rejection};
use super::resolve::{DriverRequest, Query};
use super::unsupported_kubernetes::NotYet;
use super::version_fits::{Constraints, each, outside};
use crate::drivers;
use std::collections::BTreeSet;
use vdo_api::types::{DriverName, DriverVersion, KubernetesVersion, VersionRange};

/// The newest versions are the ones that a user wants, and an index may hold any number of others.
const LOOKED_AT: usize = 32;

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

pub(super) fn suggestion(
    (name, driver): (&DriverName, &Driver),
    query: &Query<'_>,
    cause: &Cause,
    (rejected, not_yet): (&[Rejected], Option<&NotYet>),
) -> Option<String> {
    let request = query.drivers.get(name);
    match cause {
        Cause::UnknownDriver { .. } => None,
        Cause::UnknownPin { .. } => Some("Pin a listed version, remove the pin, or use a matrix that lists the pinned version".to_owned()),
        Cause::PinRejected { reason, fits, .. } if **reason == Rejection::NotMirrored => {
            let pin = if fits.is_some() { ", or remove the pin" } else { "" };
            Some(format!(
                "Bring the pinned version into the mirror with vdoctl mirror pull and vdoctl mirror push{pin}"
            ))
        }
        Cause::PinRejected { fits: Some(_), .. } => {
            Some("Remove the pin, or set allowIncompatible to install the pinned version anyway".to_owned())
        }
        Cause::PinRejected { .. } => Some("Set allowIncompatible to install the pinned version anyway".to_owned()),
        Cause::InstalledUnknown { .. } if request.is_some_and(|request| request.held.is_some()) => Some(
            "The operator changes the driver when a maintenance window opens; to have it managed earlier, pin a listed version".to_owned(),
        ),
        Cause::InstalledUnknown { installed } => {
            let mut older = rejected.iter().filter(|other| matches!(other.reason, Rejection::Downgrade { .. }));
            let pin = match older.next() {
                Some(Rejected { version, .. }) => {
                    let command = drivers::known(name).map(|_| drivers::set_version(name, &version.to_string()));
                    let command = command.map(|command| format!(": `{command}`")).unwrap_or_default();
                    format!("{version} for a downgrade{command}")
                }
                None => "a listed version to change to it".to_owned(),
            };
            Some(format!("Use a matrix that lists {installed}, or pin {pin}"))
        }
        Cause::NothingFits => nothing_fits(driver, query, request?, (rejected, not_yet)),
    }
}

/// Looks for one thing to change: what is asked for, a vCenter, another driver, a decision, the cluster; in that order, newest version
/// first. A version that lacks two things is helped by none of them.
fn nothing_fits(
    driver: &Driver,
    query: &Query<'_>,
    request: &DriverRequest,
    (rejected, not_yet): (&[Rejected], Option<&NotYet>),
) -> Option<String> {
    let constraints = Constraints::new(driver, query, request);
    let of_kind = |kind: Kind| {
        let all = rejected.iter().filter(|rejected| Kind::of(&rejected.reason) == Some(kind));
        all.take(LOOKED_AT).find_map(|rejected| {
            let entry = driver.entry(&rejected.version)?;
            // what is not a misfit excludes by itself
            let alone = each(entry, query, &constraints).take(2).count() <= 1;
            alone.then(|| change(driver, entry, &rejected.reason, &constraints)).flatten()
        })
    };
    let kinds = [Kind::Asked, Kind::Vcenter, Kind::Driver, Kind::Decision];
    kinds
        .into_iter()
        .find_map(of_kind)
        .or_else(|| kubernetes(driver, query, &constraints, (rejected, not_yet)))
}

/// What has to change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Asked,
    Vcenter,
    Driver,
    Decision,
}

impl Kind {
    fn of(reason: &Rejection) -> Option<Self> {
        match reason {
            Rejection::Feature { .. } | Rejection::FeatureVsphere { .. } | Rejection::OneVcenter { .. } => Some(Self::Asked),
            Rejection::Vsphere { .. } => Some(Self::Vcenter),
            Rejection::Requires { .. } | Rejection::RequiresVersion { .. } => Some(Self::Driver),
            Rejection::Downgrade { .. }
            | Rejection::Unmet { .. }
            | Rejection::Held { .. }
            | Rejection::NoPath { .. }
            | Rejection::NotMirrored => Some(Self::Decision),
            Rejection::Kubernetes { .. } | Rejection::Withdrawn { .. } | Rejection::NoChart | Rejection::Prerelease | Rejection::Apart => {
                None
            }
        }
    }
}

/// The one change that lets a version be taken, if there is one.
fn change(driver: &Driver, entry: &Entry, reason: &Rejection, constraints: &Constraints<'_>) -> Option<String> {
    let version = &entry.version;
    Some(match reason {
        Rejection::OneVcenter { .. } => format!("With only one vSphere connection, version {version} can be installed"),
        Rejection::Feature { by, .. } => format!("Without {by}, version {version} can be installed"),
        Rejection::FeatureVsphere { feature, by, .. } => match upgrade(&entry.features.get(feature)?.vsphere, constraints) {
            Some(upgrade) => format!("{upgrade}, version {version} can be installed; without {by}, no upgrade is needed for this version"),
            None => format!("Without {by}, version {version} can be installed"),
        },
        Rejection::Vsphere { .. } => format!(
            "{}, version {version} can be installed",
            upgrade(&entry.vsphere.range, constraints)?
        ),
        Rejection::Requires { driver, .. } => format!("If {driver} is installed too, version {version} can be installed"),
        Rejection::RequiresVersion { needs, .. } => format!("With {needs}, version {version} can be installed"),
        Rejection::Downgrade { .. } => format!("For a downgrade, pin {version}"),
        Rejection::Unmet { what, .. } => format!("{version} can be installed when this problem is solved: {what}"),
        Rejection::NotMirrored => format!("{version} can be installed when it is in the mirror: vdoctl mirror pull"),
        Rejection::NoPath { installed, from } => {
            let between = between(driver, installed, from, entry)?;
            format!("To reach {version}, first pin {between} with allowIncompatible")
        }
        _ => return None,
    })
}

impl Rejection {
    /// What would have to change for this one reason to disappear; `None` where nothing helps, or the reason names it itself.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Kubernetes { supported, actual } => Some(format!("Kubernetes {}", end(supported, actual.numbers())?)),
            Self::Vsphere {
                supported,
                connection,
                actual,
            } => Some(format!("{connection} at version {}", end(supported, actual.numbers())?)),
            Self::Requires { driver, .. } => Some(format!("{driver} as well")),
            Self::RequiresVersion { needs, .. } => Some(needs.clone()),
            Self::OneVcenter { .. } => Some("one vSphere connection".to_owned()),
            Self::Feature { by, .. } => Some(format!("removing {by}")),
            Self::FeatureVsphere {
                by,
                supported,
                connection,
                actual,
                ..
            } => {
                let end = end(supported, actual.numbers())?;
                Some(format!("{connection} at version {end}, or removing {by}"))
            }
            Self::NoPath { from, .. } => Some(format!("installing {from} or a newer version first")),
            Self::Prerelease | Self::Downgrade { .. } | Self::Held { .. } => Some("a pin".to_owned()),
            Self::NotMirrored => Some("a mirror that has this version".to_owned()),
            Self::Withdrawn { .. } | Self::NoChart | Self::Apart | Self::Unmet { .. } => None,
        }
    }
}

/// The newest version that leads from what is installed to another one, whether or not it fits.
fn between(driver: &Driver, installed: &DriverVersion, from: &DriverVersion, target: &Entry) -> Option<DriverVersion> {
    let leads = |entry: &&Entry| {
        let reached = super::upgrade_path::from(entry).is_none_or(|from| from <= installed);
        let known = !matches!(entry.state, State::Withdrawn(_)) && !entry.chart.urls.is_empty();
        (from..&target.version).contains(&&entry.version) && reached && known
    };
    let between = driver.versions.iter().filter(leads);
    between.map(|entry| entry.version.clone()).max()
}

/// Which vCenters to upgrade for a range, in words; `None` when one is too new, which no upgrade helps.
fn upgrade(range: &VersionRange, constraints: &Constraints<'_>) -> Option<String> {
    let min = range.min()?;
    let from = VersionRange::new(Some(min), None).ok()?;
    let mut old: Vec<_> = outside(range, constraints).collect();
    old.sort();
    let all_old = old.iter().all(|(_, version)| !from.contains(version.numbers()));
    let names: Vec<&str> = old.iter().map(|(name, _)| name.as_str()).collect();
    (all_old && !names.is_empty()).then(|| format!("After an upgrade of {} to {min}", names.join(" and ")))
}

fn kubernetes(
    driver: &Driver,
    query: &Query<'_>,
    constraints: &Constraints<'_>,
    (rejected, not_yet): (&[Rejected], Option<&NotYet>),
) -> Option<String> {
    let ranges = rejected.iter().filter_map(|rejected| match &rejected.reason {
        Rejection::Kubernetes { supported, .. } => Some((supported, &rejected.version)),
        _ => None,
    });
    // the lowest range that starts above the cluster needs the smallest upgrade
    let mut above: Vec<_> = ranges
        .clone()
        .filter(|(range, _)| below(query.kubernetes.numbers(), range))
        .collect();
    above.sort_by_cached_key(|(range, version)| {
        let min = range.min().and_then(|min| min.parse::<KubernetesVersion>().ok());
        (min, std::cmp::Reverse((*version).clone()))
    });
    let alone = |version| {
        driver
            .entry(version)
            .is_some_and(|entry| each(entry, query, constraints).take(2).count() <= 1)
    };
    if let Some((range, version)) = above.iter().take(LOOKED_AT).find(|(_, version)| alone(version)) {
        return Some(format!("With Kubernetes {}, version {version} can be installed", range.min()?));
    }
    let newest = ranges.map(|(_, version)| version).max()?;
    if !above.is_empty() {
        let entry = driver.entry(newest)?;
        let lacks: Vec<String> = each(entry, query, constraints).map(|reason| reason.to_string()).collect();
        return Some(format!("No single change helps: {newest} {}", lacks.join(", and ")));
    }
    if let Some(not_yet) = not_yet {
        return Some(not_yet.advice());
    }
    Some(format!(
        "A newer matrix may list a version for Kubernetes {}; until then {newest} can be pinned with allowIncompatible",
        query.kubernetes.minor()
    ))
}

/// Whether the version lies below the range.
fn below(version: &[u64], range: &VersionRange) -> bool {
    range.min().is_some() && VersionRange::new(range.min(), None).is_ok_and(|from| !from.contains(version))
}

/// The end of the range that is nearer to a version outside of it.
fn end<'a>(range: &'a VersionRange, version: &[u64]) -> Option<&'a str> {
    if below(version, range) { range.min() } else { range.max() }
}
