// SPDX-License-Identifier: Apache-2.0
//! Tests the findings about disabled features of the CSI driver, and about volumes of the in-tree driver.

use super::*;

/// The findings with their messages, each after the sentence of its cause.
fn details(changes: Value) -> Vec<String> {
    let all = findings(&observed(changes));
    let shown = |finding: &Finding| {
        let detail = finding.message.strip_prefix(finding.cause.about().what).unwrap_or(&finding.message);
        format!("{} {}{detail}", finding.cause, finding.object())
    };
    all.iter().map(shown).collect()
}

#[test]
fn volumes_built_in_volume_is_served_only_where_driver_and_kubelets_take_it() {
    let with = |more: Value| merged(json!({"volumes": [built_in()]}), more);
    let nodes = |all: &[Value]| with(json!({"csiNodes": all}));
    let (takes, not) = (
        csi_node("w-1", "kubernetes.io/vsphere-volume"),
        csi_node("w-2", "kubernetes.io/aws-ebs"),
    );
    let unregistered = merged(takes.clone(), json!({"spec": {"drivers": []}}));
    let lacks = "kubernetes.io/vsphere-volume in the annotation storage.alpha.kubernetes.io/migrated-plugins";
    let off = "the VDOConfig switches the feature csi-migration off";
    for (changes, expected) in [
        (with(json!({})), "BuiltInVolume PersistentVolume pv: [ds] a.vmdk".to_owned()),
        (
            with(json!({"features": {"csi-migration": true}})),
            "BuiltInVolume PersistentVolume pv: [ds] a.vmdk".to_owned(),
        ),
        (
            with(json!({"features": {"csi-migration": false}})),
            format!("BuiltInNotServed PersistentVolume pv: [ds] a.vmdk: {off}"),
        ),
        (
            with(json!({"drivers": []})),
            "DriverNotInstalled PersistentVolume pv: [ds] a.vmdk".to_owned(),
        ),
        (nodes(&[]), "NoNodeRegistered PersistentVolume pv: [ds] a.vmdk".to_owned()),
        (
            nodes(&[unregistered]),
            "NoNodeRegistered PersistentVolume pv: [ds] a.vmdk".to_owned(),
        ),
        (
            nodes(std::slice::from_ref(&not)),
            format!("BuiltInNotServed PersistentVolume pv: [ds] a.vmdk: no CSINode has {lacks}"),
        ),
        (
            nodes(&[takes, not]),
            format!(
                "BuiltInVolume PersistentVolume pv: [ds] a.vmdk; but CSI migration is not active on w-2, because no CSINode of this \
                 node has {lacks}"
            ),
        ),
    ] {
        assert_eq!(details(changes.clone()), [expected], "{changes}");
    }
    // Where it was not read, nothing is said of it.
    assert_rows(&[(with(json!({"csiNodes": null})), &[]), (with(json!({"drivers": null})), &[])]);
}

#[test]
fn volumes_that_need_a_feature_that_is_off_say_which() {
    let off = |feature: &str, more: Value| merged(json!({"features": {feature: false}}), more);
    let detail = |feature: &str| format!("the VDOConfig switches the feature {feature} off");
    let from = |kind: &str| json!({"claims": [claim(json!({"spec": {"dataSource": {"kind": kind, "name": "s"}}}))], "events": null});
    let built_in = json!({"claims": [claim(json!({}))], "classes": [class("fast", json!({"provisioner": "kubernetes.io/vsphere-volume"}))], "events": null});
    let taken = |more: Value| json!({"claims": [bound(json!({}))], "volumes": [volume(json!({}))], "snapshots": [snapshot(more)]});
    let pending = taken(json!({"status": {"error": {"message": "x"}}}));
    for (feature, changes, expected) in [
        (
            "block-volume-snapshot",
            from("VolumeSnapshot"),
            Some("PersistentVolumeClaim ns/data"),
        ),
        ("block-volume-snapshot", from("PersistentVolumeClaim"), None),
        ("csi-migration", from("VolumeSnapshot"), None),
        ("csi-migration", built_in.clone(), Some("PersistentVolumeClaim ns/data")),
        ("block-volume-snapshot", built_in, None),
        ("block-volume-snapshot", pending, Some("VolumeSnapshot ns/snap")),
        (
            "block-volume-snapshot",
            taken(json!({"metadata": {"creationTimestamp": JUST_NOW}})),
            Some("VolumeSnapshot ns/snap"),
        ),
        ("block-volume-snapshot", taken(json!({"status": {"readyToUse": true}})), None),
        ("csi-migration", taken(json!({"metadata": {"creationTimestamp": JUST_NOW}})), None),
    ] {
        let expected: Vec<String> = expected
            .iter()
            .map(|object| format!("FeatureOff {object}: {}", detail(feature)))
            .collect();
        assert_eq!(details(off(feature, changes.clone())), expected, "{feature} {changes}");
        let on = findings(&observed(merged(changes.clone(), json!({"features": {feature: true}}))));
        assert!(on.iter().all(|finding| finding.cause != Cause::FeatureOff), "{feature} {changes}");
    }
}

/// Only a volume that is attached needs it; one that is not grows without.
#[test]
fn volumes_that_grow_while_attached_need_online_expansion() {
    let sizes = |asked: &str, has: &str| {
        let claim = bound(json!({"spec": {"resources": {"requests": {"storage": asked}}}, "status": {"capacity": {"storage": has}}}));
        json!({"claims": [claim], "volumes": [volume(json!({}))], "attachments": [attachment(json!({"attached": true}))]})
    };
    let found = "FeatureOff PersistentVolumeClaim ns/data: the VDOConfig switches the feature online-volume-extend off; \
        the volume cannot grow while it is attached to node w-1";
    let off = |more: Value| merged(json!({"features": {"online-volume-extend": false}}), more);
    let detached = json!({"attachments": [attachment(json!({"attached": false}))]});
    for (changes, expected) in [
        (off(sizes("2Gi", "1Gi")), vec![found]),
        (off(sizes("2Gi", "2048Mi")), vec![]),
        (off(merged(sizes("2Gi", "1Gi"), detached)), vec![]),
        (off(merged(sizes("2Gi", "1Gi"), json!({"attachments": null}))), vec![]),
        (sizes("2Gi", "1Gi"), vec![]),
    ] {
        assert_eq!(details(changes.clone()), expected, "{changes}");
    }
}
