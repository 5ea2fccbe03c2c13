use crate::types::{ChartRef, Digest, DriverName, DriverRole, DriverVersion, VersionRange};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A compatibility matrix, checked as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    /// Grows with every publication; a lower one than seen before is a rollback.
    pub version: u64,
    /// When it was published.
    pub generated: Option<jiff::Timestamp>,
    /// Past it the index is stale: still used, but no automatic upgrade comes from it.
    pub expires: Option<jiff::Timestamp>,
    /// Where the facts come from, by the name used as evidence.
    pub sources: BTreeMap<String, Source>,
    /// The drivers by name.
    pub drivers: BTreeMap<DriverName, Driver>,
    /// Fields this build does not know, by path. A newer index may have them; a misspelt one too.
    pub unknown_fields: Vec<String>,
}

impl Index {
    /// Whether the index is past its expiry: still good for choosing a first version, not for automatic upgrades.
    #[must_use]
    pub fn is_stale(&self, now: jiff::Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires < now)
    }
}

/// Where a fact was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The address.
    pub url: String,
    /// What it is: release-notes, code, documentation, issue, downstream.
    #[serde(default)]
    pub kind: String,
    /// What it says, in a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A driver with its versions.
#[derive(Debug, Clone, PartialEq)]
pub struct Driver {
    /// What it does for the cluster.
    pub role: DriverRole,
    /// Its versions, newest first.
    pub versions: Vec<Entry>,
}

impl Driver {
    /// The entry of one version.
    #[must_use]
    pub fn entry(&self, version: &DriverVersion) -> Option<&Entry> {
        self.versions.iter().find(|entry| entry.version == *version)
    }

    /// The closest versions there are below and above one that is not there.
    #[must_use]
    pub fn nearest(&self, version: &DriverVersion) -> Vec<DriverVersion> {
        let versions = || self.versions.iter().map(|entry| &entry.version);
        let below = versions().filter(|known| *known < version).max();
        let above = versions().filter(|known| *known > version).min();
        below.into_iter().chain(above).cloned().collect()
    }
}

/// One version of a driver.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The version.
    pub version: DriverVersion,
    /// Its chart.
    pub chart: ChartRef,
    /// The Kubernetes versions it supports.
    pub kubernetes: Support,
    /// The vCenter versions it supports.
    pub vsphere: Support,
    /// Drivers that must be installed too.
    pub requires: Vec<Requirement>,
    /// What it can do, and from which vSphere on.
    pub features: BTreeMap<String, Feature>,
    /// From which versions an upgrade is supported, when that is known.
    pub upgrades_from: Option<UpgradesFrom>,
    /// The container images of its chart with default values.
    pub images: Vec<Image>,
    /// Whether it may be chosen.
    pub state: State,
}

/// A range of supported versions and why we believe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Support {
    /// The range.
    pub range: VersionRange,
    /// Names of [`Source`]s.
    pub evidence: Vec<String>,
    /// How good the evidence is.
    pub confidence: Confidence,
    /// What else to know.
    pub note: Option<String>,
}

/// How good the evidence for a range is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The driver's own source or documentation.
    Primary,
    /// Somebody quoting the release notes, or a downstream that follows them.
    Secondary,
    /// Nothing found yet.
    Unverified,
}

/// A driver that must be installed too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The other driver.
    pub driver: DriverName,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

/// What a version can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// The vCenter versions it works with.
    pub vsphere: VersionRange,
    /// Names of [`Source`]s.
    pub evidence: Vec<String>,
}

/// From which versions an upgrade is supported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpgradesFrom {
    /// The oldest version.
    pub min: DriverVersion,
    /// Checks that must hold first, by name.
    #[serde(default)]
    pub preconditions: Vec<String>,
}

/// A container image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// Its name in the chart.
    pub name: String,
    /// The reference.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The digest, where it is known.
    #[serde(default)]
    pub digest: Option<Digest>,
}

/// Whether a version may be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum State {
    /// Yes.
    #[default]
    Good,
    /// Yes, but something better exists.
    Deprecated(Verdict),
    /// Never.
    Withdrawn(Verdict),
}

/// Why a version is deprecated or withdrawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Why.
    pub reason: String,
    /// Since which day.
    #[serde(default)]
    pub since: Option<String>,
    /// What to use instead.
    #[serde(default, rename = "use")]
    pub instead: Option<DriverVersion>,
}
