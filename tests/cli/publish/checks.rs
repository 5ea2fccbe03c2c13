// SPDX-License-Identifier: Apache-2.0
//! What keeps a chart from being published.

use super::super::{seen, vdoctl};
use super::folder::Publisher;
use std::fs;

const RANGES: [&str; 4] = ["--kubernetes", "1.33..1.35", "--vsphere", "7.0.."];

/// Publishes the small driver with these templates.
fn publish(publisher: &Publisher, package: &str, flags: &[&str]) -> String {
    seen(vdoctl(
        &publisher.with(&[&["matrix", "publish", package], &RANGES[..], flags].concat()),
    ))
}

#[test]
fn publish_broken_chart_lists_every_problem_and_writes_nothing() {
    let publisher = Publisher::toy();
    let before = publisher.files();
    let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: toy}\n";
    for (templates, said) in [
        // Only on one of the minors that it is said to support.
        (
            format!("{object}data: {{v: {{{{ values.missing if cluster.minor == \"1.35\" else \"\" }}}}}}\n"),
            &["on Kubernetes 1.35: ", "missing"][..],
        ),
        (
            "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a, namespace: toy}\n".to_owned(),
            &["on Kubernetes 1.33, 1.34, 1.35: PodDisruptionBudget a: Kubernetes 1.25 and newer do not serve policy/v1beta1"],
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: b}\n".to_owned(),
            &["2 problems", "ConfigMap a: has no namespace", "Node is not a kind that a driver's chart may contain"],
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: toy}\nspec: {containers: [{name: a, image: \"registry.example/other:v1\"}]}\n".to_owned(),
            &["renders registry.example/other:v1, which its release does not list"],
        ),
    ] {
        let package = publisher.toy_of("1.1.0", &templates);
        let shown = publish(&publisher, &package, &[]);
        assert!(shown.starts_with("exit 4") && shown.contains("Nothing was written."), "{templates}: {shown}");
        let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in said {
            assert!(flat.contains(words), "{words}: {shown}");
        }
        assert_eq!(publisher.files(), before, "{templates}");
    }
}

#[test]
fn publish_breaking_change_is_refused_until_it_is_allowed() {
    let publisher = Publisher::toy();
    let before = publisher.files();
    let package = publisher.toy_package("1.1.0", "apps/v1", "other", "");
    let shown = publish(&publisher, &package, &[]);
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.starts_with("exit 4"), "{shown}");
    for words in ["from 1.0.0: Deployment toy/toy: spec.selector differs", "--allow-breaking"] {
        assert!(flat.contains(words), "{words}: {shown}");
    }
    assert_eq!(publisher.files(), before);
    let shown = publish(&publisher, &package, &["--allow-breaking"]);
    assert!(shown.starts_with("exit 0") && shown.contains("1 object recreated"), "{shown}");
}

#[test]
fn publish_definition_that_loses_a_field_is_refused() {
    let publisher = Publisher::toy();
    let definition = |fields: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: toys.example.com}}\nspec:\n  group: example.com\n  scope: Cluster\n  names: {{kind: Toy, plural: toys}}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, properties: {{{fields}}}}}}}}}\n"
        )
    };
    let first = publisher.toy_of("1.1.0", &definition("a: {type: string}, b: {type: string}"));
    assert!(publish(&publisher, &first, &[]).starts_with("exit 0"));
    let second = publisher.toy_of("1.2.0", &definition("a: {type: string}"));
    let shown = publish(&publisher, &second, &[]);
    assert!(shown.starts_with("exit 4") && shown.contains("v1.spec.b was removed"), "{shown}");
}

#[test]
fn publish_version_of_a_new_minor_needs_facts() {
    let publisher = Publisher::toy();
    let package = publisher.toy_package("1.1.0", "apps/v1", "toy", "");
    let shown = seen(vdoctl(&publisher.with(&["matrix", "publish", &package])));
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        shown.starts_with("exit 2") && flat.contains("no Kubernetes versions are given that toy 1.1.0 supports"),
        "{shown}"
    );
    // A patch release takes over what is known of the one before.
    let package = publisher.toy_package("1.0.1", "apps/v1", "toy", "");
    let shown = seen(vdoctl(&publisher.with(&["matrix", "publish", &package])));
    assert!(
        shown.starts_with("exit 0") && shown.contains("rendered for Kubernetes 1.33 to 1.35"),
        "{shown}"
    );
}

#[test]
fn publish_facts_of_a_file_are_written_and_mistakes_in_it_refused() {
    let publisher = Publisher::toy();
    let package = publisher.toy_package("1.1.0", "apps/v1", "toy", "");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("facts.yaml");
    let publish = |text: &str| {
        fs::write(&file, text).expect("written");
        seen(vdoctl(&publisher.with(&[
            "matrix",
            "publish",
            &package,
            "--facts",
            &file.display().to_string(),
        ])))
    };
    let before = publisher.files();
    let ranges = "kubernetes: {min: \"1.34\", max: \"1.35\", evidence: [notes], confidence: primary}\nvsphere: {min: \"8.0\", max: null, confidence: unverified}\n";
    for (text, said) in [
        ("- a\n", "they are not a map"),
        ("version: 2.0.0\n", "version is taken from the chart and cannot be set"),
        (ranges, "notes"),
        (
            "kubernetes: {min: \"1.35\", max: \"1.34\", confidence: unverified}\nvsphere: {min: null, max: null, confidence: unverified}\n",
            "kubernetes",
        ),
        ("kubernetse: {}\n", "kubernetse"),
    ] {
        let shown = publish(text);
        assert!(!shown.starts_with("exit 0") && shown.contains(said), "{text}: {shown}");
        assert_eq!(publisher.files(), before, "{text}");
    }
    let shown = publish(&format!(
        "{ranges}sources:\n  notes: {{url: \"https://example.com/notes\", kind: release-notes}}\nupgradesFrom: {{min: 1.0.0}}\n"
    ));
    assert!(shown.starts_with("exit 0"), "{shown}");
    let entry = &super::json(&["matrix", "show", "toy", "1.1.0", "--matrix", &publisher.matrix()])["entry"];
    assert_eq!(entry["kubernetes"]["confidence"], "primary", "{entry}");
}

#[test]
fn publish_broken_package_is_refused() {
    let publisher = Publisher::toy();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("broken.tgz");
    fs::write(&file, b"not an archive").expect("written");
    let shown = publish(&publisher, &file.display().to_string(), &[]);
    assert!(shown.starts_with("exit 4"), "{shown}");
    let shown = publish(&publisher, "nowhere.tgz", &[]);
    assert!(
        shown.starts_with("exit 3") && shown.contains("nowhere.tgz does not exist"),
        "{shown}"
    );
}
