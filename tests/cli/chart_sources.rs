// SPDX-License-Identifier: Apache-2.0
//! Verbs that write chart sources: `chart add-release` and `chart import`.

use super::vdoctl;
use std::fs;
use std::path::Path;

/// Exit code, stdout and stderr.
fn seen(arguments: &[&str], folder: &Path) -> (Option<i32>, String, String) {
    let output = vdoctl(arguments).current_dir(folder).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        if entry.path().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
        }
    }
}

/// Every file below a folder with its text.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push((path.display().to_string(), fs::read_to_string(&path).expect("text")));
        }
    }
    all.sort();
    all
}

/// A publisher without a clone goes on from what the binary was made from.
#[test]
fn chart_sources_are_what_a_publisher_goes_on_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let (root, place) = (Path::new(env!("CARGO_MANIFEST_DIR")), folder.path());
    let (code, shown, talk) = seen(&["chart", "sources", "own"], place);
    assert_eq!(code, Some(0), "{talk}");
    assert!(
        shown.contains("the charts of antrea and snapshot-controller and vsphere-cpi and vsphere-csi"),
        "{shown}"
    );
    for file in [
        "charts/vsphere-csi/templates/node.yaml",
        "charts/vsphere-cpi/deviations.yaml",
        "matrix-index/facts.yaml",
        "matrix-index/index.yaml",
    ] {
        assert_eq!(
            fs::read(place.join("own").join(file)).ok(),
            fs::read(root.join(file)).ok(),
            "{file}"
        );
    }
    let own = place.join("own");
    let (code, manifest, talk) = seen(&["chart", "render", "cpi", "--version", "1.37.0", "--charts", "charts"], &own);
    assert_eq!(code, Some(0), "{talk}");
    fs::write(own.join("new.yaml"), manifest.replace("1.37.0", "1.37.1")).expect("written");
    let add = ["chart", "add-release", "cpi", "1.37.1", "new.yaml", "--date", "2026-12-01"];
    let (code, shown, talk) = seen(&add, &own);
    assert!(
        shown.contains("images.manager.tag: \"v1.37.0\" -> \"v1.37.1\""),
        "{code:?} {shown}{talk}"
    );
    let (code, _, talk) = seen(&["chart", "sources", "own"], place);
    assert!(code == Some(4) && talk.contains("not an empty folder"), "{talk}");
}

#[test]
fn chart_add_release_writes_entry_and_facts_or_shows_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let (root, place) = (Path::new(env!("CARGO_MANIFEST_DIR")), folder.path());
    copy(&root.join("charts/vsphere-cpi"), &place.join("charts/vsphere-cpi"));
    copy(&root.join("matrix-index"), &place.join("matrix-index"));
    let (code, manifest, talk) = seen(&["chart", "render", "cpi", "--version", "1.36.0"], place);
    assert_eq!(code, Some(0), "{talk}");
    let manifest = manifest.replace("1.36.0", "1.36.1").replace("--v=2", "--v=2\n        - --new");
    fs::write(place.join("new.yaml"), &manifest).expect("written");

    let before = files(place);
    let add = ["chart", "add-release", "cpi", "1.36.1", "new.yaml", "--date", "2026-09-01"];
    let (code, shown, talk) = seen(&[&add[..], &["--dry-run"]].concat(), place);
    assert_eq!((code, files(place)), (Some(1), before.clone()), "{talk}");
    assert!(shown.contains("+++ charts/vsphere-cpi/releases/1.36.yaml"), "{shown}");
    assert!(shown.contains("\n+      manager: {tag: v1.36.1}\n"), "{shown}");
    assert!(shown.contains("\n+    - versions: [\"1.36.1\", \"1.36.0\"]\n"), "{shown}");
    assert!(
        shown.contains("DIFFERENT: DaemonSet kube-system/vsphere-cloud-controller-manager /spec/template/spec/containers/0/args changed"),
        "{shown}"
    );
    assert!(shown.contains("- 4 differences above: change a template"), "{shown}");

    let (code, _, talk) = seen(&add, place);
    assert_eq!(code, Some(1), "{talk}");
    assert_eq!(talk, "wrote matrix-index/facts.yaml\nwrote charts/vsphere-cpi/releases/1.36.yaml\n");
    let after = files(place);
    assert_eq!(after.len(), before.len(), "nothing is left beside the files");
    assert_eq!(after.iter().zip(&before).filter(|(after, before)| after != before).count(), 2);
    let image = seen(&["chart", "images", "cpi", "--version", "1.36.1", "--charts", "charts"], place);
    assert_eq!(
        image.1, "registry.k8s.io/cloud-pv-vsphere/cloud-provider-vsphere:v1.36.1\n",
        "{}",
        image.2
    );
    let (code, _, talk) = seen(&["chart", "lint", "charts/vsphere-cpi"], place);
    assert_eq!(code, Some(0), "{talk}");

    for (arguments, exit, says) in [
        (&add[..], 4, "already lists 1.36.1"),
        (
            &["chart", "add-release", "cpi", "1.36.2", "nowhere.yaml"],
            3,
            "nowhere.yaml does not exist",
        ),
        (
            &["chart", "add-release", "cpi", "1.36.2", "new.yaml", "--from", "1.0.0"],
            4,
            "has no release 1.0.0",
        ),
        (
            &["chart", "add-release", "cpi", "1.36.2", "new.yaml", "--date", "soon"],
            2,
            "--date",
        ),
        (
            &["chart", "add-release", "other", "1.36.2", "new.yaml"],
            3,
            "charts/other does not exist",
        ),
        (
            &["chart", "add-release", "cpi", "1.36.2", "new.yaml", "--facts", "none.yaml"],
            3,
            "none.yaml does not exist",
        ),
    ] {
        let (code, _, talk) = seen(arguments, place);
        assert_eq!(code, Some(exit), "{arguments:?}: {talk}");
        assert!(talk.contains(says), "{arguments:?}: {talk}");
    }
    assert_eq!(files(place), after);
}

