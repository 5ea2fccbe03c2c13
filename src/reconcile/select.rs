//! What a VDOConfig asks for, resolved to names that exist (pure).

use super::error::ReconcileError;
use crate::api::{ManagementState, StorageProvider, VDOConfigSpec};
use crate::matrix::{DriverRequest, Index, MULTI_VCENTER};
use crate::status::Trouble;
use crate::types::{CPI, CSI, DriverName, DriverVersion};
use std::collections::{BTreeMap, BTreeSet};

/// The drivers that are asked for, each with the connections it uses.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// What the resolver is asked.
    pub drivers: BTreeMap<DriverName, DriverRequest>,
    /// The connections of each driver, by name.
    pub connections: BTreeMap<DriverName, Vec<String>>,
}

impl Asked {
    /// The drivers that use a connection.
    #[must_use]
    pub fn users(&self, connection: &str) -> Vec<DriverName> {
        let users = self
            .connections
            .iter()
            .filter(|(_, names)| names.iter().any(|name| name == connection));
        users.map(|(driver, _)| driver.clone()).collect()
    }

    /// All connections that some driver uses.
    #[must_use]
    pub fn used(&self) -> BTreeSet<&str> {
        self.connections.values().flatten().map(String::as_str).collect()
    }

    fn insert(
        &mut self,
        driver: &str,
        pin: Option<DriverVersion>,
        allow_incompatible: bool,
        features: BTreeMap<String, String>,
        states: BTreeMap<String, bool>,
        connections: Vec<String>,
    ) {
        let request = DriverRequest {
            pin,
            allow_incompatible,
            features,
            states,
            connections: Some(connections.clone()),
            ..DriverRequest::default()
        };
        self.drivers.insert(driver.to_owned(), request);
        self.connections.insert(driver.to_owned(), connections);
    }

    /// Leaves out features of which a matrix says nothing in any version of the driver: it does not know them, which is no no.
    pub fn leave_to(&mut self, index: &Index) {
        for (name, request) in &mut self.drivers {
            let versions = || index.drivers.get(name).into_iter().flat_map(|driver| &driver.versions);
            request
                .features
                .retain(|feature, _| versions().any(|entry| entry.features.contains_key(feature)));
        }
    }
}

/// What a version of the CSI driver must be able to do, by the names of features in a matrix, each with the field that asks for it.
fn features(csi: &StorageProvider) -> BTreeMap<String, String> {
    /// Feature states of the driver that are of no use where the vCenter cannot do what they switch on.
    const STATES: [(&str, &str); 6] = [
        ("block-volume-snapshot", "snapshots"),
        ("csi-migration", "inTreeMigration"),
        ("csi-transaction-support", "transactions"),
        ("high-pv-node-density", "manyVolumesPerNode"),
        ("multi-vcenter-csi-topology", MULTI_VCENTER),
        ("online-volume-extend", "onlineExpansion"),
    ];
    let mut asked = BTreeMap::new();
    for (state, feature) in STATES {
        if csi.features.get(state) == Some(&true) {
            asked.insert(feature.to_owned(), format!("spec.storageProvider.features[{state}]"));
        }
    }
    if let Some(class) = csi.storage_classes.iter().find(|class| class.file_share == Some(true)) {
        let by = format!("spec.storageProvider.storageClasses[{}].fileShare", class.name);
        asked.insert("fileVolumes".to_owned(), by);
    }
    if csi.file_volumes.is_some() {
        asked.insert("fileVolumes".to_owned(), "spec.storageProvider.fileVolumes".to_owned());
    }
    if csi.snapshots.is_some() {
        asked.insert("snapshots".to_owned(), "spec.storageProvider.snapshots".to_owned());
    }
    asked
}

/// What is wrong with drivers, each with those that it concerns.
#[derive(Debug, Default)]
pub struct Failures(Vec<Failure>);

/// What is wrong with some drivers.
#[derive(Debug)]
pub struct Failure {
    /// The drivers.
    pub drivers: BTreeSet<DriverName>,
    /// What is wrong.
    pub error: ReconcileError,
}

impl Failures {
    /// Adds one.
    pub(super) fn of(&mut self, drivers: impl IntoIterator<Item = DriverName>, error: ReconcileError) {
        self.0.push(Failure {
            drivers: drivers.into_iter().collect(),
            error,
        });
    }

