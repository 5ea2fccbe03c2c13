// SPDX-License-Identifier: Apache-2.0
//! Rebuilds a lost inventory from the labels of live objects and stores it before any other step (effect).

use crate::cluster::{ClusterError, Reader, Select, Watch};
use crate::reconcile::Ports;
use crate::reconcile::apply::delete::{is_current, outdated};
use crate::reconcile::apply::state_secret::StoredInventory;
use crate::reconcile::apply::{StateLocation, apply, former};
use crate::reconcile::error::ReconcileError;
use crate::reconcile::observe::ClusterState;
use crate::reconcile::phase::Phase;
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::ResourceExt;
use vdo_api::api::{DRIVER_LABEL, FINALIZER, PART_OF_LABEL, Reason, STATE, VDOConfig};
use vdo_core::drivers;
use vdo_core::manifest::{Object, is_owned};
use vdo_core::plan::{Entry, Inventory, Step, Wait, wave};
use vdo_core::status::{Failure, Report};

/// Requests that are under way at the same time.
const CONCURRENCY: usize = 4;

/// Whether something says that drivers were installed, so that a missing inventory is a lost one. At a first installation nothing
/// does, and nothing is looked for.
pub(in crate::reconcile) fn is_expected(config: &VDOConfig) -> bool {
    config.finalizers().iter().any(|f| f == FINALIZER) || config.status.as_ref().is_some_and(|status| status.inventory.is_some())
}

/// Looks for everything that bears the labels of this apply set and was applied by us.
///
/// # Errors
/// When a list fails: half an inventory is none.
async fn scan(reader: &Reader, config: &VDOConfig, apply_set: &str) -> Result<Inventory, ReconcileError> {
    let found: Vec<Vec<Object>> = stream::iter(places(apply_set))
        .map(|watch| async move {
            match reader.applied(&watch).await {
                // Classes of snapshots exist only where their definitions are.
                Err(ClusterError::NotServed { .. }) => Ok(Vec::new()),
                found => found,
            }
        })
        .buffered(CONCURRENCY)
        .try_collect()
        .await?;
    let cluster_id = config.status.as_ref().and_then(|status| status.cluster_id.clone());
    Ok(rebuilt(found.into_iter().flatten(), apply_set, cluster_id))
}

/// Where something of ours can be. Their lists are a right of the operator, see deploy/rbac.yaml.
fn places(apply_set: &str) -> Vec<Watch> {
    let labels = format!("{PART_OF_LABEL}={apply_set}");
    let mut all = Vec::new();
    for driver in drivers::KNOWN {
        for &(version, kind, namespace) in driver.places {
            all.push(Watch::new(version, kind, namespace, Select::Labels(labels.clone())));
        }
        // The operator may read Secrets by their name only.
        for &(kind, name) in driver.written.iter().filter(|(kind, _)| *kind == "Secret") {
            all.push(Watch::new("v1", kind, driver.namespace, Select::Name(name.to_owned())));
        }
    }
    all
}

/// The inventory of these objects, as far as they are ours. Who made a namespace is not known any more, so it stays.
fn rebuilt(found: impl Iterator<Item = Object>, apply_set: &str, cluster_id: Option<String>) -> Inventory {
    let entry = |object: &Object| {
        let driver = object.label(DRIVER_LABEL).unwrap_or_default();
        Entry {
            api_version: object.api_version().to_owned(),
            driver: driver.to_owned(),
            wave: wave(object.kind(), drivers::role(driver)),
            uid: Some(object.uid().to_owned()),
            applied: None,
        }
    };
    Inventory {
        objects: found
            .filter(|object| is_owned(object, apply_set))
            .map(|object| (object.id(), entry(&object)))
            .collect(),
        cluster_id,
        ..Inventory::default()
    }
}

/// Why an inventory is not as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovered {
    /// It was lost.
    Lost,
    /// An operator before this one kept it in a ConfigMap.
    Former,
    /// What is stored is of another cluster.
    OfAnotherCluster,
    /// A person said which cluster id is the right one.
    ClusterId,
}

impl Recovered {
    /// What happened, for people.
    fn message(self, config: &str, objects: usize) -> String {
        let rebuilt = format!(
            "the inventory is rebuilt from {objects} objects that have the labels of VDOConfig {config}, and nothing is removed meanwhile"
        );
        match self {
            Self::Lost => format!("Secret {STATE} was lost; {rebuilt}"),
            Self::OfAnotherCluster => {
                format!("Secret {STATE} belongs to another cluster and is not used, for example after the restore of a backup; {rebuilt}")
            }
            Self::Former => format!(
                "the inventory of {objects} objects moves from a ConfigMap to Secret {STATE}; only the newest revisions of the history are kept"
            ),
            Self::ClusterId => "the cluster id that was confirmed is recorded".into(),
        }
    }
}

/// The inventory, where it is not as it should be: what bears our labels, with what is believed of the ConfigMap of before.
///
/// # Errors
/// When the cluster cannot be read.
pub(in crate::reconcile) async fn recover(
    reader: &Reader,
    config: &VDOConfig,
    apply_set: &str,
    lost: &StoredInventory,
) -> Result<(Inventory, Option<Recovered>), ReconcileError> {
    let found = scan(reader, config, apply_set).await?;
    let former = match lost {
        StoredInventory::OfAnotherCluster => None,
        _ => former::find(reader, config).await?,
    };
    let (inventory, how) = match (former, lost) {
        (Some(former), _) => (former::believed(former, found, config), Recovered::Former),
        (None, StoredInventory::OfAnotherCluster) => (found, Recovered::OfAnotherCluster),
        (None, _) => (found, Recovered::Lost),
    };
    let how = (!inventory.objects.is_empty()).then_some(how);
    Ok((inventory, how))
}

