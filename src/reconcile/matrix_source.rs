//! Where the matrix comes from by what the cluster says, and what of it is in the cluster (effects: reads only).

use super::observe::cluster::{config_maps_watch, texts};
use crate::api::API_VERSION;
use crate::cluster::{ClusterError, Reader, Select, Watch};
use crate::fetch::{CONFIG_MAPS, ChartRepository, ConfigMaps, Named};
use crate::manifest::Object;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;

/// The key of the list of contents, in the first ConfigMap of a matrix.
pub const CONTENTS: &str = "contents.json";
/// The key of a part.
pub const PART: &str = "part";

/// What the cluster says of the source of the matrix.
///
/// # Errors
/// When it cannot be read.
pub async fn named(reader: &Reader, namespace: &str) -> Result<Named, ClusterError> {
    let watch = config_maps_watch(namespace);
    let all = reader.load([watch.clone()]).await?.list(&watch);
    let maps = all.iter().filter(|map| CONFIG_MAPS.contains(&map.name()));
    let watch = Watch::new(API_VERSION, "CompatibilityConfig", namespace, Select::All);
    let mut objects = match reader.load([watch.clone()]).await {
        Ok(view) => view.list(&watch),
        // It is of the original operator; a cluster need not have it.
        Err(ClusterError::NotServed { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    objects.sort_by_key(|object| (object.text("/metadata/creationTimestamp").to_owned(), object.name().to_owned()));
    let url = |object: &Object| (object.name().to_owned(), object.text("/spec/matrixURL").to_owned());
    Ok(Named {
        maps: maps.map(|map| (map.name().to_owned(), texts(map, "/data"))).collect(),
        objects: objects.iter().map(url).collect(),
    })
}

/// Hands the library what the ConfigMaps of its source hold, if they are its source. Only the namespace of the operator is read.
///
/// # Errors
/// When it cannot be read.
pub async fn supply(repository: &ChartRepository, reader: &Reader, namespace: &str) -> Result<(), ClusterError> {
    let Some(place) = repository.config_maps() else { return Ok(()) };
    if place.namespace != namespace {
        repository.supply(&place, "", || Err(place.elsewhere(namespace)));
        return Ok(());
    }
    let watch = config_maps_watch(namespace);
    let mut all = reader.load([watch.clone()]).await?.list(&watch);
    all.retain(|map| is_of(&place, map.name()));
    let all: BTreeMap<&str, &Object> = all.iter().map(|map| (map.name(), map)).collect();
    let versions = all.iter().map(|(name, map)| format!("{name}@{}", map.resource_version()));
    let state = versions.collect::<Vec<_>>().join(" ");
    repository.supply(&place, &state, || {
        let contents = all.get(&*place.name).and_then(|map| texts(map, "/data").remove(CONTENTS));
        let part = |name: &str| {
            let text = all.get(name)?.look().pointer(&format!("/binaryData/{PART}"))?.as_str()?.to_owned();
            STANDARD.decode(text).ok()
        };
        place.stock(contents.as_deref(), part)
    });
    Ok(())
}

/// Whether a ConfigMap is the first one, or may be a part.
fn is_of(place: &ConfigMaps, name: &str) -> bool {
    name.strip_prefix(&*place.name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}
