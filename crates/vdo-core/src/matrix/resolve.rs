// SPDX-License-Identifier: Apache-2.0
//! Selects one version of each driver jointly, by pins, update policy, installed versions and the requirements between drivers.

use super::index::{Driver, Entry, Index, Requirement, State};
use super::rejection::{Cause, NoFit, Rejected, Rejection};
use super::suggestion::{platform, suggestion};
use super::unsupported_kubernetes::NotYet;
use super::upgrade_path::{Step, steps};
use super::version_fits::{Constraints, Exclusion, Verdicts, judge, misfit};
use super::waiting_upgrade::Held;
use std::collections::BTreeMap;
use vdo_api::types::{ChartRef, DriverName, DriverRole, DriverVersion, KubernetesVersion, VcenterVersion};

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
    /// The same, because the index is past its date: [`Index::policy`].
    Frozen,
}

/// What is wanted of one driver.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriverRequest {
    /// Exactly this version.
    pub pin: Option<DriverVersion>,
    /// Who pins it, for messages; `None`: the specification.
    pub pinned_by: Option<String>,
    /// Take the pin although it does not fit.
    pub allow_incompatible: bool,
    /// What the version must be able to do, by the names of features in the index, each with who asks for it: a field, or a flag.
    pub features: BTreeMap<String, String>,
    /// Feature states of the driver that are set, by name.
    pub states: BTreeMap<String, bool>,
    /// The connections whose vCenters it will speak to; `None`: all.
    pub connections: Option<Vec<String>>,
    /// What is not known to hold of the preconditions of upgrades, by name, with what is known of it and what to do. An upgrade that
    /// names one of these waits; a first installation does not. `None`: not checked, and the choice names what to check.
    pub unmet: Option<BTreeMap<String, String>>,
    /// The version that stays for now although another one would be chosen. A pin goes before it.
    pub held: Option<Held>,
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
    /// The version to install now.
    pub version: DriverVersion,
    /// Where it leads: another version than [`Pick::version`] when that is only a step on the way.
    pub target: DriverVersion,
    /// What is installed.
    pub from: Option<DriverVersion>,
    /// Why what is installed cannot stay; `None` also where the matrix does not know it.
    pub leaves: Option<Rejection>,
    /// The versions from what is installed to the target, in order; empty when nothing is installed or nothing newer is taken.
    pub path: Vec<Step>,
    /// The newest version above the target that only waits for a precondition of its upgrade.
    pub waits: Option<Rejected>,
    /// Its chart.
    pub chart: ChartRef,
    /// Why this version, as the end of "chosen because".
    pub because: String,
    /// Why the target; the same as `because` unless this version is a step on the way to it.
    pub because_target: String,
    /// Why the newest version is that; empty where none fits.
    pub because_newest: String,
    /// The best version that fits, whether or not it is the chosen one. `None` only beside an overridden pin.
    pub newest: Option<DriverVersion>,
    /// Why the version does not fit, when it is taken anyway: pinned with force, or kept because nothing is updated.
    pub overridden: Option<String>,
    /// Why the version is deprecated, when it is.
    pub deprecated: Option<String>,
}

impl Pick {
    /// What must hold before the next step and was not checked, by name.
    #[must_use]
    pub fn preconditions(&self) -> &[String] {
        self.path.first().map_or(&[], |step| &step.preconditions)
    }
}

/// One choice for every driver asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolution {
    /// The choices.
    pub picks: BTreeMap<DriverName, Pick>,
}

/// Every version of a driver, newest first, each with the reason it is not to be chosen without being asked for.
pub type Candidates = BTreeMap<DriverName, Vec<(DriverVersion, Option<Rejection>)>>;

/// What may be chosen for every driver asked for, each looked at by itself.
#[must_use]
pub fn candidates(index: &Index, query: &Query<'_>) -> Candidates {
    let each = query.drivers.iter().filter_map(|(name, request)| {
        let driver = index.drivers.get(name)?;
        let verdicts = judge(driver, query, Constraints::new(driver, query, request), query.installed.get(name));
        let owned = |(entry, exclusion): &(&Entry, Option<Exclusion>)| {
            (
                entry.version.clone(),
                exclusion.and_then(|exclusion| verdicts.reason(entry, exclusion)),
            )
        };
        Some((name.clone(), verdicts.judged.iter().map(owned).collect()))
    });
    each.collect()
}

