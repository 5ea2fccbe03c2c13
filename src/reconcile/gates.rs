// SPDX-License-Identifier: Apache-2.0
//! Decides which drivers, or which of their waves, wait: uninitialised nodes, missing privileges, webhook pods, other drivers (pure).
//!
//! A driver waits as a whole while an object of an administrator is missing, and while it is paused. The first of [`WAVES`] that waits
//! keeps the later waves of a driver from starting.

mod other_providers;
pub(super) mod topology;

use super::driver_run::DriverRuns;
use super::observe::ClusterState;
use super::planned::Planned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use vdo_api::api::Reason;
use vdo_api::facts::{Cluster, Connection, Node, due};
use vdo_api::types::{ById, DriverName};
use vdo_core::drivers::{CLOUD_PROVIDER, STORAGE};
use vdo_core::health::{DriverHealth, Verdict, assess};
use vdo_core::manifest::Object;
use vdo_core::plan::{Closed, Desired, Needs, Wait};

/// What keeps waves of drivers from starting, in the order in which it is looked at.
const WAVES: [fn(&Planned, &ClusterState) -> Vec<Closed>; 3] = [
    |planned, state| lacking_privileges(&planned.runs, &planned.site.connections, &state.running),
    |planned, state| {
        // A version that knows the machine of a node by another way is there as soon as the nodes are.
        let age = state.age(CLOUD_PROVIDER.name, planned.observed.at);
        let closed = planned
            .is_after_nodes()
            .then(|| uninitialised_nodes(&planned.desired, &state.cluster, &state.running, age));
        closed.flatten().into_iter().collect()
    },
    |planned, state| unanswered_webhook(&planned.desired, &state.live).into_iter().collect(),
];

/// Every gate that is closed.
pub(super) fn closed(planned: &Planned, state: &ClusterState) -> Vec<Closed> {
    let missing = planned.runs.iter().filter_map(|run| run.wait.clone()).map(Closed::refused);
    let paused = planned.runs.iter().filter(|run| run.is_paused() || run.is_displaced());
    let waves = WAVES.iter().map(|gate| gate(planned, state)).find(|closed| !closed.is_empty());
    let twice = machines_twice(&planned.runs, &planned.site.connections, &state.running);
    let deletes = (!state.taken_over().contains_key(CLOUD_PROVIDER.name))
        .then(|| other_providers::deletes_nodes(&planned.desired, &state.cluster, &state.live))
        .flatten();
    missing
        .chain(deletes)
        .chain(twice)
        .chain(topology::unknown_categories(&planned.runs, &planned.site.connections, &state.live))
        .chain(paused.map(|run| Closed::paused(&run.name)))
        .chain(waves.into_iter().flatten())
        .collect()
}

/// How long the workloads of a driver that needs initialised nodes wait for the last of them, in seconds since the cloud
/// provider was installed. A node whose machine is missing must not keep volumes from all others for ever.
const TIMEOUT: i64 = 300;

/// Holds back the workloads of the CSI driver until the nodes are initialised, as its controller would stay pending and
/// its node plugin could not be matched to a machine. A driver that runs already is never held back.
fn uninitialised_nodes(
    desired: &[Desired],
    cluster: &Cluster,
    running: &BTreeMap<DriverName, DriverHealth>,
    cpi_age: Option<i64>,
) -> Option<Closed> {
    let with_cpi = desired.iter().any(|d| *d.driver == *CLOUD_PROVIDER.name);
    if !with_cpi || running.contains_key(STORAGE.name) {
        return None;
    }
    let counted: Vec<&Node> = due(cluster.nodes.iter().map(|node| &**node)).collect();
    let lacking: Vec<_> = counted.iter().filter(|n| n.lacks().is_some()).collect();
    let from = desired
        .iter()
        .filter(|d| *d.driver == *STORAGE.name && d.object.pod_spec().is_some())
        .map(|d| d.wave)
        .min()?;
    let usable = counted.iter().any(|n| n.control_plane && n.lacks().is_none());
    if lacking.is_empty() && cpi_age.is_some() || (usable && cpi_age.is_some_and(|age| age > TIMEOUT)) {
        return None;
    }
    let first = lacking.first().map_or_else(
        || "the cloud provider is not installed yet".to_owned(),
        |n| format!("{} waits for {}", n.name, n.lacks().unwrap_or_default()),
    );
    let message = format!(
        "CSI waits for initialised nodes: {} of {} are initialised ({first})",
        counted.len() - lacking.len(),
        counted.len()
    );
    let wait = Wait {
        driver: STORAGE.name.into(),
        reason: if lacking.is_empty() {
            Reason::WaitingForDriver
        } else {
            Reason::WaitingForNodes
        },
        message,
    };
    Some(Closed::waves_from(from, wait))
}

