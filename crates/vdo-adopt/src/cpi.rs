// SPDX-License-Identifier: Apache-2.0
//! Converts the file of the cloud provider (`vsphere.conf`) into settings and losses; `cpi/items.rs` parses the YAML or INI text.

mod items;

use crate::csi::NO_FIELD;
use crate::error::AdoptError;
use crate::origin::{Losses, Origin, Said};
use crate::server::{Server, Trusting};
use crate::text::{boolean, list, port, thumbprint};
use items::{Item, Items};
use vdo_api::api::{IpFamily, NodeNetworks};
use vdo_api::types::Secret;

/// What the file of the cloud provider says.
#[derive(Debug, Default)]
pub(crate) struct CpiFile {
    pub servers: Vec<CpiServer>,
    pub secret: SecretName,
    /// A folder with the credentials.
    pub secrets_directory: Option<Said<String>>,
    pub zone: Option<Said<String>>,
    pub region: Option<Said<String>>,
    pub ip_families: Option<Said<Vec<IpFamily>>>,
    pub networks: NodeNetworks,
    /// Where each of their fields was found, by its path.
    pub network_origins: Vec<([&'static str; 2], Origin)>,
}

/// A vCenter of the file.
#[derive(Debug)]
pub(crate) struct CpiServer {
    /// How the file calls it.
    pub reference: String,
    pub server: Server,
    pub secret: SecretName,
}

/// A Secret with credentials; both parts or none.
#[derive(Debug, Clone, Default)]
pub(crate) struct SecretName {
    pub name: Option<Said<String>>,
    pub namespace: Option<Said<String>>,
}

impl SecretName {
    /// Namespace and name, where both are there.
    pub(crate) fn whole(&self) -> Option<(&str, &str)> {
        let (name, namespace) = (self.name.as_ref()?, self.namespace.as_ref()?);
        (!name.value.is_empty() && !namespace.value.is_empty()).then_some((&namespace.value, &name.value))
    }
}

/// One reading of a file.
struct Reading<'a> {
    file: &'a Origin,
    ca: &'a dyn Fn(&str, &Origin) -> Result<String, AdoptError>,
    found: CpiFile,
    global: Server,
    losses: Losses,
}

/// Reads a file.
///
/// # Errors
/// Where the cloud provider refuses it, or two of its lines contradict each other.
pub(crate) fn read(
    bytes: &[u8],
    file: &Origin,
    ca: &dyn Fn(&str, &Origin) -> Result<String, AdoptError>,
) -> Result<(CpiFile, Losses), AdoptError> {
    let items = Items::read(bytes, file)?;
    let mut reading = Reading {
        file,
        ca,
        found: CpiFile::default(),
        global: Server::new("", file.clone()),
        losses: Losses::of("cpi"),
    };
    for (reference, line) in &items.vcenters {
        reading.found.servers.push(CpiServer {
            reference: reference.clone(),
            server: Server::new(if items.is_yaml { "" } else { reference }, file.line(*line)),
            secret: SecretName::default(),
        });
    }
    for item in &items.all {
        reading.item(item)?;
    }
    reading.end()
}

impl Reading<'_> {
    fn end(self) -> Result<(CpiFile, Losses), AdoptError> {
        let Reading {
            file,
            mut found,
            global,
            losses,
            ..
        } = self;
        if !global.address.is_empty() && found.servers.iter().all(|one| one.reference != global.address) {
            found.servers.push(CpiServer {
                reference: global.address.clone(),
                server: Server::new(&global.address, global.origin.clone()),
                secret: SecretName::default(),
            });
        }
        if found.servers.is_empty() {
            return Err(AdoptError::NoServer { origin: file.clone() });
        }
        for one in &mut found.servers {
            if one.server.address.is_empty() {
                return Err(AdoptError::NoServer {
                    origin: one.server.origin.clone(),
                });
            }
            one.server.inherit(&global);
        }
        Ok((found, losses))
    }

    fn lose(&mut self, item: &Item, because: &str) {
        self.losses.add(&item.path(), self.file.line(item.line), because);
    }

    fn item(&mut self, item: &Item) -> Result<(), AdoptError> {
        if item.texts.iter().all(String::is_empty) && !item.is_bare {
            return Ok(());
        }
        match (item.section.as_str(), &item.subsection) {
            ("global", None) => self.global(item),
            ("vcenter", Some(reference)) => self.vcenter(reference, item),
            ("labels", None) => {
                self.label(item);
                Ok(())
            }
            ("nodes", None) => {
                self.node(item);
                Ok(())
            }
            ("loadbalancer" | "loadbalancerclass" | "nsxt" | "route", _) => {
                self.lose(item, "VDO has no fields for load balancers and routes of NSX-T");
                Ok(())
            }
            _ => {
                self.lose(item, "the cloud provider does not know this setting");
                Ok(())
            }
        }
    }

