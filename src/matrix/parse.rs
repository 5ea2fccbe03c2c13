//! From bytes to an [`Index`]: everything is checked here, so nothing has to be checked later.

use super::index::{
    BuildFloor, Confidence, Driver, Entry, Feature, Image, Index, Requirement, Source, State, Support, UpgradesFrom, Verdict,
};
use super::original;
use crate::types::{ChartRef, DriverName, DriverRole, DriverVersion, VersionRange};
use crate::yaml::{self, YamlError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const API_VERSION: &str = "vdo.vmware.com/matrix/v1";
const KIND: &str = "CompatibilityMatrix";

/// The bytes are not a matrix index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// They are not text.
    #[error("the matrix index is not UTF-8 text")]
    NotText,
    /// They are not YAML or JSON.
    #[error("the matrix index is neither YAML nor JSON")]
    Yaml(#[source] YamlError),
    /// They are something else, or from another age.
    #[error("the matrix index says {field}: {found:?}; this build reads {expected}")]
    Foreign {
        /// `apiVersion` or `kind`.
        field: &'static str,
        /// What it says.
        found: String,
        /// What we read.
        expected: &'static str,
    },
    /// Something in it is wrong.
    #[error("the matrix index is wrong at {at}: {problem}")]
    Invalid {
        /// Where, as `drivers.vsphere-csi 3.7.3`.
        at: String,
        /// What is wrong there.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawIndex {
    version: u64,
    #[serde(default)]
    generated: Option<jiff::Timestamp>,
    #[serde(default)]
    expires: Option<jiff::Timestamp>,
    #[serde(default)]
    sources: BTreeMap<String, Source>,
    #[serde(default)]
    preconditions: BTreeMap<String, String>,
    #[serde(default)]
    vcenter_builds: Vec<BuildFloor>,
    drivers: BTreeMap<DriverName, RawDriver>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct RawDriver {
    role: DriverRole,
    versions: Vec<Value>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEntry {
    version: DriverVersion,
    chart: RawChart,
    kubernetes: RawSupport,
    vsphere: RawSupport,
    #[serde(default)]
    requires: Vec<Requirement>,
    #[serde(default)]
    features: BTreeMap<String, RawFeature>,
    #[serde(default)]
    upgrades_from: Option<UpgradesFrom>,
    #[serde(default)]
    images: Vec<Image>,
    #[serde(default)]
    state: Option<RawState>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawChart {
    urls: Vec<String>,
    sha256: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSupport {
    min: Option<String>,
    max: Option<String>,
    #[serde(default)]
    evidence: Vec<String>,
    confidence: Confidence,
    #[serde(default)]
    note: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFeature {
    #[serde(default)]
    vsphere: RawRange,
    #[serde(default)]
    evidence: Vec<String>,
    #[serde(default)]
    note: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawRange {
    #[serde(default)]
    min: Option<String>,
    #[serde(default)]
    max: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum RawState {
    Deprecated(Verdict),
    Withdrawn(Verdict),
}

impl Index {
    /// Reads an index from YAML or JSON, also one of the original operator (`CSI` and `CPI` at the top).
    ///
    /// # Errors
    /// When it is not an index of a known `apiVersion`, lacks a digest, repeats a version, has an empty range, or names evidence or
    /// drivers that are not in it. Fields this build does not know are listed in [`Index::unknown_fields`], not refused.
    pub fn parse(bytes: &[u8]) -> Result<Self, IndexError> {
        let text = std::str::from_utf8(bytes).map_err(|_| IndexError::NotText)?;
        let mut value = yaml::load_value(text).map_err(IndexError::Yaml)?;
        if original::is(&value) {
            return original::index(value);
        }
        for (field, expected) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            let found = value.as_object_mut().and_then(|fields| fields.shift_remove(field));
            let found = found.as_ref().and_then(Value::as_str).unwrap_or_default();
            if found != expected {
                return Err(IndexError::Foreign {
                    field,
                    found: found.to_owned(),
                    expected,
                });
            }
        }
        let raw: RawIndex = typed(value, "the top")?;
        let (sources, preconditions) = (raw.sources, raw.preconditions);
        let names: BTreeSet<String> = raw.drivers.keys().cloned().collect();
        let mut unknown_fields: Vec<String> = raw.rest.into_keys().collect();
        let mut drivers = BTreeMap::new();
        for (name, driver) in raw.drivers {
            unknown_fields.extend(driver.rest.into_keys().map(|key| format!("drivers.{name}.{key}")));
            let mut versions = Vec::with_capacity(driver.versions.len());
            let mut seen = BTreeSet::new();
            for value in driver.versions {
                let at = match value.get("version").and_then(Value::as_str) {
                    Some(version) => format!("drivers.{name} {version}"),
                    None => format!("drivers.{name} entry {}", versions.len() + 1),
                };
                let raw: RawEntry = typed(value, &at)?;
                unknown_fields.extend(raw.rest.keys().map(|key| format!("{at}.{key}")));
                let entry = entry(raw).and_then(|entry| consistent(entry, &sources, &preconditions, &names));
                let entry = entry.map_err(|problem| IndexError::Invalid { at: at.clone(), problem })?;
                if !seen.insert(entry.version.clone()) {
                    return Err(IndexError::Invalid {
                        at,
                        problem: "the version is listed twice; keep one entry".to_owned(),
                    });
                }
                versions.push(entry);
            }
            versions.sort_by(|left, right| right.version.cmp(&left.version));
            drivers.insert(
                name,
                Driver {
                    role: driver.role,
                    versions,
                },
            );
        }
        Ok(Self {
            version: raw.version,
            generated: raw.generated,
            expires: raw.expires,
            sources,
            preconditions,
            vcenter_builds: raw.vcenter_builds,
            drivers,
            unknown_fields,
        })
    }
}

pub(super) fn typed<T: DeserializeOwned>(value: Value, at: &str) -> Result<T, IndexError> {
    serde_json::from_value(value).map_err(|error| {
        let mut problem = error.to_string();
        if problem.contains("floating point") {
            problem.push_str("; put versions in quotes, 1.30 is not 1.3");
        }
        IndexError::Invalid {
            at: at.to_owned(),
            problem,
        }
    })
}

fn entry(raw: RawEntry) -> Result<Entry, String> {
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
        manifests: Vec::new(),
        kubernetes: support(raw.kubernetes, "kubernetes")?,
        vsphere: support(raw.vsphere, "vsphere")?,
        requires: raw.requires,
        features: features.collect::<Result<_, String>>()?,
        upgrades_from: raw.upgrades_from,
        images: raw.images,
        state: match raw.state {
            None => State::Good,
            Some(RawState::Deprecated(verdict)) => State::Deprecated(verdict),
            Some(RawState::Withdrawn(verdict)) => State::Withdrawn(verdict),
        },
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

/// What one entry says about other parts of the index must be true.
fn consistent(
    entry: Entry,
    sources: &BTreeMap<String, Source>,
    preconditions: &BTreeMap<String, String>,
    drivers: &BTreeSet<DriverName>,
) -> Result<Entry, String> {
    let features = entry.features.values().flat_map(|feature| &feature.evidence);
    let evidence = entry.kubernetes.evidence.iter().chain(&entry.vsphere.evidence).chain(features);
    if let Some(name) = evidence.into_iter().find(|name| !sources.contains_key(*name)) {
        return Err(format!("the evidence {name:?} is not under sources; add it there"));
    }
    if let Some(required) = entry.requires.iter().find(|required| !drivers.contains(&required.driver)) {
        return Err(format!("it requires {:?}, which is no driver of this index", required.driver));
    }
    let mut named = entry.upgrades_from.iter().flat_map(|from| &from.preconditions);
    if let Some(name) = named.find(|name| !preconditions.contains_key(*name)) {
        return Err(format!(
            "the precondition {name:?} is not under preconditions; say there what it means"
        ));
    }
    Ok(entry)
}
