// SPDX-License-Identifier: Apache-2.0
//! `vdoctl chart push` and `pull` with a real registry, and with Helm as judge.

use crate::vdoctl;
use anyhow::{Context as _, Result};
use std::path::Path;
use vdo_oci::registry::{Login, Options, Registry};
use vdo_testbed::{Binaries, LOGIN, Part, RegistryAuth, RegistryKind, RegistryServer, run};

/// What came of a vdoctl with a folder as home.
struct Done {
    code: i32,
    out: String,
    err: String,
}

fn done(home: &Path, arguments: &[&str], stdin: &str) -> Result<Done> {
    let output = vdoctl(arguments).env("HOME", home).write_stdin(stdin).output()?;
    Ok(Done {
        code: output.status.code().context("a code")?,
        out: String::from_utf8(output.stdout)?,
        err: String::from_utf8(output.stderr)?,
    })
}

struct Site {
    server: RegistryServer,
    folder: tempfile::TempDir,
    ca: String,
    helm: std::path::PathBuf,
}

impl Site {
    async fn start() -> Result<Self> {
        let server = RegistryServer::start(RegistryKind::Distribution, RegistryAuth::Basic).await?;
        let binaries = tokio::task::spawn_blocking(|| Binaries::ensure(&[Part::Helm])).await??;
        let site = Self {
            ca: server.ca_file()?.display().to_string(),
            server,
            folder: tempfile::tempdir()?,
            helm: binaries.path(Part::Helm),
        };
        site.helm(&["registry", "login", &site.server.host(), "-u", LOGIN.0, "-p", LOGIN.1])
            .await?;
        Ok(site)
    }

    fn home(&self) -> &Path {
        self.folder.path()
    }

    fn path(&self, name: &str) -> String {
        self.home().join(name).display().to_string()
    }

    fn place(&self, rest: &str) -> String {
        format!("oci://{}/{rest}", self.server.host())
    }

    /// A client that speaks to it without vdoctl.
    fn client(&self) -> Result<Registry> {
        let options = Options {
            access: vdo_oci::web::Access::new([("ca.crt".to_owned(), self.server.ca())]),
            own: true,
            login: Login::Basic {
                user: LOGIN.0.into(),
                password: vdo_api::types::Secret::new(LOGIN.1),
            },
            plain_http: false,
        };
        Ok(Registry::new(&self.server.host(), options)?)
    }

    async fn helm(&self, arguments: &[&str]) -> Result<String> {
        run(&self.helm, self.home(), &[arguments, &["--ca-file", &self.ca]].concat()).await
    }
}

#[tokio::test]
async fn chart_pushed_by_vdoctl_is_read_by_helm() -> Result<()> {
    let site = Site::start().await?;
    let package = site.path("vsphere-csi-3.7.3.tgz");
    let packed = done(site.home(), &["chart", "package", "csi", "--version", "3.7.3", "-o", &package], "")?;
    assert_eq!(packed.code, 0, "{}", packed.err);
    let access = ["--ca-file", &site.ca, "--username", LOGIN.0, "--password-stdin"];
    let place = site.place("charts");
    let pushed = done(site.home(), &[&["chart", "push", &package, &place][..], &access].concat(), LOGIN.1)?;
    assert_eq!(pushed.code, 0, "{}", pushed.err);
    assert!(pushed.out.contains("/charts/vsphere-csi:3.7.3\nDigest: sha256:"), "{}", pushed.out);
    // The same package is the same artifact.
    let again = done(site.home(), &[&["chart", "push", &package, &place][..], &access].concat(), LOGIN.1)?;
    assert_eq!(again.out, pushed.out);

    let name = site.place("charts/vsphere-csi");
    std::fs::create_dir(site.home().join("helm"))?;
    site.helm(&["pull", &name, "--version", "3.7.3", "-d", "helm"]).await?;
    assert_eq!(
        std::fs::read(site.home().join("helm/vsphere-csi-3.7.3.tgz"))?,
        std::fs::read(&package)?
    );
    let shown = site.helm(&["show", "chart", &name, "--version", "3.7.3"]).await?;
    assert!(shown.contains("name: vsphere-csi") && shown.contains("version: 3.7.3"), "{shown}");

    let registry = site.client()?;
    let reference = format!("{}/charts/vsphere-csi:3.7.3", site.server.host()).parse()?;
    let manifest = registry.manifest(&reference).await?.manifest()?;
    for (key, part) in [
        ("org.opencontainers.image.title", "vsphere-csi"),
        ("org.opencontainers.image.created", "2026-07-31T00:00:00Z"),
        ("artifacthub.io/images", "image: registry.k8s.io/csi-vsphere/driver:v3.7.3"),
        ("artifacthub.io/license", "Apache-2.0"),
        ("artifacthub.io/links", "url: https://github.com/kubernetes-sigs/vsphere-csi-driver"),
        ("artifacthub.io/category", "storage"),
    ] {
        assert!(
            manifest.annotations.get(key).is_some_and(|value| value.contains(part)),
            "{key}: {:?}",
            manifest.annotations
        );
    }
    Ok(())
}

