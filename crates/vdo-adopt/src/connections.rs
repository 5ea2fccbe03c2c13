// SPDX-License-Identifier: Apache-2.0
//! Merges the vCenters of both drivers into VsphereCloudConfigs, each with its name, Secret and CA ConfigMap; keeps existing connections.

use crate::draft::Draft;
use crate::origin::{Origin, Said};
use crate::server::Server;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;
use vdo_api::api::{API_VERSION, MANAGED_BY_LABEL, SERVERS};
use vdo_api::types::Secret;
use vdo_core::install::VDOCTL;
use vdo_core::manifest::Object;

/// The account of a connection.
#[derive(Clone)]
pub struct Account {
    /// The user.
    pub user: Secret,
    /// The password.
    pub password: Secret,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("******")
    }
}

/// A connection, and which drivers have it.
pub(crate) struct Connection {
    pub name: String,
    /// It is in the cluster already, with its Secret.
    pub exists: bool,
    server: Server,
    cpi: bool,
    csi: bool,
}

impl Connection {
    /// The address of its vCenter, as it is written.
    pub(crate) fn address(&self) -> &str {
        &self.server.address
    }

    /// Where the address is written.
    pub(crate) const fn origin(&self) -> &Origin {
        &self.server.origin
    }
}

/// The connections of both drivers: one where both reach a vCenter in the same way, else one for each. A vCenter to which a connection leads
/// already keeps it.
pub(crate) fn merged(cpi: Vec<Server>, csi: Vec<Server>, existing: &[Object]) -> Vec<Connection> {
    let mut all: Vec<Connection> = Vec::new();
    for server in cpi {
        all.push(Connection {
            name: String::new(),
            exists: false,
            server,
            cpi: true,
            csi: false,
        });
    }
    for server in csi {
        let same = all
            .iter_mut()
            .find(|one| same_address(&one.server, &server) && one.server.agrees(&server));
        match same {
            Some(one) => one.csi = true,
            None => all.push(Connection {
                name: String::new(),
                exists: false,
                server,
                cpi: false,
                csi: true,
            }),
        }
    }
    all.sort_by_key(|one| one.server.address.to_ascii_lowercase());
    let mut taken = BTreeSet::new();
    for at in 0..all.len() {
        let own = name(&all, at, &taken);
        let kept = all.get(at).and_then(|one| kept(&all, one, existing)).filter(|name| *name != own);
        let exists = kept.is_some();
        let name = kept.unwrap_or(own);
        taken.insert(name.clone());
        if let Some(one) = all.get_mut(at) {
            (one.name, one.exists) = (name, exists);
        }
    }
    all
}

/// The connection that leads to the same vCenter, unless both drivers reach that in ways of their own.
fn kept(all: &[Connection], one: &Connection, existing: &[Object]) -> Option<String> {
    let alone = all.iter().filter(|other| same_address(&other.server, &one.server)).count() == 1;
    let same = |object: &&Object| {
        let address = object.value()["spec"]["vcIp"].as_str();
        address.is_some_and(|address| address.eq_ignore_ascii_case(&one.server.address))
    };
    let found = existing.iter().find(same).filter(|_| alone);
    found.map(|object| object.name().to_owned())
}

fn same_address(one: &Server, other: &Server) -> bool {
    one.address.eq_ignore_ascii_case(&other.address)
}

/// The address, in the letters of names; with the driver where the two have connections of their own.
fn name(all: &[Connection], at: usize, taken: &BTreeSet<String>) -> String {
    let Some(one) = all.get(at) else { return String::new() };
    let letter = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() || c == '.' => c,
        _ => '-',
    };
    let plain: String = one.server.address.chars().take(200).map(letter).collect();
    let plain = plain.trim_matches(['-', '.']).replace("..", ".");
    let plain = if plain.is_empty() { "vcenter".to_owned() } else { plain };
    let shared = all.iter().filter(|other| same_address(&other.server, &one.server)).count() > 1;
    let first = match (shared, one.cpi) {
        (false, _) => plain,
        (true, true) => format!("{plain}-cpi"),
        (true, false) => format!("{plain}-csi"),
    };
    let numbered = (2..).map(|number: u32| format!("{first}-{number}"));
    let mut names = std::iter::once(first.clone()).chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or(first)
}

