// SPDX-License-Identifier: Apache-2.0
//! The demonstration, as `make demo` runs it: twice, and ended.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(clippy::print_stdout, reason = "tests")]

mod record;

use crate::common::NS;
use crate::fixture::alone;
use crate::pty::{plain, too_wide, written};
use crate::screen::COLUMNS;
use anyhow::Result;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Ends the test bed however the test ends.
struct Demo {
    program: PathBuf,
    dir: tempfile::TempDir,
}

impl Demo {
    fn new() -> Self {
        let operator = Path::new(env!("CARGO_BIN_EXE_vdo-operator"));
        let program = operator.with_file_name("vdo-testbed");
        assert!(
            program.is_file(),
            "{} is missing: run `cargo build --workspace` first",
            program.display()
        );
        let dir = tempfile::tempdir().expect("a folder");
        Self { program, dir }
    }

    fn command(&self, verb: &str, flags: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(verb).arg("--dir").arg(self.dir.path()).args(flags);
        command
    }

    fn run(&self, verb: &str, flags: &[&str]) -> Output {
        let mut command = self.command(verb, flags);
        command.stdin(Stdio::null()).output().expect("vdo-testbed runs")
    }

    /// Runs the demonstration on a terminal of 80 columns and gives what is written there, with its styles. What only this machine makes long,
    /// the paths, is short in it.
    fn show_on_a_terminal(&self) -> String {
        let mut command = self.command("demo", &[]);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        let text = written(command, u16::try_from(COLUMNS).expect("a width"));
        let folder = self.dir.path().canonicalize().expect("the folder");
        [(folder.as_path(), ".demo"), (&self.program, "vdo-testbed")]
            .into_iter()
            .fold(text, |text, (path, short)| {
                text.replace(path.to_str().expect("a plain path"), short)
            })
    }

    /// Runs the demonstration with these flags and gives what it says.
    fn show(&self, flags: &[&str]) -> String {
        let output = self.run("demo", flags);
        let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
        assert!(output.status.success(), "{}\n{stdout}\n{stderr}\n{}", output.status, self.logs());
        stdout
    }

    fn log_of_the_operator(&self) -> String {
        let state = fs::read_to_string(self.dir.path().join("state.json")).expect("state.json");
        let state: serde_json::Value = serde_json::from_str(&state).expect("JSON");
        let containers = state["containers"].as_array().expect("containers");
        let operator = containers.iter().find(|run| run["namespace"] == NS).expect("the operator");
        fs::read_to_string(operator["log"].as_str().expect("a path")).expect("the operator's log")
    }

    fn logs(&self) -> String {
        ["testbed.log"]
            .map(|log| format!("== {log}\n{}", fs::read_to_string(self.dir.path().join(log)).unwrap_or_default()))
            .join("\n")
    }

    /// Processes that were started for this test bed: its folder is in their arguments, or in an environment that may be read.
    fn processes(&self) -> Vec<String> {
        let dir = self.dir.path().to_str().expect("a plain path").to_owned();
        let read =
            |process: &Path, file: &str| String::from_utf8_lossy(&fs::read(process.join(file)).unwrap_or_default()).replace('\0', " ");
        let all = fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path());
        all.filter(|process| read(process, "cmdline").contains(&dir) || read(process, "environ").contains(&dir))
            .map(|process| format!("{} {}", process.display(), read(&process, "cmdline")))
            .collect()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.run("down", &[]);
    }
}

fn assert_has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in:\n{text}");
    }
}

/// The claim is bound; a machine that permits no namespaces says why there is none.
fn assert_bound(text: &str) {
    const HINDERED: &str = "No claim is bound: ";
    if let Some(why) = text.lines().find_map(|line| line.strip_prefix(HINDERED)) {
        let line = format!("SKIPPED: needs user and mount namespaces for a bound claim: {why}\n");
        // Past the harness, which captures what tests print.
        return drop(std::io::stderr().write_all(line.as_bytes()));
    }
    let bound = |line: &str| line.starts_with("Bound ") && line.contains(" pvc-");
    assert!(text.lines().any(bound), "no bound claim in:\n{text}");
}

