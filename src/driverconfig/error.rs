use crate::types::DriverVersion;

/// The drivers cannot be told what the connections and options say. Terminal: only other input helps.
///
/// Every sentence names the connection and the way out. Passwords are never part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is nothing to connect to.
    #[error("no vSphere connection is given; name at least one")]
    NoConnection,

    /// The CSI driver has a limit.
    #[error("{count} vSphere connections are given and the CSI driver takes at most {max}; use fewer", max = super::csi::MAX_VCENTERS)]
    TooManyConnections {
        /// How many there are.
        count: usize,
    },

    /// Connection names become keys of Secrets.
    #[error("connection {name:?} cannot be part of a Secret key; use letters, digits, '-' and '.', at most 200 of them")]
    ConnectionName {
        /// The name.
        name: String,
    },

    /// Two connections of one name.
    #[error("connection {name:?} is given twice; name each once")]
    SameName {
        /// The name.
        name: String,
    },

    /// Two connections to one address: a driver would use one of the two at random.
    #[error("connections {first:?} and {second:?} both have the address {server}; drop one of them")]
    SameServer {
        /// The address.
        server: String,
        /// One connection.
        first: String,
        /// The other.
        second: String,
    },

    /// The address cannot be dialled or written down.
    #[error("connection {name:?}: {server:?} is not an address; write a host name or an IP address, without scheme, port or brackets")]
    Server {
        /// The connection.
        name: String,
        /// Its address.
        server: String,
    },

    /// A user or a password is missing.
    #[error("connection {name:?}: the {field} is empty; set it in the Secret of the connection")]
    Missing {
        /// The connection.
        name: String,
        /// What is missing.
        field: &'static str,
    },

    /// The grammar has no way to write this character.
    #[error("{place}: the {field} contains {character}, which the CSI driver's file cannot carry; choose one without it")]
    Character {
        /// The connection or the part of the options.
        place: String,
        /// Which value.
        field: &'static str,
        /// The character, in words.
        character: &'static str,
    },

    /// CSI 3.1.2 and later take only two forms of a user name.
    #[error(
        "connection {name:?}: CSI {version} does not accept the user {user:?}; write it as user@domain or DOMAIN\\user, in letters, digits, '.', '-' and '_'"
    )]
    User {
        /// The connection.
        name: String,
        /// The user.
        user: String,
        /// The driver.
        version: DriverVersion,
    },

    /// Datacenters are written as one comma-separated list.
    #[error(
        "connection {name:?}: the datacenter {datacenter:?} cannot be named in a driver's list, because {because}; rename it in vCenter, or list no datacenters to use all"
    )]
    Datacenter {
        /// The connection.
        name: String,
        /// The datacenter.
        datacenter: String,
        /// What is wrong with it.
        because: &'static str,
    },

    /// The bundle is no bundle.
    #[error("connection {name:?}: the CA bundle {because}; give the certificates of the authority in PEM form, and nothing else")]
    CaBundle {
        /// The connection.
        name: String,
        /// What is wrong with it.
        because: &'static str,
    },

    /// The driver compares SHA-1 thumbprints alone, and the connection has one of SHA-256.
    #[error(
        "connection {name:?}: {driver} {version} compares SHA-1 thumbprints only, and that of the certificate is not known before the connection was checked; wait for the check, or write the SHA-1 thumbprint or a CA bundle"
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
    #[error(
        "CSI {version} checks the certificates of all vCenters in one way, and the {count} connections differ; use CSI 3.3.0 or later, or give all of them the same CA bundle"
    )]
    OneTrustForAll {
        /// The driver.
        version: DriverVersion,
        /// How many connections.
        count: usize,
    },

    /// Before 3.0.0 the CSI driver knows one vCenter only.
    #[error("CSI {version} knows one vCenter and {count} are given; use CSI 3.0.0 or later, or one connection")]
    OneVcenterOnly {
        /// The driver.
        version: DriverVersion,
        /// How many connections.
        count: usize,
    },

    /// With several vCenters volumes are placed by topology.
    #[error(
        "{count} vCenters are given without topology categories, which the CSI driver needs to choose between them; set topologyCategories and tag every vCenter with them"
    )]
    TopologyNeeded {
        /// How many connections.
        count: usize,
    },

    /// Too many, or one that cannot be written down.
    #[error("the topology categories {categories:?} cannot be used, because {because}; name at most {max} tag categories of vCenter", max = super::csi::MAX_CATEGORIES)]
    Topology {
        /// The categories.
        categories: Vec<String>,
        /// What is wrong with them.
        because: &'static str,
    },

    /// The cluster id marks volumes in vCenter.
    #[error("the cluster id {id:?} {because}; use 1 to {max} printable characters, unique in every vCenter", max = super::csi::MAX_CLUSTER_ID)]
    ClusterId {
        /// The id.
        id: String,
        /// What is wrong with it.
        because: &'static str,
    },

    /// A text of the options that no driver list can carry.
    #[error("{field} {text:?} cannot be used, because {because}; write another")]
    Text {
        /// Which option.
        field: &'static str,
        /// Its text.
        text: String,
        /// What is wrong with it.
        because: &'static str,
    },
}
