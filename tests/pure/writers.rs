//! Files are written in one place, which follows no link and closes what is secret: `src/files.rs`. No other code writes one.

use crate::layering::texts_of;
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

/// The one place; and the root of an image, which `release` builds in a folder of its own with the modes that the image has.
const MAY: [&str; 2] = ["src/files.rs", "crates/release/src/rootfs.rs"];

/// The code of a file without its tests and comments.
fn code(text: &str) -> String {
    let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Registries and bundles name sizes up to the largest number there is: their sum is computed by `types::total`, which cannot overflow. Sums of
/// times are kept by clippy, which `src/lib.rs` asks for all of them.
#[test]
fn sizes_of_others_are_added_where_it_cannot_overflow() {
    let mut found = Vec::new();
    for folder in [
        "src/oci",
        "src/registry",
        "src/transfer",
        "src/layout",
        "src/mirror",
        "src/web",
        "src/fetch",
        "src/cli/mirror",
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
    let lint = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).expect("the library");
    assert!(lint.contains("warn(clippy::arithmetic_side_effects)"), "sums of times are not kept");
}

#[test]
fn files_are_written_in_one_place() {
    let mut found = Vec::new();
    let mut seen = 0;
    for folder in ["src", "crates/release/src", "crates/minijinja-budget/src"] {
        for (path, text) in texts_of(folder, &["rs"]) {
            let path = Path::new(folder).join(path).display().to_string();
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
    assert!(found.is_empty(), "write it with crate::files, which follows no link: {found:#?}");
}
