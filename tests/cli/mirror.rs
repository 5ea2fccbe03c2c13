// SPDX-License-Identifier: Apache-2.0
//! `vdoctl mirror` with real registries; images are made by crane, and crane and oras judge what we write.

mod bundle;
mod digests;
mod hostile;
mod layouts;
mod programs;
mod resume;
mod select;

use crate::publish::folder::Publisher;
use crate::schema::faults_of;
use crate::vdoctl;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::path::Path;
use vdo_testbed::{RegistryAuth, RegistryKind, RegistryServer, TestImages};

/// What came of a vdoctl.
#[derive(Debug)]
struct Done {
    code: i32,
    out: String,
    err: String,
}

impl Done {
    #[track_caller]
    fn good(self) -> Self {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self
    }

    /// The last document of the output.
    fn json(&self) -> Value {
        let last = self.out.lines().last().unwrap_or_default();
        let parsed = serde_json::from_str(last).or_else(|_| serde_json::from_str(&self.out));
        assert!(parsed.is_ok(), "{}{}", self.out, self.err);
        assert_eq!(faults_of(&self.out), [""; 0]);
        parsed.expect("JSON")
    }
}

/// A publisher with a toy driver in three versions, and a registry with its images: one of each version, and one that all share.
struct Site {
    publisher: Publisher,
    source: RegistryServer,
    images: TestImages,
    ca: String,
    home: tempfile::TempDir,
}

const VERSIONS: [&str; 3] = ["1.0.0", "1.0.1", "1.1.0"];

const SIDECAR: &str = "    sidecar: {repository: registry.example/sidecars/sidecar, tag: v1}\n";

const TOY: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: toy, namespace: toy}
spec:
  replicas: 1
  selector: {matchLabels: {app: toy}}
  template:
    metadata: {labels: {app: toy}}
    spec:
      containers:
      - {name: toy, image: {{ release.images.toy.repository ~ ':' ~ release.images.toy.tag }}}
      - {name: sidecar, image: {{ release.images.sidecar.repository ~ ':' ~ release.images.sidecar.tag }}}
";

impl Site {
    async fn start() -> Result<Self> {
        let source = RegistryServer::start(RegistryKind::Olareg, RegistryAuth::None).await?;
        let images = TestImages::of(&source).await?;
        let publisher = Publisher::toy_with(&VERSIONS.map(|version| (version, TOY)), SIDECAR);
        for version in VERSIONS {
            images.make(&format!("src/toy:v{version}"), "first").await?;
        }
        images.make("src/sidecars/sidecar:v1", "first").await?;
        Ok(Self {
            publisher,
            ca: source.ca_file()?.display().to_string(),
            source,
            images,
            home: tempfile::tempdir()?,
        })
    }

    fn path(&self, name: &str) -> String {
        self.home.path().join(name).display().to_string()
    }

    fn run(&self, arguments: &[&str]) -> Result<Done> {
        done(self.home.path(), arguments)
    }

    /// The flags of a pull from here.
    fn flags(&self) -> Vec<String> {
        let flags = [
            "--matrix",
            &self.publisher.matrix(),
            "--matrix-keys",
            &self.publisher.public(),
            "--image",
            "none",
            "--ca-file",
            &self.ca,
            "--from",
            &format!("registry.example={}/src", self.source.host()),
        ];
        flags.map(str::to_owned).to_vec()
    }

    fn pull(&self, bundle: &str, more: &[&str]) -> Result<Done> {
        let flags = self.flags();
        let all: Vec<&str> = ["mirror", "pull", bundle]
            .into_iter()
            .chain(more.iter().copied())
            .chain(flags.iter().map(String::as_str))
            .collect();
        self.run(&all)
    }
}

fn done(home: &Path, arguments: &[&str]) -> Result<Done> {
    let output = vdoctl(arguments).env("HOME", home).output()?;
    Ok(Done {
        code: output.status.code().context("a code")?,
        out: String::from_utf8(output.stdout)?,
        err: String::from_utf8(output.stderr)?,
    })
}

/// A registry that wants a login, and the configuration of Docker that has it.
struct Target {
    server: RegistryServer,
    images: TestImages,
    ca: String,
    login: String,
}

impl Target {
    async fn start() -> Result<Self> {
        Self::at(RegistryServer::start(RegistryKind::Distribution, RegistryAuth::Basic).await?).await
    }

