use super::{Login, Look};
use crate::api::{ConditionType, chain};
use crate::health::{ConnectionReport, Stage, find_datacenters, nodes_stage};
use crate::reconcile::login;
use crate::vcenter::SessionError;

/// The conditions after the login, in order.
const AFTER: [ConditionType; 2] = [ConditionType::DatacentersFound, ConditionType::NodesFound];

/// The stages that need a login.
pub(super) fn within(report: &mut ConnectionReport, look: &Look) {
    let server = &look.question.server;
    let rest = |report: &mut ConnectionReport, kinds: &[ConditionType]| {
        report
            .stages
            .extend(kinds.iter().map(|kind| Stage::unknown(*kind, "an earlier check failed")));
    };
    let kind = ConditionType::Authenticated;
    let seen = match &look.login {
        Login::In(seen) => seen,
        Login::NotTried => {
            let why = "an earlier check failed, or the login could not be tried yet";
            report.stages.push(Stage::unknown(kind, why));
            return rest(report, &AFTER);
        }
        Login::Waits(record) => {
            let (reason, message) = login::waiting(server, record);
            let status = record.refused.as_ref().map(|_| false);
            report.stages.push(Stage::failed(kind, status, reason, message, ""));
            return rest(report, &AFTER);
        }
        // A call that is forbidden shows that the login was not.
        Login::Failed(error @ SessionError::Forbidden { .. }) => {
            report.stages.push(Stage::passed(kind, "the login was accepted"));
            report.stages.push(failure(AFTER[0], error, Some(false)));
            return rest(report, &AFTER[1..]);
        }
        Login::Failed(error) => {
            let status = error.is_rejection().then_some(false);
            report.stages.push(failure(kind, error, status));
            return rest(report, &AFTER);
        }
    };
    report.stages.push(Stage::passed(kind, format!("{server} lets the user in")));
    report
        .stages
        .push(datacenters(&look.question.datacenters, &seen.inventory.datacenters));
    report.stages.push(nodes_stage(&seen.nodes, look.question.alone));
    report.nodes.clone_from(&seen.nodes);
}

fn failure(kind: ConditionType, error: &SessionError, status: Option<bool>) -> Stage {
    Stage::failed(kind, status, login::reason(error), chain(error), error.remedy())
}

fn datacenters(wanted: &[String], existing: &[String]) -> Stage {
    let kind = ConditionType::DatacentersFound;
    let count = existing.len();
    match find_datacenters(wanted, existing) {
        Ok(()) if wanted.is_empty() => Stage::passed(kind, format!("all {count} datacenters are looked at")),
        Ok(()) => Stage::passed(kind, format!("{} of {count} datacenters are looked at", wanted.len())),
        Err((reason, message)) => Stage::failed(kind, Some(false), reason, message, ""),
    }
}
