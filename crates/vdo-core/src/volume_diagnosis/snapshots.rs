// SPDX-License-Identifier: Apache-2.0
//! Finds the causes for VolumeSnapshots that are not taken or cannot be deleted.

use super::index::Index;
use super::objects::{Meta, Snapshot};
use super::texts::{Stage, classify};
use super::{Cause, Finding, LATE, Names, Observed, kept};
use crate::drivers::{CSI_DRIVER, DEFAULT_SNAPSHOT_ANNOTATION, SNAPSHOTS};

const SNAPSHOT: &str = "VolumeSnapshot";

pub(super) fn findings(observed: &Observed, index: &Index<'_>) -> Vec<Finding> {
    let all = observed.snapshots.iter().flatten();
    all.filter(|snapshot| is_ours(observed, index, snapshot))
        .flat_map(|snapshot| of_snapshot(observed, snapshot))
        .collect()
}

fn is_ours(observed: &Observed, index: &Index<'_>, snapshot: &Snapshot) -> bool {
    let claim = snapshot.spec.source.persistent_volume_claim_name.as_deref().unwrap_or_default();
    let namespace = &*snapshot.metadata.namespace;
    if let Some(claim) = index.claims.get(&(namespace, claim)) {
        return index.is_ours(claim);
    }
    let classes = observed.snapshot_classes.iter().flatten();
    let named = snapshot.spec.volume_snapshot_class_name.as_deref();
    classes
        .filter(|class| class.driver == CSI_DRIVER)
        .any(|class| Some(&*class.metadata.name) == named)
}

fn of_snapshot(observed: &Observed, snapshot: &Snapshot) -> Vec<Finding> {
    let found = |cause: Cause, detail: &str| Finding::new(cause, SNAPSHOT, &snapshot.metadata, detail, Names::default());
    let status = snapshot.status.as_ref();
    let is_ready = status.and_then(|status| status.ready_to_use) == Some(true);
    let error = status.and_then(|status| status.error.as_ref());
    let age = Meta::age(observed.now, snapshot.metadata.creation_timestamp.as_deref());
    let is_late = age.is_some_and(|age| age >= LATE);
    let state = match error {
        _ if is_ready => None,
        _ if observed.is_off(SNAPSHOTS) => Some(found(Cause::FeatureOff, &Observed::off(SNAPSHOTS))),
        Some(error) => Some(found(classify(Stage::Snapshot, &error.message), &error.message)),
        None if !has_class(observed, snapshot) => {
            let named = snapshot.spec.volume_snapshot_class_name.as_deref();
            Some(found(Cause::SnapshotClassMissing, named.unwrap_or_default()))
        }
        None if status.is_none() && is_late => Some(found(Cause::SnapshotControllerSilent, "")),
        None => None,
    };
    state.into_iter().chain(kept(observed.now, SNAPSHOT, &snapshot.metadata)).collect()
}

/// Whether there is the class that a snapshot names, or a default one; where the classes are not known there is.
fn has_class(observed: &Observed, snapshot: &Snapshot) -> bool {
    let Some(classes) = &observed.snapshot_classes else { return true };
    match snapshot.spec.volume_snapshot_class_name.as_deref() {
        Some(name) => classes.iter().any(|class| class.metadata.name == name),
        None => classes.iter().any(|class| {
            let is_default = class
                .metadata
                .annotations
                .get(DEFAULT_SNAPSHOT_ANNOTATION)
                .is_some_and(|mark| mark == "true");
            class.driver == CSI_DRIVER && is_default
        }),
    }
}
