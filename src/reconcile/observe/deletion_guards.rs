// SPDX-License-Identifier: Apache-2.0
//! Reads volumes, snapshots and users of objects that a plan would delete, and the annotation that skips the check (effect).

use super::installed::workloads;
use crate::cluster::{ClusterError, Select, Watch, holder, list_kept};
use crate::reconcile::Ports;
use kube::ResourceExt;
use std::collections::BTreeSet;
use vdo_api::api::VDOConfig;
use vdo_api::types::{ById, ObjectId};
use vdo_core::manifest::Object;
use vdo_core::plan::{Lookup, Observed, REMOVE_DESPITE_VOLUMES, Volumes, users};

/// Looks up what has to be known before something is deleted.
///
/// # Errors
/// When it cannot be read.
pub(in crate::reconcile) async fn look_up(
    ports: &Ports,
    config: &VDOConfig,
    apply_set: &str,
    lookups: BTreeSet<Lookup>,
    observed: &mut Observed,
) -> Result<(), ClusterError> {
    for lookup in lookups {
        match lookup {
            Lookup::HeldBy(id) => {
                let uid = observed.live.get(&id).map(|live| live.uid().to_owned()).unwrap_or_default();
                let holder = held_by(ports, &id, &uid).await?;
                observed.held.insert(id, holder);
            }
            Lookup::UsedIn(namespace) => observed.used.extend(used_in(ports, &namespace, apply_set).await?),
            Lookup::Volumes => observed.volumes = Some(volumes(ports, config).await?),
        }
    }
    Ok(())
}

/// What workloads of others use in a namespace.
async fn used_in(ports: &Ports, namespace: &str, apply_set: &str) -> Result<ById<String>, ClusterError> {
    Ok(users(&workloads(&ports.reader, namespace).await?, apply_set))
}

/// What holds an object. That something does is believed for a while, of this very object: it is asked in every run.
async fn held_by(ports: &Ports, id: &ObjectId, uid: &str) -> Result<Option<String>, ClusterError> {
    let cache = ports.reader.cache();
    if let Some(known) = cache.and_then(|cache| cache.holder(uid)) {
        return Ok(Some(known));
    }
    let found = holder(&ports.client, id).await?;
    if let (Some(cache), Some(found)) = (cache, &found) {
        cache.held_by(uid, found);
    }
    Ok(found)
}

/// All volumes of a cluster, and what is attached. Watched only while a deletion waits for one of them to go.
pub(in crate::reconcile) fn volume_watches() -> [Watch; 2] {
    [("v1", "PersistentVolume"), ("storage.k8s.io/v1", "VolumeAttachment")]
        .map(|(version, kind)| Watch::new(version, kind, "", Select::All))
}

/// The volumes of the storage driver. From watches as long as there are any, because they wake us when the last one goes;
/// that there are none is asked of the API server itself.
async fn volumes(ports: &Ports, config: &VDOConfig) -> Result<Volumes, ClusterError> {
    if config
        .annotations()
        .get(REMOVE_DESPITE_VOLUMES)
        .is_some_and(|value| value == "true")
    {
        tracing::warn!(config = %config.name_any(), "the storage driver is deleted without a check of its volumes, as requested by the annotation {REMOVE_DESPITE_VOLUMES}");
        return Ok(Volumes::default());
    }
    let watches = volume_watches();
    let view = ports.reader.load(watches.clone()).await?;
    let [volumes, attachments] = watches.each_ref().map(|watch| view.list(watch));
    let snapshots = snapshots(ports).await?;
    let found = Volumes::of(&volumes, &attachments, &snapshots);
    if found.count > 0 || ports.reader.cache().is_none() {
        return Ok(found);
    }
    let mut fresh: Vec<Vec<Object>> = Vec::new();
    for watch in &watches {
        fresh.push(list_kept(&ports.client, watch).await?);
    }
    Ok(Volumes::of(&fresh[0], &fresh[1], &[]))
}

/// All snapshots of a cluster, which knows them only when an administrator has brought their definitions. Where there are some they are
/// watched, to be woken when the last one goes.
async fn snapshots(ports: &Ports) -> Result<Vec<Object>, ClusterError> {
    let watch = Watch::new("snapshot.storage.k8s.io/v1", "VolumeSnapshotContent", "", Select::All);
    let found = match list_kept(&ports.client, &watch).await {
        Err(ClusterError::NotServed { .. }) => Vec::new(),
        found => found?,
    };
    if !found.is_empty() {
        ports.reader.load([watch]).await?;
    }
    Ok(found)
}
