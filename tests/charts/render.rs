// SPDX-License-Identifier: Apache-2.0
//! The charts of this repository: as recorded, with every value in its place, and safe against any value.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a failing test should stop where it fails"
)]

use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;
use vdo_api::types::{Digest, DriverVersion};
use vdo_api::yaml;
use vdo_core::chart::{self, Chart, Context};
use vdo_source::fetch::embedded;

use crate::fixture::{chain, chart, find, render, root, source};
use crate::generate::renders;

static CSI: LazyLock<Chart> = LazyLock::new(|| chart("vsphere-csi", "3.7.3"));
static CPI: LazyLock<Chart> = LazyLock::new(|| chart("vsphere-cpi", "1.34.0"));

#[test]
fn chart_render_digests_match_recorded() {
    let recorded = std::fs::read_to_string(root().join("tests/fixtures/render-digests.yaml")).unwrap();
    let now = renders::digests(root()).unwrap();
    assert_eq!(
        recorded, now,
        "run `cargo run --example generate -- matrix` and review the difference"
    );
}

/// The digests say that something changed, this says what: everything that the newest release of each driver renders.
#[test]
fn chart_newest_release_render_matches_snapshot() {
    for driver in ["vsphere-cpi", "vsphere-csi"] {
        let source = source(driver);
        let chart = crate::fixture::release(&source, source.versions().last().unwrap());
        let mut objects = render(&chart, chart::everything(&chart));
        objects.sort_by_key(|object| vdo_core::plan::wave(object["kind"].as_str().unwrap(), chart.metadata.role)); // as they are applied
        insta::assert_snapshot!(format!("newest_{driver}"), yaml::dump_all(&objects));
    }
}

#[test]
fn embedded_charts_match_repository() {
    let embedded = embedded::sources();
    assert_eq!(
        embedded.keys().collect::<Vec<_>>(),
        ["antrea", "snapshot-controller", "vsphere-cpi", "vsphere-csi"]
    );
    for (driver, embedded) in embedded {
        assert_eq!(embedded, source(&driver), "{driver}: the build did not pick up a change");
    }
}

#[test]
fn chart_metadata_role_and_configuration_are_set() {
    use vdo_api::types::DriverRole;
    use vdo_core::chart::Configuration;
    assert_eq!(
        (CPI.metadata.role, CPI.metadata.configuration),
        (DriverRole::CloudProvider, Configuration::CpiYaml)
    );
    assert_eq!(
        (CSI.metadata.role, CSI.metadata.configuration),
        (DriverRole::Storage, Configuration::CsiGcfg)
    );
    assert_eq!(CSI.metadata.app_version, "v3.7.3");
}

#[test]
fn chart_schema_describes_every_value_and_is_closed() {
    fn walk(at: &str, schema: &Value) {
        let Some(fields) = schema.as_object() else { return };
        if fields.get("type") == Some(&json!("object")) {
            assert!(fields.contains_key("additionalProperties"), "{at} accepts any key");
        }
        for (name, property) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let described = property.get("description").is_some() || property.get("$ref").is_some();
            assert!(described, "{at}.{name} has no description");
            walk(&format!("{at}.{name}"), property);
        }
        for (name, definition) in fields.get("$defs").and_then(Value::as_object).into_iter().flatten() {
            walk(&format!("{at}#{name}"), definition);
        }
        for key in ["items", "additionalProperties"] {
            if let Some(inner) = fields.get(key) {
                walk(&format!("{at}.{key}"), inner);
            }
        }
    }
    walk("cpi", CPI.schema());
    walk("csi", CSI.schema());
}

#[test]
fn chart_package_is_reproducible() {
    for driver in ["vsphere-cpi", "vsphere-csi"] {
        let source = source(driver);
        for version in source.versions() {
            let first = chart::package(&source, &version).unwrap();
            assert_eq!(Digest::of(&first), Digest::of(&chart::package(&source, &version).unwrap()));
        }
    }
}

#[test]
fn chart_package_unknown_version_lists_releases() {
    let missing: DriverVersion = "9.9.9".parse().unwrap();
    let error = chart::package(&source("vsphere-csi"), &missing).unwrap_err();
    let known: Vec<String> = source("vsphere-csi").versions().iter().map(ToString::to_string).collect();
    assert_eq!(
        error.to_string(),
        format!("the chart has no release 9.9.9; it has {}", known.join(", "))
    );
}

