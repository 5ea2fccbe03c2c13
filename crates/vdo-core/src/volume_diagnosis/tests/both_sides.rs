// SPDX-License-Identifier: Apache-2.0
//! Tests the messages about differences between cluster and vCenter, and about zones without a suitable node or datastore.

use super::*;

/// The messages, each without the sentence of its cause.
fn details(changes: Value) -> Vec<String> {
    let all = findings(&observed(changes));
    let detail = |finding: &Finding| {
        finding
            .message
            .strip_prefix(finding.cause.about().what)
            .unwrap_or_default()
            .to_owned()
    };
    all.iter().map(|finding| format!("{}{}", finding.cause, detail(finding))).collect()
}

#[test]
fn volumes_that_differ_show_what_the_cluster_and_what_the_vcenter_has() {
    let sized = |more: Value| volume(merged(json!({"spec": {"capacity": {"storage": "1Gi"}}}), more));
    let with = |volume: Value, registered: Value| json!({"volumes": [volume], "registered": registered});
    let other = json!({"h-2": {"name": "pvc-2", "mebibytes": 2048, "persistentVolumes": ["pv-2"]}});
    let renamed = json!({"h-2": {"name": "pvc-2", "mebibytes": 2048, "persistentVolumes": ["pv"]}});
    for (changes, expected) in [
        (
            with(sized(json!({})), json!({})),
            vec![
                "NotInVcenter: the PersistentVolume has handle h-1, size 1Gi, phase Bound, claim ns/data; the vCenter has 0 \
                 registered volumes of \
                cluster id prod, and none has this handle or is registered for this PersistentVolume",
            ],
        ),
        (
            with(sized(json!({})), renamed),
            vec![
                "NotInVcenter: the PersistentVolume has handle h-1, size 1Gi, phase Bound, claim ns/data; the vCenter has registered \
                 volume h-2 (\"pvc-2\", 2048 MiB) for this PersistentVolume",
                "NotInCluster: the volume has the name \"pvc-2\" and the size 2048 MiB, and is registered for PersistentVolume pv; in \
                 the cluster, \
                 PersistentVolume pv has the handle h-1",
            ],
        ),
        (
            json!({"registered": other}),
            vec![
                "NotInCluster: the volume has the name \"pvc-2\" and the size 2048 MiB, and is registered for PersistentVolume pv-2; \
                 the cluster has no \
                PersistentVolume with this name or handle",
            ],
        ),
        (
            json!({"registered": {"h-3": {"name": "fcd"}}}),
            vec![
                "NotInCluster: the volume has the name \"fcd\", and is registered for no PersistentVolume; the cluster has no \
                 PersistentVolume \
                with this name or handle",
            ],
        ),
    ] {
        assert_eq!(details(changes.clone()), expected, "{changes}");
    }
}

#[test]
fn volumes_attachment_in_trouble_shows_volume_and_machine_of_the_vcenter() {
    let failed = attachment(json!({"attached": false, "attachError": {"message": "x"}}));
    let with = |more: Value| merged(json!({"attachments": [failed], "volumes": [volume(json!({}))]}), more);
    let machines = json!({"w-1": {"path": "/DC0/vm/w-1", "host": "esx-1", "power": "poweredOff"}});
    let known = json!({"h-1": {"name": "pvc-1"}});
    let error = "AttachFailed: PersistentVolume pv on node w-1: x";
    let machine = "the node is machine /DC0/vm/w-1 (poweredOff) on host esx-1";
    for (more, expected) in [
        (json!({}), error.to_owned()),
        (
            json!({"machines": machines}),
            format!(
                "{error}; in the cluster, the VolumeAttachment has the status not attached, and the volume has the handle h-1; in the vCenter, {machine}"
            ),
        ),
        (
            json!({"machines": machines, "registered": known}),
            format!(
                "{error}; in the cluster, the VolumeAttachment has the status not attached, and the volume has the handle h-1; in the vCenter, the volume has the name \
                 \"pvc-1\", and {machine}"
            ),
        ),
        (
            json!({"registered": {}, "volumes": [volume(json!({"metadata": {"creationTimestamp": JUST_NOW}}))]}),
            format!(
                "{error}; in the cluster, the VolumeAttachment has the status not attached, and the volume has the handle h-1; in the vCenter, no volume has this handle"
            ),
        ),
    ] {
        assert_eq!(details(with(more.clone())), [expected], "{more}");
    }
    let gone = merged(with(json!({"machines": machines})), json!({"nodes": []}));
    let expected = format!(
        "NodeGone: PersistentVolume pv on node w-1; in the cluster, the VolumeAttachment has the status not attached, and the volume has the handle h-1; in the \
         vCenter, {machine}"
    );
    assert_eq!(details(gone), [expected]);
}

