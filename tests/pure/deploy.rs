//! What `kubectl apply -k deploy` applies.

use std::path::Path;

use serde_json::Value;

/// Beside it, and applied by themselves; the rights for OpenShift on OpenShift alone.
const APART: [&str; 4] = [
    "kustomization.yaml",
    "namespace.yaml",
    "openshift-rbac.yaml",
    "openshift-trusted-ca.yaml",
];

#[test]
fn kustomization_lists_every_manifest_but_the_namespaces() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    let files = |folder: &'static str| {
        let entries = std::fs::read_dir(deploy.join(folder)).expect("a folder").flatten();
        let names = entries.map(move |entry| format!("{folder}{}", entry.file_name().to_string_lossy()));
        names.filter(|name| name.ends_with(".yaml") && !APART.contains(&name.as_str()))
    };
    let mut expected: Vec<String> = files("").chain(files("crds/")).collect();
    expected.sort();
    let mut listed: Vec<String> = read(&deploy.join("kustomization.yaml"))[0]["resources"]
        .as_array()
        .expect("resources")
        .iter()
        .map(|file| file.as_str().expect("a file").to_owned())
        .collect();
    listed.sort();
    assert_eq!(listed, expected);
    for file in &listed {
        let namespaces = read(&deploy.join(file)).into_iter().filter(|object| object["kind"] == "Namespace");
        let names: Vec<Value> = namespaces.map(|object| object["metadata"]["name"].clone()).collect();
        assert!(
            names.is_empty(),
            "{file}: kubectl delete -k deploy would delete {names:?} with a VDOConfig, or a driver under its volumes"
        );
    }
    let apart = read(&deploy.join("namespace.yaml"));
    let names: Vec<&Value> = apart.iter().map(|object| &object["metadata"]["name"]).collect();
    assert_eq!(names, ["vmware-system-vdo", "vmware-system-csi"]);
}

fn read(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("a manifest");
    vdo_api::yaml::load_all(&text).expect("YAML")
}
