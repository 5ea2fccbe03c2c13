// SPDX-License-Identifier: Apache-2.0
//! Writes `vsphere.conf`, the YAML file of the cloud provider (CPI), and the data of its Secret with the credentials.

use super::check::{connections, is_subnet, unlistable};
pub use super::node_addresses::{IpFamily, NodeAddresses, NodeNetwork};
use super::yaml::{list, quoted};
use super::{ConfigError, Connection, Trust};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use vdo_api::types::{DriverVersion, Secret, from_json};

/// The key of the ConfigMap that holds the file.
pub const FILE: &str = "vsphere.conf";
/// The first version that compares SHA-256 thumbprints (1.30.0 does too).
const SHA256: &str = "1.29.2";

/// What the CPI gets besides the connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpiOptions {
    /// The Secret with the credentials.
    pub secret_name: String,
    /// Its namespace.
    pub secret_namespace: String,
    /// The tag categories of zones and regions; both or none, because the CPI ignores one alone.
    pub topology: Option<Topology>,
    /// Which addresses a node gets.
    pub addresses: NodeAddresses,
}

/// The tag categories in vCenter that name zones and regions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// The category of zones, for example `k8s-zone`.
    pub zone: String,
    /// The category of regions, for example `k8s-region`.
    pub region: String,
}

/// What the CPI reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpiConfig {
    /// The file; it holds no credentials.
    pub conf: String,
    /// Further keys of the ConfigMap: one `<connection>.ca.pem` for every CA bundle. All keys must be mounted at
    /// [`super::CONFIG_DIR`].
    pub files: BTreeMap<String, String>,
    /// The data of the Secret that the file names.
    pub secret: BTreeMap<String, Secret>,
}

/// The file, the keys beside it and the data of the Secret.
///
/// # Errors
/// When a value cannot be expressed so that the CPI reads it back as it was.
pub fn render(version: &DriverVersion, options: &CpiOptions, given: &[Connection]) -> Result<CpiConfig, ConfigError> {
    let connections = connections(given)?;
    let mut files = BTreeMap::new();
    let mut secret = BTreeMap::new();
    let mut conf = String::new();

    let _ = writeln!(conf, "global:");
    let _ = writeln!(conf, "  secretName: {}", quoted(&options.secret_name));
    let _ = writeln!(conf, "  secretNamespace: {}", quoted(&options.secret_namespace));
    let families = &options.addresses.families;
    if !families.is_empty() {
        let _ = writeln!(conf, "  ipFamily: {}", list(families.iter().map(|family| family.word())));
    }
    let _ = writeln!(conf, "vcenter:");
    for connection in &connections {
        let _ = writeln!(conf, "  {}:", quoted(&connection.name));
        let _ = writeln!(conf, "    server: {}", quoted(&connection.server));
        let _ = writeln!(conf, "    port: {}", connection.port);
        if !connection.datacenters.is_empty() {
            let _ = writeln!(conf, "    datacenters: {}", list(connection.datacenters.iter().map(String::as_str)));
        }
        match &connection.trust {
            Trust::SystemRoots => {}
            Trust::CaBundle(pem) => {
                // The YAML reader knows `caFile` only; the hyphenated spelling of the INI form is ignored without a word.
                let _ = writeln!(conf, "    caFile: {}", quoted(&connection.ca_path()));
                files.insert(connection.ca_key(), pem.clone());
            }
            Trust::Thumbprint(print) => {
                let print = connection.comparable(print, "CPI", version, SHA256)?;
                let _ = writeln!(conf, "    thumbprint: {}", quoted(&print.to_string()));
            }
            Trust::Insecure => {
                let _ = writeln!(conf, "    insecureFlag: true");
            }
        }
        credentials(&mut secret, connection);
    }
    if let Some(topology) = &options.topology {
        for text in [&topology.zone, &topology.region] {
            if let Some(because) = unlistable(text) {
                return Err(ConfigError::Text {
                    field: "the tag category",
                    text: text.clone(),
                    because,
                });
            }
        }
        let _ = writeln!(conf, "labels:");
        let _ = writeln!(conf, "  zone: {}", quoted(&topology.zone));
        let _ = writeln!(conf, "  region: {}", quoted(&topology.region));
    }
    let nodes = nodes(&options.addresses)?;
    if !nodes.is_empty() {
        let _ = writeln!(conf, "nodes:");
        for (key, text) in nodes {
            let _ = writeln!(conf, "  {key}: {}", quoted(&text));
        }
    }
    Ok(CpiConfig { conf, files, secret })
}