#[test]
fn chart_values_reach_csi_fields() {
    let objects = render(
        &CSI,
        json!({
            "namespace": "storage",
            "images": {"registry": "mirror.example/vsphere", "overrides": {"syncer": "own/syncer:1"}},
            "imagePullSecrets": ["mirror"],
            "logLevel": "DEVELOPMENT",
            "kubeletPath": "/var/snap/kubelet",
            "featureStates": {"high-pv-node-density": true}, "extraFeatureStates": {"new-one": false},
            "topology": {"enabled": true},
            "controller": {"replicas": "auto", "tolerations": [{"key": "edge", "operator": "Exists"}], "resources": {"attacher": {"limits": {"memory": "64Mi"}}}},
            "windows": {"enabled": false},
        }),
    );
    assert!(!objects.iter().any(|o| o["metadata"]["name"] == "vsphere-csi-node-windows"));
    assert!(
        objects
            .iter()
            .all(|o| o["metadata"]["namespace"].is_null() || o["metadata"]["namespace"] == "storage")
    );
    let states = find(&objects, "ConfigMap", "internal-feature-states.csi.vsphere.vmware.com");
    let expected = json!({"trigger-csi-fullsync": "false", "pv-to-backingdiskobjectid-mapping": "false", "high-pv-node-density": "true", "new-one": "false"});
    assert_eq!(states["data"], expected);
    let controller = &find(&objects, "Deployment", "vsphere-csi-controller")["spec"];
    assert_eq!(controller["replicas"], 3);
    let pod = &controller["template"]["spec"];
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "mirror"}]));
    assert_eq!(pod["tolerations"][2], json!({"key": "edge", "operator": "Exists"}));
    assert_eq!(pod["containers"][0]["resources"], json!({"limits": {"memory": "64Mi"}}));
    assert_eq!(pod["containers"][2]["image"], "mirror.example/vsphere/csi-vsphere/driver:v3.7.3");
    assert_eq!(pod["containers"][4]["image"], "own/syncer:1");
    let provisioner = pod["containers"][5]["args"].as_array().unwrap();
    assert!(provisioner.ends_with(&[json!("--feature-gates=Topology=true"), json!("--strict-topology")]));
    let node = &find(&objects, "DaemonSet", "vsphere-csi-node")["spec"]["template"]["spec"];
    assert_eq!(
        node["volumes"][1]["hostPath"]["path"],
        "/var/snap/kubelet/plugins/csi.vsphere.vmware.com"
    );
}

#[test]
fn controller_replicas_auto_follows_control_plane_count() {
    for (count, replicas) in [(0, 1), (1, 1), (2, 2), (3, 3), (5, 3)] {
        let context = Context {
            cluster: chart::Cluster {
                control_plane: chart::ControlPlane { count },
                ..Default::default()
            },
            ..Default::default()
        };
        let objects = chart::render(&CSI, &json!({"controller": {"replicas": "auto"}}), &context).unwrap();
        assert_eq!(find(&objects, "Deployment", "vsphere-csi-controller")["spec"]["replicas"], replicas);
    }
}

#[test]
fn chart_values_reach_cpi_fields() {
    let objects = render(
        &CPI,
        json!({"env": {"SKIP_NODE_DELETION": "true"}, "logLevel": 5, "nodeSelector": {"a/b": "yes"}}),
    );
    let pod = &find(&objects, "DaemonSet", "vsphere-cloud-controller-manager")["spec"]["template"]["spec"];
    assert_eq!(
        pod["containers"][0]["env"],
        json!([{"name": "SKIP_NODE_DELETION", "value": "true"}])
    );
    assert_eq!(pod["containers"][0]["args"][1], "--v=5");
    assert_eq!(pod["nodeSelector"], json!({"a/b": "yes"}));
}

#[test]
fn chart_values_invalid_are_named_and_never_shown() {
    let refused = |values: Value| chain(&chart::render(&CSI, &values, &Context::default()).unwrap_err());
    let all = [
        json!({"controller": {"replcas": 2}}),
        json!({"controller": {"resources": {"driver": {"request": {}}}}}),
        json!({"logLevel": "hunter2"}),
        json!({"kubeletPath": "hunter2", "controller": {"replicas": "hunter2"}}),
        json!({"controller": {"replicas": 12, "fullSyncMinutes": "30"}, "snapshots": {"enabled": "yes"}}),
        json!({"logLevel": "production", "controller": {"spread": "prefered"}}),
        json!({"images": {"registry": "https://registry.example.com"}}),
        json!({"node": {"env": {"NODE_NAME": "x"}}, "storageClasses": [{"fsType": "ext5"}]}),
        json!({"featureStates": {"list-volume": true}}),
        json!({"topology": null}),
        json!(["a"]),
    ];
    insta::assert_snapshot!(all.map(|values| format!("{values}\n  {}\n", refused(values.clone()))).join("\n"));
}