    /// Whether something is wrong with this driver.
    #[must_use]
    pub fn names(&self, driver: &str) -> bool {
        self.0.iter().any(|failure| failure.drivers.contains(driver))
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is published of them.
    pub fn troubles(&self) -> impl Iterator<Item = Trouble> {
        self.0.iter().map(|failure| Trouble::from(&failure.error))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Failure> {
        self.0.iter()
    }

    /// The first of them, if something is wrong with each of these drivers.
    #[must_use]
    pub fn of_all<'a>(self, drivers: impl IntoIterator<Item = &'a DriverName>) -> Option<ReconcileError> {
        let mut drivers = drivers.into_iter();
        let all = drivers.all(|driver| self.names(driver));
        self.0.into_iter().next().filter(|_| all).map(|failure| failure.error)
    }

    /// Each of them.
    #[must_use]
    pub fn into_inner(self) -> Vec<Failure> {
        self.0
    }
}

/// Whether a driver is asked for.
fn is_named(state: Option<ManagementState>) -> bool {
    state.is_some_and(|state| state != ManagementState::Removed)
}

fn states(spec: &VDOConfigSpec) -> [(&'static str, Option<ManagementState>); 2] {
    [
        (CPI, spec.cloud_provider.as_ref().map(|cpi| cpi.management_state)),
        (CSI, spec.storage_provider.as_ref().map(|csi| csi.management_state)),
    ]
}

/// The drivers that are to be removed.
#[must_use]
pub(super) fn removed(spec: &VDOConfigSpec) -> BTreeSet<&'static str> {
    let removed = states(spec)
        .into_iter()
        .filter(|(_, state)| *state == Some(ManagementState::Removed));
    removed.map(|(driver, _)| driver).collect()
}

/// The drivers of which nothing is written.
#[must_use]
pub(super) fn paused(spec: &VDOConfigSpec) -> BTreeSet<DriverName> {
    let paused = states(spec)
        .into_iter()
        .filter(|(_, state)| *state == Some(ManagementState::Paused));
    paused.map(|(driver, _)| driver.to_owned()).collect()
}

/// Reads the specification against the connections that exist. Where no driver is named, both are asked for; one that is to be removed
/// is not.
#[must_use]
pub fn requests(spec: &VDOConfigSpec, namespace: &str, existing: &BTreeSet<String>) -> (Asked, Failures) {
    let (mut asked, mut failures) = (Asked::default(), Failures::default());
    let states = states(spec);
    let none = !states.iter().any(|(_, state)| is_named(*state));
    for (driver, state) in states {
        if !is_named(state) && (!none || state == Some(ManagementState::Removed)) {
            continue;
        }
        if let Err(error) = asked.request(driver, spec, existing) {
            asked.insert(
                driver,
                None,
                false,
                BTreeMap::new(),
                BTreeMap::new(),
                existing.iter().cloned().collect(),
            );
            failures.of([driver.to_owned()], error);
        }
    }
    if existing.is_empty() {
        failures = Failures::default();
        let error = ReconcileError::NoConnections {
            namespace: namespace.into(),
        };
        failures.of(asked.drivers.keys().cloned(), error);
    }
    (asked, failures)
}

/// The same, for a question about all of them.
///
/// # Errors
/// When there is no connection, a name leads nowhere, or a pin is no version.
pub fn asked(spec: &VDOConfigSpec, namespace: &str, existing: &BTreeSet<String>) -> Result<Asked, ReconcileError> {
    let (asked, failures) = requests(spec, namespace, existing);
    match failures.into_inner().into_iter().next() {
        Some(failure) => Err(failure.error),
        None => Ok(asked),
    }
}

impl Asked {
    /// Whether a driver is asked for.
    #[must_use]
    pub fn wants(&self, driver: &str) -> bool {
        self.drivers.contains_key(driver)
    }

