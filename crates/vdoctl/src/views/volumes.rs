// SPDX-License-Identifier: Apache-2.0
//! The document of `vdoctl doctor volumes`. A support bundle holds it, and its screen is drawn from it there too.

use super::super::output::View;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vdo_core::volumes::Finding;

/// What is wrong with volumes, and what was read to find out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct VolumesView {
    /// What was found, faults first.
    pub findings: Vec<Finding>,
    /// How many findings something has to be done about.
    pub faults: usize,
    /// How many objects of each kind were read.
    pub read: Vec<ReadView>,
    /// What could not be read, so that nothing is said about it.
    pub not_read: Vec<NotReadView>,
}

/// The objects of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReadView {
    /// The kind.
    pub kind: String,
    /// How many there are.
    pub count: usize,
}

/// A kind of objects, or a vCenter, that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct NotReadView {
    /// What it is.
    pub what: String,
    /// Why.
    pub message: String,
    /// What to do; empty where nothing has to be done.
    pub remedy: String,
}

impl View for VolumesView {
    const KIND: &'static str = "DoctorVolumes";

    fn names(&self) -> Option<Vec<String>> {
        let name = |finding: &Finding| {
            let kind = finding.kind.to_lowercase().replace(' ', "-");
            match finding.namespace.as_str() {
                "" => format!("{kind}/{}", finding.name),
                namespace => format!("{kind}/{namespace}/{}", finding.name),
            }
        };
        Some(self.findings.iter().map(name).collect())
    }
}