/// Screen by screen: a healthy installation, a preview, what an upgrade of Kubernetes would do, and a fault, which its own command ends.
fn assert_story(text: &str) {
    let mut rest = text;
    for (what, shows) in [
        ("$ vdoctl status\n", "healthy"),
        ("$ vdoctl doctor connection vc1\n", "12 passed, 0 failed"),
        ("$ vdoctl plan --set ", "This is a preview: nothing was changed."),
        ("$ vdoctl upgrade plan --kubernetes 1.35\n", "1.34.0 → 1.35.1"),
        ("$ kubectl patch secret ", "patched"),
        ("$ vdoctl status\n", "✗ vSphere connection vc1"),
        ("\n", "      vdoctl secrets set vc1\n"),
        ("$ vdoctl secrets set vc1\n", "was changed"),
        ("$ vdoctl status\n", "healthy"),
    ] {
        for word in [what, shows] {
            let (_, after) = rest
                .split_once(word)
                .unwrap_or_else(|| panic!("{word:?} is not in:\n{rest}\nof:\n{text}"));
            rest = after;
        }
    }
    assert!(!rest.contains('✗'), "the remedy has not ended the fault:\n{rest}");
}

#[test]
#[ignore = "long"]
fn demo_installs_then_writes_nothing_and_down_ends_every_process() -> Result<()> {
    alone(async || {
        let demo = Demo::new();
        let written = demo.show_on_a_terminal();
        let first = plain(&written);
        // A line that moves is overwritten after a carriage return.
        let wide = too_wide(&first.replace('\r', "\n"), u16::try_from(COLUMNS)?);
        assert!(wide.is_empty(), "wider than the terminal:\n{}\nin:\n{first}", wide.join("\n"));
        assert_story(&first);
        record::assert_same(&record::of(&written));
        assert_has(
            &first,
            &[
                "$ vdoctl deploy",
                "chosen: CPI 1.34.0",
                "chosen: CSI 3.8.0",
                "objects applied",
                "CPI 1.34.0 and CSI 3.8.0 installed and healthy",
                "persistentvolumeclaim/demo created",
                "export KUBECONFIG=",
                "vdoctl doctor nodes",
                "vdoctl upgrade apply --to csi=",
                "writes: ",
            ],
        );
        assert_bound(&first);
        assert!(
            !first.contains("0 writes by the operator and this demo"),
            "the first run wrote:\n{first}"
        );
        let log = demo.log_of_the_operator();
        let password = fs::read_to_string(demo.dir.path().join("vcenter/password")).expect("the password");
        assert!(!log.contains(&password) && !first.contains(&password), "the password is shown");
        assert!(!demo.processes().is_empty(), "everything stays up");

        let second = demo.show(&[]);
        assert_has(
            &second,
            &[
                "test bed found",
                "objects are in sync",
                "CPI 1.34.0 and CSI 3.8.0 installed and healthy",
                "persistentvolumeclaim/demo unchanged",
                "$ vdoctl doctor connection vc1",
                "$ vdoctl plan ",
                "$ vdoctl upgrade plan ",
                "0 writes by the operator and this demo",
            ],
        );
        assert!(!second.contains('✗'), "the fault is not shown a second time:\n{second}");
        assert_bound(&second);

        let ended = demo.run("down", &[]);
        assert!(ended.status.success(), "{ended:?}");
        let left = demo.processes();
        assert!(left.is_empty(), "left behind:\n{}", left.join("\n"));
        Ok(())
    })
}

/// The drivers of another tool are taken over before one's eyes, and a second run finds that done.
fn taken_over(from: &str, words: &[&str]) -> Result<()> {
    alone(async || {
        let demo = Demo::new();
        let first = demo.show(&["--from", from]);
        assert_has(
            &first,
            &[
                "$ vdoctl adopt",
                "connection vc1 already exists for a vCenter of the drivers",
                "$ vdoctl wait",
            ],
        );
        assert_has(&first, words);
        assert_bound(&first);
        let second = demo.show(&["--from", from]);
        assert_has(&second, &["were taken over before", "persistentvolumeclaim/demo unchanged"]);
        Ok(())
    })
}

#[test]
#[ignore = "long"]
fn demo_takes_over_a_release_of_helm_and_keeps_every_pod() -> Result<()> {
    taken_over(
        "helm",
        &["What the operator would do:", "6 of 6 pods of the drivers were not restarted"],
    )
}

#[test]
#[ignore = "long"]
fn demo_moves_the_drivers_of_rancher() -> Result<()> {
    taken_over(
        "rancher",
        &[
            "move it with: vdoctl adopt --move",
            "$ vdoctl adopt --move --yes",
            "The last step, which cannot be undone",
        ],
    )
}
