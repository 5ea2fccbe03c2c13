use super::advice::{advice, platform};
use super::index::{Driver, Entry, Index, State};
use super::rejection::{Cause, NoFit, Rejected, Rejection};
use crate::types::{ChartRef, DriverName, DriverRole, DriverVersion, KubernetesVersion, VcenterVersion};
use std::collections::BTreeMap;

/// When an installed driver is changed without being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UpdatePolicy {
    /// It stays while it fits and is not withdrawn.
    #[default]
    Compatible,
    /// It follows the newest version that fits.
    Latest,
    /// It stays whatever happens. The first installation is still made.
    Disabled,
}

/// What is wanted of one driver.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriverRequest {
    /// Exactly this version.
    pub pin: Option<DriverVersion>,
    /// Take the pin although it does not fit.
    pub allow_incompatible: bool,
}

/// Everything the choice depends on.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The cluster's version.
    pub kubernetes: &'a KubernetesVersion,
    /// Every vCenter by the name of its connection. A vCenter whose version is not known is left out, which allows more than it
    /// should: a caller that does not know a version keeps what is installed.
    pub vcenters: &'a [(String, VcenterVersion)],
    /// The drivers to choose, and what is wanted of each.
    pub drivers: &'a BTreeMap<DriverName, DriverRequest>,
    /// The versions that run now.
    pub installed: &'a BTreeMap<DriverName, DriverVersion>,
    /// When an installed driver is changed.
    pub policy: UpdatePolicy,
}

/// One chosen version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// The version.
    pub version: DriverVersion,
    /// Its chart.
    pub chart: ChartRef,
    /// Why this one, as the end of "chosen because".
    pub because: String,
    /// The newest version that fits, whether or not it is the chosen one. `None` only beside an overridden pin.
    pub newest: Option<DriverVersion>,
    /// Why the pinned version does not fit, when it is taken all the same.
    pub overridden: Option<String>,
    /// Why the version is deprecated, when it is.
    pub deprecated: Option<String>,
}

/// One choice for every driver asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolution {
    /// The choices.
    pub picks: BTreeMap<DriverName, Pick>,
}

/// Chooses a version for every driver together: each fits the cluster, every vCenter, and the other drivers.
///
/// The order of the index and of the vCenters does not matter.
///
/// # Errors
/// For the first driver, by name, that has no choice: every version with the reason it was rejected.
pub fn resolve(index: &Index, query: &Query<'_>) -> Result<Resolution, Box<NoFit>> {
    let pick = |(name, request): (&DriverName, &DriverRequest)| Ok((name.clone(), choose(index, query, name, request)?));
    let picks = query.drivers.iter().map(pick).collect::<Result<_, Box<NoFit>>>()?;
    Ok(Resolution { picks })
}

fn choose(index: &Index, query: &Query<'_>, name: &DriverName, request: &DriverRequest) -> Result<Pick, Box<NoFit>> {
    let Some(driver) = index.drivers.get(name) else {
        let known = index.drivers.keys().cloned().collect();
        return Err(no_fit(query, name, Cause::UnknownDriver { known }, Vec::new(), None));
    };
    let installed = query.installed.get(name);
    let judged = judge(driver, query, installed);
    let newest = judged.iter().find(|(_, reason)| reason.is_none()).map(|(entry, _)| *entry);
    let newest_version = newest.map(|entry| entry.version.clone());
    let take = |entry: &Entry, because: String| Pick {
        version: entry.version.clone(),
        chart: entry.chart.clone(),
        because,
        newest: newest_version.clone(),
        overridden: None,
        deprecated: match &entry.state {
            State::Deprecated(verdict) => Some(verdict.reason.clone()),
            State::Good | State::Withdrawn(_) => None,
        },
    };
    let fail = |cause| {
        let rejected = judged.iter().filter_map(|(entry, reason)| {
            Some(Rejected {
                version: entry.version.clone(),
                reason: reason.clone()?,
            })
        });
        no_fit(query, name, cause, rejected.collect(), Some(driver))
    };

    if let Some(pin) = &request.pin {
        let Some(entry) = driver.entry(pin) else {
            return Err(fail(Cause::UnknownPin {
                pin: pin.clone(),
                nearest: driver.nearest(pin),
            }));
        };
        return match misfit(entry, query) {
            None => Ok(take(entry, "pinned in spec".to_owned())),
            Some(reason) if request.allow_incompatible => Ok(Pick {
                overridden: Some(reason.to_string()),
                ..take(entry, "pinned in spec, although it does not fit".to_owned())
            }),
            Some(reason) => Err(fail(Cause::PinRejected {
                pin: pin.clone(),
                reason,
                fits: newest_version.clone(),
            })),
        };
    }
    if let Some(version) = installed {
        let entry = driver.entry(version);
        match (query.policy, entry) {
            (UpdatePolicy::Disabled, Some(entry)) => {
                return Ok(take(entry, "installed, and updates are disabled".to_owned()));
            }
            (UpdatePolicy::Disabled, None) => {
                return Err(fail(Cause::InstalledUnknown {
                    installed: version.clone(),
                }));
            }
            (UpdatePolicy::Compatible, Some(entry)) if misfit(entry, query).is_none() => {
                return Ok(take(entry, "installed and still fits".to_owned()));
            }
            (UpdatePolicy::Compatible | UpdatePolicy::Latest, _) => {}
        }
    }
    match newest {
        Some(entry) => Ok(take(entry, reason_for(driver, entry, query))),
        None => Err(fail(Cause::NothingFits)),
    }
}

