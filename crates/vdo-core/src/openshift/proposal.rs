// SPDX-License-Identifier: Apache-2.0
//! Reads vCenters, cluster id, topology and networks from OpenShift's Infrastructure object, as a proposal for `vdoctl deploy` (pure).
//! A person confirms the proposal.

mod cloud_config;
#[cfg(test)]
mod tests;

use super::{INFRASTRUCTURE, OpenShift};
use crate::driverconfig::csi::MAX_CLUSTER_ID;
use crate::manifest::Object;
use serde_json::{Map, Value, json};
use vdo_api::api::{NodeNetwork, NodeNetworks};
use vdo_api::types::DriverRole;

/// Where OpenShift keeps the configuration of its cloud provider, by namespace and name.
pub const CLOUD_CONFIG: (&str, &str) = ("openshift-config", "cloud-provider-config");
/// The Secret with its credentials, by namespace and name.
pub const CREDENTIALS: (&str, &str) = ("kube-system", "vsphere-creds");
/// What volumes are marked with in vCenter.
const DISTRIBUTION: &str = "OpenShift";
/// The tag categories of OpenShift: regions, then zones.
const CATEGORIES: [&str; 2] = ["openshift-region", "openshift-zone"];
const SPEC: &str = "/spec/platformSpec/vsphere";

/// A value, and the place where OpenShift has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposed<T> {
    /// What is proposed.
    pub value: T,
    /// Where it comes from.
    pub origin: String,
}

/// A vCenter of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vcenter {
    /// Its host name or address.
    pub server: String,
    /// Its port.
    pub port: u16,
    /// The datacenters that the cluster uses there.
    pub datacenters: Vec<String>,
}

impl Vcenter {
    /// As a person types it.
    #[must_use]
    pub fn address(&self) -> String {
        match (self.server.contains(':'), self.port) {
            (true, 443) => self.server.clone(),
            (true, port) => format!("[{}]:{port}", self.server),
            (false, 443) => self.server.clone(),
            (false, port) => format!("{}:{port}", self.server),
        }
    }
}

/// What is proposed for an installation.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The vCenters; none where OpenShift names none.
    pub vcenters: Vec<Proposed<Vcenter>>,
    /// Why the cloud provider is left out; `None` where VDO installs it.
    pub without_cloud_provider: Option<String>,
    /// The identity under which OpenShift has registered volumes.
    pub cluster_id: Option<Proposed<String>>,
    /// The tag categories of regions and zones, where the cluster has several failure domains.
    pub topology: Option<Proposed<[&'static str; 2]>>,
    /// Which addresses nodes get.
    pub networks: Option<Proposed<NodeNetworks>>,
}

/// From the object Infrastructure, and the configuration of OpenShift's cloud provider where that object names no vCenter.
#[must_use]
pub fn proposal(infrastructure: &Object, cloud_config: Option<&str>) -> Proposal {
    let openshift = OpenShift::of(Some(infrastructure), None, None, None, &[]);
    let mut vcenters = of_infrastructure(infrastructure);
    if vcenters.is_empty() {
        vcenters = cloud_config.map(cloud_config::vcenters).unwrap_or_default();
    }
    let id = infrastructure.text("/status/infrastructureName");
    let domains = items(infrastructure, "failureDomains").len();
    let topology = match (domains, vcenters.len()) {
        (2.., _) => Some((format!("{domains} failure domains"), "failureDomains")),
        (_, many @ 2..) => Some((format!("{many} vCenters"), "vcenters")),
        _ => None,
    };
    Proposal {
        vcenters,
        without_cloud_provider: openshift.refusal(DriverRole::CloudProvider),
        cluster_id: (1..=MAX_CLUSTER_ID).contains(&id.len()).then(|| Proposed {
            value: id.to_owned(),
            origin: at("status.infrastructureName"),
        }),
        topology: topology.map(|(count, field)| Proposed {
            value: CATEGORIES,
            origin: format!("{}, {count}", at(&format!("spec.platformSpec.vsphere.{field}"))),
        }),
        networks: networks(infrastructure).map(|value| Proposed {
            value,
            origin: at("spec.platformSpec.vsphere.nodeNetworking"),
        }),
    }
}

