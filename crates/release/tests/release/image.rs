// SPDX-License-Identifier: Apache-2.0
//! Tests `vdo-release image`: reads the layout with independent code, and checks layer, certificates, SBOM and refused programs.

use crate::program::{SAYS, stand_in};
use crate::{done, judged, refused, skipped, text};
use ring::digest::{SHA256, digest};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

pub const NAME: &str = "example.test/vdo-operator";

/// A layout of stand-ins for two platforms, with a bill of materials for one.
pub struct Built {
    pub folder: TempDir,
    pub layout: PathBuf,
}

pub fn build() -> Built {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for architecture in ["amd64", "arm64"] {
        fs::write(at(architecture), stand_in(architecture)).expect("a program");
    }
    fs::write(at("sbom.json"), r#"{"bomFormat":"CycloneDX"}"#).expect("a file");
    let layout = at("image");
    pack(folder.path(), &layout);
    Built { folder, layout }
}

fn pack(sources: &Path, layout: &Path) -> String {
    let file = |platform: &str, name: &str| format!("{platform}={}", sources.join(name).display());
    // Not in order: the image does not depend on it.
    let programs = [
        file("linux/arm64", "arm64"),
        file("linux/amd64", "amd64"),
        file("linux/amd64", "sbom.json"),
    ];
    let [arm64, amd64, sbom] = programs.each_ref().map(String::as_str);
    let reference = format!("{NAME}:v1");
    done(&[
        "image",
        "--program",
        arm64,
        "--program",
        amd64,
        "--sbom",
        sbom,
        "--output",
        text(layout),
        "--reference",
        &reference,
    ])
}

fn blob(layout: &Path, descriptor: &Value) -> Vec<u8> {
    let hex = descriptor["digest"]
        .as_str()
        .and_then(|digest| digest.strip_prefix("sha256:"))
        .expect("a digest");
    let bytes = fs::read(layout.join("blobs/sha256").join(hex)).expect("a blob");
    assert_eq!(hex::encode(digest(&SHA256, &bytes)), hex, "its digest");
    assert_eq!(descriptor["size"], bytes.len(), "its size");
    bytes
}

fn json(layout: &Path, descriptor: &Value) -> Value {
    serde_json::from_slice(&blob(layout, descriptor)).expect("JSON")
}

/// `index.json`, and the manifests of the platforms by architecture.
fn manifests(layout: &Path) -> (Value, BTreeMap<String, Value>) {
    let top: Value = serde_json::from_slice(&fs::read(layout.join("index.json")).expect("a file")).expect("JSON");
    let index = json(layout, &top["manifests"][0]);
    let all = index["manifests"].as_array().expect("a list").clone();
    let by_name = all
        .into_iter()
        .map(|one| (one["platform"]["architecture"].as_str().expect("text").to_owned(), one));
    (top, by_name.collect())
}

/// Paths, modes and bytes of the one layer, which is unpacked into a folder.
fn unpacked(layout: &Path, manifest: &Value, into: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let config = json(layout, &manifest["config"]);
    let mut tar = Vec::new();
    let packed = blob(layout, &manifest["layers"][0]);
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut tar).expect("gzip");
    assert_eq!(
        config["rootfs"]["diff_ids"][0],
        format!("sha256:{}", hex::encode(digest(&SHA256, &tar)))
    );
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(tar.as_slice()).entries().expect("tar") {
        let mut entry = entry.expect("an entry");
        let header = entry.header();
        assert_eq!(
            (header.uid().ok(), header.gid().ok(), header.mtime().ok()),
            (Some(0), Some(0), Some(1_700_000_000))
        );
        let (path, mode) = (
            entry.path().expect("a path").display().to_string(),
            header.mode().expect("a mode") & 0o7777,
        );
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("bytes");
        if !path.ends_with('/') {
            let place = into.join(&path);
            fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
            fs::write(&place, &bytes).expect("a file");
            fs::set_permissions(&place, fs::Permissions::from_mode(mode)).expect("a mode");
        }
        files.insert(path, (mode, bytes));
    }
    files
}

