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
    let verbs: [&[&str]; 24] = [
        &["status"],
        &["plan"],
        &["approve"],
        &["diff"],
        &["render"],
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

/// A matrix with upgrade edges, and one that is past its date and has fields that nobody knows.
const EDGES: &str = "tests/fixtures/matrix-edges.yaml";
const EXPIRED: &str = "tests/fixtures/matrix-expired.yaml";

/// A question to a matrix for one Kubernetes and one vCenter, with more of it typed as in a shell.
fn asked(matrix: &'static str, verb: &'static str, kubernetes: &'static str, more: &'static str) -> Vec<&'static str> {
    let mut all = vec!["matrix"];
    all.extend(verb.split(' '));
    all.extend(["--matrix", matrix, "--kubernetes", kubernetes]);
    all.extend(more.split(' ').filter(|part| !part.is_empty()));
    if !more.contains("--vcenter") {
        all.extend(["--vcenter", "8.0.3"]);
    }
    all
}

#[test]
fn what_a_choice_says_of_what_is_installed() {
    let resolve = |name: &str, kubernetes, more| snap(name, &asked(EDGES, "resolve", kubernetes, more));
    // the only way leads through a version that does not fit
    resolve("resolve_no_path", "1.35", "--installed csi=3.0.0 --installed cpi=1.34.0");
    resolve("resolve_leaves", "1.34", "--installed csi=3.0.0,cpi=1.34.0");
    resolve("resolve_steps_down", "1.33", "--installed csi=4.0.0 --driver csi");
    resolve("resolve_other_would_fit", "1.35", "--feature snapshots --installed csi=2.9.0");
    resolve("resolve_one_vcenter", "1.33", "--vcenter 8.0.3 --vcenter 7.0.3 --driver csi=2.9.0");
    snap("explain_steps", &asked(EDGES, "explain", "1.34", "--installed csi=3.0.0"));
    snap("why_not", &asked(EDGES, "why-not csi 2.9.0", "1.35", "--driver csi"));
    snap("why_not_minor", &asked(EDGES, "why-not csi 3.5", "1.35", ""));
    snap("why_not_several", &asked(EDGES, "why-not csi 2.9.0", "1.35", "--feature snapshots"));
    snap(
        "what_if",
        &asked(
            EDGES,
            "resolve",
            "1.34",
            "--installed csi=2.9.0,cpi=1.34.0 --what-if-kubernetes 1.36 --what-if-vcenter a=9.0 --vcenter a=8.0.3,b=7.0.3",
        ),
    );
    let output = vdoctl(&asked(EDGES, "resolve", "1.34", "--installed csi=2.9.0 -o json"))
        .output()
        .expect("it runs");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let csi = &json["drivers"][1];
    assert_eq!((&csi["from"], &csi["path"]), (&"2.9.0".into(), &serde_json::json!([])), "{csi:#}");
}

#[test]
fn a_matrix_says_when_it_is_old_or_not_understood() {
    snap("matrix_expired", &asked(EXPIRED, "resolve", "1.34", "--installed csi=1.0.0"));
    for verb in ["explain", "why-not csi 2.0.0", "resolve --what-if-kubernetes 1.35"] {
        let text = seen(vdoctl(&asked(EXPIRED, verb, "1.34", "")));
        assert!(
            text.contains("was good until 2020-06-01") && text.contains("did you mean note?"),
            "{verb}: {text}"
        );
    }
    for verb in [&["matrix", "list"][..], &["matrix", "show", "csi", "2.0.0"]] {
        let text = seen(vdoctl(&[verb, &["--matrix", EXPIRED]].concat()));
        assert!(
            text.contains("warning: tests/fixtures/matrix-expired.yaml: this vdoctl does not know"),
            "{text}"
        );
    }
    let text = seen(vdoctl(&asked(FROZEN, "resolve", "1.34", "")));
    assert!(!text.contains("warning"), "{text}");
}

#[test]
fn questions_that_contradict_themselves_are_refused() {
    for (more, code_, says) in [
        ("--vcenter vc1=8.0.3 --vcenter vc1=7.0.3", 2, "--vcenter is given twice for vc1"),
        (
            "--driver csi=4.0.0 --driver vsphere-csi=3.5.0",
            2,
            "--driver is given twice for vsphere-csi",
        ),
        ("--installed csi=4.0.0,csi=3.5.0", 2, "--installed is given twice for vsphere-csi"),
        (
            "--what-if-vcenter 8.0.4 --what-if-vcenter 9.0",
            2,
            "--what-if-vcenter is given twice for all vCenters",
        ),
        (
            "--driver cpi --feature snapshots",
            2,
            "--feature snapshots is about vsphere-csi, which is not to be chosen",
        ),
        ("--feature snapshot", 3, "Did you mean snapshots?"),
        ("--installed csi", 2, "--installed csi names no version"),
        (
            "--driver cpi --installed csi=4.0.0",
            0,
            "--installed vsphere-csi makes no difference",
        ),
    ] {
        let arguments = asked(EDGES, "resolve", "1.34", more);
        let output = vdoctl(&arguments).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code_), "{more}: {said}");
        assert!(said.contains(says), "{more}: {said}");
    }
}

