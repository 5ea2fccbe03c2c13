// SPDX-License-Identifier: Apache-2.0
//! Tests strategic merge patches, JSON patches, refused patches, and the record of the patched fields.

use super::*;
use serde_json::json;

fn chart() -> Vec<Value> {
    let controller = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "ctl", "namespace": "ns", "labels": {"app": "ctl"}},
        "spec": {"replicas": 3, "template": {"metadata": {"labels": {"app": "ctl"}}, "spec": {
            "nodeSelector": {"os": "linux"},
            "tolerations": [{"key": "a"}],
            "volumes": [{"name": "socket", "emptyDir": {}}],
            "initContainers": [{"name": "first", "image": "first:1"}],
            "containers": [
                {"name": "driver", "image": "driver:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]},
                {"name": "attacher", "image": "attacher:1", "args": ["--v=4"], "resources": {"limits": {"cpu": "1"}}},
            ],
        }}},
    });
    let node = |name: &str| json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": "ns"}, "spec": {"template": {"spec": {"containers": []}}}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "ctl", "namespace": "ns"}, "spec": {"ports": [{"port": 1}, {"port": 2}]}});
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "ctl"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ns"}});
    vec![controller, node("node"), node("node-windows"), service, role, secret]
}

fn patch(kind: &str, name: Option<&str>, change: Value) -> Value {
    let mut patch = json!({"target": {"driver": "d", "kind": kind}});
    if let Some(name) = name {
        patch["target"]["name"] = name.into();
    }
    let form = if change.is_array() { "jsonPatch" } else { "strategicMerge" };
    patch[form] = change;
    patch
}

fn controller(change: Value) -> Value {
    patch("Deployment", Some("ctl"), change)
}

/// A part of the pods of the controller.
fn pod(part: Value) -> Value {
    controller(json!({"spec": {"template": {"spec": part}}}))
}

fn applied(patches: &[Value]) -> Result<(Vec<Value>, Origins), String> {
    let spec: VDOConfigSpec = serde_json::from_value(json!({"patches": patches})).expect("a specification");
    let mut objects = chart();
    let result = apply(&mut objects, "d 1.0.0", &of_driver(&spec, "d"));
    result.map(|origins| (objects, origins)).map_err(|error| error.to_string())
}

fn refusal(patches: &[Value]) -> String {
    applied(patches).err().unwrap_or_else(|| "applied".into())
}

const POD: &str = "/spec/template/spec";

fn at(pointer: &str) -> String {
    format!("{POD}{pointer}")
}

#[test]
fn strategic_merge_merges_maps_by_key_and_lists_by_their_merge_key() {
    for (part, pointer, expected) in [
        (
            json!({"nodeSelector": {"disk": "ssd"}}),
            "/nodeSelector",
            json!({"os": "linux", "disk": "ssd"}),
        ),
        (json!({"nodeSelector": null}), "/nodeSelector", Value::Null),
        (json!({"tolerations": [{"key": "b"}]}), "/tolerations", json!([{"key": "b"}])),
        (
            json!({"containers": [{"name": "driver", "env": [{"name": "B", "value": "2"}, {"name": "C", "value": "3"}]}]}),
            "/containers/0/env",
            json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}]),
        ),
        (
            json!({"containers": [{"name": "driver", "env": [{"name": "A", "$patch": "delete"}]}]}),
            "/containers/0/env",
            json!([{"name": "B", "value": "1"}]),
        ),
        (
            json!({"containers": [{"name": "attacher", "env": [{"name": "C", "value": "3"}], "args": ["--v=5"]}]}),
            "/containers/1",
            json!({"name": "attacher", "image": "attacher:1", "args": ["--v=5"], "resources": {"limits": {"cpu": "1"}}, "env": [{"name": "C", "value": "3"}]}),
        ),
        (
            json!({"initContainers": [{"name": "first", "resources": {"limits": {"cpu": "2"}}}]}),
            "/initContainers/0/resources/limits/cpu",
            json!("2"),
        ),
        (
            json!({"volumes": [{"name": "more", "emptyDir": {}}]}),
            "/volumes",
            json!([{"name": "socket", "emptyDir": {}}, {"name": "more", "emptyDir": {}}]),
        ),
    ] {
        let (objects, origins) = applied(&[pod(part.clone())]).expect("it applies");
        let found = objects[0].pointer(&at(pointer)).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{part}");
        let id = object_id(&objects[0]).expect("an id");
        assert_eq!(origins.of(&id), ["spec.patches[0]"], "{part}");
        assert_eq!(objects[1..], chart()[1..], "other objects changed: {part}");
    }
}

