// SPDX-License-Identifier: Apache-2.0
//! What must be the same however an end was reached, and what must not have happened on the way.

use crate::common::state::unpacked;
use crate::common::{Bed, KINDS, NS, name};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vdo_api::api::STATE_TYPE;
use vdo_testbed::Handled;

/// Everything the operator has made and said, without identities, versions and times.
#[derive(Clone, Debug, PartialEq)]
pub struct State(BTreeMap<String, Value>);

impl State {
    /// As it is now.
    pub async fn of(bed: &Bed) -> Result<Self> {
        let mut all = BTreeMap::new();
        for (api_version, kind) in KINDS {
            for mut object in bed.list(api_version, kind, "app.kubernetes.io/managed-by=vdo").await? {
                object["apiVersion"] = api_version.into();
                object["kind"] = kind.into();
                let key = name(&object);
                let object = if object["type"] == STATE_TYPE { unpacked(object)? } else { object };
                all.insert(key, normal(object)?);
            }
        }
        let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        if config != Value::Null {
            all.insert("VDOConfig".into(), said(&config));
        }
        Ok(Self(all))
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Fails with the first difference.
    pub fn same(&self, found: &Self) -> Result<()> {
        let keys = |state: &Self| state.0.keys().cloned().collect::<Vec<_>>();
        ensure!(
            keys(self) == keys(found),
            "other objects: {:?} instead of {:?}",
            keys(found),
            keys(self)
        );
        for (key, wanted) in &self.0 {
            let found = &found.0[key];
            ensure!(found == wanted, "{key} differs:\nfound  {found}\nwanted {wanted}");
        }
        Ok(())
    }
}

/// An object without identity, version, times and what only counts.
fn normal(mut object: Value) -> Result<Value> {
    let map = object.as_object_mut().context("an object")?;
    map.shift_remove("status");
    let metadata = map["metadata"].as_object_mut().context("metadata")?;
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
        metadata.shift_remove(field);
    }
    // Who owns which fields is part of the end; when is not. Controllers write their part when they come to it.
    if let Some(managed) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) {
        managed.retain(|entry| entry["manager"] == "vdo");
        for entry in managed {
            entry.as_object_mut().context("an entry")?.shift_remove("time");
        }
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.shift_remove("deployment.kubernetes.io/revision");
        annotations.shift_remove("deprecated.daemonset.template.generation");
    }
    if let Some(spec) = map.get_mut("spec").and_then(Value::as_object_mut) {
        spec.shift_remove("clusterIP");
        spec.shift_remove("clusterIPs");
    }
    if let Some(text) = object.pointer("/data/objects").and_then(Value::as_str) {
        let mut lines: Vec<Value> = serde_json::from_str(text)?;
        for line in &mut lines {
            // Whether it is known counts, not what it is.
            line["uid"] = line["uid"].is_string().into();
        }
        object["data"]["objects"] = json!(lines);
    }
    if let Some(text) = object.pointer("/data/history").and_then(Value::as_str) {
        object["data"]["history"] = newest(text)?;
        // Objects of revisions are named by their digest.
        object.as_object_mut().context("an object")?.shift_remove("binaryData");
        let fields = object
            .pointer_mut("/metadata/managedFields/0/fieldsV1/f:data")
            .and_then(Value::as_object_mut);
        let fields = fields.context("the fields of the operator")?;
        fields.retain(|field, _| !field.ends_with(".json.gz"));
    }
    Ok(object)
}

/// What the history says of the state that each driver is in. Which states were before differs from turn to turn.
fn newest(history: &str) -> Result<Value> {
    let history: BTreeMap<String, Vec<Value>> = serde_json::from_str(history)?;
    let mut states = BTreeMap::new();
    for (driver, mut revisions) in history {
        let twice = revisions.windows(2).find(|two| two[0]["target"] == two[1]["target"]);
        ensure!(twice.is_none(), "one change of {driver} is two revisions: {twice:?}");
        let mut newest = revisions.pop().context("a revision")?;
        let fields = newest.as_object_mut().context("a revision")?;
        fields.retain(|name, _| {
            matches!(
                name.as_str(),
                "version" | "chart" | "configuration" | "target" | "outcome" | "failure"
            )
        });
        states.insert(driver, newest);
    }
    Ok(json!(states))
}

/// What the status says, without times and wording.
fn said(config: &Value) -> Value {
    let conditions: BTreeMap<String, String> = config["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|c| {
            let text = |key: &str| c[key].as_str().unwrap_or_default().to_owned();
            (text("type"), format!("{} {}", text("status"), text("reason")))
        })
        .collect();
    let mut drivers = config["status"]["drivers"].clone();
    for driver in drivers.as_array_mut().into_iter().flatten() {
        // How many there were before differs from turn to turn.
        driver["revision"] = driver["revision"].is_u64().into();
    }
    json!({
        "finalizers": config["metadata"]["finalizers"],
        "conditions": conditions,
        "health": config["status"]["health"],
        "drivers": drivers,
        "clusterId": config["status"]["clusterId"],
    })
}

/// Fails if an object was created or deleted more than once, of all requests that the API server has answered.
pub fn nothing_twice(handled: &[Handled]) -> Result<()> {
    let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for done in handled
        .iter()
        .filter(|h| h.call.writes() && !matches!(h.call.resource.as_str(), "events" | "leases"))
    {
        let what = match (done.call.verb, done.code) {
            (_, Some(201)) => "created",
            ("delete", Some(200 | 202)) => "deleted",
            _ => continue,
        };
        let object = format!("{} {}/{}", done.call.resource, done.call.namespace, done.call.name);
        *counts.entry((what, object)).or_default() += 1;
    }
    let twice: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
    ensure!(twice.is_empty(), "more than once: {twice:?}");
    Ok(())
}
