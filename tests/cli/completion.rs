// SPDX-License-Identifier: Apache-2.0
//! Completion in the shells themselves: what a person gets who has typed a part of a line. PowerShell's script is not run anywhere.

use crate::pty::on_terminal;
use crate::stopping::Running;
use crate::vdoctl;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// A shell beside a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Lines, and what their last words become.
const LINES: [(&str, &str); 6] = [
    ("vdoctl stat", "status"),
    ("vdoctl matrix show csi 3.7.3", "3.7.3"),
    ("vdoctl status --output=y", "--output=yaml"),
    ("vdoctl explain VolumesI", "VolumesInUse"),
    ("vdoctl matrix resolve --driver csi=3.7.3", "csi=3.7.3"),
    ("vdoctl plan --set managementState=P", "managementState=Paused"),
];

fn programs() -> String {
    let own = Path::new(vdo_testbed::vdoctl()).parent().expect("a folder");
    format!("{}:/usr/bin:/bin", own.display())
}

#[test]
fn completion_every_shell_is_generated() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let output = vdoctl(&["completion", shell]).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && text.contains("vdoctl") && text.contains("__complete"),
            "{shell}"
        );
    }
}

/// Bash asks vdoctl for each word, and puts its answer below the cursor.
#[test]
fn completion_in_bash_offers_values_after_what_was_typed() {
    let offered = |line: &str| {
        let script = format!(
            "source <(vdoctl completion bash); COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; _vdoctl; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let output = Command::new("bash")
            .args(["-c", &script])
            .env_clear()
            .env("PATH", programs())
            .output()
            .expect("bash");
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for (line, word) in LINES {
        // Bash's words end at = as well.
        assert_eq!(offered(line), [word.rsplit('=').next().unwrap_or(word)], "{line}");
    }
    assert_eq!(offered("vdoctl matrix load ./matrix configmap://"), [""]);
    assert!(offered("vdoctl explain ").len() > 100, "every reason");
}

#[test]
#[ignore = "needs fish"]
fn completion_of_fish_offers_values_after_what_was_typed() {
    let home = tempfile::tempdir().expect("a folder");
    let offered = |line: &str| {
        let script = format!("vdoctl completion fish | source; complete -C '{line}'");
        let output = Command::new("fish")
            .args(["--no-config", "-c", &script])
            .env_clear()
            .envs([("PATH", programs()), ("HOME", home.path().display().to_string())])
            .output()
            .expect("fish");
        let text = String::from_utf8(output.stdout).expect("text");
        let word = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
        text.lines().map(word).collect::<Vec<_>>()
    };
    for (line, word) in LINES {
        assert_eq!(offered(line), [word], "{line}");
    }
    assert!(offered("vdoctl explain ").len() > 100, "every reason");
}

/// On a terminal: the line is typed, and the key that completes it.
#[test]
#[ignore = "needs zsh"]
fn completion_of_zsh_completes_what_was_typed() {
    let home = tempfile::tempdir().expect("a folder");
    let mut zsh = Command::new("setsid");
    zsh.args(["--ctty", "zsh", "-f", "-i"]).env_clear();
    zsh.envs([
        ("PATH", programs()),
        ("TERM", "dumb".into()),
        ("HOME", home.path().display().to_string()),
    ]);
    let (zsh, mut terminal) = on_terminal(zsh, 200);
    let running = Running(zsh);
    let (sender, parts) = mpsc::channel();
    let mut from = terminal.try_clone().expect("a handle");
    std::thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut part) {
            if sender.send(part[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    let until = |words: &str| {
        let mut shown = String::new();
        while !shown.contains(words) {
            let part = parts.recv_timeout(DEADLINE);
            let part = part.unwrap_or_else(|_| panic!("{words:?} was not shown within {} s: {shown:?}", DEADLINE.as_secs()));
            shown.push_str(&String::from_utf8_lossy(&part));
        }
    };
    let mut types = |text: &str| terminal.write_all(text.as_bytes()).expect("typed");
    types("autoload -Uz compinit; compinit -u -D; source <(vdoctl completion zsh); PS1='rea''dy '\n");
    until("ready ");
    for (line, word) in LINES {
        let (begin, _) = line.rsplit_once(' ').expect("words");
        types(&format!("{line}\t"));
        until(&format!("{begin} {word} "));
        // The line is deleted, and the next one begins after a new prompt.
        types("\u{15}\n");
        until("ready ");
    }
    drop(running);
}

/// As a plugin of kubectl it is called as one, and completes as one.
#[test]
fn plugin_of_kubectl_has_its_own_usage_and_completion() {
    let folder = tempfile::tempdir().expect("a folder");
    let link = |name: &str| -> PathBuf {
        let link = folder.path().join(name);
        std::os::unix::fs::symlink(vdo_testbed::vdoctl(), &link).expect("a link");
        link
    };
    let called = |name: &str, arguments: &[&str]| {
        let output = Command::new(link(name)).args(arguments).env_clear().output().expect("it runs");
        String::from_utf8(output.stdout).expect("text")
    };
    let help = called("kubectl-vdo", &["status", "-h"]);
    assert!(help.contains("Usage: kubectl vdo status"), "{help}");
    let offered = called("kubectl_complete-vdo", &["matrix", "show", "csi", "3.7.3"]);
    assert!(offered.starts_with("3.7.3\tKubernetes ") && offered.ends_with(":4\n"), "{offered}");
}
