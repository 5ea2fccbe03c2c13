// SPDX-License-Identifier: Apache-2.0
//! Asks the API server by discovery which of some kinds it does not serve.

use super::ClusterError;
use super::request_timeout::timed;
use kube::Client;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::ObjectId;

/// Of these API versions and kinds those that the API server does not serve.
///
/// # Errors
/// When it cannot be asked.
pub async fn unserved<'a>(
    client: &Client,
    kinds: impl IntoIterator<Item = &'a (String, String)>,
) -> Result<BTreeSet<(String, String)>, ClusterError> {
    let mut by_version: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (api_version, kind) in kinds {
        by_version.entry(api_version).or_default().insert(kind);
    }
    let mut missing = BTreeSet::new();
    for (api_version, kinds) in by_version {
        let id = ObjectId::new("", "APIResourceList", "", "");
        let request = async {
            match api_version.contains('/') {
                true => client.list_api_group_resources(api_version).await,
                false => client.list_core_api_resources(api_version).await,
            }
        };
        let served = match timed("list", api_version, &id, request).await {
            Ok(found) => found.resources,
            Err(ClusterError::NotServed { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        let lacks = |kind: &&str| !served.iter().any(|resource| resource.kind == *kind);
        let lacking = kinds.into_iter().filter(lacks);
        missing.extend(lacking.map(|kind| (api_version.to_owned(), kind.to_owned())));
    }
    Ok(missing)
}