/// Which driver must not even begin without which other one: a CSI driver that is not there yet would wait for the cloud provider with
/// half of its objects.
pub(super) fn needs(desired: &[Desired], running: &BTreeMap<DriverName, DriverHealth>) -> Needs {
    let new = |driver: &str| desired.iter().any(|d| *d.driver == *driver) && !running.contains_key(driver);
    let pair = (STORAGE.name.to_owned(), CLOUD_PROVIDER.name.to_owned());
    let why = "it is not installed yet, and it initialises the nodes";
    (new(STORAGE.name) && new(CLOUD_PROVIDER.name))
        .then(|| (pair, why.to_owned()))
        .into_iter()
        .collect()
}

/// Holds back the workloads of a driver that is not installed yet and could not do its work, because the account of a connection
/// that it uses lacks privileges. A driver that runs already is never held back.
fn lacking_privileges(runs: &DriverRuns, connections: &[Connection], running: &BTreeMap<DriverName, DriverHealth>) -> Vec<Closed> {
    let waits = runs.iter().filter(|run| !running.contains_key(&run.name));
    let closed = waits.filter_map(|run| {
        let driver = &run.name;
        let lacking = connections
            .iter()
            .find(|c| run.uses(&c.name) && c.lacking_privileges.contains(driver))?;
        let workloads = run.objects.iter().filter(|d| d.object.pod_spec().is_some());
        let from = workloads.map(|d| d.wave).min()?;
        let message = format!(
            "{driver} waits for privileges: the user of vSphere connection {} lacks privileges; the condition Authorized of the \
             connection names the missing privileges",
            lacking.name
        );
        let wait = Wait {
            driver: driver.clone(),
            reason: Reason::PrivilegesMissing,
            message,
        };
        Some(Closed::waves_from(from, wait))
    });
    closed.collect()
}

/// Holds back a driver that is not installed yet and would find a node in two vCenters: which of the two it takes is chance, and what it
/// writes into the node cannot be changed afterwards.
fn machines_twice(runs: &DriverRuns, connections: &[Connection], running: &BTreeMap<DriverName, DriverHealth>) -> Vec<Closed> {
    let waits = runs.iter().filter(|run| !running.contains_key(&run.name));
    let closed = waits.filter_map(|run| {
        let used: Vec<&Connection> = connections.iter().filter(|c| run.uses(&c.name)).collect();
        let (found, twice) = used.iter().find_map(|c| Some((c, c.machines_twice.as_ref()?)))?;
        (used.len() > 1).then(|| {
            Closed::refused(Wait {
                driver: run.name.clone(),
                reason: Reason::MachineInSeveralVcenters,
                message: format!("vSphere connection {}: {twice}", found.name),
            })
        })
    });
    closed.collect()
}

/// Holds a webhook back until the pods that answer for it are ready: from then on the API server asks it, and refuses what it
/// would have to ask about in vain. One that is in place already stays and is kept up to date.
fn unanswered_webhook(desired: &[Desired], live: &ById<Object>) -> Option<Closed> {
    let webhook = desired.iter().find(|d| d.object.kind() == "ValidatingWebhookConfiguration")?;
    if live.contains_key(&webhook.object.id()) {
        return None;
    }
    let message = behind(&webhook.object, desired)
        .into_iter()
        .map(|d| match live.get(&d.object.id()).map(assess) {
            Some((Verdict::Current, _)) => None,
            Some((Verdict::Waiting(_, message), _)) => Some(message),
            None => Some(format!("{} does not exist yet", d.object)),
        })
        .find_map(|waits| waits)?;
    let wait = Wait {
        driver: webhook.driver.to_string(),
        reason: Reason::WaitingForPods,
        message: format!("{} waits for the pods that serve it: {message}", webhook.object),
    };
    Some(Closed::waves_from(webhook.wave, wait))
}

