// SPDX-License-Identifier: Apache-2.0
//! vdoctl as its users meet it: whole command lines, what they print where, and how they end. Nothing here needs a cluster.

mod api_server;
mod chart;
mod chart_sources;
mod compare;
mod completion;
mod contexts;
mod cosign;
mod deploy;
mod doctor;
mod explain;
#[path = "../common/follow.rs"]
mod follow;
mod full_disk;
mod gitops;
mod kubeconfig;
mod links;
mod lint_limit;
mod matrix;
mod mirror;
mod own_process;
mod pages;
mod process;
#[path = "../common/pty.rs"]
mod pty;
mod publish;
mod registry;
mod rights;
#[path = "../common/sample.rs"]
mod sample;
#[path = "../common/schema.rs"]
mod schema;
mod schemas;
mod stopping;
mod terminal;
mod under_wine;
mod width;

use assert_cmd::Command;
use insta::{assert_snapshot, with_settings};
use std::collections::BTreeSet;
use std::path::Path;

/// A vdoctl that no environment reaches.
fn vdoctl(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("vdoctl").expect("vdoctl is built with the tests");
    command.env_clear().args(arguments);
    command
}

/// Exit code, stdout and stderr of a command, as a user would see them.
fn seen(mut command: Command) -> String {
    let output = command.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().map_or_else(|| "none".to_owned(), |code| code.to_string());
    format!(
        "exit {code}\n--- stdout\n{}--- stderr\n{}",
        text(&output.stdout),
        text(&output.stderr)
    )
}

/// Without digests and sizes, which every change of a chart changes.
fn lasting(text: &str) -> String {
    let digits = |word: &str| word.chars().all(|c| c.is_ascii_hexdigit()) && [12, 64].contains(&word.len());
    let word = |word: &str| if digits(word) { "…".to_owned() } else { word.to_owned() };
    let separators = |c: char| !c.is_ascii_alphanumeric();
    text.split_inclusive(separators)
        .map(|part| match part.strip_suffix(separators) {
            Some(own) => format!("{}{}", word(own), &part[own.len()..]),
            None => word(part),
        })
        .collect()
}

/// A matrix that does not grow with the charts of this build.
const FROZEN: &str = "tests/fixtures/matrix.yaml";

/// A snapshot named after what was typed, without what changes with every matrix.
fn snap(name: &str, arguments: &[&str]) {
    with_settings!({
        description => format!("vdoctl {}", arguments.join(" ")),
        omit_expression => true,
    }, { assert_snapshot!(name, lasting(&seen(vdoctl(arguments)))) });
}

fn code(arguments: &[&str]) -> i32 {
    vdoctl(arguments).output().expect("it runs").status.code().expect("a code")
}

#[test]
fn cli_help_every_verb_matches_snapshot() {
    snap("help", &["--help"]);
    let verbs: [&[&str]; 57] = [
        &["adopt"],
        &["status"],
        &["plan"],
        &["approve"],
        &["upgrade", "plan"],
        &["upgrade", "apply"],
        &["configure"],
        &["configure", "connection"],
        &["configure", "drivers"],
        &["configure", "matrix"],
        &["secrets", "list"],
        &["secrets", "set"],
        &["pause"],
        &["wait"],
        &["options"],
        &["support-bundle"],
        &["report"],
        &["diff"],
        &["render"],
        &["rights"],
        &["doctor"],
        &["doctor", "nodes"],
        &["doctor", "topology"],
        &["doctor", "connection"],
        &["doctor", "privileges"],
        &["explain"],
        &["matrix"],
        &["matrix", "resolve"],
        &["matrix", "explain"],
        &["matrix", "why-not"],
        &["matrix", "list"],
        &["matrix", "show"],
        &["matrix", "lint"],
        &["matrix", "load"],
        &["matrix", "sign"],
        &["matrix", "source"],
        &["matrix", "verify"],
        &["matrix", "init"],
        &["matrix", "publish"],
        &["matrix", "withdraw"],
        &["matrix", "deprecate"],
        &["matrix", "diff"],
        &["mirror"],
        &["mirror", "pull"],
        &["mirror", "verify"],
        &["mirror", "push"],
        &["mirror", "copy"],
        &["mirror", "prune"],
        &["chart"],
        &["chart", "render"],
        &["chart", "images"],
        &["chart", "compare"],
        &["chart", "package"],
        &["chart", "push"],
        &["chart", "pull"],
        &["version"],
        &["completion"],
    ];
    for verb in verbs {
        let arguments: Vec<&str> = verb.iter().copied().chain(["-h"]).collect();
        snap(&format!("help_{}", verb.join("_")), &arguments);
    }
}

