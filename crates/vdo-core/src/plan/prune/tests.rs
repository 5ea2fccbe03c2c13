// SPDX-License-Identifier: Apache-2.0
//! Tests which objects are deleted, kept or released when drivers are uninstalled, and in which order.

use super::*;
use crate::drivers::CSI;
use crate::manifest::{Owner, stamp};
use crate::plan::{Inventory, Last, Volumes, check};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const MINUTE: i64 = 60;

/// An object of ours with this metadata on top, listed in the inventory.
struct Cluster {
    observed: Observed,
    inventory: Inventory,
}

impl Cluster {
    fn new() -> Self {
        let observed = Observed {
            at: "2026-01-01T00:10:00Z".parse().expect("a time"),
            timeout: Duration::from_secs(5 * 60),
            volumes: Some(Volumes::default()),
            ..Observed::default()
        };
        Self {
            observed,
            inventory: Inventory::default(),
        }
    }

    fn with(mut self, kind: &str, name: &str, (driver, wave): (&str, u8), metadata: &Value, pods: bool) -> Self {
        let mut value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "uid": "u", "annotations": {}}});
        for (key, more) in metadata.as_object().into_iter().flatten() {
            value["metadata"][key] = more.clone();
        }
        if pods {
            value["spec"] = json!({"template": {"spec": {}}});
        }
        let owner = Owner {
            apply_set: "set".into(),
            driver: driver.into(),
            version: "1.0.0".into(),
            salt: String::new(),
        };
        let mut all = [Object::new(value).expect("an object")];
        stamp(&mut all, &owner);
        let [object] = all;
        let entry = Entry {
            api_version: "v1".into(),
            driver: driver.into(),
            wave,
            uid: Some("u".into()),
            applied: None,
        };
        self.inventory.objects.insert(object.id(), entry);
        Arc::make_mut(&mut self.observed.live).insert(object.id(), object);
        self
    }

    fn leaving(self, name: &str, wave: u8, minutes: i64, finalizers: &Value) -> Self {
        let since = self.observed.at.as_second() - minutes * MINUTE;
        let since = Timestamp::from_second(since).expect("a time").to_string();
        let metadata = json!({"deletionTimestamp": since, "finalizers": finalizers});
        self.with("Deployment", name, (CSI, wave), &metadata, true)
    }

    fn input<'a>(&'a self, kept: &'a BTreeSet<String>) -> Input<'a> {
        Input {
            apply_set: "set",
            desired: &[],
            observed: &self.observed,
            inventory: &self.inventory,
            cluster_id: None,
            approved: None,
            rules: &[],
            kept,
            unhealthy: &[],
            record: &crate::plan::NO_RECORD,
            store: None,
            finalizer: true,
            uninstall: Some(vdo_api::api::DeletionPolicy::Delete),
        }
    }

    /// The plan in one line.
    fn plan(&self) -> String {
        let kept = BTreeSet::new();
        let input = self.input(&kept);
        let plan = crate::plan::plan(&input);
        let run = plan.run(&input, &Last::new());
        assert_eq!(check(&run, &[], &self.inventory), Ok(()));
        let steps = run.iter().map(|step| match step {
            Step::Delete { id, .. } => format!("delete {}", id.name),
            Step::Release { id, .. } => format!("release {}", id.name),
            Step::Finish => "done".into(),
            other => format!("{other:?}"),
        });
        let blocked = plan.blocked.iter().map(|wait| format!("{}: {}", wait.reason, wait.message));
        steps.chain(blocked).collect::<Vec<_>>().join(" | ")
    }

    fn lookups(&self) -> Vec<String> {
        let kept = BTreeSet::new();
        let input = self.input(&kept);
        lookups(&input).iter().map(|lookup| format!("{lookup:?}")).collect()
    }
}

fn both() -> Cluster {
    let none = json!({});
    Cluster::new()
        .with("DaemonSet", "cpi", (crate::drivers::CPI, 4), &none, true)
        .with("Deployment", "csi", (CSI, 5), &none, true)
        .with("ConfigMap", "settings", (CSI, 2), &none, false)
}