#[test]
fn chart_import_writes_a_whole_chart_that_is_found_by_its_version() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path();
    let pod = |version: &str, name: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: toys}}, spec: {{containers: [{{name: c, image: \"example.com/c:{version}\"}}]}}}}"
        )
    };
    let write = |file: &str, text: String| fs::write(place.join(file), text).expect("written");
    write("one.yaml", format!("apiVersion: v1\nkind: List\nitems:\n- {}\n", pod("v1", "a")));
    write("two.yaml", pod("v2", "a"));
    write("other.yaml", format!("{}\n---\n{}\n", pod("v3", "a"), pod("v3", "b")));
    write("broken.yaml", "kind: [".to_owned());
    write("latest.yaml", pod("latest", "a"));
    let import = |version: &str, files: &[&str]| {
        let all = [
            &["chart", "import", "--name", "toy", "--role", "other", "--version", version],
            files,
        ]
        .concat();
        seen(&all, place)
    };
    let (code, text, talk) = import("1.0.0", &["one.yaml"]);
    assert_eq!((code, talk.as_str()), (Some(0), "wrote charts/toy\n"), "{text}");
    assert_eq!(
        text,
        "toy 1.0.0: 1 object\n- the value namespace is toys, the namespace of most objects\n"
    );
    for (version, files, says) in [
        ("1.0.0", &["one.yaml"][..], "charts/toy has this release already\n"),
        (
            "1.0.1",
            &["two.yaml"],
            "wrote charts/toy/releases/1.0.yaml: this release has the same templates as the existing releases\n",
        ),
        (
            "1.1.0",
            &["other.yaml"],
            "wrote charts/toy-1.1.0 as a separate chart, because the existing releases have other templates\n",
        ),
    ] {
        let (code, _, talk) = import(version, files);
        assert_eq!((code, talk.as_str()), (Some(0), says), "{version}");
    }
    for (version, file, image) in [
        ("1.0.0", "one.yaml", "v1"),
        ("1.0.1", "two.yaml", "v2"),
        ("1.1.0", "other.yaml", "v3"),
    ] {
        let named = ["toy", "--version", version, "--charts", "charts"];
        let (_, images, talk) = seen(&[&["chart", "images"], &named[..]].concat(), place);
        assert_eq!(images, format!("example.com/c:{image}\n"), "{talk}");
        let (code, shown, talk) = seen(&[&["chart", "compare"], &named[..], &[file]].concat(), place);
        assert_eq!((code, shown.as_str()), (Some(0), ""), "{talk}");
    }
    let before = files(&place.join("charts"));
    for (version, given, exit, says) in [
        ("1.1.0", &["one.yaml"][..], 4, "already lists 1.1.0"),
        ("1.0.1", &["one.yaml"], 4, "already lists 1.0.1"),
        ("1.2.0", &["broken.yaml"], 4, "the manifest broken.yaml: line 1"),
        (
            "1.2.0",
            &["one.yaml", "two.yaml"],
            4,
            "Pod toys/a is defined twice: in one.yaml and in two.yaml",
        ),
        ("1.2.0", &["none.yaml"], 3, "none.yaml does not exist"),
        ("1.2.0", &["one.yaml", "--image", "d=x:1"], 4, "they have c"),
        ("1.2.0", &["one.yaml", "--image", "x"], 2, "NAME=REFERENCE"),
        ("next", &["one.yaml"], 2, "driver version"),
    ] {
        let (code, _, talk) = import(version, given);
        assert_eq!(code, Some(exit), "{given:?}: {talk}");
        assert!(talk.contains(says), "{given:?}: {talk}");
    }
    assert_eq!(files(&place.join("charts")), before);
    let (code, text, _) = seen(
        &[
            "chart",
            "import",
            "--name",
            "open",
            "--role",
            "other",
            "--version",
            "1.0.0",
            "latest.yaml",
        ],
        place,
    );
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("- name a version with --image NAME=REFERENCE for c\n"), "{text}");
    assert_eq!(seen(&["chart", "lint", "charts/open"], place).0, Some(1));
}