    async fn at(server: RegistryServer) -> Result<Self> {
        let images = TestImages::of(&server).await?;
        Ok(Self {
            ca: server.ca_file()?.display().to_string(),
            login: images.login().display().to_string(),
            server,
            images,
        })
    }

    fn prefix(&self) -> String {
        format!("oci://{}/site/vsphere", self.server.host())
    }

    fn flags(&self) -> [&str; 4] {
        ["--ca-file", &self.ca, "--registry-config", &self.login]
    }
}

#[tokio::test]
async fn mirror_pulled_verified_and_pushed_has_every_image_under_its_digest() -> Result<()> {
    let site = Site::start().await?;
    let target = Target::start().await?;
    let bundle = site.path("the bundle");
    let pulled = site
        .pull(&bundle, &["--kubernetes", "1.34", "--vcenter", "8.0", "-o", "json"])?
        .good();
    let json = pulled.json();
    assert_eq!(json["versions"], serde_json::json!({"toy": VERSIONS}), "{json}");
    assert_eq!(json["images"].as_array().map(Vec::len), Some(4));
    let verified = site
        .run(&["mirror", "verify", &bundle, "--matrix-keys", &site.publisher.public()])?
        .good();
    assert!(
        verified.out.contains("3 versions, 4 images") && verified.out.contains("complete") && verified.out.contains("is signed by"),
        "{}",
        verified.out
    );

    let (prefix, key) = (target.prefix(), site.publisher.public());
    let push = |more: &[&str]| site.run(&[&["mirror", "push", &bundle, &prefix][..], &target.flags(), more].concat());
    let would = push(&["--dry-run", "-o", "json"])?.good().json();
    assert_eq!((&would["images"], &would["known"]), (&serde_json::json!(5), &serde_json::json!(0)));
    assert!(
        target.images.digest("site/vsphere/toy:v1.0.0").await.is_err(),
        "a dry run has written"
    );
    let pushed = push(&[])?.good();
    let matrix = format!("--matrix {}/vdo/matrix:stable", target.prefix());
    assert!(pushed.out.contains(&matrix), "{}", pushed.out);
    for name in ["toy:v1.0.0", "toy:v1.0.1", "toy:v1.1.0", "sidecars/sidecar:v1"] {
        let theirs = site.images.digest(&format!("src/{name}")).await?;
        assert_eq!(target.images.digest(&format!("site/vsphere/{name}")).await?, theirs, "{name}");
        let at = format!("{}/site/vsphere/{name}", target.server.host());
        target.images.crane(&["validate", "--remote", &at]).await?;
    }
    // What is there is not sent again.
    let again = push(&["-o", "json"])?.good().json();
    assert_eq!(
        (&again["known"], &again["bytes"]),
        (&serde_json::json!(5), &serde_json::json!(0)),
        "{again}"
    );

    let flags = target.flags();
    let verify = [&["mirror", "verify", &prefix, "--matrix-keys", &key][..], &flags].concat();
    assert!(site.run(&verify)?.good().out.contains("3 versions, 4 images: complete"));
    // The registry loses a blob: the one version that needs it is named.
    let lost = target
        .images
        .crane(&["manifest", &format!("{}/site/vsphere/toy:v1.0.1", target.server.host())])
        .await?;
    let lost: Value = serde_json::from_str(&lost)?;
    let part = lost["manifests"][0]["digest"]
        .as_str()
        .context("a digest")?
        .trim_start_matches("sha256:")
        .to_owned();
    std::fs::remove_file(target.server.blob("site/vsphere/toy", &part)?)?;
    let verified = site.run(&[&verify[..], &["-o", "json"]].concat())?;
    assert_eq!(verified.code, 1, "{}", verified.err);
    let faults = verified.json()["faults"].clone();
    assert_eq!(faults.as_array().map(Vec::len), Some(1), "{faults}");
    assert_eq!(faults[0]["versions"], serde_json::json!(["toy 1.0.1"]), "{faults}");
    Ok(())
}

