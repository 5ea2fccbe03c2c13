// SPDX-License-Identifier: Apache-2.0
//! Checks and writes settings of `csi-vsphere.conf`: `[Global]`, placement per vCenter, `[NetPermissions]`, `[Labels]` and `[Snapshot]`.

use super::super::check::{subnet, unlistable};
use super::super::gcfg::File;
use super::super::{ConfigError, Connection};
use super::{CsiOptions, SnapshotLimits, since};
use std::net::IpAddr;

/// Limits and intervals; `None` leaves the driver's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tuning {
    /// Volumes in one query.
    pub query_limit: Option<u32>,
    /// By how many volumes vCenter and cluster may differ.
    pub list_volume_threshold: Option<u32>,
    /// Minutes between looks for privileges.
    pub auth_check_minutes: Option<u32>,
    /// Minutes between looks for preferred datastores.
    pub preferred_datastores_minutes: Option<u32>,
}

impl Tuning {
    /// Each setting with its value.
    pub(super) const fn all(&self) -> [(since::Key, Option<u32>); 4] {
        [
            (since::QUERY_LIMIT, self.query_limit),
            (since::LIST_VOLUME_THRESHOLD, self.list_volume_threshold),
            (since::AUTH_CHECK, self.auth_check_minutes),
            (since::PREFERRED_DATASTORES, self.preferred_datastores_minutes),
        ]
    }
}

/// Checks settings that a list of the driver, or vSAN, would understand in another way than they are meant.
pub(super) fn check_settings(options: &CsiOptions, connections: &[&Connection]) -> Result<(), ConfigError> {
    if let Some((at, permission)) = options.net_permissions.iter().enumerate().find(|(_, one)| !is_clients(&one.ips)) {
        return Err(ConfigError::Clients {
            at,
            text: permission.ips.clone(),
        });
    }
    let urls = options.file_share_datastore_urls.iter().chain(&options.migration_datastore_url);
    let clusters = options.file_share_clusters.values().flatten();
    let texts = urls
        .map(|url| ("the datastore URL", url))
        .chain(clusters.map(|cluster| ("the vSAN cluster", cluster)));
    for (field, text) in texts {
        if let Some(because) = unlistable(text) {
            return Err(ConfigError::Text {
                field,
                text: text.clone(),
                because,
            });
        }
    }
    let is_used = |name: &&String| connections.iter().any(|connection| connection.name == **name);
    if let Some(name) = options.file_share_clusters.keys().find(|name| !is_used(name)) {
        return Err(ConfigError::ClustersOfNone { name: name.clone() });
    }
    if options.migration_datastore_url.is_some() && connections.len() > 1 {
        return Err(ConfigError::MigrationDatastore { count: connections.len() });
    }
    Ok(())
}

/// Whether a text says which clients are meant: all, one address, a subnet, or the addresses from one to another.
#[must_use]
pub fn is_clients(text: &str) -> bool {
    let address = |text: &str| text.parse::<IpAddr>().ok();
    let range = || {
        let (from, to) = text.split_once('-')?;
        Some((address(from)?, address(to)?))
    };
    text == "*"
        || address(text).is_some()
        || subnet(text).is_some()
        || range().is_some_and(|(from, to)| from.is_ipv4() == to.is_ipv4() && from <= to)
}

/// What is for all vCenters.
pub(super) fn write_global(file: &mut File, options: &CsiOptions, keep: &impl Fn(&str) -> bool) -> Result<(), ConfigError> {
    file.section("Global");
    file.text("the options", "cluster id", "cluster-id", &options.cluster_id)?;
    if let Some(distribution) = options.cluster_distribution.as_deref().filter(|_| keep("clusterDistribution")) {
        file.text("the options", "cluster distribution", "cluster-distribution", distribution)?;
    }
    for (setting, value) in options.tuning.all() {
        if let Some(value) = value.filter(|_| keep(&setting.field.join("."))) {
            file.plain(setting.key, value);
        }
    }
    Ok(())
}

/// Where volumes of a vCenter are placed.
pub(super) fn write_placement(
    file: &mut File,
    options: &CsiOptions,
    connection: &str,
    keep: &impl Fn(&str) -> bool,
) -> Result<(), ConfigError> {
    let place = format!("connection {connection:?}");
    if !options.file_share_datastore_urls.is_empty() && keep("fileVolumes.vsanDataStoreUrl") {
        let urls = options.file_share_datastore_urls.join(",");
        file.text(&place, "datastore URLs", "targetvSANFileShareDatastoreURLs", &urls)?;
    }
    let clusters = options.file_share_clusters.get(connection);
    if let Some(clusters) = clusters.filter(|_| keep("fileVolumes.vsanClusters")) {
        file.text(&place, "clusters", "targetvSANFileShareClusters", &clusters.join(","))?;
    }
    let migration = options.migration_datastore_url.as_deref();
    if let Some(url) = migration.filter(|_| keep("migrationDatastoreUrl")) {
        file.text(&place, "datastore URL", "migration-datastore-url", url)?;
    }
    Ok(())
}

/// The sections after those of the vCenters.
pub(super) fn write_sections(file: &mut File, options: &CsiOptions, keep: &impl Fn(&str) -> bool) -> Result<(), ConfigError> {
    for (i, permission) in options.net_permissions.iter().enumerate() {
        file.subsection("NetPermissions", &format!("permission-{i}"));
        file.text("the options", "net permission", "ips", &permission.ips)?;
        file.plain("permissions", permission.access.word());
        file.plain("rootsquash", permission.root_squash);
    }
    if !options.topology_categories.is_empty() && keep("topologyCategories") {
        file.section("Labels");
        let categories = options.topology_categories.join(",");
        file.text("the options", "topology categories", "topology-categories", &categories)?;
    }
    if options.snapshots != SnapshotLimits::default() && keep("snapshots") {
        file.section("Snapshot");
        for (key, limit) in [
            ("global-max-snapshots-per-block-volume", options.snapshots.per_volume),
            ("granular-max-snapshots-per-block-volume-vsan", options.snapshots.vsan),
            ("granular-max-snapshots-per-block-volume-vvol", options.snapshots.vvol),
        ] {
            if let Some(limit) = limit {
                file.plain(key, limit);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_clients;

    #[test]
    fn csi_config_clients_are_all_an_address_a_subnet_or_a_range() {
        for good in [
            "*",
            "10.0.0.1",
            "10.0.0.0/8",
            "10.0.0.1-10.0.0.9",
            "10.0.0.1-10.0.0.1",
            "fd00::1",
            "fd00::/64",
            "fd00::1-fd00::ff",
            "0.0.0.0/0",
        ] {
            assert!(is_clients(good), "{good}");
        }
        for bad in [
            "",
            "**",
            "10.0.0",
            "10.0.0.256",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.9-10.0.0.1",
            "10.0.0.1-fd00::1",
            "10.0.0.1-",
            "10.0.0.1-2-3",
            "10.0.0.1, 10.0.0.2",
            " 10.0.0.1",
            "host.example.com",
            "10.0.0.*",
        ] {
            assert!(!is_clients(bad), "{bad}");
        }
    }
}
