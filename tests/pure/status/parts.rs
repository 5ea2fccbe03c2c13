// SPDX-License-Identifier: Apache-2.0
//! Each part of a status, over what a report may say of it.

use super::{at, cluster, driver, failure, health, healthy, installing, new, node, settled, wait};
use std::sync::Arc;
use vdo_api::api::{Class, ConditionType, Conditions, PlanStatus, Reason, VDOConfigStatus};
use vdo_api::facts::{Away, Cluster, Node};
use vdo_core::drivers::{CPI, CSI};
use vdo_core::status::{Failure, Precondition, Report, fold};

pub fn condition(status: &VDOConfigStatus, kind: ConditionType) -> String {
    let found = Conditions::find(&status.conditions, kind).expect("a condition");
    format!("{} {}: {}", found.status, found.reason, found.message)
}

pub fn with_nodes(nodes: Vec<Node>) -> Report {
    Report {
        cluster: Some(Cluster {
            nodes: nodes.into_iter().map(Arc::new).collect(),
            ..cluster(0)
        }),
        ..healthy()
    }
}

#[test]
fn status_nodes_each_one_names_what_it_waits_for() {
    let of = |name: &str, initialized, linux, csi_registered| Node {
        linux,
        csi_registered,
        ..Arc::unwrap_or_clone(node(name, initialized))
    };
    let mut report = with_nodes(vec![
        of("ready", true, true, true),
        of("new", false, true, false),
        of("unregistered", true, true, false),
        // the driver of this operator runs on Linux only
        of("windows", true, false, false),
    ]);
    let reported = |report: &Report| {
        let nodes = fold(&new(), report, &at(0)).nodes.expect("nodes");
        let waiting = nodes.waiting.iter().map(|node| format!("{}: {}", node.name, node.waits_for));
        ([nodes.total, nodes.initialized, nodes.csi_registered], waiting.collect::<Vec<_>>())
    };
    let both = ["new: providerID".to_owned(), "unregistered: CSI registration".to_owned()];
    assert_eq!(reported(&report), ([4, 3, 1], both.to_vec()));
    report.drivers.retain(|driver| driver.name == CPI);
    assert_eq!(reported(&report), ([4, 3, 1], both[..1].to_vec()));
}

#[test]
fn status_nodes_that_are_apart_are_named_and_not_waited_for() {
    let of = |name: &str, provider_id: &str, away| Node {
        provider_id: provider_id.into(),
        away,
        csi_registered: false,
        ..Arc::unwrap_or_clone(node(name, true))
    };
    let mut report = with_nodes(vec![
        Arc::unwrap_or_clone(node("w-1", true)),
        of("w-2", "", Some(Away::NotReady)),
        of("w-3", "vsphere://w-3", Some(Away::Cordoned)),
        of("m-1", "metal3://m-1", None),
    ]);
    let status = fold(&new(), &report, &at(0));
    assert_eq!(
        condition(&status, ConditionType::NodesInitialized),
        "True Healthy: 2 of 2 nodes are initialised; node w-2 is not ready and is set up later, node m-1 belongs to another provider (metal3://)"
    );
    let nodes = status.nodes.expect("nodes");
    let apart: Vec<String> = nodes.apart.iter().map(|node| format!("{} {}", node.name, node.because)).collect();
    assert_eq!(
        apart,
        ["w-2 is not ready", "w-3 is cordoned", "m-1 belongs to another provider (metal3://)"]
    );
    assert_eq!((nodes.total, nodes.initialized, nodes.of_other_providers), (4, 2, 1));
    assert!(nodes.waiting.is_empty(), "{:?}", nodes.waiting);
    // Where no node is alive, all are waited for.
    report.cluster.as_mut().expect("a cluster").nodes.drain(..1);
    let status = fold(&new(), &report, &at(0));
    let found = condition(&status, ConditionType::NodesInitialized);
    assert!(
        found.starts_with("False KubeletNotExternal") || found.starts_with("False WaitingForNodes"),
        "{found}"
    );
}

#[test]
fn status_nodes_not_initialized_are_counted() {
    let mut report = installing();
    for (initialized, expected) in [
        (
            0,
            "False WaitingForNodes: 4 of 4 nodes are not initialised; cp-1 waits for providerID",
        ),
        (
            3,
            "False WaitingForNodes: 1 of 4 nodes are not initialised; w-3 waits for providerID",
        ),
        (4, "True Healthy: 4 of 4 nodes are initialised"),
    ] {
        report.cluster = Some(cluster(initialized));
        let status = fold(&new(), &report, &at(0));
        assert_eq!(condition(&status, ConditionType::NodesInitialized), expected);
    }
}

