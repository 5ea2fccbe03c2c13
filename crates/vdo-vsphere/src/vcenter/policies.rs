// SPDX-License-Identifier: Apache-2.0
//! Reads the storage policies from the policy service (PBM) of a vCenter, and the datastores that a policy matches.

use super::call::Caller;
use super::identifiers::{identifier, name, reference};
use super::offload::Unread;
use super::requests::{Method, element};
use super::xml::Element;
use crate::vsphere::{ManagedObject, Policy, SessionError};
use std::collections::BTreeSet;

/// The data service that encrypts, by which the policies of a vCenter refer to it.
const ENCRYPTION: &str = "ad5a249d-cbc2-43af-9366-694d7664fa52";

/// What a datastore costs in memory besides its identifier.
const COST: usize = 64;

/// Reads the policies that place volumes.
pub async fn read(caller: &mut Caller<'_>) -> Result<Vec<Policy>, SessionError> {
    let [manager, _] = services(caller).await?;
    Ok(all(caller, &manager).await?.into_iter().map(|(_, policy)| policy).collect())
}

/// The identifiers of the datastores that meet the policy of this name; the names that there are where there is none of it.
pub async fn datastores(caller: &mut Caller<'_>, name: &str) -> Result<Result<BTreeSet<String>, Vec<String>>, SessionError> {
    let [manager, solver] = services(caller).await?;
    let all = all(caller, &manager).await?;
    let Some((id, _)) = all.iter().find(|(_, policy)| policy.name == name) else {
        return Ok(Err(all.into_iter().map(|(_, policy)| policy.name).collect()));
    };
    let requirement = format!(
        r#"<placementSubjectRequirement xsi:type="PbmPlacementCapabilityProfileRequirement"><profileId>{}</profileId></placementSubjectRequirement>"#,
        element("uniqueId", id)
    );
    let taken = (BTreeSet::new(), caller.budget.hold());
    let (_, (found, held)) = caller
        .call_each(Method::PbmCheckRequirements, &solver, &requirement, taken, |(found, held), one| {
            let hub = one.child("hub").filter(|hub| hub.text_of("hubType") == "Datastore");
            if let (Some(hub), None) = (hub, one.child("error")) {
                let id = identifier(&hub.text_of("hubId"))?;
                held.grow(COST + id.len())?;
                found.insert(id);
            }
            Ok::<(), Unread>(())
        })
        .await?;
    held.keep();
    Ok(Ok(found))
}

/// What keeps the policies, and what knows where they can be met.
async fn services(caller: &mut Caller<'_>) -> Result<[ManagedObject; 2], SessionError> {
    let service = ManagedObject {
        kind: "PbmServiceInstance".into(),
        id: "ServiceInstance".into(),
    };
    let content = caller.call(Method::PbmRetrieveServiceContent, &service, "").await?;
    let part = |name: &str| {
        let found = content.child("returnval").and_then(|content| content.child(name));
        let found = found.ok_or_else(|| format!("it contains no reference to the {name} of the storage policy service"));
        found.and_then(reference).map_err(|because| caller.session.malformed(because))
    };
    Ok([part("profileManager")?, part("placementSolver")?])
}

/// The policies that place volumes, with their identifiers.
async fn all(caller: &mut Caller<'_>, manager: &ManagedObject) -> Result<Vec<(String, Policy)>, SessionError> {
    let kind = "<resourceType><resourceType>STORAGE</resourceType></resourceType><profileCategory>REQUIREMENT</profileCategory>";
    let found = caller.call(Method::PbmQueryProfile, manager, kind).await?;
    let ids = found.all("returnval").map(|id| identifier(&id.text_of("uniqueId")));
    let ids: Result<String, String> = ids
        .map(|id| Ok(format!("<profileIds>{}</profileIds>", element("uniqueId", &id?))))
        .collect();
    let ids = ids.map_err(|because| caller.session.malformed(because))?;
    drop(found);
    if ids.is_empty() {
        return Ok(vec![]);
    }
    let taken = (vec![], caller.budget.hold());
    let (_, (policies, held)) = caller
        .call_each(Method::PbmRetrieveContent, manager, &ids, taken, |(policies, held), profile| {
            let id = profile.child("profileId").map(|id| id.text_of("uniqueId")).unwrap_or_default();
            let policy = Policy {
                name: name(profile.text_of("name"))?,
                encrypts: encrypts(&profile),
            };
            held.grow(2 * size_of::<Policy>() + policy.name.len() + id.len())?;
            policies.push((id, policy));
            Ok::<(), Unread>(())
        })
        .await?;
    held.keep();
    Ok(policies)
}

fn encrypts(profile: &Element) -> bool {
    let parts = profile.child("constraints").into_iter().flat_map(|all| all.all("subProfiles"));
    parts
        .flat_map(|part| part.all("capability"))
        .filter_map(|capability| capability.child("id"))
        .any(|id| id.text_of("namespace") == "vmwarevmcrypt" || id.text_of("id") == ENCRYPTION)
}
