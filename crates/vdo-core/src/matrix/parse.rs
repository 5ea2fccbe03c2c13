// SPDX-License-Identifier: Apache-2.0
//! Parses the bytes of an index into a checked [`Index`], and has every error of that (`IndexError`); `stream.rs` reads the text.
//! Everything is checked here, so other code needs no checks of an index.

use super::format::{RawEntry, RawIndex, RawState, RawSupport};
use super::index::{Driver, Entry, Facts, Feature, Index, Source, State, Support};
use super::stream::{self, Document};
use super::{legacy_format, schema};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vdo_api::types::{ChartRef, DriverName, Remedy, VersionRange};
use vdo_api::yaml::YamlError;

const API_VERSION: &str = "vdo.vmware.com/matrix/v1";
const KIND: &str = "CompatibilityMatrix";

/// Bytes of an index: 5,000 versions as YAML have 10 MiB.
pub const INDEX_LIMIT: usize = 12 << 20;

/// The bytes are not a matrix index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// They are something else altogether.
    #[error("this is {0}, not a matrix index")]
    Other(&'static str),
    /// They are not text.
    #[error("the matrix index is not UTF-8 text")]
    NotText,
    /// They are not YAML or JSON.
    #[error("the matrix index is neither YAML nor JSON")]
    Yaml(#[source] YamlError),
    /// They are something else, or from another age.
    #[error("the matrix index has {field}: {found:?}; this build reads {expected}")]
    Foreign {
        /// `apiVersion` or `kind`.
        field: &'static str,
        /// What it says.
        found: String,
        /// What we read.
        expected: &'static str,
    },
    /// Something in it is wrong.
    #[error("the matrix index has an error at {at}: {problem}")]
    Invalid {
        /// Where, as `drivers.vsphere-csi 3.7.3`.
        at: String,
        /// What is wrong there.
        problem: String,
    },
}

impl Remedy for IndexError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Other(_) => Some("Check the address or the file; a login page means that credentials are missing.".into()),
            Self::NotText => Some("Save the index as UTF-8.".into()),
            Self::Yaml(_) => Some("Correct the index at this place; an index is one YAML or JSON document.".into()),
            Self::Foreign { .. } => Some("Use an index for this version of VDO, or the version of VDO that reads this index.".into()),
            Self::Invalid { .. } => Some("Correct the index at this place; vdoctl matrix lint lists every mistake.".into()),
        }
    }
}

/// What servers and people give instead of an index.
fn something_else(bytes: &[u8]) -> Option<&'static str> {
    match bytes.trim_ascii_start() {
        [] => Some("an empty document"),
        [b'<', ..] => Some("a web page, perhaps of a login"),
        [0x1f, 0x8b, ..] | [b'P', b'K', 3, 4, ..] => Some("an archive"),
        _ => None,
    }
}

impl Index {
    /// Reads an index from YAML or JSON, also one of the original operator (`CSI` and `CPI` at the top).
    ///
    /// # Errors
    /// When it is not an index of a known `apiVersion`, lacks a digest, repeats a version, has an empty range, or names evidence or
    /// drivers that are not in it. Up to a hundred fields that this build does not know are listed in
    /// [`Index::unknown_fields`], not refused.
    pub fn parse(bytes: &[u8]) -> Result<Self, IndexError> {
        if let Some(other) = something_else(bytes) {
            return Err(IndexError::Other(other));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| IndexError::NotText)?;
        let Document {
            mut top,
            entries,
            mut unknown,
            wrong,
        } = stream::read(text)?;
        if legacy_format::is(&top) {
            return legacy_format::index(top, unknown);
        }
        for (field, expected) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            let found = top.get(field).and_then(Value::as_str).unwrap_or_default();
            if found != expected {
                return Err(IndexError::Foreign {
                    field,
                    found: found.to_owned(),
                    expected,
                });
            }
        }
        unknown.extend(legacy_format::take_tables(&mut top));
        if unknown.len() > schema::MAX_UNKNOWN {
            return Err(IndexError::Invalid {
                at: "the top level".into(),
                problem: format!(
                    "it has more than {} fields that this version of VDO does not know, so it is not an index of vSphere drivers",
                    schema::MAX_UNKNOWN
                ),
            });
        }
        let raw: RawIndex = typed(top, "the top level")?;
        wrong.map_or_else(|| checked(raw, unknown, entries), Err)
    }
}

/// An entry, as messages name it.
pub(super) fn place(driver: &str, i: usize, entry: &Value) -> String {
    match entry.get("version").and_then(Value::as_str) {
        Some(version) => format!("drivers.{driver} {version}"),
        None => format!("drivers.{driver} entry {}", i + 1),
    }
}

