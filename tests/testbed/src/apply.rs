// SPDX-License-Identifier: Apache-2.0
//! Applies manifests as `kubectl apply --server-side` does.

use anyhow::{Context, Result, anyhow};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Client, ResourceExt};
use serde_json::Value;

use crate::wait::{PATIENCE, Probe, until};

/// The name under which the test bed owns fields.
pub const FIELD_MANAGER: &str = "vdo-testbed";

/// Applies every document of `yaml`, in its order, and waits until definitions are established.
pub async fn apply(client: &Client, yaml: &str) -> Result<Vec<DynamicObject>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).map_err(|error| anyhow!("manifest: {error}"))?;
    let mut applied = Vec::new();
    for document in documents {
        match document.get("items").and_then(Value::as_array) {
            Some(items) if document["kind"] == "List" => {
                for item in items {
                    applied.push(apply_one(client, item).await?);
                }
            }
            _ if document.is_null() => {}
            _ => applied.push(apply_one(client, &document).await?),
        }
    }
    Ok(applied)
}

async fn apply_one(client: &Client, document: &Value) -> Result<DynamicObject> {
    let object: DynamicObject = serde_json::from_value(document.clone()).context("a document of the manifest is not an object")?;
    let types = object.types.clone().context("a document of the manifest has no kind")?;
    let kind = GroupVersionKind::try_from(&types).map_err(|error| anyhow!("apiVersion {}: {error}", types.api_version))?;
    let what = format!("{} {}", types.kind, object.name_any());
    let (resource, capabilities) = pinned_kind(client, &kind).await.with_context(|| what.clone())?;
    let api: Api<DynamicObject> = match (&capabilities.scope, object.namespace()) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
        (Scope::Namespaced, namespace) => Api::namespaced_with(client.clone(), namespace.as_deref().unwrap_or("default"), &resource),
    };
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let applied = api
        .patch(&object.name_any(), &params, &Patch::Apply(document))
        .await
        .with_context(|| what.clone())?;
    if types.kind == "CustomResourceDefinition" {
        established(client, &object.name_any()).await?;
    }
    Ok(applied)
}

/// Waits until a definition is established and its objects can be asked for, which the API server brings about a little later.
async fn established(client: &Client, name: &str) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    until(&format!("definition {name}"), PATIENCE, async || {
        let definition = api.get(name).await?;
        let conditions = definition.status.and_then(|status| status.conditions).unwrap_or_default();
        let ready = conditions
            .iter()
            .any(|condition| condition.type_ == "Established" && condition.status == "True");
        if !ready {
            return Ok(Probe::not_yet("not Established"));
        }
        let spec = &definition.spec;
        for version in spec.versions.iter().filter(|version| version.served) {
            let address = format!("/apis/{}/{}/{}?limit=1", spec.group, version.name, spec.names.plural);
            if let Err(error) = client.request_text(http::Request::get(&address).body(Vec::new())?).await {
                return Ok(Probe::not_yet(format!("{address}: {error}")));
            }
        }
        Ok(Probe::Ready(()))
    })
    .await
}
