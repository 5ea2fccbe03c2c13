// SPDX-License-Identifier: Apache-2.0
//! How it ends when the cluster, the terminal or the reader goes away.

use crate::{seen, snap, vdoctl};
use insta::{assert_snapshot, with_settings};
use std::net::TcpListener;
use tempfile::TempDir;

pub const CLOSED_PORT: &str = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "gone",
    "contexts": [{"name": "gone", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}],
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}]}"#;

/// An API server that never answers, and a folder with a kubeconfig, `config`, that names it.
fn silent_cluster() -> (TcpListener, TempDir) {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let folder = tempfile::tempdir().expect("a folder");
    let address = silent.local_addr().expect("an address");
    let text = CLOSED_PORT.replace("127.0.0.1:1", &address.to_string());
    std::fs::write(folder.path().join("config"), text).expect("written");
    (silent, folder)
}

#[test]
fn cli_unreachable_cluster_exits_5_with_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config");
    std::fs::write(&path, CLOSED_PORT).expect("written");
    for verb in [
        &["status"][..],
        &["diff"],
        &["render"],
        &["matrix", "resolve"],
        &["status", "--watch"],
    ] {
        let mut by_flag = vdoctl(verb);
        by_flag.arg("--kubeconfig").arg(&path);
        let mut by_variable = vdoctl(verb);
        by_variable.env("VDO_KUBECONFIG", &path).env("KUBECONFIG", "/nowhere");
        let mut as_kubectl = vdoctl(verb);
        as_kubectl.env("KUBECONFIG", &path);
        let all = [seen(by_flag), seen(by_variable), seen(as_kubectl)];
        assert_eq!(all[0], all[1], "{verb:?}");
        assert_eq!(all[0], all[2], "{verb:?}");
        assert!(
            all[0].starts_with("exit 5\n--- stdout\n--- stderr\nerror: cluster gone at http://127.0.0.1:1 cannot be reached: "),
            "{}",
            all[0]
        );
    }
}

#[test]
fn cli_unknown_context_exits_5() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config");
    std::fs::write(&path, CLOSED_PORT).expect("written");
    let mut elsewhere = vdoctl(&["status", "--context", "other"]);
    elsewhere.env("KUBECONFIG", &path);
    assert!(seen(elsewhere).starts_with("exit 5"));
}

#[test]
fn cli_missing_kubeconfig_matches_snapshots() {
    snap("no_kubeconfig", &["status"]);
    snap("no_such_kubeconfig", &["diff", "--kubeconfig", "/nowhere/config"]);
}

#[test]
fn cli_without_a_verb_shows_steps_for_what_is_there() {
    snap("no_verb", &[]);
    let (_silent, folder) = silent_cluster();
    let mut command = vdoctl(&[]);
    command.env("KUBECONFIG", folder.path().join("config")).env("VDO_TIMEOUT", "1s");
    let said = seen(command);
    assert!(
        said.starts_with("exit 0\n") && said.contains("The cluster could not be read: ") && said.contains("vdoctl options"),
        "{said}"
    );
}

#[test]
fn cli_timeout_silent_api_server_exits_7() {
    let (_silent, folder) = silent_cluster();
    let path = folder.path().join("config");
    let mut command = vdoctl(&["diff", "--timeout", "1s"]);
    command.env("KUBECONFIG", &path);
    with_settings!({omit_expression => true}, { assert_snapshot!("timeout", seen(command)) });
}

#[test]
fn cli_color_flag_and_variables_decide_escapes() {
    let escapes = |arguments: &[&str], variables: &[(&str, &str)]| {
        let output = vdoctl(arguments).envs(variables.iter().copied()).output().expect("it runs");
        output.stdout.contains(&0x1b) || output.stderr.contains(&0x1b)
    };
    let good = ["matrix", "list"];
    let bad = ["chart", "render", "x", "--version", "1.0.0"];
    for arguments in [&good[..], &bad] {
        assert!(!escapes(arguments, &[]), "a pipe gets none");
        assert!(!escapes(arguments, &[("NO_COLOR", "1")]));
        assert!(escapes(arguments, &[("VDO_COLOR", "always")]));
        assert!(
            escapes(&[&["--color", "always"], arguments].concat(), &[("NO_COLOR", "1")]),
            "the flag is the last word"
        );
        assert!(!escapes(&[&["--color", "never"], arguments].concat(), &[("CLICOLOR_FORCE", "1")]));
    }
    assert!(
        !escapes(&["matrix", "list", "-o", "json", "--color", "always"], &[]),
        "JSON is never coloured"
    );
}

#[test]
fn cli_closed_pipe_is_no_failure() {
    // The second reader is gone before the first byte, so that no pipe can hold the output until the end.
    for (script, first) in [
        (
            r#"{ "$0" chart render csi --version 3.7.3; echo "ended with $?" >&2; } | head -1"#,
            "---\n",
        ),
        (
            r#"{ sleep 0.5; "$0" chart render csi --version 3.7.3; echo "ended with $?" >&2; } | :"#,
            "",
        ),
    ] {
        let output = std::process::Command::new("sh")
            .args(["-c", script, vdo_testbed::vdoctl()])
            .output()
            .expect("sh runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout), first);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "ended with 0\n");
    }
}

#[test]
fn cli_signal_exits_with_its_own_code() {
    let (silent, folder) = silent_cluster();
    let path = folder.path().join("config");
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut child = std::process::Command::new(vdo_testbed::vdoctl())
            .arg("status")
            .env_clear()
            .env("KUBECONFIG", &path)
            .spawn()
            .expect("it starts");
        let _waiting = silent.accept().expect("it connects");
        let kill = format!("kill -{signal} {}", child.id());
        assert!(
            std::process::Command::new("sh")
                .args(["-c", &kill])
                .status()
                .expect("sh runs")
                .success()
        );
        assert_eq!(child.wait().expect("it ends").code(), Some(code), "{signal}");
    }
}
