// SPDX-License-Identifier: Apache-2.0
//! `vdoctl chart compare`, and charts that are not in vdoctl: how a new release of a driver is taken in.

use assert_cmd::Command;
use insta::assert_snapshot;
use serde_json::Value;
use std::path::Path;

fn vdoctl(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("vdoctl").expect("vdoctl is built with the tests");
    command.env_clear().args(arguments);
    command
}

/// Exit code, stdout and stderr.
pub fn seen(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// What the chart itself renders, as a manifest to compare it with.
fn rendered(arguments: &[&str]) -> String {
    let (code, text, error) = seen(vdoctl(&[&["chart", "render"], arguments].concat()));
    assert_eq!(code, Some(0), "{error}");
    text
}

fn compare(arguments: &[&str], manifest: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("manifest.yaml");
    std::fs::write(&path, manifest).expect("written");
    let mut command = vdoctl(&[&["chart", "compare"], arguments].concat());
    command.arg(&path);
    seen(command)
}

#[test]
fn chart_compare_same_manifest_has_no_differences() {
    let csi = ["csi", "--version", "3.7.3"];
    let own = rendered(&csi);
    let (code, data, talk) = compare(&csi, &own);
    assert_eq!((code, data.as_str()), (Some(0), ""));
    assert_eq!(
        talk,
        "vsphere-csi 3.7.3: 15 objects of the chart compared with 15 of the manifests; 0 differences, 0 of them intended\n"
    );
    // The order of documents means nothing.
    let reversed: Vec<&str> = own.split("---\n").collect::<Vec<_>>().into_iter().rev().collect();
    assert_eq!(compare(&csi, &reversed.join("---\n")).0, Some(0));
}

#[test]
fn chart_compare_changed_manifest_shows_differences() {
    let csi = ["csi", "--version", "3.7.3"];
    let own = rendered(&csi);
    let changed = own.replacen("replicas: 3", "replicas: 5", 1) + "---\n{apiVersion: v1, kind: Service, metadata: {name: new}}\n";
    let (code, data, talk) = compare(&csi, &changed);
    assert_eq!(code, Some(1));
    assert_snapshot!("compare_changed", format!("{data}{talk}"));
    let (code, data, _) = compare(&["csi", "--version", "3.7.3", "-o", "json"], &changed);
    let document: Value = serde_json::from_str(&data).expect("JSON");
    assert_eq!((code, &document["kind"]), (Some(1), &Value::from("ChartComparison")));
    assert_eq!(crate::schema::faults(&document), [""; 0]);
    assert_eq!(document["differences"].as_array().map(Vec::len), Some(2));
    assert_eq!(document["differences"][0]["intended"], false);
}

#[test]
fn chart_compare_absent_deviation_is_stale() {
    // The deviations of the cloud provider are not there when it is compared with itself.
    let cpi = ["cpi", "--version", "1.34.0"];
    let (code, data, talk) = compare(&cpi, &rendered(&cpi));
    assert_eq!(code, Some(1));
    assert_snapshot!("compare_stale", format!("{data}{talk}"));
}

#[test]
fn chart_compare_webhook_deviation_is_intended() {
    let webhook = [
        "csi",
        "--version",
        "3.7.3",
        "--set",
        "webhook.enabled=true",
        "--set",
        "webhook.caBundle=Q0E=",
    ];
    let (code, data, _) = compare(&webhook, &rendered(&webhook).replace("Q0E=", "${CA_BUNDLE}"));
    assert_eq!(code, Some(0));
    assert_snapshot!("compare_intended", data);
}

#[test]
fn chart_compare_unreadable_manifest_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let (list, bad) = (file("list.yaml", "- a\n"), file("bad.yaml", "a: ["));
    for (path, code, says) in [
        (list.as_str(), 4, "document 1 is not a Kubernetes object: it is not a map"),
        (&bad, 4, "line 1"),
        ("/nowhere.yaml", 3, "/nowhere.yaml"),
    ] {
        let (found, data, talk) = seen(vdoctl(&["chart", "compare", "csi", "--version", "3.7.3", path]));
        assert_eq!((found, data.as_str()), (Some(code), ""), "{talk}");
        assert!(talk.contains(says), "{talk}");
    }
}

