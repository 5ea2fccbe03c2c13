// SPDX-License-Identifier: Apache-2.0
//! The rights in deploy/ come from the charts.

use crate::content::RIGHTS;
use crate::generate::rbac;
use std::path::Path;

#[test]
fn rights_in_deploy_are_those_of_the_charts() {
    for (file, text) in rbac::files(&RIGHTS).unwrap() {
        let found = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        assert!(found == text, "{file} is out of date: make manifests");
    }
}
