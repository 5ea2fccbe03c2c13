// SPDX-License-Identifier: Apache-2.0
//! The phase observe: reads the cluster, the inventory and its live objects; the result is `ClusterState` (effect).

pub(super) mod assess;
mod ca_bundle;
pub(super) mod cluster;
pub(super) mod connections;
pub(super) mod crash_logs;
pub(super) mod definitions;
pub(super) mod deletion_guards;
pub(super) mod installed;
mod node;
pub(super) mod openshift;
pub(super) mod recover_inventory;
pub(super) mod vcenter_secret;

pub use recover_inventory::Recovered;

use super::apply::former;
use super::apply::state_secret::{self, StoredInventory};
use super::cluster_id;
use super::error::ReconcileError;
use crate::cluster::{Reader, Select, Watch};
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vdo_api::api::{STATE, VDOConfig};
use vdo_api::facts::Cluster;
use vdo_api::types::{ById, DriverName, DriverVersion, KubernetesVersion, ObjectId};
use vdo_core::health::{DriverHealth, MissingWorkload, without};
use vdo_core::installed::Installed;
use vdo_core::manifest::Object;
use vdo_core::openshift::OpenShift;
use vdo_core::plan::Inventory;
use vdo_core::status::{DriverReport, Report};

/// What is there.
pub struct ClusterState {
    /// The cluster.
    pub cluster: Cluster,
    /// What there is of OpenShift; `None` in other clusters.
    pub openshift: Option<OpenShift>,
    /// What may exist because of us.
    pub inventory: Inventory,
    /// It is not as it is stored, and to be stored before anything else: nothing may be removed because of it.
    pub recovered: Option<Recovered>,
    /// The id of our apply set.
    pub apply_set: String,
    /// The live objects of the inventory.
    pub live: Arc<ById<Object>>,
    /// The workloads that run a driver and are not ours.
    pub of_others: Vec<Installed>,
    /// The drivers of which pods are meant to run, and how they are.
    pub running: BTreeMap<DriverName, DriverHealth>,
    /// Their versions.
    pub installed: BTreeMap<DriverName, String>,
    /// When the newest of their ready pods was created.
    pub progress: BTreeMap<DriverName, Timestamp>,
    /// The images that pods of a driver wait for in vain, each with one of the pods.
    pub unpullable: BTreeMap<DriverName, BTreeMap<String, ObjectId>>,
}

/// Looks at the cluster and at everything in the inventory.
///
/// # Errors
/// When something cannot be read.
pub async fn observe(reader: &Reader, config: &VDOConfig, version: KubernetesVersion) -> Result<ClusterState, ReconcileError> {
    let cluster = cluster::cluster(reader, version).await?;
    let openshift = openshift::openshift(reader).await?;
    let apply_set = cluster::apply_set(config);
    let expected = recover_inventory::is_expected(config);
    let found = state_secret::find(reader, config, &apply_set, Some(&cluster.uid), expected).await?;
    let (mut inventory, mut recovered) = match found {
        StoredInventory::Stored(found) => (found, None),
        StoredInventory::Nothing | StoredInventory::OfAnotherCluster if !expected => (Inventory::default(), None),
        lost => recover_inventory::recover(reader, config, &apply_set, &lost).await?,
    };
    let ids = listed(&inventory);
    let live = Arc::new(reader.live(&ids, watches(&ids, &apply_set)).await?);
    if recovered == Some(Recovered::Former) {
        former::proven(&mut inventory, &live, &cluster.uid);
    }
    if let Some(id) = cluster_id::confirmed(config, &inventory, &cluster.uid) {
        inventory.cluster_id = Some(id);
        recovered = recovered.or(Some(Recovered::ClusterId));
    }
    let mut state = ClusterState {
        cluster,
        openshift,
        inventory,
        recovered,
        apply_set: apply_set.clone(),
        live,
        of_others: installed::of_others(reader, &apply_set).await?,
        running: BTreeMap::new(),
        installed: BTreeMap::new(),
        progress: BTreeMap::new(),
        unpullable: BTreeMap::new(),
    };
    let assessments = assess::assess(reader, &state).await?;
    state.judge(assessments);
    Ok(state)
}

impl ClusterState {
    /// The versions that are installed, as far as they are versions: ours, and those that are about to be taken over.
    #[must_use]
    pub fn versions(&self) -> BTreeMap<DriverName, DriverVersion> {
        let mut all = self.taken_over();
        let own = self.installed.iter();
        all.extend(own.filter_map(|(name, version)| Some((name.clone(), version.parse().ok()?))));
        all
    }

