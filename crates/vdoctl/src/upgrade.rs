// SPDX-License-Identifier: Apache-2.0
//! `vdoctl upgrade plan` and `upgrade retry`: computes and shows the next version of each driver; makes the operator retry a failed change.
//!
//! A driver is pinned to its next version until it is healthy there. The pin is then lifted, because the policy of the VDOConfig keeps what
//! is installed; a pin that was there before stays, at the new version. A pin that the operator refuses is taken back.

mod apply;
mod pins;

use super::args::{DriverArg, Format, Global, MatrixFile, Platform, Resolve, UpgradePlan};
use super::context::{Context, Deciding, id, now};
use super::driver_fields::typed;
use super::history::Histories;
use super::matrix::{Used, repeated};
use super::object_write::Change;
use super::plan_and_diff::Planned;
use super::status::{Kind, handed, needed};
use super::views::plan::{UpgradePlanView, UpgradeRestView};
use super::{Answer, CliError, Exit, matrix, style};
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_api::api::{RETRY_AT, RollbackPolicy};
use vdo_api::types::DriverVersion;
use vdo_core::drivers::short;
use vdo_core::manifest::Object;
use vdo_core::matrix::Resolution;

pub(super) use apply::apply;
use pins::own_pins;
pub(super) use pins::pins as pins_of;

/// Which driver goes to which version.
type Targets = BTreeMap<String, DriverVersion>;

/// An upgrade that was planned as if it were asked for.
struct Upgrade {
    context: Deciding,
    live: Object,
    targets: Targets,
    change: Change,
    planned: Planned,
}

/// Where a driver is, and where it could be.
struct Installed {
    version: DriverVersion,
    newest: DriverVersion,
    /// Why that is the newest.
    because: String,
}

impl Upgrade {
    /// Plans it; `None` where every driver is where it should go, with the matrix by which that is so.
    async fn plan(to: &[DriverArg], index: &MatrixFile, global: &Global) -> Result<Result<Self, Used>, CliError> {
        let mut context = Context::open(global).await?.choosing_from(index, global).await?;
        let live = context.acting_object().await?;
        let spec = live.value()["spec"].clone();
        // The pins of an upgrade that has not ended say nothing about where to go.
        if !own_pins(&live).is_empty() {
            let lifted = Change::merge(&context, live.clone(), pins::lifted(&live)?).await?;
            context.suppose(vec![lifted.after]);
        }
        let decided = context.decide().await?;
        let installed = installed(&decided.planned.runs.resolution());
        let targets = targets(to, &spec, &installed)?;
        if targets.is_empty() {
            return Ok(Err(context.used.clone()));
        }
        let change = Change::merge(&context, live.clone(), pins::pinned(&live, &targets)?).await?;
        context.suppose(vec![change.after.clone()]);
        let mut planned = Planned::of(&context).await?;
        let asked: Vec<String> = to
            .iter()
            .filter(|ask| ask.pin.is_some())
            .map(|ask| typed(&spec, &ask.driver))
            .collect::<Result<_, _>>()?;
        for driver in planned.drivers.iter_mut() {
            let (Some(target), Some(to)) = (targets.get(&driver.driver), &driver.to) else {
                continue;
            };
            let reason = match installed.get(&driver.driver) {
                Some(found) if !asked.contains(&driver.driver) => found.because.clone(),
                _ => "requested with --to".to_owned(),
            };
            driver.because = match to == target {
                true => reason,
                false => format!("a step on the way to {target}: {reason}"),
            };
        }
        Ok(Ok(Self {
            context,
            live,
            targets,
            change,
            planned,
        }))
    }

    /// Drivers that would not come to their version, with what is in the way.
    fn misses(&self) -> Vec<String> {
        misses(&self.targets, &self.planned)
    }

    /// What is shown to programs.
    fn view(&self) -> UpgradePlanView {
        let plan = self.planned.view(&self.planned.changing().collect::<Vec<_>>());
        UpgradePlanView {
            upgrade: true,
            matrix: plan.matrix,
            targets: Some(self.targets.clone()),
            drivers: plan.drivers,
            rest: Some(UpgradeRestView {
                waiting: plan.waiting,
                blocked: plan.blocked,
                misses: self.misses(),
                change: self.change.view(),
                objects: plan.objects,
            }),
        }
    }

