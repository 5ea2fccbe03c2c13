// SPDX-License-Identifier: Apache-2.0
//! Tests that `make publish` refuses a missing registry and changed sources before it builds anything.

use super::root;
use std::path::Path;
use std::process::{Command, Output};

const SCRIPT: &str = "crates/release/build.sh";

fn publish(folder: &Path, registry: Option<&str>) -> (Option<i32>, String) {
    let mut command = Command::new(folder.join(SCRIPT));
    command
        .arg("publish")
        .current_dir(folder)
        .env_remove("REGISTRY")
        .env_remove("DRY_RUN");
    if let Some(registry) = registry {
        command.env("REGISTRY", registry);
    }
    let Output { status, stdout, stderr } = command.output().expect("the script starts");
    let said = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
    (status.code(), said)
}

#[test]
fn publish_without_registry_or_with_changed_sources_builds_nothing() {
    let (code, said) = publish(root(), None);
    assert_eq!(code, Some(2), "{said}");
    assert_eq!(said, "REGISTRY is not set: make publish REGISTRY=registry.example.com/vsphere\n");

    let folder = tempfile::tempdir().expect("a folder");
    let clone = folder.path().join("a clone");
    let mut git = Command::new("git");
    git.args(["clone", "--quiet", "--shared"]).arg(root()).arg(&clone);
    assert!(git.status().expect("git starts").success());
    // The script as it is here; a line more makes the sources differ in any case.
    let script = std::fs::read_to_string(root().join(SCRIPT)).expect("the script");
    std::fs::write(clone.join(SCRIPT), script + "# changed\n").expect("the script is written");
    let (code, said) = publish(&clone, Some("registry.example.com/vsphere"));
    assert_eq!(code, Some(2), "{said}");
    assert_eq!(
        said,
        "The sources differ from the commit. Commit them: what is published names its commit\n"
    );
}
