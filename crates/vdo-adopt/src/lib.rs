// SPDX-License-Identifier: Apache-2.0
//! Reads an installation of the drivers by another tool, and converts it into the objects of VDO.
//!
//! ```text
//! files of the drivers  --read-->  settings  --+
//! Secrets with accounts --read-->  accounts  --+--> VDOConfig, VsphereCloudConfigs, Secrets; losses
//! workloads x chart     --compare--> settings--+
//! ```
//!
//! Each field has its origin, and every setting that no field can express is a [`Loss`]. A value that is the same in the chart of this version
//! is not a setting.
//!
//! Pure: no client, clock, environment or file; the caller passes the objects that it has read.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::too_many_lines))]

mod config;
mod connections;
mod cpi;
mod credentials;
mod csi;
mod draft;
mod error;
mod files;
mod ini;
mod mounts;
pub mod moving;
mod origin;
mod replaced_config;
mod server;
mod text;
mod workload;
mod yaml;

pub use connections::Account;
pub use draft::Draft;
pub use error::AdoptError;
pub use files::missing;
pub use mounts::Objects;
pub use origin::{Loss, Origin};
pub use replaced_config::lost;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use config::Parts;
use connections::{Connection, merged};
use files::Depth;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vdo_core::chart::Chart;
use vdo_core::drivers::{CLOUD_PROVIDER, Driver, STORAGE};
use vdo_core::installed::Installed;
use vdo_core::manifest::Object;
use workload::Role;

/// What was found in a cluster.
pub struct Installation<'a> {
    /// The workloads that run a driver.
    pub workloads: &'a [Installed],
    /// The Secrets and ConfigMaps that they use; see [`missing`].
    pub objects: &'a Objects,
    /// The charts that the workloads are compared with, by driver: of the same version, or of the nearest one.
    pub charts: &'a BTreeMap<&'static str, Chart>,
    /// The connections that the operator's namespace has already.
    pub connections: &'a [Object],
    /// How many nodes the control plane has.
    pub control_planes: u32,
    /// The namespace of the operator.
    pub namespace: &'a str,
    /// The name of the VDOConfig.
    pub name: &'a str,
}

impl<'a> Installation<'a> {
    /// The workloads that run a driver; one that only mentions it does not. Those without pods count where there are no others, and on
    /// Windows, where most clusters have no nodes.
    pub(crate) fn of(&self, driver: &Driver) -> Vec<&'a Installed> {
        let runs = |one: &&Installed| one.driver.name == driver.name && one.evidence.is_proof();
        let all = self.workloads.iter().filter(runs);
        let active: Vec<&Installed> = all.clone().filter(|one| one.is_active() || is_idle(one)).collect();
        if active.is_empty() { all.collect() } else { active }
    }
}

/// Whether a workload waits for nodes with Windows.
fn is_idle(one: &Installed) -> bool {
    Role::of(&one.object, one.driver.name) == Some(Role::Windows) && !one.object.is_terminating()
}

/// One object of an adoption.
#[derive(Debug, Clone)]
pub struct Document {
    /// The object; a Secret without its data.
    pub draft: Draft,
    /// The data of a Secret.
    pub account: Option<Account>,
}

impl Document {
    fn new(draft: Draft) -> Self {
        Self { draft, account: None }
    }

    /// The whole object, with the data of a Secret.
    #[must_use]
    pub fn object(&self) -> Value {
        let mut object = self.draft.object.clone();
        if let Some(account) = &self.account {
            let encoded = |text: &str| STANDARD.encode(text);
            object["data"] = json!({"username": encoded(account.user.expose()), "password": encoded(account.password.expose())});
        }
        object
    }

    /// Its kind and name.
    #[must_use]
    pub fn name(&self) -> String {
        let text = |pointer: &str| self.draft.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        format!("{} {}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
    }

    /// The document in YAML, each setting with a comment that says where it was found. Data of a Secret are printed where that is asked for.
    #[must_use]
    pub fn yaml(&self, with_secrets: bool) -> String {
        let mut draft = self.draft.clone();
        if self.account.is_none() || with_secrets {
            draft.object = self.object();
            return format!("---\n{}", yaml::commented(&draft));
        }
        let keys = draft
            .origins
            .iter()
            .map(|(path, origin)| format!("#   {}: {origin}\n", path.join(".")));
        let keys: String = keys.collect();
        format!("---\n# {} is not printed; its values are from:\n{keys}", self.name())
    }
}

/// The objects that an installation is described by.
#[derive(Debug, Clone)]
pub struct Adoption {
    /// Secrets, ConfigMaps, connections and the VDOConfig, in the order in which they are created.
    pub documents: Vec<Document>,
    /// What they cannot express.
    pub losses: Vec<Loss>,
    /// The connections that lead to the drivers' vCenters already. They stay as they are, and count more than the drivers' files.
    pub kept: Vec<String>,
}

/// Reads an installation.
///
/// # Errors
/// When a file cannot be read, when nothing names a vCenter, when parts of the installation contradict each other, or when something they
/// refer to is not there. An installation without workloads is one of no driver.
pub fn adoption(installation: &Installation<'_>) -> Result<Adoption, AdoptError> {
    let cpi = files::cpi(installation, Depth::Everything)?;
    let csi = files::csi(installation, Depth::Everything)?;
    let servers = |servers: Option<Vec<server::Server>>| servers.unwrap_or_default();
    let connections = merged(
        servers(
            cpi.as_ref()
                .map(|(file, _)| file.servers.iter().map(|one| one.server.clone()).collect()),
        ),
        servers(csi.as_ref().map(|(file, _)| file.servers.clone())),
        installation.connections,
    );
    if csi.is_some() && connections.is_empty() && installation.connections.is_empty() {
        let workload = files::names(&installation.of(STORAGE));
        return Err(AdoptError::Half { workload });
    }
    let mut losses = Vec::new();
    let parts = Parts {
        installation,
        connections: &connections,
        cpi: cpi.as_ref().map(|(file, _)| file),
        csi: csi.as_ref().map(|(file, _)| file),
    };
    let of_files = [cpi.as_ref().map(|(_, lost)| lost), csi.as_ref().map(|(_, lost)| lost)];
    for lost in of_files.into_iter().flatten() {
        losses.extend(lost.all.iter().cloned());
    }
    let config = parts.config(&mut losses);
    let (kept, new): (Vec<&Connection>, Vec<&Connection>) = connections.iter().partition(|one| one.exists);
    let mut documents: Vec<Document> = new.iter().map(|one| secret(one, installation.namespace)).collect();
    let maps = new.iter().filter_map(|one| one.authorities(installation.namespace));
    documents.extend(maps.map(Document::new));
    documents.extend(new.iter().map(|one| Document::new(one.object(installation.namespace))));
    documents.push(Document::new(config));
    Ok(Adoption {
        documents,
        losses,
        kept: kept.into_iter().map(|one| one.name.clone()).collect(),
    })
}

fn secret(connection: &Connection, namespace: &str) -> Document {
    let (draft, account) = connection.secret(namespace);
    Document {
        draft,
        account: Some(account),
    }
}

/// The drivers of an installation, in the words of losses.
pub(crate) const DRIVERS: [(&Driver, &str); 2] = [(CLOUD_PROVIDER, "cpi"), (STORAGE, "csi")];