#[test]
fn cli_wrong_command_line_exits_2() {
    for arguments in [
        &["bogus"][..],
        &["status", "--bogus"],
        &["status", "-o", "xml"],
        &["--timeout", "10", "status"],
        &["chart", "render", "csi"],
        &["matrix", "resolve", "--vcenter", "vc1="],
        &["chart", "render", "csi", "--version", "3.7.3", "--set", "a"],
    ] {
        assert_eq!(code(arguments), 2, "{arguments:?}");
    }
}

#[test]
fn cli_misspelled_verb_suggests_nearest() {
    snap("suggestion_for_a_verb", &["staus"]);
}

#[test]
fn version_text_lists_matrix_and_drivers() {
    let text = seen(vdoctl(&["version"]));
    for part in [
        "vdoctl    ",
        "operator  unknown: no cluster is configured",
        "matrix    version ",
        "vsphere-cpi  ",
        " to 1.37.0 ",
        "vsphere-csi  ",
        " to 3.8.0 ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn version_short_prints_only_version() {
    snap("version_short", &["version", "--short"]);
}

#[test]
fn version_json_has_kind_and_drivers() {
    let output = vdoctl(&["version", "-o", "json"]).output().expect("it runs");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (json["apiVersion"].as_str(), json["kind"].as_str()),
        (Some("vdoctl/v1"), Some("Version"))
    );
    assert_eq!(json["version"].as_str(), Some(env!("CARGO_PKG_VERSION")));
    assert!(json["drivers"].as_array().is_some_and(|all| all.len() >= 2), "{json}");
}

#[test]
fn matrix_list_draws_bars_and_filters() {
    snap(
        "matrix_list_bars",
        &["matrix", "list", "csi", "--kubernetes", "1.34", "--vcenter", "8.0.3"],
    );
    let (few, all) = (
        seen(vdoctl(&["matrix", "list", "csi", "--kubernetes", "1.34", "-o", "name"])),
        seen(vdoctl(&["matrix", "list", "csi", "-o", "name"])),
    );
    assert!(
        few.contains("vsphere-csi/3.7.3\n") && !few.contains("/3.0.0") && all.len() > few.len(),
        "{few}"
    );
    assert_eq!(code(&["matrix", "list", "csi", "--kubernetes", "1.99"]), 3);
}

#[test]
fn matrix_resolve_folds_rejections_by_reason() {
    let arguments = ["matrix", "resolve", "--kubernetes", "1.39", "--vcenter", "8.0.3"];
    let short = seen(vdoctl(&arguments));
    let long = seen(vdoctl(&[&arguments[..], &["-o", "wide"]].concat()));
    assert!(short.lines().count() < 20 && long.lines().count() > 40, "{short}");
    assert!(
        short.contains("  3.8.0 supports Kubernetes")
            && short.contains("older versions are rejected for similar reasons")
            && short.contains("-o wide lists every version"),
        "{short}"
    );
    let pinned = seen(vdoctl(&[
        "matrix",
        "resolve",
        "--kubernetes",
        "1.34",
        "--vcenter",
        "8.0.3",
        "--driver",
        "csi=3.5.1",
    ]));
    assert!(
        pinned.contains("pinned to 3.5.1") && !pinned.contains("for similar reasons"),
        "{pinned}"
    );
}

/// A word that is no reason is looked for in the causes.
#[test]
fn explain_word_of_a_cause_names_its_reasons() {
    let said = seen(vdoctl(&["explain", "password"]));
    assert!(said.contains("PasswordExpired") && said.contains("InvalidCredentials"), "{said}");
}

