// SPDX-License-Identifier: Apache-2.0
//! Resolves the specification of a VDOConfig to requests for drivers: pins, connections, patches (pure).

use super::driver_run::{Asked, DriverRuns};
use super::error::ReconcileError;
use std::collections::BTreeSet;
use std::sync::Arc;
use vdo_api::api::{ManagementState, VDOConfigSpec};
use vdo_api::types::DriverVersion;
use vdo_core::drivers::{self, Request, Uses};
use vdo_core::matrix::DriverRequest;
use vdo_core::patches;

/// Reads the specification against the connections that exist. A driver that is to be removed is not asked for. A patch for a driver that
/// no one requests fails under the name of that driver.
#[must_use]
pub fn requests(spec: &VDOConfigSpec, namespace: &str, existing: &BTreeSet<String>) -> DriverRuns {
    let mut runs = DriverRuns::default();
    for request in drivers::requests(spec) {
        let run = runs.of(&request.driver);
        run.management = request.state;
        if request.state == ManagementState::Removed {
            continue;
        }
        let unconnected = existing.is_empty() && request.uses != Uses::These(Vec::new());
        let asked = match unconnected {
            true => Err(ReconcileError::NoConnections {
                namespace: namespace.into(),
            }),
            false => asked_of(&request, existing),
        };
        let asked = asked.unwrap_or_else(|error| {
            run.fail(error);
            // As much as is known: its connections are looked at.
            of_connections(existing.iter().cloned().collect())
        });
        run.asked = Some(asked);
    }
    let requested = runs.iter().map(|run| run.name.clone()).collect();
    for (driver, refused) in patches::of_no_driver(spec, &requested) {
        runs.of(&driver).fail(ReconcileError::Patch {
            namespace: namespace.into(),
            refused: Box::new(refused),
        });
    }
    runs
}

/// The same, for a question about all of them.
///
/// # Errors
/// When there is no connection, a name leads nowhere, or a pin is not a version.
pub fn asked(spec: &VDOConfigSpec, namespace: &str, existing: &BTreeSet<String>) -> Result<DriverRuns, Arc<ReconcileError>> {
    let runs = requests(spec, namespace, existing);
    match runs.failures().into_iter().next() {
        Some(failure) => Err(failure.error),
        None => Ok(runs),
    }
}

fn of_connections(connections: Vec<String>) -> Asked {
    Asked {
        question: DriverRequest {
            connections: Some(connections.clone()),
            ..DriverRequest::default()
        },
        connections,
    }
}

fn asked_of(request: &Request, existing: &BTreeSet<String>) -> Result<Asked, ReconcileError> {
    let asked = of_connections(connections(request, existing)?);
    let question = DriverRequest {
        pin: pin(request)?,
        allow_incompatible: request.allow_incompatible,
        features: request.features.clone(),
        states: request.states.clone(),
        ..asked.question
    };
    Ok(Asked { question, ..asked })
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
    use vdo_core::matrix::Index;

    fn ask(spec: serde_json::Value, existing: &[&str]) -> String {
        let spec: VDOConfigSpec = serde_json::from_value(spec).expect("a specification");
        match asked(&spec, "ns", &existing.iter().map(|s| (*s).to_owned()).collect()) {
            Ok(runs) => runs
                .asked()
                .map(|(run, asked)| format!("{}={}", run.name, asked.connections.join("+")))
                .collect::<Vec<_>>()
                .join(" "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn requested_features_each_spec_field_requires_feature() {
        let asks = |storage: serde_json::Value| {
            let spec: VDOConfigSpec = serde_json::from_value(json!({"storageProvider": storage})).expect("a specification");
            let questions = asked(&spec, "ns", &["a".to_owned()].into()).expect("a request").questions();
            let features = questions[CSI].features.iter();
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
            let runs = requests(&spec, "ns", &existing.iter().map(|name| (*name).to_owned()).collect());
            runs.failures().into_iter().map(|failure| failure.drivers).collect::<Vec<_>>()
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
        let mut runs = asked(&spec, "ns", &["a".to_owned()].into()).expect("a request");
        let features = |runs: &DriverRuns| runs.questions()[CSI].features.len();
        let before = features(&runs);
        runs.leave_to(&index);
        assert_eq!((before, features(&runs)), (7, 7));
        let mut bare = index.clone();
        bare.drivers
            .values_mut()
            .flat_map(|driver| &mut driver.versions)
            .for_each(|entry| std::sync::Arc::make_mut(&mut entry.facts).features.clear());
        runs.leave_to(&bare);
        assert_eq!(features(&runs), 0, "a matrix that knows no features is not asked for any");
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
                "spec.storageProvider.vsphereCloudConfigs names vSphere connection c, which does not exist; the existing connections are: a, b",
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