/// Chooses a version for every driver together: each fits the cluster, every vCenter, and the other drivers.
///
/// What is installed stays, as far as the policy allows; otherwise the newest goes before older ones, and what is not deprecated
/// before what is. Where drivers need certain versions of each other, the first driver by name has the first choice. The order of
/// the index and of the vCenters does not matter.
///
/// # Errors
/// When a driver has no choice: every version with the reason it was rejected, and the same for every other such driver.
pub fn resolve(index: &Index, query: &Query<'_>) -> Result<Resolution, Box<NoFit>> {
    let mut options = Vec::new();
    let mut failures = Vec::new();
    for (name, request) in query.drivers {
        match choices(index, query, name, request) {
            Ok(found) => options.push(found),
            Err(error) => failures.push(*error),
        }
    }
    if failures.is_empty() {
        match together(&options) {
            Ok(chosen) => return Ok(finish(&options, &chosen, query)),
            Err(reasons) => {
                // what needs something that is not there is to blame; without such a driver it is all of them
                let needy = |reasons: &[Rejected]| reasons.iter().any(|r| matches!(r.reason, Rejection::RequiresVersion { .. }));
                let some = reasons.iter().any(|reasons| needy(reasons));
                let mut fine = Vec::new();
                for (options, reasons) in options.into_iter().zip(reasons) {
                    if some && !needy(&reasons) {
                        fine.push(options);
                    } else {
                        failures.push(apart(&options, reasons, (index, query)));
                    }
                }
                options = fine;
            }
        }
    }
    let mut first = failures.remove(0);
    let fitting = options
        .iter()
        .filter_map(|options| Some((options.name.clone(), options.choices.first()?.entry.version.clone())));
    first.fitting = fitting.collect();
    first.others = failures;
    Err(Box::new(first))
}

/// A version that may be taken.
struct Choice<'a> {
    entry: &'a Entry,
    /// Taken whatever it needs: a pin with `allowIncompatible` forces it.
    forced: bool,
    /// The feature states that its needs may depend on.
    states: &'a BTreeMap<String, bool>,
    because: Option<String>,
    overridden: Option<String>,
}

impl<'a> Choice<'a> {
    /// A version that is taken for this reason, where others allow it.
    fn fixed(entry: &'a Entry, request: &'a DriverRequest, because: String) -> Self {
        Self {
            entry,
            forced: false,
            states: &request.states,
            because: Some(because),
            overridden: None,
        }
    }

    /// What it needs of other drivers.
    fn needs(&self) -> impl Iterator<Item = &'a Requirement> {
        let (forced, states) = (self.forced, self.states);
        self.entry
            .requires
            .iter()
            .filter(move |required| !forced && required.counts(states))
    }
}

/// The choices for one driver, best first; never empty.
struct Options<'a> {
    name: &'a DriverName,
    driver: &'a Driver,
    verdicts: Verdicts<'a>,
    choices: Vec<Choice<'a>>,
    newest: Option<DriverVersion>,
}

fn choices<'a>(index: &'a Index, query: &Query<'a>, name: &'a DriverName, request: &'a DriverRequest) -> Result<Options<'a>, Box<NoFit>> {
    let Some(driver) = index.drivers.get(name) else {
        let known = index.drivers.keys().cloned().collect();
        return Err(no_fit((index, query), name, Cause::UnknownDriver { known }, Vec::new(), None));
    };
    let installed = query.installed.get(name);
    let verdicts = judge(driver, query, Constraints::new(driver, query, request), installed);
    let mut good: Vec<&Entry> = verdicts.good().collect();
    // stable: newest first among the good, then newest first among the deprecated
    good.sort_by_key(|entry| matches!(entry.state, State::Deprecated(_)));
    let newest = good.first().map(|entry| entry.version.clone());
    let choices = match &request.pin {
        Some(pin) => pinned(driver, &verdicts, request, pin, newest.as_ref()).map(|choice| vec![choice]),
        None => unpinned(driver, &verdicts, request, query, installed, good),
    };
    let choices = choices.and_then(|choices| if choices.is_empty() { Err(Cause::NothingFits) } else { Ok(choices) });
    match choices {
        Ok(choices) => Ok(Options {
            name,
            driver,
            verdicts,
            choices,
            newest,
        }),
        Err(cause) => Err(no_fit((index, query), name, cause, verdicts.rejected().collect(), Some(driver))),
    }
}

