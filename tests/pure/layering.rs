//! The import rule of docs/architecture.md, held against every file in src: rooms use only the rooms that the table names,
//! the pure core reaches neither clock, environment, files, network nor runtime, and no file, of tests neither, grows too long to read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Room, layer, and the rooms it may use. Layers 0 and 1 build without the feature `io`.
const ROOMS: &str = "
types         0
api           0  types
facts         0  types
yaml          1
oci           1  types
manifest      1  types api
install       1  types api yaml manifest
chart         1  types yaml
admission     1  types api manifest chart
driverconfig  1  types
drivers       1  types api facts manifest chart driverconfig
health        1  types api facts manifest drivers
rbac          1  types manifest
matrix        1  types yaml drivers
plan          1  types api manifest drivers rbac matrix
vsphere       1  types api facts yaml drivers matrix
accounts      1  types vsphere
fixes         1  types api facts vsphere
certificate   1  types manifest vsphere
signature     1  types oci
publish       1  types yaml chart matrix plan signature
mirror        1  types yaml chart matrix publish
status        1  types api facts drivers health plan
cluster       2  types api manifest plan
files         2
web           2  types
registry      2  types oci web
fetch         2  types api oci chart matrix signature mirror files web registry
vcenter       2  types facts vsphere accounts fixes
layout        2  types oci files
transfer      2  types oci registry layout
reconcile     3  types api facts manifest chart admission driverconfig drivers health rbac plan matrix vsphere certificate mirror status cluster fetch vcenter
runtime       3
controller    3  types api facts manifest plan vsphere status cluster fetch vcenter reconcile runtime
cli           3  types api facts yaml oci manifest admission install chart drivers health plan matrix vsphere accounts fixes signature publish mirror status cluster files web registry fetch vcenter layout transfer reconcile runtime
bin           3  api runtime controller cli
";

struct Room {
    name: &'static str,
    layer: u8,
    uses: Vec<&'static str>,
}

fn rooms() -> Vec<Room> {
    let row = |line: &'static str| {
        let mut words = line.split_whitespace();
        let (name, layer) = (words.next()?, words.next()?.parse().ok()?);
        Some(Room {
            name,
            layer,
            uses: words.collect(),
        })
    };
    ROOMS.lines().filter_map(row).collect()
}

/// Ports that other ports speak through: what HTTPS, registries and layouts have in common for all of them.
const PROTOCOLS: [&str; 4] = ["files", "web", "registry", "layout"];

/// What the pure core never names.
const EFFECTS: &str =
    "std::fs std::env std::process net::Tcp ToSocketAddrs SystemTime::now Instant::now Timestamp::now kube::Client kube::client tokio";

const LONGEST: usize = 500;

/// Every Rust file below a folder of the repository, by its path there, with its text.
fn texts(folder: &str) -> Vec<(PathBuf, String)> {
    texts_of(folder, &["rs"])
}

/// The same of files with these extensions.
pub fn texts_of(folder: &str, extensions: &[&str]) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let (mut all, mut folders) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|found| extensions.iter().any(|extension| found == *extension))
            {
                let text = fs::read_to_string(&path).expect("text");
                all.push((path.strip_prefix(&root).expect("inside").to_path_buf(), text));
            }
        }
    }
    all
}

/// Every file in src with its room (`lib` for lib.rs) and its text without comment lines and without its tests.
fn files() -> impl Iterator<Item = (PathBuf, String, String)> {
    texts("src").into_iter().map(|(relative, text)| {
        let first = relative.iter().next().and_then(|part| part.to_str()).expect("a name");
        let first = first.trim_end_matches(".rs").to_owned();
        let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
        let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code = code.collect::<Vec<_>>().join("\n");
        (relative, first, code)
    })
}