#[tokio::test]
async fn chart_pushed_by_helm_is_read_by_vdoctl_with_the_login_of_helm() -> Result<()> {
    let site = Site::start().await?;
    let chart = site.home().join("plain");
    std::fs::create_dir_all(chart.join("templates"))?;
    std::fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: plain\nversion: 0.1.0+build.1\n")?;
    std::fs::write(
        chart.join("templates/map.yaml"),
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: plain\n",
    )?;
    run(&site.helm, site.home(), &["package", "plain"]).await?;
    let package = site.path("plain-0.1.0+build.1.tgz");
    site.helm(&["push", &package, &site.place("charts")]).await?;
    let config = site.path("config/registry/config.json");
    std::fs::create_dir(site.home().join("vdoctl"))?;
    let name = site.place("charts/plain");
    let access = ["--ca-file", &site.ca, "--registry-config", &config];
    let folder = site.path("vdoctl");
    let pulled = done(
        site.home(),
        &[&["chart", "pull", &name, "--version", "0.1.0+build.1", "-d", &folder][..], &access].concat(),
        "",
    )?;
    assert_eq!(pulled.code, 0, "{}", pulled.err);
    let read = std::fs::read(site.home().join("vdoctl/plain-0.1.0+build.1.tgz"))?;
    assert_eq!(read, std::fs::read(&package)?);

    // A chart of Helm that is none of ours is pushed as well, and Helm reads it.
    let copied = site.place("copied");
    let pushed = done(site.home(), &[&["chart", "push", &package, &copied][..], &access].concat(), "")?;
    assert_eq!(pushed.code, 0, "{}", pushed.err);
    assert!(pushed.out.contains("/copied/plain:0.1.0_build.1"), "{}", pushed.out);
    let shown = site
        .helm(&["show", "chart", &site.place("copied/plain"), "--version", "0.1.0+build.1"])
        .await?;
    assert!(shown.contains("version: 0.1.0+build.1"), "{shown}");
    Ok(())
}

#[tokio::test]
async fn chart_that_cannot_be_pushed_or_pulled_is_refused_by_name() -> Result<()> {
    let site = Site::start().await?;
    let (name, place) = (site.place("charts/none"), site.place("charts"));
    let text = site.path("text.tgz");
    std::fs::write(&text, "no package")?;
    let known = ["--username", LOGIN.0, "--password-stdin"];
    let stranger = ["--username", "stranger", "--password-stdin"];
    for (arguments, access, stdin, code, said) in [
        (
            &["chart", "pull", &name, "--version", "1.0.0"][..],
            &known[..],
            LOGIN.1,
            3,
            "HTTP status 404",
        ),
        (
            &["chart", "pull", &name, "--version", "1.0.0"],
            &stranger,
            "s3cret",
            4,
            "HTTP status 401",
        ),
        (&["chart", "pull", &name, "--version", "1.0.0"], &[], "", 4, "HTTP status 401"),
        (
            &["chart", "pull", &name, "--version", "new"],
            &known,
            LOGIN.1,
            2,
            "not a version of a chart",
        ),
        (
            &["chart", "pull", "registry.example/x", "--version", "1.0.0"],
            &[],
            "",
            2,
            "oci://HOST/REPOSITORY",
        ),
        (&["chart", "push", &text, &format!("{place}:1")], &known, LOGIN.1, 2, "has a tag"),
        (&["chart", "push", &text, &place], &known, LOGIN.1, 4, "not a gzipped tar archive"),
        (&["chart", "push", "/nowhere.tgz", &place], &known, LOGIN.1, 3, "cannot be read"),
        (
            &["chart", "pull", &name, "--version", "1.0.0", "--username", "x"],
            &[],
            "",
            2,
            "--password-stdin",
        ),
    ] {
        let ca = ["--ca-file", &site.ca];
        let done = done(site.home(), &[arguments, access, &ca].concat(), stdin)?;
        assert_eq!(done.code, code, "{arguments:?}: {}", done.err);
        assert!(done.err.contains(said) && !done.err.contains("s3cret"), "{said}: {}", done.err);
    }
    Ok(())
}