#[test]
fn image_packed_twice_is_the_same() {
    let Built { folder, layout } = build();
    let again = folder.path().join("again");
    pack(folder.path(), &again);
    let files = |layout: &Path| {
        let mut all = BTreeMap::new();
        for part in ["", "blobs/sha256"] {
            for entry in fs::read_dir(layout.join(part)).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_file() {
                    all.insert(
                        path.strip_prefix(layout).expect("inside").to_owned(),
                        fs::read(&path).expect("bytes"),
                    );
                }
            }
        }
        all
    };
    assert_eq!(files(&layout), files(&again));
    // Into its own place: what was there is replaced, and nothing else appears.
    pack(folder.path(), &again);
    assert_eq!(files(&layout), files(&again));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 5);
}

#[test]
fn image_holds_program_and_certificates_for_a_user_without_rights() {
    let Built { folder, layout } = build();
    let (top, manifests) = manifests(&layout);
    assert_eq!(top["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"], "v1");
    assert_eq!(manifests.keys().collect::<Vec<_>>(), ["amd64", "arm64"]);
    for (architecture, descriptor) in &manifests {
        let manifest = json(&layout, descriptor);
        let config = json(&layout, &manifest["config"]);
        assert_eq!(
            (&config["architecture"], &config["os"]),
            (&architecture.as_str().into(), &"linux".into())
        );
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["config"]["Entrypoint"], serde_json::json!(["/usr/local/bin/vdo-operator"]));
        assert_eq!(config["config"]["Labels"]["org.opencontainers.image.version"], "v1");
        assert_eq!(config["created"], "2023-11-14T22:13:20Z");
        let files = unpacked(&layout, &manifest, &folder.path().join("root"));
        let modes: Vec<(&str, u32)> = files.iter().map(|(path, (mode, _))| (path.as_str(), *mode)).collect();
        let wanted = [
            ("etc/", 0o755),
            ("etc/passwd", 0o644),
            ("etc/ssl/", 0o755),
            ("etc/ssl/certs/", 0o755),
            ("etc/ssl/certs/ca-certificates.crt", 0o644),
            ("usr/", 0o755),
            ("usr/local/", 0o755),
            ("usr/local/bin/", 0o755),
            ("usr/local/bin/vdo-operator", 0o755),
        ];
        assert_eq!(modes, wanted);
        assert_eq!(files["usr/local/bin/vdo-operator"].1, stand_in(architecture));
        let certificates = String::from_utf8(files["etc/ssl/certs/ca-certificates.crt"].1.clone()).expect("text");
        assert!(certificates.matches("-----BEGIN CERTIFICATE-----").count() > 100, "Mozilla's list");
    }
}

#[test]
fn image_sbom_refers_to_the_index() {
    let built = build();
    let (top, _) = manifests(&built.layout);
    let referrer = &top["manifests"][1];
    assert_eq!(referrer["artifactType"], "application/vnd.cyclonedx+json");
    let referrer = json(&built.layout, referrer);
    assert_eq!(referrer["subject"]["digest"], top["manifests"][0]["digest"]);
    assert_eq!(blob(&built.layout, &referrer["config"]), b"{}");
    let sbom = &referrer["layers"][0];
    assert_eq!(
        sbom["annotations"]["org.opencontainers.image.title"],
        "vdo-operator-linux-amd64.cdx.json"
    );
    assert_eq!(json(&built.layout, sbom)["bomFormat"], "CycloneDX");
}

#[test]
fn image_program_starts_from_the_unpacked_layer() {
    const TEST: &str = "image_program_starts_from_the_unpacked_layer";
    let Built { folder, layout } = build();
    let (_, manifests) = manifests(&layout);
    for (architecture, descriptor) in &manifests {
        let into = folder.path().join(architecture.clone() + "-root");
        unpacked(&layout, &json(&layout, descriptor), &into);
        let program = into.join("usr/local/bin/vdo-operator");
        let native = matches!(
            (architecture.as_str(), std::env::consts::ARCH),
            ("amd64", "x86_64") | ("arm64", "aarch64")
        );
        let said = match (native, architecture.as_str()) {
            (true, _) => Some(String::from_utf8(Command::new(&program).output().expect("it starts").stdout).expect("text")),
            (false, "arm64") => judged(TEST, "qemu-aarch64", &[text(&program)]),
            (false, _) => judged(TEST, "qemu-x86_64", &[text(&program)]),
        };
        assert!(said.is_none_or(|said| said == SAYS), "{architecture}");
    }
}

