// SPDX-License-Identifier: Apache-2.0
//! Tests of `fields.rs`: no secret in an object gets into a support bundle, and the lists have every field of VDO's own kinds.
use super::*;
use serde_json::json;
use vdo_core::drivers::CSI_DRIVER;

/// What is planted in every place that is in no list.
const PLANTED: &str = "huntertwo-correct-horse";

fn object(value: Value) -> Object {
    Object::new(value).expect("an object")
}

fn of(kind: &str, fields: Value) -> Object {
    let mut value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": "n"}});
    for (key, content) in fields.as_object().expect("fields") {
        value[key] = content.clone();
    }
    object(value)
}

fn pods(spec: Value) -> Object {
    of("Deployment", json!({"spec": {"template": {"spec": spec}}}))
}

fn container(fields: Value) -> Object {
    pods(json!({"containers": [fields]}))
}

/// Every kind of place in which a secret was found in an object.
fn planted() -> Vec<Object> {
    let p = PLANTED;
    vec![
        container(json!({"args": ["--password", p]})),
        container(json!({"args": ["--v=4", format!("--vcenter-password={p}")]})),
        container(json!({"args": [format!("-p{p}")]})),
        container(json!({"args": ["-p", p]})),
        container(json!({"args": [format!("--unheard-of={p}")]})),
        container(json!({"args": ["--leader-election", p]})),
        container(json!({"args": [p]})),
        container(json!({"command": ["/bin/sh", "-c", format!("echo {p} | login")]})),
        container(json!({"command": [format!("/{p}/{p}/x=y {p}")]})),
        container(json!({"env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": p}]})),
        container(json!({"env": [{"name": "ENCRYPTION_KEY", "value": p}]})),
        container(json!({"env": [{"name": "SOMETHING", "value": p}]})),
        container(json!({"env": [{"name": "DATABASE_URL", "value": format!("postgres://u:{p}@db/x")}]})),
        container(json!({"env": [{"name": "HTTPS_PROXY", "value": format!("http://u:{p}@proxy:3128")}]})),
        container(json!({"livenessProbe": {"httpGet": {"path": "/", "httpHeaders": [{"name": "Authorization", "value": p}]}}})),
        container(json!({"readinessProbe": {"exec": {"command": ["check", "--token", p]}}})),
        container(json!({"startupProbe": {"httpGet": {"path": format!("/healthz?token={p}")}}})),
        container(json!({"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", p]}}}})),
        container(json!({"lifecycle": {"postStart": {"httpGet": {"path": format!("/{p}")}}}})),
        pods(json!({"volumes": [{"name": "v", "csi": {"driver": "other", "volumeAttributes": {"sas": p}}}]})),
        pods(json!({"volumes": [{"name": "v", "flexVolume": {"driver": "cifs", "options": {"password": p}}}]})),
        pods(json!({"volumes": [{"name": "v", "iscsi": {"iqn": p}}]})),
        pods(json!({"volumes": [{"name": "v", "azureFile": {"shareName": p}}]})),
        pods(json!({"initContainers": [{"name": "i", "env": [{"name": "A", "value": p}]}]})),
        of(
            "Deployment",
            json!({"spec": {"template": {"metadata": {"annotations": {"vault.example.com/token": p}}}}}),
        ),
        of(
            "Deployment",
            json!({"spec": {"template": {"metadata": {"labels": {"example.com/x": p}}}}}),
        ),
        of("Deployment", json!({"spec": {"unheardOf": {"deep": [p]}}})),
        of(
            "Pod",
            json!({"spec": {"containers": [{"name": "c", "args": [format!("--token={p}")]}]}}),
        ),
        of(
            "DaemonSet",
            json!({"metadata": {"name": "x", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": p}}}),
        ),
        of("ReplicaSet", json!({"metadata": {"name": "x", "managedFields": [{"manager": p}]}})),
        of(
            "Node",
            json!({"metadata": {"name": "x", "annotations": {"kubeadm.example.com/join-token": p}}}),
        ),
        of("Node", json!({"metadata": {"name": "x", "labels": {"example.com/licence": p}}})),
        of(
            "Node",
            json!({"spec": {"configSource": {"x": p}, "taints": [{"key": "a", "value": p, "effect": "NoSchedule"}]}}),
        ),
        of("Node", json!({"status": {"images": [{"names": [format!("r.example.com/{p}")]}]}})),
        of(
            "Node",
            json!({"status": {"volumesAttached": [{"name": format!("kubernetes.io/csi/smb^{p}")}], "volumesInUse": [format!("kubernetes.io/csi/smb^{p}")]}}),
        ),
        of(
            "CSINode",
            json!({"spec": {"drivers": [{"name": "other", "nodeID": p, "topologyKeys": [p]}]}}),
        ),
        of(
            "ConfigMap",
            json!({"data": {"vsphere.conf": format!("[Global]\npassword = \"{p}\"")}}),
        ),
        of("ConfigMap", json!({"data": {"x": p}, "binaryData": {"y": p}})),
        of("Secret", json!({"data": {"password": p}, "stringData": {"x": p}})),
        of(
            "Secret",
            json!({"metadata": {"name": "x", "annotations": {"example.com/plain": p}}}),
        ),
        of(
            "Service",
            json!({"metadata": {"name": "x", "annotations": {"dns.example.com/api-token": p}}}),
        ),
        of(
            "StorageClass",
            json!({"provisioner": CSI_DRIVER, "parameters": {"chap-password": p}}),
        ),
        of(
            "PersistentVolume",
            json!({"spec": {"csi": {"driver": CSI_DRIVER, "volumeAttributes": {"chap": p}}, "mountOptions": [p]}}),
        ),
        of(
            "VolumeAttachment",
            json!({"spec": {"attacher": CSI_DRIVER, "source": {"inlineVolumeSpec": {"x": p}}}, "status": {"attachmentMetadata": {"token": p}}}),
        ),
        of(
            "VDOConfig",
            json!({"spec": {"storageProvider": {"values": {"extra": {"clientSecret": p, "plain": p}}}}}),
        ),
        of(
            "VDOConfig",
            json!({"spec": {"drivers": [{"name": "d", "values": {"list": [p], "pin": 123_456_789}}]}}),
        ),
        of("VDOConfig", json!({"metadata": {"name": "x", "annotations": {"notes": p}}})),
        of("VsphereCloudConfig", json!({"metadata": {"name": "x", "labels": {"password": p}}})),
        of("Event", json!({"metadata": {"name": "x", "annotations": {"a": p}}})),
        of("Lease", json!({"metadata": {"name": "x", "annotations": {"a": p}}})),
        of("UnheardOf", json!({"spec": {"a": p}, "data": p})),
    ]
}

/// What leaves a cluster in a bundle of these objects.
fn bundled(objects: &[Object]) -> String {
    let mut withheld = Withheld::default();
    let included = objects.iter().filter(|object| is_included(object));
    let items: Vec<Value> = included.map(|object| shown(object, &mut withheld)).collect();
    let mask = super::super::mask::Mask::new(&[], withheld.values());
    mask.objects(json!({"items": items}))
}

#[test]
fn bundle_shows_of_objects_only_what_is_listed() {
    let all = planted();
    assert!(all.len() > 50, "{}", all.len());
    let left: Vec<String> = all
        .iter()
        .filter(|object| {
            let text = bundled(std::slice::from_ref(object));
            text.contains("hunter") || text.contains("123456789")
        })
        .map(|object| object.value().to_string())
        .collect();
    assert!(left.is_empty(), "{}:\n{}", left.len(), left.join("\n"));
    // All of them are found when nothing is left out.
    assert!(all.iter().all(|object| object.value().to_string().contains("hunter")));
}

/// What was withheld in an object is withheld in a log, too.
#[test]
fn bundle_looks_for_what_it_withheld_in_everything_else() {
    let mut withheld = Withheld::default();
    for object in [
        container(json!({"args": [format!("--unheard-of={PLANTED}")]})),
        container(json!({"name": "driver", "env": [{"name": "SOMETHING", "value": "driver"}, {"name": "OTHER", "value": "plain-words"}]})),
    ] {
        shown(&object, &mut withheld);
    }
    let mask = super::super::mask::Mask::new(&[], withheld.values());
    assert_eq!(
        mask.text(&format!("starting the driver with {PLANTED} and plain-words")),
        "starting the driver with ****** and ******"
    );
}

#[test]
fn bundle_has_volumes_of_our_drivers_only() {
    for (object, expected) in [
        (of("PersistentVolume", json!({"spec": {"csi": {"driver": CSI_DRIVER}}})), true),
        (
            of("PersistentVolume", json!({"spec": {"csi": {"driver": "smb.csi.k8s.io"}}})),
            false,
        ),
        (of("PersistentVolume", json!({"spec": {"nfs": {"server": "n"}}})), false),
        (of("VolumeAttachment", json!({"spec": {"attacher": CSI_DRIVER}})), true),
        (of("VolumeAttachment", json!({"spec": {"attacher": "smb.csi.k8s.io"}})), false),
        (of("StorageClass", json!({"provisioner": CSI_DRIVER})), true),
        (of("StorageClass", json!({"provisioner": "smb.csi.k8s.io"})), false),
        (of("Node", json!({})), true),
    ] {
        assert_eq!(is_included(&object), expected, "{}", object.value());
    }
}

/// What helps to find a fault is there.
#[test]
fn bundle_shows_what_helps() {
    let workload = object(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "x-controller", "namespace": "n", "generation": 3, "labels": {"app": "csi", "vdo.vmware.com/driver": "x"},
            "annotations": {"vdo.vmware.com/config-checksum": "abc", "deployment.kubernetes.io/revision": "2"}},
        "spec": {"replicas": 1, "template": {"spec": {"nodeName": "w-1", "containers": [{
            "name": "driver", "image": "r/x:1", "command": ["/csi"], "args": ["--v=4", "--timeout", "300s", "--leader-election"],
            "env": [{"name": "CSI_NAMESPACE", "value": "ns"}, {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
            "resources": {"limits": {"memory": "1Gi"}}, "livenessProbe": {"httpGet": {"path": "/healthz", "port": 9808}}}],
            "volumes": [{"name": "c", "secret": {"secretName": "vsphere-config-secret"}}]}}},
        "status": {"readyReplicas": 1, "conditions": [{"type": "Available", "status": "True"}]},
    }));
    assert_eq!(&shown(&workload, &mut Withheld::default()), workload.value());
    let secret = of("Secret", json!({"data": {"password": "aHVudGVyMg=="}, "type": "Opaque"}));
    assert_eq!(shown(&secret, &mut Withheld::default())["data"], json!({"password": MASKED}));
    let map = of("ConfigMap", json!({"data": {"k": "four"}}));
    assert_eq!(shown(&map, &mut Withheld::default())["data"], json!({"k": "(4 characters)"}));
}