#[test]
fn chart_compare_without_manifest_exits_2() {
    assert_eq!(seen(vdoctl(&["chart", "compare", "csi", "--version", "3.7.3"])).0, Some(2));
}

#[test]
fn charts_flag_folder_provides_unknown_release() {
    let folder = tempfile::tempdir().expect("a folder");
    let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/vsphere-cpi");
    let target = folder.path().join("vsphere-cpi");
    for part in ["templates", "releases"] {
        std::fs::create_dir_all(target.join(part)).expect("made");
        for entry in std::fs::read_dir(charts.join(part)).expect("a folder") {
            let entry = entry.expect("an entry");
            std::fs::copy(entry.path(), target.join(part).join(entry.file_name())).expect("copied");
        }
    }
    for file in [
        "Chart.yaml",
        "values.yaml",
        "values.schema.json",
        "release.schema.json",
        "deviations.yaml",
    ] {
        std::fs::copy(charts.join(file), target.join(file)).expect("copied");
    }
    let newest = std::fs::read_to_string(charts.join("releases/1.36.yaml")).expect("text");
    std::fs::write(target.join("releases/1.99.yaml"), newest.replace("1.36.0", "1.99.0")).expect("written");
    let place = folder.path().display().to_string();
    let (code, data, talk) = seen(vdoctl(&["chart", "images", "cpi", "--version", "1.99.0", "--charts", &place]));
    assert_eq!(
        (code, data.as_str()),
        (Some(0), "registry.k8s.io/cloud-pv-vsphere/cloud-provider-vsphere:v1.99.0\n"),
        "{talk}"
    );
    let (code, _, talk) = seen(vdoctl(&["chart", "images", "cpi", "--version", "1.98.0", "--charts", &place]));
    assert_eq!(code, Some(4), "{talk}");
    assert!(talk.contains("the chart has no release 1.98.0"), "{talk}");
    let (code, _, talk) = seen(vdoctl(&["chart", "images", "other", "--version", "1.0.0", "--charts", &place]));
    assert_eq!(code, Some(3), "{talk}");
}

#[test]
fn chart_values_invalid_are_reported_with_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &[u8]| std::fs::write(folder.path().join(name), text).expect("written");
    file(
        "site.yaml",
        b"# ours\nlogLevel: production\ncontroller:\n  replicas: 12\n  tolerations:\n  - key: a\n    efect: NoSchedule\nimages:\n  registry: https://registry.example.com/\n",
    );
    file("later.yaml", b"controller: {replcas: 2}\ntopology: null\n");
    let render = |arguments: &[&str]| {
        let mut command = vdoctl(&["chart", "render", "csi", "--version", "3.7.3"]);
        command.args(arguments).current_dir(folder.path());
        seen(command)
    };
    let (code, data, talk) = render(&[
        "-f",
        "site.yaml",
        "-f",
        "later.yaml",
        "--set",
        "featureStates.list-volume=true",
        "--set",
        "controller.env.driver.A=1",
    ]);
    assert_eq!((code, data.as_str()), (Some(4), ""));
    assert_snapshot!("wrong_values", talk);
}

#[test]
fn chart_values_refused_by_chart_are_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let render = |arguments: &[&str]| {
        let mut command = vdoctl(&["chart", "render", "csi", "--version", "3.7.3"]);
        command.args(arguments).current_dir(folder.path());
        seen(command)
    };
    // a refusal of the chart's author has no place in a template to show
    let (code, _, talk) = render(&["--set", "webhook.enabled=true"]);
    assert_eq!(code, Some(4));
    assert_snapshot!("refused_by_the_chart", talk);
}

