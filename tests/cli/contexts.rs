// SPDX-License-Identifier: Apache-2.0
//! Contexts of several clusters as they are typed.

use crate::{seen, vdoctl};
use serde_json::json;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

/// A kubeconfig with these contexts, all of one server.
fn kubeconfig(folder: &Path, contexts: &[&str], server: &str) -> String {
    let clusters = contexts.iter().map(|name| json!({"name": name, "cluster": {"server": server}}));
    let all = contexts
        .iter()
        .map(|name| json!({"name": name, "context": {"cluster": name, "user": "u"}}));
    let config = json!({"apiVersion": "v1", "kind": "Config", "users": [{"name": "u", "user": {}}],
        "clusters": clusters.collect::<Vec<_>>(), "contexts": all.collect::<Vec<_>>()});
    let path = folder.join("config");
    std::fs::write(&path, config.to_string()).expect("written");
    path.display().to_string()
}

#[test]
fn contexts_that_are_wrong_are_refused_before_any_cluster_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    // A command that asks it waits until its deadline.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = format!("https://{}", silent.local_addr().expect("an address"));
    let path = kubeconfig(folder.path(), &["east", "west"], &server);
    let begun = Instant::now();
    for verb in [&["status"][..], &["report", "--html", "-"]] {
        for (more, code, says) in [
            (
                &["--contexts", "east,wset"][..],
                5,
                "error: the kubeconfig has no context \"wset\"\n  Did you mean west? The contexts are: east, west.\n",
            ),
            (&["--contexts", "east,"], 5, "error: the kubeconfig has no context \"\"\n"),
            (&["--contexts", ""], 2, "a value is required for '--contexts <NAMES>'"),
            (&["--contexts", "east", "--all-contexts"], 2, "cannot be used with"),
            (&["--all-contexts", "--from", "bundle.tar.gz"], 2, "cannot be used with"),
            (
                &["--all-contexts", "--kube-cluster", "east"],
                2,
                "error: --kube-cluster (VDO_KUBE_CLUSTER) names one cluster, \"east\", but the command asks for several clusters\n",
            ),
        ] {
            let line = [verb, &["--kubeconfig", &path, "--timeout", "5m", "--request-timeout", "5m"], more].concat();
            let said = seen(vdoctl(&line));
            assert!(
                said.starts_with(&format!("exit {code}\n")) && said.contains(says),
                "{line:?}: {said}"
            );
        }
    }
    let said = seen(vdoctl(&["status", "--watch", "--all-contexts"]));
    assert!(said.starts_with("exit 2") && said.contains("cannot be used with"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(120), "a cluster was asked");
    let none = kubeconfig(folder.path(), &[], &server);
    let said = seen(vdoctl(&["status", "--all-contexts", "--kubeconfig", &none]));
    assert_eq!(
        said,
        "exit 3\n--- stdout\n--- stderr\nerror: the kubeconfig has no contexts\n  Name another kubeconfig with --kubeconfig or KUBECONFIG.\n"
    );
}

#[test]
fn contexts_that_do_not_answer_are_a_line_each_in_every_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = kubeconfig(folder.path(), &["east", "west"], "http://127.0.0.1:9");
    let run = |more: &[&str]| seen(vdoctl(&[&["status", "--all-contexts", "--kubeconfig", &path], more].concat()));
    let table = run(&[]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0] == "exit 5" && lines[3].starts_with("east     unreachable  -"), "{table}");
    assert!(
        lines[4].starts_with("west     unreachable  -") && lines[5].starts_with("More about east: vdoctl status --kubeconfig "),
        "{table}"
    );
    assert_eq!(run(&["-o", "name"]), "exit 5\n--- stdout\neast\nwest\n--- stderr\n");
    let document = run(&["-o", "json"]);
    let json = document
        .split("--- std")
        .nth(1)
        .and_then(|text| text.strip_prefix("out\n"))
        .expect("stdout");
    assert_eq!(crate::schema::faults_of(json), Vec::<String>::new(), "{json}");
    assert!(json.contains("\"exit\": 5") && json.contains("\"kind\": \"StatusList\""), "{json}");
}
