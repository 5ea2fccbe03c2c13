// SPDX-License-Identifier: Apache-2.0
//! Reads the Secret, ConfigMaps and CompatibilityConfigs that name the source of the matrix, and a matrix in ConfigMaps (effect: reads).

use super::error::ReconcileError;
use super::observe::cluster::{by_name, config_maps_watch, texts};
use super::{Mode, Ports, ReconcileInput};
use crate::cluster::{ClusterError, Reader, Select, Watch};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::ResourceExt;
use std::collections::BTreeMap;
use vdo_api::api::{API_VERSION, VDOConfig};
use vdo_core::manifest::Object;
use vdo_source::fetch::{CONFIG_MAPS, ChartRepository, ConfigMaps, Named, SOURCE_SECRET, settings};

/// The key of the list of contents, in the Secret of a matrix.
pub const CONTENTS: &str = "contents.json";
/// The key of a part, in a ConfigMap of a matrix.
pub const PART: &str = "part";

/// Follows what the cluster says of the source of the matrix. Which ConfigMap switches upgrades off, if one does, and which names a source that
/// is not followed.
pub(super) async fn follow(input: &ReconcileInput<'_>, ports: &Ports) -> Result<(Option<&'static str>, Option<String>), ReconcileError> {
    let namespace = input.config.namespace().unwrap_or_default();
    let named = match named(&ports.reader, input.config).await {
        // The user of a command need not have this right of the operator.
        Err(ClusterError::Forbidden { .. }) if input.mode == Mode::Command => return Ok((None, None)),
        named => named?,
    };
    // A command decides with the matrix that was chosen for it.
    if input.mode == Mode::Command {
        return Ok((named.frozen_by(), None));
    }
    ports.repository.follow(settings(&named));
    supply(&ports.repository, &ports.reader, &namespace).await?;
    Ok((named.frozen_by(), named.unheard().filter(|_| !ports.repository.is_fixed())))
}

/// What the cluster says of the source of the matrix. `config` is the VDOConfig whose status says which one was in use.
///
/// # Errors
/// When it cannot be read.
pub async fn named(reader: &Reader, config: &VDOConfig) -> Result<Named, ClusterError> {
    let namespace = config.namespace().unwrap_or_default();
    let (watch, secret) = (config_maps_watch(&namespace), by_name("Secret", &namespace, SOURCE_SECRET));
    let view = reader.load([watch.clone(), secret.clone()]).await?;
    let all = view.list(&watch);
    let maps = all.iter().filter(|map| CONFIG_MAPS.contains(&map.name()));
    let secret = view.one(&secret).map(|secret| decoded(&secret)).unwrap_or_default();
    let watch = Watch::new(API_VERSION, "CompatibilityConfig", &namespace, Select::All);
    let mut objects = match reader.load([watch.clone()]).await {
        Ok(view) => view.list(&watch),
        // It is of the original operator; a cluster need not have it.
        Err(ClusterError::NotServed { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    objects.sort_by_key(|object| (object.text("/metadata/creationTimestamp").to_owned(), object.name().to_owned()));
    let url = |object: &Object| (object.name().to_owned(), object.text("/spec/matrixURL").to_owned());
    let status = config.status.as_ref();
    Ok(Named {
        secret,
        maps: maps.map(|map| (map.name().to_owned(), texts(map, "/data"))).collect(),
        objects: objects.iter().map(url).collect(),
        used: status.and_then(|status| Some(status.matrix.as_ref()?.source.clone())),
    })
}

/// The texts in a Secret.
fn decoded(secret: &Object) -> BTreeMap<String, String> {
    let text = |value: String| String::from_utf8(STANDARD.decode(value).ok()?).ok();
    let all = texts(secret, "/data").into_iter();
    all.filter_map(|(key, value)| Some((key, text(value)?))).collect()
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
    let (watch, list) = (config_maps_watch(namespace), by_name("Secret", namespace, &place.name));
    let view = reader.load([watch.clone(), list.clone()]).await?;
    let list = view.one(&list);
    let mut all = view.list(&watch);
    all.retain(|map| is_of(&place, map.name()));
    let all: BTreeMap<&str, &Object> = all.iter().map(|map| (map.name(), map)).collect();
    let versions = all.iter().map(|(name, map)| format!("{name}@{}", map.resource_version()));
    let list_version = list.as_ref().map_or("", |list| list.resource_version());
    let state = versions.chain([list_version.to_owned()]).collect::<Vec<_>>().join(" ");
    repository.supply(&place, &state, || {
        let former = || all.get(&*place.name).and_then(|map| texts(map, "/data").remove(CONTENTS));
        let contents = match list.as_ref().and_then(|list| decoded(list).remove(CONTENTS)) {
            Some(contents) => Some(contents),
            // What is in there is then signed, or not used.
            None if repository.trusts_keys() => former(),
            None if former().is_some() => return Err(place.unproven()),
            None => None,
        };
        let part = |name: &str| {
            let text = all.get(name)?.value().pointer(&format!("/binaryData/{PART}"))?.as_str()?.to_owned();
            STANDARD.decode(text).ok()
        };
        place.stock(contents.as_deref(), part)
    });
    Ok(())
}

/// Whether a ConfigMap is the former list, or may be a part.
fn is_of(place: &ConfigMaps, name: &str) -> bool {
    name.strip_prefix(&*place.name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}