#[tokio::test]
async fn mirror_copied_from_a_mirror_takes_everything_from_there() -> Result<()> {
    let site = Site::start().await?;
    let target = Target::start().await?;
    let both = site.path("both.pem");
    std::fs::write(&both, format!("{}{}", site.source.ca(), target.server.ca()))?;
    let flags = site.flags();
    let copy = |source: &str, to: &str, more: &[&str]| {
        let fixed = [
            "--ca-file",
            &both,
            "--registry-config",
            &target.login,
            "--image",
            "none",
            "--all",
            "-o",
            "json",
        ];
        site.run(&[&["mirror", "copy", source, to][..], &fixed, more].concat())
    };
    let from = flags.last().context("a substitute")?;
    archive(&site.publisher.matrix(), b"an archive of vdoctl")?;
    let first = copy(&site.publisher.matrix(), &target.prefix(), &["--from", from])?.good().json();
    assert_eq!(first["images"], 5);
    // The source is gone: what comes now comes from the mirror.
    let Site { source, .. } = &site;
    assert!(!source.log().is_empty());
    let mirror = format!("{}/vdo/matrix:stable", target.prefix());
    let credentials = site.path("credentials");
    std::fs::create_dir(&credentials)?;
    std::fs::write(Path::new(&credentials).join("ca.crt"), target.server.ca())?;
    std::fs::copy(&target.login, Path::new(&credentials).join("config.json"))?;
    let second = format!("oci://{}/second", target.server.host());
    let pulls = target.server.log().lines().count();
    // A tag that moves in the mirror changes nothing: what was pulled has its digest.
    target.images.make("site/vsphere/toy:v1.0.0", "another image").await?;
    copy(&mirror, &second, &["--matrix-credentials", &credentials])?.good();
    assert!(target.server.log().lines().count() > pulls);
    for name in ["toy:v1.0.0", "sidecars/sidecar:v1"] {
        assert_eq!(
            target.images.digest(&format!("second/{name}")).await?,
            site.images.digest(&format!("src/{name}")).await?
        );
    }
    let verify = [&["mirror", "verify", &second][..], &target.flags()].concat();
    assert!(site.run(&verify)?.good().out.contains("complete"));
    // Archives of vdoctl go from one to the next, with their sums.
    let matrix = format!("{}/second/vdo/matrix:stable", target.server.host());
    let manifest = target.images.crane(&["manifest", &matrix]).await?;
    for file in ["vdoctl-linux-amd64.tar.gz", "SHA256SUMS"] {
        assert!(manifest.contains(&format!("\"{file}\"")), "{file}: {manifest}");
    }
    Ok(())
}

/// Puts an archive of vdoctl beside a matrix.
fn archive(matrix: &str, bytes: &[u8]) -> Result<()> {
    std::fs::write(Path::new(matrix).join("vdoctl-linux-amd64.tar.gz"), bytes)?;
    let sum = vdo_api::types::Digest::of(bytes).hex();
    Ok(std::fs::write(
        Path::new(matrix).join("SHA256SUMS"),
        format!("{sum}  vdoctl-linux-amd64.tar.gz\n"),
    )?)
}

#[tokio::test]
async fn mirror_copied_from_a_mirror_of_one_platform_says_that_it_has_no_other() -> Result<()> {
    let site = Site::start().await?;
    let target = RegistryServer::start(RegistryKind::Olareg, RegistryAuth::None).await?;
    let both = site.path("both.pem");
    std::fs::write(&both, format!("{}{}", site.source.ca(), target.ca()))?;
    let credentials = site.path("credentials");
    std::fs::create_dir(&credentials)?;
    std::fs::write(Path::new(&credentials).join("ca.crt"), target.ca())?;
    let flags = site.flags();
    let copy = |source: &str, to: &str, more: &[&str]| {
        let fixed = ["--ca-file", &both, "--image", "none", "--driver", "toy=1.0.0"];
        site.run(&[&["mirror", "copy", source, to][..], &fixed, more].concat())
    };
    let place = |name: &str| {
        (
            format!("oci://{}/{name}", target.host()),
            format!("oci://{}/{name}/vdo/matrix:stable", target.host()),
        )
    };
    let [(first, first_matrix), (second, second_matrix), (third, _)] = ["first", "second", "third"].map(place);
    let from = flags.last().context("a substitute")?;
    copy(&site.publisher.matrix(), &first, &["--from", from, "--platform", "linux/arm64"])?.good();
    copy(&first_matrix, &second, &["--matrix-credentials", &credentials])?.good();
    let refused = copy(
        &second_matrix,
        &third,
        &["--matrix-credentials", &credentials, "--platform", "linux/amd64"],
    )?;
    assert_eq!(refused.code, 2, "{}", refused.out);
    assert!(
        refused.err.contains("has images for linux/arm64, but not for linux/amd64"),
        "{}",
        refused.err
    );
    let verified = site.run(&["mirror", "verify", &second, "--ca-file", &both])?.good();
    assert!(verified.out.contains("1 version, 2 images: complete"), "{}", verified.out);
    Ok(())
}