    fn request(&mut self, driver: &str, spec: &VDOConfigSpec, existing: &BTreeSet<String>) -> Result<(), ReconcileError> {
        if driver == CPI {
            let cpi = spec.cloud_provider.clone().unwrap_or_default();
            let names = connections("spec.cloudProvider.vsphereCloudConfigs", cpi.vsphere_cloud_configs, existing)?;
            let pin = pin("cloudProvider", cpi.version.as_deref())?;
            self.insert(CPI, pin, cpi.allow_incompatible, BTreeMap::new(), BTreeMap::new(), names);
            return Ok(());
        }
        let csi = spec.storage_provider.clone().unwrap_or_default();
        let (features, states) = (features(&csi), csi.features.clone());
        let mut names = csi.vsphere_cloud_configs;
        names.extend(csi.vsphere_cloud_config);
        let names = connections("spec.storageProvider.vsphereCloudConfigs", names, existing)?;
        let pin = pin("storageProvider", csi.version.as_deref())?;
        self.insert(CSI, pin, csi.allow_incompatible, features, states, names);
        Ok(())
    }
}

fn pin(field: &str, version: Option<&str>) -> Result<Option<DriverVersion>, ReconcileError> {
    version
        .filter(|text| !text.is_empty())
        .map(str::parse::<DriverVersion>)
        .transpose()
        .map_err(|error| ReconcileError::InvalidSpec {
            object: "VDOConfig".into(),
            field: format!("spec.{field}.version"),
            problem: error.to_string(),
        })
}

fn connections(field: &'static str, mut names: Vec<String>, existing: &BTreeSet<String>) -> Result<Vec<String>, ReconcileError> {
    if names.is_empty() {
        return Ok(existing.iter().cloned().collect());
    }
    names.sort();
    names.dedup();
    if let Some(name) = names.iter().find(|name| !existing.contains(*name)) {
        let known = existing.iter().cloned().collect::<Vec<_>>().join(", ");
        return Err(ReconcileError::ConnectionNotFound {
            field,
            name: name.clone(),
            known,
        });
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(spec: serde_json::Value, existing: &[&str]) -> String {
        let spec: VDOConfigSpec = serde_json::from_value(spec).expect("a specification");
        match asked(&spec, "ns", &existing.iter().map(|s| (*s).to_owned()).collect()) {
            Ok(asked) => asked
                .connections
                .iter()
                .map(|(d, c)| format!("{d}={}", c.join("+")))
                .collect::<Vec<_>>()
                .join(" "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn requested_features_each_spec_field_requires_feature() {
        let asks = |storage: serde_json::Value| {
            let spec: VDOConfigSpec = serde_json::from_value(json!({"storageProvider": storage})).expect("a specification");
            let asked = asked(&spec, "ns", &["a".to_owned()].into()).expect("a request");
            let features = asked.drivers[CSI].features.iter();
            features.map(|(feature, by)| format!("{feature}: {by}")).collect::<Vec<_>>()
        };
        for (storage, expected) in [
            (json!({}), &[][..]),
            (
                json!({"snapshots": {}, "fileVolumes": {}}),
                &[
                    "fileVolumes: spec.storageProvider.fileVolumes",
                    "snapshots: spec.storageProvider.snapshots",
                ],
            ),
            (
                json!({"storageClasses": [{"name": "block"}, {"name": "share", "fileShare": true}]}),
                &["fileVolumes: spec.storageProvider.storageClasses[share].fileShare"],
            ),
            (json!({"storageClasses": [{"name": "block", "fileShare": false}]}), &[]),
            (
                json!({"features": {"online-volume-extend": true, "block-volume-snapshot": false, "trigger-csi-fullsync": true}}),
                &["onlineExpansion: spec.storageProvider.features[online-volume-extend]"],
            ),
        ] {
            assert_eq!(asks(storage.clone()), expected, "{storage}");
        }
    }

    #[test]
    fn requested_features_all_are_in_matrix() {
        let index = Index::parse(crate::fetch::embedded::index()).expect("an index");
        let spec = json!({"storageProvider": {"snapshots": {}, "fileVolumes": {}, "features": {
            "csi-migration": true, "csi-transaction-support": true, "high-pv-node-density": true,
            "multi-vcenter-csi-topology": true, "online-volume-extend": true}}});
        let spec: VDOConfigSpec = serde_json::from_value(spec).expect("a specification");
        let mut asked = asked(&spec, "ns", &["a".to_owned()].into()).expect("a request");
        let before = asked.drivers[CSI].features.len();
        asked.leave_to(&index);
        assert_eq!((before, asked.drivers[CSI].features.len()), (7, 7));
        let mut bare = index.clone();
        bare.drivers
            .values_mut()
            .flat_map(|driver| &mut driver.versions)
            .for_each(|entry| std::sync::Arc::make_mut(&mut entry.facts).features.clear());
        asked.leave_to(&bare);
        assert!(
            asked.drivers[CSI].features.is_empty(),
            "a matrix that knows no features is not asked for any"
        );
    }

    #[test]
    fn requested_drivers_each_spec_selects_connections() {
        for (spec, existing, expected) in [
            (json!({}), &["b", "a"][..], "vsphere-cpi=a+b vsphere-csi=a+b"),
            (json!({"cloudProvider": {}}), &["a"], "vsphere-cpi=a"),
            (
                json!({"storageProvider": {"vsphereCloudConfig": "b"}}),
                &["a", "b"],
                "vsphere-csi=b",
            ),
            (
                json!({"cloudProvider": {"vsphereCloudConfigs": ["b"]}, "storageProvider": {}}),
                &["a", "b"],
                "vsphere-cpi=b vsphere-csi=a+b",
            ),
            (
                json!({}),
                &[],
                "there is no vSphere connection in namespace ns; create a VsphereCloudConfig there",
            ),
            (
                json!({"storageProvider": {"vsphereCloudConfigs": ["c"]}}),
                &["a", "b"],
                "spec.storageProvider.vsphereCloudConfigs names vSphere connection c, which does not exist; there are: a, b",
            ),
            (
                json!({"cloudProvider": {"version": "newest"}}),
                &["a"],
                "spec.cloudProvider.version of VDOConfig: \"newest\" is not a driver version; write for example 3.7.3",
            ),
        ] {
            assert_eq!(ask(spec, existing), expected);
        }
    }
}
