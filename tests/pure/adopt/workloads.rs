// SPDX-License-Identifier: Apache-2.0
//! What was set on workloads, for every version of both charts.

use super::world::{World, chart, secret, spec, versions};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};
use vdo_api::api::VDOConfigSpec;
use vdo_core::chart::values::merge;
use vdo_core::chart::{self, Chart, Context, accepted};
use vdo_core::drivers;

const CSI: &[u8] = b"[Global]\ncluster-id = c\n[VirtualCenter \"vc\"]\nuser = u@d\npassword = p\n";
const CPI: &str = "vcenter: {a: {server: vc, user: u, password: p}}\n";

/// What people set on the CSI driver, each as values of the chart.
fn of_csi() -> Vec<Value> {
    let resources = json!({"requests": {"cpu": "7m"}, "limits": {"memory": "1Gi"}});
    vec![
        json!({"imagePullSecrets": ["pull", "more"]}),
        json!({"images": {"registry": "mirror.example.com:5000/vsphere"}}),
        json!({"logLevel": "DEVELOPMENT"}),
        json!({"kubeletPath": "/data/kubelet"}),
        json!({"featureStates": {"csi-migration": true}}),
        json!({"featureStates": {"online-volume-extend": false}}),
        json!({"extraFeatureStates": {"own-state": true}}),
        json!({"snapshots": {"enabled": false}}),
        json!({"proxy": {"http": "http://proxy:3128", "https": "http://proxy:3129", "no": "10.0.0.0/8"}}),
        json!({"topology": {"enabled": true}}),
        json!({"topology": {"enabled": true, "strict": false}}),
        json!({"windows": {"enabled": false}}),
        json!({"controller": {"replicas": 1}}),
        json!({"controller": {"spread": "none"}}),
        json!({"controller": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "infra", "operator": "Exists"}]}]}}}}}),
        json!({"controller": {"nodeSelector": {"pool": "infra"}}}),
        json!({"controller": {"tolerations": [{"key": "infra", "operator": "Exists"}]}}),
        json!({"controller": {"sidecarLogLevel": 6}}),
        json!({"controller": {"defaultFsType": "xfs"}}),
        json!({"controller": {"fullSyncMinutes": 45}}),
        json!({"controller": {"env": {"driver": {"GOGC": "50"}, "syncer": {"GOGC": "60", "LOGGER_LEVEL": "DEVELOPMENT"}}}}),
        json!({"controller": {"resources": {"driver": resources.clone(), "attacher": resources.clone(), "livenessProbe": resources.clone()}}}),
        json!({"node": {"nodeSelector": {"storage": "yes"}}}),
        json!({"node": {"tolerations": [{"operator": "Exists", "effect": "PreferNoSchedule"}]}}),
        json!({"node": {"env": {"NODEGETINFO_WATCH_TIMEOUT_MINUTES": "2"}}}),
        json!({"node": {"resources": {"driver": resources.clone(), "registrar": resources}}}),
    ]
}

/// The same on the cloud provider.
fn of_cpi() -> Vec<Value> {
    vec![
        json!({"imagePullSecrets": ["pull"]}),
        json!({"images": {"registry": "mirror.example.com"}}),
        json!({"logLevel": 4}),
        json!({"env": {"ENABLE_ALPHA_DUAL_STACK": "true", "GOGC": "50"}}),
        json!({"proxy": {"https": "http://proxy:3128"}}),
        json!({"skipNodeDeletion": true}),
        json!({"nodeSelector": {"pool": "infra"}}),
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "infra", "operator": "Exists"}]}]}}}}),
        json!({"tolerations": [{"key": "node-role.kubernetes.io/etcd", "operator": "Exists", "effect": "NoExecute"}]}),
        json!({"resources": {"requests": {"cpu": "300m", "memory": "1Gi"}}}),
    ]
}

fn rendered(chart: &Chart, values: &Value) -> Vec<Value> {
    chart::render(chart, values, &Context::default()).unwrap()
}

/// Workloads and feature states.
fn shown(objects: Vec<Value>) -> Vec<Value> {
    let pods = |object: &Value| object.pointer("/spec/template").is_some() || object["kind"] == "ConfigMap";
    let mut shown: Vec<Value> = objects.into_iter().filter(pods).collect();
    for object in &mut shown {
        // A feature state that is not there is off.
        if let Some(states) = object["data"].as_object_mut() {
            states.retain(|_, state| state == "true");
            states.sort_keys();
        }
    }
    let containers = shown
        .iter_mut()
        .filter_map(|object| object.pointer_mut("/spec/template/spec/containers")?.as_array_mut());
    for container in containers.flatten() {
        // The order of variables means nothing where none refers to another.
        if let Some(variables) = container["env"].as_array_mut() {
            variables.sort_by_key(|variable| variable["name"].to_string());
        }
    }
    shown
}

