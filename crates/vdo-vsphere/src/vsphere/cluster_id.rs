// SPDX-License-Identifier: Apache-2.0
//! Checks whether another cluster uses the cluster id (ClusterIdAvailable): registered volumes that this cluster does not know.
//!
//! Two clusters under one id destroy each other's records: each CSI driver takes the volumes of the other for its own leftovers.

use super::{Check, Finding, ProbeError, SessionError};
use std::collections::BTreeSet;
use vdo_api::api::{Classify, ConditionType, Reason, RegisteredVolumesStatus, TAKE_OVER_CLUSTER_ID, causes};
use vdo_api::types::{count, plain};

/// How many foreign volumes are named.
const NAMED: usize = 10;

/// A cluster id that is about to be used for the first time, and the volumes that the cluster knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The id.
    pub cluster_id: String,
    /// The handles of its PersistentVolumes of the CSI driver.
    pub handles: BTreeSet<String>,
    /// The names of its PersistentVolumes of the driver that was built into Kubernetes, whose handles are not those of the vCenter.
    pub names: BTreeSet<String>,
}

impl Claim {
    /// Whether a PersistentVolume of this cluster stands for the volume.
    fn knows(&self, volume: &RegisteredVolume) -> bool {
        self.handles.contains(&volume.id) || volume.persistent_volumes.iter().any(|name| self.names.contains(name))
    }
}

/// A volume as a vCenter has it registered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegisteredVolume {
    /// Its identifier, which is the handle of a PersistentVolume.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its size in MiB; `None` where the vCenter does not report it.
    pub mebibytes: Option<u64>,
    /// The PersistentVolumes that it is registered for, by name.
    pub persistent_volumes: Vec<String>,
}

/// The volumes that a vCenter has registered under a cluster id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegisteredVolumes {
    /// How many there are.
    pub count: usize,
    /// How many of them the cluster does not know.
    pub foreign: usize,
    /// The first of those, by name.
    pub named: BTreeSet<String>,
    /// The cluster ids under which volumes are registered that the cluster has a PersistentVolume of.
    pub of_cluster: BTreeSet<String>,
}

impl RegisteredVolumes {
    /// Counts a volume.
    pub fn add(&mut self, claim: &Claim, volume: &RegisteredVolume) {
        self.count += 1;
        if claim.knows(volume) {
            return;
        }
        self.foreign += 1;
        let name = if volume.name.is_empty() { &volume.id } else { &volume.name };
        self.named.insert(plain(name));
        if self.named.len() > NAMED {
            self.named.pop_last();
        }
    }
}

/// Whether the vCenter will not answer this however often it is asked: it has no such service, or the account may not ask. The
/// installation does not wait for it; without the service or the privilege the driver cannot register a volume either.
fn is_final(error: &SessionError) -> bool {
    match error {
        SessionError::Forbidden { .. } => true,
        SessionError::Connection(ProbeError::Status { status, .. }) => matches!(status, 404 | 405 | 410 | 501),
        SessionError::Fault { kind, .. } => matches!(
            kind.as_str(),
            "MethodNotFound" | "NotSupported" | "InvalidRequest" | "ManagedObjectNotFound"
        ),
        _ => false,
    }
}

/// Whether there is nothing to ask again: no volume of another cluster was found, or the vCenter will never say.
#[must_use]
pub fn is_settled(found: &Result<RegisteredVolumes, SessionError>) -> bool {
    match found {
        Ok(found) => found.foreign == 0,
        Err(error) => is_final(error),
    }
}

/// The check, and what it means for the drivers; `None` while it has to be asked again.
pub(super) fn cluster_id_check(
    server: &str,
    cluster_id: &str,
    found: &Result<RegisteredVolumes, SessionError>,
) -> (Check, Option<RegisteredVolumesStatus>) {
    let kind = ConditionType::ClusterIdAvailable;
    let status = RegisteredVolumesStatus {
        cluster_id: cluster_id.to_owned(),
        ..RegisteredVolumesStatus::default()
    };
    match found {
        Ok(found) if found.foreign == 0 => {
            let message = match found.count {
                0 => format!("no volume is registered at {server} under cluster id {cluster_id}"),
                own => format!(
                    "no volume of another cluster is registered at {server} under cluster id {cluster_id}; this cluster has {} there",
                    count(own, "volume")
                ),
            };
            let status = RegisteredVolumesStatus {
                volumes: number(found.count),
                registered_under: found.of_cluster.iter().cloned().collect(),
                ..status
            };
            (Check::passed(kind, message), Some(status))
        }
        Ok(found) => {
            let status = RegisteredVolumesStatus {
                volumes: number(found.count),
                foreign: number(found.foreign),
                names: found.named.iter().cloned().collect(),
                registered_under: found.of_cluster.iter().cloned().collect(),
                ..status
            };
            let message = foreign_volumes(server, &status);
            let check = Check::failed(
                kind,
                Some(false),
                Reason::ClusterIdInUse,
                message,
                foreign_volumes_remedy(cluster_id),
            );
            (check, Some(status))
        }
        Err(error) if is_final(error) => {
            let why = causes(error);
            let message = format!("it is not known whether another cluster uses cluster id {cluster_id}: {why}");
            let remedy = "Make sure that no other cluster uses this id; the installation does not wait for this check.";
            let status = RegisteredVolumesStatus {
                not_checked: Some(why),
                ..status
            };
            (Check::failed(kind, None, Reason::NotChecked, message, remedy), Some(status))
        }
        Err(error) => {
            let why = Finding::of(error);
            let message = format!(
                "the operator cannot read which volumes are registered under cluster id {cluster_id}: {}",
                why.message
            );
            (Check::failed(kind, None, error.reason(), message, why.remedy), None)
        }
    }
}