/// A kubelet that waits for no cloud provider is named, with the setting of its distribution; those that wait are not its like.
#[test]
fn status_kubelet_without_cloud_provider_is_named_with_the_setting() {
    let mut report = installing();
    let mut cluster = cluster(2);
    let node = Arc::new(Node {
        name: "w-9".into(),
        kubelet: Some("v1.34.4+k3s1".into()),
        ..Node::default()
    });
    cluster.nodes.push(node);
    report.cluster = Some(cluster);
    let status = fold(&new(), &report, &at(0));
    assert_eq!(
        condition(&status, ConditionType::NodesInitialized),
        "False KubeletNotExternal: 1 of 5 nodes have neither a provider ID nor the taint \
         node.cloudprovider.kubernetes.io/uninitialized: w-9; \
         run their kubelets with \
         --cloud-provider=external (with k3s, in /etc/rancher/k3s/config.yaml before a node joins: kubelet-arg: [cloud-provider=external], \
         disable-cloud-controller: true)"
    );
}

#[test]
fn status_network_not_ready_names_five_nodes() {
    let lacking = |count: usize| {
        let nodes = (0..7).map(|n| Node {
            network: (n < count).then(|| format!("why {n}")),
            ..Arc::unwrap_or_clone(node(&format!("n{n}"), true))
        });
        let status = fold(&new(), &with_nodes(nodes.collect()), &at(0));
        condition(&status, ConditionType::NetworkReady)
    };
    assert_eq!(lacking(0), "True Healthy: none of 7 nodes waits for the pod network");
    let message = |of: &str, names: &str| {
        let there = if of == "1" { "this node" } else { "these nodes" };
        format!(
            "False NetworkNotReady: the pod network is not ready on {of} of 7 nodes: {names}; node n0 reports why 0; check the pods of the \
             network plugin on {there}"
        )
    };
    assert_eq!(lacking(1), message("1", "n0"));
    assert_eq!(lacking(5), message("5", "n0, n1, n2, n3, n4"));
    assert_eq!(lacking(7), message("7", "n0, n1, n2, n3, n4 and 2 more"));
}

/// A report that ended before the choice knows neither the chart nor the reason; they are still true of the same version.
#[test]
fn status_driver_keeps_facts_only_of_same_version_without_choice() {
    let reported = |change: &dyn Fn(&mut vdo_core::status::DriverReport)| {
        let mut report = healthy();
        let csi = &mut report.drivers[1];
        (csi.available, csi.chart, csi.because) = ("9.9.9".into(), String::new(), "installed".into());
        change(csi);
        let found = fold(&settled(), &report, &at(0)).drivers.remove(1);
        (found.available, found.because)
    };
    let old = &settled().drivers[1];
    let is = |available: &str, because: &str| (available.to_owned(), because.to_owned());
    assert_ne!(old.because, "installed");
    assert_eq!(reported(&|csi| csi.available = String::new()), is("3.7.3", &old.because));
    // A version that is there and blocked is known although nothing was chosen.
    assert_eq!(reported(&|_| ()), is("9.9.9", &old.because));
    assert_eq!(reported(&|csi| csi.version = "3.6.3".into()), is("9.9.9", "installed"));
    assert_eq!(reported(&|csi| csi.chart = "sha256:50".into()), is("9.9.9", "installed"));
    assert_eq!(
        reported(&|csi| csi.because = "pinned in spec".into()),
        is("9.9.9", "pinned in spec")
    );
}

