// SPDX-License-Identifier: Apache-2.0
//! A signal ends every verb at once, whatever it is at.

use crate::api_server::kubeconfig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SIGNALS: [(Signal, i32); 2] = [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)];

/// A process that does not outlive its test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Sends a signal and holds that the process ends by it with this code, long before its work would be done. The aim is
    /// 200 ms, which is printed and not asserted: a machine may have other things to do.
    #[expect(clippy::print_stdout, reason = "the figure, for who runs it with --nocapture")]
    pub fn stop(&mut self, signal: Signal, code: i32) {
        let begin = Instant::now();
        kill(Pid::from_raw(self.0.id().cast_signed()), signal).expect("it runs");
        let status = loop {
            if let Some(status) = self.0.try_wait().expect("a child") {
                break status;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{signal} was not heard");
            std::thread::sleep(Duration::from_millis(1));
        };
        println!("{signal}: ended after {:?}", begin.elapsed());
        assert_eq!(status.code(), Some(code), "{signal}: {status}");
    }
}

fn started(arguments: &[&str], stdout: impl Into<Stdio>) -> Running {
    let mut command = Command::new(vdo_testbed::vdoctl());
    command.env_clear().env("PATH", "/usr/bin:/bin").args(arguments);
    command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
    Running(command.spawn().expect("it starts"))
}

fn pipe(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("pipe");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    path
}

/// An index of so many versions, with mistakes in each.
fn large_index(versions: usize) -> Vec<u8> {
    let version = |number: usize| json!({"version": format!("1.{}.{}", number / 100, number % 100), "x": 1});
    let versions: Vec<Value> = (0..versions).map(version).collect();
    json!({"apiVersion": "vdo.vmware.com/matrix/v1", "kind": "CompatibilityMatrix", "version": 1,
        "drivers": {"vsphere-cpi": {"role": "cloud-provider", "versions": versions}}})
    .to_string()
    .into_bytes()
}

#[test]
fn signal_while_an_index_is_computed_on_ends_the_verb_without_an_answer() {
    let index = large_index(40_000);
    for (signal, code) in SIGNALS {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, answer) = (pipe(folder.path()), folder.path().join("answer"));
        let answer_to = File::create(&answer).expect("a file");
        let mut verb = started(&["matrix", "lint", path.to_str().expect("text")], answer_to);
        // Once all of it is read, the work begins.
        std::fs::write(&path, &index).expect("it is read");
        verb.stop(signal, code);
        assert_eq!(std::fs::read_to_string(&answer).expect("a file"), "", "it did not finish first");
    }
}

#[test]
fn signal_while_a_file_does_not_end_ends_the_verb() {
    for (signal, code) in SIGNALS {
        let folder = tempfile::tempdir().expect("a folder");
        let path = pipe(folder.path());
        let values = path.to_str().expect("text");
        let mut verb = started(&["chart", "images", "cpi", "--version", "1.34.0", "-f", values], Stdio::null());
        let mut held = File::create(&path).expect("it is being read");
        held.write_all(b"a:").expect("written");
        verb.stop(signal, code);
    }
}

#[test]
fn signal_while_no_one_reads_the_output_ends_the_verb() {
    let index = large_index(3_000);
    for (signal, code) in SIGNALS {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("index.json");
        std::fs::write(&path, &index).expect("written");
        let mut verb = started(&["matrix", "lint", path.to_str().expect("text")], Stdio::piped());
        // The first byte is out, and a pipe does not hold the rest.
        let mut output = verb.0.stdout.take().expect("a pipe");
        output.read_exact(&mut [0]).expect("a byte");
        verb.stop(signal, code);
    }
}

/// A command of the kubeconfig that says that it runs, and hangs. It holds stderr, as commands that ask for a login do.
pub fn hanging_plugin(folder: &Path, sign: &Path) -> String {
    let mut config: Value = serde_json::from_str(&kubeconfig("c", "http://127.0.0.1:1")).expect("JSON");
    let script = format!("echo > '{}'; exec sleep 1000", sign.display());
    config["users"][0]["user"] = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script], "interactiveMode": "IfAvailable"}});
    let path = folder.join("config");
    std::fs::write(&path, config.to_string()).expect("written");
    path.to_str().expect("text").to_owned()
}

#[test]
fn signal_while_a_plugin_hangs_ends_the_verb_and_the_plugin() {
    for (signal, code) in SIGNALS {
        let folder = tempfile::tempdir().expect("a folder");
        let sign = pipe(folder.path());
        let config = hanging_plugin(folder.path(), &sign);
        let mut verb = started(&["status", "--timeout", "10m", "--kubeconfig", &config], Stdio::null());
        let mut stderr = verb.0.stderr.take().expect("a pipe");
        std::fs::read(&sign).expect("the plugin runs");
        verb.stop(signal, code);
        if cfg!(target_os = "linux") {
            let (mut said, begin) = (String::new(), Instant::now());
            stderr.read_to_string(&mut said).expect("no one holds it any more");
            assert!(begin.elapsed() < Duration::from_secs(300), "the plugin went on");
            assert_eq!(said, "", "a verb that is stopped does not complain");
        }
    }
}
