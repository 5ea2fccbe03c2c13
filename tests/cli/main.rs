//! vdoctl as its users meet it: whole command lines, what they print where, and how they end. Nothing here needs a cluster.

mod api_server;
mod chart;
mod chart_sources;
mod compare;
mod cosign;
mod deploy;
mod doctor;
mod explain;
mod full_disk;
mod kubeconfig;
mod matrix;
mod mirror;
mod own_process;
mod process;
mod publish;
mod registry;
mod rights;
#[path = "../bed/sample.rs"]
mod sample;
mod stopping;
mod terminal;

use assert_cmd::Command;
use insta::{assert_snapshot, with_settings};
use std::collections::BTreeSet;

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
    let verbs: [&[&str]; 42] = [
        &["status"],
        &["plan"],
        &["approve"],
        &["diff"],
        &["render"],
        &["rights"],
        &["doctor"],
        &["doctor", "nodes"],
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
        &[],
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
        "vdoctl  ",
        "matrix  version ",
        "vsphere-cpi  ",
        " to 1.36.0 ",
        "vsphere-csi  ",
        " to 3.7.3 ",
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
fn completion_every_shell_is_generated() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = vdoctl(&["completion", shell]).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && text.contains("vdoctl") && text.contains("kubeconfig"),
            "{shell}"
        );
    }
}

/// docs/cli.md speaks of every verb, flag and variable there is, and of no other variable.
#[test]
fn cli_page_mentions_every_flag_and_variable() {
    fn walk(command: &clap::Command, path: &str, missing: &mut Vec<String>, twins: &mut BTreeSet<String>, docs: &str) {
        for arg in command.get_arguments().filter(|arg| !matches!(arg.get_id().as_str(), "help")) {
            let flag = arg.get_long().map(|long| format!("--{long}"));
            let twin = arg.get_env().and_then(|name| name.to_str()).map(str::to_owned);
            missing.extend(
                flag.into_iter()
                    .chain(twin.clone())
                    .filter(|word| !docs.contains(&format!("`{word}"))),
            );
            twins.extend(twin);
        }
        for verb in command.get_subcommands() {
            let path = format!("{path} {}", verb.get_name());
            if !docs.contains(&format!("`{path}")) {
                missing.push(path.clone());
            }
            walk(verb, &path, missing, twins, docs);
        }
    }
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/cli.md")).expect("docs/cli.md");
    let (mut missing, mut twins) = (Vec::new(), BTreeSet::new());
    walk(&vdo::cli::args::command(), "vdoctl", &mut missing, &mut twins, &docs);
    assert_eq!(missing, [""; 0], "docs/cli.md does not mention these");
    let words = docs
        .split(|c: char| !c.is_ascii_uppercase() && c != '_')
        .filter(|word| word.starts_with("VDO_"));
    let unknown: Vec<&str> = words.filter(|word| !twins.contains(*word)).collect();
    assert_eq!(unknown, [""; 0], "docs/cli.md mentions these, and no flag has them");
}
