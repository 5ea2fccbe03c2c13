// SPDX-License-Identifier: Apache-2.0
use super::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use vdo_api::api::Reason;
use vdo_api::facts::{Node, Place};
use vdo_vsphere::vsphere::{Entity, Finding, Inventory, Machine, ManagedObject, NodeReport, Requirements};

mod undo;

fn object(kind: &str, id: &str) -> ManagedObject {
    ManagedObject {
        kind: kind.into(),
        id: id.into(),
    }
}

/// Two clusters: machines n1 on h1 and n2 on h2 in c1, n3 on h3 in c2. No machine is on h4 in c1.
fn inventory() -> Inventory {
    let place = |kind: &str, id: &str, path: &str, parent: &str| {
        let entity = Entity {
            object: object(kind, id),
            path: path.into(),
            parent: parent.into(),
        };
        (id.to_owned(), entity)
    };
    let machine = |node: &str, host: &str| Machine {
        id: format!("vm-{node}"),
        path: format!("/DC0/vm/{node}"),
        instance_uuid: format!("uuid-{node}"),
        host: host.into(),
        ..Machine::default()
    };
    Inventory {
        root: object("Folder", "root"),
        machines: vec![machine("n1", "h1"), machine("n2", "h2"), machine("n3", "h3")],
        places: [
            place("Datacenter", "dc", "/DC0", "root"),
            place("Folder", "hosts", "/DC0/host", "dc"),
            place("ClusterComputeResource", "c1", "/DC0/host/c1", "hosts"),
            place("ClusterComputeResource", "c2", "/DC0/host/c2", "hosts"),
            place("HostSystem", "h1", "/DC0/host/c1/h1", "c1"),
            place("HostSystem", "h2", "/DC0/host/c1/h2", "c1"),
            place("HostSystem", "h4", "/DC0/host/c1/h4", "c1"),
            place("HostSystem", "h3", "/DC0/host/c2/h3", "c2"),
        ]
        .into(),
        ..Inventory::default()
    }
}

fn reports(findings: &[(&str, Reason)], power: &str) -> Vec<NodeReport> {
    let report = |(at, node): (usize, &str)| NodeReport {
        node: node.into(),
        machine: format!("/DC0/vm/{node}"),
        power: power.into(),
        hardware: "vmx-13".into(),
        at: Some(at),
        findings: findings
            .iter()
            .filter(|(own, _)| *own == node)
            .map(|(_, reason)| Finding::new(*reason, format!("node {node}: {reason}"), ""))
            .collect(),
        ..NodeReport::default()
    };
    ["n1", "n2", "n3"].into_iter().enumerate().map(report).collect()
}

fn requirements() -> Requirements {
    Requirements {
        zone_and_region: Some(("zone".into(), "region".into())),
        categories: vec!["zone".into()],
        ..Requirements::default()
    }
}

fn nodes(labels: &[(&str, &str, &str)]) -> Vec<Arc<Node>> {
    let node = |name: &str| {
        let own = labels.iter().filter(|(node, ..)| *node == name);
        Arc::new(Node {
            name: name.into(),
            uninitialized: true,
            place: Place {
                labels: own.map(|(_, key, value)| (long(key), (*value).to_owned())).collect(),
                ..Place::default()
            },
            ..Node::default()
        })
    };
    ["n1", "n2", "n3"].map(node).into()
}

fn long(key: &str) -> String {
    match key {
        "csi" => "topology.csi.vmware.com/zone".into(),
        key => format!("topology.kubernetes.io/{key}"),
    }
}

/// A catalog with these tags on these objects.
fn catalog(attached: &[(&str, &str, &str)]) -> Catalog {
    let mut catalog = Catalog::default();
    for (id, category, tag) in attached {
        if !catalog.categories.contains_key(*category) {
            catalog.apply(
                &Step::CreateCategory {
                    category: (*category).into(),
                },
                "",
                "id",
            );
        }
        if catalog.tag(category, tag).is_none() {
            let step = Step::CreateTag {
                category: (*category).into(),
                tag: (*tag).into(),
            };
            catalog.apply(&step, "", "id");
        }
        let step = Step::AttachTag {
            category: (*category).into(),
            tag: (*tag).into(),
            object: object("X", id),
            path: String::new(),
        };
        catalog.apply(&step, "", "");
    }
    catalog
}