#[test]
fn json_patch_makes_the_operations_of_rfc_6902_one_after_the_other() {
    for (operations, pointer, expected) in [
        (
            json!([{"op": "add", "path": at("/nodeSelector/disk"), "value": "ssd"}]),
            "/nodeSelector/disk",
            json!("ssd"),
        ),
        (
            json!([{"op": "add", "path": at("/tolerations/-"), "value": {"key": "b"}}]),
            "/tolerations/1/key",
            json!("b"),
        ),
        (
            json!([{"op": "replace", "path": at("/containers/1/args/0"), "value": "--v=5"}]),
            "/containers/1/args",
            json!(["--v=5"]),
        ),
        (
            json!([{"op": "remove", "path": at("/containers/1/resources")}]),
            "/containers/1/resources",
            Value::Null,
        ),
        (
            json!([{"op": "test", "path": at("/containers/0/name"), "value": "driver"}, {"op": "remove", "path": at("/containers/0/env/0")}]),
            "/containers/0/env",
            json!([{"name": "B", "value": "1"}]),
        ),
        (
            json!([{"op": "copy", "from": at("/nodeSelector/os"), "path": at("/nodeSelector/a~1b")}]),
            "/nodeSelector",
            json!({"os": "linux", "a/b": "linux"}),
        ),
        (
            json!([{"op": "move", "from": at("/nodeSelector/os"), "path": at("/nodeSelector/old")}]),
            "/nodeSelector",
            json!({"old": "linux"}),
        ),
    ] {
        let (objects, _) = applied(&[controller(operations.clone())]).expect("it applies");
        let found = objects[0].pointer(&at(pointer)).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{operations}");
    }
}

#[test]
fn patch_that_does_not_apply_is_refused_and_says_what_there_is() {
    let json = |operation: Value| controller(json!([operation]));
    let test = json!([{"op": "test", "path": at("/containers/0/name"), "value": "x"}]);
    for (refused, expected) in [
        (
            patch("Deployment", Some("gone*"), json!({"spec": {}})),
            "spec.patches[0] does not apply to d 1.0.0: the chart has no Deployment gone*; it has ctl",
        ),
        (
            patch("StatefulSet", None, json!({"spec": {}})),
            "spec.patches[0] does not apply to d 1.0.0: the chart has no StatefulSet; it has ClusterRole, DaemonSet, Deployment, Secret, Service",
        ),
        (
            json(json!({"op": "replace", "path": "/spec/none", "value": 1})),
            "jsonPatch[0]: there is no /spec/none",
        ),
        (
            json(json!({"op": "remove", "path": at("/containers/7")})),
            "jsonPatch[0]: there is no /spec/template/spec/containers/7",
        ),
        (
            json(json!({"op": "add", "path": "/spec/a/b", "value": 1})),
            "jsonPatch[0]: there is no /spec/a/b",
        ),
        (
            json(json!({"op": "add", "path": "/spec/a"})),
            "jsonPatch[0]: the operation has no value",
        ),
        (
            json(json!({"op": "copy", "path": "/spec/a", "from": "/spec/b"})),
            "jsonPatch[0]: there is no value at the path that the field \"from\" of the operation contains",
        ),
        (
            controller(test),
            "jsonPatch[0]: the value at /spec/template/spec/containers/0/name differs from the value of the operation test",
        ),
        (
            pod(json!({"dnsPolicy": null})),
            "there is no spec.template.spec.dnsPolicy to remove",
        ),
        (
            pod(json!({"containers": [{"name": "driver", "env": [{"name": "Z", "$patch": "delete"}]}]})),
            "there is no spec.template.spec.containers[driver].env[Z] to remove",
        ),
        (
            pod(json!({"containers": [{"image": "x"}]})),
            "an item of spec.template.spec.containers has no name",
        ),
        (pod(json!({"nodeSelector": ["a"]})), "spec.template.spec.nodeSelector is a map"),
        (
            controller(json!({"spec": {"replicas": {"a": 1}}})),
            "spec.replicas is no map or list",
        ),
        (
            pod(json!({"$setElementOrder/containers": []})),
            "the only supported directive is $patch: delete",
        ),
        (
            pod(json!({"containers": [{"name": "driver", "$patch": "replace"}]})),
            "the only supported directive is $patch: delete",
        ),
        (controller(json!({"spec": {"template": {}}})), "strategicMerge writes no field"),
        (controller(json!({})), "it needs either jsonPatch or strategicMerge"),
    ] {
        let found = refusal(std::slice::from_ref(&refused));
        assert!(found.contains(expected), "{refused}\n{found}\n{expected}");
    }
}

