// SPDX-License-Identifier: Apache-2.0
//! Checks the drivers before a deployment: choice of versions, charts, foreign drivers, and the API server's dry run of each object.

use super::super::context::{Decided, Deciding};
use super::super::doctor::check::{Check, Mark, Subject};
use super::super::error::sentence;
use super::super::plan_and_diff::Planned;
use super::{Checked, FOREIGN};
use vdo::reconcile::{DriverFailure, Planned as Plan, TakenAway, taken_away};
use vdo_api::api::{Classify, ConditionType, Reason, VDOConfig};
use vdo_core::status::{Failure, Precondition, Report};

/// The page about drivers that another tool has installed.
pub(super) const TAKING_OVER: &str = "See docs/taking-over.md.";

/// The choice of versions.
const VERSIONS: &str = "VersionsFit";
/// What keeps the drivers of these versions from being installed.
const DRIVERS: &str = "DriversFit";
/// What the API server says of the drivers' objects.
const ACCEPTED: &str = "ObjectsAccepted";

/// Runs the pipeline up to the plan, and tries the plan of a first installation in the API server.
pub(super) async fn decided(context: &Deciding, config: &VDOConfig, first: bool, checked: &mut Checked) {
    let mut checks = Vec::new();
    match context.prepare(config).await {
        Ok(((state, planned), found)) => {
            let choice = planned.runs.resolution();
            let picks: Vec<String> = choice.picks.iter().map(|(name, pick)| format!("{name} {}", pick.version)).collect();
            if !picks.is_empty() {
                let message = format!("{} would be installed", picks.join(" and "));
                checks.push(Check::new(VERSIONS, Some(true), Reason::Healthy, &message, ""));
            }
            checked.choice = Some(choice);
            let failures = failures(&planned, &found);
            let in_the_way = failures.iter().any(is_foreign);
            let of_cluster = preconditions(&found, &[FOREIGN], first || in_the_way);
            checked.cluster.checks.extend(of_cluster);
            let of_drivers = [ConditionType::ControlPlaneEligible, ConditionType::TrustConsistent];
            checks.extend(preconditions(&found, &of_drivers, first));
            // The condition says the same.
            checks.extend(failures.into_iter().filter(|check| !is_foreign(check)));
            checks.extend(decisions(&planned));
            match taken_away(&context.ports.reader, config, &state, &planned).await {
                Ok(all) => checks.extend(all.iter().map(guarded)),
                Err(error) => checks.push(failed(DRIVERS, &error)),
            }
            if first && checks.iter().all(|check| check.status != Mark::False) {
                let decided = Decided::new(config.clone(), state, planned);
                let (check, plan) = tried(context, decided).await;
                checks.extend(check);
                checked.plan = plan;
            }
        }
        Err(stopped) => checks.push(failed(DRIVERS, &stopped.error)),
    }
    checked.drivers = Some(Subject::of_drivers(checks));
}

/// That the change takes something away from volumes or drivers.
fn guarded(taken: &TakenAway) -> Check {
    Check::new(DRIVERS, Some(false), Reason::ApprovalRequired, &taken.message(), taken.remedy())
}

fn failed(check: &str, error: &(impl Classify + 'static)) -> Check {
    let remedy = error.remedy().unwrap_or_default().into_owned();
    Check::new(check, Some(false), error.reason(), &sentence(error), remedy)
}

/// The conditions of these kinds that the pipeline found. Where they do not fail a check, they inform.
fn preconditions(found: &Report, kinds: &[ConditionType], fails: bool) -> Vec<Check> {
    let check = |one: &Precondition| {
        let holds = one.holds.filter(|holds| *holds || fails);
        let remedy = if one.kind == FOREIGN && holds == Some(false) {
            TAKING_OVER
        } else {
            ""
        };
        Check::new(one.kind.as_str(), holds, one.reason, &one.message, remedy)
    };
    let all = found.preconditions.iter().filter(|one| kinds.contains(&one.kind));
    all.map(check).collect()
}

/// Whether another manager is in the way.
fn is_foreign(check: &Check) -> bool {
    check.reason == Reason::NotOurs.as_str()
}

/// What keeps drivers from being installed, each once.
fn failures(planned: &Plan, found: &Report) -> Vec<Check> {
    let of_runs = planned.runs.failures();
    let known: Vec<Failure> = of_runs.iter().map(DriverFailure::published).collect();
    let of_runs = of_runs.iter().map(|failure| failed(DRIVERS, failure.error.as_ref()));
    let others = found.failures.iter().filter(|failure| !known.contains(failure));
    let others = others.map(|failure| Check::new(DRIVERS, Some(false), failure.reason, &failure.message, ""));
    of_runs.chain(others).collect()
}

/// What an installation waits for until a person decides: it begins, and goes on after that.
fn decisions(planned: &Plan) -> Vec<Check> {
    let waits = planned
        .plan
        .waiting
        .iter()
        .filter(|wait| wait.reason == Reason::NodesOfOtherProvider);
    waits
        .map(|wait| Check::new(DRIVERS, None, wait.reason, &wait.message, ""))
        .collect()
}

/// What would be done, and what the API server says of each step of it.
async fn tried(context: &Deciding, decided: Decided) -> (Vec<Check>, Option<Planned>) {
    let plan = match Planned::tried(context, decided).await {
        Ok(plan) => plan,
        Err(error) => {
            let check = Check::new(ACCEPTED, None, Reason::NotChecked, &error.what, error.remedy.as_str());
            return (vec![check], None);
        }
    };
    let refused = plan.refusals.iter();
    let mut checks: Vec<Check> = refused
        .map(|refusal| Check::new(ACCEPTED, Some(false), refusal.reason, &refusal.what, refusal.remedy.clone()))
        .collect();
    if checks.is_empty() {
        let message = format!("the API server accepts all objects that would be written: {}", plan.effect());
        checks.push(Check::new(ACCEPTED, Some(true), Reason::Healthy, &message, ""));
    }
    (checks, Some(plan))
}