    fn global(&mut self, item: &Item) -> Result<(), AdoptError> {
        let origin = self.file.line(item.line);
        let said = || Some(Said::new(item.text(), origin.clone()));
        match item.key.as_str() {
            "server" => (self.global.address, self.global.origin) = (item.text(), origin),
            "secret-name" => self.found.secret.name = said(),
            "secret-namespace" => self.found.secret.namespace = said(),
            "secrets-directory" => self.found.secrets_directory = said(),
            "ip-family" => self.families(item),
            key if Server::has(key) => set(&mut self.global, item, &origin, &Trusting { ca: self.ca })?,
            _ => self.rest(item),
        }
        Ok(())
    }

    fn vcenter(&mut self, reference: &str, item: &Item) -> Result<(), AdoptError> {
        let origin = self.file.line(item.line);
        let trusting = Trusting { ca: self.ca };
        let Some(one) = self.found.servers.iter_mut().find(|one| one.reference == reference) else {
            return Ok(());
        };
        let said = || Some(Said::new(item.text(), origin.clone()));
        match item.key.as_str() {
            "server" => (one.server.address, one.server.origin) = (item.text(), origin),
            "secret-name" => one.secret.name = said(),
            "secret-namespace" => one.secret.namespace = said(),
            "ip-family" => self.families(item),
            key if Server::has(key) => set(&mut one.server, item, &origin, &trusting)?,
            _ => self.rest(item),
        }
        Ok(())
    }

    /// What has no field: the repetitions of calls as they are by default, and what the driver reads and does not use.
    fn rest(&mut self, item: &Item) {
        match (item.key.as_str(), item.text().as_str()) {
            ("soap-roundtrip-count", "0" | "3") | ("api-disable" | "api-binding", _) => {}
            ("soap-roundtrip-count", _) => self.lose(item, NO_FIELD),
            _ => self.lose(item, "the cloud provider does not know this setting"),
        }
    }

    /// One list of the specification is for all vCenters.
    fn families(&mut self, item: &Item) {
        let mut families = Vec::new();
        for word in item.list() {
            match word.to_ascii_lowercase().as_str() {
                "ipv4" => families.push(IpFamily::IPv4),
                "ipv6" => families.push(IpFamily::IPv6),
                _ => return self.lose(item, "the field accepts only IPv4 and IPv6"),
            }
        }
        match &self.found.ip_families {
            Some(said) if said.value != families => self.lose(
                item,
                "VDO has one list of IP families for all vCenters, and another section of this file has a different list",
            ),
            Some(_) => {}
            None => self.found.ip_families = Some(Said::new(families, self.file.line(item.line))),
        }
    }

    fn label(&mut self, item: &Item) {
        let said = Some(Said::new(item.text(), self.file.line(item.line)));
        match item.key.as_str() {
            "zone" => self.found.zone = said,
            "region" => self.found.region = said,
            _ => self.lose(item, "the cloud provider does not know this setting"),
        }
    }

    fn node(&mut self, item: &Item) {
        let networks = &mut self.found.networks;
        let (side, field) = match item.key.as_str() {
            "internal-network-subnet-cidr" => ("internal", "subnets"),
            "external-network-subnet-cidr" => ("external", "subnets"),
            "exclude-internal-network-subnet-cidr" => ("internal", "excludedSubnets"),
            "exclude-external-network-subnet-cidr" => ("external", "excludedSubnets"),
            "internal-vm-network-name" => ("internal", "name"),
            "external-vm-network-name" => ("external", "name"),
            _ => return self.lose(item, "the cloud provider does not know this setting"),
        };
        let network = match side {
            "internal" => networks.internal.get_or_insert_default(),
            _ => networks.external.get_or_insert_default(),
        };
        match field {
            "subnets" => network.subnets = item.list(),
            "excludedSubnets" => network.excluded_subnets = item.list(),
            _ => network.name = Some(item.text()),
        }
        self.found.network_origins.push(([side, field], self.file.line(item.line)));
    }
}

/// Takes the value of a key that every vCenter has.
fn set(server: &mut Server, item: &Item, origin: &Origin, trusting: &Trusting<'_>) -> Result<(), AdoptError> {
    let (key, text) = (item.key.as_str(), item.text());
    let at = || origin.clone();
    match key {
        "user" => server.user = Some(Said::new(text, at())),
        "password" => server.password = Some(Said::new(Secret::new(text), at())),
        "port" => server.port = Some(Said::new(port(&text, key, origin)?, at())),
        "insecure-flag" => {
            let value = (!item.is_bare).then_some(text.as_str());
            server.insecure = Some(Said::new(boolean(value, key, origin)?, at()));
        }
        "ca-file" => server.ca = Some(Said::new((trusting.ca)(&text, origin)?, at())),
        "thumbprint" => server.thumbprint = Some(Said::new(thumbprint(&text, key, origin)?, at())),
        "datacenters" => server.datacenters = Some(Said::new(list(&item.list().join(",")), at())),
        _ => {}
    }
    Ok(())
}