/// The plan for tags, in short: steps, then what is left to people.
fn tags(labels: &[(&str, &str, &str)], attached: &[(&str, &str, &str)], requirements: &Requirements) -> (String, String) {
    let plan = plan(
        requirements,
        &nodes(labels),
        &reports(&[], "poweredOn"),
        &inventory(),
        &catalog(attached),
        false,
    );
    let short = |step: &Step| match step {
        Step::CreateCategory { category } => format!("+{category}"),
        Step::CreateTag { category, tag } => format!("+{category}={tag}"),
        Step::AttachTag { category, tag, object, .. } => format!("{}:{category}={tag}", object.id),
        other => format!("{other}"),
    };
    let steps: Vec<String> = plan.iter().flat_map(|fix| &fix.steps).map(short).collect();
    let open: Vec<&str> = plan
        .iter()
        .filter(|fix| fix.steps.is_empty())
        .map(|fix| fix.message.as_str())
        .collect();
    assert!(plan.iter().all(|fix| fix.steps.is_empty() != fix.by_hand.is_empty()), "{plan:?}");
    (steps.join(" "), open.join("; "))
}

#[test]
fn fix_tags_go_where_both_drivers_look_and_never_above_another_value() {
    let zones = |zones: [&'static str; 3]| ["n1", "n2", "n3"].into_iter().zip(zones).map(|(node, zone)| (node, "zone", zone));
    let eu = || ["n1", "n2", "n3"].map(|node| (node, "region", "eu"));
    let labels = |three: [&'static str; 3]| zones(three).chain(eu()).collect::<Vec<_>>();
    let region = ("dc", "region", "eu");
    for (labels, attached, steps, open) in [
        // A zone goes to the cluster, a region to the datacenter.
        (
            labels(["a", "a", "b"]),
            &[][..],
            "+region +region=eu dc:region=eu +zone +zone=a +zone=b c1:zone=a c2:zone=b",
            "",
        ),
        // What is there is used; what counts already is left.
        (labels(["a", "a", "b"]), &[region, ("c1", "zone", "a")][..], "+zone=b c2:zone=b", ""),
        (
            labels(["a", "a", "b"]),
            &[region, ("c1", "zone", "a"), ("c2", "zone", "b")][..],
            "",
            "",
        ),
        // A tag that is there counts, whatever the label says: that is for the checks of the topology.
        (
            labels(["a", "a", "b"]),
            &[region, ("c1", "zone", "x"), ("c2", "zone", "b")][..],
            "",
            "",
        ),
        // A stretched cluster: hosts instead of the cluster.
        (
            labels(["a", "b", "b"]),
            &[region][..],
            "+zone +zone=a +zone=b c2:zone=b h1:zone=a h2:zone=b",
            "",
        ),
        // A host with another tag, though no node is on it, keeps the tag from the cluster.
        (
            labels(["a", "a", "b"]),
            &[region, ("h4", "zone", "z"), ("c2", "zone", "b")][..],
            "+zone=a h1:zone=a h2:zone=a",
            "",
        ),
        // So does a node of which nothing is known; its own host gets nothing.
        (
            vec![("n1", "zone", "a"), ("n3", "zone", "b")],
            &[region][..],
            "+zone +zone=a +zone=b c2:zone=b h1:zone=a",
            "no tag of category zone applies to nodes n2, and these nodes have no label for this category",
        ),
        (
            vec![("n1", "csi", "a"), ("n1", "zone", "b"), ("n2", "csi", "a"), ("n3", "csi", "c")],
            &[region][..],
            "+zone +zone=a +zone=c c2:zone=c h2:zone=a",
            "the labels topology.kubernetes.io/zone and topology.csi.vmware.com/zone of node n1 have different values: a, b",
        ),
    ] {
        assert_eq!(
            tags(&labels, attached, &requirements()),
            (steps.to_owned(), open.to_owned()),
            "{labels:?} {attached:?}"
        );
    }
    assert_eq!(tags(&labels(["a", "a", "b"]), &[], &Requirements::default()), Default::default());
}

#[test]
fn fix_nodes_of_one_host_that_disagree_are_left_to_people() {
    let mut inventory = inventory();
    inventory.machines[1].host = "h1".into();
    let labels = [("n1", "zone", "a"), ("n2", "zone", "b"), ("n3", "zone", "b")];
    let catalog = catalog(&[("dc", "region", "eu")]);
    let fixes = plan(&requirements(), &nodes(&labels), &reports(&[], ""), &inventory, &catalog, false);
    let open: Vec<&str> = fixes
        .iter()
        .filter(|fix| fix.steps.is_empty())
        .map(|fix| fix.message.as_str())
        .collect();
    assert_eq!(
        open,
        ["nodes n1, n2 run on host /DC0/host/c1/h1, but their labels do not have the same value for zone"]
    );
}

#[test]
fn fix_machine_only_powered_off_and_hardware_only_allowed_and_last() {
    let wrong = [
        ("n1", Reason::HardwareVersionTooOld),
        ("n1", Reason::DiskUuidDisabled),
        ("n2", Reason::DiskUuidDisabled),
        ("n3", Reason::ToolsNotRunning),
    ];
    for (power, allowed, steps, by_hand) in [
        (
            "poweredOff",
            false,
            "n1 TRUE, n2 TRUE",
            "n1 HardwareVersionTooOld: An upgrade of the hardware cannot be undone",
        ),
        ("poweredOff", true, "n1 TRUE, n2 TRUE, n1 vmx-15", ""),
        (
            "poweredOn",
            true,
            "",
            "n1 DiskUuidDisabled: The machine is poweredOn. Power off the machine",
        ),
    ] {
        let fixes = plan(
            &Requirements::default(),
            &nodes(&[]),
            &reports(&wrong, power),
            &inventory(),
            &Catalog::default(),
            allowed,
        );
        let short = |step: &Step| match step {
            Step::SetDiskUuid { machine, value, .. } => format!("{} {}", &machine.id[3..], value.as_deref().unwrap_or_default()),
            Step::UpgradeHardware { machine, to, .. } => format!("{} {to}", &machine.id[3..]),
            other => format!("{other}"),
        };
        let made: Vec<String> = fixes.iter().flat_map(|fix| &fix.steps).map(short).collect();
        assert_eq!(made.join(", "), steps);
        let left = fixes.iter().find(|fix| fix.steps.is_empty());
        let left = left.map(|fix| format!("{} {}: {}", &fix.message[5..7], fix.reason, fix.by_hand));
        assert!(
            left.clone().unwrap_or_default().starts_with(by_hand) && left.is_some() != by_hand.is_empty(),
            "{left:?}"
        );
    }
    let remedy = plan(
        &Requirements::default(),
        &[],
        &reports(&wrong, "poweredOn"),
        &inventory(),
        &Catalog::default(),
        false,
    )[0]
    .by_hand
    .to_string();
    for command in [
        "kubectl drain n1 ",
        "govc vm.power -s /DC0/vm/n1",
        "govc vm.power -on /DC0/vm/n1",
        "kubectl uncordon n1",
    ] {
        assert!(remedy.contains(command), "{remedy}");
    }
}

#[test]
fn fix_kubelet_without_external_is_an_instruction_and_no_step() {
    let mut node = Node {
        name: "n1".into(),
        ..Node::default()
    };
    for (version, line) in [
        ("v1.34.4", "kubeletExtraArgs: [{name: cloud-provider, value: external}]"),
        ("v1.34.4+rke2r1", "cloud-provider-name: external"),
        ("v1.34.4+k3s1", "kubelet-arg: [cloud-provider=external]"),
    ] {
        node.kubelet = Some(version.into());
        let nodes = [Arc::new(node.clone())];
        let fixes = plan(&Requirements::default(), &nodes, &[], &inventory(), &Catalog::default(), true);
        assert_eq!(
            (fixes.len(), fixes[0].reason, fixes[0].steps.len()),
            (1, Reason::KubeletNotExternal, 0)
        );
        assert!(fixes[0].by_hand.to_string().contains(line), "{}", fixes[0].by_hand);
    }
}

/// After a step that failed, those that need it are not tried: a tag in its category, an attachment of the tag.
#[test]
fn fix_step_needs_what_it_is_made_of() {
    let category = |category: &str| Step::CreateCategory { category: category.into() };
    let tag = |category: &str, tag: &str| Step::CreateTag {
        category: category.into(),
        tag: tag.into(),
    };
    let attach = |category: &str, tag: &str| Step::AttachTag {
        category: category.into(),
        tag: tag.into(),
        object: object("HostSystem", "h1"),
        path: "/h1".into(),
    };
    for (step, failed, needs) in [
        (tag("zone", "a"), category("zone"), true),
        (attach("zone", "a"), category("zone"), true),
        (attach("zone", "a"), tag("zone", "a"), true),
        (tag("zone", "a"), category("region"), false),
        (tag("zone", "b"), tag("zone", "a"), false),
        (attach("zone", "b"), tag("zone", "a"), false),
        (attach("region", "a"), tag("zone", "a"), false),
        (attach("zone", "a"), attach("zone", "b"), false),
        (category("zone"), attach("zone", "a"), false),
    ] {
        assert_eq!(step.needs(&failed), needs, "{step} after {failed}");
    }
}

/// What is read decides where tags go: the hosts of the nodes with all that they lie in, and the hosts beside them.
#[test]
fn fix_reads_the_tags_of_hosts_without_nodes_too() {
    let ids: BTreeSet<String> = read_for(&inventory(), &reports(&[], "")[..2])
        .into_iter()
        .map(|object| object.id)
        .collect();
    assert_eq!(ids, ["c1", "dc", "h1", "h2", "h4", "hosts", "root"].map(String::from).into());
}
