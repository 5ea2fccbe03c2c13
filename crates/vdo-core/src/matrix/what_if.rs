// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix resolve --what-if-…`: computes the driver changes for each stage of an upgrade of Kubernetes or vCenter.
//! Also decides whether the drivers fit the next Kubernetes minor (`upgradeable`).

use super::index::Index;
use super::rejection::{NoFit, Rejection};
use super::resolve::{DriverRequest, Query, Resolution, resolve};
use super::upgrade_path::{Step, steps};
use super::version_fits::{Constraints, Exclusion, judge, misfits};
use std::collections::BTreeMap;
use vdo_api::types::{DriverName, DriverVersion, KubernetesVersion, VcenterVersion};

/// When a driver has to change around a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// It fits before and after: change it first, and the stage is uneventful.
    Before,
    /// It fits only afterwards: it changes with the stage, and until then the old one runs where it is not supported.
    With,
}

/// A driver that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The driver.
    pub driver: DriverName,
    /// What ran before; `None` for a first installation.
    pub from: Option<DriverVersion>,
    /// The versions to install, one after the other, the last one to stay, each with what must hold before it.
    pub path: Vec<Step>,
    /// When.
    pub when: When,
    /// Why this version.
    pub because: String,
}

/// One step of the platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// The cluster's version from then on.
    pub kubernetes: KubernetesVersion,
    /// The vCenters from then on.
    pub vcenters: Vec<(String, VcenterVersion)>,
    /// The drivers that change.
    pub changes: Vec<Change>,
    /// The drivers for which no version will do, and why: they stay as they are, and the others go on without them.
    pub unfit: Option<Box<NoFit>>,
    /// What runs afterwards.
    pub runs: BTreeMap<DriverName, DriverVersion>,
}

/// The way of the platform to where it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// The steps in order: today, the vCenters, then one Kubernetes minor after the other.
    pub stages: Vec<Stage>,
}

/// The next Kubernetes minor.
#[must_use]
pub fn next_minor(version: &KubernetesVersion) -> KubernetesVersion {
    let number = |i: usize| version.numbers().get(i).copied().unwrap_or(0);
    let next = format!("{}.{}", number(0), number(1).saturating_add(1));
    next.parse().unwrap_or_else(|_| version.clone())
}

/// Looks ahead to another Kubernetes and other vCenters (those that are named; the others stay).
///
/// Kubernetes goes up one minor at a time, as clusters do. The first stage is today's platform: what would be done anyway.
#[must_use]
pub fn outlook(index: &Index, query: &Query<'_>, kubernetes: Option<&KubernetesVersion>, vcenters: &[(String, VcenterVersion)]) -> Outlook {
    /// No cluster is upgraded by more minors in one plan.
    const MOST: usize = 20;
    let mut platforms = vec![(query.kubernetes.clone(), query.vcenters.to_vec())];
    let there: Vec<_> = query
        .vcenters
        .iter()
        .map(|(name, now)| {
            let then = vcenters.iter().find(|(other, _)| other == name).map(|(_, then)| then);
            (name.clone(), then.unwrap_or(now).clone())
        })
        .collect();
    if there != query.vcenters {
        platforms.push((query.kubernetes.clone(), there.clone()));
    }
    if let Some(target) = kubernetes {
        let minor = |version: &KubernetesVersion| [0, 1].map(|i| version.numbers().get(i).copied().unwrap_or(0));
        let mut now = query.kubernetes.clone();
        while minor(&now) < minor(target) && platforms.len() < MOST {
            now = next_minor(&now);
            let reached = if minor(&now) == minor(target) {
                target.clone()
            } else {
                now.clone()
            };
            platforms.push((reached, there.clone()));
        }
        if minor(query.kubernetes) > minor(target) {
            platforms.push((target.clone(), there));
        }
    }
    let mut runs = query.installed.clone();
    let mut stages: Vec<Stage> = Vec::new();
    for (kubernetes, vcenters) in platforms {
        let asked = Query {
            kubernetes: &kubernetes,
            vcenters: &vcenters,
            installed: &runs,
            ..*query
        };
        let before = stages.last().map(|stage| (stage.kubernetes.clone(), stage.vcenters.clone()));
        let (changes, unfit) = changes(index, &asked, before);
        let last = changes
            .iter()
            .filter_map(|change| Some((change.driver.clone(), change.path.last()?.version.clone())));
        let last: Vec<_> = last.collect();
        runs.extend(last);
        stages.push(Stage {
            kubernetes,
            vcenters,
            changes,
            unfit,
            runs: runs.clone(),
        });
    }
    Outlook { stages }
}

type Platform = (KubernetesVersion, Vec<(String, VcenterVersion)>);