#[tokio::test]
async fn matrix_is_published_in_a_registry_and_two_publishers_do_not_overwrite_each_other() -> Result<()> {
    let site = Site::start().await?;
    let key = rcgen::KeyPair::generate()?;
    std::fs::write(site.path("key"), key.serialize_pem())?;
    std::fs::write(site.path("key.pub"), key.public_key_pem())?;
    std::fs::create_dir(site.home().join("access"))?;
    for (name, value) in [("username", LOGIN.0), ("password", LOGIN.1), ("ca.crt", &site.server.ca())] {
        std::fs::write(site.home().join("access").join(name), value)?;
    }
    let place = site.place("vdo/matrix:stable");
    let (file, public, folder) = (site.path("key"), site.path("key.pub"), site.path("access"));
    let access = [
        "--ca-file",
        &site.ca,
        "--username",
        LOGIN.0,
        "--password-stdin",
        "--key-file",
        &file,
    ];
    let publish = |verb: &[&str]| done(site.home(), &[verb, &access].concat(), LOGIN.1);

    let early = publish(&["matrix", "withdraw", "csi", "3.7.3", "--reason", "bad", "--to", &place])?;
    assert!(
        early.code == 3 && early.err.contains("vdoctl matrix init"),
        "{} {}",
        early.code,
        early.err
    );
    let begun = publish(&["matrix", "init", &place])?;
    assert_eq!(begun.code, 0, "{}", begun.err);
    let again = publish(&["matrix", "init", &place])?;
    assert_eq!(again.code, 4, "a tag that is there is not overwritten: {}", again.out);
    let withdrawn = publish(&[
        "matrix",
        "withdraw",
        "csi",
        "3.7.3",
        "--reason",
        "loses volumes",
        "--use",
        "3.7.2",
        "--to",
        &place,
    ])?;
    assert_eq!(withdrawn.code, 0, "{}", withdrawn.err);

    // As an operator with the key reads it.
    let read = [
        "--matrix",
        &place,
        "--matrix-keys",
        &public,
        "--matrix-credentials",
        &folder,
        "-o",
        "json",
    ];
    let choice = [&["matrix", "resolve", "--kubernetes", "1.33", "--vcenter", "8.0.3"][..], &read].concat();
    let chosen = done(site.home(), &choice, "")?;
    assert_eq!(chosen.code, 0, "{}", chosen.err);
    let chosen: serde_json::Value = serde_json::from_str(&chosen.out)?;
    let csi = chosen["drivers"]
        .as_array()
        .context("drivers")?
        .iter()
        .find(|driver| driver["name"] == "vsphere-csi");
    assert_eq!(csi.context("csi")?["version"], "3.7.2");

    // Both have read the same matrix; the second to write is refused.
    let registry = site.client()?;
    let reference = place.parse()?;
    let (before, files) = vdo_oci::registry::pull_matrix(&registry, &reference).await?.context("a matrix")?;
    let first = publish(&["matrix", "deprecate", "csi", "3.7.2", "--reason", "old", "--to", &place])?;
    assert_eq!(first.code, 0, "{}", first.err);
    let second = vdo_oci::registry::push_matrix(&registry, &reference, &files, Some(&before)).await;
    assert!(second.is_err(), "the other publisher's work would be lost");
    Ok(())
}
