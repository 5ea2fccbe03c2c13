// SPDX-License-Identifier: Apache-2.0
//! Reads the compatibility file of the original operator, `{"CSI": {"2.7.0": {…}}, "CPI": {…}}`, into an [`Index`].
//!
//! Such a file names plain manifests and no digests, so nothing in it can be installed by itself. [`Index::with_charts_of`] gives
//! its versions the charts of an index that has them; a version without a chart is listed, but never selected.

use super::index::{Confidence, Driver, Entry, Facts, Index, Requirement, Source, State, Support};
use super::parse::{IndexError, range, typed};
use crate::drivers::{self, CLOUD_PROVIDER};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use vdo_api::types::{ChartRef, Digest, DriverName, DriverVersion};

/// The name of the file as evidence.
const EVIDENCE: &str = "original-compatibility-file";

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "vSphere")]
    vsphere: Bounds,
    k8s: Bounds,
    #[serde(default, rename = "isCPIRequired")]
    is_cpi_required: bool,
    #[serde(default, rename = "deploymentPath")]
    deployment_path: Vec<String>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    #[serde(default)]
    min: Option<String>,
    #[serde(default)]
    max: Option<String>,
    /// The one Kubernetes minor that a cloud provider is for.
    #[serde(default, rename = "skewVersion")]
    skew_version: Option<String>,
}

/// The tables of the file, and the drivers they are about.
pub(super) const TABLES: [&drivers::Driver; 2] = [drivers::CLOUD_PROVIDER, drivers::STORAGE];

/// What `isCPIRequired` requires.
pub(super) fn required_driver() -> DriverName {
    CLOUD_PROVIDER.name.to_owned()
}

/// Whether this is such a file.
pub(super) fn is(value: &Value) -> bool {
    let has = |field| value.get(field).is_some();
    !has("apiVersion") && !has("drivers") && (has("CSI") || has("CPI"))
}

/// Whether the original format has a table of this name.
pub(super) fn is_table(name: &str) -> bool {
    TABLES.iter().any(|driver| driver.short == name)
}

/// Takes such tables out of what is no such file; their names.
pub(super) fn take_tables(value: &mut Value) -> Vec<String> {
    let Some(fields) = value.as_object_mut() else { return Vec::new() };
    let names: Vec<String> = fields.keys().filter(|name| is_table(name)).cloned().collect();
    fields.retain(|name, _| !is_table(name));
    names
}

/// The index of such a file, in which these fields are not known.
pub(super) fn index(value: Value, unknown_fields: Vec<String>) -> Result<Index, IndexError> {
    let tables: BTreeMap<String, Value> = typed(value, "the top level")?;
    let mut index = Index {
        version: 0,
        generated: None,
        expires: None,
        sources: BTreeMap::from([(
            EVIDENCE.to_owned(),
            Source {
                url: "https://github.com/vmware-tanzu/vsphere-kubernetes-drivers-operator/tree/main/artifacts/compatibility-yaml".into(),
                kind: "downstream".into(),
                note: "a file in the format of the original operator; it names no sources".into(),
            },
        )]),
        preconditions: BTreeMap::new(),
        vcenter_builds: Vec::new(),
        released: Default::default(),
        stated_digests: Default::default(),
        privileges: None,
        drivers: BTreeMap::new(),
        unknown_fields,
    };
    for (table, versions) in tables {
        let Some(known) = TABLES.into_iter().find(|driver| driver.short == table) else {
            index.unknown_fields.push(table);
            continue;
        };
        let versions: BTreeMap<DriverVersion, Version> = typed(versions, &table)?;
        let mut entries = Vec::new();
        for (version, raw) in versions {
            let at = format!("{table}.{version}");
            index.unknown_fields.extend(raw.rest.keys().map(|key| format!("{at}.{key}")));
            entries.push(entry(version, raw).map_err(|problem| IndexError::Invalid { at, problem })?);
        }
        entries.reverse();
        let driver = Driver {
            role: known.role,
            versions: entries,
        };
        index.drivers.insert(known.name.to_owned(), driver);
    }
    Ok(index)
}

fn entry(version: DriverVersion, raw: Version) -> Result<Entry, String> {
    let support = |bounds: &Bounds, what: &str| {
        let skew = bounds.skew_version.as_deref();
        if skew.is_some() && (bounds.min.is_some() || bounds.max.is_some()) {
            return Err(format!(
                "{what} has skewVersion as well as min or max; remove skewVersion, or remove min and max"
            ));
        }
        Ok(Support {
            range: range(bounds.min.as_deref().or(skew), bounds.max.as_deref().or(skew), what)?,
            evidence: vec![EVIDENCE.to_owned()],
            confidence: Confidence::Unverified,
            note: None,
        })
    };
    let requires = raw.is_cpi_required.then(|| Requirement {
        driver: required_driver(),
        min: None,
        max: None,
        reason: Some("isCPIRequired is true".to_owned()),
        when: None,
        evidence: vec![EVIDENCE.to_owned()],
    });
    Ok(Entry {
        version,
        chart: ChartRef {
            urls: Vec::new(),
            digest: Digest::of(b""),
        },
        images: Vec::new(),
        is_here: true,
        facts: Arc::new(Facts {
            kubernetes: support(&raw.k8s, "k8s")?,
            vsphere: support(&raw.vsphere, "vSphere")?,
            manifests: raw.deployment_path,
            requires: requires.into_iter().collect(),
            features: BTreeMap::new(),
            upgrades_from: None,
            state: State::Good,
        }),
    })
}

impl Index {
    /// The same index, with charts, images and features of another one for the versions that have no chart of their own.
    /// Ranges and requirements stay as they are.
    #[must_use]
    pub fn with_charts_of(mut self, other: &Self) -> Self {
        let lender = |name: &DriverName, version: &DriverVersion| other.drivers.get(name).and_then(|driver| driver.entry(version));
        for (name, driver) in &mut self.drivers {
            for entry in driver.versions.iter_mut().filter(|entry| entry.chart.urls.is_empty()) {
                if let Some(known) = lender(name, &entry.version) {
                    entry.chart = known.chart.clone();
                    entry.images.clone_from(&known.images);
                    Arc::make_mut(&mut entry.facts).features.clone_from(&known.features);
                }
            }
        }
        for (name, source) in &other.sources {
            self.sources.entry(name.clone()).or_insert_with(|| source.clone());
        }
        if self.vcenter_builds.is_empty() {
            self.vcenter_builds.clone_from(&other.vcenter_builds);
        }
        self
    }
}
