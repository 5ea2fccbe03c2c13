// SPDX-License-Identifier: Apache-2.0
//! The checked compatibility matrix as data (`Index`): drivers, versions, ranges, features and images; `format.rs` has the file's fields.

use super::privileges::PrivilegeRules;
use super::release_dates::Released;
use crate::drivers::is_on_request;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use vdo_api::types::{ChartRef, Digest, DriverName, DriverRole, DriverVersion, VcenterVersion, VersionRange};

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
    /// What must hold before certain upgrades, in words, by the name used in [`UpgradesFrom::preconditions`].
    pub preconditions: BTreeMap<String, String>,
    /// vCenter builds whose reported version is less precise than it should be.
    pub vcenter_builds: Vec<BuildFloor>,
    /// The day of each release, as far as it is known.
    pub released: Released,
    /// Digests of images that were read in a source and not asked of a registry, by the name of the source.
    pub stated_digests: BTreeMap<String, Vec<Digest>>,
    /// What the drivers may do in a vCenter; `None`: it says nothing of that, and what this build knows holds.
    pub privileges: Option<PrivilegeRules>,
    /// The drivers by name.
    pub drivers: BTreeMap<DriverName, Driver>,
    /// Fields this build does not know, by path, with what was probably meant. A newer index may have them; a misspelt one too.
    pub unknown_fields: Vec<String>,
}

impl Index {
    /// The same index in a mirror that holds only some of its versions.
    #[must_use]
    pub fn mirrored(&self, is_here: impl Fn(&DriverName, &DriverVersion) -> bool) -> Self {
        let mut index = self.clone();
        for (name, driver) in &mut index.drivers {
            for entry in &mut driver.versions {
                entry.is_here = is_here(name, &entry.version);
            }
        }
        index
    }

    /// The drivers, without those that come only where `spec.drivers` names them.
    pub fn usual(&self) -> impl Iterator<Item = &DriverName> {
        self.drivers.keys().filter(|name| !is_on_request(name))
    }

    /// Where a digest was read, when no registry was asked for it.
    #[must_use]
    pub fn stated_in(&self, digest: &Digest) -> Option<&str> {
        let mut named = self.stated_digests.iter();
        named.find(|(_, digests)| digests.contains(digest)).map(|(name, _)| name.as_str())
    }

    /// The version a vCenter is to be compared by: 6.7 Update 3 reports 6.7.0, and only its build tells the difference.
    ///
    /// The build is the one given, or the one behind the version as in `6.7.0-14367737`.
    #[must_use]
    pub fn vcenter(&self, reported: &VcenterVersion, build: Option<&str>) -> VcenterVersion {
        let suffix = || {
            reported
                .raw()
                .split_once(['-', '+', ' '])
                .map(|(_, rest)| rest.trim_start_matches("build "))
        };
        let build = build.or_else(suffix).and_then(|text| text.trim().parse::<u64>().ok());
        let floor = build.and_then(|build| {
            let floors = self.vcenter_builds.iter();
            floors
                .filter(|floor| floor.reported.numbers() == reported.numbers() && floor.build <= build)
                .max_by_key(|floor| floor.build)
                .map(|floor| format!("{} (it reports {}, build {build})", floor.means, floor.reported))
        });
        floor.and_then(|text| text.parse().ok()).unwrap_or_else(|| reported.clone())
    }
}

/// From which build on a vCenter is newer than the version it reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildFloor {
    /// What it reports.
    pub reported: VcenterVersion,
    /// The first build that is more than that.
    pub build: u64,
    /// What it really is.
    pub means: VcenterVersion,
    /// Names of [`Source`]s.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// What else to know.
    #[serde(default)]
    pub note: Option<String>,
}

/// Where a fact was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    /// Its chart. An entry of the original format names none: it has no locations then, and is never chosen.
    pub chart: ChartRef,
    /// The container images of its chart with default values.
    pub images: Vec<Image>,
    /// Whether chart and images are where this index is read: a mirror may hold a part of its versions.
    pub is_here: bool,
    /// What many versions have in common, so they share it.
    pub facts: Arc<Facts>,
}

impl Deref for Entry {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

/// What is known of a version, beside its own name, chart and images.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Facts {
    /// Plain manifests, as the original format names them. For people to compare; never applied.
    pub manifests: Vec<String>,
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
    /// Whether it may be chosen.
    pub state: State,
}

/// A range of supported versions and why we believe it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The driver's own source or documentation.
    Primary,
    /// A third party that quotes the release notes, or a distribution that follows them.
    Secondary,
    /// No source was found yet.
    Unverified,
}

/// A driver that must be installed too.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The other driver.
    pub driver: DriverName,
    /// The oldest version that meets the requirement.
    #[serde(default)]
    pub min: Option<DriverVersion>,
    /// The newest version that meets the requirement.
    #[serde(default)]
    pub max: Option<DriverVersion>,
    /// Why the other driver is required.
    #[serde(default)]
    pub reason: Option<String>,
    /// When the requirement applies; null: always.
    #[serde(default)]
    pub when: Option<RequiredWhen>,
    /// Names of entries under `sources`.
    #[serde(default)]
    pub evidence: Vec<String>,
}

/// When another driver is required: if spec.storageProvider.features sets a feature state of the driver to a value. The requirement does
/// not apply if the feature state is not set.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RequiredWhen {
    /// The feature state.
    pub feature_state: String,
    /// The value.
    pub is: bool,
}

impl Requirement {
    /// Whether it counts where these feature states are set.
    #[must_use]
    pub fn counts(&self, states: &BTreeMap<String, bool>) -> bool {
        self.when
            .as_ref()
            .is_none_or(|when| states.get(&when.feature_state) == Some(&when.is))
    }

    /// Whether a version of the other driver will do.
    #[must_use]
    pub fn accepts(&self, version: &DriverVersion) -> bool {
        self.min.as_ref().is_none_or(|min| version >= min) && self.max.as_ref().is_none_or(|max| version <= max)
    }
}

impl fmt::Display for Requirement {
    /// `vsphere-cpi 1.33.0 and newer`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.min, &self.max) {
            (None, None) => write!(f, "{}", self.driver)?,
            (Some(min), None) => write!(f, "{} {min} and newer", self.driver)?,
            (None, Some(max)) => write!(f, "{} up to {max}", self.driver)?,
            (Some(min), Some(max)) if min == max => write!(f, "{} {min}", self.driver)?,
            (Some(min), Some(max)) => write!(f, "{} {min} to {max}", self.driver)?,
        }
        match &self.when {
            Some(RequiredWhen { feature_state, is }) => write!(f, " when {feature_state} is {is}"),
            None => Ok(()),
        }
    }
}

/// What a version can do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Feature {
    /// The vCenter versions it works with.
    pub vsphere: VersionRange,
    /// Names of [`Source`]s.
    pub evidence: Vec<String>,
    /// What else to know.
    pub note: Option<String>,
}

/// The versions from which an upgrade is supported.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpgradesFrom {
    /// The oldest version; null if no lower limit is known.
    #[serde(default)]
    pub min: Option<DriverVersion>,
    /// Names of entries under `preconditions` that must be met before the upgrade.
    #[serde(default)]
    pub preconditions: Vec<String>,
    /// An upgrade to this version is never rolled back automatically.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub irreversible: bool,
}

/// A container image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The name of the image in the chart.
    pub name: String,
    /// The reference.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The digest; null if the digest is unknown.
    #[serde(default)]
    pub digest: Option<Digest>,
}

/// Whether a version may be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
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
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