#[test]
fn chart_values_file_of_wrong_form_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &[u8]| std::fs::write(folder.path().join(name), text).expect("written");
    let render = |arguments: &[&str]| {
        let mut command = vdoctl(&["chart", "render", "csi", "--version", "3.7.3"]);
        command.args(arguments).current_dir(folder.path());
        seen(command)
    };
    file("two.yaml", b"logLevel: DEVELOPMENT\n---\nnode: {}\n");
    file("bytes.yaml", b"logLevel: \xff\xfe\n");
    file("bad.yaml", b"a: 1\nb: [1\n");
    file("same.yaml", b"node: {}\nnode: {}\n");
    file("list.yaml", b"- a\n");
    std::fs::create_dir(folder.path().join("folder")).expect("made");
    let mut text = String::new();
    for (name, expected) in [
        ("two.yaml", 4),
        ("bytes.yaml", 4),
        ("bad.yaml", 4),
        ("same.yaml", 4),
        ("list.yaml", 4),
        ("folder", 4),
        ("nowhere.yaml", 3),
    ] {
        let (code, data, talk) = render(&["-f", name]);
        assert_eq!((code, data.as_str()), (Some(expected), ""), "{talk}");
        text.push_str(&talk);
    }
    assert_snapshot!("unreadable_values", text);
}

/// The chart of a toy driver with some files changed or added; nothing takes a file away.
pub fn toy(folder: &Path, changes: &[(&str, &str)]) {
    let files = [
        (
            "Chart.yaml",
            "apiVersion: v2\nname: toy\ndescription: a toy\nversion: 0.0.0\nappVersion: v0.0.0\nannotations:\n  vdo.vmware.com/engine: minijinja\n  vdo.vmware.com/engine-version: \"1\"\n  vdo.vmware.com/role: other\n  vdo.vmware.com/configuration: none\n",
        ),
        ("values.yaml", "namespace: toys\n"),
        (
            "values.schema.json",
            r#"{"type": "object", "additionalProperties": false, "required": ["namespace"], "properties": {"namespace": {"description": "Where it runs.", "type": "string"}}}"#,
        ),
        (
            "release.schema.json",
            r#"{"type": "object", "additionalProperties": false, "required": ["version", "images", "secure"], "properties": {"version": {"type": "string"}, "images": {"type": "object"}, "secure": {"description": "Whether it may not be root.", "type": "boolean"}}}"#,
        ),
        (
            "templates/toy.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: toy, namespace: {{ values.namespace }}}\nspec:\n  selector: {matchLabels: {app: toy}}\n  template:\n    metadata: {labels: {app: toy}}\n    spec:\n      securityContext: {runAsNonRoot: {{ release.secure }}}\n      containers:\n      - {name: toy, image: {{ image(\"toy\") }}}\n",
        ),
        (
            "releases/1.0.yaml",
            "common:\n  images: {toy: {registry: registry.example.com, repository: toy}}\n  secure: true\nversions:\n  1.0.0: {images: {toy: {tag: v1.0.0}}}\n",
        ),
        (
            "releases/1.1.yaml",
            "versions:\n  1.1.0:\n    images: {toy: {registry: registry.example.com, repository: toy, tag: v1.1.0}}\n    secure: true\n",
        ),
    ];
    for (path, text) in files.iter().chain(changes) {
        let target = folder.join(path);
        std::fs::create_dir_all(target.parent().expect("a folder")).expect("made");
        std::fs::write(target, text).expect("written");
    }
}