#[test]
fn output_of_names_is_refused_where_there_are_none() {
    let said = seen(vdoctl(&["explain", "PasswordExpired", "-o", "name"]));
    assert!(said.starts_with("exit 2") && said.contains("has no names"), "{said}");
    assert!(seen(vdoctl(&["explain", "-o", "name"])).contains("\nPasswordExpired\n"));
}

/// Like `support-bundle` it chooses the name of its file: what it lacks here is a cluster.
#[test]
fn report_without_a_name_for_its_file_is_no_wrong_usage() {
    let said = seen(vdoctl(&["report"]));
    assert!(said.starts_with("exit 5\n") && said.contains("no cluster is configured"), "{said}");
}

/// A digest that is not known takes no room: there is no column of dashes.
#[test]
fn matrix_show_lists_only_digests_that_are_known() {
    let mut index = vdo_api::yaml::load_value(&std::fs::read_to_string(FROZEN).expect("the matrix")).expect("YAML");
    let versions = index["drivers"]["vsphere-csi"]["versions"].as_array_mut().expect("versions");
    let entry = versions.iter_mut().find(|entry| entry["version"] == "3.5.1").expect("the version");
    let images = entry["images"].as_array_mut().expect("images");
    let known = images.iter().filter(|image| image["digest"].is_string()).count();
    assert!(known > 0 && known < images.len(), "{known} of {}", images.len());
    images.iter_mut().for_each(|image| image["digest"] = serde_json::Value::Null);
    let folder = tempfile::tempdir().expect("a folder");
    let none = folder.path().join("index.yaml").display().to_string();
    std::fs::write(&none, vdo_api::yaml::dump(&index).expect("YAML")).expect("written");
    for (matrix, expected) in [(FROZEN, known), (&none, 0)] {
        let said = seen(vdoctl(&["matrix", "show", "csi", "3.5.1", "--matrix", matrix]));
        let (_, images) = said.split_once("\nImages\n").unwrap_or_else(|| panic!("{said}"));
        let digests = images
            .split_once("\nDigests\n")
            .map_or(0, |(_, digests)| digests.lines().take_while(|line| line.starts_with("  ")).count());
        assert_eq!(digests, expected, "{said}");
        assert!(!images.split_whitespace().any(|cell| cell == "-"), "{said}");
    }
}

/// docs/cli.md speaks of every variable there is, and of no other; every verb is in a page that a person wrote. The flags are in the generated
/// reference.
#[test]
fn pages_mention_every_verb_and_variable() {
    fn walk(command: &clap::Command, path: &str, verbs: &mut Vec<String>, variables: &mut BTreeSet<String>) {
        let named = command.get_arguments().filter_map(|arg| arg.get_env()?.to_str());
        variables.extend(named.map(str::to_owned));
        for verb in command.get_subcommands() {
            let path = format!("{path} {}", verb.get_name());
            verbs.push(path.clone());
            walk(verb, &path, verbs, variables);
        }
    }
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/docs"));
    let read = |path: &Path| std::fs::read_to_string(path).expect("a page");
    let pages = std::fs::read_dir(folder).expect("docs").map(|entry| entry.expect("a page").path());
    let pages: String = pages.filter(|path| path.is_file()).map(|path| read(&path)).collect();
    let docs = read(&folder.join("cli.md"));
    let (mut verbs, mut variables) = (Vec::new(), BTreeSet::new());
    walk(&vdoctl::args::command(), "vdoctl", &mut verbs, &mut variables);
    verbs.retain(|verb| !pages.contains(verb));
    assert_eq!(verbs, [""; 0], "no page in docs/ mentions these");
    let missing: Vec<&String> = variables.iter().filter(|word| !docs.contains(&format!("`{word}"))).collect();
    assert_eq!(missing, [""; 0], "docs/cli.md does not mention these");
    let words = docs
        .split(|c: char| !c.is_ascii_uppercase() && c != '_')
        .filter(|word| word.starts_with("VDO_"));
    let unknown: Vec<&str> = words.filter(|word| !variables.contains(*word)).collect();
    assert_eq!(unknown, [""; 0], "docs/cli.md mentions these, and no flag has them");
}
