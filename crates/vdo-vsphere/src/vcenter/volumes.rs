// SPDX-License-Identifier: Apache-2.0
//! Reads the container volumes (CNS) that a vCenter has registered under a cluster id, and counts them by kind.

use super::call::Caller;
use super::identifiers::{identifier, name};
use super::offload::Unread;
use super::requests::{Method, element};
use super::xml::Element;
use crate::vsphere::{Claim, ManagedObject, RegisteredVolume, RegisteredVolumes, SessionError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Volumes in one page. A volume with its metadata is a few kilobytes.
const PAGE: usize = 500;

/// Volumes in one page where every one of them is of interest, and few requests are.
const LARGE: usize = 4_000;

/// No vCenter has more volumes than its supported maximum; one that goes on for ever is not read for ever.
const MAX_PAGES: usize = 1000;

/// What is read of the volumes under a cluster id.
struct Query<T> {
    method: Method,
    /// Volumes in one page.
    limit: usize,
    /// What comes behind the filter.
    selection: &'static str,
    take: fn(&mut T, Element) -> Result<(), Unread>,
    /// How many volumes have come.
    count: fn(&T) -> usize,
}

impl<T: Send + 'static> Query<T> {
    /// Reads page by page.
    async fn read(&self, caller: &mut Caller<'_>, cluster_id: &str, mut taken: T) -> Result<T, SessionError> {
        for _ in 0..MAX_PAGES {
            let before = (self.count)(&taken);
            let query = filter(cluster_id, before, self.limit) + self.selection;
            let answer;
            (answer, taken) = caller.call_each(self.method, &manager(), &query, taken, self.take).await?;
            let count = (self.count)(&taken);
            if count == before || count >= total(&answer) {
                break;
            }
        }
        Ok(taken)
    }
}

/// Reads the volumes under a cluster id, page by page, and counts those that the cluster knows; and under which ids its own are registered.
pub(super) async fn read(caller: &mut Caller<'_>, claim: &Arc<Claim>) -> Result<RegisteredVolumes, SessionError> {
    let mut found = under(caller, claim).await?;
    found.of_cluster = of_cluster(caller, claim).await?;
    Ok(found)
}

/// Every volume under a cluster id.
pub(super) async fn list(caller: &mut Caller<'_>, cluster_id: &str) -> Result<Vec<RegisteredVolume>, SessionError> {
    let query = Query {
        method: Method::CnsQueryVolume,
        limit: LARGE,
        selection: "",
        take: |found: &mut Vec<_>, volume| {
            found.push(registered(&volume)?);
            Ok(())
        },
        count: Vec::len,
    };
    query.read(caller, cluster_id, Vec::new()).await
}

/// How many volumes of which kind are registered under a cluster id. Nothing else of them is sent.
pub(super) async fn kinds(caller: &mut Caller<'_>, cluster_id: &str) -> Result<BTreeMap<&'static str, u64>, SessionError> {
    let query = Query {
        method: Method::CnsQueryAllVolume,
        limit: LARGE,
        selection: "<selection><names>VOLUME_TYPE</names></selection>",
        take: |found: &mut BTreeMap<_, u64>, volume| {
            *found.entry(kind(&volume)).or_default() += 1;
            Ok(())
        },
        count: |found| usize::try_from(found.values().sum::<u64>()).unwrap_or(usize::MAX),
    };
    query.read(caller, cluster_id, BTreeMap::from([("block", 0), ("file", 0)])).await
}

/// The kinds that CNS knows, in the words of Kubernetes.
fn kind(volume: &Element) -> &'static str {
    match volume.text_of("volumeType").as_str() {
        "BLOCK" => "block",
        "FILE" => "file",
        _ => "other",
    }
}

/// How many volumes there are; none where a vCenter does not count, which then gives everything at once.
fn total(answer: &Element) -> usize {
    let cursor = answer.child("returnval").and_then(|result| result.child("cursor"));
    cursor
        .and_then(|cursor| cursor.text_of("totalRecords").parse().ok())
        .unwrap_or_default()
}

fn manager() -> ManagedObject {
    ManagedObject {
        kind: "CnsVolumeManager".into(),
        id: "cns-volume-manager".into(),
    }
}

