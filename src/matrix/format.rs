//! The index as it is written, before anything in it is believed.

use super::index::{BuildFloor, Confidence, Image, Requirement, Source, UpgradesFrom, Verdict};
use crate::types::{DriverName, DriverRole, DriverVersion};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// The whole, with its drivers in one form or the other.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[serde(bound(deserialize = "V: Deserialize<'de>"))]
pub(super) struct RawIndex<V> {
    pub api_version: String,
    pub kind: String,
    pub version: u64,
    #[serde(default)]
    pub generated: Option<jiff::Timestamp>,
    #[serde(default)]
    pub expires: Option<jiff::Timestamp>,
    #[serde(default, deserialize_with = "unique")]
    pub sources: BTreeMap<String, Source>,
    #[serde(default, deserialize_with = "unique")]
    pub preconditions: BTreeMap<String, String>,
    #[serde(default)]
    pub vcenter_builds: Vec<BuildFloor>,
    #[serde(deserialize_with = "unique")]
    pub drivers: BTreeMap<DriverName, RawDriver<V>>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDriver<V> {
    pub role: DriverRole,
    pub versions: V,
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
    #[serde(default, deserialize_with = "unique")]
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

/// A map in which no key stands twice, which JSON would allow.
fn unique<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error> {
    struct Unique<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Unique<T> {
        type Value = BTreeMap<String, T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some((key, value)) = fields.next_entry::<String, T>()? {
                if map.contains_key(&key) {
                    return Err(A::Error::custom(format!("{key:?} occurs twice")));
                }
                map.insert(key, value);
            }
            Ok(map)
        }
    }
    deserializer.deserialize_map(Unique(PhantomData))
}
