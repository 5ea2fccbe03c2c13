// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix diff`: compares the versions and rules of two indexes, and the versions that an operator selects with each of them.

use super::index::{Entry, Index, State};
use super::resolve::{DriverRequest, Query, UpdatePolicy};
use super::what_if::without_unfit;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::{Digest, DriverName, DriverVersion, KubernetesVersion, VcenterVersion, VersionRange, span};

/// What differs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Difference {
    /// Versions that are not in both, or are not the same in both: what became of each.
    pub versions: Vec<(DriverName, DriverVersion, Vec<String>)>,
    /// What an operator would do differently.
    pub choices: Vec<Choice>,
    /// What else an operator would judge by other rules, each as a sentence.
    pub rules: Vec<&'static str>,
}

impl Difference {
    /// Whether an operator would do and judge the same.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.choices.is_empty() && self.rules.is_empty()
    }
}

/// A cluster, as far as a choice depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Situation {
    /// Nothing is installed.
    New,
    /// What the old index chooses is installed, and stays while it fits.
    Compatible,
    /// It is installed, and follows the newest.
    Latest,
}

/// A driver of which another version would be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The driver.
    pub driver: DriverName,
    /// In which clusters.
    pub situation: Situation,
    /// By the old index; `None` when nothing fits.
    pub old: Option<DriverVersion>,
    /// By the new one. The same version as the old one where only its chart is another.
    pub new: Option<DriverVersion>,
    /// Where it is so.
    pub platforms: Vec<(KubernetesVersion, VcenterVersion)>,
}

/// The minor of Kubernetes 1 at which a range begins or ends.
fn minor(bound: &str) -> Option<u64> {
    bound.split('.').nth(1)?.parse().ok()
}

/// The lowest and the highest minor of Kubernetes 1 that any of the indexes speaks of.
fn outermost<'a>(indexes: impl IntoIterator<Item = &'a Index>) -> Option<(u64, u64)> {
    let ranges = entries(indexes).map(|entry| &entry.kubernetes.range);
    let bounds: BTreeSet<u64> = ranges
        .flat_map(|range| [range.min(), range.max()])
        .flatten()
        .filter_map(minor)
        .collect();
    Some((*bounds.first()?, *bounds.last()?))
}

/// Every minor of Kubernetes 1 that either index speaks of.
#[must_use]
pub fn known_minors(indexes: [&Index; 2]) -> Vec<KubernetesVersion> {
    let all = outermost(indexes).into_iter().flat_map(|(first, last)| span(first, last));
    all.filter_map(|minor| format!("1.{minor}").parse().ok()).collect()
}

/// The minors of Kubernetes 1 in a range. An end that is open reaches as far as anything in the index does.
#[must_use]
pub fn minors(range: &VersionRange, index: &Index) -> Vec<String> {
    let (min, max) = (range.min().and_then(minor), range.max().and_then(minor));
    let known = outermost([index]);
    let first = min.or(known.map(|(first, _)| first)).or(max);
    let last = max.or(known.map(|(_, last)| last)).or(min);
    let (Some(first), Some(last)) = (first, last) else {
        return Vec::new();
    };
    span(first, last.max(first)).map(|minor| format!("1.{minor}")).collect()
}

/// Every version of vCenter at which a range of either index begins or ends.
#[must_use]
pub fn known_vcenters(indexes: [&Index; 2]) -> Vec<VcenterVersion> {
    let of = |range: &VersionRange| [range.min(), range.max()].map(|bound| bound.map(str::to_owned));
    let features = |entry: &Entry| entry.features.values().flat_map(|feature| of(&feature.vsphere)).collect::<Vec<_>>();
    let bounds = entries(indexes).flat_map(|entry| of(&entry.vsphere.range).into_iter().chain(features(entry)));
    let all: BTreeSet<VcenterVersion> = bounds.flatten().filter_map(|bound| bound.parse().ok()).collect();
    all.into_iter().collect()
}

fn entries<'a>(indexes: impl IntoIterator<Item = &'a Index>) -> impl Iterator<Item = &'a Entry> {
    let drivers = indexes.into_iter().flat_map(|index| index.drivers.values());
    drivers.flat_map(|driver| &driver.versions)
}

