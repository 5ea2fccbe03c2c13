// SPDX-License-Identifier: Apache-2.0
//! Pods that use a claim and end by themselves: as with a kubelet they start when their volumes are attached to their node, and a file
//! system grows when its volume is mounted. Nothing is mounted here, and the pods end well without running anything.

use anyhow::Result;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::view::View;

/// The annotation with which such a pod fails: what its container says at its end.
const FAILS: &str = "testbed/fails";

/// Ends the pods whose volumes are attached.
pub(super) async fn reconcile(client: &Client, view: &View) {
    for pod in view.pods().filter(|pod| is_ours(pod)) {
        if let Err(error) = end(client, pod).await {
            // The next look at the cluster tries again.
            tracing::debug!("pod {}: {error:#}", pod.name_any());
        }
    }
}

fn is_ours(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let never = spec.is_some_and(|spec| spec.restart_policy.as_deref() == Some("Never") && spec.node_name.is_some());
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    never && phase == Some("Pending") && pod.metadata.deletion_timestamp.is_none() && claims(pod).next().is_some()
}

fn claims(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.as_str()))
}

async fn end(client: &Client, pod: &Pod) -> Result<()> {
    let namespace = pod.namespace().unwrap_or_default();
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    let attachments: Api<VolumeAttachment> = Api::all(client.clone());
    let attached = attachments.list(&ListParams::default()).await?.items;
    let all: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), &namespace);
    for name in claims(pod) {
        let claim = all.get(name).await?;
        let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref());
        let is_there = |one: &VolumeAttachment| {
            let of_volume = one.spec.source.persistent_volume_name.as_deref() == volume;
            of_volume && one.spec.node_name == node && one.status.as_ref().is_some_and(|status| status.attached)
        };
        let Some(volume) = volume.filter(|_| attached.iter().any(is_there)) else {
            return Ok(());
        };
        grown(client, &all, &claim, volume).await?;
    }
    let fails = pod.annotations().get(FAILS);
    let now = Timestamp::now().to_string();
    let container = pod.spec.iter().flat_map(|spec| &spec.containers).next();
    let terminated = json!({"exitCode": i32::from(fails.is_some()), "startedAt": now, "finishedAt": now,
        "message": fails, "reason": if fails.is_some() { "Error" } else { "Completed" }});
    let container = json!({"name": container.map(|one| &one.name), "image": container.and_then(|one| one.image.as_ref()), "imageID": "",
        "ready": false, "restartCount": 0, "state": {"terminated": terminated}});
    let status = json!({"phase": if fails.is_some() { "Failed" } else { "Succeeded" }, "containerStatuses": [container]});
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    set(&pods, &pod.name_any(), status).await
}

/// The file system of a volume that is mounted has all of its size.
async fn grown(client: &Client, all: &Api<PersistentVolumeClaim>, claim: &PersistentVolumeClaim, volume: &str) -> Result<()> {
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let volume = volumes.get(volume).await?;
    let size = volume
        .spec
        .and_then(|spec| spec.capacity)
        .and_then(|all| all.get("storage").cloned());
    let known = claim.status.as_ref().and_then(|status| status.capacity.as_ref()?.get("storage"));
    if size.as_ref() == known {
        return Ok(());
    }
    let status = json!({"capacity": {"storage": size}, "conditions": [], "allocatedResourceStatuses": null});
    set(all, &claim.name_any(), status).await
}

async fn set<K>(api: &Api<K>, name: &str, status: Value) -> Result<()>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}