#[test]
fn uninstall_with_volumes_keeps_storage_driver() {
    let mut cluster = both();
    assert_eq!(cluster.plan(), "delete csi");
    cluster.observed.volumes = None;
    assert_eq!((cluster.plan(), cluster.lookups()), (String::new(), vec!["Volumes".to_owned()]));
    let named = vec!["pv-1".to_owned()];
    cluster.observed.volumes = Some(Volumes { count: 1, named });
    let said = cluster.plan();
    assert!(
        said.starts_with("VolumesInUse: the storage driver stays") && said.contains("pv-1") && !said.contains("delete c"),
        "{said}"
    );
    // What is left when the workloads are gone needs no look any more.
    Arc::make_mut(&mut cluster.observed.live).retain(|id, _| id.name != "csi");
    assert_eq!(cluster.plan(), "delete cpi");
}

/// A driver that was there before VDO goes on without it; of what another driver was given, only the objects of others stay.
#[test]
fn uninstall_leaves_adopted_driver_running() {
    let adopted = json!({"annotations": {vdo_api::api::ADOPTED_FROM_ANNOTATION: "kubectl apply"}});
    let none = json!({});
    let mut cluster = Cluster::new()
        .with("DaemonSet", "cpi", (crate::drivers::CPI, 4), &adopted, true)
        .with("ConfigMap", "made-by-us", (crate::drivers::CPI, 2), &none, false)
        .with("Deployment", "csi", (CSI, 5), &none, true)
        .with("ConfigMap", "settings", (CSI, 2), &adopted, false);
    assert_eq!(cluster.plan(), "release made-by-us | release settings | release cpi | delete csi");
    // Volumes do not keep a driver that stays.
    let none_left = |cluster: &mut Cluster| Arc::make_mut(&mut cluster.observed.live).retain(|id, _| id.name != "csi");
    none_left(&mut cluster);
    cluster.observed.volumes = Some(Volumes {
        count: 1,
        named: vec!["pv-1".to_owned()],
    });
    assert_eq!(cluster.plan(), "release made-by-us | release settings | release cpi");
}

#[test]
fn uninstall_object_terminating_shortly_holds_wave_below() {
    let fresh = both().leaving("slow", 6, 1, &json!(["example.com/keep"]));
    assert_eq!(fresh.plan(), "", "the wave below waits");
}

#[test]
fn uninstall_stuck_finalizer_is_reported_and_rest_goes_on() {
    let stuck = both().leaving("slow", 6, 9, &json!(["example.com/keep", "foregroundDeletion"]));
    assert_eq!(
        stuck.plan(),
        "delete csi | DeletionBlocked: Deployment slow has been terminating since 2026-01-01T00:01:00Z: the object has the \
         finalizer example.com/keep, which its controller must remove; if the controller no longer exists, remove the finalizer by hand; its pods must \
         terminate first; look for pods that remain Terminating: the usual cause is a node that does not answer"
    );
}

#[test]
fn uninstall_last_stuck_object_is_not_done() {
    // It is not through before that one is gone, too.
    let last = Cluster::new().leaving("slow", 6, 9, &json!(["example.com/keep"]));
    assert!(last.plan().starts_with("DeletionBlocked"), "{}", last.plan());
}

#[test]
fn uninstall_object_with_keep_annotation_is_released() {
    for (key, value, expected) in [
        ("cli-utils.sigs.k8s.io/on-remove", "keep", "release o"),
        ("client.lifecycle.config.k8s.io/deletion", "detach", "release o"),
        ("helm.sh/resource-policy", "keep", "release o"),
        ("helm.sh/resource-policy", "delete", "delete o"),
    ] {
        let cluster = Cluster::new().with("ConfigMap", "o", (CSI, 2), &json!({"annotations": {key: value}}), false);
        assert_eq!(cluster.plan(), expected, "{key}={value}");
        let (id, live) = cluster.observed.live.first().expect("one object");
        assert_eq!(may_go(live, "u", "set"), expected.starts_with("delete"), "{id}");
        assert!(!may_go(live, "another", "set") && !may_go(live, "u", "another"));
    }
}

