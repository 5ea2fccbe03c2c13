//! Whether a plan may be carried out, or waits for a person (pure).

use super::prepare::Prepared;
use super::survey::Survey;
use crate::api::{APPROVE, Approval, PlanStatus, Reason, VDOConfig};
use crate::plan::{Wait, hash, target};
use crate::status::Report;
use kube::ResourceExt;

/// Reports the plan, and says whether it may be carried out. A person approves a plan by its hash once; the state that it leads
/// to is kept in the inventory, so that every later step towards it, also after a restart, is approved too.
pub(super) fn permit(config: &VDOConfig, survey: &Survey, prepared: &mut Prepared, report: &mut Report) -> bool {
    let whole = prepared.whole(survey);
    let Some(hash) = hash(&whole, &prepared.drawn) else { return true };
    let target = target(&prepared.desired, &prepared.drawn);
    let manual = config.spec.approval == Approval::Manual;
    let given = config.annotations().get(APPROVE).is_some_and(|given| given.trim() == hash);
    let approved = !manual || given || survey.inventory.approved.as_deref() == Some(&target);
    let steps = whole.changes();
    report.plan = Some(PlanStatus {
        hash: hash.clone(),
        steps: i64::try_from(steps).unwrap_or(i64::MAX),
        approved,
    });
    if approved && manual {
        prepared.approved = Some(target);
        prepared.replan(survey);
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
    }
    approved
}
