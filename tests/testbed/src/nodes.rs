// SPDX-License-Identifier: Apache-2.0
//! Nodes that kwok plays.

use anyhow::Result;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::apply::FIELD_MANAGER;
use crate::wait::{PATIENCE, Probe, until};

/// The taint of a node no cloud provider has looked at yet.
pub const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// What kind of node to add.
#[derive(Clone, Debug, Default)]
pub struct NodeOptions {
    /// The node's name; its virtual machine has the same.
    pub name: String,
    /// Whether it belongs to the control plane.
    pub control_plane: bool,
    /// Whether it waits for a cloud provider.
    pub uninitialized: bool,
}

impl NodeOptions {
    /// A worker that is ready to use.
    pub fn worker(name: &str) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// A control plane node.
    pub fn control_plane(name: &str) -> Self {
        Self {
            name: name.into(),
            control_plane: true,
            ..Self::default()
        }
    }

    /// The same node, waiting for a cloud provider.
    #[must_use]
    pub fn uninitialized(mut self) -> Self {
        self.uninitialized = true;
        self
    }

    fn manifest(&self) -> Value {
        let mut labels = json!({
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
        });
        let mut taints = Vec::new();
        if self.control_plane {
            labels["node-role.kubernetes.io/control-plane"] = json!("");
            taints.push(json!({ "key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule" }));
        }
        if self.uninitialized {
            taints.push(json!({ "key": UNINITIALIZED, "value": "true", "effect": "NoSchedule" }));
        }
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": { "name": self.name, "labels": labels, "annotations": { "kwok.x-k8s.io/node": "fake" } },
            "spec": { "taints": taints },
        })
    }
}

/// Creates the object.
pub(crate) async fn create(client: &Client, options: &NodeOptions) -> Result<()> {
    let api: Api<Node> = Api::all(client.clone());
    let params = PostParams {
        field_manager: Some(FIELD_MANAGER.into()),
        ..PostParams::default()
    };
    api.create(&params, &serde_json::from_value(options.manifest())?).await?;
    Ok(())
}

/// Adds a node and waits until it is ready.
pub(crate) async fn add(client: &Client, options: &NodeOptions) -> Result<()> {
    create(client, options).await?;
    let api: Api<Node> = Api::all(client.clone());
    until(&format!("node {}", options.name), PATIENCE, async || {
        let node = api.get(&options.name).await?;
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        if !conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True") {
            return Ok(Probe::not_yet("not Ready"));
        }
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        Ok(Probe::when(
            !taints.iter().any(|t| t.key == "node.kubernetes.io/not-ready"),
            "still tainted as not ready",
        ))
    })
    .await
}

/// Marks a node ready by hand, for clusters without kwok.
pub(crate) async fn mark_ready(client: &Client, name: &str) -> Result<()> {
    let api: Api<Node> = Api::all(client.clone());
    let status = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "TestBed", "message": "" }] } });
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}
