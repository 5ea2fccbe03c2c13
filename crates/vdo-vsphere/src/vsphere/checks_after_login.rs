// SPDX-License-Identifier: Apache-2.0
//! Runs the checks of a connection after the login: datacenters, storage, privileges, nodes, topology and cluster id.

use super::cluster_id::cluster_id_check;
use super::{
    Check, ConnectionReport, Feature, Finding, Inspection, InspectionRequest, LoginOutcome, Readings, Requirements, SessionError,
    SharedDatastores, compare_privileges, find_datacenters, login_retry, no_file_service, no_shared_datastore, node_topology, nodes_check,
    privileges_check, shared_datastores, storage_findings, topology,
};
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::ConditionType;

/// The conditions after the login, in order.
const AFTER: [ConditionType; 5] = [
    ConditionType::DatacentersFound,
    ConditionType::StorageFound,
    ConditionType::Authorized,
    ConditionType::NodesFound,
    ConditionType::TopologyConsistent,
];

/// The stages that need a login.
pub(super) fn add_checks_after_login(report: &mut ConnectionReport, inspection: &Inspection) {
    let server = &inspection.request.server;
    let rest = |report: &mut ConnectionReport, kinds: &[ConditionType]| {
        report
            .checks
            .extend(kinds.iter().map(|kind| Check::unknown(*kind, "an earlier check failed")));
    };
    let kind = ConditionType::Authenticated;
    let readings = match &inspection.login {
        LoginOutcome::Succeeded(readings) => readings,
        LoginOutcome::NotTried => {
            let why = "an earlier check failed, or the login could not be tried yet";
            report.checks.push(Check::unknown(kind, why));
            return rest(report, &AFTER);
        }
        LoginOutcome::Postponed(record) => {
            let (reason, message) = login_retry::waiting(server, record);
            let status = record.refused.as_ref().map(|_| false);
            report.checks.push(Check::failed(kind, status, reason, message, ""));
            return rest(report, &AFTER);
        }
        // A call that is forbidden shows that the login was not.
        LoginOutcome::Failed(error @ SessionError::Forbidden { .. }) => {
            report.checks.push(Check::passed(kind, "the login was accepted"));
            report.checks.push(failure(AFTER[0], error, Some(false)));
            return rest(report, &AFTER[1..]);
        }
        LoginOutcome::Failed(error) => {
            let status = error.is_rejection().then_some(false);
            report.checks.push(failure(kind, error, status));
            return rest(report, &AFTER);
        }
    };
    report.checks.push(Check::passed(kind, format!("the login at {server} succeeded")));
    let datacenters = datacenters(&inspection.request.datacenters, &readings.inventory.datacenters);
    let found = datacenters.status == Some(true);
    report.checks.push(datacenters);
    if !found {
        return rest(report, &AFTER[1..]);
    }
    there(report, &inspection.request, readings);
}

/// What is in the datacenters. None of these checks needs another: of two faults both are reported.
fn there(report: &mut ConnectionReport, request: &InspectionRequest, readings: &Readings) {
    let InspectionRequest {
        requirements,
        nodes,
        alone,
        ..
    } = request;
    let (topology, segments) = match &readings.tagging {
        Ok(tagging) => topology(requirements, &readings.inventory, nodes, &readings.nodes, tagging),
        Err(error) => (failure(ConditionType::TopologyConsistent, error, None), BTreeMap::new()),
    };
    if let Ok(tagging) = &readings.tagging {
        report.topology = node_topology(requirements, &readings.inventory, nodes, &readings.nodes, tagging);
    }
    report.shared = shared_datastores(&readings.inventory, &readings.nodes, &segments);
    report.checks.push(storage(requirements, readings, &report.shared));
    report.checks.push(match &readings.granted {
        Ok(granted) => {
            report.privileges = compare_privileges(&readings.required_privileges, granted, &readings.inventory);
            privileges_check(&report.privileges)
        }
        Err(error) => failure(ConditionType::Authorized, error, None),
    });
    report.checks.push(nodes_check(&readings.nodes, *alone));
    report.nodes.clone_from(&readings.nodes);
    report.checks.push(topology);
    if let (Some(claim), Some(found)) = (&request.claim, &readings.volumes) {
        let (check, volumes) = cluster_id_check(&request.server, &claim.cluster_id, found);
        report.checks.push(check);
        report.volumes = volumes;
    }
}

fn storage(requirements: &Requirements, readings: &Readings, shared: &[SharedDatastores]) -> Check {
    let kind = ConditionType::StorageFound;
    let findings = storage_findings(
        requirements,
        &readings.inventory,
        readings.policies.as_ref().ok().map(Vec::as_slice),
    );
    if !findings.is_empty() {
        return Check::of(kind, "", findings);
    }
    if let Err(error) = &readings.policies {
        return failure(kind, error, None);
    }
    // It informs: a cluster with local disks only is a poor one and not a wrong one.
    if let Some(finding) = no_shared_datastore(shared).filter(|_| requirements.features.contains(&Feature::Block)) {
        return Check {
            status: Some(true),
            ..Check::of(kind, "", vec![finding])
        };
    }
    if let Some(finding) = no_file_service(requirements, readings.file_service.as_ref()) {
        return Check {
            status: Some(true),
            ..Check::of(kind, "", vec![finding])
        };
    }
    let named = requirements.datastores.len() + requirements.policies.len();
    let shared: BTreeSet<&String> = shared.iter().flat_map(|one| &one.datastores).collect();
    let named = match named {
        0 => "the configuration names no datastore or storage policy",
        _ => "all datastores and storage policies that the configuration names exist",
    };
    let shared = vdo_api::types::count(shared.len(), "datastore");
    Check::passed(kind, format!("{named}; the hosts of the nodes share {shared}"))
}

fn failure(kind: ConditionType, error: &SessionError, status: Option<bool>) -> Check {
    let why = Finding::of(error);
    Check::failed(kind, status, why.reason, why.message, why.remedy)
}

fn datacenters(wanted: &[String], existing: &[String]) -> Check {
    let kind = ConditionType::DatacentersFound;
    let count = existing.len();
    match find_datacenters(wanted, existing) {
        Ok(()) if wanted.is_empty() => Check::passed(
            kind,
            format!("{} found, and all are used", vdo_api::types::count(count, "datacenter")),
        ),
        Ok(()) => Check::passed(
            kind,
            format!("{} of {} are used", wanted.len(), vdo_api::types::count(count, "datacenter")),
        ),
        Err((reason, message)) => Check::failed(kind, Some(false), reason, message, ""),
    }
}
