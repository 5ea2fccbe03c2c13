//! What a VDOConfig asks for, resolved to names that exist (pure).

use super::error::ReconcileError;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::{ManagementState, VDOConfigSpec};
use vdo_api::types::{DriverName, DriverVersion};
use vdo_core::drivers::{self, Request, Uses};
use vdo_core::matrix::{DriverRequest, Index};
use vdo_core::status::Failure;

/// The drivers that are asked for, each with the connections it uses.
#[derive(Debug, Clone, Default)]
pub struct DriverRequests {
    /// What the resolver is asked.
    pub drivers: BTreeMap<DriverName, DriverRequest>,
    /// The connections of each driver, by name.
    pub connections: BTreeMap<DriverName, Vec<String>>,
}

impl DriverRequests {
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

/// What is wrong with drivers, each with those that it concerns.
#[derive(Debug, Default)]
pub struct DriverFailures(Vec<DriverFailure>);

/// What is wrong with some drivers.
#[derive(Debug)]
pub struct DriverFailure {
    /// The drivers.
    pub drivers: BTreeSet<DriverName>,
    /// What is wrong.
    pub error: ReconcileError,
}

impl DriverFailures {
    /// Adds one. What is wrong with several drivers in the same way is one failure.
    pub(super) fn of(&mut self, drivers: impl IntoIterator<Item = DriverName>, error: ReconcileError) {
        let published = Failure::from(&error);
        match self.0.iter_mut().find(|known| Failure::from(&known.error) == published) {
            Some(known) => known.drivers.extend(drivers),
            None => self.0.push(DriverFailure {
                drivers: drivers.into_iter().collect(),
                error,
            }),
        }
    }

    /// Adds others.
    pub(super) fn join(&mut self, later: Self) {
        later.0.into_iter().for_each(|failure| self.of(failure.drivers, failure.error));
    }

    /// What is wrong, driver by driver.
    pub(super) fn by_driver(&self) -> impl Iterator<Item = (DriverName, Failure)> {
        let of = |failure: &DriverFailure| (failure.drivers.clone(), Failure::from(&failure.error));
        let each = self.0.iter().map(of);
        each.flat_map(|(drivers, failure)| drivers.into_iter().map(move |driver| (driver, failure.clone())))
    }