    /// The versions of the drivers of others that are about to be taken over.
    #[must_use]
    pub fn taken_over(&self) -> BTreeMap<DriverName, DriverVersion> {
        let mut all = installed::versions(&self.of_others);
        all.retain(|driver, _| !self.installed.contains_key(driver));
        all
    }

    /// What there is to report; what is decided later replaces parts of it.
    pub(super) fn findings(&self) -> Report {
        let objects = self.inventory.objects.len();
        Report {
            cluster: Some(self.cluster.clone()),
            inventory: (objects > 0).then(|| (STATE.to_owned(), objects)),
            drivers: self.present(),
            ..Report::default()
        }
    }

    /// How a driver is. Workloads that were there and are not any more count: they are repaired, and until then their pods are missing.
    pub(super) fn health(&self, driver: &str) -> Option<DriverHealth> {
        let is_workload = |id: &ObjectId| matches!(id.kind(), "Deployment" | "DaemonSet" | "StatefulSet");
        let of_driver = self
            .inventory
            .objects
            .iter()
            .filter(|(id, entry)| entry.driver == driver && is_workload(id));
        let gone = of_driver.filter(|(id, entry)| (entry.uid.is_some() || entry.applied.is_some()) && !self.live.contains_key(*id));
        let mut missing: Vec<MissingWorkload> = gone
            .map(|(id, _)| MissingWorkload {
                id: id.clone(),
                applied: None,
            })
            .collect();
        if !missing.is_empty() {
            let last = self.inventory.last_applied(driver, |id| self.live.get(id), &[]).unwrap_or_default();
            for workload in &mut missing {
                let found = last.iter().find(|desired| *desired.object.identity() == workload.id);
                workload.applied = found.map(|desired| desired.object.clone());
            }
        }
        without(self.running.get(driver).cloned(), &missing, &self.cluster.nodes)
    }

    /// Every installed driver as it is, with what is missing of it.
    pub(super) fn reports(&self) -> Vec<DriverReport> {
        let mut reports = self.present();
        for report in &mut reports {
            report.health = self.health(&report.name);
        }
        reports
    }

    /// Every installed driver, judged by those of its objects that are there.
    fn present(&self) -> Vec<DriverReport> {
        let report = |(name, version): (&DriverName, &String)| DriverReport {
            name: name.clone(),
            version: version.clone(),
            installed: Some(version.clone()),
            revision: self.revision(name),
            available: String::new(),
            chart: String::new(),
            because: "installed".into(),
            objects: self.count(name),
            health: self.running.get(name).cloned(),
        };
        self.installed.iter().map(report).collect()
    }

    /// The number of what was applied last of a driver.
    pub(super) fn revision(&self, driver: &str) -> Option<u64> {
        Some(self.inventory.history.get(driver)?.last()?.number)
    }

    /// How many objects of a driver are in the inventory.
    pub(super) fn count(&self, driver: &str) -> usize {
        self.inventory.objects.values().filter(|entry| entry.driver == driver).count()
    }

    /// How long ago a workload of this driver was made, in seconds.
    pub(super) fn age(&self, driver: &str, now: Timestamp) -> Option<i64> {
        let of_driver = |id: &ObjectId| self.inventory.objects.get(id).is_some_and(|entry| entry.driver == driver);
        let created = self
            .live
            .iter()
            .filter(|(id, o)| o.pod_spec().is_some() && of_driver(id))
            .map(|(_, o)| o.text("/metadata/creationTimestamp"))
            .min()?;
        Some(
            created
                .parse::<Timestamp>()
                .map_or(0, |created| (now.as_second() - created.as_second()).max(0)),
        )
    }
}

/// Everything in an inventory, with its API version.
fn listed(inventory: &Inventory) -> Vec<(&ObjectId, &str)> {
    let objects = inventory.objects.iter();
    objects.map(|(id, entry)| (id, entry.api_version.as_str())).collect()
}

/// The watches that show these objects, each with its API version: by label, but Secrets and namespaces by name.
pub(super) fn watches(ids: &[(&ObjectId, &str)], apply_set: &str) -> BTreeSet<Watch> {
    let by_name = |id: &ObjectId| matches!(id.kind(), "Secret" | "Namespace");
    // Thousands of objects have a few watches in common, and neighbours nearly always.
    let mut different: Vec<_> = ids
        .iter()
        .map(|(id, api_version)| (*api_version, id.kind(), &id.namespace, by_name(id).then_some(&id.name)))
        .collect();
    different.dedup();
    different
        .into_iter()
        .map(|(api_version, kind, namespace, name)| {
            let select = match name {
                Some(name) => Select::Name(name.clone()),
                None => Select::Labels(format!("{}={apply_set}", vdo_api::api::PART_OF_LABEL)),
            };
            Watch::new(api_version, kind, namespace, select)
        })
        .collect()
}
