//! What `kubectl apply -k deploy` applies.

use std::path::Path;

use serde_json::Value;

/// Beside it, and applied by itself.
const APART: [&str; 2] = ["kustomization.yaml", "namespace.yaml"];

#[test]
fn kustomization_lists_every_manifest_but_the_operators_namespace() {
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
    let namespace = &read(&deploy.join("namespace.yaml"))[0]["metadata"]["name"];
    for file in &listed {
        let brings = |object: &Value| object["kind"] == "Namespace" && object["metadata"]["name"] == *namespace;
        assert!(
            !read(&deploy.join(file)).iter().any(brings),
            "{file}: kubectl delete -k deploy would delete {namespace} with a VDOConfig in it"
        );
    }
}

fn read(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("a manifest");
    vdo::yaml::load_all(&text).expect("YAML")
}
