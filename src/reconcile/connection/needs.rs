use crate::api::VDOConfigSpec;
use crate::reconcile::select::asked;
use crate::types::{CPI, CSI};
use crate::vsphere::{Feature, Needs, WantedDatastore, WantedPolicy};
use std::collections::BTreeSet;

/// What a specification asks of one connection of its namespace (pure). A specification that cannot be acted upon asks nothing.
#[must_use]
pub fn needs(spec: &VDOConfigSpec, namespace: &str, existing: &BTreeSet<String>, connection: &str) -> Needs {
    let mut needs = Needs::default();
    let Ok(asked) = asked(spec, namespace, existing) else {
        return needs;
    };
    needs.drivers = asked.users(connection).into_iter().collect();
    if needs.drivers.contains(CPI) {
        needs.features.insert(Feature::CloudProvider);
        let topology = spec.cloud_provider.as_ref().and_then(|cpi| cpi.topology.clone());
        needs.zone_and_region = topology.map(|topology| (topology.zone, topology.region));
    }
    if needs.drivers.contains(CSI) {
        needs.others = asked.connections[CSI].len() - 1;
        needs.features.insert(Feature::Block);
        storage(&mut needs, spec);
    }
    if !needs.all_categories().is_empty() {
        needs.features.insert(Feature::Topology);
    }
    needs
}

fn storage(needs: &mut Needs, spec: &VDOConfigSpec) {
    let Some(csi) = &spec.storage_provider else { return };
    needs.categories.clone_from(&csi.topology_categories);
    if let Some(file) = &csi.file_volumes {
        needs.features.insert(Feature::File);
        needs.datastores.extend(file.vsan_data_store_url.iter().map(|url| WantedDatastore {
            url: url.clone(),
            named_in: "spec.storageProvider.fileVolumes".into(),
            vsan: true,
        }));
    }
    for class in &csi.storage_classes {
        let named_in = format!("StorageClass {}", class.name);
        let file = class.file_share == Some(true);
        if file {
            needs.features.insert(Feature::File);
        }
        needs.datastores.extend(class.datastore_url.iter().map(|url| WantedDatastore {
            url: url.clone(),
            named_in: named_in.clone(),
            vsan: file,
        }));
        needs.policies.extend(class.storage_policy.iter().map(|name| WantedPolicy {
            name: name.clone(),
            named_in: named_in.clone(),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(spec: serde_json::Value, connection: &str) -> String {
        let spec: VDOConfigSpec = serde_json::from_value(spec).expect("a specification");
        let existing = ["vc1", "vc2"].map(String::from).into();
        let needs = needs(&spec, "ns", &existing, connection);
        let features: Vec<&str> = needs.features.iter().map(|feature| feature.as_str()).collect();
        let datastores = needs
            .datastores
            .iter()
            .map(|d| format!("{} in {}{}", d.url, d.named_in, if d.vsan { " (vSAN)" } else { "" }));
        let policies = needs.policies.iter().map(|p| format!("{} in {}", p.name, p.named_in));
        let named: Vec<String> = datastores.chain(policies).collect();
        let categories: Vec<&str> = needs.all_categories().into_iter().collect();
        format!(
            "{}|{}|{}|others: {}",
            features.join(","),
            named.join(","),
            categories.join(","),
            needs.others
        )
    }

    /// Only what is used is needed, and only by those who use the connection.
    #[test]
    fn connection_needs_each_spec_lists_features_and_names() {
        let rich = json!({"cloudProvider": {"vsphereCloudConfigs": ["vc1"], "topology": {"zone": "z", "region": "r"}},
            "storageProvider": {"vsphereCloudConfigs": ["vc2"], "topologyCategories": ["z", "rack"],
                "fileVolumes": {"vsanDataStoreUrl": ["ds:///v/"]},
                "storageClasses": [{"name": "fast", "storagePolicy": "gold"}, {"name": "here", "datastoreUrl": "ds:///x/"}]}});
        for (spec, connection, expected) in [
            (json!({}), "vc1", "cloud provider,block volumes|||others: 1"),
            (json!({"cloudProvider": {}}), "vc1", "cloud provider|||others: 0"),
            (json!({"storageProvider": {"vsphereCloudConfig": "vc2"}}), "vc1", "|||others: 0"),
            (
                json!({"storageProvider": {"vsphereCloudConfig": "vc2"}}),
                "vc2",
                "block volumes|||others: 0",
            ),
            (rich.clone(), "vc1", "cloud provider,topology||r,z|others: 0"),
            (
                rich,
                "vc2",
                "block volumes,file volumes,topology|ds:///v/ in spec.storageProvider.fileVolumes (vSAN),ds:///x/ in StorageClass here,gold in StorageClass fast|rack,z|others: 0",
            ),
            (
                json!({"storageProvider": {"storageClasses": [{"name": "share", "fileShare": true, "datastoreUrl": "ds:///v/"}]}}),
                "vc1",
                "block volumes,file volumes|ds:///v/ in StorageClass share (vSAN)||others: 1",
            ),
            (json!({"storageProvider": {"vsphereCloudConfigs": ["none"]}}), "vc1", "|||others: 0"),
        ] {
            assert_eq!(told(spec, connection), expected);
        }
    }
}
