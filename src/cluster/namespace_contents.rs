// SPDX-License-Identifier: Apache-2.0
//! Lists the objects of every kind in a namespace, without those that Kubernetes or an owner creates, for `vdoctl delete`.

use super::bounded_deserialize::{Arrived, METADATA};
use super::read::page;
use super::request_timeout::timed;
use super::{ClusterError, Select, Watch};
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::Client;
use kube::api::{Api, ApiResource, ListParams};
use kube::core::discovery::verbs;
use kube::discovery::{Discovery, Scope};
use vdo_api::types::ObjectId;
use vdo_core::manifest::Object;

/// Requests that are under way at the same time.
const CONCURRENCY: usize = 4;
/// How many objects of a kind are looked at: more are not named anyway.
const OF_A_KIND: u32 = 50;

/// The metadata of everything in a namespace that was put there: without what its owner or Kubernetes makes.
///
/// # Errors
/// When a kind cannot be listed: half of what is there is not enough to decide by.
pub async fn contents(client: &Client, namespace: &str) -> Result<Vec<Object>, ClusterError> {
    let kinds = namespaced(client).await?;
    let found: Vec<Vec<Object>> = stream::iter(kinds)
        .map(|kind| listed(client, namespace, kind))
        .buffered(CONCURRENCY)
        .try_collect()
        .await?;
    Ok(found.into_iter().flatten().filter(|object| !is_made(object)).collect())
}

/// The kinds of objects that a namespace can hold.
async fn namespaced(client: &Client) -> Result<Vec<ApiResource>, ClusterError> {
    let id = ObjectId::new("", "APIGroup", "", "");
    let served = async {
        match Discovery::new(client.clone()).run_aggregated().await {
            Ok(found) => Ok(found),
            // Before Kubernetes 1.30 it may be off.
            Err(_) => Discovery::new(client.clone()).run().await,
        }
    };
    let served = timed("list", "v1", &id, served).await?;
    let all = served.groups().flat_map(|group| group.recommended_resources());
    let kept = all
        .filter(|(_, can)| can.scope == Scope::Namespaced && can.supports_operation(verbs::LIST) && can.supports_operation(verbs::DELETE));
    Ok(kept.map(|(kind, _)| kind).collect())
}

async fn listed(client: &Client, namespace: &str, kind: ApiResource) -> Result<Vec<Object>, ClusterError> {
    let watch = Watch::new(&kind.api_version, &kind.kind, namespace, Select::All);
    let api: Api<Arrived<METADATA>> = Api::namespaced_with(client.clone(), namespace, &kind);
    let few = ListParams::default().limit(OF_A_KIND);
    match timed("list", &kind.api_version, &watch.id(), page(client, &api, &few)).await {
        Ok(found) => Ok(found.items.into_iter().filter_map(|item| item.object(&watch)).collect()),
        // It went away meanwhile.
        Err(ClusterError::NotServed { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Whether Kubernetes, or the owner of an object, makes it.
fn is_made(object: &Object) -> bool {
    let id = (object.kind(), object.name());
    let owned = object
        .value()
        .pointer("/metadata/ownerReferences")
        .and_then(serde_json::Value::as_array)
        .is_some_and(|owners| !owners.is_empty());
    owned || object.kind() == "Event" || matches!(id, ("ServiceAccount", "default") | ("ConfigMap", "kube-root-ca.crt"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn object_made_by_kubernetes_or_its_owner_is_not_content() {
        let object = |kind: &str, name: &str, owners: serde_json::Value| {
            let value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "n", "ownerReferences": owners}});
            Object::new(value).expect("an object")
        };
        for (made, kind, name, owners) in [
            (true, "ServiceAccount", "default", json!(null)),
            (true, "ConfigMap", "kube-root-ca.crt", json!(null)),
            (true, "Event", "x", json!(null)),
            (true, "Pod", "x", json!([{"kind": "ReplicaSet", "name": "y"}])),
            (false, "Pod", "x", json!([])),
            (false, "Secret", "credentials", json!(null)),
            (false, "ServiceAccount", "mine", json!(null)),
        ] {
            assert_eq!(is_made(&object(kind, name, owners)), made, "{kind} {name}");
        }
    }
}
