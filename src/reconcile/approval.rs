// SPDX-License-Identifier: Apache-2.0
//! Decides whether a plan waits for the approval of a user: `spec.approval` and the annotation `vdo.vmware.com/approve` (pure).

use super::observe::ClusterState;
use super::planned::Planned;
use super::risky_changes::TakenAway;
use kube::ResourceExt;
use vdo_api::api::{APPROVE, Approval, PlanStatus, Reason, VDOConfig};
use vdo_api::types::count;
use vdo_core::drivers::short;
use vdo_core::plan::{Wait, hash, target};

/// The versions that the plan changes, as ` (CSI 3.6.3 → 3.7.3)`.
fn versions(state: &ClusterState, planned: &Planned) -> String {
    let installed = state.versions();
    let picks = planned.runs.iter().filter_map(|run| Some((&run.name, run.pick.as_ref()?)));
    let changes = picks.filter_map(|(driver, pick)| match installed.get(driver) {
        None => Some(format!("{} {}", short(driver), pick.version)),
        Some(before) if *before == pick.version => None,
        Some(before) => Some(format!("{} {before} → {}", short(driver), pick.version)),
    });
    let changes: Vec<String> = changes.collect();
    match changes.is_empty() {
        true => String::new(),
        false => format!(" ({})", changes.join(", ")),
    }
}

/// Why a person is asked: the specification of this VDOConfig wants it, and what the plan takes away.
fn causes(manual: Option<&String>, taken_away: &[TakenAway]) -> String {
    let manual = manual.map(|name| format!("spec.approval of VDOConfig {name} is Manual"));
    let causes: Vec<String> = manual
        .into_iter()
        .chain(taken_away.iter().map(|taken| taken.sentence().to_owned()))
        .collect();
    causes.join(", and ")
}

/// The plan as it is reported. Closes what a person has to approve. A person approves a plan by its hash once; the state that it leads
/// to is kept in the inventory, so that every later step towards it, also after a restart, is approved too. A plan that takes away what
/// volumes or the drivers that are there depend on is approved whatever spec.approval is.
pub(super) fn approve(config: &VDOConfig, state: &ClusterState, planned: &mut Planned, taken_away: &[TakenAway]) -> Option<PlanStatus> {
    let hash = hash(&planned.plan, &planned.record.drawn)?;
    let target = target(&planned.desired, &planned.record.drawn);
    let manual = config.spec.approval == Approval::Manual;
    let given = config.annotations().get(APPROVE).is_some_and(|given| given.trim() == hash);
    let needed = manual || !taken_away.is_empty();
    let approved = !needed || given || (manual && state.inventory.approved.as_deref() == Some(&target));
    let steps = planned.plan.changes();
    if approved && manual {
        planned.approved = Some(target);
    }
    if !approved {
        let (namespace, name) = (config.namespace().unwrap_or_default(), config.name_any());
        let message = format!(
            "plan {hash} of {}{} waits for approval, because {}; check it with vdoctl plan, then run vdoctl approve {hash} or \
             kubectl annotate --overwrite -n {namespace} vdoconfig {name} {APPROVE}={hash}",
            count(steps, "step"),
            versions(state, planned),
            causes(manual.then_some(&name), taken_away)
        );
        let wait = Wait {
            driver: String::new(),
            reason: Reason::ApprovalRequired,
            message,
        };
        planned.plan.waiting.insert(0, wait);
        planned.plan.await_approval();
    }
    Some(PlanStatus {
        hash,
        steps: i64::try_from(steps).unwrap_or(i64::MAX),
        approved,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approval_is_asked_for_by_specification_and_for_volumes() {
        let (name, lost) = ("vdo".to_owned(), vec![TakenAway::FromVolumes("it takes vCenter vc2".to_owned())]);
        assert_eq!(causes(Some(&name), &[]), "spec.approval of VDOConfig vdo is Manual");
        assert_eq!(causes(None, &lost), "it takes vCenter vc2");
        assert_eq!(
            causes(Some(&name), &lost),
            "spec.approval of VDOConfig vdo is Manual, and it takes vCenter vc2"
        );
    }
}