/// The evidence against a cluster id.
#[must_use]
pub fn foreign_volumes(server: &str, found: &RegisteredVolumesStatus) -> String {
    let foreign = usize::try_from(found.foreign).unwrap_or_default();
    let more = match foreign.saturating_sub(found.names.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (verb, have) = if foreign == 1 { ("is", "has") } else { ("are", "have") };
    format!(
        "{} {verb} registered at {server} under cluster id {} and {have} no PersistentVolume in this cluster: {}{more}",
        count(foreign, "volume"),
        found.cluster_id,
        found.names.join(", ")
    )
}

/// What to do about it.
#[must_use]
pub fn foreign_volumes_remedy(cluster_id: &str) -> String {
    format!(
        "Set spec.storageProvider.clusterId of the VDOConfig to an id that no other cluster uses. Only if these volumes belong to \
         this cluster, \
         set the annotation {TAKE_OVER_CLUSTER_ID}={cluster_id} on the VDOConfig; the CSI driver then removes all volumes without a \
         PersistentVolume from the records of the vCenter."
    )
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMO: &str = "demo";

    fn volume(id: &str, name: &str, persistent_volumes: &[&str]) -> RegisteredVolume {
        RegisteredVolume {
            id: id.into(),
            name: name.into(),
            mebibytes: None,
            persistent_volumes: persistent_volumes.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    /// The handle decides. A name does only for volumes of the driver that was built into Kubernetes: static volumes of two clusters may
    /// well have the same name.
    #[test]
    fn claim_volume_is_known_by_its_handle_or_by_its_in_tree_name() {
        let claim = Claim {
            cluster_id: DEMO.to_owned(),
            handles: ["id-1", "file:2"].map(String::from).into(),
            names: ["old-1".to_owned()].into(),
        };
        for (volume, known) in [
            (volume("id-1", "pvc-1", &["pvc-1"]), true),
            (volume("file:2", "", &[]), true),
            (volume("id-3", "pvc-1", &["pvc-1"]), false),
            (volume("id-3", "old-1", &[]), false),
            (volume("id-3", "any", &["other", "old-1"]), true),
            (volume("", "", &[]), false),
        ] {
            let mut found = RegisteredVolumes::default();
            found.add(&claim, &volume);
            assert_eq!((found.count, found.foreign), (1, usize::from(!known)), "{volume:?}");
        }
    }

    #[test]
    fn registered_volumes_many_foreign_ones_are_counted_and_few_named() {
        let (claim, mut found) = (
            Claim {
                cluster_id: DEMO.to_owned(),
                handles: BTreeSet::new(),
                names: BTreeSet::new(),
            },
            RegisteredVolumes::default(),
        );
        for i in (0..25).rev() {
            found.add(&claim, &volume(&format!("id-{i:02}"), &format!("pvc-{i:02}\n"), &[]));
        }
        let (check, status) = cluster_id_check("vc1", DEMO, &Ok(found));
        let status = status.expect("an answer");
        assert_eq!((status.volumes, status.foreign, status.names.len()), (25, 25, NAMED));
        assert_eq!((check.status, check.reason), (Some(false), Reason::ClusterIdInUse));
        let expected =
            "25 volumes are registered at vc1 under cluster id demo and have no PersistentVolume in this cluster: pvc-00 , pvc-01 ,";
        assert!(check.message.starts_with(expected), "{}", check.message);
        assert!(check.message.ends_with("pvc-09  and 15 more"), "{}", check.message);
    }

    /// What will never be answered keeps nothing back, with a note; what may be answered next time is asked again.
    #[test]
    fn cluster_id_check_failed_query_waits_only_where_waiting_helps() {
        let (address, user) = ("vc1:443".to_owned(), "k8s".to_owned());
        let status = |status| {
            SessionError::Connection(ProbeError::Status {
                address: address.clone(),
                status,
                fault: None,
            })
        };
        let fault = |kind: &str| SessionError::Fault {
            address: address.clone(),
            method: "CnsQueryVolume",
            kind: kind.into(),
            text: "no".into(),
        };
        let forbidden = SessionError::Forbidden {
            address: address.clone(),
            user: user.clone(),
            method: "CnsQueryVolume",
        };
        let lost = SessionError::Lost {
            address: address.clone(),
            user,
        };
        for (error, is_answer) in [
            (forbidden, true),
            (status(404), true),
            (status(503), false),
            (fault("MethodNotFound"), true),
            (fault("NotSupported"), true),
            (fault("SystemError"), false),
            (lost, false),
        ] {
            let reported = error.to_string();
            let (check, status) = cluster_id_check("vc1", DEMO, &Err(error));
            assert_eq!(check.status, None, "{reported}");
            assert!(check.is_informational() && check.message.contains("demo"), "{}", check.message);
            assert_eq!(status.is_some(), is_answer, "{reported}");
            assert!(status.is_none_or(|status| status.not_checked.is_some()), "{reported}");
        }
    }

    #[test]
    fn cluster_id_check_own_volumes_or_none_pass() {
        for (count, says) in [
            (0, "no volume is registered at vc1 under cluster id demo"),
            (
                1,
                "no volume of another cluster is registered at vc1 under cluster id demo; this cluster has 1 volume there",
            ),
        ] {
            let found = RegisteredVolumes {
                count,
                ..RegisteredVolumes::default()
            };
            let (check, status) = cluster_id_check("vc1", DEMO, &Ok(found));
            assert_eq!((check.status, check.message.as_str()), (Some(true), says));
            assert_eq!(status.map(|status| status.foreign), Some(0));
        }
    }
}
