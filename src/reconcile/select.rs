//! What a VDOConfig asks for, resolved to names that exist (pure).

use super::error::ReconcileError;
use crate::api::VDOConfigSpec;
use crate::matrix::DriverRequest;
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
    /// All connections that some driver uses.
    #[must_use]
    pub fn used(&self) -> BTreeSet<&str> {
        self.connections.values().flatten().map(String::as_str).collect()
    }
}

/// Reads the specification against the connections that exist.
///
/// # Errors
/// When there is no connection, a name leads nowhere, or a pin is no version.
pub fn asked(spec: &VDOConfigSpec, namespace: &str, existing: &BTreeSet<String>) -> Result<Asked, ReconcileError> {
    if existing.is_empty() {
        return Err(ReconcileError::NoConnections {
            namespace: namespace.into(),
        });
    }
    let both = spec.cloud_provider.is_none() && spec.storage_provider.is_none();
    let mut asked = Asked::default();
    if both || spec.cloud_provider.is_some() {
        let cpi = spec.cloud_provider.clone().unwrap_or_default();
        asked.drivers.insert(
            CPI.into(),
            request("cloudProvider", cpi.version.as_deref(), cpi.allow_incompatible)?,
        );
        let names = cpi.vsphere_cloud_configs;
        asked
            .connections
            .insert(CPI.into(), connections("spec.cloudProvider.vsphereCloudConfigs", names, existing)?);
    }
    if both || spec.storage_provider.is_some() {
        let csi = spec.storage_provider.clone().unwrap_or_default();
        asked.drivers.insert(
            CSI.into(),
            request("storageProvider", csi.version.as_deref(), csi.allow_incompatible)?,
        );
        let mut names = csi.vsphere_cloud_configs;
        names.extend(csi.vsphere_cloud_config);
        asked.connections.insert(
            CSI.into(),
            connections("spec.storageProvider.vsphereCloudConfigs", names, existing)?,
        );
    }
    Ok(asked)
}

fn request(field: &str, version: Option<&str>, allow_incompatible: bool) -> Result<DriverRequest, ReconcileError> {
    let pin = version
        .filter(|text| !text.is_empty())
        .map(str::parse::<DriverVersion>)
        .transpose()
        .map_err(|error| ReconcileError::InvalidSpec {
            object: "VDOConfig".into(),
            field: format!("spec.{field}.version"),
            problem: error.to_string(),
        })?;
    Ok(DriverRequest {
        pin,
        allow_incompatible,
        ..DriverRequest::default()
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
    fn what_is_asked_for() {
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
