// SPDX-License-Identifier: Apache-2.0
//! Files are written in one place, which follows no link and closes what is secret: the crate `vdo-files`. No other code writes one. What an
//! operating system does differently is in one place, too: the crate `vdo-system`.

use crate::sources::{code, product, product_code, root, texts_of};
use std::path::Path;

/// What writes a file, or leads others to one.
const WRITERS: [&str; 11] = [
    "fs::write",
    "fs::copy",
    "fs::hard_link",
    "File::create",
    "File::options",
    "OpenOptions",
    "tokio::fs",
    "::symlink(",
    "NamedTempFile",
    "TempFile",
    "set_permissions",
];

/// The one place, with what it asks of the system; and the root of an image, which `release` builds in a folder of its own with the modes that the
/// image has.
const MAY: [&str; 4] = [
    "crates/vdo-files/src/lib.rs",
    "crates/vdo-system/src/unix.rs",
    "crates/vdo-system/src/windows.rs",
    "crates/release/src/image_files.rs",
];

/// What only some systems have, and the questions which system this is.
const OF_A_SYSTEM: [&str; 8] = [
    "std::os::",
    "rustix::",
    "nix::",
    "signal::unix",
    "cfg(unix",
    "cfg(windows",
    "target_os",
    "\"/dev/",
];

/// Registries and bundles name sizes up to the largest number there is: their sum is computed by `types::total`, which cannot overflow. Sums of
/// times are kept by clippy, which each `lib.rs` asks for all of them.
#[test]
fn sizes_of_others_are_added_where_it_cannot_overflow() {
    let mut found = Vec::new();
    for folder in [
        "crates/vdo-oci/src",
        "crates/vdo-core/src/mirror_lock",
        "crates/vdo-author/src/mirror",
        "crates/vdo-source/src/fetch",
        "crates/vdoctl/src/mirror",
    ] {
        let files = texts_of(folder, &["rs"]);
        assert!(!files.is_empty(), "{folder} has no sources");
        let sums = files.into_iter().filter(|(_, text)| {
            let code = code(text);
            code.contains(".sum()") || code.contains(".sum::<")
        });
        found.extend(sums.map(|(path, _)| format!("{folder}/{}", path.display())));
    }
    assert!(found.is_empty(), "write types::total: {found:?}");
    for folder in product() {
        let lint = std::fs::read_to_string(root().join(&folder).join("lib.rs")).expect("the library");
        assert!(
            lint.contains("warn(clippy::arithmetic_side_effects"),
            "{folder}: sums of times are not kept"
        );
    }
}

#[test]
fn files_are_written_in_one_place() {
    let mut found = Vec::new();
    let mut seen = 0;
    for folder in product().into_iter().chain(["crates/release/src".to_owned()]) {
        for (path, text) in texts_of(&folder, &["rs"]) {
            let path = Path::new(&folder).join(path).display().to_string();
            if MAY.contains(&path.as_str()) || path.ends_with("/tests.rs") || path.contains("/tests/") {
                continue;
            }
            seen += 1;
            let code = code(&text);
            found.extend(
                WRITERS
                    .iter()
                    .filter(|writer| code.contains(**writer))
                    .map(|writer| format!("{path}: {writer}")),
            );
        }
    }
    assert!(seen > 300, "the sources were not found");
    assert!(found.is_empty(), "write it with vdo_files, which follows no link: {found:#?}");
}

/// `vdoctl` and what it is built of run on each system; the operator, which is the rest of `src`, runs on Linux.
#[test]
fn what_systems_do_differently_is_in_one_place() {
    let of_the_operator = |path: &str| {
        let own = ["src/lib.rs", "src/bin/", "src/controller", "src/runtime"];
        own.iter().any(|start| path.starts_with(start))
    };
    let files = product_code().filter(|(path, _)| !path.starts_with("crates/vdo-system/") && !of_the_operator(path));
    let (mut seen, mut found) = (0, Vec::new());
    for (path, code) in files {
        seen += 1;
        // What a text in JSON has is of a cluster.
        let code = code.replace("\\\"", "'");
        found.extend(
            OF_A_SYSTEM
                .iter()
                .filter(|word| code.contains(**word))
                .map(|word| format!("{path}: {word}")),
        );
    }
    assert!(seen > 300, "the sources were not found");
    assert!(found.is_empty(), "ask vdo_system, which does it on every system: {found:#?}");
}