    /// What is in the way of the whole.
    fn hindrances(&self) -> Vec<String> {
        hindrances(&self.targets, &self.planned)
    }
}

/// Every installed driver that can be chosen.
fn installed(resolution: &Resolution) -> BTreeMap<String, Installed> {
    let of = |(name, pick): (&String, &vdo_core::matrix::Pick)| {
        let (newest, because) = match &pick.newest {
            Some(newest) if *newest >= pick.target => (newest.clone(), pick.because_newest.clone()),
            _ => (pick.target.clone(), pick.because_target.clone()),
        };
        let installed = Installed {
            version: pick.from.clone()?,
            newest,
            because,
        };
        Some((name.clone(), installed))
    };
    resolution.picks.iter().filter_map(of).collect()
}

fn misses(targets: &Targets, planned: &Planned) -> Vec<String> {
    let reaches = |name: &str, version: &DriverVersion| {
        let change = planned.drivers.iter().find(|change| change.driver == name);
        change.is_some_and(|change| change.to.as_ref() == Some(version) || !change.then.is_empty())
    };
    let misses = targets.iter().filter(|(name, version)| !reaches(name, version));
    misses
        .map(|(name, version)| format!("{} cannot be upgraded to {version}", short(name)))
        .collect()
}

fn hindrances(targets: &Targets, planned: &Planned) -> Vec<String> {
    let refusals = planned.refusals.iter().map(ToString::to_string);
    let left = planned.left.iter().map(ToString::to_string);
    misses(targets, planned).into_iter().chain(left).chain(refusals).collect()
}

pub(super) async fn plan(args: &UpgradePlan, global: &Global) -> Result<Answer, CliError> {
    let kubernetes = args
        .kubernetes
        .clone()
        .or_else(|| args.openshift.as_ref().map(|version| version.kubernetes().clone()));
    if kubernetes.is_some() || !args.vcenter.is_empty() {
        let asked = Resolve {
            platform: Platform::default(),
            what_if_kubernetes: kubernetes,
            what_if_vcenter: args.vcenter.clone(),
            index: args.index.clone(),
            output: args.output,
        };
        return matrix::resolve(&asked, global).await;
    }
    let format = args.output.or_table();
    let upgrade = match Upgrade::plan(&args.to, &args.index, global).await? {
        Ok(upgrade) => upgrade,
        Err(used) => {
            let view = UpgradePlanView {
                upgrade: false,
                matrix: Some(used.view()),
                targets: None,
                drivers: Vec::new(),
                rest: None,
            };
            let answer = Answer::view(format, &view, || format!("{}\n", used.line()))?;
            return Ok(used.warning().into_iter().fold(answer, Answer::note).note(NOTHING));
        }
    };
    let answer = Answer::view(format, &upgrade.view(), || text(&upgrade, format == Format::Wide))?;
    let answer = upgrade.planned.talk().fold(answer, Answer::note).note(upgrade.planned.summary());
    if !upgrade.hindrances().is_empty() {
        return Ok(answer.note("Nothing was changed.").exit(Exit::Refused));
    }
    Ok(answer
        .note(format!(
            "Nothing was changed. To upgrade: {}",
            command(&args.to, &repeated(&args.index, global))
        ))
        .exit(Exit::Differences))
}

const NOTHING: &str = "Every driver has the newest version that fits.";

fn command(to: &[DriverArg], flags: &str) -> String {
    let named = |ask: &DriverArg| {
        let version = ask.pin.as_ref().map(|version| format!("={version}")).unwrap_or_default();
        format!(" --to {}{version}", ask.driver)
    };
    format!("vdoctl upgrade apply{}{flags}", to.iter().map(named).collect::<String>())
}

fn text(upgrade: &Upgrade, wide: bool) -> String {
    let planned = &upgrade.planned;
    let mut text = planned.header();
    text.extend(planned.drivers.iter().map(|driver| driver.lines()));
    if wide {
        let (shown, _) = planned.shown(true);
        text.extend(shown.iter().map(|item| planned.line(item)));
    }
    text.push_str(&planned.rest());
    text.extend(upgrade.misses().iter().map(|miss| format!("{} {miss}\n", style::bad("✗"))));
    let refused = planned.refusals.iter();
    text.extend(refused.map(|refusal| format!("{} {refusal}\n", style::bad("✗"))));
    text
}