/// The Deployments whose pods answer for a webhook, by the Services that it names. One that is not among what is wanted is
/// not managed by us.
fn behind<'a>(webhook: &Object, desired: &'a [Desired]) -> Vec<&'a Desired> {
    let all = webhook.value().get("webhooks").and_then(Value::as_array);
    let services = all.into_iter().flatten().filter_map(|webhook| {
        let text = |key: &str| webhook.pointer(&format!("/clientConfig/service/{key}"))?.as_str();
        let (namespace, name) = (text("namespace")?, text("name")?);
        desired
            .iter()
            .map(|d| &d.object)
            .find(|o| o.kind() == "Service" && (o.namespace(), o.name()) == (namespace, name))
    });
    let selectors: Vec<(&str, &Map<String, Value>)> = services
        .filter_map(|service| Some((service.namespace(), service.value().pointer("/spec/selector")?.as_object()?)))
        .collect();
    let answers = |d: &&Desired| {
        let labels = d.object.value().pointer("/spec/template/metadata/labels");
        let selected = |selector: &Map<String, Value>| selector.iter().all(|(key, value)| labels.and_then(|l| l.get(key)) == Some(value));
        d.object.kind() == "Deployment"
            && selectors
                .iter()
                .any(|(namespace, selector)| d.object.namespace() == *namespace && selected(selector))
    };
    desired.iter().filter(answers).collect()
}

