// SPDX-License-Identifier: Apache-2.0
//! The cluster id under which volumes are registered: which id is in use, and whether the CSI driver may start to use it.
//!
//! An id is in use as soon as the inventory or the configuration of an adopted driver has it. Before that the vSphere connections ask their
//! vCenters for volumes of another cluster under the id; see [`claim`](super::connection::claim).

mod doubt;
mod registered;

pub(super) use doubt::{Doubt, doubtful};
pub(super) use registered::{Registered, is_registered, registered};

use super::driver_run::DriverRuns;
use super::error::ReconcileError;
use super::observe::ClusterState;
use super::{Ports, ReconcileInput};
use kube::ResourceExt;
use registered::volumes;
use std::collections::BTreeSet;
use vdo_api::api::{Class, Reason, RegisteredVolumesStatus, TAKE_OVER_CLUSTER_ID, VDOConfig, VsphereCloudConfig};
use vdo_api::types::with_remedy;
use vdo_core::drivers::STORAGE;
use vdo_core::plan::{Inventory, Wait};
use vdo_vsphere::vsphere::{foreign_volumes, foreign_volumes_remedy};

/// The identity under which volumes are registered.
pub(super) struct ClusterId {
    /// The identity.
    pub id: String,
    /// Whether a driver of this cluster uses it already.
    pub used: bool,
    /// Why a person has to confirm it before the driver is changed or installed.
    pub doubt: Option<Doubt>,
}

/// The identity: fixed by the first installation, ours or that of an adopted driver, given by the specification, or that of the cluster
/// (effect).
///
/// # Errors
/// When the configuration of an adopted driver cannot be read.
pub(super) async fn cluster_id(
    input: &ReconcileInput<'_>,
    ports: &Ports,
    state: &ClusterState,
    objects: &[VsphereCloudConfig],
    runs: &DriverRuns,
) -> Result<ClusterId, ReconcileError> {
    let config = input.config;
    let found = of_config(config, &state.cluster.uid);
    let Some(stored) = state.inventory.cluster_id.clone() else {
        if found.used || !runs.wants(STORAGE.name) {
            return Ok(found);
        }
        let known = registered(&ports.client, &state.of_others).await?;
        let is_named = given(config).is_some() || config.annotations().get(TAKE_OVER_CLUSTER_ID) == Some(&found.id);
        let volumes = match known.ids.is_empty() && !is_named {
            true => volumes(&ports.client).await?,
            false => 0,
        };
        let storage = runs.get(STORAGE.name);
        let used = objects
            .iter()
            .filter(|object| storage.is_some_and(|storage| storage.uses(&object.name_any())));
        return Ok(first(found, &known, volumes, is_named, used));
    };
    let mut others = Vec::from_iter(reported(config).map(str::to_owned));
    if others.is_empty() && stored != found.id {
        // The status was lost, or is not written yet.
        others.extend(registered(&ports.client, &state.of_others).await?.ids.into_iter().map(|(id, _)| id));
    }
    Ok(agree(config, stored, others, found))
}

/// The identity of the first installation: that of a driver that is installed, or the one under which the vCenters have the cluster's volumes.
/// Without either a cluster that has volumes of the driver is not given a new one.
fn first<'a>(
    found: ClusterId,
    known: &Registered,
    volumes: usize,
    is_named: bool,
    connections: impl Iterator<Item = &'a VsphereCloudConfig>,
) -> ClusterId {
    let mut places = known.ids.clone();
    let mut all_answered = true;
    for connection in connections {
        match answer(connection, &found.id) {
            Some(volumes) => {
                let place = |id: &String| (id.clone(), format!("volumes at {}", connection.spec.vc_ip));
                places.extend(volumes.registered_under.iter().map(place));
            }
            None => all_answered = false,
        }
    }
    let different: BTreeSet<&String> = places.iter().map(|(id, _)| id).collect();
    let used = |id: &String| ClusterId {
        id: id.clone(),
        used: true,
        doubt: None,
    };
    match (different.len(), different.first()) {
        // What is only registered under the id that would be chosen anyhow is looked at before its first use.
        (1, Some(id)) if known.ids.is_empty() && **id == found.id => found,
        (1, Some(id)) if !known.ids.is_empty() || !is_named => used(id),
        (2.., _) if !is_named => ClusterId {
            doubt: Some(Doubt::Several(places)),
            ..found
        },
        (0, _) if volumes > 0 && all_answered => ClusterId {
            doubt: Some(Doubt::Unknown {
                volumes,
                unreadable: known.unreadable.clone(),
                elsewhere: known.elsewhere.clone(),
            }),
            ..found
        },
        _ => found,
    }
}

