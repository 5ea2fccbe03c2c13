// SPDX-License-Identifier: Apache-2.0
//! Values beyond the defaults: that each reaches its places in every version, and nothing else.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a failing test should stop where it fails"
)]

use serde_json::{Value, json};
use std::sync::LazyLock;
use vdo_core::chart::{self, Chart, Context};

use crate::fixture::{chain, chart, find, render, source};

pub static CSI: LazyLock<Chart> = LazyLock::new(|| chart("vsphere-csi", "3.7.3"));
static CPI: LazyLock<Chart> = LazyLock::new(|| chart("vsphere-cpi", "1.36.0"));

pub fn refused(chart: &Chart, values: Value) -> String {
    chain(&chart::render(chart, &values, &Context::default()).unwrap_err())
}

fn pod<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    &find(objects, kind, name)["spec"]["template"]["spec"]
}

fn container<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    pod["containers"].as_array().unwrap().iter().find(|c| c["name"] == name)
}

/// The values of all variables of that name: more than one would be a mistake.
fn variable(container: Option<&Value>, name: &str) -> Vec<Value> {
    let all = container.unwrap()["env"].as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|v| v["name"] == name).map(|v| v["value"].clone()).collect()
}

fn controller(version: &Chart, values: Value) -> Value {
    pod(&render(version, values), "Deployment", "vsphere-csi-controller").clone()
}

#[test]
fn webhook_value_without_ca_bundle_is_rejected() {
    assert!(refused(&CSI, json!({"webhook": {"enabled": true}})).contains("webhook.caBundle is empty"));
}

#[test]
fn webhook_value_each_version_renders_rules_and_placement() {
    let rules = |version: &str| {
        let objects = render(
            &chart("vsphere-csi", version),
            json!({"webhook": {"enabled": true, "caBundle": "Q0E="}}),
        );
        let found = find(&objects, "ValidatingWebhookConfiguration", "validation.csi.vsphere.vmware.com");
        let rules = found["webhooks"][0]["rules"].as_array().unwrap().len();
        let pod = pod(&objects, "Deployment", "vsphere-csi-webhook");
        let hardened = !pod["containers"][0]["securityContext"].is_null();
        (rules, hardened, !pod["nodeSelector"].is_null(), !pod["affinity"].is_null())
    };
    assert_eq!(rules("3.0.1"), (2, false, true, false));
    assert_eq!(rules("3.1.0"), (2, true, true, false));
    assert_eq!(rules("3.2.0"), (3, true, true, false));
    assert_eq!(rules("3.3.0"), (3, true, false, true));
}

#[test]
fn webhook_values_reach_their_fields() {
    let values = json!({
        "namespace": "storage", "images": {"registry": "mirror.example"},
        "webhook": {"enabled": true, "caBundle": "Q0E=", "secretName": "own", "failurePolicy": "Ignore", "replicas": 2, "resources": {"limits": {"memory": "64Mi"}}},
    });
    let objects = render(&CSI, values);
    let configuration = &find(&objects, "ValidatingWebhookConfiguration", "validation.csi.vsphere.vmware.com")["webhooks"][0];
    assert_eq!(configuration["clientConfig"]["caBundle"], "Q0E=");
    assert_eq!(configuration["clientConfig"]["service"]["namespace"], "storage");
    assert_eq!(configuration["failurePolicy"], "Ignore");
    assert_eq!(find(&objects, "Deployment", "vsphere-csi-webhook")["spec"]["replicas"], 2);
    let pod = pod(&objects, "Deployment", "vsphere-csi-webhook");
    assert_eq!(pod["volumes"][1]["secret"]["secretName"], "own");
    assert_eq!(pod["containers"][0]["image"], "mirror.example/csi-vsphere/syncer:v3.7.3");
    assert_eq!(pod["containers"][0]["resources"]["limits"]["memory"], "64Mi");
}

#[test]
fn control_plane_labels_value_sets_csi_node_affinity() {
    let renamed = json!({"controller": {"controlPlaneLabels": ["own/manager", "own/master"], "spread": "preferred"}});
    let exists = |key: &str| json!({"matchExpressions": [{"key": key, "operator": "Exists"}]});
    for version in ["2.7.0", "3.7.3"] {
        let pod = controller(&chart("vsphere-csi", version), renamed.clone());
        let affinity = &pod["affinity"];
        assert_eq!(pod["nodeSelector"], Value::Null, "{version}");
        let terms = &affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
        assert_eq!(*terms, json!([exists("own/manager"), exists("own/master")]), "{version}");
        let apart = &affinity["podAntiAffinity"];
        assert!(apart["requiredDuringSchedulingIgnoredDuringExecution"].is_null());
        assert_eq!(apart["preferredDuringSchedulingIgnoredDuringExecution"][0]["weight"], 100);
    }
}

