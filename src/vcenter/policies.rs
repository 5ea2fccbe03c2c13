//! The storage policies, which a service of their own keeps.

use super::call::Caller;
use super::identifiers::{identifier, name, reference};
use super::offload::Unread;
use super::requests::{Method, element};
use super::xml::Element;
use crate::vsphere::{ManagedObject, Policy, SessionError};

/// The data service that encrypts, by which the policies of a vCenter refer to it.
const ENCRYPTION: &str = "ad5a249d-cbc2-43af-9366-694d7664fa52";

/// Reads the policies that place volumes.
pub(super) async fn read(caller: &mut Caller<'_>) -> Result<Vec<Policy>, SessionError> {
    let service = ManagedObject {
        kind: "PbmServiceInstance".into(),
        id: "ServiceInstance".into(),
    };
    let content = caller.call(Method::PbmRetrieveServiceContent, &service, "").await?;
    let manager = content.child("returnval").and_then(|content| content.child("profileManager"));
    let manager = manager
        .ok_or_else(|| "it does not say where its storage policies are".to_owned())
        .and_then(reference)
        .map_err(|because| caller.session.malformed(because))?;
    drop(content);
    let kind = "<resourceType><resourceType>STORAGE</resourceType></resourceType><profileCategory>REQUIREMENT</profileCategory>";
    let found = caller.call(Method::PbmQueryProfile, &manager, kind).await?;
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
        .call_each(Method::PbmRetrieveContent, &manager, &ids, taken, |(policies, held), profile| {
            let policy = Policy {
                name: name(profile.text_of("name"))?,
                encrypts: encrypts(&profile),
            };
            held.grow(2 * size_of::<Policy>() + policy.name.len())?;
            policies.push(policy);
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
