use super::{ClusterError, Select, Watch, api};
use crate::manifest::Object;
use crate::types::{FIELD_MANAGER, KubernetesVersion, ObjectId, ParseVersionError};
use hyper::Request;
use hyper::header::CONNECTION;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;
use kube::api::{DynamicObject, ListParams};
use kube::core::PartialObjectMeta;
use std::time::Duration;

/// The deadline of a single request.
pub(super) const DEADLINE: Duration = Duration::from_secs(15);

/// Runs a request with the deadline.
pub(super) async fn timed<T>(
    verb: &str,
    api_version: &str,
    id: &ObjectId,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, ClusterError> {
    match tokio::time::timeout(DEADLINE, request).await {
        Ok(result) => result.map_err(|error| ClusterError::of(verb, api_version, id, error)),
        Err(_) => Err(ClusterError::TimedOut {
            verb: verb.into(),
            what: id.to_string(),
            after: DEADLINE,
        }),
    }
}

/// An object as it is now, or `None`.
///
/// # Errors
/// When the request fails for another cause than that there is no such object.
pub async fn get(client: &Client, api_version: &str, id: &ObjectId) -> Result<Option<Object>, ClusterError> {
    let api = api(client, api_version, id.kind(), &id.namespace);
    Ok(timed("get", api_version, id, api.get_opt(&id.name)).await?.and_then(object))
}

/// All objects that a watch of this kind would see.
///
/// # Errors
/// When the request fails.
pub async fn list(client: &Client, watch: &Watch) -> Result<Vec<Object>, ClusterError> {
    let api = api(client, &watch.api_version, &watch.kind, &watch.namespace);
    let found = timed("list", &watch.api_version, &watch.id(), api.list(&params(watch))).await?;
    Ok(found.items.into_iter().filter_map(|item| typed(item, watch)).collect())
}

/// An object as it is now, with the record of who wrote which field; by a list, so that the right to watch is enough.
///
/// # Errors
/// When the request fails.
pub async fn with_managers(client: &Client, api_version: &str, id: &ObjectId) -> Result<Option<Object>, ClusterError> {
    let api = api(client, api_version, id.kind(), &id.namespace);
    let watch = Watch::new(api_version, id.kind(), &id.namespace, Select::Name(id.name.clone()));
    let found = timed("list", api_version, id, api.list(&params(&watch))).await?.items.pop();
    Ok(found.and_then(|mut found| {
        found.types.get_or_insert_with(|| watch.types());
        serde_json::to_value(found).ok().and_then(|value| Object::new(value).ok())
    }))
}

/// Those of a watch that this operator has applied, with nothing but their metadata. Labels alone are copied with an object; who
/// applied it is not.
///
/// # Errors
/// When the request fails.
pub(super) async fn list_applied(client: &Client, watch: &Watch) -> Result<Vec<Object>, ClusterError> {
    let api = api(client, &watch.api_version, &watch.kind, &watch.namespace);
    let found = timed("list", &watch.api_version, &watch.id(), api.list_metadata(&params(watch))).await?;
    let ours = |item: &PartialObjectMeta<DynamicObject>| {
        let managers = item.metadata.managed_fields.as_deref().unwrap_or_default();
        let applied = |m: &ManagedFieldsEntry| m.manager.as_deref() == Some(FIELD_MANAGER) && m.operation.as_deref() == Some("Apply");
        managers.iter().any(applied)
    };
    let items = found.items.into_iter().filter(ours);
    Ok(items.filter_map(|item| typed(bare(item), watch)).collect())
}

pub(super) fn bare(item: PartialObjectMeta<DynamicObject>) -> DynamicObject {
    DynamicObject {
        types: None,
        metadata: item.metadata,
        data: serde_json::json!({}),
    }
}

fn params(watch: &Watch) -> ListParams {
    match &watch.select {
        Select::All => ListParams::default(),
        Select::Labels(selector) => ListParams::default().labels(selector),
        Select::Name(name) => ListParams::default().fields(&format!("metadata.name={name}")),
    }
}

/// Items of a list do not say what they are.
pub(super) fn typed(mut item: DynamicObject, watch: &Watch) -> Option<Object> {
    item.types.get_or_insert_with(|| watch.types());
    object(item)
}

/// The version of the API server. The connection is closed afterwards: behind a load balancer the next question may be answered by another
/// server.
///
/// # Errors
/// When it cannot be reached, or reports something that is no version.
pub async fn server_version(client: &Client) -> Result<KubernetesVersion, ClusterError> {
    let id = ObjectId::new("", "Version", "", "of the API server");
    let unusable = |source| ClusterError::Unavailable {
        verb: "get".into(),
        what: "the version of the API server".into(),
        source,
    };
    let request = Request::get("/version").header(CONNECTION, "close").body(Vec::new());
    let request = request.map_err(|error| unusable(error.into()))?;
    let info = timed("get", "v1", &id, client.request::<Info>(request)).await?;
    info.git_version.parse().map_err(|error: ParseVersionError| unusable(error.into()))
}

/// A dynamic object as ours, without the record of field managers, which is large and not looked at.
pub(super) fn object(mut found: DynamicObject) -> Option<Object> {
    found.metadata.managed_fields = None;
    serde_json::to_value(found).ok().and_then(|value| Object::new(value).ok())
}