#[test]
fn patch_never_changes_identity_ownership_or_the_set_of_containers() {
    let metadata = |part: Value| controller(json!({"metadata": part}));
    let json = |op: &str, path: &str| controller(json!([{"op": op, "path": path, "value": "x"}]));
    let owned = "/metadata/labels/app.kubernetes.io~1managed-by";
    let ours = "is set only by the operator";
    for (refused, expected) in [
        (controller(json!({"kind": "DaemonSet"})), "no patch may change kind"),
        (controller(json!({"apiVersion": "v1"})), "no patch may change apiVersion"),
        (controller(json!({"status": {"replicas": 1}})), "no patch may change status"),
        (metadata(json!({"name": "x"})), "no patch may change metadata.name"),
        (metadata(json!({"namespace": "x"})), "no patch may change metadata.namespace"),
        (metadata(json!({"finalizers": ["x/y"]})), "no patch may change metadata.finalizers"),
        (controller(json!({"metadata": null})), "no patch may replace metadata"),
        (json("remove", "/metadata"), "no patch may replace metadata"),
        (json("remove", "/metadata/name"), "no patch may change metadata.name"),
        (json("replace", ""), "no patch may replace the whole object"),
        (json("remove", owned), ours),
        (json("add", owned), ours),
        (
            controller(json!([{"op": "move", "from": owned, "path": "/metadata/labels/x"}])),
            ours,
        ),
        (metadata(json!({"labels": {"vdo.vmware.com/driver": "x"}})), ours),
        (metadata(json!({"labels": {"applyset.kubernetes.io/part-of": "x"}})), ours),
        (metadata(json!({"annotations": {"vdo.vmware.com/applied": "x"}})), ours),
        (metadata(json!({"annotations": {"revision.vdo.vmware.com/x": "x"}})), ours),
        (
            controller(json!([{"op": "add", "path": "/metadata/labels", "value": {"app.kubernetes.io/version": "9"}}])),
            ours,
        ),
        (
            controller(json!({"spec": {"template": {"metadata": {"annotations": {"vdo.vmware.com/config-checksum": "x"}}}}})),
            ours,
        ),
        (
            pod(json!({"containers": [{"name": "attacher", "$patch": "delete"}]})),
            "container attacher of the chart would be removed",
        ),
        (
            json("remove", &at("/containers/1")),
            "container attacher of the chart would be removed",
        ),
        (
            json("remove", &at("/initContainers")),
            "container first of the chart would be removed",
        ),
        (json("remove", "/spec/template"), "of the chart would be removed"),
        (
            json("replace", &at("/containers/1/name")),
            "container attacher of the chart would be removed",
        ),
        (
            pod(json!({"containers": [{"name": "csi-attacher", "image": "x"}]})),
            "the chart has no container csi-attacher; it has attacher, driver, first",
        ),
        (
            patch("ClusterRole", None, json!({"rules": []})),
            "an administrator creates objects of this kind",
        ),
        (patch("Secret", None, json!({"data": {"a": "b"}})), "Secrets are not patched"),
    ] {
        let found = refusal(std::slice::from_ref(&refused));
        assert!(found.contains(expected), "{refused}\n{found}\n{expected}");
    }
}