impl Proposal {
    /// Each value with its origin, one line for each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.vcenters.iter().map(vcenter_line).collect();
        let drivers = match &self.without_cloud_provider {
            None => "drivers: cloud provider and CSI".to_owned(),
            Some(because) => format!("drivers: CSI alone; {}", because.split("; ").next().unwrap_or_default()),
        };
        lines.push(drivers);
        lines.push(format!("cluster distribution: {DISTRIBUTION}"));
        lines.extend(
            self.cluster_id
                .as_ref()
                .map(|id| format!("cluster id: {} ({})", id.value, id.origin)),
        );
        let topology = self.topology.as_ref();
        lines.extend(topology.map(|found| format!("topology categories: {} ({})", found.value.join(", "), found.origin)));
        if let (Some(networks), None) = (&self.networks, &self.without_cloud_provider) {
            let each = [("internal", &networks.value.internal), ("external", &networks.value.external)];
            for (name, network) in each {
                lines.extend(
                    network
                        .as_ref()
                        .map(|network| format!("{name} {} ({})", network_line(network), networks.origin)),
                );
            }
        }
        lines
    }

    /// As the specification of a VDOConfig.
    #[must_use]
    pub fn specification(&self) -> Value {
        let mut storage = Map::new();
        storage.insert("clusterDistribution".into(), DISTRIBUTION.into());
        if let Some(id) = &self.cluster_id {
            storage.insert("clusterId".into(), id.value.clone().into());
        }
        if let Some(topology) = &self.topology {
            storage.insert("topologyCategories".into(), json!(topology.value));
        }
        let mut spec = json!({"storageProvider": storage});
        if self.without_cloud_provider.is_none() {
            let mut cloud = Map::new();
            if let Some(Proposed { value: [region, zone], .. }) = self.topology {
                cloud.insert("topology".into(), json!({"region": region, "zone": zone}));
            }
            if let Some(networks) = &self.networks {
                cloud.insert("nodeNetworks".into(), json!(networks.value));
            }
            spec["cloudProvider"] = cloud.into();
        }
        spec
    }
}

/// Why no vCenter is proposed.
#[must_use]
pub fn without_vcenter() -> String {
    let (namespace, name) = CLOUD_CONFIG;
    format!(
        "{} names no vCenter, and ConfigMap {namespace}/{name} names no vCenter either",
        at("spec.platformSpec.vsphere.vcenters")
    )
}

fn at(field: &str) -> String {
    format!("Infrastructure {INFRASTRUCTURE}: {field}")
}

/// The vCenters of the object, with the datacenters of its failure domains.
fn of_infrastructure(infrastructure: &Object) -> Vec<Proposed<Vcenter>> {
    let mut all: Vec<Proposed<Vcenter>> = Vec::new();
    let mut add = |server: &str, port: Option<u16>, datacenters: Vec<String>, field: &str| {
        if server.is_empty() {
            return;
        }
        let known = all.iter().position(|known| known.value.server.eq_ignore_ascii_case(server));
        let place = known.unwrap_or_else(|| {
            all.push(Proposed {
                value: Vcenter {
                    server: server.to_owned(),
                    port: port.unwrap_or(443),
                    datacenters: Vec::new(),
                },
                origin: at(&format!("spec.platformSpec.vsphere.{field}")),
            });
            all.len() - 1
        });
        let known = &mut all[place].value.datacenters;
        for datacenter in datacenters {
            if !datacenter.is_empty() && !known.contains(&datacenter) {
                known.push(datacenter);
            }
        }
    };
    for one in items(infrastructure, "vcenters") {
        let port = one["port"]
            .as_u64()
            .and_then(|port| u16::try_from(port).ok())
            .filter(|port| *port != 0);
        add(text(one, "/server"), port, texts(one, "datacenters"), "vcenters");
    }
    for one in items(infrastructure, "failureDomains") {
        add(
            text(one, "/server"),
            None,
            vec![text(one, "/topology/datacenter").to_owned()],
            "failureDomains",
        );
    }
    all
}

fn networks(infrastructure: &Object) -> Option<NodeNetworks> {
    let read = |side: &str| {
        let found = infrastructure.value().pointer(&format!("{SPEC}/nodeNetworking/{side}"))?;
        let network = NodeNetwork {
            subnets: texts(found, "networkSubnetCidr"),
            excluded_subnets: texts(found, "excludeNetworkSubnetCidr"),
            name: Some(text(found, "/network").to_owned()).filter(|name| !name.is_empty()),
        };
        (network != NodeNetwork::default()).then_some(network)
    };
    let networks = NodeNetworks {
        internal: read("internal"),
        external: read("external"),
    };
    (networks != NodeNetworks::default()).then_some(networks)
}

fn vcenter_line(found: &Proposed<Vcenter>) -> String {
    let datacenters = match &found.value.datacenters[..] {
        [] => "all datacenters".to_owned(),
        [one] => format!("datacenter {one}"),
        several => format!("datacenters {}", several.join(", ")),
    };
    format!("vCenter {}, {datacenters} ({})", found.value.address(), found.origin)
}

fn network_line(network: &NodeNetwork) -> String {
    let mut parts = Vec::new();
    parts.extend(network.name.as_ref().map(|name| format!("network {name}")));
    if !network.subnets.is_empty() {
        parts.push(format!("subnets {}", network.subnets.join(", ")));
    }
    if !network.excluded_subnets.is_empty() {
        parts.push(format!("excluded subnets {}", network.excluded_subnets.join(", ")));
    }
    format!("addresses of nodes: {}", parts.join(", "))
}

fn items<'a>(infrastructure: &'a Object, field: &str) -> &'a [Value] {
    let found = infrastructure.value().pointer(&format!("{SPEC}/{field}"));
    found.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn texts(value: &Value, field: &str) -> Vec<String> {
    let all = value[field].as_array().into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}