/// Charts beside an index are opened: the package, its version and its images are what the index says.
#[test]
fn lint_looks_into_the_charts() {
    let folder = tempfile::tempdir().expect("a folder");
    let charts = folder.path().join("charts");
    std::fs::create_dir(&charts).expect("a folder");
    let package = vdoctl(&["chart", "package", "cpi", "--version", "1.34.0", "-o", "-"])
        .output()
        .expect("it runs")
        .stdout;
    std::fs::write(charts.join("cpi.tgz"), &package).expect("written");
    std::fs::write(charts.join("junk.tgz"), "junk").expect("written");
    let image = seen(vdoctl(&["chart", "images", "cpi", "--version", "1.34.0"]));
    let image = image.lines().find(|line| line.contains('/')).expect("an image").trim();
    let digest = vdo::types::Digest::of(&package).hex();
    let junk = vdo::types::Digest::of(b"junk").hex();
    let wrong = "0".repeat(64);
    let index = folder.path().join("index.yaml");
    let lint = |version: &str, url: &str, sha256: &str, images: serde_json::Value| {
        let entry = serde_json::json!({
            "version": version, "chart": {"urls": [url], "sha256": sha256}, "images": images,
            "kubernetes": {"min": "1.34", "max": "1.34", "confidence": "unverified"},
            "vsphere": {"min": null, "max": null, "confidence": "unverified"},
        });
        let text = serde_json::json!({
            "apiVersion": "vdo.vmware.com/matrix/v1", "kind": "CompatibilityMatrix", "version": 1,
            "drivers": {"vsphere-cpi": {"role": "cloud-provider", "versions": [entry]}},
        });
        std::fs::write(&index, vdo::yaml::dump(&text).expect("YAML")).expect("written");
        let output = vdoctl(&["matrix", "lint"]).arg(folder.path()).output().expect("it runs");
        (
            output.status.code().expect("a code"),
            String::from_utf8(output.stdout).expect("text"),
        )
    };
    let name = image.rsplit('/').next().and_then(|last| last.split(':').next()).expect("a name");
    let listed = vdo::matrix::Index::parse(vdo::fetch::embedded::index()).expect("an index");
    let entry = listed.drivers["vsphere-cpi"]
        .entry(&"1.34.0".parse().expect("a version"))
        .expect("an entry")
        .clone();
    let good = serde_json::json!(entry.images);
    let mut strange = good.clone();
    strange[0]["ref"] = "example.com/other:1".into();
    let mut renamed = good.clone();
    renamed[0]["name"] = "else".into();
    for (version, url, sha256, images, says) in [
        ("1.34.0", "charts/cpi.tgz", &digest, &good, &["no mistakes, 1 chart checked"][..]),
        (
            "1.34.0",
            "charts/cpi.tgz",
            &wrong,
            &good,
            &["1.34.0 chart.sha256: ", "has the SHA-256", digest.as_str()],
        ),
        (
            "1.34.0",
            "charts/none.tgz",
            &digest,
            &good,
            &["chart.urls: there is no chart at charts/none.tgz"],
        ),
        (
            "1.34.0",
            "https://example.com/cpi.tgz",
            &digest,
            &good,
            &["1 chart elsewhere, not checked"],
        ),
        ("1.34.0", "charts/junk.tgz", &junk, &good, &["chart: the package cannot be opened"]),
        (
            "1.33.1",
            "charts/cpi.tgz",
            &digest,
            &good,
            &["the package is the chart of vsphere-cpi 1.34.0, not of vsphere-cpi 1.33.1"],
        ),
        (
            "1.34.0",
            "charts/cpi.tgz",
            &digest,
            &strange,
            &[
                "images.0.ref: the chart does not render example.com/other:1",
                "images: the chart renders ",
                name,
            ],
        ),
        (
            "1.34.0",
            "charts/cpi.tgz",
            &digest,
            &renamed,
            &["images.0.name: the chart has no image \"else\""],
        ),
    ] {
        let (code, said) = lint(version, url, sha256, images.clone());
        let clean = said.contains("no mistakes");
        assert_eq!(code, i32::from(!clean), "{said}");
        for part in says {
            assert!(said.contains(part), "{part} is not said of {version} at {url}: {said}");
        }
        for line in said.lines().filter(|line| line.contains("drivers.")) {
            let rest = line.split_once("index.yaml:").expect("the file").1;
            let number = rest.split(':').next().unwrap_or_default();
            assert!(number.parse::<u64>().is_ok(), "no line number: {line}");
        }
    }
    // what is no text is bad input as any other
    std::fs::write(&index, [0xff, 0xfe]).expect("written");
    for arguments in [&["matrix", "lint"][..], &["matrix", "list", "--matrix"]] {
        let output = vdoctl(arguments).arg(&index).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(said.contains("not UTF-8 text"), "{said}");
    }
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