    /// Leaves out what is wrong with these drivers.
    pub(super) fn forgive(&mut self, drivers: impl Fn(&DriverName) -> bool) {
        for failure in &mut self.0 {
            failure.drivers.retain(|driver| !drivers(driver));
        }
        self.0.retain(|failure| !failure.drivers.is_empty());
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
    pub fn published(&self) -> impl Iterator<Item = Failure> {
        self.0.iter().map(|failure| Failure::from(&failure.error))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &DriverFailure> {
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
    pub fn into_inner(self) -> Vec<DriverFailure> {
        self.0
    }
}

/// The drivers in a state.
fn in_state(spec: &VDOConfigSpec, state: ManagementState) -> impl Iterator<Item = DriverName> {
    let all = drivers::requests(spec).into_iter();
    all.filter(move |request| request.state == state).map(|request| request.driver)
}

/// The drivers that are to be removed.
#[must_use]
pub(super) fn removed(spec: &VDOConfigSpec) -> BTreeSet<DriverName> {
    in_state(spec, ManagementState::Removed).collect()
}

/// The drivers of which nothing is written.
#[must_use]
pub(super) fn paused(spec: &VDOConfigSpec) -> BTreeSet<DriverName> {
    in_state(spec, ManagementState::Paused).collect()
}

/// Reads the specification against the connections that exist. A driver that is to be removed is not asked for.
#[must_use]
pub fn requests(spec: &VDOConfigSpec, namespace: &str, existing: &BTreeSet<String>) -> (DriverRequests, DriverFailures) {
    let (mut asked, mut failures) = (DriverRequests::default(), DriverFailures::default());
    for request in drivers::requests(spec) {
        if request.state == ManagementState::Removed {
            continue;
        }
        let driver = request.driver.clone();
        let unconnected = existing.is_empty() && request.uses != Uses::These(Vec::new());
        let inserted = match unconnected {
            true => Err(ReconcileError::NoConnections {
                namespace: namespace.into(),
            }),
            false => asked.insert(&request, existing),
        };
        let Err(error) = inserted else { continue };
        failures.of([driver.clone()], error);
        let connections: Vec<String> = existing.iter().cloned().collect();
        let wanted = DriverRequest {
            connections: Some(connections.clone()),
            ..DriverRequest::default()
        };
        asked.drivers.insert(driver.clone(), wanted);
        asked.connections.insert(driver, connections);
    }
    (asked, failures)
}

/// The same, for a question about all of them.
///
/// # Errors
/// When there is no connection, a name leads nowhere, or a pin is no version.
pub fn asked(spec: &VDOConfigSpec, namespace: &str, existing: &BTreeSet<String>) -> Result<DriverRequests, ReconcileError> {
    let (asked, failures) = requests(spec, namespace, existing);
    match failures.into_inner().into_iter().next() {
        Some(failure) => Err(failure.error),
        None => Ok(asked),
    }
}

impl DriverRequests {
    /// Whether a driver is asked for.
    #[must_use]
    pub fn wants(&self, driver: &str) -> bool {
        self.drivers.contains_key(driver)
    }

    fn insert(&mut self, request: &Request, existing: &BTreeSet<String>) -> Result<(), ReconcileError> {
        let connections = connections(request, existing)?;
        let pin = pin(request)?;
        let wanted = DriverRequest {
            pin,
            allow_incompatible: request.allow_incompatible,
            features: request.features.clone(),
            states: request.states.clone(),
            connections: Some(connections.clone()),
            ..DriverRequest::default()
        };
        self.drivers.insert(request.driver.clone(), wanted);
        self.connections.insert(request.driver.clone(), connections);
        Ok(())
    }
}

fn pin(request: &Request) -> Result<Option<DriverVersion>, ReconcileError> {
    let version = request.version.as_deref().filter(|text| !text.is_empty());
    version
        .map(str::parse::<DriverVersion>)
        .transpose()
        .map_err(|error| ReconcileError::InvalidSpec {
            object: "VDOConfig".into(),
            field: format!("{}.version", drivers::field(&request.driver)),
            problem: error.to_string(),
        })
}

fn connections(request: &Request, existing: &BTreeSet<String>) -> Result<Vec<String>, ReconcileError> {
    let Uses::These(names) = &request.uses else {
        return Ok(existing.iter().cloned().collect());
    };
    let names: BTreeSet<&String> = names.iter().collect();
    if let Some(name) = names.iter().find(|name| !existing.contains(**name)) {
        return Err(ReconcileError::ConnectionNotFound {
            field: format!("{}.vsphereCloudConfigs", drivers::field(&request.driver)),
            name: (*name).clone(),
            known: existing.iter().cloned().collect::<Vec<_>>().join(", "),
        });
    }
    Ok(names.into_iter().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vdo_core::drivers::{CPI, CSI};

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
    fn failures_of_the_same_kind_are_one_with_all_its_drivers() {
        let failures = |spec: serde_json::Value, existing: &[&str]| {
            let spec: VDOConfigSpec = serde_json::from_value(spec).expect("a specification");
            let (_, failures) = requests(&spec, "ns", &existing.iter().map(|name| (*name).to_owned()).collect());
            failures.into_inner().into_iter().map(|failure| failure.drivers).collect::<Vec<_>>()
        };
        assert_eq!(failures(json!({}), &[]), [BTreeSet::from([CPI.to_owned(), CSI.to_owned()])]);
        let pins = json!({"cloudProvider": {"version": "new"}, "storageProvider": {"version": "new"}});
        assert_eq!(failures(pins, &["a"]).len(), 2, "each names its own field");
    }

    #[test]
    fn requested_features_all_are_in_matrix() {
        let index = Index::parse(vdo_source::fetch::embedded::index()).expect("an index");
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
            (json!({}), &[], "there is no vSphere connection in namespace ns"),
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
