// SPDX-License-Identifier: Apache-2.0
//! Reads inventory, policies, privileges, tags and volumes of a vCenter in an open session.

use vdo_vsphere::vcenter::{Budget, Session};
use vdo_vsphere::vsphere::{
    Feature, InspectionRequest, Readings, SessionError, Tagging, match_vms, privilege_queries, required_privileges, taggable,
};

/// Reads what is asked for, in a session that is there (effect). The service for tags wants a login of its own: `tags` says whether it may
/// be made.
///
/// # Errors
/// When the inventory cannot be read, the account is not let in any more, or the budget is spent.
pub async fn collect(session: &Session, request: &InspectionRequest, tags: bool, budget: &Budget) -> Result<Readings, SessionError> {
    let requirements = &request.requirements;
    let mut inventory = session.inventory(budget).await?;
    let found = match_vms(&request.nodes, &inventory, &request.datacenters, requirements);
    let machines: Vec<usize> = found.iter().filter_map(|node| node.at).collect();
    // A machine may have gone since the list was read: details are no reason to know nothing.
    if let Err(error) = part(session.look_into(&mut inventory, &machines, budget).await)? {
        tracing::debug!(%error, "devices of machines could not be read");
    }
    let nodes = match_vms(&request.nodes, &inventory, &request.datacenters, requirements);
    let policies = match requirements.policies.is_empty() {
        true => Ok(vec![]),
        false => part(session.policies(budget).await)?,
    };
    let encrypted = policies.as_ref().is_ok_and(|policies| requirements.encrypts(policies));
    let required_privileges = required_privileges(requirements, encrypted, (&inventory, &nodes), request.index.as_deref());
    let granted = part(
        session
            .granted(&privilege_queries(&required_privileges), request.surplus, budget)
            .await,
    )?;
    let file_service = match requirements.features.contains(&Feature::File) {
        true => Some(part(session.file_service(&inventory, budget).await)?),
        false => None,
    };
    let categories = requirements.all_categories();
    let tagging = match (categories.is_empty(), tags) {
        (true, _) => Ok(Tagging::default()),
        (false, false) => Err(session.tags_refused()),
        (false, true) => part(
            session
                .tags(&categories, &taggable(&inventory, &nodes, request.machine_tags), budget)
                .await,
        )?,
    };
    let volumes = match &request.claim {
        Some(claim) => Some(part(session.registered_volumes(claim, budget).await)?),
        None => None,
    };
    let volume_kinds = match &request.counted {
        Some(cluster_id) => Some(part(session.volume_kinds(cluster_id, budget).await)?),
        None => None,
    };
    Ok(Readings {
        inventory,
        nodes,
        policies,
        file_service,
        required_privileges,
        granted,
        tagging,
        volumes,
        volume_kinds,
    })
}

/// What only concerns one part stays in it; the end of the session and that of the inspection concern all.
fn part<T>(read: Result<T, SessionError>) -> Result<Result<T, SessionError>, SessionError> {
    match read {
        Err(error) if error.ends_session() => Err(error),
        other => Ok(other),
    }
}
