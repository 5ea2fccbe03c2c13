//! Whether a plan may be carried out, or waits for a person (pure).

use super::decide::Decision;
use super::survey::Survey;
use crate::api::{APPROVE, Approval, PlanStatus, Reason, VDOConfig};
use crate::plan::{Wait, hash, target};
use crate::status::Report;
use kube::ResourceExt;

/// Reports the plan, and closes what a person has to approve. A person approves a plan by its hash once; the state that it leads
/// to is kept in the inventory, so that every later step towards it, also after a restart, is approved too.
pub(super) fn approve(config: &VDOConfig, survey: &Survey, decision: &mut Decision, report: &mut Report) {
    let Some(hash) = hash(&decision.plan, &decision.drawn) else {
        return;
    };
    let target = target(&decision.desired, &decision.drawn);
    let manual = config.spec.approval == Approval::Manual;
    let given = config.annotations().get(APPROVE).is_some_and(|given| given.trim() == hash);
    let approved = !manual || given || survey.inventory.approved.as_deref() == Some(&target);
    let steps = decision.plan.changes();
    report.plan = Some(PlanStatus {
        hash: hash.clone(),
        steps: i64::try_from(steps).unwrap_or(i64::MAX),
        approved,
    });
    if approved && manual {
        decision.approved = Some(target);
    }
    if !approved {
        let (namespace, name) = (config.namespace().unwrap_or_default(), config.name_any());
        let message = format!(
            "plan {hash} of {steps} steps waits for approval, because spec.approval of VDOConfig {name} is Manual; look at it with \
             vdoctl plan, then run vdoctl approve {hash} or kubectl annotate --overwrite -n {namespace} vdoconfig {name} {APPROVE}={hash}"
        );
        let wait = Wait {
            driver: String::new(),
            reason: Reason::ApprovalRequired,
            message,
        };
        report.waiting.insert(0, wait);
        decision.plan.await_approval();
    }
}
