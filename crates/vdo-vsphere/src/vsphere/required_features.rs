// SPDX-License-Identifier: Apache-2.0
//! Derives from a VDOConfig what its drivers require of one connection: features, datastores, storage policies, tag categories.

use super::inventory::Policy;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::VDOConfigSpec;
use vdo_api::types::{DriverName, DriverVersion};
use vdo_core::driverconfig::node_addresses::NodeAddresses;
use vdo_core::drivers::{CLOUD_PROVIDER, STORAGE, default_class, node_addresses, reads_file_share_datastores};

/// A feature of the drivers that needs its own privileges in a vCenter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    /// The cloud provider finds virtual machines.
    CloudProvider,
    /// The CSI driver creates block volumes.
    Block,
    /// The CSI driver creates file volumes.
    File,
    /// A driver reads tags of zones and regions.
    Topology,
    /// Volumes are encrypted by their storage policy.
    Encryption,
}

impl Feature {
    /// What people call it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CloudProvider => "cloud provider",
            Self::Block => "block volumes",
            Self::File => "file volumes",
            Self::Topology => "topology",
            Self::Encryption => "encryption",
        }
    }
}

/// What the drivers of a cluster ask of one vSphere connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requirements {
    /// The drivers that use the connection.
    pub drivers: BTreeSet<DriverName>,
    /// The versions in which drivers are pinned, chosen or installed, as far as there are any: what they need depends on these.
    pub versions: BTreeMap<DriverName, Vec<DriverVersion>>,
    /// What they do there; [`Feature::Encryption`] shows only in the policies themselves.
    pub features: BTreeSet<Feature>,
    /// Datastores that are named.
    pub datastores: Vec<WantedDatastore>,
    /// Storage policies that are named.
    pub policies: Vec<WantedPolicy>,
    /// Which addresses the cloud provider gives to nodes.
    pub addresses: NodeAddresses,
    /// The tag categories of the zone and the region for the cloud provider.
    pub zone_and_region: Option<(String, String)>,
    /// How many other connections the CSI driver uses: what is named and is not here may be there.
    pub others: usize,
    /// The tag categories of the CSI driver.
    pub categories: Vec<String>,
}

impl Requirements {
    /// Whether a storage policy that is named encrypts volumes, by the policies that the vCenter has.
    #[must_use]
    pub fn encrypts(&self, policies: &[Policy]) -> bool {
        let is_named = |policy: &&Policy| self.policies.iter().any(|wanted| wanted.name == policy.name);
        policies.iter().filter(is_named).any(|policy| policy.encrypts)
    }

    /// Every tag category that some driver reads, without repetition.
    #[must_use]
    pub fn all_categories(&self) -> BTreeSet<&str> {
        let of_cpi = self.zone_and_region.iter().flat_map(|(zone, region)| [zone, region]);
        of_cpi.chain(&self.categories).map(String::as_str).collect()
    }
}

/// A datastore that a specification or a StorageClass names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedDatastore {
    /// Its URL.
    pub url: String,
    /// Where it is named, such as `StorageClass fast`.
    pub named_in: String,
    /// Whether it must be a vSAN datastore.
    pub vsan: bool,
}

/// A storage policy that a specification or a StorageClass names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WantedPolicy {
    /// Its name.
    pub name: String,
    /// Where it is named, such as `StorageClass fast`.
    pub named_in: String,
}

/// What a specification requires of one connection, given the drivers that use it, how many other connections the CSI driver uses, and the
/// versions in which drivers are pinned, chosen or installed, as far as there are any.
#[must_use]
pub fn requirements(
    spec: &VDOConfigSpec,
    drivers: BTreeSet<DriverName>,
    others: usize,
    versions: BTreeMap<DriverName, Vec<DriverVersion>>,
) -> Requirements {
    let mut requirements = Requirements {
        drivers,
        versions,
        ..Requirements::default()
    };
    if requirements.drivers.contains(CLOUD_PROVIDER.name) {
        requirements.features.insert(Feature::CloudProvider);
        requirements.addresses = node_addresses(spec);
        let topology = spec.cloud_provider.as_ref().and_then(|cpi| cpi.topology.clone());
        requirements.zone_and_region = topology.map(|topology| (topology.zone, topology.region));
    }
    if requirements.drivers.contains(STORAGE.name) {
        requirements.others = others;
        requirements.features.insert(Feature::Block);
        add_storage(&mut requirements, spec);
    }
    if !requirements.all_categories().is_empty() {
        requirements.features.insert(Feature::Topology);
    }
    requirements
}

