// SPDX-License-Identifier: Apache-2.0
//! When an installation has nothing left to write.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;

use crate::wait::{Probe, until};

/// Half a minute after nodes have joined, the vCenter is asked about all of them once more.
const SOON: SignedDuration = SignedDuration::from_secs(45);
const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until every connection was asked after all nodes were initialised. Where nothing is installed, or nodes wait for the cloud provider,
/// there is nothing to wait for here.
pub(super) async fn until_nodes_are_known(client: &Client, namespace: &str) -> Result<()> {
    let all = async |kind: &str| -> Vec<Value> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("vdo.vmware.com", "v1alpha1", kind));
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        let found = api.list(&ListParams::default()).await;
        found.into_iter().flatten().map(|object| object.data).collect()
    };
    until("the vCenter to be asked about the nodes as they are now", PATIENCE, async || {
        let joined: Vec<Timestamp> = all("VDOConfig").await.iter().filter_map(joined_since).collect();
        let connections = all("VsphereCloudConfig").await;
        let asked: Vec<Timestamp> = connections
            .iter()
            .filter_map(|one| time(&one["status"]["probes"]["last"]))
            .collect();
        // Where the nodes were found initialised again long after they had joined, nothing is asked.
        let young = joined
            .iter()
            .filter(|joined| Timestamp::now().duration_since(**joined) < SOON)
            .max();
        let late = young.is_some_and(|joined| asked.iter().any(|asked| asked <= joined));
        Ok(Probe::when(
            !late,
            format!("nodes initialised since {joined:?}, asked at {asked:?}"),
        ))
    })
    .await
}

fn joined_since(config: &Value) -> Option<Timestamp> {
    let conditions = config["status"]["conditions"].as_array()?;
    let joined = conditions
        .iter()
        .find(|one| one["type"] == "NodesInitialized" && one["status"] == "True")?;
    time(&joined["lastTransitionTime"])
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}