/// The names of the connections of a driver; empty where it has all of them, and the cluster has no others.
pub(crate) fn used(all: &[Connection], existing: &[Object], of: fn(&Connection) -> bool) -> Vec<String> {
    let known = |object: &Object| all.iter().any(|one| one.name == object.name());
    match all.iter().all(of) && existing.iter().all(known) {
        true => Vec::new(),
        false => all.iter().filter(|one| of(one)).map(|one| one.name.clone()).collect(),
    }
}

/// Whether the cloud provider has a connection.
pub(crate) fn of_cpi(one: &Connection) -> bool {
    one.cpi
}

/// Whether the CSI driver has a connection.
pub(crate) fn of_csi(one: &Connection) -> bool {
    one.csi
}

impl Connection {
    /// The Secret without its data, and the data.
    pub(crate) fn secret(&self, namespace: &str) -> (Draft, Account) {
        let mut draft = Draft::new(json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": self.metadata(&self.credentials(), namespace, Some(&self.server.address)),
            "type": "kubernetes.io/basic-auth",
        }));
        let (user, password) = (&self.server.user, &self.server.password);
        for (key, origin) in [
            ("username", user.as_ref().map(|said| &said.origin)),
            ("password", password.as_ref().map(|said| &said.origin)),
        ] {
            if let Some(origin) = origin {
                draft.note(&["data", key], origin);
            }
        }
        let account = Account {
            user: Secret::new(user.as_ref().map_or("", |said| &said.value)),
            password: password.as_ref().map(|said| said.value.clone()).unwrap_or_default(),
        };
        (draft, account)
    }

    /// The ConfigMap with the authorities, where the vCenter is trusted by them.
    pub(crate) fn authorities(&self, namespace: &str) -> Option<Draft> {
        let ca = self.ca()?;
        let mut draft = Draft::new(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": self.metadata(&format!("{}-ca", self.name), namespace, None),
        }));
        draft.set(&["data", "ca.crt"], ca.value.clone(), &ca.origin);
        Some(draft)
    }

    /// The connection itself.
    pub(crate) fn object(&self, namespace: &str) -> Draft {
        let server = &self.server;
        let mut draft = Draft::new(json!({
            "apiVersion": API_VERSION, "kind": "VsphereCloudConfig", "metadata": {"name": self.name, "namespace": namespace}, "spec": {},
        }));
        draft.set(&["spec", "vcIp"], server.address.clone(), &server.origin);
        if let Some(port) = server.port.as_ref().filter(|said| said.value != 443) {
            draft.set(&["spec", "port"], port.value, &port.origin);
        }
        if let Some(user) = &server.user {
            draft.set(&["spec", "credentials"], self.credentials(), &user.origin);
        }
        if let Some(datacenters) = server.datacenters.as_ref().filter(|said| !said.value.is_empty()) {
            draft.set(&["spec", "datacenters"], json!(datacenters.value), &datacenters.origin);
        }
        match (server.insecure.as_ref().filter(|said| said.value), self.ca(), server.pinned()) {
            (Some(insecure), ..) => draft.set(&["spec", "insecure"], true, &insecure.origin),
            (None, Some(ca), _) => draft.set(&["spec", "caBundle", "configMap"], format!("{}-ca", self.name), &ca.origin),
            (None, None, Some(print)) => draft.set(&["spec", "thumbprint"], print.value.to_string(), &print.origin),
            (None, None, None) => {}
        }
        draft
    }

    fn ca(&self) -> Option<&Said<String>> {
        self.server.ca.as_ref().filter(|_| !self.server.is_insecure())
    }

    fn credentials(&self) -> String {
        format!("{}-credentials", self.name)
    }

    fn metadata(&self, name: &str, namespace: &str, server: Option<&str>) -> Value {
        // `vdoctl delete` removes what has the label.
        let mut metadata = json!({"name": name, "namespace": namespace, "labels": {MANAGED_BY_LABEL: VDOCTL}});
        if let Some(server) = server {
            metadata["annotations"] = json!({SERVERS: server});
        }
        metadata
    }
}

/// Where a driver says which vCenters it has.
pub(crate) fn origin(all: &[Connection], of: fn(&Connection) -> bool) -> Option<Origin> {
    all.iter().find(|one| of(one)).map(|one| one.server.origin.clone())
}
