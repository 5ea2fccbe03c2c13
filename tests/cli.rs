//! vdoctl as its users meet it: whole command lines, what they print where, and how they end. Nothing here needs a cluster.

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
fn help_of_every_verb() {
    snap("help", &["--help"]);
    let verbs: [&[&str]; 20] = [
        &["status"],
        &["plan"],
        &["approve"],
        &["diff"],
        &["render"],
        &["explain"],
        &["matrix"],
        &["matrix", "resolve"],
        &["matrix", "explain"],
        &["matrix", "why-not"],
        &["matrix", "list"],
        &["matrix", "show"],
        &["matrix", "lint"],
        &["chart"],
        &["chart", "render"],
        &["chart", "images"],
        &["chart", "compare"],
        &["chart", "package"],
        &["version"],
        &["completion"],
    ];
    for verb in verbs {
        let arguments: Vec<&str> = verb.iter().copied().chain(["-h"]).collect();
        snap(&format!("help_{}", verb.join("_")), &arguments);
    }
}

#[test]
fn a_wrong_command_line_ends_with_2() {
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
    snap("suggestion_for_a_verb", &["staus"]);
}

#[test]
fn what_a_chart_renders() {
    let output = vdoctl(&["chart", "render", "cpi", "--version", "1.34.0"])
        .output()
        .expect("it runs");
    assert!(output.status.success() && output.stderr.is_empty());
    let text = String::from_utf8(output.stdout).expect("text");
    let first: String = text.lines().take(12).map(|line| format!("{line}\n")).collect();
    assert_snapshot!("chart_render_begins", first);
    assert_eq!(vdo::yaml::load_all(&text).expect("YAML").len(), text.matches("---\n").count());

    snap(
        "chart_render_table",
        &["chart", "render", "vsphere-csi", "--version", "v3.7.3", "-o", "table"],
    );
    snap(
        "chart_images",
        &[
            "chart",
            "images",
            "csi",
            "--version",
            "3.7.3",
            "--set",
            "images.registry=registry.example.com/m",
        ],
    );
    snap(
        "chart_images_json",
        &["chart", "images", "cpi", "--version", "1.34.0", "-o", "json"],
    );
}

#[test]
fn values_come_from_files_and_settings_and_the_last_one_wins() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let two = file("two.yaml", "images: {registry: two.example.com}\nlogLevel: 3\n");
    let registry = |arguments: &[&str], stdin: &str| {
        let mut command = vdoctl(&["chart", "images", "cpi", "--version", "1.34.0"]);
        let output = command.args(arguments).write_stdin(stdin).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout)
            .split('/')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(registry(&["-f", &two], ""), "two.example.com");
    assert_eq!(
        registry(&["-f", &two, "--set", "images.registry=three.example.com"], ""),
        "three.example.com"
    );
    assert_eq!(registry(&["-f", "-"], "images: {registry: four.example.com}"), "four.example.com");
    let gone = seen(vdoctl(&[
        "chart",
        "images",
        "cpi",
        "--version",
        "1.34.0",
        "--set",
        "images.registry=null",
    ]));
    assert!(gone.contains("must not be removed"), "a null reaches the chart: {gone}");

    let bad = file("bad.yaml", "a: [");
    let list = file("list.yaml", "[a]");
    for (path, code, says) in [
        (bad.as_str(), 4, "line 1"),
        (&list, 4, "not a map"),
        ("/nowhere.yaml", 3, "/nowhere.yaml"),
    ] {
        let output = vdoctl(&["chart", "render", "csi", "--version", "3.7.3", "-f", path])
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(code), "{path}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(says), "{path}: {output:?}");
    }
}

#[test]
fn a_wrong_driver_or_version_gets_the_nearest() {
    snap("chart_wrong_driver", &["chart", "render", "vsphere-cis", "--version", "3.7.3"]);
    snap("chart_wrong_version", &["chart", "render", "csi", "--version", "3.7.9"]);
    snap("chart_minor_only", &["chart", "render", "csi", "--version", "3.4"]);
    snap(
        "chart_wrong_value",
        &["chart", "render", "csi", "--version", "3.7.3", "--set", "controler.replicas=1"],
    );
    snap("matrix_wrong_driver", &["matrix", "list", "calico"]);
}

#[test]
fn a_package_is_the_one_of_the_matrix() {
    let output = vdoctl(&["chart", "package", "cpi", "--version", "1.34.0", "-o", "-", "--color", "always"])
        .output()
        .expect("it runs");
    let digest = vdo::types::Digest::of(&output.stdout).to_string();
    assert!(String::from_utf8_lossy(&output.stderr).contains(&digest), "{digest}");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cpi.tgz");
    let same = vdoctl(&["chart", "package", "cpi", "--version", "1.34.0", "-o"])
        .arg(&path)
        .output()
        .expect("it runs");
    assert!(same.status.success() && same.stdout.is_empty());
    assert_eq!(std::fs::read(&path).expect("written"), output.stdout);
}

