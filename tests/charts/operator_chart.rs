// SPDX-License-Identifier: Apache-2.0
//! The operator's own Helm chart, read by the real Helm: with default values it is deploy/, and every listed combination of values is valid.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test should stop where it fails")]

use crate::generate::chart;
use clap::Parser as _;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use vdo::runtime::args::Args;
use vdo_testbed::{Binaries, Part};

const NAMESPACE: &str = "vmware-system-vdo";
/// The labels that Helm's users expect, and nothing else that deploy/ does not have.
const HELM_LABELS: [&str; 2] = ["app.kubernetes.io/managed-by", "helm.sh/chart"];
const KEEP: &str = "helm.sh/resource-policy";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn helm(args: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(Binaries::ensure(&[Part::Helm]).unwrap().path(Part::Helm));
    for folder in ["CACHE", "CONFIG", "DATA"] {
        command.env(format!("HELM_{folder}_HOME"), home.path().join(folder));
    }
    command.current_dir(root().join("deploy/chart")).args(args).output().unwrap()
}

/// Renders the chart for this namespace with further arguments; the error is what Helm says.
fn render(namespace: &str, more: &[&str]) -> Result<Vec<Value>, String> {
    rendered(namespace, more).map(|text| documents(&text))
}

/// The same, as Helm writes the objects.
fn rendered(namespace: &str, more: &[&str]) -> Result<String, String> {
    let usual = ["template", "vdo", ".", "--kube-version", "1.34.0", "--namespace", namespace];
    let output = helm(&[&usual, more].concat());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(text(output.stderr))
    }
}

fn documents(text: &str) -> Vec<Value> {
    let all = vdo_api::yaml::load_all(text).unwrap();
    all.into_iter().filter(|object| !object.is_null()).collect()
}

/// Each listed combination of values, as a path that Helm reads.
fn combinations() -> Vec<String> {
    let files = fs::read_dir(root().join("deploy/chart/ci")).unwrap().flatten();
    let mut all: Vec<String> = files.map(|entry| format!("ci/{}", entry.file_name().to_string_lossy())).collect();
    all.sort();
    assert!(all.len() >= 10 && all.iter().all(|file| file.ends_with("-values.yaml")), "{all:?}");
    all
}

fn id(object: &Value) -> String {
    let text = |place: &str| object.pointer(place).and_then(Value::as_str).unwrap_or_default();
    format!("{} {}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

/// What `kubectl apply -k deploy` applies, and the namespaces of the drivers; that of the operator is the release's own.
fn deployed() -> BTreeMap<String, Value> {
    let deploy = root().join("deploy");
    let listed = documents(&fs::read_to_string(deploy.join("kustomization.yaml")).unwrap());
    let files = listed[0]["resources"].as_array().unwrap().iter().map(|file| file.as_str().unwrap());
    let objects = files
        .chain(["namespace.yaml"])
        .flat_map(|file| documents(&fs::read_to_string(deploy.join(file)).unwrap()));
    let own = |object: &Value| object["kind"] == "Namespace" && object["metadata"]["name"] == NAMESPACE;
    objects.filter(|object| !own(object)).map(|object| (id(&object), object)).collect()
}

/// Takes away what Helm adds, which has to be there; gives whether an uninstall keeps the object.
fn without_helms_additions(object: &mut Value) -> bool {
    let name = id(object);
    let metadata = object["metadata"].as_object_mut().unwrap();
    let mut take = |place: &str, key: &str| {
        let map = metadata.get_mut(place).and_then(Value::as_object_mut)?;
        let value = map.shift_remove(key);
        let empty = map.is_empty();
        if empty {
            metadata.shift_remove(place);
        }
        value
    };
    for label in HELM_LABELS {
        assert!(take("labels", label).is_some(), "{name} has no label {label}");
    }
    let kept = take("annotations", KEEP);
    assert!(kept.is_none() || kept == Some(json!("keep")), "{name}: {kept:?}");
    kept.is_some()
}

#[test]
fn operator_chart_with_default_values_equals_deploy() {
    let expected = deployed();
    let mut rendered = BTreeMap::new();
    let mut kept = BTreeSet::new();
    for mut object in render(NAMESPACE, &[]).unwrap() {
        let name = id(&object);
        if without_helms_additions(&mut object) {
            kept.insert(name.clone());
        }
        assert!(rendered.insert(name.clone(), object).is_none(), "{name} is rendered twice");
    }
    let names = |all: &BTreeMap<String, Value>| all.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&rendered), names(&expected));
    for (name, object) in &expected {
        assert_eq!(&rendered[name], object, "{name}");
    }
    let drivers = documents(&fs::read_to_string(root().join("deploy/drivers-rbac.yaml")).unwrap());
    let mut outlive: BTreeSet<String> = drivers.iter().map(id).collect();
    outlive.insert("Namespace /vmware-system-csi".to_owned());
    outlive.extend(
        names(&expected)
            .into_iter()
            .filter(|name| name.starts_with("CustomResourceDefinition ")),
    );
    assert_eq!(kept, outlive, "helm uninstall keeps the definitions, and what running drivers need");
}

