// SPDX-License-Identifier: Apache-2.0
//! Lists the volumes, claims, snapshots and classes that stay in the cluster after the storage driver is uninstalled.

use super::Volumes;
use crate::drivers::CSI_DRIVER;
use crate::manifest::Object;
use std::collections::BTreeSet;
use vdo_api::types::{ObjectId, count, verb};

/// The provisioner that was built into Kubernetes. Every Kubernetes that is supported hands its claims to this driver.
const BUILT_IN: &str = "kubernetes.io/vsphere-volume";

/// How many are named.
const NAMED: usize = 10;

/// What of the storage driver stays when the driver is removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageData {
    /// Volumes, attachments and snapshots.
    pub volumes: Volumes,
    /// Claims that wait for a volume of the driver, and only the driver can make one.
    pub pending: Vec<ObjectId>,
    /// Classes of volumes and of snapshots that name the driver.
    pub classes: Vec<ObjectId>,
}

impl StorageData {
    /// The kinds that have to be read, by API version.
    pub const KINDS: [(&'static str, &'static str); 7] = [
        ("v1", "PersistentVolume"),
        ("storage.k8s.io/v1", "VolumeAttachment"),
        ("snapshot.storage.k8s.io/v1", "VolumeSnapshotContent"),
        ("v1", "PersistentVolumeClaim"),
        ("snapshot.storage.k8s.io/v1", "VolumeSnapshot"),
        ("storage.k8s.io/v1", "StorageClass"),
        ("snapshot.storage.k8s.io/v1", "VolumeSnapshotClass"),
    ];

    /// From all objects of these kinds.
    #[must_use]
    pub fn of(all: &[Object]) -> Self {
        let of_kind = |kind: &str| -> Vec<Object> { all.iter().filter(|object| object.kind() == kind).cloned().collect() };
        let names_us = |object: &&Object, place: &str| [CSI_DRIVER, BUILT_IN].contains(&object.text(place));
        let ours = |kind: &str, place: &str| -> Vec<ObjectId> {
            let found = all.iter().filter(|object| object.kind() == kind && names_us(object, place));
            found.map(Object::id).collect()
        };
        let classes = [ours("StorageClass", "/provisioner"), ours("VolumeSnapshotClass", "/driver")].concat();
        let names: BTreeSet<(&str, &str)> = classes.iter().map(|class| (class.kind(), &*class.name)).collect();
        let waits = |object: &&Object| match object.kind() {
            "PersistentVolumeClaim" => {
                let by_class = names.contains(&("StorageClass", object.text("/spec/storageClassName")));
                let provisioner = object.annotation("volume.kubernetes.io/storage-provisioner").unwrap_or_default();
                let by_us = by_class || [CSI_DRIVER, BUILT_IN].contains(&provisioner);
                object.text("/status/phase") == "Pending" && object.text("/spec/volumeName").is_empty() && by_us
            }
            "VolumeSnapshot" => {
                let bound = !object.text("/status/boundVolumeSnapshotContentName").is_empty();
                !bound && names.contains(&("VolumeSnapshotClass", object.text("/spec/volumeSnapshotClassName")))
            }
            _ => false,
        };
        Self {
            volumes: Volumes::of(
                &of_kind("PersistentVolume"),
                &of_kind("VolumeAttachment"),
                &of_kind("VolumeSnapshotContent"),
            ),
            pending: all.iter().filter(waits).map(Object::id).collect(),
            classes,
        }
    }

    /// One line for each part that exists.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lines_with("", "")
    }

    /// The same lines for what stays after a removal.
    #[must_use]
    pub fn lines_of_rest(&self) -> Vec<String> {
        self.lines_with(" stays", " stay")
    }

    fn lines_with(&self, one: &str, many: &str) -> Vec<String> {
        let mut lines = Vec::new();
        if self.volumes.count > 0 {
            let named = listed(self.volumes.named.clone(), self.volumes.count);
            lines.push(format!(
                "{} of {CSI_DRIVER}{}: {named}",
                self.volumes.counted(),
                verb(self.volumes.count, one, many)
            ));
        }
        for (what, ids) in [("pending claim", &self.pending), ("class", &self.classes)] {
            let names = ids.iter().take(NAMED).map(ToString::to_string).collect();
            let number = match (ids.len(), what) {
                (0, _) => continue,
                (many @ 2.., "class") => format!("{many} classes"),
                (number, what) => count(number, what),
            };
            lines.push(format!(
                "{number} of {CSI_DRIVER}{}: {}",
                verb(ids.len(), one, many),
                listed(names, ids.len())
            ));
        }
        lines
    }
}