/// Installs a driver with these values, reads it, and renders what was read.
fn taken_along(driver: &'static str, chart: &Chart, values: &Value) -> (Vec<Value>, Value, Vec<String>) {
    // As the operator renders it, but for the values in question.
    let mut all = drivers::values(&VDOConfigSpec::default(), chart, None);
    merge(&mut all, values);
    let before = rendered(chart, &all);
    let world = World::default().with_driver(driver, chart.clone(), before.clone());
    let world = match driver {
        "vsphere-csi" => world.with(secret("vmware-system-csi", "vsphere-config-secret", &[("csi-vsphere.conf", CSI)])),
        _ => world.with(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "vsphere-cloud-config", "namespace": "kube-system"}, "data": {"vsphere.conf": CPI}})),
    };
    let adoption = world.adopted().unwrap();
    let found = spec(&adoption);
    let typed: VDOConfigSpec = serde_json::from_value(found.clone()).unwrap();
    let after = rendered(chart, &drivers::values(&typed, chart, None));
    let losses: Vec<String> = adoption
        .losses
        .into_iter()
        .map(|loss| format!("{}: {}", loss.key, loss.because))
        .collect();
    for (after, before) in shown(after).iter().zip(&shown(before.clone())) {
        let diff = similar::TextDiff::from_lines(&format!("{before:#}"), &format!("{after:#}"))
            .unified_diff()
            .to_string();
        assert_eq!(diff, "", "{} with {values}: {found} {losses:?}", chart.metadata.version);
    }
    (before, found, losses)
}

/// What is as the chart has it is not setting.
#[test]
fn adopted_workloads_of_each_version_without_settings_leave_an_empty_specification() {
    for version in versions("vsphere-csi") {
        let (_, spec, losses) = taken_along("vsphere-csi", &chart("vsphere-csi", &version), &json!({}));
        assert_eq!(
            (spec, losses),
            (json!({"storageProvider": {"clusterId": "c"}}), vec![]),
            "{version}"
        );
    }
    for version in versions("vsphere-cpi") {
        let (_, spec, losses) = taken_along("vsphere-cpi", &chart("vsphere-cpi", &version), &json!({}));
        assert_eq!((spec, losses), (json!({"cloudProvider": {}}), vec![]), "{version}");
    }
}

/// Any settings together come back, in every version.
#[test]
fn adopted_workloads_of_each_version_with_random_settings_render_the_same() {
    let mut runner = TestRunner::deterministic();
    for (driver, settings) in [("vsphere-csi", of_csi()), ("vsphere-cpi", of_cpi())] {
        let some = proptest::sample::subsequence(settings, 1..6);
        for version in versions(driver) {
            let chart = chart(driver, &version);
            let mut values = Value::Object(Map::new());
            for setting in some.new_tree(&mut runner).unwrap().current() {
                merge(&mut values, &setting);
            }
            assert!(accepted(&chart, &values).is_ok(), "{version} {values}");
            let (_, spec, losses) = taken_along(driver, &chart, &values);
            assert_eq!(losses, Vec::<String>::new(), "{version} {values} {spec}");
        }
    }
}

/// Each setting alone, in its field and nowhere else.
#[test]
fn adopted_workloads_each_setting_is_found_in_its_field() {
    let mut all = String::new();
    for (driver, settings) in [("vsphere-csi", of_csi()), ("vsphere-cpi", of_cpi())] {
        let chart = super::world::newest(driver);
        for values in settings {
            let (_, spec, losses) = taken_along(driver, &chart, &values);
            all.push_str(&format!("{values}\n  {spec}\n"));
            assert_eq!(losses, Vec::<String>::new(), "{values}");
        }
    }
    insta::assert_snapshot!(all);
}

