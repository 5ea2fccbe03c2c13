// SPDX-License-Identifier: Apache-2.0
//! A tool that applies objects as Flux and Argo CD do: server-side, with a manager of its own and without force, and what is refused once more.

use anyhow::{Context, Result, anyhow, bail};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, ValidationDirective};
use serde_json::Value;
use std::cell::RefCell;
use vdo_testbed::{PATIENCE, Probe, until};

/// The tool in a cluster.
pub struct Tool {
    client: Client,
    manager: &'static str,
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Its kind and name, for messages.
pub fn name(object: &Value) -> String {
    format!("{} {}", text(object, "/kind"), text(object, "/metadata/name"))
}

impl Tool {
    pub fn new(client: Client, manager: &'static str) -> Self {
        Self { client, manager }
    }

    fn api(&self, object: &Value) -> Api<DynamicObject> {
        let (group, version) = text(object, "/apiVersion")
            .rsplit_once('/')
            .unwrap_or(("", text(object, "/apiVersion")));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text(object, "/kind")));
        match text(object, "/metadata/namespace") {
            "" => Api::all_with(self.client.clone(), &resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, &resource),
        }
    }

    /// The object as it is stored.
    pub async fn live(&self, object: &Value) -> Result<Value> {
        let live = self.api(object).get(text(object, "/metadata/name")).await;
        Ok(serde_json::to_value(live.with_context(|| name(object))?)?)
    }

    /// `None` where the API server does not know the kind or the namespace yet.
    async fn try_apply(&self, object: &Value) -> Result<Option<()>> {
        let mut params = PatchParams::apply(self.manager);
        params.field_validation = Some(ValidationDirective::Strict);
        let (api, patch) = (self.api(object), Patch::Apply(object));
        match api.patch(text(object, "/metadata/name"), &params, &patch).await {
            Ok(_) => Ok(Some(())),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(anyhow!(error).context(name(object))),
        }
    }

    /// Applies all of them in this order, and what is too early again; how many were refused at first.
    pub async fn apply(&self, objects: &[Value]) -> Result<usize> {
        let left = RefCell::new(objects.to_vec());
        let early = RefCell::new(None);
        until("the API server to take every object", PATIENCE, async || {
            let mut refused = Vec::new();
            for object in left.take() {
                if self.try_apply(&object).await?.is_none() {
                    refused.push(object);
                }
            }
            let names: Vec<String> = refused.iter().map(name).collect();
            let mut first = early.borrow_mut();
            first.get_or_insert(names.len());
            drop(first);
            left.replace(refused);
            Ok(Probe::when(names.is_empty(), names.join(", ")))
        })
        .await?;
        early.into_inner().context("no attempt")
    }

    /// The generation of each.
    pub async fn generations(&self, objects: &[Value]) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        for object in objects {
            let live = self.live(object).await?;
            if live["metadata"]["deletionTimestamp"].is_string() {
                bail!("{} is being deleted", name(object));
            }
            all.push(serde_json::json!([live["metadata"]["uid"], live["metadata"]["generation"]]));
        }
        Ok(all)
    }
}

/// Another order for each seed.
pub fn shuffled(objects: &[Value], seed: u64) -> Vec<Value> {
    use sha2::{Digest as _, Sha256};
    let mut all: Vec<(Vec<u8>, &Value)> = objects
        .iter()
        .map(|object| (Sha256::digest(format!("{seed} {object}")).to_vec(), object))
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all.into_iter().map(|(_, object)| object.clone()).collect()
}
