// SPDX-License-Identifier: Apache-2.0
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

/// What is copied from the samples is no administrator's account, and says how the vCenter is trusted.
#[test]
fn samples_name_no_administrator_and_a_way_of_trust() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/samples");
    let secret = read(&samples.join("secret.yaml")).remove(0);
    let user = secret["stringData"]["username"].as_str().expect("a user");
    assert!(user.contains('@') && !user.to_lowercase().contains("admin"), "{user}");
    let connection = read(&samples.join("connection.yaml")).remove(0);
    let trust = ["thumbprint", "caBundle"].map(|field| connection["spec"][field].is_null());
    assert_eq!(trust.iter().filter(|is_absent| !**is_absent).count(), 1, "{connection}");
    let servers = &secret["metadata"]["annotations"]["vdo.vmware.com/servers"];
    assert_eq!(
        *servers, connection["spec"]["vcIp"],
        "the Secret may be sent to the server of the connection"
    );
}

/// A reader who cannot pull the project's image finds on the spot how to get it.
#[test]
fn image_is_named_with_the_way_to_it() {
    let mut named = 0;
    let readme = (
        Path::new("README.md").to_owned(),
        std::fs::read_to_string(crate::sources::root().join("README.md")).expect("the page"),
    );
    for (path, text) in crate::sources::texts_of("deploy", &["yaml", "md", "sh"])
        .into_iter()
        .chain([readme])
    {
        if text.contains("ghcr.io/vdo-project/") {
            named += 1;
            assert!(
                text.contains("install.md#from-the-sources"),
                "{} names the image, and not how to get it: docs/install.md#from-the-sources",
                path.display()
            );
        }
    }
    assert!(named >= 4, "the image is named in {named} files");
}

/// Who changes a type or a chart runs one target, and everything that is deployed is up to date.
#[test]
fn manifests_target_writes_every_generated_file_that_is_deployed() {
    let makefile = std::fs::read_to_string(crate::sources::root().join("Makefile")).expect("the Makefile");
    let (_, recipe) = makefile.split_once("\nmanifests:").expect("the target");
    let recipe = recipe.split("\n\n").next().unwrap_or_default();
    let steps: Vec<&str> = recipe.lines().skip(1).map(str::trim).collect();
    let generate = "@$(CARGO) run --quiet --package vdo --example generate -- crds rbac chart";
    assert_eq!(steps, [generate, "@$(MAKE) bundle"], "the recipe of `make manifests`");
    let mut generated = 0;
    for (folder, target) in [("deploy", "manifests"), ("bundle", "bundle")] {
        for (path, text) in crate::sources::texts_of(folder, &["yaml", "md"]) {
            for line in text.lines().filter(|line| line.contains("enerated") && line.contains(" by `make ")) {
                generated += 1;
                assert!(
                    line.contains(&format!(" by `make {target}`")),
                    "{folder}/{}: {line}",
                    path.display()
                );
            }
        }
    }
    assert!(generated > 10, "only {generated} generated files were found");
}