/// From 1.30 on the API server serves the kind; an older one that does is asked.
#[test]
fn operator_chart_has_the_admission_policy_where_it_is_served() {
    let has_policy = |more: &[&str]| {
        let objects = render(NAMESPACE, more).unwrap();
        objects.iter().any(|object| object["kind"] == "ValidatingAdmissionPolicy")
    };
    const KIND: &str = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy";
    for (more, expected) in [
        (&["--kube-version", "1.29.9"][..], false),
        (&["--kube-version", "1.30.0"], true),
        (&["--kube-version", "1.34.4-eks-1"], true),
        (&["--kube-version", "1.29.9", "--api-versions", KIND], true),
        (&["--set", "admissionPolicy.enabled=false"], false),
    ] {
        assert_eq!(has_policy(more), expected, "{more:?}");
    }
}

#[test]
fn operator_chart_generated_parts_are_those_of_deploy() {
    let expected = chart::files(root()).unwrap();
    for (file, text) in &expected {
        let written = fs::read_to_string(root().join(file)).unwrap_or_default();
        assert!(written == *text, "{file} is out of date: make manifests");
    }
    for file in chart::present(root()).unwrap() {
        assert!(
            expected.iter().any(|(name, _)| *name == file),
            "{file} belongs to nothing: make manifests"
        );
    }
}

#[test]
fn operator_chart_has_the_version_of_the_operator() {
    let chart = &documents(&fs::read_to_string(root().join("deploy/chart/Chart.yaml")).unwrap())[0];
    assert_eq!(
        (&chart["version"], &chart["appVersion"]),
        (&json!(env!("CARGO_PKG_VERSION")), &json!(env!("CARGO_PKG_VERSION")))
    );
}

