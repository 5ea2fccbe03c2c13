// SPDX-License-Identifier: Apache-2.0
//! Writes `csi-vsphere.conf`, the file of the CSI driver, with the trust of each vCenter; lists options that a driver version ignores.
//! `csi/settings.rs` writes the lines of single settings.

mod settings;
pub mod since;

pub use settings::{Tuning, is_clients};

use settings::{check_settings, write_global, write_placement, write_sections};

use super::check::{connections, unlistable};
use super::gcfg::File;
use super::{ConfigError, Connection, Trust, at_least, gcfg_reader};
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::{DriverVersion, Secret};

/// The key of the Secret that holds the file.
pub const FILE: &str = "csi-vsphere.conf";
/// The driver refuses more `VirtualCenter` sections than this.
pub const MAX_VCENTERS: usize = 5;
/// The driver refuses more topology categories than this.
pub const MAX_CATEGORIES: usize = 5;
/// The driver refuses a longer cluster id.
pub const MAX_CLUSTER_ID: usize = 64;

/// The cluster id in a file of the driver, whatever tool wrote it; `None` when it names none. Other
/// lines may be wrong: volumes are registered under it whether or not the driver could start once more.
#[must_use]
pub fn cluster_id(file: &[u8]) -> Option<String> {
    let contents = gcfg_reader::read_partly(file);
    let id = contents.get("global", "cluster-id").filter(|id| !id.is_empty());
    id.map(str::to_owned)
}

/// What the CSI driver gets besides the connections. [`CsiOptions::new`] is the ten-line case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsiOptions {
    /// Marks this cluster's volumes in vCenter; unique in every vCenter, and never changed while volumes exist.
    pub cluster_id: String,
    /// The label vCenter shows for the cluster, for example `OpenShift`.
    pub cluster_distribution: Option<String>,
    /// Tag categories by which volumes are placed, outermost first.
    pub topology_categories: Vec<String>,
    /// Who may mount file volumes; empty leaves the driver's default (everyone, read and write).
    pub net_permissions: Vec<NetPermission>,
    /// vSAN datastores for file volumes; drivers before 3.2.0 only.
    pub file_share_datastore_urls: Vec<String>,
    /// vSAN clusters for file volumes, by the name of the connection.
    pub file_share_clusters: BTreeMap<String, Vec<String>>,
    /// The datastore of volumes of the driver built into Kubernetes that name none.
    pub migration_datastore_url: Option<String>,
    /// Limits of snapshots per volume.
    pub snapshots: SnapshotLimits,
    /// Limits and intervals.
    pub tuning: Tuning,
}

impl CsiOptions {
    /// Options with nothing but the cluster id.
    pub fn new(cluster_id: impl Into<String>) -> Self {
        Self {
            cluster_id: cluster_id.into(),
            ..Self::default()
        }
    }
}

/// Who may mount file volumes, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetPermission {
    /// An address, a range or a subnet; `*` for everyone.
    pub ips: String,
    /// What they may do.
    pub access: Access,
    /// Whether root of a client is treated as an anonymous user.
    pub root_squash: bool,
}

/// What a client of a file volume may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// `READ_WRITE`
    #[default]
    ReadWrite,
    /// `READ_ONLY`
    ReadOnly,
    /// `NO_ACCESS`
    None,
}

impl Access {
    /// The word of the driver's file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ReadWrite => "READ_WRITE",
            Self::ReadOnly => "READ_ONLY",
            Self::None => "NO_ACCESS",
        }
    }
}

/// How many snapshots one block volume may have; `None` leaves the driver's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnapshotLimits {
    /// On any datastore.
    pub per_volume: Option<u32>,
    /// On vSAN.
    pub vsan: Option<u32>,
    /// On vVol.
    pub vvol: Option<u32>,
}

/// An option that a version of the driver does not know, so it is left out of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// The option, as the API spells it.
    pub option: String,
    /// The sentence for people.
    pub because: String,
}

/// Whether this version reads which datastores file shares are put on; later ones choose for themselves.
#[must_use]
pub fn reads_file_share_datastores(version: &DriverVersion) -> bool {
    !at_least(version, since::WITHOUT_FILE_SHARE_DATASTORES)
}

