// SPDX-License-Identifier: Apache-2.0
//! Counts the CSI driver's volumes and snapshots, which block its uninstallation, from PersistentVolumes, attachments and snapshots.
//! `vdo.vmware.com/remove-despite-volumes` on the VDOConfig skips this check.

use crate::drivers::CSI_DRIVER;
use crate::manifest::Object;
use std::collections::BTreeMap;
use std::fmt;
use vdo_api::types::verb;

/// On a VDOConfig: `true` removes the storage driver although it has volumes.
pub const REMOVE_DESPITE_VOLUMES: &str = "vdo.vmware.com/remove-despite-volumes";

/// How many are named.
const NAMED: usize = 10;

/// The volumes of the storage driver, and their snapshots: both are on a datastore, and no one but the driver can remove them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Volumes {
    /// How many there are.
    pub count: usize,
    /// The first of them by name, each with its claim and its node, or with what it is a snapshot of.
    pub named: Vec<String>,
}

impl Volumes {
    /// From all PersistentVolumes, VolumeAttachments and VolumeSnapshotContents of a cluster. Volumes of the driver that was built into Kubernetes
    /// count, because every Kubernetes that is supported hands them to this one.
    #[must_use]
    pub fn of(volumes: &[Object], attachments: &[Object], snapshots: &[Object]) -> Self {
        let ours = |o: &&Object| o.text("/spec/csi/driver") == CSI_DRIVER || o.value().pointer("/spec/vsphereVolume").is_some();
        let mut all: BTreeMap<String, String> = volumes.iter().filter(ours).map(|o| (o.name().to_owned(), claim(o))).collect();
        for attachment in attachments.iter().filter(|o| o.text("/spec/attacher") == CSI_DRIVER) {
            // An inline volume has no PersistentVolume; the attachment stands for it.
            let name = match attachment.text("/spec/source/persistentVolumeName") {
                "" => attachment.name(),
                name => name,
            };
            let said = all.entry(name.to_owned()).or_default();
            said.push_str(&format!(" on node {}", attachment.text("/spec/nodeName")));
        }
        for snapshot in snapshots.iter().filter(|o| o.text("/spec/driver") == CSI_DRIVER) {
            all.insert(
                format!("snapshot {}", snapshot.name()),
                reference(snapshot, "/spec/volumeSnapshotRef", "VolumeSnapshot"),
            );
        }
        Self {
            count: all.len(),
            named: all.into_iter().take(NAMED).map(|(name, said)| name + &said).collect(),
        }
    }
}

fn claim(volume: &Object) -> String {
    reference(volume, "/spec/claimRef", "claim")
}

fn reference(object: &Object, place: &str, what: &str) -> String {
    match (object.text(&format!("{place}/namespace")), object.text(&format!("{place}/name"))) {
        (_, "") => String::new(),
        (namespace, name) => format!(" of {what} {namespace}/{name}"),
    }
}

impl Volumes {
    /// How many there are, in words.
    #[must_use]
    pub fn counted(&self) -> String {
        match self.count {
            1 => "1 volume or snapshot".into(),
            many => format!("{many} volumes or snapshots"),
        }
    }
}

impl fmt::Display for Volumes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = verb(self.count, "exists", "exist");
        let more = self.count - self.named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        write!(
            f,
            "the storage driver stays, because {} of {CSI_DRIVER} still {verb}: {}{more}; delete or migrate them, \
             or set the annotation {REMOVE_DESPITE_VOLUMES}=true on the VDOConfig to remove the driver and keep the volumes and snapshots",
            self.counted(),
            self.named.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn object(kind: &str, name: &str, spec: &Value) -> Object {
        Object::new(json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec})).expect("an object")
    }

    #[test]
    fn volumes_message_counts_in_words() {
        for (count, text) in [
            (
                1,
                "because 1 volume or snapshot of csi.vsphere.vmware.com still exists: pv-1; delete",
            ),
            (
                2,
                "because 2 volumes or snapshots of csi.vsphere.vmware.com still exist: pv-1 and 1 more; delete",
            ),
        ] {
            let volumes = Volumes {
                count,
                named: vec!["pv-1".into()],
            };
            assert!(volumes.to_string().contains(text), "{volumes}");
        }
    }

    #[test]
    fn volumes_each_counts_once_and_few_are_named() {
        let ours = json!({"csi": {"driver": CSI_DRIVER}});
        let mut volumes = vec![
            object("PersistentVolume", "other", &json!({"csi": {"driver": "ebs"}})),
            object("PersistentVolume", "nfs", &json!({"nfs": {}})),
            object(
                "PersistentVolume",
                "a",
                &json!({"csi": {"driver": CSI_DRIVER}, "claimRef": {"namespace": "n", "name": "c"}}),
            ),
            object("PersistentVolume", "b", &json!({"vsphereVolume": {"volumePath": "[ds] v"}})),
        ];
        let attached = |attacher: &str, source: Value| {
            object(
                "VolumeAttachment",
                "att",
                &json!({"attacher": attacher, "nodeName": "w-1", "source": source}),
            )
        };
        let attachments = [
            attached(CSI_DRIVER, json!({"persistentVolumeName": "a"})),
            attached("ebs", json!({"persistentVolumeName": "other"})),
            attached(CSI_DRIVER, json!({"inlineVolumeSpec": {}})),
        ];
        let snapshot = |name: &str, driver: &str| {
            let of = json!({"namespace": "n", "name": "s"});
            object("VolumeSnapshotContent", name, &json!({"driver": driver, "volumeSnapshotRef": of}))
        };
        let snapshots = [snapshot("mine", CSI_DRIVER), snapshot("theirs", "ebs")];
        let found = Volumes::of(&volumes, &attachments, &snapshots);
        assert_eq!(
            found.named,
            [
                "a of claim n/c on node w-1",
                "att on node w-1",
                "b",
                "snapshot mine of VolumeSnapshot n/s"
            ]
        );
        assert_eq!(found.count, 4);
        assert!(!found.to_string().contains(" more"), "{found}");
        assert_eq!(Volumes::of(&[], &[], &snapshots).count, 1, "a snapshot outlives its volume");
        volumes.extend((0..20).map(|i| object("PersistentVolume", &format!("v{i:02}"), &ours)));
        let found = Volumes::of(&volumes, &[], &[]);
        assert_eq!((found.count, found.named.len()), (22, NAMED));
        let said = found.to_string();
        assert!(
            said.contains("22 volumes or snapshots") && said.contains(" and 12 more") && said.contains(REMOVE_DESPITE_VOLUMES),
            "{said}"
        );
        assert_eq!(Volumes::of(&[], &[], &[]), Volumes::default());
    }
}
