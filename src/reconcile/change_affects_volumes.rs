// SPDX-License-Identifier: Apache-2.0
//! Finds settings that volumes depend on and that a plan removes from `csi-vsphere.conf`; such a plan waits for approval.
//!
//! The driver's configuration has an annotation with these settings. Volumes are read only if the new configuration lacks a part of them,
//! and watched until the change is approved or taken back.

use super::observe::ClusterState;
use super::observe::deletion_guards::volume_watches;
use super::planned::Planned;
use crate::cluster::{ClusterError, Reader};
use kube::ResourceExt;
use vdo_api::api::{TAKE_OVER_CLUSTER_ID, VDOConfig};
use vdo_api::types::ById;
use vdo_core::drivers::VolumeSettings;
use vdo_core::manifest::Object;
use vdo_core::plan::Desired;

/// What a plan takes away from volumes that are there, a sentence each (effect: reads volumes where it may be something).
///
/// # Errors
/// When the volumes cannot be read.
pub(super) async fn endangered(
    reader: &Reader,
    config: &VDOConfig,
    state: &ClusterState,
    planned: &Planned,
) -> Result<Vec<String>, ClusterError> {
    let desired = planned.desired.iter().filter(|desired| !planned.is_apart(&desired.driver));
    let changes = changes(desired, &state.live, config);
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let [watch, _] = volume_watches();
    let mut volumes = reader.load([watch.clone()]).await?.list(&watch);
    if reader.cache().is_some() && taken_away(&changes, &volumes).is_empty() {
        volumes = reader.now(&watch).await?;
    }
    Ok(taken_away(&changes, &volumes))
}

/// The settings of before and after of each configuration that loses a part of them.
fn changes<'a>(
    desired: impl Iterator<Item = &'a Desired>,
    live: &ById<Object>,
    config: &VDOConfig,
) -> Vec<(VolumeSettings, VolumeSettings)> {
    let taken_over = config.annotations().get(TAKE_OVER_CLUSTER_ID);
    let changes = desired.filter_map(|desired| {
        let after = VolumeSettings::of(&desired.object)?;
        let mut before = VolumeSettings::of(live.get(&desired.object.id())?)?;
        if taken_over == Some(&after.cluster_id) {
            // A person has confirmed this one.
            before.cluster_id.clone_from(&after.cluster_id);
        }
        before.is_lost_in(&after).then_some((before, after))
    });
    changes.collect()
}

fn taken_away(changes: &[(VolumeSettings, VolumeSettings)], volumes: &[Object]) -> Vec<String> {
    changes
        .iter()
        .flat_map(|(before, after)| before.taken_away(after, volumes))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use vdo_api::api::VOLUME_SETTINGS_ANNOTATION;
    use vdo_core::drivers::CSI;

    fn configuration(cluster_id: &str, vcenter: &str) -> Object {
        let note = json!({"clusterId": cluster_id, "vcenters": [vcenter], "topologyKeys": []}).to_string();
        let metadata = json!({"name": "s", "namespace": "n", "annotations": {VOLUME_SETTINGS_ANNOTATION: note}});
        Object::new(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})).expect("an object")
    }

    /// A configuration that is there, with the note, and that a change takes something from; a cluster id that a person names is confirmed.
    #[test]
    fn volume_guard_compares_configurations_that_are_there() {
        let bare =
            || Object::new(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}})).expect("an object");
        for (case, live, after, taken_over, expected) in [
            ("the same", Some(configuration("a", "vc1")), configuration("a", "vc1"), None, 0),
            (
                "another vCenter",
                Some(configuration("a", "vc1")),
                configuration("a", "vc2"),
                None,
                1,
            ),
            ("another id", Some(configuration("a", "vc1")), configuration("b", "vc1"), None, 1),
            (
                "confirmed",
                Some(configuration("a", "vc1")),
                configuration("b", "vc1"),
                Some("b"),
                0,
            ),
            (
                "another confirmed",
                Some(configuration("a", "vc1")),
                configuration("b", "vc1"),
                Some("c"),
                1,
            ),
            (
                "confirmed, and another vCenter",
                Some(configuration("a", "vc1")),
                configuration("b", "vc2"),
                Some("b"),
                1,
            ),
            ("nothing there", None, configuration("a", "vc1"), None, 0),
            ("of another tool", Some(bare()), configuration("a", "vc1"), None, 0),
            ("not configured", Some(configuration("a", "vc1")), bare(), None, 0),
        ] {
            let mut config = VDOConfig::new("vdo", vdo_api::api::VDOConfigSpec::default());
            let annotation = taken_over.map(|id: &str| (TAKE_OVER_CLUSTER_ID.to_owned(), id.to_owned()));
            config.annotations_mut().extend(annotation);
            let live: ById<Object> = live.into_iter().map(|object| (object.id(), object)).collect();
            let desired = Desired {
                object: after,
                driver: CSI.into(),
                wave: 2,
            };
            assert_eq!(changes([&desired].into_iter(), &live, &config).len(), expected, "{case}");
        }
    }
}