/// What the vCenter of a connection said about an id, where that is what the connection asks about now.
fn answer<'a>(connection: &'a VsphereCloudConfig, id: &str) -> Option<&'a RegisteredVolumesStatus> {
    let status = connection.status.as_ref();
    let current = status.filter(|status| status.observed_generation == connection.metadata.generation);
    current
        .and_then(|status| status.volumes.as_ref())
        .filter(|volumes| volumes.cluster_id == id)
}

/// The stored id, where something vouches for it that a writer of the inventory alone does not write: the status, the configuration of the
/// driver that runs, the specification, the cluster itself, or a person who names it. `others` are the first two.
fn agree(config: &VDOConfig, stored: String, others: Vec<String>, found: ClusterId) -> ClusterId {
    let named = config.annotations().get(TAKE_OVER_CLUSTER_ID) == Some(&stored);
    let vouched = match others.as_slice() {
        [] => found.id == stored,
        others => others.contains(&stored),
    };
    if named || vouched {
        return ClusterId {
            id: stored,
            used: true,
            doubt: None,
        };
    }
    ClusterId {
        id: others.into_iter().next().unwrap_or(found.id),
        used: true,
        doubt: Some(Doubt::Stored(stored)),
    }
}

/// The id that a person has confirmed, where the inventory has another. It is the one that the status has, or without one the id of the
/// specification or of the cluster: an annotation that was written about another id confirms nothing.
pub(super) fn confirmed(config: &VDOConfig, inventory: &Inventory, cluster_uid: &str) -> Option<String> {
    let stored = inventory.cluster_id.as_deref()?;
    let named = config.annotations().get(TAKE_OVER_CLUSTER_ID)?;
    let own = of_config(config, cluster_uid).id;
    let fits = reported(config).unwrap_or(&own) == named;
    (stored != named && fits).then(|| named.clone())
}

/// The id that is in use according to the status, which only operators write.
fn reported(config: &VDOConfig) -> Option<&str> {
    config.status.as_ref()?.cluster_id.as_deref()
}

/// Whether the specification says another identity than the one in use.
///
/// # Errors
/// When it does.
pub(super) fn agreed(config: &VDOConfig, found: &ClusterId) -> Result<(), ReconcileError> {
    match given(config) {
        Some(given) if given != found.id => Err(ReconcileError::InvalidSpec {
            object: format!("VDOConfig {}", config.name_any()),
            field: "spec.storageProvider.clusterId".into(),
            problem: format!(
                "volumes are registered in vCenter under {}; write this id, or leave the field out",
                found.id
            ),
        }),
        _ => Ok(()),
    }
}

/// The identity as the VDOConfig alone knows it: what its status says is in use.
fn of_config(config: &VDOConfig, cluster_uid: &str) -> ClusterId {
    let given = given(config);
    let used = reported(config).filter(|used| given.is_none_or(|given| given == *used));
    ClusterId {
        id: used.or(given).unwrap_or(cluster_uid).to_owned(),
        used: used.is_some(),
        doubt: None,
    }
}

pub(super) fn given(config: &VDOConfig) -> Option<&str> {
    config.spec.storage_provider.as_ref()?.cluster_id.as_deref()
}

/// The identity that the CSI driver is about to use for the first time, unless the administrator takes it over with its volumes.
#[must_use]
pub fn claimed(config: &VDOConfig, cluster_uid: &str) -> Option<String> {
    let ClusterId { id, used, .. } = of_config(config, cluster_uid);
    let taken_over = config.annotations().get(TAKE_OVER_CLUSTER_ID) == Some(&id);
    (!used && !taken_over).then_some(id)
}

