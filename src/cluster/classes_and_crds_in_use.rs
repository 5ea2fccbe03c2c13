// SPDX-License-Identifier: Apache-2.0
//! Whether an object uses a StorageClass, VolumeSnapshotClass or CRD that is to be deleted; reads the cluster.

use super::bounded_deserialize::{Arrived, CLASS, METADATA};
use super::request_timeout::timed;
use super::{ClusterError, Select, Watch, read, resource};
use kube::api::{Api, ListParams};
use kube::{Client, Resource};
use serde_json::Value;
use std::ops::ControlFlow;
use vdo_api::types::ObjectId;

/// What depends on a class or a definition, in words that follow the name of the object; `None` when
/// nothing does. Asked only before such an object is deleted.
///
/// # Errors
/// When it cannot be found out: then the object must stay.
pub async fn holder(client: &Client, id: &ObjectId) -> Result<Option<String>, ClusterError> {
    match id.kind() {
        "StorageClass" => user(client, &[("v1", "PersistentVolume"), ("v1", "PersistentVolumeClaim")], &id.name).await,
        "VolumeSnapshotClass" => user(client, &[("snapshot.storage.k8s.io/v1", "VolumeSnapshotContent")], &id.name).await,
        "CustomResourceDefinition" => instance(client, &id.name).await,
        _ => Ok(None),
    }
}

/// An object of these API versions and kinds that names a class.
async fn user(client: &Client, kinds: &[(&str, &str)], class: &str) -> Result<Option<String>, ClusterError> {
    for (api_version, kind) in kinds {
        let mut user = None;
        let watch = Watch::new(*api_version, *kind, "", Select::All);
        let params = ListParams::default().limit(read::PAGE);
        let found = read::pages::<CLASS>(client, &watch, &params, |object| {
            let uses = ["/spec/storageClassName", "/spec/volumeSnapshotClassName"]
                .map(|field| object.text(field))
                .contains(&class)
                || object.annotation("volume.beta.kubernetes.io/storage-class") == Some(class);
            if uses {
                user = Some(format!("{object} uses it"));
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        match found.await {
            // Snapshots are served only where their definitions are.
            Err(ClusterError::NotServed { .. }) => {}
            found => found?,
        }
        if user.is_some() {
            return Ok(user);
        }
    }
    Ok(None)
}

/// An instance of a definition.
async fn instance(client: &Client, name: &str) -> Result<Option<String>, ClusterError> {
    let watch = Watch::new(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "",
        Select::Name(name.to_owned()),
    );
    let Some(definition) = read::list(client, &watch).await?.pop() else {
        return Ok(None);
    };
    let versions = definition.value().pointer("/spec/versions").and_then(Value::as_array);
    let Some(version) = versions.into_iter().flatten().find(|version| version["served"] == true) else {
        return Ok(Some(
            "none of its versions is served, so the operator cannot check whether it has objects".into(),
        ));
    };
    let api_version = format!(
        "{}/{}",
        definition.text("/spec/group"),
        version["name"].as_str().unwrap_or_default()
    );
    let mut kind = resource(&api_version, definition.text("/spec/names/kind"));
    definition.text("/spec/names/plural").clone_into(&mut kind.plural);
    let api: Api<Arrived<METADATA>> = Api::all_with(client.clone(), &kind);
    let id = ObjectId::new(definition.text("/spec/group"), &kind.kind, "", "");
    let found = timed("list", &api_version, &id, read::page(client, &api, &ListParams::default().limit(1))).await?;
    let first = found.items.first().and_then(|item| item.meta().name.clone());
    Ok(first.map(|first| format!("it has objects, for example {first}")))
}
