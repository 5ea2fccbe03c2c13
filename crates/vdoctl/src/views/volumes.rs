// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML document of `vdoctl doctor volumes`: `DoctorVolumes`. `doctor volumes --from` prints the screen from it.

use super::super::output::View;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vdo_core::volume_diagnosis::Finding;

/// The problems of volumes, and the objects that were read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct VolumesView {
    /// The findings, faults first.
    pub findings: Vec<Finding>,
    /// The number of findings that have to be fixed.
    pub faults: usize,
    /// How many objects of each kind were read.
    pub read: Vec<ReadView>,
    /// The kinds of objects and the vCenters that could not be read. Their problems are unknown.
    pub not_read: Vec<NotReadView>,
}

/// The number of objects of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReadView {
    /// The kind.
    pub kind: String,
    /// The number of objects.
    pub count: usize,
}

/// A kind of objects, or a vCenter, that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct NotReadView {
    /// The kind of objects, or the vCenter.
    pub what: String,
    /// Why the kind of objects, or the vCenter, could not be read.
    pub message: String,
    /// What to do; empty if there is nothing to do.
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