/// The certificates are what openssl reads as such.
#[test]
fn image_certificates_are_read_by_openssl() {
    let Built { folder, layout } = build();
    let (_, manifests) = manifests(&layout);
    let into = folder.path().join("root");
    unpacked(&layout, &json(&layout, &manifests["amd64"]), &into);
    let bundle = into.join("etc/ssl/certs/ca-certificates.crt");
    let args = ["crl2pkcs7", "-nocrl", "-certfile", text(&bundle), "-outform", "DER", "-out"];
    let out = folder.path().join("all.p7b");
    let args = [&args[..], &[text(&out)]].concat();
    let Some(_) = judged("image_certificates_are_read_by_openssl", "openssl", &args) else {
        return;
    };
    let args = ["pkcs7", "-inform", "DER", "-in", text(&out), "-print_certs", "-noout"];
    let names = judged("image_certificates_are_read_by_openssl", "openssl", &args).unwrap_or_default();
    assert!(names.matches("subject=").count() > 100, "{names}");
}

#[test]
fn image_program_that_cannot_start_is_refused_and_nothing_is_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let (program, layout) = (folder.path().join("program"), folder.path().join("image"));
    let attempt = |platform: &str, bytes: &[u8]| {
        fs::write(&program, bytes).expect("a file");
        let argument = format!("{platform}={}", program.display());
        let message = refused(&["image", "--program", &argument, "--output", text(&layout), "--reference", "vdo:v1"]);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "{message}");
        message
    };
    assert!(attempt("linux/arm64", &stand_in("amd64")).contains("a processor other than arm64"));
    assert!(attempt("linux/amd64", b"#!/bin/sh\n").contains("not a program"));
    let mut dynamic = stand_in("amd64");
    dynamic[64] = 3;
    assert!(attempt("linux/amd64", &dynamic).contains("linked dynamically"));
}

#[test]
fn image_folder_with_other_files_is_not_replaced() {
    let Built { folder, .. } = build();
    let place = folder.path().join("mine");
    fs::create_dir(&place).expect("a folder");
    fs::write(place.join("letter"), "dear").expect("a file");
    let program = format!("linux/amd64={}", folder.path().join("amd64").display());
    let message = refused(&["image", "--program", &program, "--output", text(&place), "--reference", "vdo:v1"]);
    assert!(message.contains("not replaced") && place.join("letter").exists(), "{message}");
}

/// What `make image` compares, with stand-ins: buildah builds from the Containerfile, and the layers are equal byte for byte.
#[test]
fn image_layer_is_the_one_that_buildah_builds() {
    const TEST: &str = "image_layer_is_the_one_that_buildah_builds";
    let Built { folder, layout } = build();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let store = ["--root", &at("store"), "--runroot", &at("run"), "--storage-driver", "vfs"].map(str::to_owned);
    let buildah = |args: &[&str]| {
        let output = Command::new("buildah").args(&store).args(args).output()?;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok::<_, std::io::Error>((
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            error,
        ))
    };
    // Not there, or not allowed to: an ordinary user needs ranges of user ids.
    if !buildah(&["from", "--name", "probe", "scratch"]).is_ok_and(|(worked, ..)| worked) {
        return skipped(TEST, "buildah that may build here");
    }
    let (_, manifests) = manifests(&layout);
    for architecture in ["amd64", "arm64"] {
        let platform = format!("linux/{architecture}");
        done(&["context", "--program", &at(architecture), "--output", &at("context")]);
        let file = crate::root().join("deploy/Containerfile").display().to_string();
        let flags = [
            "bud",
            "--isolation",
            "chroot",
            "--no-cache",
            "--layers=false",
            "--timestamp",
            "1700000000",
            "--platform",
        ];
        let (context, image) = (at("context"), format!("localhost/{architecture}"));
        let built = buildah(&[&flags[..], &[&platform, "--tag", &image, "--file", &file, &context]].concat()).expect("it starts");
        assert!(built.0, "{}", built.2);
        let format = "{{range .OCIv1.RootFS.DiffIDs}}{{.}}{{end}} {{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}}";
        let (_, shown, error) = buildah(&["inspect", "--type", "image", "--format", format, &image]).expect("it starts");
        let config = json(&layout, &json(&layout, &manifests[architecture])["config"]);
        let diff_id = config["rootfs"]["diff_ids"][0].as_str().expect("text");
        assert_eq!(shown, format!("{diff_id} 65532:65532 [/usr/local/bin/vdo-operator]"), "{error}");
    }
}
