// SPDX-License-Identifier: Apache-2.0
//! Deletes or releases one object of a plan, after a check that object and VDOConfig are still as the plan saw them (effect).

use crate::cluster::{ApiMessage, ClusterError, Select, Watch, list};
use crate::reconcile::Ports;
use kube::ResourceExt;
use serde_json::{Map, Value, json};
use vdo_api::api::{API_VERSION, RELEASED_ANNOTATION, Reason, VDOConfig};
use vdo_api::types::ObjectId;
use vdo_core::manifest::Object;
use vdo_core::plan::{self, Wait, may_go};

/// How often an object may change under our hands before the next run tries again.
const TRIES: usize = 3;

/// Deletes an object exactly as it was seen last: the API server refuses when it has changed since, and then it is read
/// again and judged again. So nothing is deleted that is not, at that very moment, the planned instance with our labels,
/// and it costs no request more than the delete.
/// With `keep_dependents` what belongs to it stays, for its successor to take over.
pub(in crate::reconcile) async fn delete(
    ports: &Ports,
    apply_set: &str,
    api_version: &str,
    id: &ObjectId,
    uid: &str,
    keep_dependents: bool,
) -> Result<(), ClusterError> {
    let ours = |live: &Object| may_go(live, uid, apply_set);
    if !delete_if(ports, api_version, id, keep_dependents, ours).await? {
        tracing::info!(object = %id, "the object is not deleted: it was changed before the deletion, and VDO no longer owns it");
    }
    Ok(())
}

/// The same with what is asked of the object given; `false` when it is there and does not answer to it.
pub(in crate::reconcile) async fn delete_if(
    ports: &Ports,
    api_version: &str,
    id: &ObjectId,
    keep_dependents: bool,
    may_go: impl Fn(&Object) -> bool,
) -> Result<bool, ClusterError> {
    let mut seen = ports.reader.cache().and_then(|cache| cache.get(id));
    for _ in 0..TRIES {
        let live = match seen.take() {
            Some(live) => live,
            None => match fresh(ports, api_version, id).await? {
                Some(live) => live,
                None => return Ok(true),
            },
        };
        if !may_go(&live) {
            return Ok(false);
        }
        if ports.writer.delete_as_seen(api_version, &live, keep_dependents).await? {
            if let Some(cache) = ports.reader.cache() {
                cache.deleted(id);
            }
            return Ok(true);
        }
    }
    Err(ClusterError::Refused {
        id: id.clone(),
        source: ApiMessage {
            code: 409,
            message: format!("the object changed during each of {TRIES} attempts to delete it"),
        },
    })
}

/// Whether the VDOConfig is still what this run was given. A watch may be behind, most of all after a restart; what it shows
/// may be used to make things, but nothing is removed because of a specification that no one wants any more.
pub(in crate::reconcile) async fn is_current(config: &VDOConfig, ports: &Ports) -> Result<bool, ClusterError> {
    let live = fresh(ports, API_VERSION, &config.id()).await?;
    let generation = |live: &Object| live.value().pointer("/metadata/generation").and_then(Value::as_i64);
    Ok(live.is_some_and(|live| config.uid().as_deref() == Some(live.uid()) && config.metadata.generation == generation(&live)))
}

/// What is waited for when it is not.
pub(in crate::reconcile) fn outdated(config: &VDOConfig) -> Wait {
    Wait {
        driver: String::new(),
        reason: Reason::Progressing,
        message: format!(
            "VDOConfig {} has changed since the operator last read it; nothing is removed until the operator has read the change",
            config.name_any()
        ),
    }
}

async fn fresh(ports: &Ports, api_version: &str, id: &ObjectId) -> Result<Option<Object>, ClusterError> {
    let watch = Watch::new(api_version, id.kind(), &id.namespace, Select::Name(id.name.clone()));
    Ok(list(&ports.client, &watch).await?.pop())
}

/// Takes our marks off an object, so that it is unowned or owned by another manager. The UID in the change makes the API server
/// refuse it for another instance.
pub(in crate::reconcile) async fn release(ports: &Ports, api_version: &str, id: &ObjectId, uid: &str) -> Result<(), ClusterError> {
    let known = fresh(ports, api_version, id).await?;
    let from = known.as_ref().and_then(plan::adopted_from);
    let heir = match from {
        Some(from) if from.starts_with("Helm") => "helm",
        _ => "kubectl",
    };
    let released = match from {
        Some(_) => Value::Null,
        None => "true".into(),
    };
    let absent = |keys: &[&str]| -> Map<String, Value> { keys.iter().map(|key| ((*key).to_owned(), Value::Null)).collect() };
    let mut annotations = absent(&plan::OWN_ANNOTATIONS);
    annotations.insert(RELEASED_ANNOTATION.to_owned(), released);
    let metadata = json!({"uid": uid, "labels": absent(&plan::OWN_LABELS), "annotations": annotations});
    let live = ports.writer.hand_back(api_version, id, metadata, heir).await?;
    tracing::info!(object = %id, uid, "released");
    if let (Some(cache), Some(live)) = (ports.reader.cache(), live) {
        cache.wrote(&live);
    }
    Ok(())
}
