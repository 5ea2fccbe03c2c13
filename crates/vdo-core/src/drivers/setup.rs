// SPDX-License-Identifier: Apache-2.0
//! Makes a chart's values from the specification, and the ConfigMaps and Secrets with the driver's configuration and passwords.

use super::{Material, SetupError, known};
use crate::chart::{self, Chart};
use crate::driverconfig;
use crate::manifest::Object;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use vdo_api::api::VDOConfigSpec;
use vdo_api::facts;
use vdo_api::types::{DriverVersion, Secret};

/// What the configuration of a driver is written from.
pub struct Setup<'a> {
    /// The specification.
    pub spec: &'a VDOConfigSpec,
    /// The version of the driver.
    pub version: &'a DriverVersion,
    /// The namespace of its pods.
    pub namespace: &'a str,
    /// The connections that it uses.
    pub connections: Vec<driverconfig::Connection>,
    /// The identity under which volumes are registered.
    pub cluster_id: &'a str,
    /// Goes into digests of Secrets, so that they can be guessed in no other cluster.
    pub salt: &'a str,
    /// What the driver's webhook serves with, where that is asked for.
    pub webhook: Option<&'a Material>,
}

impl Setup<'_> {
    /// The objects with the configuration of a driver. They are in no chart, because they hold the passwords. A driver that is not known
    /// has none.
    ///
    /// # Errors
    /// When a setting cannot be written in the driver's grammar.
    pub fn write(&self, driver: &str) -> Result<Vec<Object>, SetupError> {
        let objects = match known(driver) {
            Some(driver) => (driver.write)(self)?,
            None => Vec::new(),
        };
        Ok(objects.into_iter().map(Object::new).collect::<Result<_, _>>()?)
    }
}

/// The values of a chart: fields of the specification, overlaid with its free values.
#[must_use]
pub fn values(spec: &VDOConfigSpec, chart: &Chart, webhook: Option<&Material>) -> Value {
    let mut values = json!({});
    let mut set = |path: &[&str], value: Value| put(&mut values, path, value);
    // A mirror holds what the matrix lists. Without one, an image whose first registry is gone comes from where it is now.
    let mirrored = spec.images.as_ref().is_some_and(|images| images.registry.is_some());
    if !mirrored && chart.values.pointer("/images/useRepublished").is_some() {
        set(&["images", "useRepublished"], true.into());
    }
    // The manifests of the drivers have none; a drain would take all pods of a controller at once.
    if chart.values.get("podDisruptionBudgets").is_some() {
        set(&["podDisruptionBudgets"], true.into());
    }
    if let Some(images) = &spec.images {
        if let Some(registry) = &images.registry {
            set(&["images", "registry"], registry.clone().into());
        }
        if !images.pull_secrets.is_empty() {
            set(&["imagePullSecrets"], json!(images.pull_secrets));
        }
    }
    let name = &chart.metadata.name;
    let free = match known(name) {
        Some(driver) => (driver.values)(spec, webhook, &mut set),
        None => spec.driver(name).map(|driver| driver.values.clone()).unwrap_or_default(),
    };
    chart::values::merge(&mut values, &Value::Object(free));
    without_slash(&mut values);
    values
}

/// A folder is the same with a slash at its end; the manifests of a driver append to it.
fn without_slash(values: &mut Value) {
    if let Some(Value::String(folder)) = values.get_mut("kubeletPath")
        && folder.len() > 1
        && folder.ends_with('/')
    {
        folder.pop();
    }
}

fn put(values: &mut Value, path: &[&str], value: Value) {
    let mut at = values;
    for step in path {
        at = &mut at[*step];
    }
    *at = value;
}

pub(super) fn secret(namespace: &str, name: &str, data: &BTreeMap<String, Secret>) -> Value {
    let data: Map<String, Value> = data
        .iter()
        .map(|(key, value)| (key.clone(), STANDARD.encode(value.expose()).into()))
        .collect();
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "type": "Opaque", "data": data})
}

/// A connection in the words of the configuration.
#[must_use]
pub fn connection(facts: &facts::Connection) -> driverconfig::Connection {
    driverconfig::Connection {
        name: facts.name.clone(),
        // Some versions compare names of vCenters letter by letter, others in small letters; to DNS they are the same.
        server: facts.server.to_ascii_lowercase(),
        port: facts.port,
        datacenters: facts.datacenters.clone(),
        trust: facts.trust.clone(),
        sha1: facts.sha1.clone(),
        user: facts.credentials.user.clone(),
        password: facts.credentials.password.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_written_in_small_letters() {
        let facts = facts::Connection {
            name: "vc1".into(),
            server: "VC01.Example.COM".into(),
            port: 443,
            datacenters: Vec::new(),
            trust: vdo_api::types::Trust::SystemRoots,
            sha1: None,
            version: None,
            build: None,
            ready: Some(true),
            message: String::new(),
            credentials: facts::Credentials {
                user: "u".into(),
                password: Secret::new("p"),
            },
            blocked: None,
            drivers: Vec::new(),
            lacking_privileges: Vec::new(),
            machines_twice: None,
            tag_categories: Some(std::collections::BTreeMap::new()),
        };
        assert_eq!(connection(&facts).server, "vc01.example.com");
    }
}