#[test]
fn what_the_matrix_chooses() {
    snap(
        "resolve_fits",
        &[
            "matrix",
            "resolve",
            "--matrix",
            FROZEN,
            "--kubernetes",
            "v1.34.4",
            "--vcenter",
            "8.0.3",
        ],
    );
    snap(
        "resolve_fits_json",
        &[
            "matrix",
            "resolve",
            "--matrix",
            FROZEN,
            "--kubernetes",
            "1.34",
            "--vcenter",
            "vc1=8.0.3,vc2=7.0.3",
            "--driver",
            "csi",
            "--driver",
            "cpi",
            "-o",
            "json",
        ],
    );
    snap(
        "resolve_nothing_fits",
        &[
            "matrix",
            "resolve",
            "--matrix",
            FROZEN,
            "--kubernetes",
            "1.20",
            "--vcenter",
            "8.0.3",
        ],
    );
    snap(
        "resolve_nothing_fits_json",
        &[
            "matrix",
            "resolve",
            "--matrix",
            FROZEN,
            "--kubernetes",
            "1.20",
            "--vcenter",
            "8.0.3",
            "-o",
            "json",
        ],
    );
    snap(
        "resolve_vcenter_too_old",
        &[
            "matrix",
            "resolve",
            "--matrix",
            FROZEN,
            "--kubernetes",
            "1.34",
            "--vcenter",
            "vc1=8.0.3",
            "--vcenter",
            "old=6.7.0",
        ],
    );
    snap(
        "resolve_pin_does_not_fit",
        &[
            "matrix",
            "resolve",
            "--matrix",
            FROZEN,
            "--kubernetes",
            "1.34",
            "--vcenter",
            "8.0.3",
            "--driver",
            "csi=3.5.1",
            "--driver",
            "cpi",
        ],
    );
    snap("matrix_list", &["matrix", "list", "--matrix", FROZEN, "-o", "wide"]);
}

#[test]
fn what_version_says() {
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
    snap("version_short", &["version", "--short"]);
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
fn completion_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = vdoctl(&["completion", shell]).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && text.contains("vdoctl") && text.contains("kubeconfig"),
            "{shell}"
        );
    }
}

const NOBODY_THERE: &str = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "gone",
    "contexts": [{"name": "gone", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}],
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}]}"#;

#[test]
fn a_cluster_that_is_not_there_is_named_and_ends_with_5() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config");
    std::fs::write(&path, NOBODY_THERE).expect("written");
    for verb in [
        &["status"][..],
        &["diff"],
        &["render"],
        &["matrix", "resolve"],
        &["status", "--watch"],
    ] {
        let mut by_flag = vdoctl(verb);
        by_flag.arg("--kubeconfig").arg(&path);
        let mut by_twin = vdoctl(verb);
        by_twin.env("VDO_KUBECONFIG", &path).env("KUBECONFIG", "/nowhere");
        let mut as_kubectl = vdoctl(verb);
        as_kubectl.env("KUBECONFIG", &path);
        let all = [seen(by_flag), seen(by_twin), seen(as_kubectl)];
        assert_eq!(all[0], all[1], "{verb:?}");
        assert_eq!(all[0], all[2], "{verb:?}");
        assert!(
            all[0].starts_with("exit 5\n--- stdout\n--- stderr\nerror: cluster gone at http://127.0.0.1:1 cannot be reached: "),
            "{}",
            all[0]
        );
    }
    let mut elsewhere = vdoctl(&["status", "--context", "other"]);
    elsewhere.env("KUBECONFIG", &path);
    assert!(seen(elsewhere).starts_with("exit 5"));
    snap("no_kubeconfig", &["status"]);
    snap("no_such_kubeconfig", &["diff", "--kubeconfig", "/nowhere/config"]);
}

#[test]
fn a_server_that_never_answers_ends_with_7_when_the_time_is_over() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config");
    let address = silent.local_addr().expect("an address");
    std::fs::write(&path, NOBODY_THERE.replace("127.0.0.1:1", &address.to_string())).expect("written");
    let mut command = vdoctl(&["diff", "--timeout", "1s"]);
    command.env("KUBECONFIG", &path);
    with_settings!({omit_expression => true}, { assert_snapshot!("timeout", seen(command)) });
}

#[test]
fn colours_only_where_they_are_wanted() {
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
fn a_reader_that_goes_away_is_no_failure() {
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
            .args(["-c", script, env!("CARGO_BIN_EXE_vdoctl")])
            .output()
            .expect("sh runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout), first);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "ended with 0\n");
    }
}

#[test]
fn signals_end_it_with_their_own_codes() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config");
    let address = silent.local_addr().expect("an address");
    std::fs::write(&path, NOBODY_THERE.replace("127.0.0.1:1", &address.to_string())).expect("written");
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_vdoctl"))
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

/// docs/cli.md speaks of every verb, flag and variable there is, and of no other variable.
#[test]
fn the_reference_is_complete() {
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