/// Compares two indexes on these platforms.
#[must_use]
pub fn difference(old: &Index, new: &Index, kubernetes: &[KubernetesVersion], vcenters: &[VcenterVersion]) -> Difference {
    type Change = (DriverName, Situation, Option<DriverVersion>, Option<DriverVersion>);
    let mut found: BTreeMap<Change, Vec<(KubernetesVersion, VcenterVersion)>> = BTreeMap::new();
    let judged = judged_otherwise(old, new);
    for minor in kubernetes {
        for vcenter in vcenters {
            let none = BTreeMap::new();
            let fresh = chosen(old, minor, vcenter, &none, UpdatePolicy::Compatible);
            let installed: BTreeMap<_, _> = fresh
                .iter()
                .filter_map(|(name, pick)| Some((name.clone(), pick.as_ref()?.0.clone())))
                .collect();
            let mut clusters = vec![
                (Situation::New, none, UpdatePolicy::Compatible),
                (Situation::Compatible, installed.clone(), UpdatePolicy::Compatible),
                (Situation::Latest, installed.clone(), UpdatePolicy::Latest),
            ];
            // A cluster may have another version than a new one would get: what became of that one counts, too.
            for (name, version) in judged.iter().filter(|(name, version)| installed.get(*name) != Some(*version)) {
                let mut instead = installed.clone();
                instead.insert((*name).clone(), (*version).clone());
                clusters.push((Situation::Compatible, instead, UpdatePolicy::Compatible));
            }
            for (situation, installed, policy) in &clusters {
                let (before, after) = (
                    chosen(old, minor, vcenter, installed, *policy),
                    chosen(new, minor, vcenter, installed, *policy),
                );
                for name in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
                    let of = |all: &Chosen| all.get(name).cloned().flatten();
                    let (before, after) = (of(&before), of(&after));
                    if before != after {
                        let version = |pick: Option<Picked>| pick.map(|(version, _)| version);
                        let at = found
                            .entry((name.clone(), *situation, version(before), version(after)))
                            .or_default();
                        let place = (minor.clone(), vcenter.clone());
                        if !at.contains(&place) {
                            at.push(place);
                        }
                    }
                }
            }
        }
    }
    let choice = |((driver, situation, old, new), platforms)| Choice {
        driver,
        situation,
        old,
        new,
        platforms,
    };
    Difference {
        versions: versions(old, new),
        choices: found.into_iter().map(choice).collect(),
        rules: rules(old, new),
    }
}

/// Of each driver so many versions of which something else is said are tried as installed ones, the newest: an index may hold thousands.
const TRIED: usize = 32;

/// The versions of the old index that the new one does not have, or lets run elsewhere.
fn judged_otherwise<'a>(old: &'a Index, new: &Index) -> Vec<(&'a DriverName, &'a DriverVersion)> {
    let ranges = |entry: &Entry| (entry.kubernetes.range.clone(), entry.vsphere.range.clone(), entry.state.clone());
    let mut all = Vec::new();
    for (name, driver) in &old.drivers {
        let after = by_version(new, name);
        let differs = |before: &&Entry| {
            after.get(&before.version).is_none_or(|after| {
                ranges(before) != ranges(after) || (&before.requires, &before.features) != (&after.requires, &after.features)
            })
        };
        all.extend(
            driver
                .versions
                .iter()
                .filter(differs)
                .take(TRIED)
                .map(|entry| (name, &entry.version)),
        );
    }
    all
}

fn by_version<'a>(index: &'a Index, name: &DriverName) -> BTreeMap<&'a DriverVersion, &'a Entry> {
    let versions = index.drivers.get(name).into_iter().flat_map(|driver| &driver.versions);
    versions.map(|entry| (&entry.version, entry)).collect()
}

/// Whether a version has another chart, which an operator applies where it is installed.
fn has_other_charts(old: &Index, new: &Index) -> bool {
    old.drivers.iter().any(|(name, driver)| {
        let after = by_version(new, name);
        let changed = |before: &Entry| {
            after
                .get(&before.version)
                .is_some_and(|after| after.chart.digest != before.chart.digest)
        };
        driver.versions.iter().any(changed)
    })
}