/// Helm's linter, the schema, a namespace of the user's choice, and arguments that the operator takes.
#[test]
fn operator_chart_listed_values_are_valid() {
    for values in combinations() {
        let lint = helm(&["lint", "--strict", "--quiet", ".", "--values", &values]);
        assert!(lint.status.success(), "{values}: {}", String::from_utf8_lossy(&lint.stdout));
        let objects = render("elsewhere", &["--values", &values]).unwrap();
        for object in &objects {
            assert!(
                !object.to_string().contains(NAMESPACE),
                "{values}: {} is about {NAMESPACE}",
                id(object)
            );
        }
        let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let args = container["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
        let args = Args::try_parse_from(["vdo-operator"].into_iter().chain(args)).unwrap_or_else(|error| panic!("{values}: {error}"));
        assert_eq!(u64::from(args.listen.port()), container["ports"][0]["containerPort"], "{values}");
        // The drivers may have objects of these kinds, too.
        let own = |kind: &str| {
            let mut of_kind = objects.iter().filter(|object| object["kind"] == kind);
            of_kind.find(|object| object["metadata"]["name"] == "vdo-operator")
        };
        let many = deployment["spec"]["replicas"].as_u64().unwrap() > 1;
        let budget = own("PodDisruptionBudget").is_some();
        assert!(many || !budget, "{values}: a budget for one replica blocks every drain");
        if let Some(monitor) = own("ServiceMonitor") {
            let service = own("Service").unwrap();
            assert_eq!(monitor["spec"]["endpoints"][0]["port"], service["spec"]["ports"][0]["name"]);
            assert_eq!(
                monitor["spec"]["selector"]["matchLabels"]["app.kubernetes.io/name"],
                service["metadata"]["labels"]["app.kubernetes.io/name"]
            );
        }
    }
}

/// `serviceMonitor.drivers` is the monitors of deploy/monitoring, with the labels by which a Prometheus finds them, and what the cloud
/// provider needs to check the token of Prometheus.
#[test]
fn operator_chart_monitors_of_the_drivers_equal_those_without_helm() {
    let set = ["--set", "serviceMonitor.drivers=true,serviceMonitor.labels.release=prometheus"];
    let mut rendered: BTreeMap<String, Value> = render(NAMESPACE, &set)
        .unwrap()
        .into_iter()
        .map(|object| (id(&object), object))
        .collect();
    rendered.retain(|name, _| !deployed().contains_key(name));
    let folder = root().join("deploy/monitoring");
    let files = ["drivers.yaml", "cloud-provider.yaml"].map(|file| fs::read_to_string(folder.join(file)).unwrap());
    let expected: Vec<Value> = files.iter().flat_map(|text| documents(text)).collect();
    let monitors: Vec<&Value> = expected.iter().filter(|object| object["kind"] == "ServiceMonitor").collect();
    let names: Vec<&Value> = monitors.iter().map(|monitor| &monitor["metadata"]["name"]).collect();
    assert_eq!(names, ["vsphere-csi-controller", "vsphere-cloud-controller-manager"]);
    assert_eq!(rendered.len(), expected.len(), "{:?}", rendered.keys());
    for object in &expected {
        let mut found = rendered
            .remove(&id(object))
            .unwrap_or_else(|| panic!("{} is not rendered", id(object)));
        without_helms_additions(&mut found);
        let labels = found["metadata"]["labels"].as_object_mut();
        let label = labels.and_then(|labels| labels.shift_remove("release"));
        assert_eq!(label, Some(json!("prometheus")), "{}", id(object));
        if found["metadata"]["labels"] == json!({}) {
            found["metadata"].as_object_mut().unwrap().shift_remove("labels");
        }
        assert_eq!(&found, object);
    }
    let without = render(NAMESPACE, &[]).unwrap();
    assert!(without.iter().all(|object| object["kind"] != "ServiceMonitor"));
}

/// No value may do nothing: each is set in some combination, and there it changes what is rendered.
#[test]
fn operator_chart_every_value_has_an_effect() {
    let load = |file: &str| documents(&fs::read_to_string(root().join("deploy/chart").join(file)).unwrap()).remove(0);
    let defaults = load("values.yaml");
    let mut unproven: BTreeSet<String> = leaves("", &defaults).into_keys().collect();
    for file in combinations() {
        let values = load(&file);
        let whole = rendered(NAMESPACE, &["--values", &file]).unwrap();
        for (leaf, value) in changed("", &defaults, &values) {
            if !unproven.contains(&leaf) {
                continue;
            }
            // The same combination without this value.
            let folder = tempfile::tempdir().unwrap();
            let without = folder.path().join("values.yaml");
            let mut rest = values.clone();
            let (parent, key) = leaf.rsplit_once('.').unwrap_or(("", &leaf));
            rest.pointer_mut(&pointer(parent))
                .unwrap()
                .as_object_mut()
                .unwrap()
                .shift_remove(key);
            fs::write(&without, rest.to_string()).unwrap();
            let before = rendered(NAMESPACE, &["--values", without.to_str().unwrap()]).unwrap();
            assert!(before != whole, "{file}: {leaf}: {value} has no effect");
            unproven.remove(&leaf);
        }
    }
    assert!(unproven.is_empty(), "no file in deploy/chart/ci sets {unproven:?}");
}

/// The values below a map of the defaults that has keys of the chart's own; other maps and lists are one value.
fn leaves(path: &str, value: &Value) -> BTreeMap<String, Value> {
    let own = |map: &Map<String, Value>| !map.is_empty() && !["resources", "affinity", "dashboards.labels"].contains(&path);
    match value {
        Value::Object(map) if own(map) => map.iter().flat_map(|(key, value)| leaves(&join(path, key), value)).collect(),
        _ => [(path.to_owned(), value.clone())].into(),
    }
}

fn changed(path: &str, defaults: &Value, values: &Value) -> BTreeMap<String, Value> {
    let all = leaves(path, defaults);
    let given = |leaf: &String| values.pointer(&pointer(leaf)).cloned();
    all.into_iter()
        .filter_map(|(leaf, default)| given(&leaf).filter(|value| *value != default).map(|value| (leaf, value)))
        .collect()
}

/// A path of keys, as serde_json has it.
fn pointer(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!("/{}", path.replace('.', "/"))
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

#[test]
fn operator_chart_bad_values_are_refused() {
    for (bad, named) in [
        ("image.digest=sha256:abc", "/image/digest"),
        ("image.tag=v1:2", "/image/tag"),
        ("image.repository=https://example.com/vdo", "/image/repository"),
        ("imagePullSecrets[0]=registry", "/imagePullSecrets/0"),
        ("replicas=two", "/replicas"),
        ("proxy.httpsProxy=https://proxy.example.com", "/proxy/httpsProxy"),
        ("proxy.httpsProxy=http://me:hunter2@proxy.example.com", "/proxy/httpsProxy"),
        ("proxy.httpProxy=http://proxy.example.com", "httpProxy"),
        ("port=80", "/port"),
        ("extraArgs[0]=metrics-auth", "/extraArgs/0"),
        ("extraEnv[0].name=VDO_NAMESPACE", "/extraEnv/0/name"),
        ("networkPolicy.extraFrom[0].cidr=10.0.0.0/8", "/networkPolicy/extraFrom/0"),
        (r"podLabels.app\.kubernetes\.io/name=other", "/podLabels"),
        ("vdoConfig.spec=x", "vdoConfig"),
        ("matrix.source=http://vdo.example/index.yaml", "/matrix/source"),
        ("matrix.source=https://me:hunter2@vdo.example/index.yaml", "/matrix/source"),
        ("matrix.keysSecret=a_b", "/matrix/keysSecret"),
        ("matrix.source=embedded,matrix.secret=matrix", "each name another matrix"),
        ("serviceMonitor.enabled=true,service.enabled=false", "needs service.enabled"),
    ] {
        let said = render(NAMESPACE, &["--set", bad]).expect_err(bad);
        assert!(said.contains(named), "{bad}: {said}");
    }
}

/// A digest says which image it is, whatever the tag says.
#[test]
fn operator_chart_image_digest_wins_over_tag() {
    let digest = format!("sha256:{}", "0".repeat(64));
    for (set, expected) in [
        (
            "replicas=1".to_owned(),
            format!("ghcr.io/vdo-project/vdo-operator:v{}", env!("CARGO_PKG_VERSION")),
        ),
        ("image.tag=v9".to_owned(), "ghcr.io/vdo-project/vdo-operator:v9".to_owned()),
        (
            format!("image.tag=v9,image.digest={digest}"),
            format!("ghcr.io/vdo-project/vdo-operator@{digest}"),
        ),
    ] {
        let objects = render(NAMESPACE, &["--set", &set]).unwrap();
        let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
        assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], expected, "{set}");
    }
}