#[test]
fn status_driver_condition_follows_what_is_asked_for() {
    let both = || healthy().drivers;
    let only = |name: &str| both().into_iter().filter(|driver| driver.name == name).collect::<Vec<_>>();
    let ill = || {
        let pods = health(false, Reason::PodsFailing, "0 of 1 pods are ready", (0, 1));
        vec![driver(CPI, pods), driver(CSI, None)]
    };
    let lists = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let unrequested = "; the driver is not requested, but stays installed: set spec.cloudProvider to manage the driver, or set \
                       spec.cloudProvider.managementState to Removed to remove the driver";
    for (what, report, cpi, csi) in [
        (
            "one is removed, and gone",
            Report {
                drivers: only(CSI),
                removing: lists(&[CPI]),
                ..healthy()
            },
            "Unknown Removed: CPI is removed, because its managementState is Removed".to_owned(),
            "True Healthy: CSI 3.7.3: 7 of 7 pods are ready",
        ),
        (
            "the other one is removed, and still there",
            Report {
                removing: lists(&[CSI]),
                waiting: vec![wait(CPI, Reason::Deleting, "not its own")],
                ..healthy()
            },
            "True Healthy: CPI 1.34.0: 1 of 1 pods are ready".to_owned(),
            "False Deleting: CSI is being removed",
        ),
        (
            "an object of it goes",
            Report {
                removing: lists(&[CSI]),
                waiting: vec![wait(CSI, Reason::Deleting, "a pod goes")],
                ..healthy()
            },
            "True Healthy: CPI 1.34.0: 1 of 1 pods are ready".to_owned(),
            "False Deleting: a pod goes",
        ),
        (
            "one is not requested",
            Report {
                unrequested: lists(&[CPI]),
                ..healthy()
            },
            format!("True NotRequested: CPI 1.34.0: 1 of 1 pods are ready{unrequested}"),
            "True Healthy: CSI 3.7.3: 7 of 7 pods are ready",
        ),
        (
            "the other one is not requested",
            Report {
                unrequested: lists(&[CSI]),
                ..healthy()
            },
            "True Healthy: CPI 1.34.0: 1 of 1 pods are ready".to_owned(),
            "True NotRequested: CSI 3.7.3: 7 of 7 pods are ready; the driver is not requested, but stays installed: set \
             spec.storageProvider to manage the driver, or set spec.storageProvider.managementState to Removed to remove the driver",
        ),
        (
            "one is not requested and ill, and the other one is not installed",
            Report {
                drivers: ill(),
                unrequested: lists(&[CPI]),
                ..healthy()
            },
            format!("False NotRequested: CPI 1.34.0: 0 of 1 pods are ready{unrequested}"),
            "False Progressing: CSI 3.7.3 is not installed yet",
        ),
        (
            "one waits",
            Report {
                drivers: ill(),
                waiting: vec![wait(CSI, Reason::WaitingForNodes, "nodes")],
                ..healthy()
            },
            "False PodsFailing: CPI 1.34.0: 0 of 1 pods are ready".to_owned(),
            "False WaitingForNodes: nodes",
        ),
        (
            "one is not asked for",
            Report {
                drivers: only(CSI),
                ..healthy()
            },
            "Unknown NotRequested: CPI is not requested".to_owned(),
            "True Healthy: CSI 3.7.3: 7 of 7 pods are ready",
        ),
        (
            "no version of one is chosen",
            Report {
                drivers: only(CSI),
                failures: vec![Failure {
                    drivers: [CPI.to_owned()].into(),
                    ..failure(Class::Terminal, Reason::NoCompatibleVersion, "no version fits")
                }],
                ..healthy()
            },
            "False NoCompatibleVersion: no version fits".to_owned(),
            "True Healthy: CSI 3.7.3: 7 of 7 pods are ready",
        ),
        (
            "nothing was looked at",
            Report::default(),
            "Unknown NotChecked: not checked yet".to_owned(),
            "Unknown NotChecked: not checked yet",
        ),
        (
            "everything is removed",
            Report {
                removed: true,
                ..Report::default()
            },
            "False Deleting: CPI is removed".to_owned(),
            "False Deleting: CSI is removed",
        ),
    ] {
        let status = fold(&new(), &report, &at(0));
        let found = [ConditionType::CloudProviderReady, ConditionType::StorageReady].map(|kind| condition(&status, kind));
        assert_eq!(found, [cpi, csi.to_owned()], "{what}");
    }
}

