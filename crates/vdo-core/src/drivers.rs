// SPDX-License-Identifier: Apache-2.0
//! The table of drivers that the operator knows (`KNOWN`): name, role, field, condition, workloads, and effects on nodes of CPI and CSI.
//!
//! A driver that is not in the table works from its chart and its matrix entry alone: it has no configuration of the operator's, waits for
//! no nodes, and is requested by `spec.drivers`.

mod cpi;
mod csi;
mod default_class;
mod feature_states;
mod requested_drivers;
mod resources;
mod setup;
mod topology;
mod values_from;
mod volume_settings;

pub use crate::driverconfig::csi::reads_file_share_datastores;
pub use cpi::{CPI, node_addresses};
pub use csi::{CSI, CSI_DRIVER, CSI_SECRET, Material, SERVED, cluster_id, cluster_id_places, topology_keys};
pub use default_class::{
    DEFAULT_ANNOTATIONS, DEFAULT_SNAPSHOT_ANNOTATION, default_class, default_snapshot_class, is_default, with_default_class,
    with_default_snapshot_class,
};
pub use feature_states::{MIGRATION, ONLINE_EXPANSION, SNAPSHOTS, feature_states};
pub use requested_drivers::{Request, Uses, is_requested, requests};
pub use resources::resources;
pub use setup::{Setup, connection, values};
pub use topology::categories;
pub use values_from::{Unread, put_over, values_sources, with_values_from};
pub use volume_settings::VolumeSettings;

use crate::chart::Chart;
use crate::driverconfig::ConfigError;
use crate::installed::{Evidence, Image};
use crate::manifest::ManifestError;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use vdo_api::api::{ConditionType, NodesStatus, Reason};
use vdo_api::facts::Node;
use vdo_api::types::{DriverRole, Remedy};

/// A driver that the operator knows.
pub struct Driver {
    /// Its name in the matrix.
    pub name: &'static str,
    /// What people call it.
    pub short: &'static str,
    /// What it is, in a sentence.
    pub what: &'static str,
    /// What it does for the cluster.
    pub role: DriverRole,
    /// The field of the specification that requests it.
    pub field: &'static str,
    /// The condition that says how it is.
    pub condition: ConditionType,
    /// What it calls itself in CSIDriver, CSINode, VolumeAttachment and PersistentVolume objects, where it provides volumes.
    pub csi_driver: Option<&'static str>,
    /// Where its objects are, by API version, kind and namespace; where its inventory is lost they are found there.
    pub places: &'static [(&'static str, &'static str, &'static str)],
    /// The namespace of its configuration.
    pub namespace: &'static str,
    /// The Secrets and ConfigMaps with its configuration, by kind and name.
    pub written: &'static [(&'static str, &'static str)],
    /// The names of its workloads, in its namespace.
    pub workloads: &'static [&'static str],
    /// Whether an image has its program.
    pub is_image: fn(&Image<'_>) -> bool,
    /// By what a pod is known to run it, given the specification of the pod.
    pub runs: fn(&Value) -> Option<Evidence>,
    /// What it does on each node.
    pub on_nodes: OnNodes,
    request: fn(&vdo_api::api::VDOConfigSpec) -> Option<Request>,
    values: fn(&vdo_api::api::VDOConfigSpec, Option<&Material>, &mut Setter<'_>) -> Map<String, Value>,
    /// The options that are set and that this version cannot use, each with the reason.
    ignored: fn(&vdo_api::api::VDOConfigSpec, &Chart) -> Vec<(String, String)>,
    write: fn(&Setup<'_>) -> Result<Vec<Value>, SetupError>,
}

/// Sets a value of a chart, by its path.
type Setter<'a> = dyn FnMut(&[&str], Value) + 'a;

/// What a driver does on each node, by which it is known to work.
pub struct OnNodes {
    /// What a node waits for until it is done there, with these topology keys.
    pub waits_for: fn(&Node, &BTreeSet<String>) -> Option<&'static str>,
    /// Whether its pods on a node do it: then nothing is waited for where none may run.
    pub by_pods: bool,
    /// The reason of the condition until then.
    pub reason: Reason,
    /// What the nodes are afterwards.
    pub done: &'static str,
    /// How many nodes are done.
    pub count: fn(&NodesStatus) -> i64,
}

/// The configuration of a driver cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A setting does not fit the driver's grammar.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// What was written is not an object.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

impl Remedy for SetupError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Config(error) => error.remedy(),
            Self::Manifest(error) => error.remedy(),
        }
    }
}

