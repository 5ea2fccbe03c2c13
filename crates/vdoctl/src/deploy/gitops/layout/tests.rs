// SPDX-License-Identifier: Apache-2.0
//! Tests of `layout.rs`: the files of a `--gitops` folder, their Secrets and their order.
use super::*;
use vdo_api::yaml::load_all;
use vdo_core::install::{MATRIX_CREDENTIALS, Settings, companion_secret, matrix_source, objects};

fn object(value: Value) -> Object {
    Object::new(value).expect("an object")
}

fn manifests() -> Manifests {
    let credentials = companion_secret("vmware-system-vdo", MATRIX_CREDENTIALS, &[("password", "r3ad-it")]);
    let source = matrix_source("vmware-system-vdo", "https://vdo.test/index.yaml");
    let meta = |name: &str| json!({"name": name, "namespace": "vmware-system-vdo"});
    let mut login = meta("vc1-credentials");
    login["annotations"] = json!({SERVERS: "vc.test"});
    let connection = |name: &str, secret: &str| {
        object(
            json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VsphereCloudConfig", "metadata": meta(name),
            "spec": {"vcIp": format!("{name}.test"), "credentials": secret, "caBundle": {"secret": "roots", "key": "ca.crt"}}}),
        )
    };
    Manifests {
        operator: objects(&Settings::default()).expect("tested"),
        matrix: [credentials, source].map(|made| made.expect("an object")).into(),
        configuration: vec![
            object(
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": login, "type": "kubernetes.io/basic-auth",
                "data": {"username": "azhz", "password": "aHVudGVyMg=="}}),
            ),
            connection("vc1", "vc1-credentials"),
            connection("vc2", "vc2-login"),
            object(json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig", "metadata": meta("vdo"), "spec": {}})),
        ],
    }
}

/// What the Kustomizations of the files lead to, from the uppermost on.
fn built(files: &BTreeMap<String, String>, folder: &str) -> Vec<Value> {
    let read = |path: &str| load_all(&files[path]).expect("YAML");
    let list = read(&format!("{folder}kustomization.yaml"));
    let names = list[0]["resources"].as_array().expect("resources");
    let paths = names.iter().map(|name| format!("{folder}{}", name.as_str().expect("a name")));
    paths
        .flat_map(|path| match path.ends_with(".yaml") {
            true => read(&path),
            false => built(files, &format!("{path}/")),
        })
        .collect()
}

#[test]
fn gitops_files_have_every_object_once_and_no_secret() {
    let manifests = manifests();
    let layout = Layout::of(&manifests, false);
    assert!(layout.secrets.is_empty());
    let all = built(&layout.files, "");
    let left_out = ["vc1-credentials", MATRIX_CREDENTIALS];
    let wanted: BTreeSet<String> = manifests
        .all()
        .filter(|object| !left_out.contains(&object.name()))
        .map(ToString::to_string)
        .collect();
    let found: BTreeSet<String> = all.iter().map(|value| object(value.clone()).to_string()).collect();
    assert_eq!((found, all.len()), (wanted.clone(), wanted.len()));
    for (name, text) in &layout.files {
        for value in ["aHVudGVyMg==", "hunter2", "r3ad-it", "azhz", "cjNhZC1pdA=="] {
            assert!(!text.contains(value), "{name} has {value}");
        }
    }
    let needed: Vec<String> = layout.needed.iter().map(ToString::to_string).collect();
    assert_eq!(
        needed,
        [
            "Secret vmware-system-vdo/roots with ca.crt",
            "Secret vmware-system-vdo/vc1-credentials with password and username",
            "Secret vmware-system-vdo/vc2-login with password and username",
            "Secret vmware-system-vdo/vdo-matrix-credentials with password",
        ]
    );
    let readme = &layout.files["README.md"];
    assert!(needed.iter().all(|line| readme.contains(line)), "{readme}");
    let examples = load_all(&layout.files[EXAMPLE]).expect("YAML");
    assert_eq!(examples.len(), needed.len());
    assert_eq!(examples[1]["metadata"]["annotations"][SERVERS], "vc.test");
    let values = examples
        .iter()
        .flat_map(|secret| secret["stringData"].as_object().into_iter().flatten());
    assert!(values.into_iter().all(|(_, value)| value == ""), "{examples:?}");
}

#[test]
fn gitops_secrets_that_are_encrypted_are_files_of_their_own() {
    let layout = Layout::of(&manifests(), true);
    let names: Vec<&str> = layout.secrets.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["config/secret-vc1-credentials.yaml", "operator/secret-vdo-matrix-credentials.yaml"]
    );
    assert!(layout.files["config/kustomization.yaml"].contains("secret-vc1-credentials.yaml"));
    assert!(!layout.files["README.md"].contains("vc1-credentials with"), "it is there");
    assert_eq!(layout.needed.len(), 2, "those that connections name are not known here");
}

#[test]
fn gitops_order_is_definitions_operator_secrets_connection_config() {
    let layout = Layout::of(&manifests(), true);
    let wave = |value: &Value| -> u32 {
        let text = value["metadata"]["annotations"][WAVE].as_str().unwrap_or_default();
        text.parse().expect("a wave")
    };
    let mut waves: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    let documents = layout
        .files
        .iter()
        .filter(|(name, _)| name.contains('/') && !name.ends_with("kustomization.yaml"));
    let all = documents
        .flat_map(|(_, text)| load_all(text).expect("YAML"))
        .chain(layout.secrets.values().cloned());
    for value in all {
        let kind = value["kind"].as_str().expect("a kind").to_owned();
        let kept = value["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/prune"] == "disabled";
        assert_eq!(kept, ["Namespace", "CustomResourceDefinition"].contains(&kind.as_str()), "{kind}");
        waves.entry(kind).or_default().insert(wave(&value));
    }
    let of = |kind: &str| waves[kind].iter().copied().collect::<Vec<_>>();
    assert_eq!((of("Namespace"), of("CustomResourceDefinition")), (vec![0], vec![0]));
    assert_eq!((of("Deployment"), of("ClusterRole")), (vec![1], vec![1]));
    assert_eq!(of("Secret"), [1, 2], "what the operator mounts is there with it");
    assert_eq!((of("VsphereCloudConfig"), of("VDOConfig")), (vec![3], vec![4]));
}