/// What no field and no value has is listed, never with a value.
#[test]
fn adopted_workloads_what_no_value_has_is_lost_by_name() {
    let chart = super::world::newest("vsphere-csi");
    let mut objects = rendered(&chart, &json!({}));
    for object in &mut objects {
        if object["kind"] != "Deployment" {
            continue;
        }
        let pod = &mut object["spec"]["template"]["spec"];
        pod["hostAliases"] = json!([{"ip": "192.0.2.1", "hostnames": ["vcenter"]}]);
        pod["initContainers"] = json!([{"name": "wait", "image": "busybox"}]);
        let containers = pod["containers"].as_array_mut().unwrap();
        containers.push(json!({"name": "logs", "image": "fluent-bit"}));
        for container in containers.iter_mut() {
            let name = container["name"].as_str().unwrap().to_owned();
            let args = container["args"].as_array_mut();
            match name.as_str() {
                "csi-attacher" => args.unwrap().push(json!("--http-endpoint=:8080")),
                "vsphere-csi-controller" => {
                    let env = container["env"].as_array_mut().unwrap();
                    env.push(json!({"name": "VSPHERE_PASSWORD", "value": "hunter2"}));
                    env.push(json!({"name": "HTTPS_PROXY", "value": "http://u:hunter2@proxy:3128"}));
                    env.push(json!({"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}));
                    container["image"] = "rancher/mirrored-cloud-provider-vsphere-csi-release-driver:v3.7.3".into();
                }
                "csi-resizer" => container["env"]
                    .as_array_mut()
                    .unwrap()
                    .push(json!({"name": "GOGC", "value": "50"})),
                _ => {}
            }
        }
    }
    let world = World::default().with_driver("vsphere-csi", chart, objects).with(secret(
        "vmware-system-csi",
        "vsphere-config-secret",
        &[("csi-vsphere.conf", CSI)],
    ));
    let text = super::world::yaml(&world.adopted().unwrap());
    assert!(!text.contains("hunter2"), "{text}");
    let lost: Vec<&str> = text.lines().filter(|line| line.starts_with("LOST")).collect();
    insta::assert_snapshot!(lost.join("\n"));
}

/// Workloads out of the way say nothing while others run; a node plugin for Windows without nodes does.
#[test]
fn adopted_workloads_without_pods_count_on_windows_alone() {
    let chart = super::world::newest("vsphere-csi");
    let mut objects = rendered(&chart, &json!({}));
    let mut second = objects.iter().find(|object| object["kind"] == "Deployment").unwrap().clone();
    second["metadata"]["name"] = "old".into();
    second["spec"]["replicas"] = 0.into();
    second["spec"]["template"]["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    objects.insert(0, second);
    for object in objects
        .iter_mut()
        .filter(|object| object["metadata"]["name"] == "vsphere-csi-node-windows")
    {
        object["metadata"]["generation"] = 1.into();
        object["status"] = json!({"observedGeneration": 1, "desiredNumberScheduled": 0, "currentNumberScheduled": 0});
    }
    let world = World::default().with_driver("vsphere-csi", chart, objects).with(secret(
        "vmware-system-csi",
        "vsphere-config-secret",
        &[("csi-vsphere.conf", CSI)],
    ));
    assert_eq!(spec(&world.adopted().unwrap()), json!({"storageProvider": {"clusterId": "c"}}));
}

/// Upstream's manifests want three replicas, each on a node of its own: on a smaller control plane some never run, and are no setting.
#[test]
fn adopted_workloads_replicas_without_a_node_are_not_taken_along() {
    let replicas = |live: i64, control_planes: u32, is_spread: bool| {
        let chart = super::world::newest("vsphere-csi");
        let mut objects = rendered(&chart, &json!({"controller": {"replicas": live}}));
        for object in objects.iter_mut().filter(|object| object["kind"] == "Deployment" && !is_spread) {
            object["spec"]["template"]["spec"]["affinity"]
                .as_object_mut()
                .unwrap()
                .shift_remove("podAntiAffinity");
        }
        let mut world = World::default().with_driver("vsphere-csi", chart, objects).with(secret(
            "vmware-system-csi",
            "vsphere-config-secret",
            &[("csi-vsphere.conf", CSI)],
        ));
        world.control_planes = Some(control_planes);
        spec(&world.adopted().unwrap())
            .pointer("/storageProvider/values/controller/replicas")
            .cloned()
    };
    for (live, control_planes, is_spread, expected) in [
        (3, 1, true, None),
        (3, 2, true, None),
        (3, 3, true, None),
        (5, 3, true, None),
        (1, 3, true, Some(json!(1))),
        (1, 1, true, None),
        (3, 1, false, Some(json!(3))),
    ] {
        assert_eq!(
            replicas(live, control_planes, is_spread),
            expected,
            "{live} on {control_planes}, spread: {is_spread}"
        );
    }
}
