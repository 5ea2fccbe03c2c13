// SPDX-License-Identifier: Apache-2.0
//! Checks the vCenter connections before either driver's file is written: names, servers, credentials, datacenters, CA bundles, duplicates.

use super::{ConfigError, Connection, Trust};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The connections in the order of their names, each of them checked.
pub(super) fn connections(given: &[Connection]) -> Result<Vec<&Connection>, ConfigError> {
    if given.is_empty() {
        return Err(ConfigError::NoConnection);
    }
    let mut by_name = BTreeMap::new();
    let mut by_server = BTreeMap::new();
    for connection in given {
        one(connection)?;
        if by_name.insert(&connection.name, connection).is_some() {
            return Err(ConfigError::SameName {
                name: connection.name.clone(),
            });
        }
    }
    for connection in by_name.values() {
        if let Some(first) = by_server.insert(connection.server.to_ascii_lowercase(), &connection.name) {
            return Err(ConfigError::SameServer {
                server: connection.server.clone(),
                first: first.clone(),
                second: connection.name.clone(),
            });
        }
    }
    Ok(by_name.into_values().collect())
}

fn one(connection: &Connection) -> Result<(), ConfigError> {
    let name = || connection.name.clone();
    if connection.name.is_empty() || connection.name.len() > 200 || !connection.name.chars().all(key_character) {
        return Err(ConfigError::ConnectionName { name: name() });
    }
    if !is_address(&connection.server) {
        return Err(ConfigError::Server {
            name: name(),
            server: connection.server.clone(),
        });
    }
    for (field, empty) in [("user", connection.user.is_empty()), ("password", connection.password.is_empty())] {
        if empty {
            return Err(ConfigError::Missing { name: name(), field });
        }
    }
    for datacenter in &connection.datacenters {
        if let Some(because) = unlistable(datacenter) {
            return Err(ConfigError::Datacenter {
                name: name(),
                datacenter: datacenter.clone(),
                because,
            });
        }
    }
    if let Trust::CaBundle(pem) = &connection.trust {
        let because = if pem.contains("PRIVATE KEY-----") {
            Some("contains a private key")
        } else if !pem.contains("-----BEGIN CERTIFICATE-----") {
            Some("contains no certificate")
        } else {
            None
        };
        if let Some(because) = because {
            return Err(ConfigError::CaBundle { name: name(), because });
        }
    }
    Ok(())
}

/// Why a text cannot be an item of a comma-separated list whose items are trimmed by the reader.
pub(super) fn unlistable(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        Some("it is empty")
    } else if text.contains(',') {
        Some("commas separate the items of lists in the drivers' configuration, so no item may contain a comma")
    } else if text.trim() != text {
        Some("the driver drops spaces around a value")
    } else if text.chars().any(char::is_control) {
        Some("it contains a control character")
    } else {
        None
    }
}

/// Whether a text is a subnet in CIDR form.
pub(super) fn is_subnet(text: &str) -> bool {
    subnet(text).is_some()
}

/// The address and the length of the prefix of a subnet in CIDR form.
pub(super) fn subnet(text: &str) -> Option<(IpAddr, u8)> {
    let (address, prefix) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let digits = prefix.bytes().all(|byte| byte.is_ascii_digit()) && (prefix == "0" || !prefix.starts_with('0'));
    let length = prefix.parse().ok().filter(|length: &u8| digits && *length <= longest)?;
    Some((address, length))
}

/// Letters, digits and the marks of host names, or an IPv6 address with an optional zone.
fn is_address(server: &str) -> bool {
    let (address, zone) = server
        .split_once('%')
        .map_or((server, None), |(address, zone)| (address, Some(zone)));
    let six = address.parse::<std::net::Ipv6Addr>().is_ok();
    let host = !address.is_empty() && address.len() <= 253 && address.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_'));
    match zone {
        Some(zone) => six && !zone.is_empty() && zone.chars().all(key_character),
        None => six || host,
    }
}

/// A character that Secrets and ConfigMaps allow in their keys. An underscore is left out on purpose: the CPI takes keys
/// apart at `server_`, `username_` and `password_`.
fn key_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_api::types::Secret;

    fn connection(name: &str, server: &str) -> Connection {
        Connection {
            name: name.into(),
            server: server.into(),
            port: 443,
            datacenters: Vec::new(),
            trust: Trust::SystemRoots,
            sha1: None,
            user: "u".into(),
            password: Secret::new("p"),
        }
    }

    #[test]
    fn connection_name_and_address_at_their_limits_are_judged() {
        let long = |n: usize| "a".repeat(n);
        for (name, server, good) in [
            ("a", "vc", true),
            (&long(200), "vc", true),
            (&long(201), "vc", false),
            ("", "vc", false),
            ("a_b", "vc", false),
            ("a.b-c", "vc", true),
            ("a", "", false),
            ("a", &long(253), true),
            ("a", &long(254), false),
            ("a", "a-b.c_d", true),
            ("a", "a b", false),
            ("a", "fe80::1", true),
            ("a", "fe80::1%eth0", true),
            ("a", "fe80::1%", false),
            ("a", "fe80::1%a/b", false),
            ("a", "vc%eth0", false),
        ] {
            assert_eq!(one(&connection(name, server)).is_ok(), good, "{name} at {server}");
        }
    }
}