/// What is judged by other rules, though the same versions may be chosen.
fn rules(old: &Index, new: &Index) -> Vec<&'static str> {
    let all = [
        (
            has_other_charts(old, new),
            "If an installed version has another chart now, its objects change.",
        ),
        (old.privileges != new.privileges, "The privileges that accounts need change."),
        (old.preconditions != new.preconditions, "The preconditions of upgrades change."),
        (
            old.vcenter_builds != new.vcenter_builds,
            "The table with the builds of vCenter changes.",
        ),
    ];
    all.into_iter().filter(|(differs, _)| *differs).map(|(_, what)| what).collect()
}

/// A version with the chart that it is installed by.
type Picked = (DriverVersion, Digest);
/// The choice for every driver; `None` where nothing fits.
type Chosen = BTreeMap<DriverName, Option<Picked>>;

/// What an operator would run of every driver: one for which nothing fits does not hold up the others.
fn chosen(
    index: &Index,
    kubernetes: &KubernetesVersion,
    vcenter: &VcenterVersion,
    installed: &BTreeMap<DriverName, DriverVersion>,
    policy: UpdatePolicy,
) -> Chosen {
    let known = |name: &&DriverName| index.drivers.contains_key(*name);
    let drivers: BTreeMap<_, _> = index.drivers.keys().map(|name| (name.clone(), DriverRequest::default())).collect();
    let installed = installed
        .iter()
        .filter(|(name, _)| known(name))
        .map(|(name, version)| (name.clone(), version.clone()));
    let query = Query {
        kubernetes,
        vcenters: &[("vcenter".to_owned(), index.vcenter(vcenter, None))],
        drivers: &drivers,
        installed: &installed.collect(),
        policy,
    };
    let mut picks = without_unfit(index, &query).0.picks;
    let of = |name: &DriverName| (name.clone(), picks.remove(name).map(|pick| (pick.version, pick.chart.digest)));
    index.drivers.keys().map(of).collect()
}

fn versions(old: &Index, new: &Index) -> Vec<(DriverName, DriverVersion, Vec<String>)> {
    let mut all = Vec::new();
    for name in old.drivers.keys().chain(new.drivers.keys()).collect::<BTreeSet<_>>() {
        let (before, after) = (by_version(old, name), by_version(new, name));
        for version in before
            .keys()
            .chain(after.keys())
            .copied()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .rev()
        {
            let what = match (before.get(version), after.get(version)) {
                (Some(before), Some(after)) => changes(before, after),
                (None, Some(after)) => vec![format!(
                    "is new: Kubernetes {}, vSphere {}",
                    after.kubernetes.range, after.vsphere.range
                )],
                _ => vec!["is removed".to_owned()],
            };
            if !what.is_empty() {
                all.push((name.clone(), version.clone(), what));
            }
        }
    }
    all
}

fn changes(before: &Entry, after: &Entry) -> Vec<String> {
    let mut all = Vec::new();
    if before.state != after.state {
        all.push(match &after.state {
            State::Good => "is neither deprecated nor withdrawn any more".to_owned(),
            State::Deprecated(verdict) => format!("is deprecated: {}", verdict.reason),
            State::Withdrawn(verdict) => format!("is withdrawn: {}", verdict.reason),
        });
    }
    if before.chart.digest != after.chart.digest {
        all.push("has another chart".to_owned());
    }
    for (what, before, after) in [
        ("Kubernetes", &before.kubernetes.range, &after.kubernetes.range),
        ("vSphere", &before.vsphere.range, &after.vsphere.range),
    ] {
        if before != after {
            all.push(format!("{what} {before} became {after}"));
        }
    }
    for (what, differs) in [
        ("other requirements", before.requires != after.requires),
        ("other features", before.features != after.features),
        ("other upgrade edges", before.upgrades_from != after.upgrades_from),
        ("other images", before.images != after.images),
    ] {
        if differs {
            all.push(format!("has {what}"));
        }
    }
    all
}
