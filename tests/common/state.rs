// SPDX-License-Identifier: Apache-2.0
//! The state that the operator keeps in a Secret, as the tests read and change it.

use super::{Bed, NS};
use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use vdo_api::api::STATE;
use vdo_source::fetch::SOURCE_SECRET;

impl Bed {
    /// Has the operator take its matrix from there, as `vdoctl configure matrix` does.
    pub async fn name_source(&self, source: &str) -> Result<()> {
        let metadata = json!({"name": SOURCE_SECRET, "namespace": NS});
        let data = json!({"source": STANDARD.encode(source)});
        self.apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}))
            .await
    }

    /// Changes the status of a VDOConfig, as only an operator and an administrator may.
    pub async fn merge_status(&self, config: &str, change: Value) -> Result<()> {
        let api = self.api("vdo.vmware.com/v1alpha1", "VDOConfig", NS);
        api.patch_status(config, &PatchParams::default(), &Patch::Merge(change)).await?;
        Ok(())
    }

    /// Makes a ConfigMap in the operator's namespace, as anyone may who may write them.
    pub async fn make_map(&self, name: &str, content: Value) -> Result<()> {
        let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NS}});
        for (key, value) in content.as_object().into_iter().flatten() {
            match key.as_str() {
                "labels" => map["metadata"]["labels"] = value.clone(),
                key => map[key] = value.clone(),
            }
        }
        self.apply(&map).await
    }

    /// The Secret with the operator's state as [`unpacked`] gives it. Null where it is not there.
    pub async fn state(&self) -> Result<Value> {
        unpacked(self.get("v1", "Secret", NS, STATE).await?)
    }

    /// Merges a change, written as [`Self::state`] gives it, into that Secret.
    pub async fn merge_state(&self, change: Value) -> Result<()> {
        let now = self.state().await?;
        let mut data = serde_json::Map::new();
        for (part, is_text) in [("data", true), ("binaryData", false)] {
            let Some(wanted) = change.get(part) else { continue };
            let Some(wanted) = wanted.as_object() else {
                let all = now[part].as_object().into_iter().flatten();
                data.extend(all.map(|(key, _)| (key.clone(), Value::Null)));
                continue;
            };
            for (key, value) in wanted {
                let value = match value.as_str() {
                    Some(text) if is_text => STANDARD.encode(text).into(),
                    _ => value.clone(),
                };
                data.insert(key.clone(), value);
            }
        }
        self.merge("v1", "Secret", NS, STATE, json!({"data": data})).await
    }
}

/// A Secret with the operator's state: its texts under `data`, what is packed under `binaryData`, as base64.
pub fn unpacked(mut secret: Value) -> Result<Value> {
    let Some(all) = secret["data"].as_object().cloned() else {
        return Ok(secret);
    };
    let (mut texts, mut packed) = (json!({}), json!({}));
    for (key, value) in all {
        if key.ends_with(".json.gz") {
            packed[key] = value;
        } else {
            texts[key] = String::from_utf8(STANDARD.decode(value.as_str().unwrap_or_default())?)?.into();
        }
    }
    (secret["data"], secret["binaryData"]) = (texts, packed);
    Ok(secret)
}
