//! The volumes that a vCenter has registered, which its service for container volumes (CNS) keeps.

use super::call::Caller;
use super::identifiers::{identifier, name};
use super::offload::Unread;
use super::requests::{Method, element};
use super::xml::Element;
use crate::vsphere::{Claim, ManagedObject, RegisteredVolume, RegisteredVolumes, SessionError};
use std::sync::Arc;

/// Volumes in one page. A volume with its metadata is a few kilobytes.
const PAGE: usize = 500;

/// No vCenter has more volumes than its supported maximum; one that goes on for ever is not read for ever.
const MAX_PAGES: usize = 1000;

/// What has come so far.
struct Taken {
    claim: Arc<Claim>,
    found: RegisteredVolumes,
}

/// Reads the volumes under a cluster id, page by page, and counts those that the cluster knows.
pub(super) async fn read(caller: &mut Caller<'_>, claim: &Arc<Claim>) -> Result<RegisteredVolumes, SessionError> {
    let manager = ManagedObject {
        kind: "CnsVolumeManager".into(),
        id: "cns-volume-manager".into(),
    };
    let mut taken = Taken {
        claim: claim.clone(),
        found: RegisteredVolumes::default(),
    };
    for _ in 0..MAX_PAGES {
        let before = taken.found.count;
        let (answer, so_far) = caller
            .call_each(Method::CnsQueryVolume, &manager, &filter(&claim.cluster_id, before), taken, take)
            .await?;
        taken = so_far;
        let cursor = answer.child("returnval").and_then(|result| result.child("cursor"));
        // One that does not count gives everything at once.
        let total: usize = cursor
            .and_then(|cursor| cursor.text_of("totalRecords").parse().ok())
            .unwrap_or_default();
        if taken.found.count == before || taken.found.count >= total {
            break;
        }
    }
    Ok(taken.found)
}

/// The elements in the order of their definition. Without the type a vCenter does not know which filter it is.
fn filter(cluster_id: &str, offset: usize) -> String {
    let cursor = element("offset", &offset.to_string()) + &element("limit", &PAGE.to_string());
    format!(
        r#"<filter xsi:type="CnsQueryFilter">{}<cursor>{cursor}</cursor></filter>"#,
        element("containerClusterIds", cluster_id)
    )
}

fn take(taken: &mut Taken, volume: Element) -> Result<(), Unread> {
    let volume = registered(&volume)?;
    taken.found.add(&taken.claim, &volume);
    Ok(())
}

fn registered(volume: &Element) -> Result<RegisteredVolume, String> {
    let id = volume.child("volumeId").map(|id| id.text_of("id")).unwrap_or_default();
    let entities = volume
        .child("metadata")
        .into_iter()
        .flat_map(|metadata| metadata.all("entityMetadata"))
        .filter(|entity| entity.text_of("entityType") == "PERSISTENT_VOLUME");
    Ok(RegisteredVolume {
        id: identifier(&id)?,
        name: name(volume.text_of("name"))?,
        persistent_volumes: entities
            .map(|entity| name(entity.text_of("entityName")))
            .collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vcenter::xml::whole;

    #[test]
    fn registered_volume_names_the_persistent_volumes_it_is_for() {
        let entity = |kind: &str, name: &str| {
            format!("<entityMetadata><entityName>{name}</entityName><entityType>{kind}</entityType></entityMetadata>")
        };
        let metadata = entity("PERSISTENT_VOLUME", "pv-1") + &entity("PERSISTENT_VOLUME_CLAIM", "data") + &entity("POD", "web-0");
        let text = format!("<volumes><volumeId><id>id-1</id></volumeId><name>n</name><metadata>{metadata}</metadata></volumes>");
        let expected = RegisteredVolume {
            id: "id-1".into(),
            name: "n".into(),
            persistent_volumes: vec!["pv-1".into()],
        };
        assert_eq!(registered(&whole(&text)), Ok(expected));
        assert!(
            registered(&whole("<volumes><name>n</name></volumes>")).is_err(),
            "without an identifier"
        );
    }

    /// An id is the administrator's text, and stays one.
    #[test]
    fn filter_cluster_id_with_markup_is_escaped() {
        let filter = filter("a<b>&\"", 500);
        let read = whole(&filter.replace("xsi:type=\"CnsQueryFilter\"", ""));
        assert_eq!(read.text_of("containerClusterIds"), "a<b>&\"");
        assert_eq!(read.child("cursor").map(|cursor| cursor.text_of("offset")), Some("500".into()));
    }
}
