//! What must be known before something goes, looked up only when it is about to go (effect).

use super::World;
use super::error::ReconcileError;
use crate::api::VDOConfig;
use crate::cluster::{ClusterError, Select, Watch, holder, list};
use crate::manifest::Object;
use crate::plan::{Observed, Plan, Question, REMOVE_DESPITE_VOLUMES, Volumes};
use crate::types::ObjectId;
use kube::ResourceExt;

/// Plans, answers what the plan asks, and plans again until it asks nothing.
pub(super) async fn answered(
    world: &World,
    config: &VDOConfig,
    mut observed: Observed,
    plan: impl Fn(&Observed) -> Plan,
) -> Result<(Observed, Plan), ReconcileError> {
    loop {
        let next = plan(&observed);
        if next.questions.is_empty() {
            return Ok((observed, next));
        }
        for question in next.questions {
            match question {
                Question::HeldBy(id) => {
                    let uid = observed.live.get(&id).map(|live| live.uid().to_owned()).unwrap_or_default();
                    let holder = held_by(world, &id, &uid).await?;
                    observed.held.insert(id, holder);
                }
                Question::Volumes => observed.volumes = Some(volumes(world, config).await?),
            }
        }
    }
}

/// What holds an object. That something does is believed for a while, of this very object: it is asked in every run.
async fn held_by(world: &World, id: &ObjectId, uid: &str) -> Result<Option<String>, ClusterError> {
    let cache = world.reader.cache();
    if let Some(known) = cache.and_then(|cache| cache.holder(uid)) {
        return Ok(Some(known));
    }
    let found = holder(&world.client, id).await?;
    if let (Some(cache), Some(found)) = (cache, &found) {
        cache.held_by(uid, found);
    }
    Ok(found)
}

/// All volumes of a cluster, and what is attached. Watched only while somebody waits for one of them to go.
pub(super) fn volume_watches() -> [Watch; 2] {
    [("v1", "PersistentVolume"), ("storage.k8s.io/v1", "VolumeAttachment")]
        .map(|(version, kind)| Watch::new(version, kind, "", Select::All))
}

/// The volumes of the storage driver. From watches as long as there are any, because they wake us when the last one goes;
/// that there are none is asked of the API server itself.
async fn volumes(world: &World, config: &VDOConfig) -> Result<Volumes, ClusterError> {
    if config
        .annotations()
        .get(REMOVE_DESPITE_VOLUMES)
        .is_some_and(|value| value == "true")
    {
        tracing::warn!(config = %config.name_any(), "the storage driver goes without a look at its volumes, as the annotation {REMOVE_DESPITE_VOLUMES} says");
        return Ok(Volumes::default());
    }
    let watches = volume_watches();
    let view = world.reader.load(watches.clone()).await?;
    let [volumes, attachments] = watches.each_ref().map(|watch| view.list(watch));
    let snapshots = snapshots(world).await?;
    let found = Volumes::of(&volumes, &attachments, &snapshots);
    if found.count > 0 || world.reader.cache().is_none() {
        return Ok(found);
    }
    let mut fresh: Vec<Vec<Object>> = Vec::new();
    for watch in &watches {
        fresh.push(list(&world.client, watch).await?);
    }
    Ok(Volumes::of(&fresh[0], &fresh[1], &[]))
}

/// All snapshots of a cluster, which knows them only when somebody has brought their definitions. Where there are some they are
/// watched, to be woken when the last one goes.
async fn snapshots(world: &World) -> Result<Vec<Object>, ClusterError> {
    let watch = Watch::new("snapshot.storage.k8s.io/v1", "VolumeSnapshotContent", "", Select::All);
    let found = match list(&world.client, &watch).await {
        Err(ClusterError::NotServed { .. }) => Vec::new(),
        found => found?,
    };
    if !found.is_empty() {
        world.reader.load([watch]).await?;
    }
    Ok(found)
}