/// Also of what we made: a workload of others may have begun to use it since.
#[test]
fn uninstall_configuration_that_others_use_is_released() {
    for kind in ["ConfigMap", "Secret", "ServiceAccount"] {
        let metadata = json!({"namespace": "n"});
        let mut cluster = Cluster::new().with(kind, "o", (CSI, 2), &metadata, false);
        assert_eq!(cluster.lookups(), [r#"UsedIn("n")"#]);
        assert_eq!(cluster.plan(), "delete o");
        let id = cluster.inventory.objects.keys().next().expect("one").clone();
        cluster.observed.used.insert(id, "Deployment n/shop".into());
        assert_eq!(cluster.plan(), "release o");
        assert!(cluster.lookups().is_empty(), "{:?}", cluster.lookups());
    }
}

#[test]
fn uninstall_object_in_use_is_kept() {
    for kind in ["StorageClass", "CustomResourceDefinition"] {
        let mut cluster = Cluster::new().with(kind, "o", (CSI, 1), &json!({}), false);
        let id = cluster.inventory.objects.keys().next().expect("one").clone();
        assert!(cluster.lookups()[0].starts_with("HeldBy"), "{:?}", cluster.lookups());
        assert_eq!(cluster.plan(), "", "it is not known yet");
        cluster.observed.held.insert(id.clone(), Some("it is used".into()));
        assert_eq!(cluster.plan(), "release o | done");
        cluster.observed.held.insert(id, None);
        assert_eq!(cluster.plan(), "delete o");
    }
}

#[test]
fn uninstall_definition_waits_for_objects_of_it_that_go_too() {
    let mut cluster = Cluster::new()
        .with("CustomResourceDefinition", "things", (CSI, 1), &json!({}), false)
        .with("Thing", "a", (CSI, 2), &json!({}), false);
    let definition = cluster
        .inventory
        .objects
        .keys()
        .find(|id| id.name == "things")
        .expect("one")
        .clone();
    let live = Arc::make_mut(&mut cluster.observed.live);
    let mut value = live[&definition].value().clone();
    value["spec"] = json!({"group": "", "names": {"kind": "Thing"}});
    live.insert(definition, Object::new(value).expect("a definition"));
    assert_eq!((cluster.lookups(), cluster.plan()), (Vec::new(), "delete a".to_owned()));
    Arc::make_mut(&mut cluster.observed.live).retain(|id, _| id.name != "a");
    assert_eq!(cluster.lookups().len(), 1);
}

#[test]
fn uninstall_protected_kind_is_never_deleted() {
    for kind in PROTECTED {
        assert_eq!(
            Cluster::new().with(kind, "o", (CSI, 1), &json!({}), false).plan(),
            "release o | done",
            "{kind}"
        );
    }
}

/// Neither the last second of the timeout nor an object of the same wave holds anything up.
#[test]
fn uninstall_terminating_object_holds_only_lower_waves_and_for_its_time() {
    for (wave, minutes, expected) in [(6, 5, ""), (5, 1, "delete csi"), (4, 1, "delete csi")] {
        assert_eq!(both().leaving("a", wave, minutes, &json!([])).plan(), expected, "{wave} {minutes}");
    }
}

#[test]
fn lookups_ask_only_for_what_is_about_to_go() {
    let leaving = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    let class = |metadata| Cluster::new().with("StorageClass", "c", (CSI, 2), metadata, false).lookups().len();
    assert_eq!((class(&json!({})), class(&leaving)), (1, 0));
    assert!(Cluster::new().leaving("slow", 5, 1, &json!([])).lookups().is_empty());
    let cpi = Cluster::new().with("DaemonSet", "cpi", (crate::drivers::CPI, 4), &json!({}), true);
    assert!(cpi.lookups().is_empty(), "another driver has no volumes");
}

#[test]
fn deleting_names_what_is_deleted() {
    let cluster = both();
    let kept = BTreeSet::new();
    let input = cluster.input(&kept);
    let steps = crate::plan::plan(&input).run(&input, &Last::new());
    let said: Vec<String> = deleting(&steps)
        .map(|wait| format!("{} {}: {}", wait.driver, wait.reason, wait.message))
        .collect();
    assert_eq!(said, ["vsphere-csi Deleting: Deployment csi is being deleted"]);
    assert_eq!(deleting(&[Step::Finish]).count(), 0);
}