/// The tag categories in a file as it is rendered here.
#[must_use]
pub fn categories(conf: &str) -> BTreeSet<String> {
    let labels = conf.lines().skip_while(|line| *line != "labels:").skip(1);
    let values = labels
        .take_while(|line| line.starts_with(' '))
        .filter_map(|line| line.split_once(": "));
    values.filter_map(|(_, quoted)| from_json(quoted).ok()).collect()
}

/// What chooses between the addresses of a machine: the keys and their texts.
fn nodes(addresses: &NodeAddresses) -> Result<Vec<(&'static str, String)>, ConfigError> {
    let (internal, external) = (&addresses.internal, &addresses.external);
    let lists = [
        ("internalNetworkSubnetCidr", &internal.subnets),
        ("externalNetworkSubnetCidr", &external.subnets),
        ("excludeInternalNetworkSubnetCidr", &internal.excluded),
        ("excludeExternalNetworkSubnetCidr", &external.excluded),
    ];
    let names = [("internalVmNetworkName", &internal.name), ("externalVmNetworkName", &external.name)];
    let mut lines = Vec::new();
    for (key, subnets) in lists.into_iter().filter(|(_, subnets)| !subnets.is_empty()) {
        if let Some(wrong) = subnets.iter().find(|subnet| !is_subnet(subnet)) {
            return Err(ConfigError::Subnet { text: wrong.clone() });
        }
        lines.push((key, subnets.join(",")));
    }
    lines.extend(names.into_iter().filter_map(|(key, name)| Some((key, name.clone()?))));
    Ok(lines)
}

/// The keys of one connection.
///
/// Usually `<server>.username` and `<server>.password`. Where that form would lose something, the CPI's other form:
/// `server_<id>`, `username_<id>`, `password_<id>` (CPI 1.24.3 and later).
fn credentials(secret: &mut BTreeMap<String, Secret>, connection: &Connection) {
    let (server, user, password) = (&connection.server, &connection.user, connection.password.expose());
    if plain_form_is_exact(server, user, password) {
        secret.insert(format!("{server}.username"), Secret::new(user));
        secret.insert(format!("{server}.password"), connection.password.clone());
    } else {
        // The suffix keeps the CPI from taking a name such as `old-password` for a key of the usual form.
        let id = format!("{}-vc", connection.name);
        secret.insert(format!("server_{id}"), Secret::new(server));
        secret.insert(format!("username_{id}"), Secret::new(user));
        secret.insert(format!("password_{id}"), connection.password.clone());
    }
}

/// In the usual form the key must be a legal Secret key, the CPI cuts it at the first `.username`, `.password` or session
/// word to find the server, and it drops one newline at the end of a value.
fn plain_form_is_exact(server: &str, user: &str, password: &str) -> bool {
    let legal = server.len() <= 240 && server.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'));
    let uncut = !server.contains(".username") && !server.contains(".password");
    legal && uncut && !user.ends_with('\n') && !password.ends_with('\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_api::types::Secret;

    /// What is written is read back; a file of another form has none.
    #[test]
    fn cpi_config_categories_are_those_of_its_topology() {
        let connection = Connection {
            name: "vc".into(),
            server: "vc.example.com".into(),
            port: 443,
            datacenters: Vec::new(),
            trust: Trust::SystemRoots,
            sha1: None,
            user: "user@vsphere.local".into(),
            password: Secret::new("p"),
        };
        let conf = |topology| {
            let options = CpiOptions {
                topology,
                ..CpiOptions::default()
            };
            let version = "1.34.0".parse().expect("a version");
            render(&version, &options, std::slice::from_ref(&connection)).expect("a file").conf
        };
        let topology = Topology {
            zone: "k8s zone \"a\"".into(),
            region: "Ort".into(),
        };
        let found = categories(&conf(Some(topology)));
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), ["Ort", "k8s zone \"a\""]);
        assert!(categories(&conf(None)).is_empty() && categories("[Labels]\nzone = a\n").is_empty());
    }
}
