// SPDX-License-Identifier: Apache-2.0
//! Reads `Chart.yaml`: the driver's name, version and role, and the configuration format that the operator writes for the driver.

use serde::Deserialize;
use std::collections::BTreeMap;
use vdo_api::types::{DriverName, DriverRole, DriverVersion};

/// The template engine this build understands, as `Chart.yaml` names it.
pub(super) const ENGINE: &str = "minijinja";

/// The newest version of the template language of this build. A chart asking for a newer one is refused.
pub(super) const ENGINE_VERSION: u32 = 1;

/// Which grammar the driver's own configuration has. The operator writes that configuration from the connections; a chart never
/// sees a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Configuration {
    /// The cloud provider's YAML in a ConfigMap, credentials in a Secret.
    CpiYaml,
    /// The CSI driver's gcfg file in a Secret.
    CsiGcfg,
    /// The driver needs none.
    None,
}

/// The content of `Chart.yaml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// The driver.
    pub name: DriverName,
    /// The driver's version.
    pub version: DriverVersion,
    /// The version as the driver's own project writes it, for example `v3.7.3`.
    pub app_version: String,
    /// One sentence about the chart.
    pub description: String,
    /// What the driver does for the cluster.
    pub role: DriverRole,
    /// Which configuration the operator has to write for it.
    pub configuration: Configuration,
    /// All annotations.
    pub annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    api_version: String,
    name: DriverName,
    version: DriverVersion,
    #[serde(default)]
    app_version: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Metadata {
    /// Reads `Chart.yaml`; the error is a sentence about that file.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let file: File = vdo_api::yaml::load(text).map_err(|error| error.to_string())?;
        if file.api_version != "v2" {
            return Err(format!("apiVersion is {:?}; write v2", file.api_version));
        }
        let annotation = |key: &str| {
            let key = format!("vdo.vmware.com/{key}");
            file.annotations
                .get(&key)
                .map(String::as_str)
                .ok_or_else(|| format!("the annotation {key} is missing"))
        };
        let engine = annotation("engine")?;
        if engine != ENGINE {
            return Err(format!(
                "the templates of the chart are for the engine {engine:?}, but this build supports only {ENGINE}"
            ));
        }
        let wanted = annotation("engine-version")?;
        if !wanted.parse::<u32>().is_ok_and(|version| (1..=ENGINE_VERSION).contains(&version)) {
            return Err(format!(
                "the chart requires engine version {wanted:?}, but this build supports only versions up to {ENGINE_VERSION}; update VDO"
            ));
        }
        Ok(Self {
            role: word(annotation("role")?, "role", "cloud-provider, storage, network, other")?,
            configuration: word(annotation("configuration")?, "configuration", "cpi-yaml, csi-gcfg, none")?,
            name: file.name,
            version: file.version,
            app_version: file.app_version,
            description: file.description,
            annotations: file.annotations,
        })
    }
}

fn word<T: serde::de::DeserializeOwned>(text: &str, key: &str, allowed: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|_| format!("the annotation vdo.vmware.com/{key} is {text:?}; write one of {allowed}"))
}