/// What the CSI driver waits for before it uses an identity for the first time: that each of its connections has found no volumes of
/// another cluster under it. A vCenter that will not answer keeps nothing back.
pub(super) fn hold<'a>(id: &str, connections: impl IntoIterator<Item = &'a VsphereCloudConfig>) -> Option<(Wait, Class)> {
    let wait = |reason, class, message| {
        let driver = STORAGE.name.to_owned();
        Some((Wait { driver, reason, message }, class))
    };
    let mut missing = None;
    for connection in connections {
        match answer(connection, id) {
            Some(volumes) if volumes.foreign > 0 => {
                let evidence = foreign_volumes(&connection.spec.vc_ip, volumes);
                let what = format!(
                    "the operator does not install the CSI driver: {evidence} (vSphere connection {})",
                    connection.name_any()
                );
                let message = with_remedy(&what, &foreign_volumes_remedy(id));
                return wait(Reason::ClusterIdInUse, Class::Terminal, message);
            }
            Some(_) => {}
            None => drop(missing.get_or_insert_with(|| connection.name_any())),
        }
    }
    let what = format!(
        "the operator has not checked yet in the vCenter of vSphere connection {} whether another cluster uses cluster id {id}",
        missing?
    );
    let message = with_remedy(
        &what,
        "If this does not change, the condition ClusterIdAvailable of the connection shows the reason.",
    );
    wait(Reason::ClusterIdNotChecked, Class::Wait, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use vdo_api::api::VDOConfigStatus;

    fn config(given: Option<&str>, used: Option<&str>, taken_over: Option<&str>) -> VDOConfig {
        let spec = given.map_or(json!({}), |id| json!({"storageProvider": {"clusterId": id}}));
        let mut config = VDOConfig::new("vdo", serde_json::from_value(spec).expect("a specification"));
        config.status = used.map(|id| VDOConfigStatus {
            cluster_id: Some(id.to_owned()),
            ..VDOConfigStatus::default()
        });
        if let Some(id) = taken_over {
            config.annotations_mut().insert(TAKE_OVER_CLUSTER_ID.into(), id.into());
        }
        config
    }

    #[test]
    fn cluster_id_claimed_is_the_one_that_is_not_used_yet() {
        for (given, used, taken_over, expected) in [
            (None, None, None, Some("uid")),
            (Some("demo"), None, None, Some("demo")),
            (None, Some("uid"), None, None),
            (None, Some("of an adopted driver"), None, None),
            (Some("demo"), Some("demo"), None, None),
            (Some("demo"), Some("before"), None, Some("demo")),
            (Some("demo"), None, Some("demo"), None),
            (Some("demo"), None, Some("another"), Some("demo")),
        ] {
            let found = claimed(&config(given, used, taken_over), "uid");
            assert_eq!(found.as_deref(), expected, "{given:?} {used:?} {taken_over:?}");
        }
    }

    #[test]
    fn cluster_id_stored_counts_only_if_something_else_says_the_same() {
        for (reported, live, given, taken_over, expected) in [
            (Some("stored"), None, None, None, ("stored", None)),
            (Some("now"), None, None, None, ("now", Some("stored"))),
            (Some("now"), None, None, Some("stored"), ("stored", None)),
            (Some("now"), None, None, Some("other"), ("now", Some("stored"))),
            (None, Some("stored"), None, None, ("stored", None)),
            (None, Some("now"), None, None, ("now", Some("stored"))),
            (None, None, Some("stored"), None, ("stored", None)),
            (None, None, Some("now"), None, ("now", Some("stored"))),
            (None, None, None, None, ("uid", Some("stored"))),
        ] {
            let config = config(given, reported, taken_over);
            let others = [reported, live].into_iter().flatten().map(str::to_owned).collect();
            let found = agree(&config, "stored".into(), others, of_config(&config, "uid"));
            let case = format!("{reported:?} {live:?} {given:?} {taken_over:?}");
            let doubt = expected.1.map(|stored: &str| Doubt::Stored(stored.to_owned()));
            assert_eq!((found.id.as_str(), &found.doubt), (expected.0, &doubt), "{case}");
            assert_eq!(doubtful(&config, &found).is_some(), doubt.is_some(), "{case}");
        }
    }

    /// A cluster that has volumes never gets a new identity by default.
    #[test]
    fn cluster_id_of_first_installation_is_the_one_that_volumes_have() {
        let at = |id: &str, place: &str| (id.to_owned(), place.to_owned());
        let asked = |under: &[&str]| connection("vc", Some(json!({"clusterId": "uid", "registeredUnder": under})));
        let several = |places: &[(String, String)]| Some(Doubt::Several(places.to_vec()));
        let unknown = Some(Doubt::Unknown {
            volumes: 2,
            unreadable: Vec::new(),
            elsewhere: Vec::new(),
        });
        for (case, ids, volumes, is_named, connections, expected) in [
            ("a new cluster", vec![], 0, false, vec![asked(&[])], ("uid", false, None)),
            (
                "installed",
                vec![at("prod", "Secret a/b")],
                2,
                false,
                vec![asked(&[])],
                ("prod", true, None),
            ),
            (
                "installed, and registered",
                vec![at("prod", "Secret a/b")],
                2,
                false,
                vec![asked(&["prod"])],
                ("prod", true, None),
            ),
            ("registered", vec![], 2, false, vec![asked(&["prod"])], ("prod", true, None)),
            (
                "volumes of no known id",
                vec![],
                2,
                false,
                vec![asked(&[])],
                ("uid", false, unknown),
            ),
            (
                "registered under the default",
                vec![],
                2,
                false,
                vec![asked(&["uid"])],
                ("uid", false, None),
            ),
            (
                "not asked yet",
                vec![],
                2,
                false,
                vec![connection("vc", None)],
                ("uid", false, None),
            ),
            ("named by a person", vec![], 0, true, vec![asked(&["prod"])], ("uid", false, None)),
            (
                "two installations",
                vec![at("prod", "Secret a/b"), at("old", "Secret c/b")],
                0,
                false,
                vec![asked(&[])],
                ("uid", false, several(&[at("prod", "Secret a/b"), at("old", "Secret c/b")])),
            ),
            (
                "an installation and other volumes",
                vec![at("prod", "Secret a/b")],
                0,
                false,
                vec![asked(&["old"])],
                (
                    "uid",
                    false,
                    several(&[at("prod", "Secret a/b"), at("old", "volumes at vc.example.com")]),
                ),
            ),
        ] {
            let known = Registered {
                ids,
                unreadable: Vec::new(),
                elsewhere: Vec::new(),
            };
            let found = first(
                of_config(&config(None, None, None), "uid"),
                &known,
                volumes,
                is_named,
                connections.iter(),
            );
            assert_eq!((found.id.as_str(), found.used, found.doubt.clone()), expected, "{case}");
            assert_eq!(
                doubtful(&config(None, None, None), &found).is_some(),
                found.doubt.is_some(),
                "{case}"
            );
        }
    }

    #[test]
    fn cluster_id_confirmed_by_a_person_replaces_the_stored_one() {
        for (stored, reported, taken_over, expected) in [
            (Some("stored"), Some("now"), Some("now"), Some("now")),
            (Some("stored"), Some("now"), Some("stored"), None),
            (Some("stored"), Some("now"), Some("other"), None),
            (Some("stored"), None, Some("other"), None),
            (Some("stored"), None, Some("uid"), Some("uid")),
            (Some("stored"), Some("now"), None, None),
            (None, Some("now"), Some("now"), None),
        ] {
            let inventory = Inventory {
                cluster_id: stored.map(str::to_owned),
                ..Inventory::default()
            };
            let found = confirmed(&config(None, reported, taken_over), &inventory, "uid");
            assert_eq!(found.as_deref(), expected, "{stored:?} {reported:?} {taken_over:?}");
        }
    }

    fn connection(name: &str, volumes: Option<Value>) -> VsphereCloudConfig {
        let volumes: Option<RegisteredVolumesStatus> = volumes.map(|volumes| serde_json::from_value(volumes).expect("volumes"));
        serde_json::from_value(json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VsphereCloudConfig",
            "metadata": {"name": name, "generation": 2}, "spec": {"vcIp": format!("{name}.example.com"), "credentials": "s"},
            "status": {"observedGeneration": 2, "volumes": volumes}}))
        .expect("a connection")
    }

    /// Every connection has to have answered, about this very id and as it is specified now. CrashLogs counts before a missing answer.
    #[test]
    fn cluster_id_foreign_volumes_or_missing_answer_hold_the_driver() {
        let free = || connection("free", Some(json!({"clusterId": "demo"})));
        let silent = || {
            connection(
                "silent",
                Some(json!({"clusterId": "demo", "notChecked": "there is no such service"})),
            )
        };
        let taken = || {
            connection(
                "taken",
                Some(json!({"clusterId": "demo", "volumes": 3, "foreign": 2, "names": ["pvc-0", "pvc-1"]})),
            )
        };
        let of_other_id = || connection("other", Some(json!({"clusterId": "before", "foreign": 3})));
        let unasked = || connection("unasked", None);
        let changed = || {
            let mut changed = free();
            changed.metadata.generation = Some(3);
            changed
        };
        for (name, connections, expected) in [
            ("free", vec![free()], None),
            ("will not answer", vec![free(), silent()], None),
            ("taken", vec![free(), taken()], Some(Reason::ClusterIdInUse)),
            ("taken and unasked", vec![unasked(), taken()], Some(Reason::ClusterIdInUse)),
            ("unasked", vec![free(), unasked()], Some(Reason::ClusterIdNotChecked)),
            ("asked about another id", vec![of_other_id()], Some(Reason::ClusterIdNotChecked)),
            ("changed since", vec![changed()], Some(Reason::ClusterIdNotChecked)),
        ] {
            let found = hold("demo", &connections);
            assert_eq!(found.map(|(wait, _)| wait.reason), expected, "{name}");
        }
    }

    #[test]
    fn cluster_id_in_use_names_the_evidence_and_both_ways_out() {
        let volumes = json!({"clusterId": "demo", "volumes": 2, "foreign": 2, "names": ["pvc-0", "pvc-1"]});
        let (wait, class) = hold("demo", [&connection("vc1", Some(volumes))]).expect("volumes of another cluster");
        assert_eq!((wait.driver.as_str(), class), (STORAGE.name, Class::Terminal));
        for words in [
            "connection vc1",
            "2 volumes",
            "vc1.example.com",
            "cluster id demo",
            "pvc-0, pvc-1",
            "spec.storageProvider.clusterId",
            "vdo.vmware.com/take-over-cluster-id=demo",
        ] {
            assert!(wait.message.contains(words), "{words:?} is not in {}", wait.message);
        }
    }
}