/// A CPI chart with one template of its own.
fn with_template(text: &str) -> Result<Chart, chart::ArchiveError> {
    let mut source = source("vsphere-cpi");
    source.files.retain(|path, _| !path.starts_with("templates/"));
    source.files.insert("templates/own.yaml".to_owned(), text.as_bytes().to_vec());
    chart::open(&chart::package(&source, &"1.34.0".parse().unwrap()).unwrap())
}

#[test]
fn template_error_names_chart_file_and_line() {
    let failed = |text: &str| match with_template(text) {
        Ok(chart) => chain(&chart::render(&chart, &Value::Null, &Context::default()).unwrap_err()),
        Err(error) => chain(&error),
    };
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n";
    let all = [
        format!("{head}  name: {{{{ values.nmae }}}}\n"),
        format!("{head}  name: \"a-{{{{ values.namespace }}}}\"\n"),
        format!("{head}  name: {{{{ values.namespace | safe }}}}\n"),
        format!("{head}  name: {{{{ image(\"mangler\") }}}}\n"),
        format!("{head}  name: {{{{ fail(\"no\") }}}}\n"),
        "apiVersion: v1\nkind: ConfigMap\n".to_owned(),
        format!("{head}  name: a\n---\n{head}  name: a\n"),
        "a: 1\na: 2\n".to_owned(),
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}".to_owned(),
        "{% set s = 'a' * 1000000 %}x: {{ [s, s, s] }}\n".to_owned(),
        "{% include \"/etc/passwd\" %}".to_owned(),
    ];
    insta::assert_snapshot!(all.map(|text| format!("{text}\n  => {}\n", failed(&text))).join("\n"));
}

/// Text that breaks naive templating: quotes, line ends of every kind, YAML and template syntax, words YAML would convert.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\"".to_owned()),
        Just("'".to_owned()),
        Just("\\".to_owned()),
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("\n---\n".to_owned()),
        Just("\nkind: Pwned\n".to_owned()),
        Just("{{ 7 }}".to_owned()),
        Just("{% x %}".to_owned()),
        Just(": ".to_owned()),
        Just(" #".to_owned()),
        Just("😀".to_owned()),
        Just("\u{85}\u{2028}\u{feff}\u{7f}".to_owned()),
        Just("yes".to_owned()),
        Just("0644".to_owned()),
        Just("\t".to_owned()),
        Just("&a *a".to_owned()),
        "\\PC{0,6}",
        any::<String>(),
    ];
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

/// Every leaf by its path.
fn leaves(objects: &[Value]) -> Vec<(String, Value)> {
    fn walk(path: String, value: &Value, out: &mut Vec<(String, Value)>) {
        match value {
            Value::Object(fields) if !fields.is_empty() => fields.iter().for_each(|(k, v)| walk(format!("{path}/{k}"), v, out)),
            Value::Array(items) if !items.is_empty() => items.iter().enumerate().for_each(|(i, v)| walk(format!("{path}/{i}"), v, out)),
            leaf => out.push((path, leaf.clone())),
        }
    }
    let mut out = Vec::new();
    objects
        .iter()
        .enumerate()
        .for_each(|(i, object)| walk(format!("{i}"), object, &mut out));
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn chart_value_random_text_changes_only_its_place(text in hostile()) {
        let values = |text: &str| json!({
            "env": {"A": text}, "nodeSelector": {"label": text}, "imagePullSecrets": ["a"],
            "tolerations": [{"key": "edge", "value": text}],
        });
        let before = leaves(&render(&CPI, values("plain")));
        let after = leaves(&render(&CPI, values(&text)));
        prop_assert_eq!(before.len(), after.len());
        let mut places = 0;
        for ((path, old), (new_path, new)) in before.iter().zip(&after) {
            prop_assert_eq!(path, new_path);
            if old == "plain" {
                prop_assert_eq!(new, text.as_str());
                places += 1;
            } else {
                prop_assert_eq!(old, new);
            }
        }
        prop_assert_eq!(places, 3);
    }

    #[test]
    fn chart_value_random_key_is_kept(key in hostile()) {
        let objects = render(&CPI, json!({"nodeSelector": {&key: "on"}}));
        let pod = &find(&objects, "DaemonSet", "vsphere-cloud-controller-manager")["spec"]["template"]["spec"];
        prop_assert_eq!(&pod["nodeSelector"], &json!({&key: "on"}));
    }

    #[test]
    fn chart_render_same_input_gives_same_bytes(text in hostile(), count in 0u32..5) {
        let context = Context {
            cluster: chart::Cluster { control_plane: chart::ControlPlane { count }, ..Default::default() },
            ..Default::default()
        };
        let values = json!({"controller": {"replicas": "auto", "nodeSelector": {"a": text}}});
        let bytes = || yaml::dump_all(&chart::render(&CSI, &values, &context).unwrap());
        prop_assert_eq!(bytes(), bytes());
    }
}