/// What the chart does with `hostNetwork` and `metrics.auth`, the overlays do, too.
#[test]
fn overlays_equal_the_chart_with_their_values() {
    for (overlay, set) in [
        ("bootstrap", "hostNetwork=true"),
        ("metrics-auth", "metrics.auth=true"),
        ("mirror", "image.repository=registry.example.com/vsphere/vdo-operator"),
    ] {
        let mut rendered: BTreeMap<String, Value> = BTreeMap::new();
        for mut object in render(NAMESPACE, &["--set", set]).unwrap() {
            without_helms_additions(&mut object);
            rendered.insert(id(&object), object);
        }
        let drivers = deployed().into_values().filter(|object| object["kind"] == "Namespace");
        let built: BTreeMap<String, Value> = kustomize(&root().join("overlays").join(overlay))
            .into_iter()
            .chain(drivers)
            .map(|object| (id(&object), object))
            .collect();
        assert_eq!(built, rendered, "{overlay}");
    }
}

/// What `vdoctl deploy --matrix` makes of the operator, the chart makes of it, too.
#[test]
fn operator_chart_with_a_source_of_the_matrix_equals_what_is_deployed() {
    let settings = vdo_core::install::Settings {
        matrix: vdo_core::install::Mounts {
            keys: true,
            credentials: true,
        },
        ..vdo_core::install::Settings::default()
    };
    let deployed = vdo_core::install::objects(&settings).unwrap();
    let set =
        "matrix.source=https://vdo.example/index.yaml,matrix.keysSecret=vdo-matrix-keys,matrix.credentialsSecret=vdo-matrix-credentials";
    let mut rendered = BTreeMap::new();
    for mut object in render(NAMESPACE, &["--set", set]).unwrap() {
        without_helms_additions(&mut object);
        rendered.insert(id(&object), object);
    }
    let source = vdo_core::install::matrix_source(NAMESPACE, "https://vdo.example/index.yaml").unwrap();
    let named = rendered.remove(&id(source.value())).unwrap();
    assert_eq!(named["data"], source.value()["data"]);
    let operator = deployed.iter().find(|object| object.kind() == "Deployment").unwrap();
    assert_eq!(rendered[&id(operator.value())], *operator.value());
}

