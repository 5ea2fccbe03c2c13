//! The storage policies, which a service of their own keeps.

use super::caller::Caller;
use super::method::{Method, element, reference};
use super::xml::Element;
use super::{ProbeError, SessionError};
use crate::facts::{ManagedObject, Policy};

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
    let manager = manager.map(reference).ok_or_else(|| {
        SessionError::Connection(ProbeError::Malformed {
            address: caller.address(),
            because: "it does not say where its storage policies are".into(),
        })
    })?;
    let kind = "<resourceType><resourceType>STORAGE</resourceType></resourceType><profileCategory>REQUIREMENT</profileCategory>";
    let found = caller.call(Method::PbmQueryProfile, &manager, kind).await?;
    let ids: String = found
        .all("returnval")
        .map(|id| format!("<profileIds>{}</profileIds>", element("uniqueId", &id.text_of("uniqueId"))))
        .collect();
    if ids.is_empty() {
        return Ok(vec![]);
    }
    let profiles = caller.call(Method::PbmRetrieveContent, &manager, &ids).await?;
    let policies = profiles.all("returnval").map(|profile| Policy {
        name: profile.text_of("name"),
        encrypts: encrypts(profile),
    });
    Ok(policies.collect())
}

fn encrypts(profile: &Element) -> bool {
    let parts = profile.child("constraints").into_iter().flat_map(|all| all.all("subProfiles"));
    parts
        .flat_map(|part| part.all("capability"))
        .filter_map(|capability| capability.child("id"))
        .any(|id| id.text_of("namespace") == "vmwarevmcrypt" || id.text_of("id") == ENCRYPTION)
}
