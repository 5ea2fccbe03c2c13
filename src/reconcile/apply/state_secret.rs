// SPDX-License-Identifier: Apache-2.0
//! Reads, stores and deletes the inventory in the Secret `vdo-state` (effect); `vdo_core::plan` decides its content.

use super::{delete, former};
use crate::cluster::{ClusterError, Reader};
use crate::reconcile::Ports;
use crate::reconcile::apply::{StateLocation, remember};
use crate::reconcile::error::ReconcileError;
use crate::reconcile::observe::cluster::{apply_set, by_name, texts};
use kube::ResourceExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vdo_api::api::{CLUSTER_ANNOTATION, MANAGED_BY, MANAGED_BY_LABEL, STATE, STATE_TYPE, VDOConfig};
use vdo_api::types::ObjectId;
use vdo_core::manifest::Object;
use vdo_core::plan::{Inventory, Stored};

/// By which an inventory says of which VDOConfig it is.
pub(super) const APPLY_SET_LABEL: &str = "applyset.kubernetes.io/id";

/// Whose inventory is stored.
pub(in crate::reconcile) enum StoredInventory {
    /// The inventory of this VDOConfig.
    Stored(Inventory),
    /// That of another cluster: a backup was restored here.
    OfAnotherCluster,
    /// None of this VDOConfig.
    Nothing,
}

/// The inventory of a VDOConfig as it is stored. Where there should be one, it is asked for once more: a watch may be behind. `cluster` is the
/// identity of the cluster, where it is known.
///
/// # Errors
/// When it cannot be read.
pub(in crate::reconcile) async fn find(
    reader: &Reader,
    config: &VDOConfig,
    apply_set: &str,
    cluster: Option<&str>,
    expected: bool,
) -> Result<StoredInventory, ReconcileError> {
    let namespace = config.namespace().unwrap_or_default();
    let watch = by_name("Secret", &namespace, STATE);
    let found = match reader.load([watch.clone()]).await?.one(&watch) {
        None if expected => reader.now(&watch).await?.pop(),
        found => found,
    };
    let Some(found) = found.filter(|found| found.label(APPLY_SET_LABEL) == Some(apply_set)) else {
        return Ok(StoredInventory::Nothing);
    };
    let of = found.annotation(CLUSTER_ANNOTATION);
    if cluster.is_some_and(|cluster| of.is_some_and(|of| of != cluster)) {
        return Ok(StoredInventory::OfAnotherCluster);
    }
    let data = Stored::of_secret(texts(&found, "/data"));
    Ok(StoredInventory::Stored(Inventory::parse(&format!("Secret {STATE}"), &data)?))
}

/// The inventory of a VDOConfig as it is stored; `None` when it is not.
///
/// # Errors
/// When it cannot be read.
pub async fn inventory(reader: &Reader, config: &VDOConfig) -> Result<Option<Inventory>, ReconcileError> {
    Ok(match find(reader, config, &apply_set(config), None, false).await? {
        StoredInventory::Stored(inventory) => Some(inventory),
        StoredInventory::OfAnotherCluster | StoredInventory::Nothing => None,
    })
}

/// Stores the inventory. Keys that another manager has added to the Secret are removed: an apply leaves them, and they would be read as ours.
pub(in crate::reconcile) async fn store(inventory: &Inventory, ports: &Ports, place: &StateLocation<'_>) -> Result<(), ClusterError> {
    let wanted = stored(inventory, place);
    let mut live = ports.writer.apply(&wanted, true).await?;
    let own = texts(&wanted, "/data");
    let others: BTreeMap<String, Value> = texts(&live, "/data")
        .into_keys()
        .filter(|key| !own.contains_key(key))
        .map(|key| (key, Value::Null))
        .collect();
    if !others.is_empty() {
        let keys: Vec<&str> = others.keys().map(String::as_str).collect();
        let keys = keys.join(", ");
        tracing::warn!("Secret {STATE} had keys that the operator did not write, and they are removed: {keys}");
        let change = json!({"data": others});
        let cleaned = ports.writer.merge("v1", wanted.identity(), &change, false).await?;
        live = cleaned.unwrap_or(live);
    }
    remember(ports, &wanted, &live);
    Ok(())
}

/// Deletes it.
///
/// # Errors
/// When the delete fails.
pub(in crate::reconcile) async fn forget(ports: &Ports, place: &StateLocation<'_>) -> Result<(), ClusterError> {
    let id = ObjectId::new("", "Secret", place.namespace, STATE);
    let is_ours = |live: &Object| live.label(APPLY_SET_LABEL) == Some(place.apply_set);
    delete::delete_if(ports, "v1", &id, false, is_ours).await?;
    former::delete(ports, place.config, place.apply_set).await
}

/// The Secret with the inventory, which is the parent of the apply set (KEP-3659).
fn stored(inventory: &Inventory, place: &StateLocation<'_>) -> Object {
    let mut kinds: Vec<String> = inventory.objects.keys().map(|id| id.group_kind().to_string()).collect();
    kinds.sort();
    kinds.dedup();
    let mut namespaces: Vec<&str> = inventory
        .objects
        .keys()
        .map(|id| id.namespace.as_str())
        .filter(|ns| !ns.is_empty() && *ns != place.namespace)
        .collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": STATE_TYPE,
        "metadata": {
            "name": STATE,
            "namespace": place.namespace,
            "labels": {MANAGED_BY_LABEL: MANAGED_BY, APPLY_SET_LABEL: place.apply_set},
            "annotations": {
                "applyset.kubernetes.io/tooling": concat!("vdo/v", env!("CARGO_PKG_VERSION")),
                "applyset.kubernetes.io/contains-group-kinds": kinds.join(","),
                "applyset.kubernetes.io/additional-namespaces": namespaces.join(","),
                CLUSTER_ANNOTATION: place.cluster,
            },
        },
        "data": inventory.stored().secret(),
    });
    #[expect(clippy::expect_used, reason = "the literal above has a kind and a name")]
    Object::new(secret).expect("a Secret")
}