/// The version of a pin, where it fits or may be chosen although it does not.
fn pinned<'a>(
    driver: &'a Driver,
    verdicts: &Verdicts<'a>,
    request: &'a DriverRequest,
    pin: &DriverVersion,
    newest: Option<&DriverVersion>,
) -> Result<Choice<'a>, Cause> {
    let Some(entry) = driver.entry(pin) else {
        let nearest = driver.nearest(pin);
        return Err(Cause::UnknownPin { pin: pin.clone(), nearest });
    };
    let why = request.pinned_by.as_ref();
    let why = why.map_or_else(|| "pinned in spec".to_owned(), |by| format!("pinned by {by}"));
    let excluded = |(_, exclusion): &(&Entry, Exclusion)| {
        matches!(
            exclusion,
            Exclusion::NoPath | Exclusion::Unmet | Exclusion::Misfit | Exclusion::NotMirrored
        )
    };
    let exclusion = verdicts.exclusion(pin).filter(excluded);
    match exclusion.and_then(|(entry, exclusion)| verdicts.reason(entry, exclusion)) {
        None => Ok(Choice::fixed(entry, request, why)),
        Some(reason) if request.allow_incompatible && !entry.chart.urls.is_empty() => Ok(Choice {
            forced: true,
            overridden: Some(reason.to_string()),
            ..Choice::fixed(entry, request, format!("{why}, although it does not fit"))
        }),
        Some(reason) => Err(Cause::PinRejected {
            pin: pin.clone(),
            reason: Box::new(reason),
            fits: newest.cloned(),
        }),
    }
}

/// What fits, by the update policy.
fn unpinned<'a>(
    driver: &'a Driver,
    verdicts: &Verdicts<'a>,
    request: &'a DriverRequest,
    query: &Query<'a>,
    installed: Option<&DriverVersion>,
    good: Vec<&'a Entry>,
) -> Result<Vec<Choice<'a>>, Cause> {
    let plain = |entry| Choice {
        because: None,
        ..Choice::fixed(entry, request, String::new())
    };
    let known = installed.map(|version| (version, driver.entry(version)));
    let misfit = |entry| misfit(entry, query, &verdicts.constraints);
    let stays = |entry, why: &str| Choice {
        forced: true,
        overridden: misfit(entry).map(|reason| reason.to_string()),
        ..Choice::fixed(entry, request, why.to_owned())
    };
    let unknown = |version: &DriverVersion| Cause::InstalledUnknown {
        installed: version.clone(),
    };
    if let Some(Held { at, .. }) = &request.held {
        let entry = driver.entry(at).ok_or_else(|| unknown(at))?;
        return Ok(vec![stays(entry, "installed, and no maintenance window is open")]);
    }
    match (query.policy, known) {
        (UpdatePolicy::Disabled, Some((_, Some(entry)))) => Ok(vec![stays(entry, "installed, and updates are disabled")]),
        (UpdatePolicy::Frozen, Some((_, Some(entry)))) => Ok(vec![stays(entry, "installed, and the matrix has expired")]),
        (UpdatePolicy::Disabled | UpdatePolicy::Frozen, Some((version, None))) => Err(unknown(version)),
        (UpdatePolicy::Compatible, Some((_, Some(entry)))) if misfit(entry).is_none() => {
            let stays = Choice::fixed(entry, request, "installed and still fits".to_owned());
            let others = good.into_iter().filter(|other| other.version != entry.version).map(plain);
            Ok([stays].into_iter().chain(others).collect())
        }
        (_, Some((version, None))) if good.is_empty() => Err(unknown(version)),
        _ => Ok(good.into_iter().map(plain).collect()),
    }
}

/// The first combination, by the order of the choices, in which every driver has the versions of the others that it needs.
/// Without one: for each driver the choices that fail, with the reason.
fn together(options: &[Options<'_>]) -> Result<Vec<usize>, Vec<Vec<Rejected>>> {
    let mut chosen = Vec::new();
    if extend(options, &mut chosen) {
        return Ok(chosen);
    }
    let reasons = options.iter().map(|own| {
        let why = |choice: &Choice<'_>| {
            let lacking = choice.needs().find(|required| {
                let other = options.iter().find(|other| *other.name == required.driver);
                other.is_some_and(|other| !other.choices.iter().any(|choice| required.accepts(&choice.entry.version)))
            });
            lacking.map_or(Rejection::Apart, |required| Rejection::RequiresVersion {
                needs: required.to_string(),
                reason: required.reason.clone(),
            })
        };
        let rejected = |choice: &Choice<'_>| Rejected {
            version: choice.entry.version.clone(),
            reason: why(choice),
        };
        own.choices.iter().map(rejected).collect()
    });
    Err(reasons.collect())
}

