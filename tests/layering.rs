//! The import rule of docs/architecture.md, held against every file in src: rooms use only the rooms that the table names,
//! the pure core reaches neither clock, environment, files, network nor runtime, and no file grows too long to read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Room, layer, and the rooms it may use. Layers 0 and 1 build without the feature `io`.
const ROOMS: [(&str, u8, &[&str]); 19] = [
    ("types", 0, &[]),
    ("api", 0, &["types"]),
    ("facts", 0, &["types", "api"]),
    ("yaml", 1, &["types", "api"]),
    ("manifest", 1, &["types", "api", "yaml"]),
    ("health", 1, &["types", "api", "facts", "manifest"]),
    ("plan", 1, &["types", "api", "manifest", "health"]),
    ("matrix", 1, &["types", "api", "facts", "yaml"]),
    ("chart", 1, &["types", "api", "manifest", "yaml"]),
    ("driverconfig", 1, &["types", "api", "facts", "manifest", "yaml"]),
    ("status", 1, &["types", "api", "facts", "health", "plan"]),
    ("cluster", 2, &["types", "api", "manifest", "plan"]),
    ("fetch", 2, &["types", "api", "matrix", "chart"]),
    ("vcenter", 2, &["types", "api", "facts", "driverconfig"]),
    ("reconcile", 3, BELOW),
    ("runtime", 3, &["types", "api"]),
    ("controller", 3, &["types", "api", "facts", "cluster", "fetch", "vcenter", "status", "manifest", "reconcile", "runtime"]),
    ("cli", 3, BELOW_AND_RECONCILE),
    ("bin", 3, &["api", "cli", "controller", "runtime"]),
];

const BELOW: &[&str] =
    &["types", "api", "facts", "yaml", "manifest", "health", "plan", "matrix", "chart", "driverconfig", "status", "cluster", "fetch", "vcenter"];
const BELOW_AND_RECONCILE: &[&str] = &[
    "types", "api", "facts", "yaml", "manifest", "health", "plan", "matrix", "chart", "driverconfig", "status", "cluster", "fetch", "vcenter",
    "reconcile", "runtime",
];

/// What the pure core never names.
const EFFECTS: [&str; 11] = [
    "std::fs", "std::env", "net::Tcp", "ToSocketAddrs", "std::process", "SystemTime::now", "Instant::now", "Timestamp::now", "kube::Client", "kube::client", "tokio",
];

const LONGEST: usize = 500;

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every file in src with its room (`lib` for lib.rs) and its text without comment lines and without its tests.
fn files() -> Vec<(PathBuf, String, String)> {
    let (mut all, mut folders) = (Vec::new(), vec![source()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(source()).expect("inside src").to_path_buf();
                let first = relative.iter().next().and_then(|part| part.to_str()).expect("a name").trim_end_matches(".rs").to_owned();
                let text = fs::read_to_string(&path).expect("text");
                let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
                let code = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
                assert!(text.lines().count() <= LONGEST, "{} has more than {LONGEST} lines; split it", relative.display());
                all.push((relative, first, code));
            }
        }
    }
    all
}

/// The rooms that a piece of code names: `crate::x`, and each name in `crate::{x, y::{…}}`; binaries say `vdo::`.
fn named(root: &str, code: &str) -> BTreeSet<String> {
    let word = |text: &str| text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut rooms = BTreeSet::new();
    for (at, _) in code.match_indices(root) {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &code[at + root.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            rooms.insert(word(rest));
            continue;
        };
        let (mut depth, mut start) = (0, 0);
        for (i, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    rooms.insert(word(&group[start..i]));
                    start = i + 1;
                    if c == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    rooms.retain(|room| room.chars().next().is_some_and(char::is_lowercase));
    rooms
}

#[test]
fn rooms_use_only_what_the_table_allows() {
    let table: BTreeMap<&str, (u8, &[&str])> = ROOMS.iter().map(|(room, layer, uses)| (*room, (*layer, *uses))).collect();
    for (file, room, code) in files() {
        if room == "lib" {
            continue;
        }
        let (layer, uses) = *table.get(room.as_str()).unwrap_or_else(|| panic_about(&file, &room));
        for other in named(if room == "bin" { "vdo::" } else { "crate::" }, &code) {
            let allowed = other == room || uses.contains(&other.as_str());
            assert!(allowed, "src/{} uses {other}, which the table in tests/layering.rs does not allow to {room}", file.display());
        }
        for effect in EFFECTS.iter().filter(|_| layer < 2) {
            assert!(!code.contains(effect), "src/{} names {effect}; the pure core takes such things as arguments", file.display());
        }
    }
}

#[expect(clippy::panic, reason = "the message of a failed test")]
fn panic_about(file: &Path, room: &str) -> ! {
    panic!("src/{} is in the room {room}, which the table in tests/layering.rs does not know", file.display())
}

#[test]
fn the_table_only_points_downwards_and_without_circles() {
    let position = |room: &str| ROOMS.iter().position(|(name, ..)| *name == room).expect("a room of the table");
    let layer = |room: &str| ROOMS[position(room)].1;
    for (room, own, uses) in ROOMS {
        for other in uses {
            assert!(layer(other) <= own && position(other) < position(room), "{room} may not use {other}: it stands above or beside it");
            assert!(own != 2 || layer(other) != 2, "ports do not use each other: {room}, {other}");
        }
    }
}

#[test]
fn paths_are_found_in_every_spelling() {
    let found = named("crate::", "use crate::api::{Class, Reason};\nuse crate::{plan::{self, Step}, types};\nlet x = crate::yaml::parse(y); $crate::z; mycrate::w; crate::Local");
    assert_eq!(found, ["api", "plan", "types", "yaml"].map(String::from).into());
}
