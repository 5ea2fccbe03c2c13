//! The inventory is read, stored and deleted (effect); what is in it is decided in `plan`.

use super::delete;
use crate::api::VDOConfig;
use crate::cluster::{ClusterError, Reader};
use crate::manifest::Object;
use crate::plan::{Inventory, Stored};
use crate::reconcile::Ports;
use crate::reconcile::apply::{Place, remember};
use crate::reconcile::error::ReconcileError;
use crate::reconcile::observe::cluster::{by_name, config_maps_watch, inventory_name, texts};
use crate::types::ObjectId;
use kube::ResourceExt;
use serde_json::{Value, json};
use std::sync::Arc;

/// The inventory of a VDOConfig as it is stored; `None` when it is not. Where there should be one, it is asked for once more: a watch may
/// be behind.
///
/// # Errors
/// When it cannot be read.
pub(in crate::reconcile) async fn find(
    reader: &Reader,
    config: &VDOConfig,
    expected: bool,
) -> Result<Option<Arc<Inventory>>, ReconcileError> {
    let (name, namespace) = (inventory_name(config), config.namespace().unwrap_or_default());
    let (watch, all) = (by_name("ConfigMap", &namespace, &name), config_maps_watch(&namespace));
    let view = reader.load([all.clone()]).await?;
    let found = match reader.cache() {
        // With our own writes seen at once.
        Some(_) => view.one(&watch),
        None => view.list(&all).into_iter().find(|map| map.name() == name),
    };
    let found = match found {
        None if expected => reader.now(&watch).await?.pop(),
        found => found,
    };
    let Some(found) = found else { return Ok(None) };
    let parse = |found: &Object| {
        let stored = Stored {
            data: texts(found, "/data"),
            binary: texts(found, "/binaryData"),
        };
        Inventory::parse(&name, &stored)
    };
    Ok(Some(match reader.cache() {
        None => Arc::new(parse(&found)?),
        Some(cache) => cache.inventory(found, parse)?,
    }))
}

/// The inventory of a VDOConfig as it is stored; `None` when it is not.
///
/// # Errors
/// When it cannot be read.
pub async fn inventory(reader: &Reader, config: &VDOConfig) -> Result<Option<Arc<Inventory>>, ReconcileError> {
    find(reader, config, false).await
}

/// Stores the inventory.
pub(in crate::reconcile) async fn store(inventory: &Inventory, ports: &Ports, place: &Place<'_>) -> Result<(), ClusterError> {
    let wanted = stored(inventory, place);
    let live = ports.writer.apply(&wanted, true).await?;
    remember(ports, &wanted, &live);
    Ok(())
}

/// Deletes it.
///
/// # Errors
/// When the delete fails.
pub(in crate::reconcile) async fn forget(ports: &Ports, place: &Place<'_>) -> Result<(), ClusterError> {
    let id = ObjectId::new("", "ConfigMap", place.namespace, place.name);
    delete::delete_if(ports, "v1", &id, false, |_| true).await?;
    Ok(())
}

/// The ConfigMap with the inventory, which is the parent of the apply set (KEP-3659).
fn stored(inventory: &Inventory, place: &Place<'_>) -> Object {
    let Stored { data, binary } = inventory.stored();
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
    config_map(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": place.name,
            "namespace": place.namespace,
            "labels": {"app.kubernetes.io/managed-by": "vdo", "applyset.kubernetes.io/id": place.apply_set},
            "annotations": {
                "applyset.kubernetes.io/tooling": concat!("vdo/v", env!("CARGO_PKG_VERSION")),
                "applyset.kubernetes.io/contains-group-kinds": kinds.join(","),
                "applyset.kubernetes.io/additional-namespaces": namespaces.join(","),
            },
        },
        "data": data,
        "binaryData": binary,
    }))
}

fn config_map(value: Value) -> Object {
    #[expect(
        clippy::expect_used,
        reason = "the literals above have a kind and a name; an empty name is refused by the API server"
    )]
    Object::new(value).expect("a ConfigMap")
}