#[test]
fn chart_lint_each_mistake_is_reported_once_with_releases() {
    let release = |rest: &str| {
        format!("versions:\n  1.1.0:\n    images: {{toy: {{registry: registry.example.com, repository: toy, tag: v1.1.0}}}}\n{rest}")
    };
    let (typo, text, missing, twice) = (
        release("    secur: true\n    secure: true\n"),
        release("    secure: \"false\"\n"),
        release(""),
        release("    secure: true\n  1.2.0: {}\n"),
    );
    let everywhere = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let glued = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata:\n  x: \"a:{{ values.namespace }}\"\n";
    let unread = r#"{"type": "object", "properties": {"version": {}, "images": {}, "secure": {}, "extra": {"type": "boolean"}}}"#;
    let unread_release = release("    secure: true\n    extra: true\n");
    let mut all = String::new();
    for (label, changes) in [
        ("nothing wrong", &[][..]),
        ("a switch that is misspelt", &[("releases/1.1.yaml", typo.as_str())]),
        ("a switch of another type", &[("releases/1.1.yaml", &text)]),
        ("a switch that is missing", &[("releases/1.1.yaml", &missing)]),
        (
            "a switch that no template reads",
            &[("release.schema.json", unread), ("releases/1.1.yaml", &unread_release)],
        ),
        ("a release file without a minor", &[("releases/next.yaml", "version: next\n")]),
        ("a version of another minor", &[("releases/1.1.yaml", &twice)]),
        (
            "a key that release files have not",
            &[("releases/1.2.yaml", "common: {}\nversion: 1.2.0\n")],
        ),
        (
            "a release file that is not YAML",
            &[("releases/1.2.yaml", "versions:\n  1.2.0: [\n")],
        ),
        (
            "a switch that is misspelt for all",
            &[(
                "releases/1.0.yaml",
                "common:\n  images: {}\n  secrue: true\nversions:\n  1.0.0: {secure: true}\n",
            )],
        ),
        ("the same in all releases", &[("templates/a.yaml", everywhere)]),
        ("a template that is refused", &[("templates/a.yaml", glued)]),
        ("a value that is not there", &[("templates/a.yaml", "x: {{ values.namspace }}\n")]),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        toy(folder.path(), changes);
        let lint = |arguments: &[&str]| {
            let mut command = vdoctl(&["chart", "lint", "."]);
            command.args(arguments).current_dir(folder.path());
            seen(command)
        };
        let (code, data, talk) = lint(&[]);
        assert_eq!((code, talk.as_str()), (Some(i32::from(!changes.is_empty())), ""), "{label}: {data}");
        all.push_str(&format!("{label}\n{data}\n"));
        let (again, data, _) = lint(&["-o", "json"]);
        let document: Value = serde_json::from_str(&data).expect("JSON");
        assert_eq!(crate::schema::faults(&document), [""; 0]);
        assert_eq!(
            (again, &document["kind"], &document["good"]),
            (code, &"ChartLint".into(), &changes.is_empty().into())
        );
        assert_eq!(
            document["findings"].as_array().is_some_and(Vec::is_empty),
            changes.is_empty(),
            "{data}"
        );
    }
    assert_snapshot!("lint", all);
}

#[test]
fn chart_lint_path_without_chart_is_rejected() {
    for (path, code, says) in [("/nowhere", 3, "does not exist"), ("/etc/passwd", 1, "gzip")] {
        let (found, data, talk) = seen(vdoctl(&["chart", "lint", path]));
        assert_eq!(found, Some(code), "{data}{talk}");
        assert!(data.contains(says) || talk.contains(says), "{data}{talk}");
    }
    let empty = tempfile::tempdir().expect("a folder");
    let (code, _, talk) = seen(vdoctl(&["chart", "lint", &empty.path().display().to_string()]));
    assert!(code == Some(3) && talk.contains("contains no chart"), "{talk}");
}

/// A link in the folder of a chart could bring in what is not the chart's, so nothing is read through one.
#[test]
fn chart_folder_with_symlink_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("secret.yaml");
    std::fs::write(&secret, "apiVersion: v1\nkind: Secret\nmetadata: {name: stolen, namespace: a}\n").expect("written");
    for (link, target) in [("templates/linked.yaml", secret.as_path()), ("templates/more", folder.path())] {
        let chart = folder.path().join(link.replace('/', "-")).join("toy");
        toy(&chart, &[]);
        std::os::unix::fs::symlink(target, chart.join(link)).expect("linked");
        let charts = chart.parent().expect("a folder").display().to_string();
        let name = chart.display().to_string();
        for arguments in [
            &["lint", &name][..],
            &["render", "toy", "--version", "1.0.0", "--charts", &charts],
            &["package", "toy", "--version", "1.0.0", "--charts", &charts, "-o", "-"],
        ] {
            let (code, data, talk) = seen(vdoctl(&[&["chart"], arguments].concat()));
            assert_eq!((code, data.as_str()), (Some(4), ""), "{arguments:?}: {talk}");
            assert!(talk.contains(link) && talk.contains("is a link"), "{talk}");
        }
    }
}
