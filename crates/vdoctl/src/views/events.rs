// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML document of `vdoctl events`: `Events`.

use super::super::output::View;
use k8s_openapi::jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// The events of the operator, the drivers and their configuration, the oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EventsView {
    pub events: Vec<EventView>,
}

/// An event.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventView {
    pub namespace: String,
    /// The kind of the object.
    pub kind: String,
    /// The name of the object.
    pub name: String,
    /// `Normal` or `Warning`.
    pub r#type: String,
    pub reason: String,
    pub message: String,
    /// How often the event occurred.
    pub count: i64,
    /// When the event occurred last.
    pub last_seen: Option<Timestamp>,
}

impl View for EventsView {
    const KIND: &'static str = "Events";
}