/// An index of which every part is right by itself, with its parts held against each other.
fn checked(mut raw: RawIndex, mut unknown_fields: Vec<String>, mut entries: BTreeMap<DriverName, Vec<Entry>>) -> Result<Index, IndexError> {
    if let Some(rules) = &mut raw.privileges {
        unknown_fields.extend(rules.sanitize());
    }
    if let Some(name) = raw.stated_digests.keys().find(|name| !raw.sources.contains_key(*name)) {
        return Err(IndexError::Invalid {
            at: "statedDigests".to_owned(),
            problem: format!("the source {name:?} is not listed under sources; add it to sources"),
        });
    }
    let names: BTreeSet<DriverName> = raw.drivers.keys().cloned().collect();
    let mut drivers = BTreeMap::new();
    for (name, driver) in raw.drivers {
        let mut versions = entries.remove(&name).unwrap_or_default();
        let mut seen: BTreeSet<*const Facts> = BTreeSet::new();
        for entry in &versions {
            if seen.insert(Arc::as_ptr(&entry.facts)) {
                consistent(entry, &raw.sources, &raw.preconditions, &names).map_err(|problem| IndexError::Invalid {
                    at: format!("drivers.{name} {}", entry.version),
                    problem,
                })?;
            }
        }
        versions.sort_unstable_by(|left, right| right.version.cmp(&left.version));
        if let Some((twice, _)) = versions
            .iter()
            .zip(versions.iter().skip(1))
            .find(|(left, right)| left.version == right.version)
        {
            return Err(IndexError::Invalid {
                at: format!("drivers.{name} {}", twice.version),
                problem: "the version is listed twice; keep one entry".to_owned(),
            });
        }
        let role = driver.role;
        drivers.insert(name, Driver { role, versions });
    }
    Ok(Index {
        version: raw.version,
        generated: raw.generated,
        expires: raw.expires,
        sources: raw.sources,
        preconditions: raw.preconditions,
        vcenter_builds: raw.vcenter_builds,
        released: raw.released,
        stated_digests: raw.stated_digests,
        privileges: raw.privileges,
        drivers,
        unknown_fields,
    })
}

pub(super) fn typed<T: DeserializeOwned>(value: Value, at: &str) -> Result<T, IndexError> {
    serde_json::from_value(value).map_err(|error| {
        let mut problem = error.to_string();
        if problem.contains("floating point") {
            problem.push_str("; put versions in quotes, because 1.30 without quotes is read as 1.3");
        }
        IndexError::Invalid {
            at: at.to_owned(),
            problem,
        }
    })
}

/// An entry whose parts are right by themselves.
pub(super) fn entry(raw: RawEntry) -> Result<Entry, String> {
    let digest = format!("sha256:{}", raw.chart.sha256);
    let digest = digest.parse().map_err(|_| {
        format!(
            "chart.sha256 is {:?}; write the 64 lower-case hex digits of the package",
            raw.chart.sha256
        )
    })?;
    if raw.chart.urls.is_empty() {
        return Err("chart.urls is empty; name at least one location".to_owned());
    }
    let features = raw.features.into_iter().map(|(name, raw)| {
        let vsphere = range(
            raw.vsphere.min.as_deref(),
            raw.vsphere.max.as_deref(),
            &format!("features.{name}.vsphere"),
        )?;
        Ok((
            name,
            Feature {
                vsphere,
                evidence: raw.evidence,
                note: raw.note,
            },
        ))
    });
    Ok(Entry {
        version: raw.version,
        chart: ChartRef {
            urls: raw.chart.urls,
            digest,
        },
        images: raw.images,
        is_here: true,
        facts: Arc::new(Facts {
            manifests: Vec::new(),
            kubernetes: support(raw.kubernetes, "kubernetes")?,
            vsphere: support(raw.vsphere, "vsphere")?,
            requires: raw.requires,
            features: features.collect::<Result<_, String>>()?,
            upgrades_from: raw.upgrades_from,
            state: match raw.state {
                None => State::Good,
                Some(RawState::Deprecated(verdict)) => State::Deprecated(verdict),
                Some(RawState::Withdrawn(verdict)) => State::Withdrawn(verdict),
            },
        }),
    })
}

fn support(raw: RawSupport, what: &str) -> Result<Support, String> {
    Ok(Support {
        range: range(raw.min.as_deref(), raw.max.as_deref(), what)?,
        evidence: raw.evidence,
        confidence: raw.confidence,
        note: raw.note,
    })
}

pub(super) fn range(min: Option<&str>, max: Option<&str>, what: &str) -> Result<VersionRange, String> {
    let range = VersionRange::new(min, max).map_err(|error| format!("{what}: {error}"))?;
    if range.is_empty() {
        return Err(format!("{what}: no version lies in the range {range}; swap min and max"));
    }
    Ok(range)
}

/// What one entry claims about other parts of the index must be true.
fn consistent(
    entry: &Entry,
    sources: &BTreeMap<String, Source>,
    preconditions: &BTreeMap<String, String>,
    drivers: &BTreeSet<DriverName>,
) -> Result<(), String> {
    let features = entry.features.values().flat_map(|feature| &feature.evidence);
    let needs = entry.requires.iter().flat_map(|required| &required.evidence);
    let evidence = entry
        .kubernetes
        .evidence
        .iter()
        .chain(&entry.vsphere.evidence)
        .chain(features)
        .chain(needs);
    if let Some(name) = evidence.into_iter().find(|name| !sources.contains_key(*name)) {
        return Err(format!("the evidence {name:?} is not listed under sources; add it to sources"));
    }
    if let Some(required) = entry.requires.iter().find(|required| !drivers.contains(&required.driver)) {
        return Err(format!("it requires {:?}, which is not a driver of this index", required.driver));
    }
    let mut named = entry.upgrades_from.iter().flat_map(|from| &from.preconditions);
    if let Some(name) = named.find(|name| !preconditions.contains_key(*name)) {
        return Err(format!("the precondition {name:?} is not defined under preconditions"));
    }
    Ok(())
}