/// Every version, newest first, with the reason it is not to be chosen without being asked for.
fn judge<'a>(driver: &'a Driver, query: &Query<'_>, installed: Option<&DriverVersion>) -> Vec<(&'a Entry, Option<Rejection>)> {
    let mut entries: Vec<&Entry> = driver.versions.iter().collect();
    entries.sort_by(|left, right| right.version.cmp(&left.version));
    let judged = entries.into_iter().map(|entry| {
        let is_installed = installed == Some(&entry.version);
        let prerelease = (entry.version.is_prerelease() && !is_installed).then_some(Rejection::Prerelease);
        let reason = misfit(entry, query)
            .or(prerelease)
            .or_else(|| downgrade(driver, entry, query, installed));
        (entry, reason)
    });
    judged.collect()
}

/// Why the version does not fit the platform and the other drivers.
fn misfit(entry: &Entry, query: &Query<'_>) -> Option<Rejection> {
    if let State::Withdrawn(verdict) = &entry.state {
        return Some(Rejection::Withdrawn {
            reason: verdict.reason.clone(),
            instead: verdict.instead.clone(),
        });
    }
    if !entry.kubernetes.range.contains(query.kubernetes.numbers()) {
        return Some(Rejection::Kubernetes {
            supported: entry.kubernetes.range.clone(),
            actual: query.kubernetes.clone(),
        });
    }
    let outside = query
        .vcenters
        .iter()
        .filter(|(_, version)| !entry.vsphere.range.contains(version.numbers()));
    if let Some((connection, actual)) = outside.min() {
        return Some(Rejection::Vsphere {
            supported: entry.vsphere.range.clone(),
            connection: connection.clone(),
            actual: actual.clone(),
        });
    }
    let missing = entry
        .requires
        .iter()
        .find(|required| !query.drivers.contains_key(&required.driver))?;
    Some(Rejection::Requires {
        driver: missing.driver.clone(),
        reason: missing.reason.clone(),
    })
}

/// Going back is refused while the installed version fits, or while the matrix knows nothing about it.
fn downgrade(driver: &Driver, entry: &Entry, query: &Query<'_>, installed: Option<&DriverVersion>) -> Option<Rejection> {
    let installed = installed.filter(|installed| **installed > entry.version)?;
    let must_leave = driver.entry(installed).is_some_and(|entry| misfit(entry, query).is_some());
    (!must_leave).then(|| Rejection::Downgrade {
        installed: installed.clone(),
    })
}

fn reason_for(driver: &Driver, entry: &Entry, query: &Query<'_>) -> String {
    let range = &entry.kubernetes.range;
    if driver.role == DriverRole::CloudProvider && range.min().is_some() && range.min() == range.max() {
        return format!("its minor must equal Kubernetes {}", query.kubernetes.minor());
    }
    format!("newest that supports {}", platform(query))
}

fn no_fit(query: &Query<'_>, name: &DriverName, cause: Cause, rejected: Vec<Rejected>, driver: Option<&Driver>) -> Box<NoFit> {
    let advice = driver.and_then(|driver| advice(driver, query, &cause, &rejected));
    Box::new(NoFit {
        driver: name.clone(),
        cause,
        rejected,
        platform: platform(query),
        advice,
    })
}
