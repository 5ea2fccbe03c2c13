// SPDX-License-Identifier: Apache-2.0
//! What reaches a terminal. Names and messages come from files, matrices, clusters and vCenters; none of them may move the
//! cursor, set a title, hide text or turn it around. A pseudo-terminal shows what a person would have got.

use crate::api_server::{self, ApiServer};
use crate::matrix::EDGES;
use crate::pty;
use crate::stopping::Running;
use crate::vdoctl;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

/// A title, a cleared screen, hidden letters, a colour that is none of ours, C1, a turn of direction, a return to the margin.
const POISON: &str = "\u{1b}]0;pwned\u{7}\u{1b}[2J\u{1b}[8mx\u{1b}[35m\u{9b}1m\u{202e}\u{2066}\u{200f}\u{2028}\u{7f}\r";

/// Starts vdoctl with a terminal for stdin, stdout and stderr; the other end is for reading.
fn on_terminal(arguments: &[&str], kubeconfig: Option<&Path>) -> (Running, File) {
    let mut command = Command::new(vdo_testbed::vdoctl());
    command.env_clear().env("TERM", "xterm").args(arguments);
    command.envs(kubeconfig.map(|path| ("KUBECONFIG", path)));
    let (child, terminal) = pty::on_terminal(command, 0);
    (Running(child), terminal)
}

/// Everything that a command writes to its terminal.
pub fn screen(arguments: &[&str], kubeconfig: Option<&Path>) -> String {
    let (mut child, mut terminal) = on_terminal(arguments, kubeconfig);
    let mut bytes = Vec::new();
    // The end of a terminal is an error on Linux and an end elsewhere.
    let _ = terminal.read_to_end(&mut bytes);
    child.0.wait().expect("it ends");
    String::from_utf8(bytes).expect("UTF-8")
}

/// Nothing but text and our own few styles; the terminal itself turns `\n` into `\r\n`.
fn assert_harmless(text: &str, what: &str) {
    let mut rest = text.replace("\r\n", "\n");
    for style in ["1", "2", "4", "22", "31", "32", "33", "31;1", "1;31", "0"] {
        rest = rest.replace(&format!("\u{1b}[{style}m"), "");
    }
    let bad = |c: char| (c.is_control() && !"\n\t".contains(c)) || "\u{202e}\u{2066}\u{200f}\u{2028}".contains(c);
    assert!(!rest.contains(bad), "{what}: {rest:?}");
}

/// Copies of a document, in each of which the text of another kind of field, or of another kind of key, is poisoned.
fn poisoned(document: &Value) -> Vec<(String, Value)> {
    fn walk(value: &mut Value, path: &str, target: Option<&str>, found: &mut Vec<String>) {
        let mut meet = |path: String| {
            let hit = target == Some(path.as_str());
            if !found.contains(&path) {
                found.push(path);
            }
            hit
        };
        match value {
            Value::String(text) if meet(path.to_owned()) => text.push_str(POISON),
            Value::Array(items) => items.iter_mut().for_each(|item| walk(item, path, target, found)),
            Value::Object(fields) => {
                let keys = meet(format!("key of {path}"));
                let named = ["sources", "preconditions", "drivers", "features"]
                    .iter()
                    .any(|map| path.ends_with(map));
                for (key, mut item) in std::mem::take(fields) {
                    let below = if named { format!("{path}/*") } else { format!("{path}/{key}") };
                    walk(&mut item, &below, target, found);
                    fields.insert(if keys { format!("{key}{POISON}") } else { key }, item);
                }
            }
            _ => {}
        }
    }
    let mut places = Vec::new();
    walk(&mut document.clone(), "", None, &mut places);
    let one = |place: &String| {
        let mut copy = document.clone();
        walk(&mut copy, "", Some(place), &mut Vec::new());
        (place.clone(), copy)
    };
    places.iter().map(one).collect()
}

/// JSON in ASCII: no reader refuses it for its letters.
fn ascii(json: &str) -> String {
    let number = |c: char| match c {
        ' '..='~' => c.to_string(),
        _ => format!("\\u{:04x}", u32::from(c)),
    };
    json.chars().map(number).collect()
}

fn edges() -> Value {
    vdo_api::yaml::load_value(&std::fs::read_to_string(EDGES).expect("the fixture")).expect("YAML")
}

