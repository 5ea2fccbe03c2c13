// SPDX-License-Identifier: Apache-2.0
//! Screens fit the terminal: no line of any verb is broken by it within a word, at 80 columns and at 40.

use crate::matrix::EDGES;
use crate::pty::{COMMANDS, screen_of, too_wide};
use crate::sample::some_or_all;
use std::process::Command;
use strum::IntoEnumIterator as _;
use vdo_api::api::{ConditionType, Reason};

/// Tables without a cluster.
const TABLES: [&str; 7] = [
    "explain",
    "explain NodesFound",
    "matrix list",
    "matrix list --kubernetes 1.34",
    "matrix list -o wide",
    "matrix show csi 3.7.3",
    "matrix resolve --kubernetes 1.37 --vcenter 8.0.3 -o wide",
];

/// What runs without a cluster, and what is said where there is none.
const OFFLINE: &[&str] = &[
    "--color never",
    "options",
    "explain",
    "explain VolumesInUse",
    "explain DiskUuidDisabled",
    "explain 6",
    "explain password",
    "explain nothing",
    "version --client",
    "matrix list",
    "matrix list csi -o wide",
    "matrix list --kubernetes 1.34 --vcenter 8.0.3",
    "matrix show csi 3.7.3",
    "matrix show cpi 1.34.0",
    "matrix show csi 3.9.9",
    "matrix resolve --kubernetes 1.34 --vcenter 8.0.3",
    "matrix resolve --kubernetes 1.37 --vcenter 8.0.3",
    "matrix resolve --kubernetes 1.37 --vcenter 8.0.3 -o wide",
    "matrix resolve --kubernetes 1.34 --vcenter 8.0.3 --driver csi=3.5.1",
    "matrix explain --kubernetes 1.34 --vcenter 8.0.3",
    "matrix explain --kubernetes 1.34 --vcenter 8.0.3 -o wide",
    "matrix why-not csi 3.5.1 --kubernetes 1.34 --vcenter 8.0.3",
    "matrix lint matrix-index/index.yaml",
    "matrix diff matrix-index/index.yaml tests/fixtures/matrix-edges.yaml",
    "chart images csi --version 3.7.3",
    "chart lint charts/vsphere-csi",
    "chart render csi --version 3.9.9",
    "completion",
    "status --kubeconfig /nowhere/config",
    "doctor --kubeconfig /nowhere/config",
    "deploy --kubeconfig /nowhere/config",
    "status --from /nowhere/bundle.tgz",
    "status --output xml",
    "mirror verify /nowhere",
    "no-such-verb",
];

/// What Rust says to programmers.
pub const LEAKS: [&str; 5] = ["os error", "OtherError", "client error (", "tcp connect error", "dns error"];

fn vdoctl(arguments: impl Iterator<Item = impl AsRef<std::ffi::OsStr>>) -> Command {
    let mut command = Command::new(vdo_testbed::vdoctl());
    command.env_clear().env("TERM", "xterm").current_dir(env!("CARGO_MANIFEST_DIR"));
    command.args(arguments);
    command
}

fn wide(arguments: &[&str]) -> Vec<String> {
    [80, 40]
        .into_iter()
        .flat_map(|columns| {
            let shown = screen_of(vdoctl(arguments.iter()), columns);
            let leak = LEAKS.iter().find(|leak| shown.contains(**leak));
            assert_eq!(leak, None, "{arguments:?}: {shown}");
            assert!(!shown.trim().is_empty(), "{arguments:?} shows nothing");
            too_wide(&shown, columns)
                .into_iter()
                .map(move |line| format!("{columns} columns: {line}"))
        })
        .map(|line| format!("vdoctl {}: {line}", arguments.join(" ")))
        .collect()
}

/// The commands to paste of a text in a pipe: a line of its own, or what follows a colon.
fn to_paste(piped: &str) -> Vec<&str> {
    fn command(line: &str) -> Option<&str> {
        let begin = ["vdoctl ", "kubectl "].into_iter().filter_map(|program| line.find(program)).min()?;
        let (before, rest) = line.split_at(begin);
        let whole = rest.split("  ").next().unwrap_or_default();
        let is_sentence = whole.ends_with('.') || whole.contains(". ") || whole.contains(", ");
        ((before.trim().is_empty() || before.ends_with(": ")) && !is_sentence).then_some(whole)
    }
    piped.lines().filter_map(command).collect()
}

/// On a narrow terminal each of them is on one line.
#[test]
fn commands_to_paste_are_on_one_line_of_the_terminal() {
    let mut found = 0;
    for line in some_or_all("screens with commands", OFFLINE, 18) {
        let words: Vec<&str> = line.split(' ').collect();
        let output = vdoctl(words.iter()).output().expect("it runs");
        let piped = [output.stdout, output.stderr].concat();
        let shown = screen_of(vdoctl(words.iter()), 40);
        for command in to_paste(&String::from_utf8(piped).expect("UTF-8")) {
            found += 1;
            assert!(shown.contains(command), "vdoctl {line} breaks {command:?}:\n{shown}");
        }
    }
    assert!(found > 2, "only {found} commands were found");
}

