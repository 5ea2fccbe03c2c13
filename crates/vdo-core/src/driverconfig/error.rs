// SPDX-License-Identifier: Apache-2.0
//! The error `ConfigError`: why connections and options cannot be written into a driver's configuration file, with the remedy.

use std::borrow::Cow;
use vdo_api::types::{DriverVersion, Remedy};

/// The drivers' files cannot express what the connections and options say. Terminal: only other input helps.
///
/// Every sentence names the connection and the way out. Passwords are never part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is nothing to connect to.
    #[error("no vSphere connection is given")]
    NoConnection,

    /// The CSI driver has a limit.
    #[error("{count} vSphere connections are given, but the CSI driver supports at most {max}", max = super::csi::MAX_VCENTERS)]
    TooManyConnections {
        /// How many there are.
        count: usize,
    },

    /// Connection names become keys of Secrets.
    #[error("connection {name:?} cannot be part of a Secret key")]
    ConnectionName {
        /// The name.
        name: String,
    },

    /// Two connections of one name.
    #[error("connection {name:?} is given twice")]
    SameName {
        /// The name.
        name: String,
    },

    /// Two connections to one address: a driver would use one of the two at random.
    #[error("connections {first:?} and {second:?} both have the address {server}")]
    SameServer {
        /// The address.
        server: String,
        /// One connection.
        first: String,
        /// The other.
        second: String,
    },

    /// The address cannot be dialled or written down.
    #[error("connection {name:?}: {server:?} is not an address")]
    Server {
        /// The connection.
        name: String,
        /// Its address.
        server: String,
    },

    /// A user or a password is missing.
    #[error("connection {name:?}: the {field} is empty")]
    Missing {
        /// The connection.
        name: String,
        /// What is missing.
        field: &'static str,
    },

    /// The grammar has no way to write this character.
    #[error("{place}: the {field} contains {character}, which the configuration file of the CSI driver cannot contain")]
    Character {
        /// The connection or the part of the options.
        place: String,
        /// Which value.
        field: &'static str,
        /// The character, in words.
        character: &'static str,
    },

    /// CSI 3.1.2 and later take only two forms of a user name.
    #[error("connection {name:?}: CSI {version} does not accept the user {user:?}")]
    User {
        /// The connection.
        name: String,
        /// The user.
        user: String,
        /// The driver.
        version: DriverVersion,
    },

    /// Datacenters are written as one comma-separated list.
    #[error("connection {name:?}: the datacenter name {datacenter:?} cannot be written into the drivers' configuration, because {because}")]
    Datacenter {
        /// The connection.
        name: String,
        /// The datacenter.
        datacenter: String,
        /// What is wrong with it.
        because: &'static str,
    },

    /// The bundle is not a bundle.
    #[error("connection {name:?}: the CA bundle {because}")]
    CaBundle {
        /// The connection.
        name: String,
        /// What is wrong with it.
        because: &'static str,
    },

    /// The driver compares SHA-1 thumbprints alone, and the connection has one of SHA-256.
    #[error(
        "connection {name:?}: {driver} {version} compares SHA-1 thumbprints only, and the SHA-1 thumbprint of the certificate is not \
         known before the connection is checked"
    )]
    Sha1Unknown {
        /// The connection.
        name: String,
        /// CPI or CSI.
        driver: &'static str,
        /// Its version.
        version: DriverVersion,
    },

    /// Before 3.3.0 the CSI driver has one `ca-file` and one `thumbprint` for all vCenters.
    #[error("CSI {version} verifies the certificates of all vCenters in the same way, but the {count} connections need different ways")]
    OneTrustForAll {
        /// The driver.
        version: DriverVersion,
        /// How many connections.
        count: usize,
    },

    /// Before 3.0.0 the CSI driver knows one vCenter only.
    #[error("CSI {version} supports only one vCenter, but {count} are given")]
    OneVcenterOnly {
        /// The driver.
        version: DriverVersion,
        /// How many connections.
        count: usize,
    },

    /// With several vCenters volumes are placed by topology.
    #[error("{count} vCenters are given, but no topology categories; the CSI driver needs topology categories to choose a vCenter")]
    TopologyNeeded {
        /// How many connections.
        count: usize,
    },

    /// Too many, or one that cannot be written down.
    #[error("the topology categories {categories:?} cannot be used, because {because}")]
    Topology {
        /// The categories.
        categories: Vec<String>,
        /// What is wrong with them.
        because: &'static str,
    },

    /// The cluster id marks volumes in vCenter.
    #[error("the cluster id {id:?} {because}")]
    ClusterId {
        /// The id.
        id: String,
        /// What is wrong with it.
        because: &'static str,
    },

    /// A text of the options that no driver list can carry.
    #[error("{field} {text:?} cannot be used, because {because}")]
    Text {
        /// Which option.
        field: &'static str,
        /// Its text.
        text: String,
        /// What is wrong with it.
        because: &'static str,
    },

    /// Not what vSAN file service reads as clients.
    #[error("fileVolumes.netPermissions[{at}].ips {text:?} is not an address, a subnet, a range or *")]
    Clients {
        /// The place in the list.
        at: usize,
        /// The text.
        text: String,
    },

    /// Clusters of a vCenter that the driver does not use.
    #[error("fileVolumes.vsanClusters names vSphere connection {name}, which the CSI driver does not use")]
    ClustersOfNone {
        /// The connection.
        name: String,
    },

    /// The driver reads the datastore of migrated volumes where it has one vCenter.
    #[error("migrationDatastoreUrl can be used with only one vCenter, but {count} vSphere connections are given")]
    MigrationDatastore {
        /// How many there are.
        count: usize,
    },

    /// Not what the driver reads as a subnet; it would take no address at all.
    #[error("the subnet {text:?} is not in CIDR form")]
    Subnet {
        /// The text.
        text: String,
    },
}

