//! PersistentVolumes, and the volumes that the vCenters know.

use super::index::{Index, is_ours};
use super::objects::{Meta, Volume};
use super::texts::{Stage, classify};
use super::{Cause, Finding, Names, Observed, kept};
use std::collections::BTreeSet;

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
    let built_in = volume.spec.vsphere_volume.as_ref().map(|built_in| {
        let is_off = observed.features.get("csi-migration") == Some(&false);
        let cause = if is_off { Cause::BuiltInNotServed } else { Cause::BuiltInVolume };
        found(cause, &built_in.volume_path)
    });
    let handle = volume.spec.csi.as_ref().map(|csi| csi.volume_handle.as_str());
    let registered = observed.registered.as_ref();
    // A volume that was made while the vCenter was asked is in one list alone.
    let settled = Meta::age(observed.now, volume.metadata.creation_timestamp.as_deref()).is_none_or(|age| age >= super::LATE);
    let lost = match (handle, registered) {
        (Some(handle), Some(registered)) if settled && !handle.ends_with(".vmdk") && !registered.contains_key(handle) => {
            Some(found(Cause::NotInVcenter, handle))
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
    let named = |(id, listed): (&String, &super::Listed)| {
        let meta = Meta {
            name: id.clone(),
            ..Meta::default()
        };
        Finding::new(Cause::NotInCluster, "Volume in vCenter", &meta, &listed.name, Names::default())
    };
    unknown.map(named).collect()
}