/// The cluster ids of the volumes that the cluster has PersistentVolumes of. A page of them says enough.
async fn of_cluster(caller: &mut Caller<'_>, claim: &Claim) -> Result<BTreeSet<String>, SessionError> {
    if claim.handles.is_empty() {
        return Ok(BTreeSet::new());
    }
    let handles = claim.handles.iter().take(PAGE);
    let volumes: String = handles
        .map(|handle| format!("<volumeIds>{}</volumeIds>", element("id", handle)))
        .collect();
    let take = |found: &mut BTreeSet<String>, volume: Element| {
        found.extend(cluster_of(&volume)?);
        Ok(())
    };
    let filter = page(&volumes, 0, PAGE);
    let (_, found) = caller
        .call_each(Method::CnsQueryVolume, &manager(), &filter, BTreeSet::new(), take)
        .await?;
    Ok(found)
}

/// The cluster id that a volume is registered under.
fn cluster_of(volume: &Element) -> Result<Option<String>, String> {
    let cluster = volume.child("metadata").and_then(|metadata| metadata.child("containerCluster"));
    let id = cluster.map(|cluster| cluster.text_of("clusterId")).filter(|id| !id.is_empty());
    id.map(name).transpose()
}

/// The volumes under a cluster id.
async fn under(caller: &mut Caller<'_>, claim: &Arc<Claim>) -> Result<RegisteredVolumes, SessionError> {
    let query = Query {
        method: Method::CnsQueryVolume,
        limit: PAGE,
        selection: "",
        take: |(claim, found): &mut (Arc<Claim>, RegisteredVolumes), volume| {
            found.add(claim, &registered(&volume)?);
            Ok(())
        },
        count: |(_, found)| found.count,
    };
    let (_, found) = query
        .read(caller, &claim.cluster_id, (claim.clone(), RegisteredVolumes::default()))
        .await?;
    Ok(found)
}

/// The elements in the order of their definition. Without the type a vCenter does not know which filter it is.
fn page(of: &str, offset: usize, limit: usize) -> String {
    let cursor = element("offset", &offset.to_string()) + &element("limit", &limit.to_string());
    format!(r#"<filter xsi:type="CnsQueryFilter">{of}<cursor>{cursor}</cursor></filter>"#)
}

fn filter(cluster_id: &str, offset: usize, limit: usize) -> String {
    page(&element("containerClusterIds", cluster_id), offset, limit)
}

fn registered(volume: &Element) -> Result<RegisteredVolume, String> {
    let id = volume.child("volumeId").map(|id| id.text_of("id")).unwrap_or_default();
    let entities = volume
        .child("metadata")
        .into_iter()
        .flat_map(|metadata| metadata.all("entityMetadata"))
        .filter(|entity| entity.text_of("entityType") == "PERSISTENT_VOLUME");
    let details = volume.child("backingObjectDetails");
    Ok(RegisteredVolume {
        id: identifier(&id)?,
        name: name(volume.text_of("name"))?,
        mebibytes: details.and_then(|details| details.text_of("capacityInMb").parse().ok()),
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
        let size = "<backingObjectDetails><capacityInMb>1024</capacityInMb></backingObjectDetails>";
        let text = format!("<volumes><volumeId><id>id-1</id></volumeId><name>n</name><metadata>{metadata}</metadata>{size}</volumes>");
        let expected = RegisteredVolume {
            id: "id-1".into(),
            name: "n".into(),
            mebibytes: Some(1024),
            persistent_volumes: vec!["pv-1".into()],
        };
        assert_eq!(registered(&whole(&text)), Ok(expected));
        assert!(
            registered(&whole("<volumes><name>n</name></volumes>")).is_err(),
            "without an identifier"
        );
    }

    #[test]
    fn registered_volume_says_which_cluster_it_is_of() {
        let of = |metadata: &str| cluster_of(&whole(&format!("<volumes><metadata>{metadata}</metadata></volumes>")));
        assert_eq!(
            of("<containerCluster><clusterType>KUBERNETES</clusterType><clusterId>prod-1</clusterId></containerCluster>"),
            Ok(Some("prod-1".to_owned()))
        );
        assert_eq!(of("<containerCluster><clusterId></clusterId></containerCluster>"), Ok(None));
        assert_eq!(of(""), Ok(None));
    }

    /// An id is the administrator's text, and stays one.
    #[test]
    fn filter_cluster_id_with_markup_is_escaped() {
        let filter = filter("a<b>&\"", 500, PAGE);
        let read = whole(&filter.replace("xsi:type=\"CnsQueryFilter\"", ""));
        assert_eq!(read.text_of("containerClusterIds"), "a<b>&\"");
        assert_eq!(read.child("cursor").map(|cursor| cursor.text_of("offset")), Some("500".into()));
    }
}
