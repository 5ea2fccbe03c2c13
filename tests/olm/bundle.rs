// SPDX-License-Identifier: Apache-2.0
//! The bundle is fresh, and what the operator framework's own validators say of it is known, line by line.
#![allow(clippy::panic, clippy::expect_used, reason = "a failing test should stop where it fails")]

use crate::olm_bed::bundle;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use vdo_testbed::{bundle_faults, scorecard};

/// The warnings that are left, by a part of their text, and why.
const KNOWN: [(&str, &str, &str); 0] = [];

/// The suggestions of the scorecard that are left, by a part of their text, and why.
const SUGGESTED: [(&str, &str); 1] = [(
    "does not have status spec",
    "the test looks for a status in the examples, which are what users create: the operator writes it",
)];

/// All files below a folder.
fn files(root: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("{}: make bundle", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                all.insert(path.strip_prefix(root)?.to_string_lossy().into_owned(), fs::read(&path)?);
            }
        }
    }
    Ok(all)
}

#[test]
fn bundle_is_up_to_date() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = folder.path().join("bundle");
    let output = std::process::Command::new(vdo_testbed::vdo_release()?)
        .args(["bundle", "--output", &place.to_string_lossy()])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (written, expected) = (files(&bundle())?, files(&place)?);
    let names = |all: &BTreeMap<String, Vec<u8>>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&written), names(&expected), "run `make bundle`");
    for (path, bytes) in expected {
        ensure!(written[&path] == bytes, "bundle/{path} is out of date: run `make bundle`");
    }
    Ok(())
}

#[test]
fn bundle_validators_find_nothing_but_what_is_explained() -> Result<()> {
    let faults = bundle_faults(&bundle())?;
    let explained = |validator: &str, message: &str| KNOWN.iter().any(|(of, part, _)| *of == validator && message.contains(part));
    let unknown: Vec<_> = faults
        .iter()
        .filter(|fault| fault.level == "error" || !explained(&fault.validator, &fault.message))
        .collect();
    ensure!(unknown.is_empty(), "{unknown:#?}");
    for (validator, part, _) in KNOWN {
        let found = faults
            .iter()
            .any(|fault| fault.validator == validator && fault.message.contains(part));
        ensure!(found, "{validator} no longer warns of {part:?}: remove the line");
    }
    Ok(())
}

/// What a generator could do wrong is found.
#[test]
fn bundle_validators_refuse_what_olm_would() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let found = |name: &str, level: &str, file: &str, change: &dyn Fn(&mut serde_json::Value)| -> Result<String> {
        let copy = folder.path().join(name);
        crate::olm_bed::copy(&bundle(), &copy)?;
        crate::olm_bed::edit(&copy.join(file), |object| change(object))?;
        let faults = bundle_faults(&copy)?;
        let messages = faults.into_iter().filter(|fault| fault.level == level).map(|fault| fault.message);
        Ok(messages.collect::<Vec<_>>().join("\n"))
    };
    let attempt = |name: &str, file: &str, change: &dyn Fn(&mut serde_json::Value)| found(name, "error", file, change);
    let role = "manifests/vdo-operator.role.yaml";
    let in_namespace = attempt("namespace", role, &|role| role["metadata"]["namespace"] = "kube-system".into())?;
    ensure!(in_namespace.contains("metadata.namespace"), "{in_namespace}");
    let kind = attempt("kind", role, &|role| {
        *role = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    })?;
    ensure!(kind.contains("Namespace is not supported type"), "{kind}");
    let csv = "manifests/vdo.clusterserviceversion.yaml";
    let unlisted = attempt("unlisted", csv, &|csv| {
        csv["spec"]["customresourcedefinitions"]["owned"]
            .as_array_mut()
            .expect("kinds")
            .pop();
    })?;
    ensure!(unlisted.contains("vdo.vmware.com"), "{unlisted}");
    let category = attempt("category", csv, &|csv| {
        csv["metadata"]["annotations"]["categories"] = "Clouds".into()
    })?;
    ensure!(category.contains("Clouds"), "{category}");
    let requests = found("requests", "warning", csv, &|csv| {
        let container = csv.pointer_mut("/spec/install/spec/deployments/0/spec/template/spec/containers/0");
        container
            .and_then(serde_json::Value::as_object_mut)
            .expect("a container")
            .shift_remove("resources");
    })?;
    ensure!(requests.contains("requests"), "{requests}");
    Ok(())
}

#[test]
fn bundle_passes_the_six_tests_of_the_scorecard() -> Result<()> {
    const TEST: &str = "bundle_passes_the_six_tests_of_the_scorecard";
    let config = vdo_api::yaml::load_value(&fs::read_to_string(bundle().join("tests/scorecard/config.yaml"))?)?;
    let tests = config["stages"][0]["tests"].as_array().context("tests")?;
    assert_eq!(tests.len(), 6);
    for test in tests {
        let name = test["entrypoint"][1].as_str().context("a name")?;
        let answer = match scorecard(&bundle(), name) {
            // Past the harness, which shows what a test prints only when it fails; tests/run.sh collects these lines.
            Err(error) if error.to_string().starts_with("needs user namespaces") => {
                let _ = writeln!(std::io::stderr(), "SKIPPED: needs user namespaces ({TEST})");
                return Ok(());
            }
            other => other?,
        };
        let results = answer["results"].as_array().context("results")?;
        ensure!(
            !results.is_empty() && results.iter().all(|result| result["state"] == "pass"),
            "{name}: {answer:#}"
        );
        for suggestion in results
            .iter()
            .flat_map(|result| result["suggestions"].as_array().into_iter().flatten())
        {
            let text = suggestion.to_string();
            ensure!(SUGGESTED.iter().any(|(part, _)| text.contains(part)), "{name} suggests {text}");
        }
    }
    Ok(())
}
