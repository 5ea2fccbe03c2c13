// SPDX-License-Identifier: Apache-2.0
//! The objects of an installation are those of deploy/.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use vdo_api::api::OPERATOR_NAMESPACE;
use vdo_api::yaml::load_all;
use vdo_core::install::{FILES, OPENSHIFT, OPERATOR, Settings, objects};

#[test]
fn embedded_files_are_those_of_the_kustomization_and_the_namespace() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kustomization.yaml")).unwrap();
    let kustomization = load_all(&text).unwrap().remove(0);
    let listed = kustomization["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file.as_str().unwrap());
    let wanted: BTreeSet<&str> = listed.chain(["namespace.yaml"]).chain(OPENSHIFT).collect();
    assert_eq!(FILES.iter().map(|(file, _)| *file).collect::<BTreeSet<_>>(), wanted);
}

#[test]
fn objects_by_default_are_as_written_in_deploy() {
    for openshift in [false, true] {
        let files = FILES.iter().filter(|(file, _)| openshift || !OPENSHIFT.contains(file));
        let written: Vec<Value> = files.flat_map(|(_, text)| load_all(text).unwrap()).collect();
        let settings = Settings {
            openshift,
            ..Settings::default()
        };
        let made: Vec<Value> = objects(&settings).unwrap().iter().map(|object| object.value().clone()).collect();
        assert!(made == written, "with OpenShift: {openshift}");
    }
}

#[test]
fn objects_in_another_namespace_name_the_usual_one_nowhere() {
    let settings = Settings {
        namespace: "elsewhere".into(),
        ..Settings::default()
    };
    for object in objects(&settings).unwrap() {
        assert!(!object.value().to_string().contains(OPERATOR_NAMESPACE), "{object}");
    }
}

#[test]
fn objects_with_settings_have_image_and_arguments() {
    let settings = Settings {
        image: Some("registry.example/vdo@sha256:00".into()),
        args: vec!["--matrix=/m".into()],
        ..Settings::default()
    };
    let all = objects(&settings).unwrap();
    let deployment = all.iter().find(|object| object.kind() == "Deployment").unwrap();
    assert_eq!(deployment.name(), OPERATOR);
    let elsewhere = Settings {
        registry: Some("registry.example/mirror/".into()),
        ..Settings::default()
    };
    let image = |settings: &Settings| {
        let all = objects(settings).unwrap();
        let deployment = all.into_iter().find(|object| object.kind() == "Deployment").unwrap();
        deployment.text("/spec/template/spec/containers/0/image").to_owned()
    };
    let (_, path) = image(&Settings::default())
        .split_once('/')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert_eq!(image(&elsewhere), format!("registry.example/mirror/{path}"));
    let container = deployment.value().pointer("/spec/template/spec/containers/0").unwrap();
    assert_eq!(container["image"], "registry.example/vdo@sha256:00");
    assert_eq!(container["args"].as_array().unwrap().last().unwrap(), "--matrix=/m");
}
