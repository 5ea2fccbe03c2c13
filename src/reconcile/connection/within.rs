use super::{Login, Look, Question, Seen};
use crate::api::{ConditionType, chain};
use crate::health::{
    ConnectionReport, SharedDatastores, Stage, authorized_stage, find_datacenters, judge, nodes_stage, nothing_shared, shared_datastores,
    storage_findings, topology,
};
use crate::reconcile::login;
use crate::vsphere::{Feature, Needs, SessionError};
use std::collections::{BTreeMap, BTreeSet};

/// The conditions after the login, in order.
const AFTER: [ConditionType; 5] = [
    ConditionType::DatacentersFound,
    ConditionType::StorageFound,
    ConditionType::Authorized,
    ConditionType::NodesFound,
    ConditionType::TopologyConsistent,
];

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
    let datacenters = datacenters(&look.question.datacenters, &seen.inventory.datacenters);
    let found = datacenters.status == Some(true);
    report.stages.push(datacenters);
    if !found {
        return rest(report, &AFTER[1..]);
    }
    there(report, &look.question, seen);
}

/// What is in the datacenters. None of these stages needs another: whoever has two faults is told of both.
fn there(report: &mut ConnectionReport, question: &Question, seen: &Seen) {
    let Question { needs, nodes, alone, .. } = question;
    let (topology, segments) = match &seen.tagging {
        Ok(tagging) => topology(needs, &seen.inventory, nodes, &seen.nodes, tagging),
        Err(error) => (failure(ConditionType::TopologyConsistent, error, None), BTreeMap::new()),
    };
    report.shared = shared_datastores(&seen.inventory, &seen.nodes, &segments);
    report.stages.push(storage(needs, seen, &report.shared));
    report.stages.push(match &seen.granted {
        Ok(granted) => {
            report.privileges = judge(&seen.demands, granted, &seen.inventory);
            authorized_stage(&report.privileges)
        }
        Err(error) => failure(ConditionType::Authorized, error, None),
    });
    report.stages.push(nodes_stage(&seen.nodes, *alone));
    report.nodes.clone_from(&seen.nodes);
    report.stages.push(topology);
}

fn storage(needs: &Needs, seen: &Seen, shared: &[SharedDatastores]) -> Stage {
    let kind = ConditionType::StorageFound;
    let findings = storage_findings(needs, &seen.inventory, seen.policies.as_ref().ok().map(Vec::as_slice));
    if !findings.is_empty() {
        return Stage::of(kind, "", findings);
    }
    if let Err(error) = &seen.policies {
        return failure(kind, error, None);
    }
    // It informs: a cluster with local disks only is a poor one and not a wrong one.
    if let Some(finding) = nothing_shared(shared).filter(|_| needs.features.contains(&Feature::Block)) {
        return Stage {
            status: Some(true),
            ..Stage::of(kind, "", vec![finding])
        };
    }
    let named = needs.datastores.len() + needs.policies.len();
    let shared: BTreeSet<&String> = shared.iter().flat_map(|one| &one.datastores).collect();
    Stage::passed(
        kind,
        format!(
            "all {named} named datastores and policies exist; {} datastores are shared by the hosts of the nodes",
            shared.len()
        ),
    )
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
