// SPDX-License-Identifier: Apache-2.0
//! One-shot reads of objects, lists and the server version, each with a deadline; `write.rs` has the writes.

use super::bounded_deserialize::{APPLIED, Arrived, MANAGED, METADATA, WHOLE, for_kind};
use super::request_timeout::timed;
use super::{ClusterError, Select, Watch, api};
use hyper::Request;
use hyper::header::CONNECTION;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;
use kube::api::{Api, ListParams, ObjectList};
use kube::core::Request as ApiRequest;
use serde_json::Value;
use std::ops::ControlFlow;
use vdo_api::types::{FIELD_MANAGER, KubernetesVersion, ObjectId, ParseVersionError};
use vdo_core::manifest::Object;

/// How many objects of a list are asked for at once. Where they are large, fewer come (`client::pages`).
pub(super) const PAGE: u32 = 100;

/// An object as it is now, or `None`.
///
/// # Errors
/// When the request fails for another cause than that there is no such object.
pub async fn get(client: &Client, api_version: &str, id: &ObjectId) -> Result<Option<Object>, ClusterError> {
    let api = api::<WHOLE>(client, api_version, id.kind(), &id.namespace);
    let found = timed("get", api_version, id, api.get_opt(&id.name)).await?;
    Ok(found.and_then(|found| object(found, api_version, id.kind())))
}

/// All objects that a watch of this kind would see, whole.
///
/// # Errors
/// When a request fails.
pub async fn list(client: &Client, watch: &Watch) -> Result<Vec<Object>, ClusterError> {
    all::<WHOLE>(client, watch).await
}

/// All objects that a watch of this kind would see, with what the watch would keep of them.
///
/// # Errors
/// When a request fails.
pub async fn list_kept(client: &Client, watch: &Watch) -> Result<Vec<Object>, ClusterError> {
    for_kind!(&watch.kind, FIELDS => all::<FIELDS>(client, watch).await)
}

async fn all<const FIELDS: usize>(client: &Client, watch: &Watch) -> Result<Vec<Object>, ClusterError> {
    let mut all = Vec::new();
    pages::<FIELDS>(client, watch, &params(watch), |object| {
        if watch.select.keeps(&object) {
            all.push(object);
        }
        ControlFlow::Continue(())
    })
    .await?;
    Ok(all)
}

/// Shows every object of a list, page by page, until `look` has seen enough.
///
/// # Errors
/// When a request fails.
pub(super) async fn pages<const FIELDS: usize>(
    client: &Client,
    watch: &Watch,
    params: &ListParams,
    mut look: impl FnMut(Object) -> ControlFlow<()>,
) -> Result<(), ClusterError> {
    let api = api::<FIELDS>(client, &watch.api_version, &watch.kind, &watch.namespace);
    let mut params = params.clone();
    loop {
        let page = timed("list", &watch.api_version, &watch.id(), page(client, &api, &params)).await?;
        for object in page.items.into_iter().filter_map(|item| item.object(watch)) {
            if look(object).is_break() {
                return Ok(());
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(()),
        }
    }
}

/// A page of a list. Where only metadata is read, only metadata is sent.
pub(super) async fn page<const FIELDS: usize>(
    client: &Client,
    api: &Api<Arrived<FIELDS>>,
    params: &ListParams,
) -> Result<ObjectList<Arrived<FIELDS>>, kube::Error> {
    if !matches!(FIELDS, METADATA | APPLIED) {
        return api.list(params).await;
    }
    let request = ApiRequest::new(api.resource_url()).list_metadata(params);
    let mut page: ObjectList<_> = client.request(request.map_err(kube::Error::BuildRequest)?).await?;
    page.items.iter_mut().for_each(Arrived::untyped);
    Ok(page)
}

/// An object as it is now, with the record of who wrote which field; by a list, so that the right to watch is enough.
///
/// # Errors
/// When the request fails.
pub async fn with_managers(client: &Client, api_version: &str, id: &ObjectId) -> Result<Option<Object>, ClusterError> {
    let watch = Watch::new(api_version, id.kind(), &id.namespace, Select::Name(id.name.clone()));
    Ok(all::<MANAGED>(client, &watch).await?.pop())
}

/// Those of a watch that this operator has applied, with nothing but their metadata. Labels alone are copied with an object; who
/// applied it is not.
///
/// # Errors
/// When a request fails.
pub(super) async fn list_applied(client: &Client, watch: &Watch) -> Result<Vec<Object>, ClusterError> {
    let mut found = Vec::new();
    pages::<APPLIED>(client, watch, &params(watch), |object| {
        let managers = object.value().pointer("/metadata/managedFields").and_then(Value::as_array);
        let applied = |entry: &Value| entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply";
        if managers.is_some_and(|all| all.iter().any(applied)) {
            found.push(object);
        }
        ControlFlow::Continue(())
    })
    .await?;
    Ok(found)
}

fn params(watch: &Watch) -> ListParams {
    match &watch.select {
        Select::All | Select::Drivers => ListParams::default().limit(PAGE),
        Select::Labels(selector) => ListParams::default().labels(selector).limit(PAGE),
        Select::Fields(selector) => ListParams::default().fields(selector).limit(PAGE),
        Select::Name(name) => ListParams::default().fields(&format!("metadata.name={name}")),
    }
}

/// The version of the API server. The connection is closed afterwards: behind a load balancer the next question may be answered by another
/// server.
///
/// # Errors
/// When it cannot be reached, or reports something that is not a version.
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

/// What arrived as an object of ours, of this kind unless it says another.
pub(super) fn object(found: Arrived<WHOLE>, api_version: &str, kind: &str) -> Option<Object> {
    found.typed(api_version, kind)
}