/// The versions that are asked for, or the newest ones.
fn targets(to: &[DriverArg], spec: &Value, installed: &BTreeMap<String, Installed>) -> Result<Targets, CliError> {
    if to.is_empty() {
        let newer = installed.iter().filter(|(_, found)| found.newest > found.version);
        return Ok(newer.map(|(name, found)| (name.clone(), found.newest.clone())).collect());
    }
    let mut targets = Targets::new();
    for ask in to {
        let name = typed(spec, &ask.driver)?;
        let found = installed.get(&name);
        let version = match (&ask.pin, found) {
            (Some(version), _) => version.clone(),
            (None, Some(found)) => found.newest.clone(),
            (None, None) => {
                return Err(CliError::new(
                    Exit::NotFound,
                    format!("{name} is not installed"),
                    "The operator has to install it first; vdoctl status shows what the operator waits for.",
                ));
            }
        };
        if found.is_none_or(|found| found.version != version) {
            targets.insert(name, version);
        }
    }
    Ok(targets)
}

pub(super) async fn retry(global: &Global) -> Result<Answer, CliError> {
    let all = Histories::read(global).await?;
    let config = id(&all.config);
    let failed = all.inventory.history.iter().filter_map(|(driver, revisions)| {
        let newest = revisions.last()?;
        let from = newest.about.rollback.as_ref().and_then(|rollback| rollback.from.as_ref());
        let by_rollback = from.map(|from| format!("{driver} {}", from.version));
        let waits = || newest.failure.as_ref().map(|_| format!("{driver} {}", newest.about.version));
        by_rollback.or_else(waits)
    });
    let failed: Vec<String> = failed.collect();
    if failed.is_empty() || all.config.spec.rollback == RollbackPolicy::Disabled {
        return Ok(Answer::text("").note(format!("VDOConfig {config}: no change has failed, so there is nothing to retry")));
    }
    all.annotate(RETRY_AT, now().to_string().into()).await?;
    let done = format!("VDOConfig {config}: the operator retries {}", failed.join(" and "));
    Ok(handed(&done, needed(&all.context).await, &[Kind::Fault]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(version: &str, newest: &str) -> Installed {
        Installed {
            version: version.parse().expect("a version"),
            newest: newest.parse().expect("a version"),
            because: String::new(),
        }
    }

    #[test]
    fn upgrade_targets_are_the_newest_or_what_is_named() {
        let installed: BTreeMap<String, _> = [
            ("vsphere-cpi".to_owned(), at("1.34.0", "1.34.0")),
            ("vsphere-csi".to_owned(), at("3.6.3", "3.7.3")),
        ]
        .into();
        let of = |to: &[&str]| -> Result<Vec<String>, Exit> {
            let asks: Vec<DriverArg> = to.iter().map(|text| text.parse().expect("an ask")).collect();
            let found = targets(&asks, &json!({}), &installed).map_err(|error| error.exit)?;
            Ok(found.iter().map(|(name, version)| format!("{name} {version}")).collect())
        };
        assert_eq!(of(&[]), Ok(vec!["vsphere-csi 3.7.3".to_owned()]));
        assert_eq!(of(&["csi"]), Ok(vec!["vsphere-csi 3.7.3".to_owned()]));
        assert_eq!(of(&["csi=3.7.0"]), Ok(vec!["vsphere-csi 3.7.0".to_owned()]));
        assert_eq!(of(&["cpi", "csi=3.6.3"]), Ok(vec![]), "they are there already");
        assert_eq!(of(&["antrea"]), Err(Exit::NotFound));
    }

    #[test]
    fn upgrade_advice_repeats_the_flags_that_were_given() {
        let to: Vec<DriverArg> = vec!["csi=3.7.3".parse().expect("an ask")];
        assert_eq!(
            command(&to, " --matrix ./matrix"),
            "vdoctl upgrade apply --to csi=3.7.3 --matrix ./matrix"
        );
    }
}