/// The rooms that a piece of code names: `crate::x`, and each name in `crate::{x, y::{…}}`; binaries say `vdo::`.
fn named(root: &str, code: &str) -> BTreeSet<String> {
    let word = |text: &str| {
        text.trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect::<String>()
    };
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
fn layering_every_module_uses_only_allowed_modules() {
    let table = rooms();
    for (file, name, code) in files().filter(|(_, name, _)| name != "lib") {
        let file = file.display();
        let room = table.iter().find(|room| room.name == name);
        assert!(
            room.is_some(),
            "src/{file} is in the room {name}, which the table in tests/pure/layering.rs does not know"
        );
        let Some(Room { layer, uses, .. }) = room else { continue };
        for other in named(if name == "bin" { "vdo::" } else { "crate::" }, &code) {
            let allowed = other == name || uses.contains(&other.as_str());
            assert!(
                allowed,
                "src/{file} uses {other}, which the table in tests/pure/layering.rs does not allow to {name}"
            );
        }
        for effect in EFFECTS.split(' ').filter(|_| *layer < 2) {
            assert!(
                !code.contains(effect),
                "src/{file} names {effect}; the pure core takes such things as arguments"
            );
        }
    }
}

/// The crate of the templates is below layer 1: `chart` alone uses it, and it reaches no more than the core does.
#[test]
fn layering_template_crate_is_pure_and_used_by_chart_alone() {
    let sources = texts("crates/minijinja-budget/src");
    assert!(!sources.is_empty(), "the crate has no sources");
    for (path, text) in sources {
        for effect in EFFECTS.split(' ') {
            assert!(
                !text.contains(effect),
                "crates/minijinja-budget/src/{} names {effect}",
                path.display()
            );
        }
    }
    for (file, room, code) in files() {
        let uses = code.contains("minijinja");
        assert!(
            !uses || room == "chart",
            "src/{} uses the templates' crate; chart does",
            file.display()
        );
    }
}

#[test]
fn layering_every_allowed_edge_is_used() {
    let table = rooms();
    let mut used: BTreeSet<(String, String)> = BTreeSet::new();
    for (_, name, code) in files() {
        let others = named(if name == "bin" { "vdo::" } else { "crate::" }, &code);
        used.extend(others.into_iter().map(|other| (name.clone(), other)));
    }
    let edges = table.iter().flat_map(|room| room.uses.iter().map(move |other| (room.name, *other)));
    let unused: Vec<_> = edges.filter(|(a, b)| !used.contains(&((*a).to_owned(), (*b).to_owned()))).collect();
    assert!(
        unused.is_empty(),
        "the table in tests/pure/layering.rs allows what no file uses: {unused:?}"
    );
}

/// The table in docs/architecture.md names the same edges.
#[test]
fn layering_architecture_page_names_the_same_edges() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md")).expect("the page");
    let section = page
        .split("### Who may use whom")
        .nth(1)
        .expect("the section")
        .split("\n## ")
        .next()
        .unwrap_or_default();
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<String>>();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let shown: BTreeMap<String, BTreeSet<String>> = rows.map(|(room, uses)| (room.to_owned(), names(uses))).collect();
    let table = rooms()
        .into_iter()
        .map(|room| (room.name.to_owned(), room.uses.iter().map(|&other| other.to_owned()).collect()));
    assert_eq!(shown, table.collect());
}

#[test]
fn layering_every_file_is_within_line_limit() {
    let folders = ["src", "crates", "tests", "benches", "examples", "fuzz/src", "fuzz/fuzz_targets"];
    let all = folders
        .into_iter()
        .flat_map(|folder| texts(folder).into_iter().map(move |file| (folder, file)));
    let long = all.filter(|(_, (_, text))| text.lines().count() > LONGEST);
    let names: Vec<String> = long.map(|(folder, (path, _))| format!("{folder}/{}", path.display())).collect();
    assert!(names.is_empty(), "more than {LONGEST} lines; split them: {names:?}");
}

/// `make mutants` builds these tests without the feature `io`, and so without layers 2 and 3.
#[test]
fn layering_pure_tests_use_ports_and_drivers_only_with_the_feature_io() {
    let files = texts("tests/pure");
    let main = &files.iter().find(|(path, _)| path.ends_with("main.rs")).expect("main.rs").1;
    let above: Vec<String> = rooms()
        .iter()
        .filter(|room| room.layer > 1)
        .map(|room| format!("vdo::{}", room.name))
        .collect();
    for (path, text) in &files {
        let first = path.with_extension("").iter().next().unwrap_or_default().display().to_string();
        let behind = main.contains(&format!("#[cfg(feature = \"io\")]\nmod {first};"));
        let used = above.iter().find(|room| text.contains(&format!("{room}::")));
        assert!(
            behind || used.is_none(),
            "{} uses {used:?}, and main.rs has {first} without the feature io",
            path.display()
        );
    }
}

#[test]
fn layering_table_has_no_cycles() {
    let table = rooms();
    for (at, room) in table.iter().enumerate() {
        for other in &room.uses {
            let below = table.iter().take(at).find(|below| below.name == *other);
            assert!(
                below.is_some(),
                "{} may not use {other}: it stands above, beside or nowhere",
                room.name
            );
            assert!(
                room.layer != 2 || PROTOCOLS.contains(other) || below.is_some_and(|b| b.layer != 2),
                "ports do not use each other: {}, {other}",
                room.name
            );
        }
    }
}

#[test]
fn layering_import_path_in_any_spelling_is_found() {
    let found = named(
        "crate::",
        "use crate::api::{Class, Reason};\nuse crate::{plan::{self, Step}, types};\nlet x = crate::yaml::parse(y); $crate::z; mycrate::w; crate::Local",
    );
    assert_eq!(found, ["api", "plan", "types", "yaml"].map(String::from).into());
}

