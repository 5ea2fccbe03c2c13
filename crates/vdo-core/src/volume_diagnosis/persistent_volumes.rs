// SPDX-License-Identifier: Apache-2.0
//! Finds the causes for PersistentVolumes that fail, are left over or are missing in the vCenter.
//! Also finds vCenter volumes of this cluster that have no PersistentVolume.

use super::built_in;
use super::index::{Index, is_ours};
use super::objects::{Meta, Volume};
use super::texts::{Stage, classify};
use super::{Cause, Finding, Listed, Names, Observed, kept, quoted};
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::{count, name_list};

const VOLUME: &str = "PersistentVolume";

pub(super) fn findings(observed: &Observed, index: &Index<'_>) -> Vec<Finding> {
    let volumes = observed.volumes.iter().flatten().filter(|volume| is_ours(volume));
    let mut all: Vec<Finding> = volumes.flat_map(|volume| of_volume(observed, index, volume)).collect();
    all.extend(only_in_vcenter(observed));
    all
}

fn of_volume(observed: &Observed, index: &Index<'_>, volume: &Volume) -> Vec<Finding> {
    let found = |cause: Cause, detail: &str| Finding::new(cause, VOLUME, &volume.metadata, detail, Names::default());
    let deleted = index.warning(VOLUME, &volume.metadata, &["VolumeFailedDelete"]);
    let claim = volume.spec.claim_ref.as_ref();
    let claim = claim
        .map(|claim| format!("claim {}/{}", claim.namespace, claim.name))
        .unwrap_or_default();
    let state = match (volume.status.phase.as_str(), deleted) {
        ("Released", _) if volume.spec.persistent_volume_reclaim_policy == "Retain" => Some(found(Cause::VolumeReleased, &claim)),
        ("Released" | "Failed", Some(event)) => Some(found(refused(&event.message), &event.message)),
        ("Failed", None) => Some(found(refused(&volume.status.message), &volume.status.message)),
        _ => None,
    };
    let built_in = built_in::finding(observed, index, volume, &found);
    let handle = volume.spec.csi.as_ref().map(|csi| csi.volume_handle.as_str());
    let registered = observed.registered.as_ref();
    // A volume that was made while the vCenter was asked is in one list alone.
    let settled = Meta::age(observed.now, volume.metadata.creation_timestamp.as_deref()).is_none_or(|age| age >= super::LATE);
    let lost = match (handle, registered) {
        (Some(handle), Some(registered)) if settled && !handle.ends_with(".vmdk") && !registered.contains_key(handle) => {
            Some(found(Cause::NotInVcenter, "").and(&not_in_vcenter(observed, volume, handle)))
        }
        _ => None,
    };
    let kept = kept(observed.now, VOLUME, &volume.metadata);
    [state, built_in, lost, kept].into_iter().flatten().collect()
}

/// Why a volume was not deleted. Only what a person can change by its name is named so.
fn refused(text: &str) -> Cause {
    match classify(Stage::Reclaim, text) {
        cause @ (Cause::LoginRefused | Cause::PermissionDenied | Cause::SessionEnded | Cause::VcenterUnreachable | Cause::TimedOut) => {
            cause
        }
        _ => Cause::ReclaimFailed,
    }
}

/// Volumes of this cluster in a vCenter that no PersistentVolume is for.
fn only_in_vcenter(observed: &Observed) -> Vec<Finding> {
    let (Some(registered), Some(volumes)) = (&observed.registered, &observed.volumes) else {
        return Vec::new();
    };
    // The handle of a migrated volume is the path of its disk, so the vCenter's identity is found by the PersistentVolume.
    let built_in = volumes.iter().filter(|volume| volume.spec.vsphere_volume.is_some());
    let migrated: BTreeSet<&str> = built_in.map(|volume| &*volume.metadata.name).collect();
    let handles: BTreeSet<&str> = volumes
        .iter()
        .filter_map(|volume| Some(volume.spec.csi.as_ref()?.volume_handle.as_str()))
        .collect();
    let unknown = registered.iter().filter(|(id, listed)| {
        !handles.contains(id.as_str()) && !listed.persistent_volumes.iter().any(|name| migrated.contains(name.as_str()))
    });
    let by_name: BTreeMap<&str, &Volume> = volumes.iter().map(|volume| (&*volume.metadata.name, volume)).collect();
    let named = |(id, listed): (&String, &Listed)| {
        let meta = Meta {
            name: id.clone(),
            ..Meta::default()
        };
        let both = not_in_cluster(&by_name, listed);
        Finding::new(Cause::NotInCluster, "Volume in vCenter", &meta, "", Names::default()).and(&both)
    };
    unknown.map(named).collect()
}

/// What the cluster has, and what the vCenters have instead.
fn not_in_vcenter(observed: &Observed, volume: &Volume, handle: &str) -> String {
    let field = |name: &str, value: &str| match value {
        "" => String::new(),
        value => format!("{name} {value}"),
    };
    let mut cluster = vec![
        format!("handle {}", quoted(handle)),
        field("size", volume.size()),
        field("phase", &volume.status.phase),
    ];
    cluster.extend(
        volume
            .spec
            .claim_ref
            .as_ref()
            .map(|claim| format!("claim {}/{}", claim.namespace, claim.name)),
    );
    cluster.retain(|text| !text.is_empty());
    let registered = observed.registered.iter().flatten();
    let other = registered
        .clone()
        .find(|(_, listed)| listed.persistent_volumes.contains(&volume.metadata.name));
    let vcenter = match other {
        Some((id, listed)) => format!("the vCenter has registered {} for this PersistentVolume", in_vcenter(id, listed)),
        None => format!(
            "the vCenter has {} of cluster id {}, and none has this handle or is registered for this PersistentVolume",
            count(registered.count(), "registered volume"),
            quoted(&observed.cluster_id)
        ),
    };
    format!("the PersistentVolume has {}; {vcenter}", cluster.join(", "))
}

/// `volume h-1 ("pvc-1", 1024 MiB)`.
fn in_vcenter(id: &str, listed: &Listed) -> String {
    format!("volume {} ({:?}{})", quoted(id), quoted(&listed.name), size(listed))
}

/// `, 1024 MiB`, behind a name; nothing where the size is not known.
fn size(listed: &Listed) -> String {
    listed.mebibytes.map(|size| format!(", {size} MiB")).unwrap_or_default()
}

/// What the vCenter has, and what the cluster has of the names that it gives.
fn not_in_cluster(volumes: &BTreeMap<&str, &Volume>, listed: &Listed) -> String {
    let for_volumes = match listed.persistent_volumes.is_empty() {
        true => "registered for no PersistentVolume".to_owned(),
        false => format!("registered for PersistentVolume {}", quoted(&name_list(&listed.persistent_volumes))),
    };
    let names = listed.persistent_volumes.iter().chain([&listed.name]);
    let cluster = names
        .filter_map(|name| volumes.get(name.as_str()))
        .find_map(|volume| Some((volume, volume.spec.csi.as_ref()?)))
        .map_or_else(
            || "the cluster has no PersistentVolume with this name or handle".to_owned(),
            |(volume, csi)| {
                format!(
                    "in the cluster, PersistentVolume {} has the handle {}",
                    volume.metadata.name,
                    quoted(&csi.volume_handle)
                )
            },
        );
    format!(
        "the volume has the name {:?}{}, and is {for_volumes}; {cluster}",
        quoted(&listed.name),
        listed.mebibytes.map(|size| format!(" and the size {size} MiB")).unwrap_or_default()
    )
}