fn changes(index: &Index, query: &Query<'_>, before: Option<Platform>) -> (Vec<Change>, Option<Box<NoFit>>) {
    let (resolution, unfit) = without_unfit(index, query);
    let mut changes = Vec::new();
    for (name, pick) in resolution.picks {
        let from = query.installed.get(&name);
        if from == Some(&pick.target) {
            continue;
        }
        let mut path = if pick.path.is_empty() {
            vec![Step {
                version: pick.target.clone(),
                preconditions: Vec::new(),
            }]
        } else {
            pick.path
        };
        let mut when = When::With;
        if let (Some(from), Some((kubernetes, vcenters))) = (from, &before) {
            let earlier = Query {
                kubernetes,
                vcenters,
                ..*query
            };
            if let Some(way) = early(index, &earlier, &name, from, &pick.target) {
                (path, when) = (way, When::Before);
            }
        }
        changes.push(Change {
            from: from.cloned(),
            path,
            when,
            // All steps are shown at once, so the reason is the one for the last step.
            because: pick.because_target,
            driver: name,
        });
    }
    (changes, unfit)
}

/// The choice for all drivers that have one, and those that have none: they do not hold the others up.
pub(super) fn without_unfit(index: &Index, query: &Query<'_>) -> (Resolution, Option<Box<NoFit>>) {
    let mut drivers = query.drivers.clone();
    let mut unfit: Option<Box<NoFit>> = None;
    loop {
        let asked = Query {
            drivers: &drivers,
            ..*query
        };
        let error = match resolve(index, &asked) {
            Ok(resolution) => return (resolution, unfit),
            Err(error) => error,
        };
        let left: Vec<DriverName> = error.all().map(|error| error.driver.clone()).collect();
        match &mut unfit {
            Some(first) => first.others.extend(error.all().cloned()),
            None => unfit = Some(error),
        }
        drivers.retain(|driver, _| !left.contains(driver));
        if drivers.is_empty() {
            return (Resolution::default(), unfit);
        }
    }
}

/// The steps to the target on the platform as it is before a stage, when all of them fit there.
fn early(index: &Index, query: &Query<'_>, name: &DriverName, from: &DriverVersion, target: &DriverVersion) -> Option<Vec<Step>> {
    let driver = index.drivers.get(name)?;
    let request = query.drivers.get(name)?;
    let verdicts = judge(driver, query, Constraints::new(driver, query, request), Some(from));
    let (entry, exclusion) = verdicts.judged.iter().find(|(entry, _)| entry.version == *target)?;
    let fits = matches!(exclusion, None | Some(Exclusion::Downgrade | Exclusion::Prerelease));
    let way = steps(&verdicts.judged, from, entry);
    let back = || Step {
        version: target.clone(),
        preconditions: Vec::new(),
    };
    let way: Vec<Step> = way.into_iter().map(Step::to).collect();
    fits.then(|| if way.is_empty() { vec![back()] } else { way })
}

/// Whether the next Kubernetes minor fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upgradeable {
    /// That minor.
    pub kubernetes: String,
    /// The versions that would run there, or what keeps the cluster from going there.
    pub result: Result<BTreeMap<DriverName, DriverVersion>, Box<NoFit>>,
    /// Drivers that would stay although they do not fit there: pinned with force, or not updated.
    pub forced: BTreeMap<DriverName, (DriverVersion, Rejection)>,
}

impl Upgradeable {
    /// Whether every driver would fit.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.result.is_ok() && self.forced.is_empty()
    }
}

/// Asks for the next Kubernetes minor with everything else as it is.
#[must_use]
pub fn upgradeable(index: &Index, query: &Query<'_>) -> Upgradeable {
    let next = next_minor(query.kubernetes);
    let asked = Query {
        kubernetes: &next,
        ..*query
    };
    let result = resolve(index, &asked);
    let mut forced = BTreeMap::new();
    for (name, pick) in result.iter().flat_map(|resolution| &resolution.picks) {
        let plain = DriverRequest::default();
        let request = query.drivers.get(name).unwrap_or(&plain);
        let known = index
            .drivers
            .get(name)
            .and_then(|driver| Some((driver, driver.entry(&pick.version)?)));
        if let Some(reason) = known.and_then(|(driver, entry)| misfits(driver, entry, &asked, request).into_iter().next()) {
            forced.insert(name.clone(), (pick.version.clone(), reason));
        }
    }
    let versions = |resolution: Resolution| resolution.picks.into_iter().map(|(name, pick)| (name, pick.target)).collect();
    Upgradeable {
        kubernetes: next.minor(),
        result: result.map(versions),
        forced,
    }
}