/// What became of an inventory that was found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::reconcile) enum Recorded {
    /// It is stored, or will be in the next run.
    Stored,
    /// Its namespace is being deleted and takes nothing new.
    Terminating,
}

/// Stores what was found, and does nothing else in this run.
pub(in crate::reconcile) async fn record(config: &VDOConfig, ports: &Ports, state: &ClusterState) -> Phase<Recorded> {
    let mut found = Report::default();
    if !is_current(config, ports).await? {
        found.waiting.push(outdated(config));
        return Ok((Recorded::Stored, found));
    }
    let objects = state.inventory.objects.len();
    let how = state.recovered.unwrap_or(Recovered::Lost);
    let message = how.message(&config.name_any(), objects);
    tracing::warn!(objects, "{message}");
    let steps = [Step::SetFinalizer, Step::Record(state.inventory.clone())];
    let finalizer = config.finalizers().iter().any(|f| f == FINALIZER);
    let steps = if finalizer { &steps[1..] } else { &steps[..] };
    let outcome = apply(steps, ports, &StateLocation::of(state, config)).await;
    let recorded = match outcome.failures.iter().any(ClusterError::is_terminating) {
        true => Recorded::Terminating,
        false => Recorded::Stored,
    };
    found.failures.extend(outcome.failures.iter().map(Failure::from));
    found.waiting.push(Wait {
        driver: String::new(),
        reason: Reason::Progressing,
        message,
    });
    Ok((recorded, found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeSet;
    use vdo_api::api::{InventoryStatus, VDOConfigStatus};
    use vdo_core::chart::{self, Context};
    use vdo_core::drivers::{CPI, CSI, is_on_request};
    use vdo_core::manifest::{Owner, stamp};
    use vdo_core::rbac::is_prerequisite;

    #[test]
    fn inventory_recovery_looks_for_every_chart_kind() {
        let mut kinds = BTreeSet::new();
        // A further driver is found as soon as its chart is rendered.
        let usual = vdo_source::fetch::embedded::sources()
            .into_iter()
            .filter(|(name, _)| !is_on_request(name));
        for (_, source) in usual {
            for version in source.versions() {
                let opened = chart::open(&chart::package(&source, &version).expect("a package")).expect("a chart");
                for object in chart::render(&opened, &chart::everything(&opened), &Context::default()).expect("objects") {
                    let object = Object::new(object).expect("an object");
                    let [version, kind, namespace] = [object.api_version(), object.kind(), object.namespace()].map(str::to_owned);
                    if !is_prerequisite(object.identity()) {
                        kinds.insert((version, kind, namespace));
                    }
                }
            }
        }
        let looked = places("set")
            .into_iter()
            .map(|watch| (watch.api_version, watch.kind, watch.namespace));
        let looked: BTreeSet<_> = looked.collect();
        let missed: Vec<_> = kinds.difference(&looked).collect();
        assert!(
            !kinds.is_empty() && missed.is_empty(),
            "would be forgotten with the inventory: {missed:?}"
        );
    }

    #[test]
    fn inventory_expected_only_with_finalizer_or_status() {
        let config = |finalizer: bool, listed: bool| {
            let mut config = VDOConfig::new("vdo", vdo_api::api::VDOConfigSpec::default());
            config.metadata.finalizers = finalizer.then(|| vec![FINALIZER.to_owned()]);
            config.status = Some(VDOConfigStatus {
                inventory: listed.then(InventoryStatus::default),
                ..VDOConfigStatus::default()
            });
            config
        };
        let all = [(false, false), (false, true), (true, false), (true, true)];
        assert_eq!(
            all.map(|(finalizer, listed)| is_expected(&config(finalizer, listed))),
            [false, true, true, true]
        );
    }

    #[test]
    fn inventory_rebuilt_lists_only_owned_objects() {
        let object = |kind: &str, name: &str, driver: &str, set: &str| {
            let value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "uid": format!("uid-{name}")}});
            let mut all = [Object::new(value).expect("an object")];
            let owner = Owner {
                apply_set: set.into(),
                driver: driver.into(),
                version: "1.0.0".into(),
                salt: String::new(),
            };
            stamp(&mut all, &owner);
            let [object] = all;
            object
        };
        let mut unmanaged = object("Service", "unmanaged", CSI, "set");
        unmanaged.set_label(vdo_api::api::MANAGED_BY_LABEL, "someone");
        let found = [
            object("DaemonSet", "cpi", CPI, "set"),
            object("Deployment", "csi", CSI, "set"),
            object("Service", "foreign", CSI, "another set"),
            unmanaged,
        ];
        let inventory = rebuilt(found.into_iter(), "set", Some("id".into()));
        let lines: Vec<String> = inventory
            .objects
            .iter()
            .map(|(id, e)| format!("{} {} {} {:?}", id.name, e.driver, e.wave, e.uid.as_deref()))
            .collect();
        let mut expected = [format!("cpi {CPI} 4 Some(\"uid-cpi\")"), format!("csi {CSI} 5 Some(\"uid-csi\")")];
        expected.sort();
        let mut lines = lines;
        lines.sort();
        assert_eq!(lines, expected);
        assert_eq!(inventory.cluster_id.as_deref(), Some("id"));
    }
}