fn verbs(command: &clap::Command, path: &[String], all: &mut Vec<Vec<String>>) {
    all.push(path.to_vec());
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        verbs(verb, &[path, &[verb.get_name().to_owned()]].concat(), all);
    }
}

/// The lines of a terminal that each line of a pipe becomes.
fn continued<'a>(piped: &'a str, shown: &'a str) -> Vec<(&'a str, Vec<&'a str>)> {
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    let mut shown = shown.lines();
    let mut all = Vec::new();
    for line in piped.lines() {
        let (mut lines, mut text) = (Vec::new(), String::new());
        while text.len() < bare(line).len() {
            let next = shown.next().expect("the terminal has each line of the pipe");
            text.push_str(&bare(next));
            lines.push(next);
        }
        assert_eq!(text, bare(line));
        if line.trim().is_empty() {
            shown.next();
        }
        all.push((line, lines));
    }
    all
}

/// A row may go on below its last column. Below its first one it is no row any more.
#[test]
fn row_of_a_table_is_not_continued_below_its_first_column() {
    for line in TABLES {
        let arguments: Vec<&str> = line.split(' ').collect();
        let piped = vdoctl(arguments.iter()).output().expect("it runs");
        let shown = screen_of(vdoctl(arguments.iter()), 80);
        let piped = String::from_utf8(piped.stdout).expect("text");
        let mut rows = 0;
        for (row, lines) in continued(&piped, &shown) {
            let lead = row.len() - row.trim_start().len();
            let Some((first, _)) = row.trim_start().split_once("  ") else {
                continue;
            };
            rows += 1;
            let second = lead + first.chars().count() + 2;
            let below = |line: &&str| line.len() - line.trim_start().len() >= second;
            assert!(lines.iter().skip(1).all(below), "vdoctl {line}:\n{}", lines.join("\n"));
        }
        assert!(rows > 10, "vdoctl {line}: {rows} rows\n{piped}");
    }
}

/// The commands of a text: in backquotes.
fn commands(text: &str) -> Vec<&str> {
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    quoted
        .filter(|quoted| COMMANDS.iter().any(|command| quoted.starts_with(command)))
        .collect()
}

/// A command that is broken cannot be copied.
#[test]
fn command_in_help_and_explain_is_on_one_line() {
    let mut all = Vec::new();
    verbs(&vdoctl::args::command(), &[], &mut all);
    let mut seen = 0;
    for path in &all {
        let words = path.iter().map(String::as_str).chain(["--help"]);
        let shown = screen_of(vdoctl(words), 80);
        for example in vdoctl::args::examples(&path.join(" ")) {
            let command = example.split("  #").next().unwrap_or_default().trim_end();
            assert!(shown.lines().any(|line| line.contains(command)), "{command:?} is broken:\n{shown}");
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen} examples");
    seen = 0;
    for reason in some_or_all("explanations with commands", Reason::ALL, 40) {
        let arguments = ["explain", reason.as_str()];
        let piped = vdoctl(arguments.iter()).output().expect("it runs");
        let piped = String::from_utf8(piped.stdout).expect("text");
        let shown = screen_of(vdoctl(arguments.iter()), 60);
        for command in commands(&piped) {
            assert!(shown.lines().any(|line| line.contains(command)), "{command:?} is broken:\n{shown}");
            seen += 1;
        }
    }
    assert!(seen > 3, "{seen} commands");
}

#[test]
fn screen_of_every_offline_verb_fits_the_terminal() {
    let all: Vec<String> = some_or_all("screens", OFFLINE, 18)
        .iter()
        .flat_map(|line| wide(&line.split(' ').collect::<Vec<_>>()))
        .chain(wide(&[
            "matrix",
            "resolve",
            "--matrix",
            EDGES,
            "--kubernetes",
            "1.34",
            "--vcenter",
            "8.0.3",
            "--installed",
            "csi=3.5.0",
        ]))
        .collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn help_of_every_verb_fits_the_terminal() {
    let mut all = Vec::new();
    verbs(&vdoctl::args::command(), &[], &mut all);
    assert!(all.len() > 60, "{}", all.len());
    let bad: Vec<String> = all
        .iter()
        .flat_map(|path| {
            let words: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
            wide(&words)
        })
        .collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// `-h` is a summary; `--help` has everything.
#[test]
fn short_help_of_every_verb_is_short() {
    let mut all = Vec::new();
    verbs(&vdoctl::args::command(), &[], &mut all);
    for path in &all {
        let lines = |flag: &str| {
            let words = path.iter().map(String::as_str).chain([flag]);
            screen_of(vdoctl(words), 80).lines().count()
        };
        let (short, long) = (lines("-h"), lines("--help"));
        assert!(short <= 85, "{path:?}: {short} lines");
        assert!(short <= long, "{path:?}: {short} and {long} lines");
    }
}

/// A condition with many reasons names them; `vdoctl explain REASON` has the meaning of each.
#[test]
fn explanation_of_every_condition_fits_a_screen() {
    let mut named = 0;
    for condition in ConditionType::iter() {
        let shown = screen_of(vdoctl(["explain", condition.as_str()].iter()), 80);
        assert!(shown.lines().count() <= 40, "{shown}");
        named += shown.matches("Ready").count();
    }
    assert!(named > 0, "no reason is named");
}