/// Every flag and variable that a chart or the operator's own Deployment sets is in a list. Of a driver for which even the rights come on request
/// only the flags are: variables and commands of probes stay masked.
#[test]
fn bundle_knows_every_argument_and_variable_of_the_charts() {
    let mut unknown = BTreeSet::new();
    let mut seen = 0;
    let mut look = |value: &Value, masked: &[&str]| {
        let Ok(object) = Object::new(value.clone()) else { return };
        let shown = shown(&object, &mut Withheld::default());
        let Some(before) = allow::PODS
            .iter()
            .find(|(kind, _)| *kind == object.kind())
            .map(|(_, before)| *before)
        else {
            return;
        };
        let place = format!("/{}spec", before.replace('.', "/"));
        for list in ["containers", "initContainers"] {
            let of = |value: &Value| {
                value
                    .pointer(&format!("{place}/{list}"))
                    .and_then(Value::as_array)
                    .cloned()
                    .unwrap_or_default()
            };
            for (was, is) in of(value).iter().zip(of(&shown)) {
                seen += 1;
                for field in ["args", "command", "env", "livenessProbe", "readinessProbe"] {
                    if was[field] != is[field] && !masked.contains(&field) {
                        unknown.insert(format!("{} -> {}", was[field], is[field]));
                    }
                }
            }
        }
    };
    for (driver, source) in vdo_source::fetch::embedded::sources() {
        let masked: &[&str] = match vdo_core::drivers::has_rights_on_request(&driver) {
            true => &["env", "livenessProbe"],
            false => &[],
        };
        for version in source.versions() {
            let chart = vdo_core::chart::open(&vdo_core::chart::package(&source, &version).expect("a package")).expect("a chart");
            for object in vdo_core::chart::render(&chart, &Value::Null, &vdo_core::chart::Context::default()).expect("objects") {
                look(&object, masked);
            }
        }
    }
    for object in vdo_api::yaml::load_all(include_str!("../../../../../deploy/operator.yaml")).expect("objects") {
        look(&object, &[]);
    }
    assert!(seen > 20, "{seen}");
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// Every field that the definition of a kind of ours has is judged: it is in the list of its kind, or it is named here.
#[test]
fn bundle_lists_every_field_of_our_kinds() {
    use kube::CustomResourceExt as _;
    let kinds = [
        ("VDOConfig", vdo_api::api::VDOConfig::crd()),
        ("VsphereCloudConfig", vdo_api::api::VsphereCloudConfig::crd()),
        ("CompatibilityConfig", vdo_api::api::CompatibilityConfig::crd()),
    ];
    for (kind, definition) in kinds {
        let definition = serde_json::to_value(definition).expect("a definition");
        let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let mut missing = Vec::new();
        judge(&KINDS[kind].below["spec"], spec, "spec", &mut missing);
        assert!(missing.is_empty(), "{kind}: {missing:?}");
    }
}

fn judge(fields: &Fields, schema: &Value, path: &str, missing: &mut Vec<String>) {
    if fields.how.is_some() {
        return;
    }
    let of = schema["items"].get("properties").or_else(|| schema.get("properties"));
    for (name, below) in of.and_then(Value::as_object).into_iter().flatten() {
        match fields.below.get(name.as_str()) {
            Some(fields) => judge(fields, below, &format!("{path}.{name}"), missing),
            None => missing.push(format!("{path}.{name}")),
        }
    }
}