impl Remedy for ConfigError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::NoConnection => "Name at least one connection.".into(),
            Self::TooManyConnections { .. } => "Use fewer connections.".into(),
            Self::ConnectionName { .. } => "Use letters, digits, '-' and '.', at most 200 of them.".into(),
            Self::SameName { .. } => "Name each connection once.".into(),
            Self::SameServer { .. } => "Remove one of the two connections.".into(),
            Self::Server { .. } => "Write a host name or an IP address, without scheme, port or brackets.".into(),
            Self::Missing { .. } => "Set this value in the Secret of the connection.".into(),
            Self::Character { .. } => "Choose a value without this character.".into(),
            Self::User { .. } => "Write the user name as user@domain or DOMAIN\\user, in letters, digits, '.', '-' and '_'.".into(),
            Self::Datacenter { .. } => "Rename the datacenter in vCenter, or list no datacenters to use all datacenters.".into(),
            Self::CaBundle { .. } => "Give the certificates of the authority in PEM form, and nothing else.".into(),
            Self::Sha1Unknown { .. } => {
                "Wait until the operator has checked the connection, or set the SHA-1 thumbprint or a CA bundle.".into()
            }
            Self::OneTrustForAll { .. } => "Use CSI 3.3.0 or later, or give all connections the same CA bundle.".into(),
            Self::OneVcenterOnly { .. } => "Use CSI 3.0.0 or later, or one connection.".into(),
            Self::TopologyNeeded { .. } => "Set topologyCategories, and attach tags of these categories in every vCenter.".into(),
            Self::Topology { .. } => format!("Name at most {max} tag categories of vCenter.", max = super::csi::MAX_CATEGORIES).into(),
            Self::ClusterId { .. } => format!(
                "Use 1 to {max} printable characters, unique in every vCenter.",
                max = super::csi::MAX_CLUSTER_ID
            )
            .into(),
            Self::Subnet { .. } => "Write an address and the length of its prefix, such as 192.168.10.0/24 or fd00:10::/64.".into(),
            Self::Clients { .. } => "Write 10.0.0.1, 10.0.0.0/8, 10.0.0.1-10.0.0.9 or *, one in each entry of the list.".into(),
            Self::ClustersOfNone { .. } => "Write the name of a connection that spec.storageProvider uses.".into(),
            Self::MigrationDatastore { .. } => "Leave out migrationDatastoreUrl: with several vCenters, no volumes are migrated.".into(),
            Self::Text { .. } => "Write another value.".into(),
        })
    }
}