#[test]
fn matrix_text_with_control_characters_commands_no_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("index.json");
    let file = path.to_str().expect("text");
    let all = poisoned(&edges());
    assert!(all.len() > 30, "{}", all.len());
    let mut shown = 0;
    for (place, index) in all {
        std::fs::write(&path, ascii(&index.to_string())).expect("written");
        for verb in [
            &["lint", file][..],
            &[
                "resolve",
                "--matrix",
                file,
                "--kubernetes",
                "1.34",
                "--vcenter",
                "8.0.3",
                "--installed",
                "csi=3.5.0",
            ],
        ] {
            let text = screen(&[&["matrix"], verb].concat(), None);
            assert_harmless(&text, &place);
            shown += usize::from(text.contains("\\u{1b}]0;pwned\\u{7}\\u{1b}[2J\\u{1b}[8mx"));
        }
    }
    assert!(shown > 20, "what is foreign is shown, not left out: {shown}");
}

#[test]
fn matrix_poisoned_note_stays_the_same_data_for_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("index.json");
    let reason = format!("it loses volumes{POISON}");
    let mut index = edges();
    index["drivers"]["vsphere-csi"]["versions"][2]["state"]["reason"] = reason.clone().into();
    std::fs::write(&path, ascii(&index.to_string())).expect("written");
    let verb = |format| {
        [
            "matrix",
            "show",
            "csi",
            "3.0.0",
            "--matrix",
            path.to_str().expect("text"),
            "-o",
            format,
        ]
    };
    let found = |value: &Value| value.to_string().contains(&Value::from(reason.as_str()).to_string());
    let json = vdoctl(&verb("json")).output().expect("it runs").stdout;
    assert!(found(&serde_json::from_slice(&json).expect("JSON")), "the same text");
    assert_harmless(&String::from_utf8(json).expect("text"), "JSON, even in a pipe");
    let yaml = String::from_utf8(vdoctl(&verb("yaml")).output().expect("it runs").stdout).expect("text");
    assert!(found(&vdo_api::yaml::load_value(&yaml).expect("YAML")), "the same text: {yaml}");
    let table = vdoctl(&verb("table")).output().expect("it runs").stdout;
    assert_harmless(&String::from_utf8(table).expect("text"), "text in a pipe");
    for format in ["json", "yaml", "table", "wide"] {
        assert_harmless(&screen(&verb(format), None), format);
    }
}

#[test]
fn file_names_and_arguments_with_control_characters_command_no_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let chart = folder.path().join(format!("chart{POISON}"));
    std::fs::create_dir_all(chart.join("releases")).expect("a folder");
    std::fs::write(chart.join("releases/1.0.yaml"), "a: 1\n").expect("written");
    std::fs::write(chart.join(format!("releases/{POISON}.yaml")), "a: 1\n").expect("written");
    std::fs::write(chart.join("Chart.yaml"), json!({"name": POISON}).to_string()).expect("written");
    let chart = chart.to_str().expect("text");
    for arguments in [
        &["chart", "lint", chart][..],
        &["chart", "package", "cpi", "--version", "1.34.0", "--charts", chart, "-o", "-"],
        &["chart", "package", POISON, "--version", POISON, "-o", "-"],
        &["chart", "images", "cpi", "--version", "1.34.0", "-f", chart],
        &["chart", "images", "cpi", "--version", "1.34.0", "--set", &format!("{POISON}=1")],
        &["matrix", "lint", &format!("/nowhere/{POISON}")],
        &["status", "--kubeconfig", &format!("/nowhere/{POISON}")],
        &["doctor", "--pre", "--vcenter", "x", "--user", "u", "--password-file", POISON],
        &["explain", POISON],
        &["--color", "always", POISON],
        &["--timeout", POISON, "status"],
        &["matrix", "resolve", "--driver", &format!("csi={POISON}")],
    ] {
        let text = screen(arguments, None);
        assert_harmless(&text, &format!("{arguments:?}"));
        assert!(text.contains("\\u{1b}]0;pwned"), "{arguments:?} shows what it was given: {text}");
        let output = vdoctl(arguments).output().expect("it runs");
        for stream in [output.stdout, output.stderr] {
            assert_harmless(&String::from_utf8(stream).expect("text"), &format!("in a pipe: {arguments:?}"));
        }
    }
}

#[test]
fn own_styles_reach_a_terminal() {
    let list = screen(&["matrix", "list", "--matrix", EDGES], None);
    assert!(
        list.starts_with("\u{1b}[1mMATRIX\u{1b}[0m") && list.contains("\u{1b}[1mDRIVER\u{1b}[0m"),
        "{list}"
    );
    assert!(screen(&["explain", "nonsense"], None).contains("\u{1b}[31;1merror:\u{1b}[0m"));
    assert!(screen(&["nonsense"], None).contains("\u{1b}[1m\u{1b}[31merror:"));
}