fn listed(named: Vec<String>, all: usize) -> String {
    let more = match all - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    named.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn object(kind: &str, name: &str, rest: Value) -> Object {
        let version = StorageData::KINDS
            .iter()
            .find(|(_, known)| *known == kind)
            .map_or("v1", |(version, _)| version);
        let mut value = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
        if matches!(kind, "PersistentVolumeClaim" | "VolumeSnapshot") {
            value["metadata"]["namespace"] = "shop".into();
        }
        for (key, part) in rest.as_object().into_iter().flatten() {
            match key.as_str() {
                "annotations" => value["metadata"]["annotations"] = part.clone(),
                key => value[key] = part.clone(),
            }
        }
        Object::new(value).expect("an object")
    }

    #[test]
    fn storage_data_names_what_holds_or_leads_to_data_and_nothing_of_other_drivers() {
        let claim = |name: &str, class: &str, phase: &str, volume: &str| {
            let spec = json!({"storageClassName": class, "volumeName": volume});
            object("PersistentVolumeClaim", name, json!({"spec": spec, "status": {"phase": phase}}))
        };
        let snapshot = |name: &str, class: &str, content: Value| {
            let status = json!({"boundVolumeSnapshotContentName": content});
            object(
                "VolumeSnapshot",
                name,
                json!({"spec": {"volumeSnapshotClassName": class}, "status": status}),
            )
        };
        let by_annotation = json!({"volume.kubernetes.io/storage-provisioner": CSI_DRIVER});
        let all = [
            object("StorageClass", "fast", json!({"provisioner": CSI_DRIVER})),
            object("StorageClass", "old", json!({"provisioner": BUILT_IN})),
            object("StorageClass", "nfs", json!({"provisioner": "example.com/nfs"})),
            object("VolumeSnapshotClass", "daily", json!({"driver": CSI_DRIVER})),
            claim("waits", "fast", "Pending", ""),
            claim("bound", "fast", "Bound", "pv-1"),
            claim("binding", "fast", "Pending", "pv-1"),
            claim("others", "nfs", "Pending", ""),
            object(
                "PersistentVolumeClaim",
                "class-deleted",
                json!({"annotations": by_annotation, "spec": {"storageClassName": "gone"}, "status": {"phase": "Pending"}}),
            ),
            snapshot("unbound", "daily", Value::Null),
            snapshot("taken", "daily", "content".into()),
            object(
                "PersistentVolume",
                "pv-1",
                json!({"spec": {"csi": {"driver": CSI_DRIVER}, "claimRef": {"namespace": "shop", "name": "bound"}}}),
            ),
        ];
        assert_eq!(
            StorageData::of(&all).lines(),
            [
                "1 volume or snapshot of csi.vsphere.vmware.com: pv-1 of claim shop/bound",
                "3 pending claims of csi.vsphere.vmware.com: PersistentVolumeClaim shop/waits, PersistentVolumeClaim shop/class-deleted, \
                 VolumeSnapshot shop/unbound",
                "3 classes of csi.vsphere.vmware.com: StorageClass fast, StorageClass old, VolumeSnapshotClass daily",
            ]
        );
        assert_eq!(StorageData::of(&all[2..3]), StorageData::default());
        let many: Vec<Object> = (0..12)
            .map(|i| object("StorageClass", &format!("c{i:02}"), json!({"provisioner": CSI_DRIVER})))
            .collect();
        let lines = StorageData::of(&many).lines();
        assert!(
            lines[0].starts_with("12 classes of") && lines[0].ends_with("StorageClass c09 and 2 more"),
            "{lines:?}"
        );
    }
}
