//! The layout, read by container tools where they are installed.

use crate::image::{Built, NAME, build};
use crate::{judged, text};
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
