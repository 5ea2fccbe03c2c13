// SPDX-License-Identifier: Apache-2.0
//! Finds existing volumes that a change of the CSI driver's cluster id, vCenters or topology would affect (pure).

use super::CSI_DRIVER;
use crate::manifest::Object;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use vdo_api::api::VOLUME_SETTINGS_ANNOTATION;
use vdo_api::types::{count, from_json, name_list};

/// What volumes depend on: under which identity, in which vCenters and for which topology they were made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeSettings {
    /// The identity under which volumes are registered.
    pub cluster_id: String,
    /// The addresses of the vCenters.
    pub vcenters: BTreeSet<String>,
    /// The labels by which volumes are bound to nodes.
    pub topology_keys: BTreeSet<String>,
}

impl VolumeSettings {
    /// As the annotation of the driver's configuration has them.
    pub(super) fn note(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Those that the configuration of a driver was written with. `None` for any other object, and for a configuration of another tool.
    #[must_use]
    pub fn of(configuration: &Object) -> Option<Self> {
        from_json(configuration.annotation(VOLUME_SETTINGS_ANNOTATION)?).ok()
    }

    /// Whether the other settings lack something that volumes may depend on.
    #[must_use]
    pub fn is_lost_in(&self, after: &Self) -> bool {
        self.cluster_id != after.cluster_id
            || !self.vcenters.is_subset(&after.vcenters)
            || !self.topology_keys.is_subset(&after.topology_keys)
    }

    /// What a change to the other settings takes away from these PersistentVolumes: a sentence each, none where no volume depends on it.
    #[must_use]
    pub fn taken_away(&self, after: &Self, volumes: &[Object]) -> Vec<String> {
        let ours: Vec<&Object> = volumes.iter().filter(|volume| is_ours(volume)).collect();
        let mut all = Vec::new();
        if ours.is_empty() {
            return all;
        }
        let volumes = count(ours.len(), "PersistentVolume");
        if self.cluster_id != after.cluster_id {
            let (from, to) = (&self.cluster_id, &after.cluster_id);
            all.push(format!(
                "cluster id {from} would be replaced by {to}, but {volumes} may be registered under {from}"
            ));
        }
        let vcenters: Vec<&String> = self.vcenters.difference(&after.vcenters).collect();
        if !vcenters.is_empty() {
            let (noun, these) = match vcenters.len() {
                1 => ("vCenter", "this vCenter"),
                _ => ("vCenters", "these vCenters"),
            };
            all.push(format!(
                "{noun} {} would be removed from the configuration of the CSI driver, but some of {volumes} may be in {these}",
                name_list(&vcenters)
            ));
        }
        for key in self.topology_keys.difference(&after.topology_keys) {
            let bound = ours.iter().filter(|volume| keys(volume).contains(key.as_str())).count();
            if bound > 0 {
                all.push(format!(
                    "nodes would lose topology label {key}, which the node affinity of {} uses",
                    count(bound, "PersistentVolume")
                ));
            }
        }
        all
    }
}

/// Whether a PersistentVolume is of the driver, or of the one that was built into Kubernetes, whose volumes are handed to it.
fn is_ours(volume: &Object) -> bool {
    volume.text("/spec/csi/driver") == CSI_DRIVER || volume.value().pointer("/spec/vsphereVolume").is_some()
}

/// The labels of nodes that a PersistentVolume asks for.
fn keys(volume: &Object) -> BTreeSet<&str> {
    let terms = volume.value().pointer("/spec/nodeAffinity/required/nodeSelectorTerms");
    let terms = terms.and_then(serde_json::Value::as_array).into_iter().flatten();
    let expressions = terms.filter_map(|term| term["matchExpressions"].as_array()).flatten();
    expressions.filter_map(|expression| expression["key"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn settings(cluster_id: &str, vcenters: &[&str], keys: &[&str]) -> VolumeSettings {
        let set = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect();
        VolumeSettings {
            cluster_id: cluster_id.into(),
            vcenters: set(vcenters),
            topology_keys: set(keys),
        }
    }

    fn volume(spec: Value) -> Object {
        Object::new(json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": spec})).expect("an object")
    }

    fn bound(key: &str) -> Object {
        let term = json!({"matchExpressions": [{"key": key, "operator": "In", "values": ["a"]}]});
        volume(json!({"csi": {"driver": CSI_DRIVER}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}))
    }

    #[test]
    fn volume_settings_lost_are_named_with_volumes_that_depend_on_them() {
        let free = || volume(json!({"csi": {"driver": CSI_DRIVER}}));
        let old = || volume(json!({"vsphereVolume": {"volumePath": "[ds] a.vmdk"}}));
        let foreign = || volume(json!({"csi": {"driver": "nfs.example.com"}}));
        let before = settings("a", &["vc1", "vc2"], &["t/zone", "t/rack"]);
        let all = ["t/zone", "t/rack"];
        for (case, after, volumes, lost, expected) in [
            ("nothing", before.clone(), vec![free()], false, vec![]),
            (
                "more",
                settings("a", &["vc1", "vc2", "vc3"], &["t/zone", "t/rack", "t/new"]),
                vec![free()],
                false,
                vec![],
            ),
            (
                "another identity",
                settings("b", &["vc1", "vc2"], &all),
                vec![free()],
                true,
                vec!["cluster id a would be replaced by b, but 1 PersistentVolume may be registered under a"],
            ),
            (
                "a vCenter fewer",
                settings("a", &["vc1"], &all),
                vec![free(), old()],
                true,
                vec!["vCenter vc2 would be removed from the configuration of the CSI driver, but some of 2 PersistentVolumes"],
            ),
            (
                "another address",
                settings("a", &["vc1", "vc9"], &all),
                vec![bound("t/zone")],
                true,
                vec!["vCenter vc2"],
            ),
            (
                "a category fewer",
                settings("a", &["vc1", "vc2"], &["t/zone"]),
                vec![bound("t/rack"), bound("t/zone"), free()],
                true,
                vec!["label t/rack, which the node affinity of 1 PersistentVolume uses"],
            ),
            (
                "of none",
                settings("a", &["vc1", "vc2"], &["t/zone"]),
                vec![bound("t/zone")],
                true,
                vec![],
            ),
            (
                "all of them",
                settings("a", &["vc1", "vc2"], &[]),
                vec![bound("t/rack"), bound("t/zone"), bound("t/zone")],
                true,
                vec![
                    "label t/rack, which the node affinity of 1",
                    "label t/zone, which the node affinity of 2 PersistentVolumes uses",
                ],
            ),
            ("no volumes", settings("b", &[], &[]), vec![], true, vec![]),
            ("of another driver", settings("b", &[], &[]), vec![foreign()], true, vec![]),
        ] {
            assert_eq!(before.is_lost_in(&after), lost, "{case}");
            let found = before.taken_away(&after, &volumes);
            assert_eq!(found.len(), expected.len(), "{case}: {found:?}");
            for (sentence, words) in found.iter().zip(expected) {
                assert!(sentence.contains(words), "{case}: {words:?} is not in {sentence}");
            }
        }
    }

    #[test]
    fn volume_settings_are_read_from_their_annotation_only() {
        let own = settings("a", &["vc1"], &["t/zone"]);
        let secret = |annotations: Value| {
            let metadata = json!({"name": "s", "namespace": "n", "annotations": annotations});
            Object::new(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})).expect("an object")
        };
        assert_eq!(
            VolumeSettings::of(&secret(json!({VOLUME_SETTINGS_ANNOTATION: own.note()}))),
            Some(own)
        );
        assert_eq!(VolumeSettings::of(&secret(json!({VOLUME_SETTINGS_ANNOTATION: "edited"}))), None);
        assert_eq!(VolumeSettings::of(&secret(json!({}))), None);
    }
}