/// A network that is not ready is why pods do not start. It is not why nodes are not initialised, and what is not known is not a cause.
/// What waits for a person, or is not to be changed, is not late; a failure says itself what comes next.
/// What a reconcile did not reach is as it was; what it did not find is gone.
#[test]
fn status_parts_are_kept_until_they_are_known_to_be_gone() {
    let plan = || Some(PlanStatus::default());
    let old = VDOConfigStatus { plan: plan(), ..settled() };
    let failed = || vec![failure(Class::Retry, Reason::ApiUnavailable, "no answer")];
    let of = |report: Report| fold(&old, &report, &at(60));
    let early = of(Report {
        failures: failed(),
        ..Report::default()
    });
    assert_eq!(
        (early.plan, early.inventory, early.drivers.len()),
        (plan(), old.inventory.clone(), 2)
    );
    let done = of(Report::default());
    assert_eq!((done.plan, done.inventory, done.drivers.len()), (None, old.inventory.clone(), 2));
    let removed = of(Report {
        removed: true,
        ..Report::default()
    });
    assert_eq!((removed.inventory, removed.drivers.len()), (None, 0));
    let deleting = of(Report {
        deleting: true,
        ..Report::default()
    });
    assert_eq!((deleting.inventory, deleting.drivers.len()), (old.inventory.clone(), 0));
}

/// Whether drivers run is what the report says, or the last status where the report did not come so far.
/// Of several answers to the same question the worst counts, in whatever order they come.
#[test]
fn status_precondition_worst_answer_counts() {
    let kind = ConditionType::MatrixFresh;
    let answers = [
        Precondition::holds(kind, "yes"),
        Precondition::unknown(kind, Reason::NotChecked, "who knows"),
        Precondition::fails(kind, Reason::MatrixInvalid, "no"),
    ];
    let reported = |all: &[usize]| {
        let report = Report {
            preconditions: all.iter().map(|i| answers[*i].clone()).collect(),
            ..healthy()
        };
        condition(&fold(&new(), &report, &at(0)), kind)
    };
    assert_eq!(reported(&[0]), "True Healthy: yes");
    for order in [[0, 1], [1, 0]] {
        assert_eq!(reported(&order), "Unknown NotChecked: who knows");
    }
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        assert_eq!(reported(&order), "False MatrixInvalid: no");
    }
}

/// The condition is there as long as an option has no effect, and while nothing new is known of it.
#[test]
fn status_of_options_without_effect_comes_and_goes() {
    let of = |old: &VDOConfigStatus, ignored: Option<&[&str]>| {
        let report = Report {
            ignored: ignored.map(|all| all.iter().map(|text| (*text).to_owned()).collect()),
            ..healthy()
        };
        fold(old, &report, &at(0))
    };
    let said = |status: &VDOConfigStatus| Conditions::find(&status.conditions, ConditionType::OptionsSupported).map(|c| c.message.clone());
    let mut status = of(&new(), None);
    for (ignored, expected) in [
        (
            Some(&["a has no effect", "b has no effect"][..]),
            Some("a has no effect; b has no effect"),
        ),
        (None, Some("a has no effect; b has no effect")),
        (Some(&[]), None),
        (None, None),
    ] {
        status = of(&status, ignored);
        assert_eq!(said(&status).as_deref(), expected);
    }
}

/// The condition is there as long as a newer version fits that is not installed, and while nothing new is known of it. A removal ends it.
#[test]
fn status_of_newer_versions_comes_and_goes() {
    let newer = |(reason, message): &(Reason, &str)| vdo_core::status::NewVersion {
        reason: *reason,
        message: (*message).to_owned(),
    };
    let of = |old: &VDOConfigStatus, all: Option<&[(Reason, &str)]>, deleting: bool| {
        let report = Report {
            newer: all.map(|all| all.iter().map(newer).collect()),
            deleting,
            ..healthy()
        };
        fold(old, &report, &at(0))
    };
    let said = |status: &VDOConfigStatus| {
        let found = Conditions::find(&status.conditions, ConditionType::UpgradeAvailable)?;
        Some(format!("{} {}: {}", found.status, found.reason, found.message))
    };
    let both = [(Reason::RightsMissing, "CSI 2"), (Reason::UpdatePolicy, "CPI 3")];
    let mut status = new();
    for (newer, deleting, expected) in [
        (None, false, None),
        (Some(&both[..]), false, Some("True RightsMissing: CSI 2; CPI 3")),
        (None, false, Some("True RightsMissing: CSI 2; CPI 3")),
        (Some(&both[1..]), false, Some("True UpdatePolicy: CPI 3")),
        (None, true, None),
        (Some(&both[1..]), false, Some("True UpdatePolicy: CPI 3")),
        (Some(&[]), false, None),
    ] {
        status = of(&status, newer, deleting);
        assert_eq!(said(&status).as_deref(), expected);
        assert!(Conditions::is_true(&status.conditions, ConditionType::Ready) || deleting);
    }
}