/// The table.
pub const KNOWN: [&Driver; 2] = [&cpi::DRIVER, &csi::DRIVER];

/// Drivers of the embedded matrix that `spec.drivers` has to name. A cluster may have them from elsewhere, under the same names, so that
/// nothing of them is brought before that, not even a role.
pub const ON_REQUEST: [&str; 2] = [ANTREA, SNAPSHOT_CONTROLLER];

/// Of these, the ones for which also the rights of the operator come on request, in roles of their own.
pub const RIGHTS_ON_REQUEST: [&str; 1] = [ANTREA];

/// A pod network: privileged pods on every node, aggregated APIs and webhooks.
pub const ANTREA: &str = "antrea";

/// The controller and the definitions of volume snapshots.
pub const SNAPSHOT_CONTROLLER: &str = "snapshot-controller";

/// Whether a driver comes only where it is named.
#[must_use]
pub fn is_on_request(name: &str) -> bool {
    ON_REQUEST.contains(&name)
}

/// Whether the rights of the operator for a driver are in roles of their own, which come only where the driver is named.
#[must_use]
pub fn has_rights_on_request(name: &str) -> bool {
    RIGHTS_ON_REQUEST.contains(&name)
}

/// The driver that initialises nodes.
pub const CLOUD_PROVIDER: &Driver = &cpi::DRIVER;

/// The driver that provides volumes.
pub const STORAGE: &Driver = &csi::DRIVER;

/// The entry of a driver.
#[must_use]
pub fn known(name: &str) -> Option<&'static Driver> {
    KNOWN.into_iter().find(|driver| driver.name == name)
}

/// What people call a driver.
#[must_use]
pub fn short(name: &str) -> &str {
    known(name).map_or(name, |driver| driver.short)
}

/// The field of the specification that requests a driver.
#[must_use]
pub fn field(name: &str) -> String {
    known(name).map_or_else(|| format!("spec.drivers[{name}]"), |driver| format!("spec.{}", driver.field))
}

/// The command that sets the version of a driver in the specification; `null` takes it out.
#[must_use]
pub fn set_version(name: &str, version: &str) -> String {
    let field = field(name);
    let field = field.strip_prefix("spec.").unwrap_or(&field);
    format!("vdoctl configure drivers --set {field}.version={version}")
}

/// The options that are set and that the version of the chart cannot use, in sentences. They are not errors, because the driver works
/// without them.
#[must_use]
pub fn ignored(spec: &vdo_api::api::VDOConfigSpec, chart: &Chart) -> Vec<String> {
    let Some(driver) = known(&chart.metadata.name) else {
        return Vec::new();
    };
    let sentence = |(option, because): (String, String)| {
        let (field, short, version) = (driver.field, driver.short, &chart.metadata.version);
        format!("spec.{field}.{option} has no effect with {short} {version}: {because}")
    };
    (driver.ignored)(spec, chart).into_iter().map(sentence).collect()
}

/// What a driver does for the cluster, as far as the table says.
#[must_use]
pub fn role(name: &str) -> DriverRole {
    known(name).map_or(DriverRole::Other, |driver| driver.role)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_drivers_each_have_an_own_name_role_field_and_condition() {
        let all = |text: fn(&Driver) -> String| KNOWN.into_iter().map(text).collect::<std::collections::BTreeSet<_>>().len();
        for text in [
            |d: &Driver| d.name.to_owned(),
            |d: &Driver| d.short.to_owned(),
            |d: &Driver| d.field.to_owned(),
            |d: &Driver| d.role.to_string(),
            |d: &Driver| format!("{:?}", d.condition),
        ] {
            assert_eq!(all(text), KNOWN.len());
        }
        assert_eq!(
            (CLOUD_PROVIDER.role, STORAGE.role),
            (DriverRole::CloudProvider, DriverRole::Storage)
        );
        assert_eq!((short("antrea"), role("antrea")), ("antrea", DriverRole::Other));
        assert_eq!(
            (field("antrea").as_str(), field(CPI).as_str()),
            ("spec.drivers[antrea]", "spec.cloudProvider")
        );
    }
}