/// Completes a combination, driver after driver.
fn extend(options: &[Options<'_>], chosen: &mut Vec<usize>) -> bool {
    let (before, rest) = options.split_at(chosen.len());
    let Some((own, rest)) = rest.split_first() else { return true };
    for (i, choice) in own.choices.iter().enumerate() {
        let before = before
            .iter()
            .zip(chosen.iter())
            .map(|(options, i)| (options.name, &options.choices[*i]));
        let agrees = before
            .clone()
            .all(|(name, other)| needs_met(choice, name, other) && needs_met(other, own.name, choice));
        // a need that nothing in the rest can meet ends the search here and not at its leaves
        let possible = || {
            rest.iter()
                .all(|rest| rest.choices.iter().any(|other| needs_met(choice, rest.name, other)))
        };
        if agrees && possible() {
            chosen.push(i);
            if extend(options, chosen) {
                return true;
            }
            chosen.pop();
        }
    }
    false
}

fn needs_met(choice: &Choice<'_>, other: &DriverName, version: &Choice<'_>) -> bool {
    let mut needs = choice.needs().filter(|required| required.driver == *other);
    needs.all(|required| required.accepts(&version.entry.version))
}

fn finish(options: &[Options<'_>], chosen: &[usize], query: &Query<'_>) -> Resolution {
    let pick = |(options, i): (&Options<'_>, &usize)| (options.name.clone(), taken(options, &options.choices[*i], query));
    Resolution {
        picks: options.iter().zip(chosen).map(pick).collect(),
    }
}

fn taken(options: &Options<'_>, choice: &Choice<'_>, query: &Query<'_>) -> Pick {
    let target = choice.entry;
    let installed = query.installed.get(options.name);
    let way = installed
        .map(|installed| steps(&options.verdicts.judged, installed, target))
        .unwrap_or_default();
    let entry = way.first().copied().unwrap_or(target);
    let because_target = choice.because.clone().unwrap_or_else(|| reason_for(options.driver, target, query));
    let because = if entry.version == target.version {
        because_target.clone()
    } else {
        format!("a step on the way to {}: {because_target}", target.version)
    };
    let checked = query.drivers.get(options.name).is_some_and(|request| request.unmet.is_some());
    let step = |(i, entry): (usize, &&Entry)| {
        let mut step = Step::to(entry);
        if checked && i == 0 {
            step.preconditions.clear();
        }
        step
    };
    let leaves = || {
        let old = options.driver.entry(installed.filter(|version| **version != target.version)?)?;
        misfit(old, query, &options.verdicts.constraints)
    };
    let newest = options.newest.as_ref().and_then(|version| options.driver.entry(version));
    Pick {
        version: entry.version.clone(),
        target: target.version.clone(),
        from: installed.cloned(),
        leaves: leaves(),
        path: way.iter().enumerate().map(step).collect(),
        waits: Held::rejected(query.drivers.get(options.name)).or_else(|| waits(&options.verdicts, &target.version)),
        chart: entry.chart.clone(),
        because,
        because_target,
        because_newest: newest.map(|entry| reason_for(options.driver, entry, query)).unwrap_or_default(),
        newest: options.newest.clone(),
        overridden: choice.overridden.clone(),
        deprecated: match &entry.state {
            State::Deprecated(verdict) => Some(verdict.reason.clone()),
            State::Good | State::Withdrawn(_) => None,
        },
    }
}

fn waits(verdicts: &Verdicts<'_>, target: &DriverVersion) -> Option<Rejected> {
    let above = verdicts.judged.iter().take_while(|(entry, _)| entry.version > *target);
    let (entry, exclusion) = above
        .filter_map(|(entry, exclusion)| Some((entry, (*exclusion)?)))
        .find(|(_, exclusion)| *exclusion == Exclusion::Unmet)?;
    Some(Rejected {
        version: entry.version.clone(),
        reason: verdicts.reason(entry, exclusion)?,
    })
}

fn reason_for(driver: &Driver, entry: &Entry, query: &Query<'_>) -> String {
    let range = &entry.kubernetes.range;
    if driver.role == DriverRole::CloudProvider && range.min().is_some() && range.min() == range.max() {
        return format!("its minor version must equal Kubernetes {}", query.kubernetes.minor());
    }
    format!("newest that supports {}", platform(query))
}

/// A driver that has choices, none of which goes with the other drivers.
fn apart(options: &Options<'_>, mut reasons: Vec<Rejected>, asked: (&Index, &Query<'_>)) -> NoFit {
    reasons.extend(options.verdicts.rejected());
    reasons.sort_by(|left, right| right.version.cmp(&left.version));
    reasons.dedup_by(|left, right| left.version == right.version);
    *no_fit(asked, options.name, Cause::NothingFits, reasons, Some(options.driver))
}

fn no_fit(
    (index, query): (&Index, &Query<'_>),
    name: &DriverName,
    cause: Cause,
    rejected: Vec<Rejected>,
    driver: Option<&Driver>,
) -> Box<NoFit> {
    let not_yet = driver
        .filter(|_| cause == Cause::NothingFits)
        .and_then(|driver| NotYet::of(index, name, driver, query.kubernetes));
    let advice = driver.and_then(|driver| suggestion((name, driver), query, &cause, (&rejected, not_yet.as_ref())));
    Box::new(NoFit {
        driver: name.clone(),
        cause,
        rejected,
        platform: platform(query),
        advice,
        not_yet: not_yet.map(Box::new),
        others: Vec::new(),
        fitting: BTreeMap::new(),
    })
}
