//! Lists of many objects of which few fields are of interest: in large pages, and as types that have these fields alone.

use super::arrived::WHOLE;
use super::read::timed;
use super::{ClusterError, api};
use kube::Client;
use kube::api::{ListParams, ObjectList};
use kube::core::Request;
use serde::de::DeserializeOwned;
use vdo_api::types::ObjectId;

/// Objects of a page. A claim, a volume or an attachment has two to three kilobytes; pages that are too large become smaller by themselves.
const PAGE: u32 = 1_700;

/// All objects of a kind in all namespaces that a field selector shows; an empty one shows every object.
///
/// # Errors
/// When a request fails.
pub async fn list_as<T: DeserializeOwned + Clone>(
    client: &Client,
    api_version: &str,
    kind: &str,
    selector: &str,
) -> Result<Vec<T>, ClusterError> {
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let id = ObjectId::new(group, kind, "", "");
    let resource = api::<WHOLE>(client, api_version, kind, "");
    let mut params = ListParams::default().limit(PAGE);
    if !selector.is_empty() {
        params = params.fields(selector);
    }
    let mut all = Vec::new();
    loop {
        let request = Request::new(resource.resource_url())
            .list(&params)
            .map_err(kube::Error::BuildRequest);
        let page = async { client.request::<ObjectList<T>>(request?).await };
        let page = timed("list", api_version, &id, page).await?;
        all.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(all),
        }
    }
}
