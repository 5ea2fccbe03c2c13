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

/// Waits until every connection was asked after the drivers became ready, and so about nodes that have all joined. Where nothing is
/// installed, or nothing is ready, there is nothing to wait for.
pub(super) async fn until_nodes_are_known(client: &Client, namespace: &str) -> Result<()> {
    let all = async |kind: &str| -> Vec<Value> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("vdo.vmware.com", "v1alpha1", kind));
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        let found = api.list(&ListParams::default()).await;
        found.into_iter().flatten().map(|object| object.data).collect()
    };
    until("the vCenter to be asked about the nodes as they are now", PATIENCE, async || {
        let ready: Vec<Timestamp> = all("VDOConfig").await.iter().filter_map(ready_since).collect();
        let connections = all("VsphereCloudConfig").await;
        let asked: Vec<Timestamp> = connections
            .iter()
            .filter_map(|one| time(&one["status"]["probes"]["last"]))
            .collect();
        // Where drivers became ready again long after the nodes had joined, nothing is asked.
        let young = ready.iter().filter(|ready| Timestamp::now().duration_since(**ready) < SOON).max();
        let late = young.is_some_and(|ready| asked.iter().any(|asked| asked <= ready));
        Ok(Probe::when(!late, format!("ready since {ready:?}, asked at {asked:?}")))
    })
    .await
}

fn ready_since(config: &Value) -> Option<Timestamp> {
    let conditions = config["status"]["conditions"].as_array()?;
    let ready = conditions.iter().find(|one| one["type"] == "Ready" && one["status"] == "True")?;
    time(&ready["lastTransitionTime"])
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}