#[test]
fn patches_collide_where_both_write_a_field_with_another_value() {
    let replicas = |count: i64| controller(json!({"spec": {"replicas": count}}));
    let json = |op: &str, path: &str, value: Value| controller(json!([{"op": op, "path": path, "value": value}]));
    let env = |name: &str, value: &str| pod(json!({"containers": [{"name": "driver", "env": [{"name": name, "value": value}]}]}));
    let add = |value: &str| json("add", &at("/containers/0/env/-"), json!({"name": "C", "value": value}));
    let collides = |path: &str| format!("spec.patches[0] writes another value to {path}; let only one of the two patches write this field");
    let replicas_path = collides("spec.replicas");
    let env_path = collides("spec.template.spec.containers[driver].env[C].value");
    for (one, other, expected) in [
        (replicas(2), replicas(1), &*replicas_path),
        // What the chart has is written, too.
        (replicas(3), replicas(1), &replicas_path),
        (replicas(2), json("replace", "/spec/replicas", json!(1)), &replicas_path),
        (replicas(2), json("replace", "/spec/replicas", json!(2)), "applied"),
        (env("C", "1"), env("C", "2"), &env_path),
        (env("C", "1"), add("2"), &env_path),
        (env("C", "1"), env("D", "2"), "applied"),
        (env("C", "1"), env("A", "2"), "applied"),
        (
            pod(json!({"nodeSelector": {"disk": "ssd"}})),
            pod(json!({"nodeSelector": null})),
            &collides("spec.template.spec.nodeSelector"),
        ),
        (
            pod(json!({"tolerations": [{"key": "b"}]})),
            json("add", &at("/tolerations/-"), json!({"key": "c"})),
            &collides(r#"spec.template.spec.tolerations[{"key":"c"}].key"#),
        ),
        (
            json("add", &at("/tolerations/-"), json!({"key": "b"})),
            json("add", &at("/tolerations/-"), json!({"key": "c"})),
            "applied",
        ),
        (
            json("replace", &at("/nodeSelector"), json!({"disk": "ssd"})),
            pod(json!({"nodeSelector": {"os": "windows"}})),
            &collides("spec.template.spec.nodeSelector.os"),
        ),
        (
            patch("Service", None, json!({"spec": {"ports": [{"port": 1, "name": "a"}]}})),
            patch("Service", None, json!({"spec": {"ports": [{"port": 2, "name": "b"}]}})),
            "applied",
        ),
    ] {
        let found = refusal(&[one.clone(), other.clone()]);
        let shown = found.strip_prefix("spec.patches[1] does not apply to ").unwrap_or(&found);
        assert!(shown.ends_with(expected), "{one}\n{other}\n{found}\n{expected}");
    }
}

#[test]
fn patches_of_a_driver_are_for_its_objects_by_kind_and_name() {
    let label = |kind: &str, name: Option<&str>| patch(kind, name, json!({"metadata": {"labels": {"team": "storage"}}}));
    for (one, expected) in [
        (label("DaemonSet", None), vec!["node", "node-windows"]),
        (label("DaemonSet", Some("node")), vec!["node"]),
        (label("DaemonSet", Some("node*")), vec!["node", "node-windows"]),
        (label("DaemonSet", Some("*-win*s")), vec!["node-windows"]),
        (label("Deployment", Some("*")), vec!["ctl"]),
    ] {
        let (objects, origins) = applied(std::slice::from_ref(&one)).expect("it applies");
        let labelled: Vec<&str> = objects
            .iter()
            .filter(|object| object["metadata"]["labels"]["team"] == "storage")
            .filter_map(|object| object["metadata"]["name"].as_str())
            .collect();
        assert_eq!(labelled, expected, "{one}");
        assert_eq!(origins.0.len(), expected.len(), "{one}");
    }
    let spec = json!({"patches": [label("DaemonSet", None)]});
    let spec: VDOConfigSpec = serde_json::from_value(spec).expect("a specification");
    assert_eq!(of_driver(&spec, "other"), []);
    let lost = of_no_driver(&spec, &["other".to_owned()].into());
    assert_eq!(
        lost.iter().map(|(_, error)| error.to_string()).collect::<Vec<_>>(),
        ["spec.patches[0] does not apply to d: the VDOConfig requests no driver of this name; it requests other"]
    );
    assert!(of_no_driver(&spec, &["d".to_owned()].into()).is_empty());
}

#[test]
fn origin_of_a_field_is_the_patch_that_wrote_it() {
    let (objects, origins) = applied(&[
        controller(json!({"spec": {"replicas": 2}})),
        pod(json!({"containers": [{"name": "driver", "env": [{"name": "C", "value": "1"}]}]})),
    ])
    .expect("they apply");
    let id = object_id(&objects[0]).expect("an id");
    assert_eq!(origins.of(&id), ["spec.patches[0]", "spec.patches[1]"]);
    for (path, expected) in [
        ("spec.replicas", vec!["spec.patches[0]"]),
        ("spec.template.spec.containers[driver].env[C]", vec!["spec.patches[1]"]),
        ("spec.other", vec!["spec.patches[0]", "spec.patches[1]"]),
    ] {
        assert_eq!(origins.of_field(&id, path), expected, "{path}");
    }
    assert!(origins.of(&object_id(&objects[1]).expect("an id")).is_empty());
}
