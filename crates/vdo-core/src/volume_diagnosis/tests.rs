// SPDX-License-Identifier: Apache-2.0
//! Table tests of the findings: objects in the cluster, and the cause that is reported for them.

mod both_sides;
mod features;
mod quotas;

use super::*;
use crate::drivers::{CSI_DRIVER, DEFAULT_ANNOTATIONS};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const NOW: &str = "2026-11-27T12:00:00Z";
const LONG_AGO: &str = "2026-11-27T11:00:00Z";
const JUST_NOW: &str = "2026-11-27T11:59:30Z";

fn read<T: DeserializeOwned>(values: &Value) -> Option<Vec<T>> {
    (!values.is_null()).then(|| serde_json::from_value(values.clone()).expect("objects"))
}

/// What was read, by kind. What is left out has no objects; null could not be read.
fn observed(changes: Value) -> Observed {
    let mut all = json!({
        "claims": [], "volumes": [], "attachments": [], "pods": [], "events": [], "snapshots": [], "quotas": [],
        "classes": [class("fast", json!({}))],
        "csiNodes": [csi_node("w-1", "kubernetes.io/aws-ebs,kubernetes.io/vsphere-volume")],
        "nodes": [{"metadata": {"name": "w-1", "labels": {"zone": "a"}}}],
        "drivers": [{"metadata": {"name": CSI_DRIVER}}],
        "snapshotClasses": [{"metadata": {"name": "daily"}, "driver": CSI_DRIVER}],
    });
    for (kind, value) in changes.as_object().expect("kinds") {
        all[kind] = value.clone();
    }
    Observed {
        now: NOW.parse().expect("a time"),
        claims: read(&all["claims"]),
        volumes: read(&all["volumes"]),
        classes: read(&all["classes"]),
        attachments: read(&all["attachments"]),
        csi_nodes: read(&all["csiNodes"]),
        nodes: read(&all["nodes"]),
        drivers: read(&all["drivers"]),
        pods: read(&all["pods"]),
        events: read(&all["events"]),
        snapshots: read(&all["snapshots"]),
        snapshot_classes: read(&all["snapshotClasses"]),
        quotas: read(&all["quotas"]),
        features: serde_json::from_value(all["features"].clone()).unwrap_or_default(),
        registered: serde_json::from_value(all["registered"].clone()).unwrap_or_default(),
        cluster_id: "prod".to_owned(),
        machines: serde_json::from_value(all["machines"].clone()).unwrap_or_default(),
        reached: read(&all["reached"]),
    }
}

fn said(changes: Value) -> Vec<String> {
    let all = findings(&observed(changes));
    all.iter()
        .map(|finding| format!("{} {}", finding.cause, finding.object()))
        .collect()
}

fn merged(mut value: Value, more: Value) -> Value {
    for (key, new) in more.as_object().expect("fields") {
        match (value.get_mut(key), new) {
            (Some(Value::Object(_)), Value::Object(_)) => value[key] = merged(value[key].clone(), new.clone()),
            _ => value[key] = new.clone(),
        }
    }
    value
}

/// A node on which the driver is registered, with the built-in drivers that its kubelet migrates.
fn csi_node(name: &str, migrated: &str) -> Value {
    json!({"metadata": {"name": name, "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": migrated}},
        "spec": {"drivers": [{"name": CSI_DRIVER, "nodeID": "4237"}]}})
}

fn class(name: &str, more: Value) -> Value {
    merged(
        json!({"metadata": {"name": name}, "provisioner": CSI_DRIVER, "volumeBindingMode": "Immediate"}),
        more,
    )
}