/// What `vdoctl deploy` does on nodes without a pod network, the overlay does, too.
#[test]
fn overlay_bootstrap_equals_what_is_deployed_in_the_host_network() {
    let settings = vdo_core::install::Settings {
        host_network: Some(vdo_core::install::HostNetwork::default()),
        ..vdo_core::install::Settings::default()
    };
    let deployed = vdo_core::install::objects(&settings).unwrap();
    let deployed: BTreeMap<String, Value> = deployed.iter().map(|object| (id(object.value()), object.value().clone())).collect();
    let folder = root().join("overlays/bootstrap");
    let namespace = documents(&fs::read_to_string(folder.join("namespace.yaml")).unwrap());
    let built = kustomize(&folder).into_iter().chain(namespace);
    let built: BTreeMap<_, _> = built.map(|object| (id(&object), object)).collect();
    assert_eq!(built.keys().collect::<Vec<_>>(), deployed.keys().collect::<Vec<_>>());
    for (id, object) in built {
        assert_eq!(object, deployed[&id], "{id}");
    }
}

/// They build on one another, as overlays/README.md says.
#[test]
fn overlays_combine_when_one_builds_on_another() {
    let folder = tempfile::tempdir().unwrap();
    for part in ["deploy", "overlays"] {
        let copied = Command::new("cp")
            .arg("-R")
            .arg(root().join(part))
            .arg(folder.path())
            .status()
            .unwrap();
        assert!(copied.success());
    }
    let file = folder.path().join("overlays/mirror/kustomization.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("../../deploy", "../bootstrap")).unwrap();
    let objects = kustomize(&folder.path().join("overlays/mirror"));
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["hostNetwork"], true);
    assert!(pod["containers"][0]["image"].as_str().unwrap().starts_with("registry.example.com/"));
}

fn kustomize(folder: &Path) -> Vec<Value> {
    let kubectl: PathBuf = Binaries::ensure(&[Part::Kubectl]).unwrap().path(Part::Kubectl);
    let output = Command::new(kubectl).arg("kustomize").arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    documents(&String::from_utf8(output.stdout).unwrap())
}
