// SPDX-License-Identifier: Apache-2.0
//! The first CSI driver version that reads each setting of `csi-vsphere.conf`, for writing the file and for reading another tool's file.

/// The distribution of a cluster.
pub const CLUSTER_DISTRIBUTION: &str = "2.2.0";
/// The clusters for file volumes.
pub const FILE_SHARE_CLUSTERS: &str = "2.3.0";
/// Limits of snapshots.
pub const SNAPSHOTS: &str = "2.4.0";
/// Topology categories.
pub const TOPOLOGY_CATEGORIES: &str = "2.4.0";
/// More than one vCenter.
pub const SEVERAL_VCENTERS: &str = "3.0.0";
/// The datastore of migrated volumes.
pub const MIGRATION_DATASTORE: &str = "3.0.0";
/// From this version on it does not read the datastores of file shares any more.
pub const WITHOUT_FILE_SHARE_DATASTORES: &str = "3.2.0";
/// The trust of each vCenter from its own section; from here on it compares SHA-256 thumbprints, too.
pub const TRUST_PER_VCENTER: &str = "3.3.0";

/// A key of the section `Global` that holds a number.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// As the file spells it.
    pub key: &'static str,
    /// The path of its field in `spec.storageProvider`.
    pub field: [&'static str; 2],
    /// The first version that reads it.
    pub since: &'static str,
}

const fn tuning(key: &'static str, field: &'static str, since: &'static str) -> Key {
    Key {
        key,
        field: ["tuning", field],
        since,
    }
}

/// How many volumes one question to the vCenter asks about.
pub const QUERY_LIMIT: Key = tuning("query-limit", "queryLimit", "2.6.0");
/// From how many differing volumes on a list of volumes asks the vCenter for all.
pub const LIST_VOLUME_THRESHOLD: Key = tuning("list-volume-threshold", "listVolumeThreshold", "2.6.0");
/// The minutes between two looks at the privileges of the account.
pub const AUTH_CHECK: Key = tuning("csi-auth-check-intervalinmin", "authCheckMinutes", "2.2.0");
/// The minutes between two looks for preferred datastores.
pub const PREFERRED_DATASTORES: Key = tuning(
    "csi-fetch-preferred-datastores-intervalinmin",
    "preferredDatastoresMinutes",
    "2.6.0",
);