fn claim(more: Value) -> Value {
    let own = json!({"metadata": {"name": "data", "namespace": "ns", "uid": "u", "creationTimestamp": LONG_AGO},
        "spec": {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"]}, "status": {"phase": "Pending"}});
    merged(own, more)
}

fn bound(more: Value) -> Value {
    merged(claim(json!({"spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}})), more)
}

fn volume(more: Value) -> Value {
    let own = json!({"metadata": {"name": "pv", "creationTimestamp": LONG_AGO}, "spec": {"csi": {"driver": CSI_DRIVER, "volumeHandle": "h-1"},
        "claimRef": {"namespace": "ns", "name": "data"}, "persistentVolumeReclaimPolicy": "Delete"}, "status": {"phase": "Bound"}});
    merged(own, more)
}

fn built_in() -> Value {
    let mut found = volume(json!({"spec": {"vsphereVolume": {"volumePath": "[ds] a.vmdk"}}}));
    found["spec"]["csi"] = Value::Null;
    found
}

fn attachment(status: Value) -> Value {
    json!({"metadata": {"name": "csi-1"}, "spec": {"attacher": CSI_DRIVER, "nodeName": "w-1", "source": {"persistentVolumeName": "pv"}}, "status": status})
}

fn event(kind: &str, name: &str, reason: &str, message: &str) -> Value {
    let namespace = if kind == "PersistentVolume" { "" } else { "ns" };
    json!({"involvedObject": {"kind": kind, "namespace": namespace, "name": name}, "reason": reason, "message": message,
        "lastTimestamp": LONG_AGO})
}

fn pod(message: &str) -> Value {
    let condition = json!({"type": "PodScheduled", "status": if message.is_empty() { "Unknown" } else { "False" }, "message": message});
    json!({"metadata": {"name": "web-0", "namespace": "ns"}, "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
        "status": {"conditions": [condition]}})
}

fn snapshot(more: Value) -> Value {
    let own = json!({"metadata": {"name": "snap", "namespace": "ns", "creationTimestamp": LONG_AGO},
        "spec": {"volumeSnapshotClassName": "daily", "source": {"persistentVolumeClaimName": "data"}}});
    merged(own, more)
}

/// Rows: what is there, and the findings.
fn assert_rows(rows: &[(Value, &[&str])]) {
    for (changes, expected) in rows {
        assert_eq!(said(changes.clone()), *expected, "{changes}");
    }
}

#[test]
fn volumes_claim_without_a_usable_class_says_which() {
    let marked = |name: &str| class(name, json!({"metadata": {"annotations": {DEFAULT_ANNOTATIONS[0]: "true"}}}));
    let unnamed = || claim(json!({"spec": {"storageClassName": null}}));
    let with = |provisioner: &str| json!({"claims": [claim(json!({}))], "classes": [class("fast", json!({"provisioner": provisioner}))]});
    assert_rows(&[
        (json!({"claims": [unnamed()]}), &["NoDefaultClass PersistentVolumeClaim ns/data"]),
        (json!({"claims": [unnamed()], "classes": [marked("a")]}), &[]),
        // The beta annotation names a class, too.
        (
            json!({"claims": [merged(unnamed(), json!({"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "gone"}}}))]}),
            &["ClassNotFound PersistentVolumeClaim ns/data"],
        ),
        (
            json!({"classes": [marked("a"), marked("b"), class("c", json!({}))]}),
            &["SeveralDefaultClasses StorageClass a", "SeveralDefaultClasses StorageClass b"],
        ),
        (
            json!({"claims": [claim(json!({"spec": {"storageClassName": ""}}))]}),
            &["NoVolumeFits PersistentVolumeClaim ns/data"],
        ),
        (
            json!({"claims": [claim(json!({"spec": {"storageClassName": "gone"}}))]}),
            &["ClassNotFound PersistentVolumeClaim ns/data"],
        ),
        (with("csi.vsphere.vmware.co"), &["UnknownProvisioner PersistentVolumeClaim ns/data"]),
        (with("kubernetes.io/no-provisioner"), &[]),
        // What is not read is not missing.
        (json!({"claims": [unnamed()], "classes": null}), &[]),
        (merged(with("example.com/nfs"), json!({"drivers": null})), &[]),
        // A claim of another driver is that driver's.
        (
            merged(
                with("example.com/nfs"),
                json!({"drivers": [{"metadata": {"name": "example.com/nfs"}}]}),
            ),
            &[],
        ),
        (
            json!({"claims": [claim(json!({}))], "drivers": []}),
            &["DriverNotInstalled PersistentVolumeClaim ns/data"],
        ),
        (
            json!({"claims": [claim(json!({}))], "csiNodes": []}),
            &["NoNodeRegistered PersistentVolumeClaim ns/data"],
        ),
    ]);
}

#[test]
fn volumes_claim_that_waits_says_for_what() {
    let waits = |more: Value| {
        let own = json!({"claims": [claim(json!({}))], "classes": [class("fast", json!({"volumeBindingMode": "WaitForFirstConsumer"}))]});
        merged(own, more)
    };
    let full = "0/3 nodes are available: 3 node(s) exceed max volume count.";
    let conflict = "0/3 nodes are available: 3 node(s) had volume node affinity conflict.";
    let allowed = |zone: &str| {
        let term = json!({"matchLabelExpressions": [{"key": "zone", "values": [zone]}]});
        json!({"claims": [claim(json!({}))], "classes": [class("fast", json!({"allowedTopologies": [term]}))], "events": null})
    };
    assert_rows(&[
        (waits(json!({})), &["WaitsForPod PersistentVolumeClaim ns/data"]),
        (waits(json!({"pods": null})), &[]),
        (waits(json!({"pods": [pod("")]})), &[]),
        (
            waits(json!({"pods": [pod("0/3 nodes are available: insufficient cpu.")]})),
            &["PodNotPlaced Pod ns/web-0"],
        ),
        (waits(json!({"pods": [pod(full)]})), &["TooManyDisks Pod ns/web-0"]),
        (waits(json!({"pods": [pod(conflict)]})), &["TopologyUnsatisfied Pod ns/web-0"]),
        // The claim of an ephemeral volume is called after its pod.
        (
            waits(json!({"claims": [claim(json!({"metadata": {"name": "web-0-v"}}))],
                "pods": [merged(pod(""), json!({"spec": {"volumes": [{"name": "v", "ephemeral": {}}]}}))]})),
            &[],
        ),
        (
            json!({"claims": [claim(json!({}))]}),
            &["ProvisionerSilent PersistentVolumeClaim ns/data"],
        ),
        (
            json!({"claims": [claim(json!({"metadata": {"creationTimestamp": JUST_NOW}}))]}),
            &[],
        ),
        (json!({"claims": [claim(json!({}))], "events": null}), &[]),
        (allowed("b"), &["TopologyUnsatisfied PersistentVolumeClaim ns/data"]),
        (allowed("a"), &[]),
        (merged(allowed("b"), json!({"nodes": null})), &[]),
    ]);
}

/// The newest warning counts, and one about a claim of the same name that is gone does not.
#[test]
fn volumes_claim_that_the_driver_refuses_has_the_cause_of_its_newest_event() {
    let refused = |message: &str| event("PersistentVolumeClaim", "data", "ProvisioningFailed", message);
    let later = merged(refused("(types.NoDiskSpace)"), json!({"lastTimestamp": "2026-11-27T11:30:00Z"}));
    let former = merged(refused("(types.NoDiskSpace)"), json!({"involvedObject": {"uid": "another"}}));
    let with = |events: &[Value]| json!({"claims": [claim(json!({}))], "events": events});
    let policy = refused("no pbm profile found with name: \"gold\"");
    assert_rows(&[
        (
            with(std::slice::from_ref(&policy)),
            &["PolicyNotFound PersistentVolumeClaim ns/data"],
        ),
        (with(&[later, policy.clone()]), &["DatastoreFull PersistentVolumeClaim ns/data"]),
        (with(&[former, policy.clone()]), &["PolicyNotFound PersistentVolumeClaim ns/data"]),
    ]);
    let all = findings(&observed(with(&[policy])));
    assert_eq!(all[0].command, "kubectl get storageclass fast --output yaml");
    assert!(
        all[0].is_fault && all[0].message.ends_with("no pbm profile found with name: \"gold\""),
        "{all:?}"
    );
}

#[test]
fn volumes_claim_with_a_volume_says_what_keeps_it_from_growing_or_ending() {
    let resizing = |kind: &str| bound(json!({"status": {"conditions": [{"type": kind, "status": "True"}]}}));
    let failed = |message: &str| event("PersistentVolumeClaim", "data", "VolumeResizeFailed", message);
    let with = |claim: Value, events: Value| json!({"claims": [claim], "volumes": [volume(json!({}))], "events": events});
    let leaving = json!({"metadata": {"deletionTimestamp": LONG_AGO, "finalizers": ["kubernetes.io/pvc-protection"]}});
    assert_rows(&[
        (with(bound(json!({})), json!([failed("x")])), &[]),
        (
            with(resizing("FileSystemResizePending"), json!([])),
            &["ResizeWaitsForPod PersistentVolumeClaim ns/data"],
        ),
        (
            with(resizing("Resizing"), json!([failed("x")])),
            &["ResizeFailed PersistentVolumeClaim ns/data"],
        ),
        (
            with(
                resizing("Resizing"),
                json!([failed("volume: a with existing snapshots [b] cannot be expanded. ")]),
            ),
            &["ResizeBlockedBySnapshot PersistentVolumeClaim ns/data"],
        ),
        (
            with(bound(leaving.clone()), json!([])),
            &["FinalizerLeft PersistentVolumeClaim ns/data"],
        ),
        (
            with(
                bound(merged(leaving, json!({"metadata": {"deletionTimestamp": JUST_NOW}}))),
                json!([]),
            ),
            &[],
        ),
        (
            with(bound(json!({"status": {"phase": "Lost"}})), json!([])),
            &["ClaimLost PersistentVolumeClaim ns/data"],
        ),
    ]);
}

#[test]
fn volumes_persistent_volume_that_is_left_over_is_named() {
    let released = |policy: &str| volume(json!({"spec": {"persistentVolumeReclaimPolicy": policy}, "status": {"phase": "Released"}}));
    let failed = |message: &str| json!([event("PersistentVolume", "pv", "VolumeFailedDelete", message)]);
    let foreign = volume(
        json!({"spec": {"csi": {"driver": "nfs.csi.k8s.io"}, "persistentVolumeReclaimPolicy": "Retain"}, "status": {"phase": "Released"}}),
    );
    assert_rows(&[
        (json!({"volumes": [released("Retain")]}), &["VolumeReleased PersistentVolume pv"]),
        (json!({"volumes": [released("Delete")]}), &[]),
        (
            json!({"volumes": [released("Delete")], "events": failed("x")}),
            &["ReclaimFailed PersistentVolume pv"],
        ),
        (
            json!({"volumes": [released("Delete")], "events": failed("NoPermission")}),
            &["PermissionDenied PersistentVolume pv"],
        ),
        (
            json!({"volumes": [volume(json!({"status": {"phase": "Failed", "message": "x"}}))]}),
            &["ReclaimFailed PersistentVolume pv"],
        ),
        (json!({"volumes": [foreign]}), &[]),
    ]);
}

#[test]
fn volumes_cluster_and_vcenter_are_compared_in_both_directions() {
    let young = volume(json!({"metadata": {"creationTimestamp": JUST_NOW}}));
    assert_rows(&[
        (json!({"volumes": [volume(json!({}))], "registered": {"h-1": {"name": "pv"}}}), &[]),
        (
            json!({"volumes": [volume(json!({}))], "registered": {}}),
            &["NotInVcenter PersistentVolume pv"],
        ),
        (json!({"volumes": [young], "registered": {}}), &[]),
        (json!({"volumes": [volume(json!({}))]}), &[]),
        (
            json!({"registered": {"h-9": {"name": "pvc-9"}}}),
            &["NotInCluster Volume in vCenter h-9"],
        ),
        (
            json!({"volumes": [built_in()], "registered": {"h-9": {"name": "x", "persistentVolumes": ["pv"]}}}),
            &["BuiltInVolume PersistentVolume pv"],
        ),
        (json!({"volumes": null, "registered": {"h-9": {"name": "pvc-9"}}}), &[]),
    ]);
}

#[test]
fn volumes_attachment_that_fails_or_hangs_says_why() {
    let failed = |message: &str| attachment(json!({"attached": false, "attachError": {"message": message}}));
    let leaving = |status: Value| merged(attachment(status), json!({"metadata": {"deletionTimestamp": JUST_NOW}}));
    let with = |attachment: Value| json!({"attachments": [attachment], "volumes": [volume(json!({}))]});
    let node = |more: Value| merged(with(attachment(json!({"attached": true}))), more);
    let mounted = |message: &str| {
        json!({"volumes": [volume(json!({}))], "events": [event("Pod", "web-0", "FailedMount", message)],
            "pods": [{"metadata": {"name": "web-0", "namespace": "ns"}}]})
    };
    let unclear = || mounted("AttachVolume.Attach failed for volume \"pv\" : x");
    assert_rows(&[
        (with(attachment(json!({"attached": true}))), &[]),
        (
            with(failed("failed to find VirtualMachine for node")),
            &["VmNotFound VolumeAttachment csi-1"],
        ),
        (with(failed("(types.TooManyDevices)")), &["TooManyDisks VolumeAttachment csi-1"]),
        (with(failed("(types.InvalidPowerState)")), &["VmPoweredOff VolumeAttachment csi-1"]),
        (
            with(failed("the virtual machine w-1 has a snapshot")),
            &["VmHasSnapshot VolumeAttachment csi-1"],
        ),
        (with(failed("x")), &["AttachFailed VolumeAttachment csi-1"]),
        (
            with(leaving(json!({"attached": true, "detachError": {"message": "x"}}))),
            &["DetachFailed VolumeAttachment csi-1"],
        ),
        (node(json!({"nodes": []})), &["NodeGone VolumeAttachment csi-1"]),
        (node(json!({"nodes": null})), &[]),
        (
            merged(
                with(attachment(json!({"attached": false}))),
                json!({"csiNodes": [{"metadata": {"name": "w-1"}}]}),
            ),
            &["NodeNotRegistered VolumeAttachment csi-1"],
        ),
        (
            mounted("MountVolume.MountDevice failed for volume \"pv\" : rpc error: code = NotFound desc = disk: 6000 not attached to node"),
            &["DiskUuidOff Pod ns/web-0"],
        ),
        (
            mounted("Multi-Attach error for volume \"pv\" Volume is already exclusively attached to one node"),
            &["AttachedElsewhere Pod ns/web-0"],
        ),
        // The attachment says it, where attachments were read.
        (unclear(), &[]),
        (merged(unclear(), json!({"attachments": null})), &["AttachFailed Pod ns/web-0"]),
        // The pod has started since.
        (
            merged(
                mounted("Multi-Attach error for volume \"pv\" Volume is already exclusively attached to one node"),
                json!({"pods": []}),
            ),
            &[],
        ),
        // Of a volume of another driver nothing is said.
        (mounted("Multi-Attach error for volume \"other\" Volume is already"), &[]),
    ]);
}

#[test]
fn volumes_snapshot_that_is_not_taken_says_why() {
    let with = |snapshot: Value| json!({"claims": [bound(json!({}))], "volumes": [volume(json!({}))], "snapshots": [snapshot]});
    let failed = |message: &str| snapshot(json!({"status": {"readyToUse": false, "error": {"message": message}}}));
    let limit = "the number of snapshots on the source volume a reaches the configured maximum (3)";
    assert_rows(&[
        (
            with(snapshot(json!({"status": {"readyToUse": true, "error": {"message": "earlier"}}}))),
            &[],
        ),
        (with(failed(limit)), &["SnapshotLimit VolumeSnapshot ns/snap"]),
        (with(failed("x")), &["SnapshotFailed VolumeSnapshot ns/snap"]),
        (with(snapshot(json!({}))), &["SnapshotControllerSilent VolumeSnapshot ns/snap"]),
        (with(snapshot(json!({"metadata": {"creationTimestamp": JUST_NOW}}))), &[]),
        (
            with(snapshot(json!({"spec": {"volumeSnapshotClassName": "gone"}}))),
            &["SnapshotClassMissing VolumeSnapshot ns/snap"],
        ),
        (
            with(snapshot(json!({"spec": {"volumeSnapshotClassName": null}}))),
            &["SnapshotClassMissing VolumeSnapshot ns/snap"],
        ),
        // The snapshot of a claim of another driver is that driver's.
        (
            json!({"claims": [claim(json!({"spec": {"storageClassName": "nfs"}, "status": {"phase": "Bound"}}))], "snapshots": [failed("x")]}),
            &[],
        ),
    ]);
}

/// A name that a shell could misread gives no command, and a message of others is one line.
#[test]
fn volumes_hostile_names_and_messages_are_contained() {
    let evil = claim(json!({"metadata": {"name": "a; rm -rf /\u{1b}[2J"}, "spec": {"storageClassName": null}}));
    let all = findings(&observed(json!({"claims": [evil.clone()]})));
    assert_eq!(all.len(), 1);
    let named = findings(&observed(
        json!({"claims": [merged(evil, json!({"spec": {"storageClassName": "gone $(x)"}}))]}),
    ));
    assert!(
        named[0].message.contains("gone $(x)") && named[0].command == "kubectl get storageclass",
        "{named:?}"
    );
    let waits = findings(&observed(
        json!({"claims": [claim(json!({"metadata": {"name": "a b", "creationTimestamp": LONG_AGO},
        "spec": {"storageClassName": ""}}))]}),
    ));
    assert_eq!(waits[0].command, "", "{waits:?}");
}

#[test]
fn volumes_ten_thousand_claims_each_have_their_cause() {
    let claims: Vec<Value> = (0..10_000)
        .map(|i| claim(json!({"metadata": {"name": format!("c-{i}")}, "spec": {"storageClassName": "fast"}})))
        .collect();
    let events: Vec<Value> = (0..10_000)
        .map(|i| {
            event(
                "PersistentVolumeClaim",
                &format!("c-{i}"),
                "ProvisioningFailed",
                "(types.NoDiskSpace)",
            )
        })
        .collect();
    let all = findings(&observed(json!({"claims": claims, "events": events})));
    assert_eq!(all.len(), 10_000);
    assert!(all.iter().all(|finding| finding.cause == Cause::DatastoreFull));
}
