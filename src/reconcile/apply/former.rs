// SPDX-License-Identifier: Apache-2.0
//! Reads and deletes the inventory of earlier operators in a ConfigMap, before the Secret `vdo-state` exists (effect).
//!
//! More users may write this ConfigMap than the Secret. Its content is used only as far as the live objects or the status confirm it.

use super::delete::delete_if;
use super::state_secret::APPLY_SET_LABEL;
use crate::cluster::{ClusterError, Reader};
use crate::reconcile::Ports;
use crate::reconcile::error::ReconcileError;
use crate::reconcile::observe::cluster::{by_name, config_maps_watch, former_inventory, texts};
use kube::ResourceExt;
use vdo_api::api::VDOConfig;
use vdo_api::types::{ById, ObjectId};
use vdo_core::manifest::{Object, is_sealed};
use vdo_core::matrix::StoredMatrix;
use vdo_core::plan::{Inventory, Revision, Stored};

/// The inventory in the ConfigMap, where the status says that the operator before this one kept it there. The status is written by operators
/// only, and names the Secret as soon as that is in use, so a ConfigMap that someone makes later is not looked at. What cannot be read counts as absent.
///
/// # Errors
/// When the cluster cannot be asked.
pub(in crate::reconcile) async fn find(reader: &Reader, config: &VDOConfig) -> Result<Option<Inventory>, ReconcileError> {
    let name = former_inventory(config);
    let reported = config.status.as_ref().and_then(|status| status.inventory.as_ref());
    if reported.is_none_or(|kept| kept.name != name) {
        return Ok(None);
    }
    let namespace = config.namespace().unwrap_or_default();
    let Some(map) = reader.now(&by_name("ConfigMap", &namespace, &name)).await?.pop() else {
        return Ok(None);
    };
    let stored = Stored {
        data: texts(&map, "/data"),
        binary: texts(&map, "/binaryData"),
    };
    let name = format!("ConfigMap {name}");
    match Inventory::parse(&name, &stored) {
        Ok(inventory) => Ok(Some(inventory)),
        // It says what it is about, and an older operator must not lose it.
        Err(error) if error.is_newer() => Err(error.into()),
        Err(error) => {
            tracing::warn!(error = %vdo_api::api::chain(&error), "the former inventory in a ConfigMap is not used");
            Ok(None)
        }
    }
}

/// What of it is believed beside what bears our labels, which is `found`: the objects of kinds that are not looked for, which are ours to
/// remove only with our labels; and a matrix that has the digest in the status. The approval and the cluster id are not: the one is asked
/// for again, the other is in the status. What is believed of the history is decided by [`proven`].
pub(in crate::reconcile) fn believed(former: Inventory, found: Inventory, config: &VDOConfig) -> Inventory {
    let mut objects = former.objects;
    objects.extend(found.objects);
    let reported = config.status.as_ref().and_then(|status| status.matrix.as_ref());
    let is_proven = |kept: &StoredMatrix| {
        let same = reported.is_some_and(|reported| reported.digest == kept.digest.to_string() && reported.source == kept.source);
        // What a mirror says pins images, unless the index is signed.
        same && (kept.lock.is_none() || kept.signer.is_some())
    };
    Inventory {
        objects,
        history: former.history,
        matrix: former.matrix.filter(|kept| is_proven(kept)),
        ..found
    }
}

/// Leaves in the history the newest revision of each driver, where every object of it that is not a Secret is what the live one says was
/// applied: its digest is an annotation there. Secrets are kept without content and never brought back.
pub(in crate::reconcile) fn proven(inventory: &mut Inventory, live: &ById<Object>, salt: &str) {
    let is_proven = |object: &Object| {
        let applied = live.get(object.identity()).and_then(Object::applied);
        object.is_secret() || (applied == object.applied() && is_sealed(object, salt))
    };
    inventory.history.retain(|_, revisions| {
        let newest = revisions.pop().filter(|newest: &Revision| {
            let objects = newest.objects.objects();
            !objects.is_empty() && objects.iter().all(is_proven)
        });
        *revisions = newest.into_iter().collect();
        !revisions.is_empty()
    });
}

/// Deletes the ConfigMap, if it is there and is of this apply set: nothing reads it any more.
///
/// # Errors
/// When the delete fails.
pub(in crate::reconcile) async fn delete(ports: &Ports, config: &VDOConfig, apply_set: &str) -> Result<(), ClusterError> {
    let (name, namespace) = (former_inventory(config), config.namespace().unwrap_or_default());
    let is_former = |map: &Object| map.name() == name && map.label(APPLY_SET_LABEL) == Some(apply_set);
    let watch = config_maps_watch(&namespace);
    if !ports.reader.load([watch.clone()]).await?.list(&watch).iter().any(is_former) {
        return Ok(());
    }
    let id = ObjectId::new("", "ConfigMap", &*namespace, &*name);
    delete_if(ports, "v1", &id, false, is_former).await?;
    Ok(())
}

/// The same where nothing waits for the deletion: that what nothing reads any more cannot be deleted keeps nothing back.
pub(in crate::reconcile) async fn forget(ports: &Ports, config: &VDOConfig, apply_set: &str) {
    if let Err(error) = delete(ports, config, apply_set).await {
        tracing::warn!(error = %vdo_api::api::chain(&error), "the ConfigMap with the former inventory cannot be deleted");
    }
}