/// Text that others have written takes up to a hundred times its bytes in memory: `types::from_json` counts before anything is built, and so does
/// `yaml`. What else reads JSON or YAML has a limit of its own, or reads what was counted before.
#[test]
fn layering_text_from_outside_is_read_within_a_budget() {
    const MAY: [&str; 6] = [
        // What the cache itself has written.
        "cluster/cache/cached_object.rs",
        // Objects of the API server, which are bounded while they are read.
        "cluster/write.rs",
        // What `at_rest` has written.
        "manifest/object.rs",
        // Counts values itself.
        "matrix/stream.rs",
        "types/json.rs",
        // The memory of all inspections together.
        "vcenter/tags.rs",
    ];
    const READS: [&str; 4] = [
        "serde_json::from_str",
        "serde_json::from_slice",
        "from_reader(",
        "Deserializer::from_",
    ];
    let places = |words: &[&str]| -> BTreeSet<String> {
        let found = files().filter(|(file, _, code)| !file.ends_with("tests.rs") && words.iter().any(|word| code.contains(word)));
        found.map(|(file, ..)| file.display().to_string()).collect()
    };
    assert_eq!(places(&READS), MAY.map(str::to_owned).into());
    assert_eq!(
        places(&["serde_saphyr::"]),
        ["yaml.rs", "yaml/positions.rs"].map(str::to_owned).into()
    );
}

/// What is written is a step of the plan: the methods that write are called where steps are carried out, and beside them only for a
/// status and for an approval.
/// The texts of a piece of code, and the code around them.
fn texts_apart(code: &str) -> (Vec<String>, String) {
    let (mut texts, mut rest) = (Vec::new(), String::new());
    let mut parts = code.replace("'\"'", "' '").replace("\\\\", "  ").replace("\\\"", "  ");
    while let Some((before, after)) = parts.split_once('"') {
        let (text, more) = after.split_once('"').unwrap_or((after, ""));
        rest.push_str(before);
        rest.push(' ');
        texts.push(text.to_owned());
        parts = more.to_owned();
    }
    (texts, rest + &parts)
}

/// The names of drivers: as the matrix and Kubernetes spell them, and as constants. Messages may speak of them.
#[test]
fn layering_driver_names_are_in_the_table_of_drivers_only() {
    const SPELLED: [&str; 3] = ["vsphere-cpi", "vsphere-csi", "csi.vsphere.vmware.com"];
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    for (file, _, code) in files().filter(|(_, room, _)| !matches!(room.as_str(), "drivers" | "api")) {
        let code: Vec<&str> = code.lines().map(|line| line.split(" // ").next().unwrap_or_default()).collect();
        let (texts, code) = texts_apart(&code.join("\n"));
        let spelled = texts.iter().find(|text| SPELLED.contains(&text.as_str()));
        let constant = code.split(|c| !is_word(c)).find(|word| matches!(*word, "CPI" | "CSI"));
        let found = spelled.map(String::as_str).or(constant);
        assert_eq!(
            found,
            None,
            "in src/{}: what is known of one driver is in src/drivers",
            file.display()
        );
    }
}

/// The operator changes nothing in a vCenter: what opens a session that can is made in one place of the command line.
#[test]
fn layering_only_users_of_vdoctl_may_change_a_vcenter() {
    let places = |word: &str| -> BTreeSet<String> {
        let found = files().filter(|(_, _, code)| code.contains(word));
        found.map(|(file, ..)| file.display().to_string()).collect()
    };
    assert_eq!(places("Consent::given"), ["cli/users/look.rs".to_owned()].into());
    assert_eq!(places("Administrator::open"), ["cli/users/look.rs".to_owned()].into());
    assert_eq!(places("Self(())"), ["accounts/consent.rs".to_owned()].into());
}

#[test]
fn layering_only_apply_writes_to_the_cluster() {
    const WRITES: [&str; 6] = [
        ".apply(&",
        ".apply(object, ",
        ".merge(\"vdo.vmware.com",
        ".merge(API_VERSION",
        ".merge(api_version",
        ".delete_as_seen(",
    ];
    const MAY: [&str; 12] = [
        "src/cli/approve.rs",
        // What `configure`, `secrets set`, `upgrade apply`, `pause` and `resume` write.
        "src/cli/change.rs",
        "src/cli/delete/drivers.rs",
        "src/cli/delete/remove.rs",
        "src/cli/deploy/write.rs",
        "src/cli/history.rs",
        // `mirror push --use`.
        "src/cli/mirror/adopt.rs",
        "src/controller/vsphere_cloud_config.rs",
        "src/reconcile/apply.rs",
        "src/reconcile/apply/delete.rs",
        "src/reconcile/apply/inventory.rs",
        "src/reconcile/write_status.rs",
    ];
    let mut found = BTreeSet::new();
    for (relative, text) in texts("src") {
        let name = format!("src/{}", relative.display());
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        if !name.starts_with("src/cluster") && code.contains("writer") && WRITES.iter().any(|write| code.contains(write)) {
            found.insert(name);
        }
    }
    assert_eq!(found, MAY.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>());
}