fn add_storage(requirements: &mut Requirements, spec: &VDOConfigSpec) {
    let Some(csi) = &spec.storage_provider else { return };
    requirements.categories.clone_from(&csi.topology_categories);
    if let Some(file) = &csi.file_volumes {
        requirements.features.insert(Feature::File);
        // A version that does not read them is not kept from its vCenter by them; the condition OptionsSupported names them instead.
        let urls = file.vsan_data_store_url.iter();
        let versions = requirements.versions.get(STORAGE.name).into_iter().flatten();
        let reads = versions.into_iter().any(reads_file_share_datastores);
        let urls = urls.filter(|_| reads);
        requirements.datastores.extend(urls.map(|url| WantedDatastore {
            url: url.clone(),
            named_in: "spec.storageProvider.fileVolumes".into(),
            vsan: true,
        }));
    }
    let default = default_class(spec).map(|asked| asked.class(true));
    for class in csi.storage_classes.iter().chain(&default) {
        let named_in = format!("StorageClass {}", class.name);
        let file = class.file_share == Some(true);
        if file {
            requirements.features.insert(Feature::File);
        }
        requirements
            .datastores
            .extend(class.datastore_url.iter().map(|url| WantedDatastore {
                url: url.clone(),
                named_in: named_in.clone(),
                vsan: file,
            }));
        requirements.policies.extend(class.storage_policy.iter().map(|name| WantedPolicy {
            name: name.clone(),
            named_in: named_in.clone(),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vdo_core::drivers::{CPI, CSI};

    fn shown(spec: serde_json::Value, drivers: &[&str]) -> String {
        let spec: VDOConfigSpec = serde_json::from_value(spec).expect("a specification");
        let drivers = drivers.iter().map(|driver| (*driver).to_owned()).collect();
        let versions = [(CSI.to_owned(), vec!["3.1.2".parse().expect("a version")])].into();
        let requirements = requirements(&spec, drivers, 1, versions);
        let features: Vec<&str> = requirements.features.iter().map(|feature| feature.as_str()).collect();
        let datastores = requirements
            .datastores
            .iter()
            .map(|d| format!("{} in {}{}", d.url, d.named_in, if d.vsan { " (vSAN)" } else { "" }));
        let policies = requirements.policies.iter().map(|p| format!("{} in {}", p.name, p.named_in));
        let named: Vec<String> = datastores.chain(policies).collect();
        let categories: Vec<&str> = requirements.all_categories().into_iter().collect();
        format!(
            "{}|{}|{}|others: {}",
            features.join(","),
            named.join(","),
            categories.join(","),
            requirements.others
        )
    }

    /// Only what is used is required, and only by the drivers that use the connection.
    #[test]
    fn connection_requirements_each_spec_lists_features_and_names() {
        let rich = json!({"cloudProvider": {"topology": {"zone": "z", "region": "r"}},
            "storageProvider": {"topologyCategories": ["z", "rack"], "fileVolumes": {"vsanDataStoreUrl": ["ds:///v/"]},
                "storageClasses": [{"name": "fast", "storagePolicy": "gold"}, {"name": "here", "datastoreUrl": "ds:///x/"}]}});
        for (spec, drivers, expected) in [
            (json!({}), &[][..], "|||others: 0"),
            (json!({}), &[CPI, CSI], "cloud provider,block volumes|||others: 1"),
            (json!({"cloudProvider": {}}), &[CPI], "cloud provider|||others: 0"),
            (json!({"storageProvider": {}}), &[CSI], "block volumes|||others: 1"),
            (rich.clone(), &[CPI], "cloud provider,topology||r,z|others: 0"),
            (
                rich,
                &[CSI],
                "block volumes,file volumes,topology|ds:///v/ in spec.storageProvider.fileVolumes (vSAN),ds:///x/ in StorageClass here,gold in StorageClass fast|rack,z|others: 1",
            ),
            (
                json!({"storageProvider": {"defaultStorageClass": {"storagePolicy": "gold"}}}),
                &[CSI],
                "block volumes|gold in StorageClass vsphere||others: 1",
            ),
            (
                json!({"storageProvider": {"defaultStorageClass": {"mode": "Off", "storagePolicy": "gold"}}}),
                &[CSI],
                "block volumes|||others: 1",
            ),
            (
                json!({"storageProvider": {"storageClasses": [{"name": "share", "fileShare": true, "datastoreUrl": "ds:///v/"}]}}),
                &[CSI],
                "block volumes,file volumes|ds:///v/ in StorageClass share (vSAN)||others: 1",
            ),
        ] {
            assert_eq!(shown(spec, drivers), expected);
        }
    }

    /// CSI 3.2.0 and later choose the datastores of file shares themselves.
    #[test]
    fn connection_requirements_datastores_of_file_shares_only_for_versions_that_read_them() {
        let spec = json!({"storageProvider": {"fileVolumes": {"vsanDataStoreUrl": ["ds:///v/"]}}});
        let spec: VDOConfigSpec = serde_json::from_value(spec).expect("a specification");
        for (versions, expected) in [
            (&[][..], 0),
            (&["3.1.2"], 1),
            (&["3.2.0"], 0),
            (&["3.7.3"], 0),
            (&["3.7.3", "3.0.0"], 1),
        ] {
            let versions: Vec<DriverVersion> = versions.iter().map(|text| text.parse().expect("a version")).collect();
            let shown = format!("{versions:?}");
            let found = requirements(&spec, [CSI.to_owned()].into(), 0, [(CSI.to_owned(), versions)].into());
            assert_eq!(found.datastores.len(), expected, "{shown}");
            assert!(
                found.features.contains(&Feature::File),
                "file volumes need privileges in each version"
            );
        }
    }
}
