// SPDX-License-Identifier: Apache-2.0
//! The fields of the index file as serde types (`RawIndex`, `RawEntry`, …), before they are checked; `index.rs` has the checked types.

use super::index::{BuildFloor, Confidence, Image, Requirement, Source, UpgradesFrom, Verdict};
use super::privileges::PrivilegeRules;
use super::release_dates::Released;
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_api::types::{Digest, DriverName, DriverRole, DriverVersion};

/// The whole, without the versions.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawIndex {
    /// Both were looked at before.
    #[serde(rename = "apiVersion")]
    pub _api_version: String,
    #[serde(rename = "kind")]
    pub _kind: String,
    pub version: u64,
    #[serde(default)]
    pub generated: Option<jiff::Timestamp>,
    #[serde(default)]
    pub expires: Option<jiff::Timestamp>,
    #[serde(default)]
    pub sources: BTreeMap<String, Source>,
    #[serde(default)]
    pub preconditions: BTreeMap<String, String>,
    #[serde(default)]
    pub vcenter_builds: Vec<BuildFloor>,
    #[serde(default)]
    pub released: Released,
    #[serde(default)]
    pub stated_digests: BTreeMap<String, Vec<Digest>>,
    #[serde(default)]
    pub privileges: Option<PrivilegeRules>,
    pub drivers: BTreeMap<DriverName, RawDriver>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDriver {
    pub role: DriverRole,
    /// They are there, and were taken out when they were read.
    #[serde(rename = "versions")]
    pub _versions: Vec<Value>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawEntry {
    pub version: DriverVersion,
    pub chart: RawChart,
    pub kubernetes: RawSupport,
    pub vsphere: RawSupport,
    #[serde(default)]
    pub requires: Vec<Requirement>,
    #[serde(default)]
    pub features: BTreeMap<String, RawFeature>,
    #[serde(default)]
    pub upgrades_from: Option<UpgradesFrom>,
    #[serde(default)]
    pub images: Vec<Image>,
    #[serde(default)]
    pub state: Option<RawState>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawChart {
    pub urls: Vec<String>,
    pub sha256: String,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSupport {
    pub min: Option<String>,
    pub max: Option<String>,
    #[serde(default)]
    pub evidence: Vec<String>,
    pub confidence: Confidence,
    #[serde(default)]
    pub note: Option<String>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFeature {
    #[serde(default)]
    pub vsphere: RawRange,
    #[serde(default)]
    pub evidence: Vec<String>,
    #[serde(default)]
    pub note: Option<String>,
}

#[derive(serde::Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRange {
    #[serde(default)]
    pub min: Option<String>,
    #[serde(default)]
    pub max: Option<String>,
}

#[derive(serde::Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum RawState {
    Deprecated(Verdict),
    Withdrawn(Verdict),
}