#[test]
fn controller_spread_value_none_has_no_affinity() {
    let together = controller(&chart("vsphere-csi", "2.7.0"), json!({"controller": {"spread": "none"}}));
    assert_eq!(together["affinity"], Value::Null);
    assert_eq!(together["nodeSelector"], json!({"node-role.kubernetes.io/control-plane": ""}));
}

#[test]
fn controller_affinity_value_replaces_defaults() {
    let whole = json!({"nodeAffinity": {"anything": [1]}});
    for version in ["2.7.0", "3.7.3"] {
        let pod = controller(&chart("vsphere-csi", version), json!({"controller": {"affinity": whole}}));
        assert_eq!((&pod["affinity"], &pod["nodeSelector"]), (&whole, &Value::Null));
    }
}

#[test]
fn control_plane_labels_value_sets_cpi_node_affinity() {
    let exists = |key: &str| json!({"matchExpressions": [{"key": key, "operator": "Exists"}]});
    let objects = render(&CPI, json!({"controlPlaneLabels": ["own/manager"]}));
    let terms = &pod(&objects, "DaemonSet", "vsphere-cloud-controller-manager")["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        ["nodeSelectorTerms"];
    assert_eq!(*terms, json!([exists("own/manager")]));
}

#[test]
fn affinity_value_replaces_cpi_defaults() {
    let whole = json!({"nodeAffinity": {"anything": [1]}});
    let objects = render(&CPI, json!({"affinity": whole}));
    assert_eq!(pod(&objects, "DaemonSet", "vsphere-cloud-controller-manager")["affinity"], whole);
}

#[test]
fn env_values_set_each_csi_variable_once() {
    let proxy = json!({"http": "http://p:1", "https": "http://p:2", "no": "10.0.0.0/8,.svc"});
    let values = json!({
        "proxy": proxy,
        "controller": {
            "env": {"driver": {"X_CSI_SERIAL_VOL_ACCESS_TIMEOUT": "9m", "GODEBUG": "own"}, "syncer": {"NO_PROXY": "all"}},
            "sidecarLogLevel": 7, "defaultFsType": "xfs", "fullSyncMinutes": 5,
        },
        "node": {"env": {"NODEGETINFO_WATCH_TIMEOUT_MINUTES": "3", "X_CSI_MODE": "own"}, "tolerations": [{"key": "edge"}]},
    });
    for version in ["2.7.3", "3.2.0", "3.7.3"] {
        let objects = render(&chart("vsphere-csi", version), values.clone());
        let controller = pod(&objects, "Deployment", "vsphere-csi-controller");
        let (driver, syncer) = (
            container(controller, "vsphere-csi-controller"),
            container(controller, "vsphere-syncer"),
        );
        assert_eq!(variable(driver, "HTTP_PROXY"), ["http://p:1"]);
        assert_eq!(variable(driver, "HTTPS_PROXY"), ["http://p:2"]);
        assert_eq!(variable(driver, "NO_PROXY"), ["10.0.0.0/8,.svc"]);
        assert_eq!(variable(syncer, "NO_PROXY"), ["all"]);
        assert_eq!(variable(driver, "X_CSI_SERIAL_VOL_ACCESS_TIMEOUT"), ["9m"]);
        assert_eq!(variable(driver, "GODEBUG"), ["own"]);
        assert_eq!(variable(syncer, "FULL_SYNC_INTERVAL_MINUTES"), ["5"]);
        assert_eq!(container(controller, "csi-attacher").unwrap()["args"][0], "--v=7");
        let provisioner = container(controller, "csi-provisioner").unwrap()["args"].as_array().unwrap();
        assert!(provisioner.contains(&json!("--default-fstype=xfs")));
        for name in ["vsphere-csi-node", "vsphere-csi-node-windows"] {
            let node = pod(&objects, "DaemonSet", name);
            let plugin = container(node, "vsphere-csi-node");
            assert_eq!(variable(plugin, "NODEGETINFO_WATCH_TIMEOUT_MINUTES"), ["3"]);
            assert_eq!(variable(plugin, "X_CSI_MODE"), ["own"]);
            assert_eq!(node["tolerations"][2], json!({"key": "edge"}));
        }
    }
}

/// A proxy for the way to the vCenter is not one for the way to the API server.
#[test]
fn proxy_without_exceptions_leaves_out_the_api_server() {
    let host = "$(KUBERNETES_SERVICE_HOST),.svc";
    for (proxy, expected) in [
        (json!({"https": "http://p:2"}), Some(host)),
        (json!({"http": "http://p:1"}), Some(host)),
        (json!({"https": "http://p:2", "no": "10.0.0.0/8"}), Some("10.0.0.0/8")),
        (json!({}), None),
    ] {
        let csi = render(&CSI, json!({"proxy": proxy}));
        let controller = pod(&csi, "Deployment", "vsphere-csi-controller");
        let cpi = render(&CPI, json!({"proxy": proxy}));
        let manager = &pod(&cpi, "DaemonSet", "vsphere-cloud-controller-manager")["containers"][0];
        let containers = [
            container(controller, "vsphere-csi-controller"),
            container(controller, "vsphere-syncer"),
            Some(manager),
        ];
        for container in containers {
            let found = variable(container, "NO_PROXY");
            assert_eq!(found, Vec::from_iter(expected), "{proxy}");
        }
    }
}

#[test]
fn env_value_with_reserved_name_is_rejected() {
    assert!(refused(&CSI, json!({"node": {"env": {"NODE_NAME": "x"}}})).contains("node.env"));
}

#[test]
fn env_and_proxy_values_set_cpi_variables() {
    let proxy = json!({"http": "http://p:1", "https": "http://p:2", "no": "10.0.0.0/8,.svc"});
    let objects = render(&CPI, json!({"proxy": proxy, "skipNodeDeletion": true, "env": {"NO_PROXY": "all"}}));
    let manager = &pod(&objects, "DaemonSet", "vsphere-cloud-controller-manager")["containers"][0];
    let expected = json!([
        {"name": "HTTP_PROXY", "value": "http://p:1"}, {"name": "HTTPS_PROXY", "value": "http://p:2"},
        {"name": "SKIP_NODE_DELETION", "value": "true"}, {"name": "NO_PROXY", "value": "all"},
    ]);
    assert_eq!(manager["env"], expected);
}

#[test]
fn snapshots_value_disabled_omits_snapshotter() {
    for (version, state) in [("3.1.0", json!("false")), ("3.7.3", Value::Null)] {
        let objects = render(&chart("vsphere-csi", version), json!({"snapshots": {"enabled": false}}));
        let controller = pod(&objects, "Deployment", "vsphere-csi-controller");
        assert!(container(controller, "csi-snapshotter").is_none());
        assert!(container(controller, "csi-provisioner").is_some());
        let states = find(&objects, "ConfigMap", "internal-feature-states.csi.vsphere.vmware.com");
        assert_eq!(states["data"]["block-volume-snapshot"], state, "{version}");
    }
}

#[test]
fn max_volumes_value_is_set_or_rejected_by_version() {
    let limit = |version: &str| {
        let objects = render(&chart("vsphere-csi", version), json!({"node": {"maxVolumes": 20}}));
        variable(
            container(pod(&objects, "DaemonSet", "vsphere-csi-node"), "vsphere-csi-node"),
            "MAX_VOLUMES_PER_NODE",
        )
    };
    assert_eq!(limit("3.7.0"), ["20"]);
    assert!(refused(&chart("vsphere-csi", "3.7.1"), json!({"node": {"maxVolumes": 20}})).contains("high-pv-node-density"));
}

#[test]
fn windows_kubelet_path_value_moves_every_path() {
    let objects = render(&CSI, json!({"windows": {"kubeletPath": "D:\\k8s"}}));
    let node = pod(&objects, "DaemonSet", "vsphere-csi-node-windows");
    let text = serde_json::to_string(node).unwrap();
    assert!(!text.contains("lib"), "{text}");
    let plugin = container(node, "vsphere-csi-node");
    assert_eq!(
        variable(plugin, "CSI_ENDPOINT"),
        ["unix://D:\\\\k8s\\\\plugins\\\\csi.vsphere.vmware.com\\\\csi.sock"]
    );
    assert_eq!(node["volumes"][2]["hostPath"]["path"], "D:\\k8s");
}

#[test]
fn use_republished_value_selects_current_registry() {
    let again = json!({"images": {"useRepublished": true}});
    let images = |driver: &str, version: &str| chart::images(&render(&chart(driver, version), again.clone()));
    assert_eq!(
        images("vsphere-cpi", "1.30.1"),
        ["registry.k8s.io/cloud-pv-vsphere/cloud-provider-vsphere:v1.30.1"]
    );
    assert!(
        images("vsphere-cpi", "1.25.0")[0].starts_with("gcr.io/"),
        "it was never published again"
    );
    let moved = images("vsphere-csi", "3.3.0");
    assert!(moved.contains(&"registry.k8s.io/csi-vsphere/driver:v3.3.0".to_owned()));
    assert!(moved.iter().all(|image| image.starts_with("registry.k8s.io/")), "{moved:?}");
    assert_eq!(images("vsphere-csi", "3.7.3"), chart::images(&render(&CSI, json!({}))));
}

/// Registries, references and proxies as people write them.
#[test]
fn registry_image_or_proxy_value_invalid_is_rejected() {
    let registry = |text: &str| json!({"images": {"registry": text}});
    let manager = |text: &str| json!({"images": {"overrides": {"manager": text}}});
    let proxy = |text: &str| json!({"proxy": {"https": text}});
    let no = |text: &str| json!({"proxy": {"no": text}});
    let memory = |value: Value| json!({"resources": {"limits": {"memory": value}}});
    let digest = format!("own/manager@sha256:{}", "0".repeat(64));
    for (values, says) in [
        (registry("registry.example.com"), ""),
        (registry("registry.example.com:5000/team/vsphere"), ""),
        (registry("registry.example.com/vsphere/"), ""),
        (registry("localhost"), ""),
        (registry("10.0.0.1:5000"), ""),
        (registry("[fd00::1]:5000/a"), ""),
        (registry("https://registry.example.com"), "without a scheme"),
        (registry("me:secret@registry.example.com"), "without a user and a password"),
        (registry("registry.example.com/vsphere:v1"), "without a tag"),
        (registry("registry.example.com/a@sha256:00"), "without a tag"),
        (registry("mirror"), "docker.io"),
        (registry("mirror/vsphere"), "docker.io"),
        (registry("registry.example.com/Team"), "small letters"),
        (registry("registry..example.com"), "small letters"),
        (registry("registry_x.example.com"), "small letters"),
        (registry("registry.example.com//a"), "small letters"),
        (registry("registry.example.com:port"), "small letters"),
        (registry(" registry.example.com"), "small letters"),
        (manager("registry.example.com:5000/own/manager:v1.2.3"), ""),
        (manager("own/manager:1"), ""),
        (manager(&digest), ""),
        (manager(""), ""),
        (manager("https://registry.example.com/own:1"), "without a scheme"),
        (manager("registry.example.com:5000/own/manager"), "with a tag or a digest"),
        (manager("own/manager@sha256:12"), "host/path@sha256:digest"),
        (manager("Own/manager:1"), "in small letters"),
        (manager("own/manager:1 "), "in small letters"),
        (proxy("http://proxy.example.com:3128"), ""),
        (proxy("http://me:word@proxy.example.com:3128/"), ""),
        (proxy("proxy.example.com:3128"), ""),
        (proxy("ftp://proxy.example.com"), "a URL such as"),
        (proxy("http//proxy.example.com"), "a URL such as"),
        (proxy("http://proxy example"), "a URL such as"),
        (no("10.0.0.0/8,.svc, localhost,*.example.com,[fd00::]/8"), ""),
        (no("https://vcenter.example.com"), "without a scheme"),
        (no("a;b"), "separated by commas"),
        (memory(json!("128Mi")), ""),
        (memory(json!("1e3")), ""),
        (memory(json!(1000)), ""),
        (memory(json!("128MB")), "a quantity such as"),
        (memory(json!(-1)), "a quantity such as"),
        (json!({"controlPlaneLabels": ["own/manager"]}), ""),
        (json!({"controlPlaneLabels": ["own/manager=true"]}), "the key of a label"),
        (json!({"imagePullSecrets": ["My_Secret"]}), "a name of small letters"),
        (json!({"namespace": "Kube-System"}), "a name of small letters"),
    ] {
        let result = chart::render(&CPI, &values, &Context::default());
        match (result, says) {
            (Ok(_), "") => {}
            (Ok(_), says) => panic!("{values} is accepted, not refused for {says:?}"),
            (Err(error), "") => panic!("{values}: {}", chain(&error)),
            (Err(error), says) => {
                let error = chain(&error);
                assert!(error.contains(says) && error.contains("expected"), "{values}: {error}");
                assert!(!error.contains("secret@"), "{error}");
            }
        }
    }
}

#[test]
fn registry_value_trailing_slash_is_ignored() {
    let registry = |text: &str| json!({"images": {"registry": text}});
    let image = |text: &str| chart::images(&render(&CPI, registry(text)))[0].clone();
    assert_eq!(image("r.example/a/"), image("r.example/a"));
}

/// A name that no version of the driver has is a slip; one that other versions have does no harm.
#[test]
fn feature_states_value_misspelled_is_rejected() {
    let error = refused(&CSI, json!({"featureStates": {"hihg-pv-node-density": true}}));
    assert!(
        error.contains("featureStates.hihg-pv-node-density") && error.contains("did you mean high-pv-node-density?"),
        "{error}"
    );
    assert!(error.contains("extraFeatureStates"), "{error}");
}

#[test]
fn feature_states_values_are_merged() {
    let states = |values: Value| {
        let objects = render(&CSI, values);
        find(&objects, "ConfigMap", "internal-feature-states.csi.vsphere.vmware.com")["data"].clone()
    };
    assert_eq!(states(json!({"featureStates": {"list-volumes": true}}))["list-volumes"], "true");
    let both = states(
        json!({"featureStates": {"trigger-csi-fullsync": false}, "extraFeatureStates": {"trigger-csi-fullsync": true, "own": false}}),
    );
    assert_eq!((&both["trigger-csi-fullsync"], &both["own"]), (&json!("true"), &json!("false")));
}

#[test]
fn feature_states_schema_lists_all_releases() {
    let known = CSI.schema().pointer("/properties/featureStates/propertyNames/enum").cloned();
    let versions = source("vsphere-csi").versions();
    let all = versions.iter().flat_map(|version| {
        let states = chart("vsphere-csi", &version.to_string()).release_data["featureStates"].clone();
        states.as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    });
    let all: std::collections::BTreeSet<String> = all.collect();
    assert_eq!(known, Some(json!(all)), "the schema lists the feature states of all releases");
}

/// Only the node plugin reaches into its host, nothing is granted by a wildcard, and the cloud provider has nothing to do with storage.
#[test]
fn rbac_and_pod_security_every_chart_is_minimal() {
    for driver in ["vsphere-cpi", "vsphere-csi"] {
        for version in source(driver).versions() {
            let values = match driver {
                "vsphere-csi" => json!({"webhook": {"enabled": true, "caBundle": "Q0E="}}),
                _ => json!({}),
            };
            let objects = render(&chart(driver, &version.to_string()), values);
            for object in &objects {
                let name = object["metadata"]["name"].as_str().unwrap();
                let place = format!("{driver} {version}: {} {name}", object["kind"]);
                for rule in object["rules"].as_array().into_iter().flatten() {
                    assert!(!rule.to_string().contains('*'), "{place}: {rule}");
                    assert!(
                        driver != "vsphere-cpi" || !rule["apiGroups"].to_string().contains("storage"),
                        "{place}: {rule}"
                    );
                }
                let pod = &object["spec"]["template"]["spec"];
                if pod.is_null() {
                    continue;
                }
                let text = pod.to_string();
                let on_nodes = name.starts_with("vsphere-csi-node");
                for key in ["\"privileged\":true", "\"hostPath\"", "SYS_ADMIN"] {
                    assert!(on_nodes || !text.contains(key), "{place}: {key}");
                }
                let in_host_network = pod["hostNetwork"] == true;
                assert!(
                    !in_host_network || on_nodes || driver == "vsphere-cpi",
                    "{place} is in the host network"
                );
                for key in ["hostPID", "hostIPC"] {
                    assert!(pod[key].is_null(), "{place}: {key}");
                }
                if !on_nodes {
                    assert!(text.contains("node-role.kubernetes.io/control-plane"), "{place} runs anywhere");
                }
            }
        }
    }
}
