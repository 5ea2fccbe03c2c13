// SPDX-License-Identifier: Apache-2.0
//! Tests the image layout and the image archive with skopeo, oras and crane, where these are installed.

use crate::image::{Built, NAME, build};
use crate::{done, judged, text};
use serde_json::Value;
use std::fs;
use std::process::Command;

#[test]
fn layout_is_copied_by_skopeo_with_every_platform() {
    const TEST: &str = "layout_is_copied_by_skopeo_with_every_platform";
    let Built { folder, layout } = build();
    let (from, to) = (format!("oci:{}:v1", text(&layout)), format!("dir:{}/copy", text(folder.path())));
    let Some(_) = judged(
        TEST,
        "skopeo",
        &["--insecure-policy", "copy", "--quiet", "--multi-arch", "all", &from, &to],
    ) else {
        return;
    };
    for architecture in ["amd64", "arm64"] {
        let shown = judged(TEST, "skopeo", &["--override-arch", architecture, "inspect", &from]).unwrap_or_default();
        let shown: Value = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(
            (&shown["Architecture"], &shown["Created"]),
            (&architecture.into(), &"2023-11-14T22:13:20Z".into())
        );
    }
}

#[test]
fn layout_with_a_flipped_bit_is_rejected_by_skopeo() {
    const TEST: &str = "layout_with_a_flipped_bit_is_rejected_by_skopeo";
    let Built { folder, layout } = build();
    let Some(_) = judged(TEST, "skopeo", &["--version"]) else { return };
    // The largest blobs are the layers; each has a changed bit.
    for entry in fs::read_dir(layout.join("blobs/sha256")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let mut bytes = fs::read(&path).expect("bytes");
        if bytes.len() > 50_000 {
            bytes[25_000] ^= 1;
            fs::write(&path, bytes).expect("a file");
        }
    }
    let (from, to) = (format!("oci:{}:v1", text(&layout)), format!("dir:{}/copy", text(folder.path())));
    let output = Command::new("skopeo")
        .args(["--insecure-policy", "copy", "--multi-arch", "all", &from, &to])
        .output();
    assert!(!output.expect("it starts").status.success());
}

#[test]
fn layout_is_resolved_by_oras_with_its_sbom() {
    const TEST: &str = "layout_is_resolved_by_oras_with_its_sbom";
    let Built { folder, layout } = build();
    let at = format!("{}:v1", text(&layout));
    let args = ["discover", "--oci-layout", "--format", "json", &at];
    let Some(found) = judged(TEST, "oras", &args) else { return };
    let found: Value = serde_json::from_str(&found).expect("JSON");
    let list = found["manifests"]
        .as_array()
        .or_else(|| found["referrers"].as_array())
        .expect("a list");
    assert_eq!(
        (list.len(), &list[0]["artifactType"]),
        (1, &"application/vnd.cyclonedx+json".into())
    );
    let copy = format!("{}/copy:v1", text(folder.path()));
    judged(
        TEST,
        "oras",
        &["copy", "--recursive", "--from-oci-layout", "--to-oci-layout", &at, &copy],
    );
    // Referrers come along with the image that they are about.
    let names = |folder: &std::path::Path| {
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&layout.join("blobs/sha256")), names(&folder.path().join("copy/blobs/sha256")));
}

#[test]
fn layout_written_as_an_archive_is_validated_by_crane() {
    const TEST: &str = "layout_written_as_an_archive_is_validated_by_crane";
    let Built { folder, layout } = build();
    let Some(_) = judged(TEST, "crane", &["version"]) else { return };
    // Without a registry crane validates archives of one image; skopeo writes it.
    let tar = format!("{}/image.tar", text(folder.path()));
    let (from, to) = (format!("oci:{}:v1", text(&layout)), format!("docker-archive:{tar}:{NAME}:v1"));
    let Some(_) = judged(TEST, "skopeo", &["--insecure-policy", "copy", "--quiet", &from, &to]) else {
        return;
    };
    judged(TEST, "crane", &["validate", "--tarball", &tar]);
}

#[test]
fn archive_of_one_platform_is_read_as_dockers_and_as_ocis() {
    const TEST: &str = "archive_of_one_platform_is_read_as_dockers_and_as_ocis";
    let Built { folder, layout } = build();
    let tar = format!("{}/image.tar", text(folder.path()));
    let printed = done(&[
        "image-archive",
        "--layout",
        text(&layout),
        "--platform",
        "linux/arm64",
        "--name",
        "localhost/vdo-operator",
        "--output",
        &tar,
    ]);
    let name = printed.lines().last().expect("its name");
    let tag = name.strip_prefix("localhost/vdo-operator:").expect("its tag");
    let entries = |path: &str| {
        let file = fs::File::open(path).expect("an archive");
        let mut files = std::collections::BTreeMap::new();
        for entry in tar::Archive::new(file).entries().expect("tar") {
            let mut entry = entry.expect("an entry");
            let path = entry.path().expect("a path").display().to_string();
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut bytes).expect("bytes");
            files.insert(path, bytes);
        }
        files
    };
    let files = entries(&tar);
    let docker: Value = serde_json::from_slice(&files["manifest.json"]).expect("JSON");
    let config = docker[0]["Config"].as_str().expect("a path");
    let config: Value = serde_json::from_slice(&files[config]).expect("JSON");
    assert_eq!(
        (&docker[0]["RepoTags"][0], &config["architecture"]),
        (&name.into(), &"arm64".into())
    );
    let index: Value = serde_json::from_slice(&files["index.json"]).expect("JSON");
    assert_eq!(index["manifests"][0]["annotations"]["io.containerd.image.name"], name);
    // Unpacked here: skopeo before 1.14 gives each file of an `oci-archive` its owner, which only root may.
    let unpacked = folder.path().join("unpacked");
    let file = fs::File::open(&tar).expect("an archive");
    tar::Archive::new(file).unpack(&unpacked).expect("tar");
    for from in [format!("docker-archive:{tar}"), format!("oci:{}:{tag}", text(&unpacked))] {
        let Some(shown) = judged(TEST, "skopeo", &["--override-arch", "arm64", "inspect", &from]) else {
            return;
        };
        let shown: Value = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(shown["Architecture"], "arm64", "{from}");
        let copy = format!("dir:{}/copy", text(folder.path()));
        judged(
            TEST,
            "skopeo",
            &["--insecure-policy", "--override-arch", "arm64", "copy", "--quiet", &from, &copy],
        );
    }
    if judged(TEST, "crane", &["version"]).is_some() {
        judged(TEST, "crane", &["validate", "--tarball", &tar]);
    }
}