/// The options that are set and that this version of the driver would not honour. They are not an error, because a pinned
/// old driver still works; they must be shown.
#[must_use]
pub fn ignored(version: &DriverVersion, options: &CsiOptions) -> Vec<Ignored> {
    let without = since::WITHOUT_FILE_SHARE_DATASTORES;
    let datastores = Ignored {
        option: "fileVolumes.vsanDataStoreUrl".to_owned(),
        because: format!("CSI {without} and later put file shares on the datastores of the clusters that have the vSAN file service"),
    };
    let is_ignored = !options.file_share_datastore_urls.is_empty() && !reads_file_share_datastores(version);
    let snapshots = options.snapshots != SnapshotLimits::default();
    let known: [(bool, &str, &str, &str); 5] = [
        (snapshots, "snapshots", "snapshots", since::SNAPSHOTS),
        (
            !options.topology_categories.is_empty(),
            "topologyCategories",
            "topology categories",
            since::TOPOLOGY_CATEGORIES,
        ),
        (
            options.cluster_distribution.is_some(),
            "clusterDistribution",
            "the distribution of a cluster",
            since::CLUSTER_DISTRIBUTION,
        ),
        (
            !options.file_share_clusters.is_empty(),
            "fileVolumes.vsanClusters",
            "clusters for file volumes",
            since::FILE_SHARE_CLUSTERS,
        ),
        (
            options.migration_datastore_url.is_some(),
            "migrationDatastoreUrl",
            "a datastore for migrated volumes",
            since::MIGRATION_DATASTORE,
        ),
    ];
    let known =
        known.map(|(is_set, option, what, since)| (is_set, option.to_owned(), format!("CSI supports {what} from {since} on"), since));
    let tuning = options.tuning.all().map(|(setting, value)| {
        let because = format!("CSI supports this setting from {} on", setting.since);
        (value.is_some(), setting.field.join("."), because, setting.since)
    });
    let newer = known.into_iter().chain(tuning);
    let newer = newer.filter(|(is_set, .., since)| *is_set && !at_least(version, since));
    let newer = newer.map(|(_, option, because, _)| Ignored { option, because });
    is_ignored.then_some(datastores).into_iter().chain(newer).collect()
}

/// The data of the driver's Secret: [`FILE`], and one `<connection>.ca.pem` for every CA bundle.
///
/// # Errors
/// When a value cannot be expressed in the file, or this version of the driver would refuse it.
pub fn render(version: &DriverVersion, options: &CsiOptions, given: &[Connection]) -> Result<BTreeMap<String, Secret>, ConfigError> {
    let connections = connections(given)?;
    check_options(version, options, connections.len())?;
    check_settings(options, &connections)?;
    let leave_out: BTreeSet<_> = ignored(version, options).into_iter().map(|ignored| ignored.option).collect();
    let keep = |option: &str| !leave_out.contains(option);

    let mut file = File::default();
    let mut data = BTreeMap::new();
    write_global(&mut file, options, &keep)?;
    let per_vcenter = at_least(version, since::TRUST_PER_VCENTER);
    if !per_vcenter {
        write_trust(&mut file, &mut data, version, only_trust(version, &connections)?)?;
    } else if differing_trust(given).is_empty() {
        // Upstream's syncer connects on two concurrent paths, and one of them reads this section alone.
        write_trust(&mut file, &mut data, version, connections[0])?;
        if connections[0].trust == Trust::Insecure {
            file.plain("insecure-flag", true);
        }
    }

    for connection in &connections {
        let place = format!("connection {:?}", connection.name);
        check_user(version, connection)?;
        file.subsection("VirtualCenter", &connection.server);
        file.text(&place, "user", "user", &connection.user)?;
        file.text(&place, "password", "password", connection.password.expose())?;
        file.plain("port", connection.port);
        file.plain("insecure-flag", connection.trust == Trust::Insecure);
        if per_vcenter {
            write_trust(&mut file, &mut data, version, connection)?;
        }
        if !connection.datacenters.is_empty() {
            file.text(&place, "datacenters", "datacenters", &connection.datacenters.join(","))?;
        }
        write_placement(&mut file, options, &connection.name, &keep)?;
    }
    write_sections(&mut file, options, &keep)?;
    data.insert(FILE.to_owned(), Secret::new(file.finish()));
    Ok(data)
}

/// The names of the connections when they are trusted in different ways, which no one place in the file can say; else none.
#[must_use]
pub fn differing_trust(connections: &[Connection]) -> Vec<&str> {
    match connections.iter().all(|connection| connection.trust == connections[0].trust) {
        true => Vec::new(),
        false => connections.iter().map(|connection| connection.name.as_str()).collect(),
    }
}

fn write_trust(
    file: &mut File,
    data: &mut BTreeMap<String, Secret>,
    version: &DriverVersion,
    connection: &Connection,
) -> Result<(), ConfigError> {
    match &connection.trust {
        Trust::CaBundle(pem) => {
            file.plain("ca-file", connection.ca_path());
            data.insert(connection.ca_key(), Secret::new(pem));
        }
        Trust::Thumbprint(print) => file.plain(
            "thumbprint",
            connection.comparable(print, "CSI", version, since::TRUST_PER_VCENTER)?,
        ),
        Trust::SystemRoots | Trust::Insecure => {}
    }
    Ok(())
}

