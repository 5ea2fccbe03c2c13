//! Screens fit the terminal: no line of any verb is broken by it within a word, at 80 columns and at 40.

use crate::matrix::EDGES;
use crate::pty::{screen_of, too_wide};
use std::process::Command;

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
            assert!(!shown.trim().is_empty(), "{arguments:?} shows nothing");
            too_wide(&shown, columns)
                .into_iter()
                .map(move |line| format!("{columns} columns: {line}"))
        })
        .map(|line| format!("vdoctl {}: {line}", arguments.join(" ")))
        .collect()
}

#[test]
fn screen_of_every_offline_verb_fits_the_terminal() {
    let all: Vec<String> = OFFLINE
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
    fn verbs(command: &clap::Command, path: &[String], all: &mut Vec<Vec<String>>) {
        all.push(path.to_vec());
        for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
            verbs(verb, &[path, &[verb.get_name().to_owned()]].concat(), all);
        }
    }
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
