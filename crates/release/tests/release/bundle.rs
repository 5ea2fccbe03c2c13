// SPDX-License-Identifier: Apache-2.0
//! Tests `vdo-release bundle`, `bundle-image` and `catalog`: reproducible bytes and refused input; tests/olm checks the content.

use crate::{done, refused, text};
use std::fs;
use std::path::Path;

/// A bundle with its image and catalog in this folder; the lines with digests.
fn build(folder: &Path) -> Vec<String> {
    let at = |name: &str| folder.join(name).display().to_string();
    done(&["bundle", "--image", "example.com/vdo@sha256:0", "--output", &at("bundle")]);
    let image = [
        "bundle-image",
        "--bundle",
        &at("bundle"),
        "--output",
        &at("image"),
        "--reference",
        "vdo-bundle:v1",
    ];
    let argument = format!("vdo-bundle:v1={}", at("bundle"));
    let catalog = [
        "catalog",
        "--bundle",
        &argument,
        "--output",
        &at("catalog"),
        "--image",
        &at("catalog-image"),
        "--reference",
        "vdo-catalog:v1",
    ];
    let said = [done(&image), done(&catalog)].concat();
    said.lines().filter(|line| line.starts_with("image ")).map(str::to_owned).collect()
}

#[test]
fn bundle_and_catalog_are_the_same_bytes_wherever_they_are_built() {
    let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let [first, second] = [build(folders[0].path()), build(folders[1].path())];
    assert_eq!(first.len(), 2, "{first:?}");
    assert_eq!(first, second);
    // And again over itself.
    assert_eq!(build(folders[0].path()), first);
}

#[test]
fn bundle_folder_with_other_files_is_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("letter"), "dear").expect("a file");
    let message = refused(&["bundle", "--output", text(folder.path())]);
    assert!(
        message.contains("not replaced") && folder.path().join("letter").exists(),
        "{message}"
    );
}

#[test]
fn bundle_image_of_a_folder_without_a_bundle_is_refused_and_nothing_is_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("image");
    let message = refused(&[
        "bundle-image",
        "--bundle",
        text(folder.path()),
        "--output",
        text(&image),
        "--reference",
        "vdo-bundle:v1",
    ]);
    assert!(
        message.contains("contains no bundle") && message.contains("make bundle"),
        "{message}"
    );
    assert!(!image.exists());
}

#[test]
fn catalog_with_an_argument_that_is_no_bundle_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("catalog");
    let argument = format!("vdo-bundle:v1={}", folder.path().display());
    let message = refused(&["catalog", "--bundle", &argument, "--output", text(&output)]);
    assert!(message.contains("contains no bundle") && !output.exists(), "{message}");
}