/// The connection whose trust stands for all, for drivers that have only one place to write it.
fn only_trust<'a>(version: &DriverVersion, connections: &[&'a Connection]) -> Result<&'a Connection, ConfigError> {
    let secure: Vec<_> = connections
        .iter()
        .filter(|connection| connection.trust != Trust::Insecure)
        .collect();
    let first = secure.first().copied().unwrap_or(&connections[0]);
    let same = secure.iter().all(|connection| connection.trust == first.trust);
    same.then_some(*first).ok_or_else(|| ConfigError::OneTrustForAll {
        version: version.clone(),
        count: connections.len(),
    })
}

fn check_options(version: &DriverVersion, options: &CsiOptions, count: usize) -> Result<(), ConfigError> {
    let id = &options.cluster_id;
    let wrong_id = if id.is_empty() {
        Some("is empty")
    } else if id.len() > MAX_CLUSTER_ID {
        Some("is too long")
    } else if id.chars().any(char::is_control) {
        Some("contains a control character")
    } else {
        None
    };
    if let Some(because) = wrong_id {
        return Err(ConfigError::ClusterId { id: id.clone(), because });
    }
    let categories = &options.topology_categories;
    let wrong_category = categories.iter().find_map(|category| unlistable(category));
    let too_many = (categories.len() > MAX_CATEGORIES).then_some("there are too many");
    if let Some(because) = wrong_category.or(too_many) {
        return Err(ConfigError::Topology {
            categories: categories.clone(),
            because,
        });
    }
    if count > MAX_VCENTERS {
        return Err(ConfigError::TooManyConnections { count });
    }
    if count > 1 && !at_least(version, since::SEVERAL_VCENTERS) {
        return Err(ConfigError::OneVcenterOnly {
            version: version.clone(),
            count,
        });
    }
    if count > 1 && categories.is_empty() {
        return Err(ConfigError::TopologyNeeded { count });
    }
    Ok(())
}

fn check_user(version: &DriverVersion, connection: &Connection) -> Result<(), ConfigError> {
    if at_least(version, "3.1.2") && !is_principal(&connection.user) {
        return Err(ConfigError::User {
            name: connection.name.clone(),
            user: connection.user.clone(),
            version: version.clone(),
        });
    }
    Ok(())
}

/// The driver's own rule: `[a-zA-Z0-9.-]+\[a-zA-Z0-9._-]+` or `[a-zA-Z0-9._-]+@[a-zA-Z0-9.-]+`.
fn is_principal(user: &str) -> bool {
    let domain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    let account = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    user.split_once('\\').is_some_and(|(left, right)| domain(left) && account(right))
        || user.split_once('@').is_some_and(|(left, right)| account(left) && domain(right))
}

#[cfg(test)]
mod tests {
    use super::{CsiOptions, MAX_CATEGORIES, MAX_CLUSTER_ID, check_options, cluster_id, is_principal};

    #[test]
    fn csi_config_user_is_account_and_domain() {
        for (user, expected) in [
            ("vsphere.local\\csi_user", true),
            ("csi_user@vsphere.local", true),
            ("vsphere_local\\csi", false),
            ("csi@vsphere_local", false),
            ("\\csi", false),
            ("csi@", false),
            ("@vsphere.local", false),
            ("vsphere.local\\", false),
            ("c si@vsphere.local", false),
            ("csi", false),
        ] {
            assert_eq!(is_principal(user), expected, "{user}");
        }
    }

    #[test]
    fn csi_config_limits_are_inclusive() {
        let version = "3.7.3".parse().expect("a version");
        let with = |id: usize, categories: usize| {
            let mut options = CsiOptions::new("a".repeat(id));
            options.topology_categories = (0..categories).map(|i| format!("c{i}")).collect();
            check_options(&version, &options, 1).is_ok()
        };
        assert!(with(MAX_CLUSTER_ID, MAX_CATEGORIES));
        assert!(!with(MAX_CLUSTER_ID + 1, 1) && !with(1, MAX_CATEGORIES + 1));
    }

    #[test]
    fn csi_config_cluster_id_any_spelling_is_found() {
        for (text, id) in [
            ("[Global]\ncluster-id = \"a b\"\n", Some("a b")),
            ("[global]\n  Cluster-ID=plain ; a comment\n", Some("plain")),
            ("[Global]\ncluster-id = \"a\\\"b\" # c\n", Some("a\"b")),
            ("[VirtualCenter \"v\"]\ncluster-id = \"no\"\n[Global]\nuser = x\n", None),
            ("[Global]\ncluster-id = \"\"\n", None),
            ("", None),
        ] {
            assert_eq!(cluster_id(text.as_bytes()).as_deref(), id, "{text}");
        }
    }
}