const ZONE: &str = "topology.csi.vmware.com/k8s-zone";

/// Two zones: w-1 and w-2 in a, on hosts esx-1 and esx-2, and w-3 in b, on esx-3.
fn zoned(more: Value) -> Value {
    let node = |name: &str, zone: &str| json!({"metadata": {"name": name, "labels": {ZONE: zone}}});
    let registered = |name: &str| {
        merged(
            csi_node(name, ""),
            json!({"spec": {"drivers": [{"name": CSI_DRIVER, "topologyKeys": [ZONE]}]}}),
        )
    };
    let machine = |host: &str| json!({"path": format!("/DC0/vm/{host}"), "host": host});
    let own = json!({
        "nodes": [node("w-1", "a"), node("w-2", "a"), node("w-3", "b")],
        "csiNodes": [registered("w-1"), registered("w-2"), registered("w-3")],
        "machines": {"w-1": machine("esx-1"), "w-2": machine("esx-2"), "w-3": machine("esx-3")},
        "reached": [{"datastore": "all-a", "hosts": ["esx-1", "esx-2"]}, {"datastore": "one", "hosts": ["esx-1"]}],
    });
    merged(own, more)
}

const A: &str = "topology.csi.vmware.com/k8s-zone=a: nodes w-1, w-2 on hosts esx-1, esx-2, which share datastores all-a";
const B: &str = "topology.csi.vmware.com/k8s-zone=b: nodes w-3 on hosts esx-3, which share no datastore";

#[test]
fn volumes_whose_topology_nothing_satisfies_show_zones_nodes_hosts_and_datastores() {
    let refused = "no shared datastores found for topology requirement";
    let event = |message: &str| json!([event("PersistentVolumeClaim", "data", "ProvisioningFailed", message)]);
    let with = |class_more: Value, claim_more: Value, message: &str| {
        zoned(json!({"classes": [class("fast", class_more)], "claims": [claim(claim_more)], "events": event(message)}))
    };
    let allowed = |zones: Value| json!({"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": zones}]}]});
    let chosen = |node: &str| json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": node}}});
    let all = with(json!({}), json!({}), refused);
    for (changes, expected) in [
        (all.clone(), format!("DatastoreNotShared: {refused}; {A}; {B}")),
        (
            with(allowed(json!(["b"])), json!({}), refused),
            format!("DatastoreNotShared: {refused}; requested: {ZONE}=b; {B}"),
        ),
        (
            with(json!({}), chosen("w-2"), refused),
            format!("DatastoreNotShared: {refused}; requested: {ZONE}=a; {A}"),
        ),
        (
            with(allowed(json!(["c", "d"])), json!({}), refused),
            format!("TopologyUnsatisfied: no node has the labels {ZONE}=c|d; requested: {ZONE}=c|d; {A}; {B}"),
        ),
        (
            merged(all.clone(), json!({"reached": null})),
            format!(
                "DatastoreNotShared: {refused}; {}; {}",
                A.replace(", which share datastores all-a", ""),
                B.replace(", which share no datastore", "")
            ),
        ),
        (
            merged(all.clone(), json!({"machines": {"w-3": null}})),
            format!("DatastoreNotShared: {refused}; {A}; {ZONE}=b: nodes w-3, whose hosts are not known"),
        ),
        (merged(all, json!({"nodes": null})), format!("DatastoreNotShared: {refused}")),
    ] {
        let mut changes = changes;
        if changes["machines"]["w-3"].is_null() {
            changes["machines"].as_object_mut().expect("machines").remove("w-3");
        }
        assert_eq!(details(changes.clone()), [expected], "{changes}");
        assert!(needs_datastores(&observed(changes)));
    }
    assert!(!needs_datastores(&observed(with(json!({}), json!({}), "x"))));
}

/// The volume is in zone b, and the pod may only be where its volume is not.
#[test]
fn volumes_pod_that_cannot_be_where_its_volume_is_shows_the_zone_of_the_volume() {
    let affinity = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}]}});
    let placed = volume(json!({"spec": {"nodeAffinity": affinity}}));
    let why = "0/3 nodes are available: 3 node(s) had volume node affinity conflict.";
    let with = |why: &str| zoned(json!({"claims": [bound(json!({}))], "volumes": [placed], "pods": [pod(why)]}));
    assert_eq!(
        details(with(why)),
        [format!("TopologyUnsatisfied: claim data: {why}; requested: {ZONE}=b; {B}")]
    );
    assert_eq!(details(with("0/3 nodes are available: insufficient cpu.")), Vec::<String>::new());
}