/// What each driver that is not healthy waits for.
pub(super) fn unproven(running: &BTreeMap<DriverName, DriverHealth>) -> Vec<Wait> {
    running
        .iter()
        .filter(|(_, health)| !health.ready)
        .map(|(driver, health)| Wait {
            driver: driver.clone(),
            reason: health.reason,
            message: health.message.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::driver_run::DriverRun;
    use crate::reconcile::site::tests::connection;
    use serde_json::json;
    use std::sync::Arc;
    use vdo_core::drivers::{CPI, CSI};
    use vdo_core::health::{NodesFound, Pods};
    use vdo_core::plan::{Extent, Gate};

    fn workload(driver: &str, wave: u8) -> Desired {
        let object = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": driver, "namespace": "n"}, "spec": {"template": {"spec": {}}}});
        Desired {
            object: Object::new(object).expect("an object"),
            driver: driver.into(),
            wave,
        }
    }

    fn node(name: &str, initialised: bool) -> Arc<Node> {
        let provider_id = if initialised { "vsphere://id".into() } else { String::new() };
        Arc::new(Node {
            name: name.into(),
            control_plane: name == "cp",
            provider_id,
            uninitialized: !initialised,
            ..Node::default()
        })
    }

    /// From which wave on, and for what.
    fn shown(closed: &Closed) -> String {
        let (Extent::WavesFrom(from), Gate::Waits(wait)) = (closed.extent, &closed.gate) else {
            panic!("{closed:?}")
        };
        format!("wave {from}: {} {}", wait.reason, wait.message)
    }

    fn healthy() -> DriverHealth {
        DriverHealth {
            ready: true,
            reason: Reason::Healthy,
            message: String::new(),
            pods: Pods::default(),
            failure: None,
            unmade: None,
            nodes: NodesFound::default(),
        }
    }

    /// Only a driver that is not there yet waits, and only for connections that it uses.
    #[test]
    fn gate_new_driver_waits_for_privileges() {
        let mut runs = DriverRuns::default();
        for (driver, wave, connections) in [(CPI, 4, &["vc1"][..]), (CSI, 5, &["vc1", "vc2"])] {
            let run = runs.of(driver);
            *run = DriverRun::using(driver, connections);
            run.objects.push(workload(driver, wave));
        }
        let connection = |name: &str, lacking_privileges: &[&str]| Connection {
            lacking_privileges: lacking_privileges.iter().map(|driver| (*driver).to_owned()).collect(),
            ..connection(name)
        };
        let health = healthy();
        for (vc1, vc2, running, expected) in [
            (&[][..], &[][..], &[][..], None),
            (&[], &[CSI], &[], Some((5, "vc2"))),
            (&[CPI, CSI], &[], &[], Some((4, "vc1"))),
            (&[CPI], &[CPI], &[CPI], None),
            (&[], &[CSI], &[CSI], None),
        ] {
            let running = running.iter().map(|driver: &&str| ((*driver).to_owned(), health.clone())).collect();
            let connections = [connection("vc1", vc1), connection("vc2", vc2)];
            let closed = lacking_privileges(&runs, &connections, &running);
            let expected = expected.map(|(from, name): (u8, &str)| {
                let driver = if from == 4 { CPI } else { CSI };
                format!(
                    "wave {from}: PrivilegesMissing {driver} waits for privileges: the user of vSphere connection {name} lacks privileges"
                )
            });
            let reported = closed.first().map(shown).unwrap_or_default();
            assert!(reported.starts_with(expected.as_deref().unwrap_or_default()), "{reported}");
            assert_eq!(reported.is_empty(), expected.is_none(), "{reported}");
        }
    }

    /// Only a driver that is not there yet and uses both connections waits.
    #[test]
    fn gate_new_driver_waits_for_one_machine_of_each_node() {
        for (uses, twice, runs_already, waits) in [
            (&["vc1", "vc2"][..], true, false, true),
            (&["vc1", "vc2"], false, false, false),
            (&["vc1", "vc2"], true, true, false),
            (&["vc2"], true, false, false),
        ] {
            let mut runs = DriverRuns::default();
            *runs.of(CPI) = DriverRun::using(CPI, uses);
            let machines_twice =
                twice.then(|| "nodes match machines in this vCenter and in the vCenter of vSphere connection vc1: n1".to_owned());
            let connections = [
                connection("vc1"),
                Connection {
                    machines_twice,
                    ..connection("vc2")
                },
            ];
            let running = runs_already.then(|| (CPI.to_owned(), healthy())).into_iter().collect();
            let closed = super::machines_twice(&runs, &connections, &running);
            assert_eq!(!closed.is_empty(), waits, "{uses:?} {twice} {runs_already}: {closed:?}");
        }
    }

    fn held(drivers: &[&str], nodes: &[(&str, bool)], csi_runs: bool, cpi_age: Option<i64>) -> String {
        let desired: Vec<Desired> = drivers.iter().map(|d| workload(d, if *d == CPI { 4 } else { 5 })).collect();
        let cluster = Cluster {
            version: "v1.34.4".parse().expect("a version"),
            uid: "uid".into(),
            nodes: nodes.iter().map(|(name, ready)| node(name, *ready)).collect(),
        };
        let health = healthy();
        let running = if csi_runs {
            BTreeMap::from([(CSI.to_owned(), health)])
        } else {
            BTreeMap::new()
        };
        uninitialised_nodes(&desired, &cluster, &running, cpi_age).map_or_else(|| "goes on".into(), |closed| shown(&closed))
    }

    #[test]
    fn gate_csi_driver_waits_for_initialized_nodes() {
        let (ready, waiting) = ([("cp", true), ("w", true)], [("cp", true), ("w", false)]);
        for (drivers, nodes, csi_runs, cpi_age, expected) in [
            (
                &[CPI, CSI][..],
                &[("cp", false), ("w", false)],
                false,
                None,
                "wave 5: WaitingForNodes CSI waits for initialised nodes: 0 of 2 are initialised (cp waits for providerID)",
            ),
            (
                &[CPI, CSI],
                &waiting,
                false,
                Some(10),
                "wave 5: WaitingForNodes CSI waits for initialised nodes: 1 of 2 are initialised (w waits for providerID)",
            ),
            (&[CPI, CSI], &ready, false, Some(10), "goes on"),
            // Nodes of an earlier life are initialised before the cloud provider is there.
            (
                &[CPI, CSI],
                &ready,
                false,
                None,
                "wave 5: WaitingForDriver CSI waits for initialised nodes: 2 of 2 are initialised (the cloud provider is not installed yet)",
            ),
            // One lost machine does not keep volumes from all others for ever.
            (&[CPI, CSI], &waiting, false, Some(TIMEOUT + 1), "goes on"),
            (
                &[CPI, CSI],
                &[("cp", false), ("w", true)],
                false,
                Some(TIMEOUT + 1),
                "wave 5: WaitingForNodes CSI waits for initialised nodes: 1 of 2 are initialised (cp waits for providerID)",
            ),
            // What runs is never held back, and without a cloud provider of ours there is nothing to wait for.
            (&[CPI, CSI], &waiting, true, Some(10), "goes on"),
            (&[CSI], &waiting, false, None, "goes on"),
            (&[CPI], &waiting, false, None, "goes on"),
        ] {
            assert_eq!(held(drivers, nodes, csi_runs, cpi_age), expected);
        }
    }

    #[test]
    fn gate_csi_driver_needs_cloud_provider_only_at_first_install() {
        for (drivers, running, expected) in [
            (&[CPI, CSI][..], &[][..], true),
            (&[CPI, CSI], &[CPI], false),
            (&[CPI, CSI], &[CSI], false),
            (&[CSI], &[], false),
            (&[CPI], &[], false),
        ] {
            let desired: Vec<Desired> = drivers.iter().map(|driver| workload(driver, 4)).collect();
            let running = running.iter().map(|driver: &&str| ((*driver).to_owned(), healthy())).collect();
            let pairs: Vec<_> = needs(&desired, &running).into_keys().collect();
            let all = if expected { vec![(CSI.to_owned(), CPI.to_owned())] } else { vec![] };
            assert_eq!(pairs, all, "{drivers:?} {running:?}");
        }
    }

    #[test]
    fn gate_webhook_waits_for_its_pods_once() {
        let object = |kind: &str, status: serde_json::Value| {
            let value = json!({"apiVersion": "x/v1", "kind": kind, "metadata": {"name": "w", "namespace": "n", "generation": 1},
                "spec": {"replicas": 1, "selector": {"app": "w"}, "template": {"metadata": {"labels": {"app": "w", "more": "x"}}}},
                "webhooks": [{"clientConfig": {"service": {"namespace": "n", "name": "w"}}}], "status": status});
            Object::new(value).expect("an object")
        };
        let mut other = object("Deployment", json!({})).into_value();
        other["metadata"]["name"] = "controller".into();
        other["spec"]["template"]["metadata"]["labels"]["app"] = "controller".into();
        let other = Desired {
            object: Object::new(other).expect("an object"),
            driver: CSI.into(),
            wave: 5,
        };
        let wanted = |kind: &str, wave: u8| Desired {
            object: object(kind, json!({})),
            driver: CSI.into(),
            wave,
        };
        // Another workload of the driver, which answers for nothing, is not waited for.
        let desired = [
            other,
            wanted("Service", 3),
            wanted("Deployment", 5),
            wanted("ValidatingWebhookConfiguration", 7),
        ];
        let ready = json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1});
        let live = |objects: &[Object]| objects.iter().map(|o| (o.id(), o.clone())).collect::<ById<_>>();
        let say = |live: &ById<Object>| unanswered_webhook(&desired, live).as_ref().map(shown);
        let waits = |what: &str| {
            Some(format!(
                "wave 7: WaitingForPods ValidatingWebhookConfiguration n/w waits for the pods that serve it: {what}"
            ))
        };
        assert_eq!(say(&live(&[])), waits("Deployment n/w does not exist yet"));
        assert_eq!(
            say(&live(&[object("Deployment", json!({"observedGeneration": 1}))])),
            waits("Deployment n/w has 0 of 1 pods at its newest revision")
        );
        assert_eq!(say(&live(&[object("Deployment", ready)])), None);
        assert_eq!(
            say(&live(&[object("ValidatingWebhookConfiguration", json!({}))])),
            None,
            "it is in place already"
        );
        assert!(
            unanswered_webhook(&desired[..3], &live(&[])).is_none(),
            "without a webhook nothing waits"
        );
    }
}