#[test]
fn package_is_not_written_to_a_terminal() {
    let text = screen(&["chart", "package", "cpi", "--version", "1.34.0", "-o", "-"], None);
    assert_harmless(&text, "a package");
    assert!(text.contains("a terminal cannot show a package"), "{text}");
}

/// An API server whose every text is poisoned, also that which came from a vCenter.
fn poisoned_cluster() -> ApiServer {
    let foreign = |text: &str| format!("{text}{POISON}");
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "PasswordExpired", "message": foreign("Datacenter DC1"),
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let driver = json!({"name": foreign("vsphere-csi"), "version": foreign("3.7.3"), "running": foreign("3.6.0"), "available": foreign("4"),
        "chart": foreign("c"), "objects": 1, "pods": foreign("1/1"), "ready": foreign("1/1"), "because": foreign("b")});
    let config = json!({"metadata": {"name": "vdo", "namespace": "vmware-system-vdo"}, "spec": {}, "status": {
        "health": "Degraded", "conditions": [condition("Ready", "False"), condition("Upgradeable", "False")], "drivers": [driver]}});
    let connection = json!({"metadata": {"name": "vc1", "namespace": "vmware-system-vdo"},
        "spec": {"vcIp": foreign("vcenter"), "credentials": "c", "datacenters": [foreign("DC1")]},
        "status": {"conditions": [condition("Ready", "False")],
            "about": {"version": foreign("8.0.3"), "build": foreign("1"), "apiType": "VirtualCenter", "instanceUuid": "u"},
            "credential": {"secret": "c", "user": foreign("user"), "version": "1"}}});
    ApiServer::start(move |path| match path {
        "/version" => Some(
            json!({"major": "1", "minor": "34", "gitVersion": foreign("v1.34.0+"), "platform": "linux/amd64",
            "gitCommit": "", "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": ""}),
        ),
        _ if path.ends_with("/vdoconfigs") => Some(json!({"metadata": {"resourceVersion": "1"}, "items": [config]})),
        _ if path.ends_with("/vspherecloudconfigs") => Some(json!({"metadata": {"resourceVersion": "1"}, "items": [connection]})),
        _ if path.ends_with("/nodes") => Some(json!({"metadata": {"resourceVersion": "1"}, "items": []})),
        _ => None,
    })
}

#[test]
fn cluster_and_vcenter_text_commands_no_terminal() {
    let cluster = poisoned_cluster();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config");
    std::fs::write(&path, ascii(&cluster.kubeconfig(&format!("demo{POISON}")))).expect("written");
    for arguments in [
        &["status"][..],
        &["status", "-o", "wide"],
        &["status", "-o", "json"],
        &["status", "-o", "yaml"],
    ] {
        let text = screen(arguments, Some(&path));
        assert_harmless(&text, &format!("{arguments:?}"));
        assert!(text.contains("Datacenter DC1"), "{text}");
    }
    let text = screen(&["doctor", "connection", "other"], Some(&path));
    assert_harmless(&text, "doctor");
    std::fs::write(
        &path,
        ascii(&api_server::kubeconfig(&format!("demo{POISON}"), "http://127.0.0.1:1")),
    )
    .expect("written");
    let text = screen(&["diff"], Some(&path));
    assert_harmless(&text, "a context");
    assert!(text.contains("demo\\u{1b}]0;pwned"), "{text}");
}

#[test]
fn watch_redraws_and_ends_at_once_on_a_signal() {
    let cluster = poisoned_cluster();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config");
    std::fs::write(&path, cluster.kubeconfig("demo")).expect("written");
    let (mut verb, mut terminal) = on_terminal(&["status", "--watch"], Some(&path));
    let (mut text, mut part) = (String::new(), [0; 4096]);
    while text.matches("\u{1b}[H\u{1b}[2J\u{1b}[3J").count() < 2 {
        let length = terminal.read(&mut part).expect("it goes on");
        text.push_str(&String::from_utf8_lossy(&part[..length]));
    }
    let screens: Vec<&str> = text.split("\u{1b}[H\u{1b}[2J\u{1b}[3J").collect();
    assert_harmless(screens[1], "a screen");
    assert!(screens[1].contains("Datacenter DC1"), "{text}");
    verb.stop(nix::sys::signal::Signal::SIGINT, 130);
}
