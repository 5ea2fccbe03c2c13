//! The identity under which volumes are registered: which one it is, whether it is in use, and whether the CSI driver may begin to use it.
//!
//! It is in use as soon as the inventory or the configuration of an adopted driver has it. Before that the vSphere connections ask their
//! vCenters for volumes of another cluster under it; see [`claim`](super::connection::claim).

use super::driver_run::DriverRuns;
use super::error::ReconcileError;
use super::observe::ClusterState;
use super::{Ports, ReconcileInput};
use crate::cluster::{ClusterError, Select, Watch, list};
use kube::{Client, ResourceExt};
use vdo_api::api::{Class, Reason, STATE, TAKE_OVER_CLUSTER_ID, VDOConfig, VsphereCloudConfig};
use vdo_api::types::with_remedy;
use vdo_core::drivers::{self, STORAGE};
use vdo_core::plan::{Inventory, Wait};
use vdo_vsphere::vsphere::{foreign_volumes, foreign_volumes_remedy};

/// The identity under which volumes are registered.
pub(super) struct ClusterId {
    /// The identity.
    pub id: String,
    /// Whether a driver of this cluster uses it already.
    pub used: bool,
    /// Another one, which the stored inventory has. No driver changes its id before a person confirms the change.
    pub contested: Option<String>,
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
    runs: &DriverRuns,
) -> Result<ClusterId, ReconcileError> {
    let config = input.config;
    let found = of_config(config, &state.cluster.uid);
    let Some(stored) = state.inventory.cluster_id.clone() else {
        let known = match found.used || !runs.wants(STORAGE.name) {
            true => None,
            false => registered(&ports.client).await?,
        };
        return Ok(known.map_or(found, |id| ClusterId {
            id,
            used: true,
            contested: None,
        }));
    };
    let mut others = Vec::from_iter(reported(config).map(str::to_owned));
    if others.is_empty() && stored != found.id {
        // The status was lost, or is not written yet.
        others.extend(registered(&ports.client).await?);
    }
    Ok(agree(config, stored, others, found))
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
            contested: None,
        };
    }
    ClusterId {
        id: others.into_iter().next().unwrap_or(found.id),
        used: true,
        contested: Some(stored),
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

/// What the CSI driver waits for where its id is contested.
pub(super) fn contested(config: &VDOConfig, found: &ClusterId) -> Option<Wait> {
    let (now, stored) = (&found.id, found.contested.as_ref()?);
    let annotate = |id: &str| {
        format!(
            "kubectl -n {} annotate --overwrite vdoconfig {} {TAKE_OVER_CLUSTER_ID}={id}",
            config.namespace().unwrap_or_default(),
            config.name_any()
        )
    };
    let what = format!(
        "the CSI driver is left as it is: Secret {STATE} has cluster id {stored}, as after a change by hand or a backup of another cluster, \
         and the id of this cluster is {now}"
    );
    let remedy = format!(
        "To go on with {now}: {}. To change it to {stored}: {}.",
        annotate(now),
        annotate(stored)
    );
    Some(Wait {
        driver: STORAGE.name.to_owned(),
        reason: Reason::ClusterIdChanged,
        message: with_remedy(&what, &remedy),
    })
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
                "volumes are registered in vCenter under {}; write that, or leave the field out",
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
        contested: None,
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

/// The identity under which a driver that was installed before us, or whose inventory is lost, registers its volumes: in its
/// configuration, or where the driver keeps the one that it made up (effect).
pub(super) async fn registered(client: &Client) -> Result<Option<String>, ClusterError> {
    for (kind, namespace, name) in drivers::cluster_id_places() {
        let found = list(client, &Watch::new("v1", kind, namespace, Select::Name(name.to_owned()))).await?;
        if let Some(id) = found.first().and_then(drivers::cluster_id) {
            return Ok(Some(id));
        }
    }
    Ok(None)
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
        let status = connection.status.as_ref();
        let current = status.filter(|status| status.observed_generation == connection.metadata.generation);
        let answer = current
            .and_then(|status| status.volumes.as_ref())
            .filter(|volumes| volumes.cluster_id == id);
        match answer {
            Some(volumes) if volumes.foreign > 0 => {
                let evidence = foreign_volumes(&connection.spec.vc_ip, volumes);
                let what = format!(
                    "the CSI driver is not installed: {evidence} (vSphere connection {})",
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
        "vSphere connection {} has not asked its vCenter yet whether another cluster uses cluster id {id}",
        missing?
    );
    let message = with_remedy(&what, "If it stays so, its condition ClusterIdAvailable says why.");
    wait(Reason::ClusterIdNotChecked, Class::Wait, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use vdo_api::api::{RegisteredVolumesStatus, VDOConfigStatus};

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
            assert_eq!((found.id.as_str(), found.contested.as_deref()), expected, "{case}");
            assert_eq!(contested(&config, &found).is_some(), expected.1.is_some(), "{case}");
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
