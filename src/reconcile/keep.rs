//! The inventory is read, stored and forgotten (effect); how it is laid out is decided in `plan`.

use super::World;
use super::erase;
use super::error::ReconcileError;
use super::execute::{Place, remember};
use super::gather::{by_name, inventory_name, texts};
use crate::api::{INVENTORY_LABEL, VDOConfig};
use crate::cluster::{ClusterError, Reader, Select, Watch};
use crate::manifest::Object;
use crate::plan::{Inventory, InventoryError, Keep, Plan, Step};
use crate::types::ObjectId;
use kube::ResourceExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The key under which a part has its text.
const TEXT: &str = "objects";

/// An inventory as it was found.
pub(super) struct Found {
    pub inventory: Arc<Inventory>,
    /// Whether it is kept in several ConfigMaps.
    pub chunked: bool,
}

/// The inventory of a VDOConfig as it is stored; `None` when it is not. Where there should be one, or a part of it is not there, it is
/// asked for once more: a watch may be behind.
///
/// # Errors
/// When it cannot be read.
pub(super) async fn find(reader: &Reader, config: &VDOConfig, apply_set: &str, expected: bool) -> Result<Option<Found>, ReconcileError> {
    let name = inventory_name(config);
    let namespace = config.namespace().unwrap_or_default();
    let watch = by_name("ConfigMap", &namespace, &name);
    let parts = parts(&namespace, apply_set);
    let found = match reader.load([watch.clone()]).await?.one(&watch) {
        None if expected => reader.now(&watch).await?.pop(),
        found => found,
    };
    let Some(found) = found else { return Ok(None) };
    let known = reader.cache().and_then(|cache| cache.inventory_parts(&found));
    let ids: Vec<ObjectId> = known.unwrap_or_else(|| {
        let names = Inventory::chunk_names(&texts(&found, "/data"));
        names.iter().map(|name| id(&namespace, name)).collect()
    });
    let chunked = !ids.is_empty();
    let chunks = match chunked {
        false => Vec::new(),
        true => {
            let ids: Vec<_> = ids.iter().map(|id| (id, "v1")).collect();
            reader.live(&ids, [parts.clone()]).await?.into_values().collect()
        }
    };
    match read(reader, &name, found, chunks) {
        Ok(inventory) => Ok(Some(Found { inventory, chunked })),
        Err(error) if !chunked => Err(error.into()),
        Err(_) => {
            let Some(found) = reader.now(&watch).await?.pop() else {
                return Ok(None);
            };
            let inventory = read(reader, &name, found, reader.now(&parts).await?)?;
            Ok(Some(Found { inventory, chunked }))
        }
    }
}

/// What these ConfigMaps say. The same ones are not read twice.
fn read(reader: &Reader, name: &str, first: Object, chunks: Vec<Object>) -> Result<Arc<Inventory>, InventoryError> {
    let parse = |first: &Object, chunks: &[Object]| Inventory::parse(name, &texts(first, "/data"), &text(chunks.iter().cloned()));
    match reader.cache() {
        None => Ok(Arc::new(parse(&first, &chunks)?)),
        Some(cache) => cache.inventory(first, chunks, parse),
    }
}

/// Whether a plan writes an inventory in several parts.
pub(super) fn outgrows(plan: &Plan, place: &Place<'_>) -> bool {
    plan.steps.iter().any(|step| match step {
        Step::Record(inventory) | Step::Commit(inventory) => !inventory.kept(place.name).chunks.is_empty(),
        _ => false,
    })
}

/// Stores the inventory. With `sweeps`, parts that are there are looked for, to be used or to go.
pub(super) async fn store(inventory: &Inventory, world: &World, place: &Place<'_>, sweeps: bool) -> Result<(), ClusterError> {
    let present = match sweeps {
        true => world.reader.now(&parts(place.namespace, place.apply_set)).await?,
        false => Vec::new(),
    };
    for write in inventory.kept(place.name).writes(&text(present.iter().cloned())) {
        match write {
            Keep::Chunk { name, text } => apply(world, &part(place, &name, &text)).await?,
            Keep::Index(data) => apply(world, &first(inventory, place, &data)).await?,
            Keep::Drop { name } => remove(world, present.iter().filter(|part| part.name() == name)).await?,
        }
    }
    Ok(())
}

/// Deletes it, the one by which it is found first: what is then left is nothing that anybody believes.
///
/// # Errors
/// When a delete fails; done again it goes on.
pub(super) async fn forget(world: &World, place: &Place<'_>) -> Result<(), ClusterError> {
    let first = id(place.namespace, place.name);
    // Without it nobody knows whether there were parts.
    let sweeps = place.chunked || world.reader.cache().is_none_or(|cache| cache.get(&first).is_none());
    erase::delete_if(world, "v1", &first, false, |_| true).await?;
    if sweeps {
        let left = world.reader.now(&parts(place.namespace, place.apply_set)).await?;
        remove(world, left.iter()).await?;
    }
    Ok(())
}

async fn apply(world: &World, wanted: &Object) -> Result<(), ClusterError> {
    let live = world.writer.apply(wanted, true).await?;
    remember(world, wanted, &live);
    Ok(())
}

async fn remove(world: &World, objects: impl Iterator<Item = &Object>) -> Result<(), ClusterError> {
    for object in objects {
        world.writer.delete("v1", &object.id(), object.uid()).await?;
        if let Some(cache) = world.reader.cache() {
            cache.deleted(&object.id());
        }
    }
    Ok(())
}

fn id(namespace: &str, name: &str) -> ObjectId {
    ObjectId::new("", "ConfigMap", namespace, name)
}

fn parts(namespace: &str, apply_set: &str) -> Watch {
    Watch::new(
        "v1",
        "ConfigMap",
        namespace,
        Select::Labels(format!("{INVENTORY_LABEL}={apply_set}")),
    )
}

fn text(parts: impl Iterator<Item = Object>) -> BTreeMap<String, String> {
    parts
        .map(|part| (part.name().to_owned(), part.text(&format!("/data/{TEXT}")).to_owned()))
        .collect()
}

fn part(place: &Place<'_>, name: &str, text: &str) -> Object {
    config_map(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": place.namespace,
            "labels": {"app.kubernetes.io/managed-by": "vdo", INVENTORY_LABEL: place.apply_set},
        },
        "data": {TEXT: text},
    }))
}

/// The ConfigMap by which it is found, which is the parent of the apply set (KEP-3659).
fn first(inventory: &Inventory, place: &Place<'_>, data: &BTreeMap<String, String>) -> Object {
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
    }))
}

fn config_map(value: Value) -> Object {
    #[expect(
        clippy::expect_used,
        reason = "the literals above have a kind and a name; an empty name is refused by the API server"
    )]
    Object::new(value).expect("a ConfigMap")
}
