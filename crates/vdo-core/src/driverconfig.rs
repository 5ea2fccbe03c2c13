// SPDX-License-Identifier: Apache-2.0
//! The configuration files of the drivers, in the drivers' own formats.
//!
//! | driver | file | format | object |
//! |---|---|---|---|
//! | CSI | `csi-vsphere.conf` | gcfg (an INI dialect) | a Secret, because it holds the passwords |
//! | CPI | `vsphere.conf` | YAML | a ConfigMap; the passwords are in a separate Secret |
//!
//! Guarantees: a driver reads back exactly the values that were written, byte for byte; a value that its format cannot express is
//! refused here instead of being cut short there. The order of the connections does not matter. No password reaches an
//! error, a `Debug` text or the ConfigMap.
//!
//! Pure: no client, clock, environment or file.

mod check;
pub mod cpi;
pub mod csi;
mod error;
mod gcfg;
pub mod gcfg_reader;
pub mod node_addresses;
mod yaml;

pub use error::ConfigError;
pub use vdo_api::types::{Thumbprint, Trust};

use vdo_api::types::{DriverVersion, Secret};

/// The folder in which both drivers find the keys of their Secret or ConfigMap as files.
pub const CONFIG_DIR: &str = "/etc/cloud";

/// One vCenter as it is written into the drivers' configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// What the connection is called in the cluster; part of the keys of Secrets and ConfigMaps.
    pub name: String,
    /// The address that is dialled: host name, IPv4, or IPv6 without brackets.
    pub server: String,
    /// The port, normally 443.
    pub port: u16,
    /// Names or inventory paths; empty means all.
    pub datacenters: Vec<String>,
    /// How the certificate is checked.
    pub trust: Trust,
    /// The SHA-1 thumbprint of the certificate that `trust` names by SHA-256, once it has been seen.
    pub sha1: Option<Thumbprint>,
    /// The user, as `user@domain` or `DOMAIN\user`.
    pub user: String,
    /// The password.
    pub password: Secret,
}

impl Connection {
    /// The key under which this connection's CA bundle is stored, when it has one.
    fn ca_key(&self) -> String {
        format!("{}.ca.pem", self.name)
    }

    /// The file in which the driver finds this connection's CA bundle.
    fn ca_path(&self) -> String {
        format!("{CONFIG_DIR}/{}", self.ca_key())
    }

    /// The thumbprint as a driver can compare it: those built on govmomi before 0.36.1 know SHA-1 alone, and call any other a mismatch.
    fn comparable(
        &self,
        print: &Thumbprint,
        driver: &'static str,
        version: &DriverVersion,
        since: &str,
    ) -> Result<Thumbprint, ConfigError> {
        if print.is_sha1() || at_least(version, since) {
            return Ok(print.clone());
        }
        self.sha1.clone().ok_or_else(|| ConfigError::Sha1Unknown {
            name: self.name.clone(),
            driver,
            version: version.clone(),
        })
    }
}

fn at_least(version: &DriverVersion, since: &str) -> bool {
    since.parse::<DriverVersion>().is_ok_and(|since| *version >= since)
}
