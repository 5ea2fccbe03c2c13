//! Where a person has to say under which identity volumes are registered (pure).

use super::ClusterId;
use kube::ResourceExt;
use vdo_api::api::{Reason, STATE, TAKE_OVER_CLUSTER_ID, VDOConfig};
use vdo_api::types::{count, with_remedy};
use vdo_core::drivers::STORAGE;
use vdo_core::plan::Wait;

/// Why an identity is not certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::reconcile) enum Doubt {
    /// The stored inventory has this other one.
    Stored(String),
    /// Installations and volumes of this cluster have several, each with the place where it was found.
    Several(Vec<(String, String)>),
    /// The cluster has so many volumes of the driver, and no place says under which identity; these places cannot be read.
    Unknown { volumes: usize, unreadable: Vec<String> },
}

/// What the CSI driver waits for where a person has to confirm its id.
pub(in crate::reconcile) fn doubtful(config: &VDOConfig, found: &ClusterId) -> Option<Wait> {
    let now = &found.id;
    let home = config.namespace().unwrap_or_default();
    let name = config.name_any();
    let annotate = |id: &str| format!("kubectl -n {home} annotate --overwrite vdoconfig {name} {TAKE_OVER_CLUSTER_ID}={id}");
    let set = |id: &str| {
        format!(
            "kubectl -n {home} patch vdoconfig {name} --type merge --patch '{{\"spec\":{{\"storageProvider\":{{\"clusterId\":\"{id}\"}}}}}}'"
        )
    };
    let (reason, what, remedy) = match found.doubt.as_ref()? {
        Doubt::Stored(stored) => (
            Reason::ClusterIdChanged,
            format!(
                "the CSI driver is left as it is: Secret {STATE} has cluster id {stored}, as after a change by hand or a backup of another \
                 cluster, and the id of this cluster is {now}"
            ),
            format!(
                "To go on with {now}: {}. To change it to {stored}: {}.",
                annotate(now),
                annotate(stored)
            ),
        ),
        Doubt::Several(places) => {
            let each: Vec<String> = places.iter().map(|(id, place)| format!("{id} ({place})")).collect();
            (
                Reason::ClusterIdAmbiguous,
                format!(
                    "the CSI driver is not installed: this cluster has several cluster ids: {}",
                    each.join(", ")
                ),
                format!(
                    "Find out under which one the volumes are registered in vCenter, and set it: {}.",
                    set("ID")
                ),
            )
        }
        Doubt::Unknown { volumes, unreadable } => {
            let hidden = match unreadable.as_slice() {
                [] => String::new(),
                all => format!("; not readable for the operator: {}", all.join(", ")),
            };
            (
                Reason::ClusterIdUnknown,
                format!(
                    "the CSI driver is not installed: the cluster has {} of it, and no installation and no vCenter says under which cluster id{hidden}",
                    count(*volumes, "PersistentVolume")
                ),
                format!(
                    "The id is in the configuration of the driver that made the volumes (csi-vsphere.conf, cluster-id), or in vCenter (govc \
                     volume.ls -json). Set it: {}. If no volume is registered under any id, as after a restore: {}.",
                    set("ID"),
                    set(now)
                ),
            )
        }
    };
    Some(Wait {
        driver: STORAGE.name.to_owned(),
        reason,
        message: with_remedy(&what, &remedy),
    })
}
