// SPDX-License-Identifier: Apache-2.0
//! What `vdo-release publish` puts into a registry: once, by one publisher, and then it is all that a site needs.

use super::{Deploy, err, operate, out};
use crate::common::image::layout;
use crate::common::{Bed, NS};
use crate::fixture::BARE;
use crate::matrix_source::Publisher;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use vdo_oci::layout::Layout;
use vdo_oci::oci::{Index, Manifest, media};
use vdo_source::signature::PublicKeys;
use vdo_testbed::{Helm, LOGIN, RegistryAuth, RegistryKind, RegistryServer, oras, run};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The image, the bundle, the catalog, the chart, the matrix twice, the files.
const ITEMS: usize = 7;

/// A registry, and what a publisher has built for it.
struct Site {
    server: RegistryServer,
    folder: tempfile::TempDir,
    prefix: String,
    key: Publisher,
}

impl Site {
    async fn start(kind: RegistryKind) -> Result<Self> {
        let site = Self::without_files(kind).await?;
        site.build()?;
        Ok(site)
    }

    /// A registry, a key and a login for it; nothing is built.
    async fn without_files(kind: RegistryKind) -> Result<Self> {
        let auth = match kind {
            RegistryKind::Olareg => RegistryAuth::None,
            RegistryKind::Distribution => RegistryAuth::Basic,
        };
        let server = RegistryServer::start(kind, auth).await?;
        let site = Self {
            prefix: format!("{}/site", server.host()),
            folder: tempfile::tempdir()?,
            key: Publisher::new()?,
            server,
        };
        let login = json!({"auths": {site.server.host(): {"username": LOGIN.0, "password": LOGIN.1}}});
        std::fs::create_dir(site.file("credentials"))?;
        for (name, text) in [
            ("key.pem", site.key.private().to_owned()),
            ("keys.pem", site.key.public()),
            ("credentials/ca.crt", site.server.ca()),
            ("credentials/.dockerconfigjson", login.to_string()),
        ] {
            std::fs::write(site.file(name), text)?;
            std::fs::set_permissions(site.file(name), std::fs::Permissions::from_mode(0o600))?;
        }
        Ok(site)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn release(&self, words: &str) -> Result<Command> {
        let mut command = self.command_of(&vdo_testbed::vdo_release()?);
        command
            .args(
                words
                    .split_whitespace()
                    .map(|word| word.replace("AT/", &format!("{}/", self.folder.path().display()))),
            )
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("SOURCE_DATE_EPOCH", "1700000000");
        Ok(command)
    }

    /// A program that finds the key, and the login for the registry.
    fn command_of(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("VDO_SIGNING_KEY", self.file("key.pem"))
            .env("VDO_REGISTRY_CA_FILE", self.file("credentials/ca.crt"))
            .env("VDO_REGISTRY_CONFIG", self.file("credentials/.dockerconfigjson"));
        command
    }

    /// What oras, which shares nothing with the publisher, says to this about a name below the registry.
    async fn oras(&self, words: &[&str], name: &str) -> Result<String> {
        std::fs::copy(self.file("credentials/.dockerconfigjson"), self.file("config.json"))?;
        let (ca, at) = (
            self.file("credentials/ca.crt").display().to_string(),
            format!("{}/vdo-project/{name}:v{VERSION}", self.prefix),
        );
        run(&oras().await?, self.folder.path(), &[words, &["--ca-file", &ca, &at]].concat()).await
    }

    fn done(&self, words: &str) -> Result<()> {
        let output = self.release(words)?.output().context("vdo-release")?;
        ensure!(output.status.success(), "{words}: {}", err(&output));
        Ok(())
    }

    /// What `make release` and `make matrix` build, but for the programs of other processors.
    fn build(&self) -> Result<()> {
        let copied = Command::new("cp").arg("-R").arg(layout()?).arg(self.file("image")).status()?;
        ensure!(copied.success(), "the image is not copied");
        let image = Layout::open(&self.file("image"))?;
        let root = image.index()?.manifests.into_iter().next().context("an image")?;
        let bill = image.write(media::CYCLONEDX, br#"{"bomFormat":"CycloneDX"}"#)?;
        image.write(media::EMPTY, media::EMPTY_JSON)?;
        let bill = image.write_json(media::MANIFEST, &Manifest::referrer(media::CYCLONEDX, bill, root.clone()))?;
        image.set_index(&Index::new(vec![root.clone(), bill]))?;
        let name = format!("{}/vdo-project/vdo-operator", self.prefix);
        std::fs::create_dir(self.file("release"))?;
        self.done(&format!(
            "install-yaml --image {name}:v{VERSION}@{} --output AT/release/install.yaml",
            root.digest
        ))?;
        self.done(&format!(
            "chart --source deploy/chart --version {VERSION} --image {name} --output AT/release"
        ))?;
        let archive = format!("AT/release/vdoctl-v{VERSION}-linux-amd64.tar.gz");
        std::fs::write(self.file(archive.trim_start_matches("AT/")), "vdoctl")?;
        self.done(&format!(
            "krew --version v{VERSION} --base https://example.com --archive linux/amd64={archive} --output AT/release/vdo.yaml"
        ))?;
        std::fs::write(self.file("release/NOTES.md"), "What is new.\n")?;
        self.sign()?;
        self.done(&format!("bundle --image {name}@{} --output AT/bundle", root.digest))?;
        self.done(&format!(
            "bundle-image --bundle AT/bundle --output AT/bundle-image --reference {name}:v{VERSION}"
        ))?;
        let bundle = format!("{}/vdo-project/vdo-bundle:v{VERSION}", self.prefix);
        self.done(&format!(
            "catalog --bundle {bundle}=AT/bundle --output AT/catalog --image AT/catalog-image --reference {}/vdo-project/vdo-catalog:v{VERSION}",
            self.prefix
        ))
    }

    /// Signs once more: each signature is another one.
    fn sign(&self) -> Result<()> {
        self.done("sums AT/release")?;
        self.done("sign AT/release/SHA256SUMS")?;
        let _ = std::fs::remove_dir_all(self.file("matrix"));
        self.done("matrix --output AT/matrix")
    }

    fn command(&self, more: &str) -> Result<Command> {
        self.release(&format!(
            "publish --registry {} --version {VERSION} --image AT/image --bundle AT/bundle-image --catalog AT/catalog-image \
             --release AT/release --matrix AT/matrix {more}",
            self.prefix
        ))
    }

    fn publish(&self, more: &str) -> Result<Output> {
        self.command(more)?.output().context("vdo-release")
    }

    /// The artifact types of what refers to the image.
    async fn referrers(&self) -> Result<Vec<String>> {
        let found = self.oras(&["discover", "--format", "json"], "vdo-operator").await?;
        let found: Value = serde_json::from_str(&found)?;
        let all = found["manifests"].as_array().context("a list")?;
        let mut types: Vec<String> = all
            .iter()
            .filter_map(|one| Some(one["artifactType"].as_str()?.to_owned()))
            .collect();
        types.sort();
        Ok(types)
    }
}

/// How many lines begin with this word.
fn count(text: &str, word: &str) -> usize {
    text.lines()
        .filter(|line| line.trim_start().starts_with(&format!("{word} ")))
        .count()
}

async fn once_by_one(kind: RegistryKind) -> Result<()> {
    let mut site = Site::start(kind).await?;
    let listed = site.publish("--dry-run")?;
    ensure!(
        listed.status.success() && count(&out(&listed), "new") == ITEMS,
        "{}{}",
        out(&listed),
        err(&listed)
    );
    std::fs::rename(site.file("catalog-image"), site.file("elsewhere"))?;
    let without = out(&site.publish("--dry-run")?);
    ensure!(
        without.contains("NOT published: catalog for OLM") && count(&without, "new") == ITEMS - 1,
        "{without}"
    );
    std::fs::rename(site.file("elsewhere"), site.file("catalog-image"))?;

    // The registry ends in the middle; then the same command goes on.
    let mut command = site.command("")?;
    let mut publishing = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(publishing.stdout.take().context("its output")?).lines();
    let first = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("published ")));
    first.context("nothing was published")??;
    site.server.stop();
    let ended = publishing.wait()?;
    let mut said = String::new();
    publishing.stderr.take().context("its errors")?.read_to_string(&mut said)?;
    ensure!(
        !ended.success() && said.contains("is not published; ") && said.contains("run the same command again"),
        "{said}"
    );
    // When it is back it takes nothing, as during maintenance.
    site.server.refuse_uploads(true).await?;
    let refused = site.publish("")?;
    ensure!(
        refused.status.code() == Some(1)
            && err(&refused).contains(" is not published; number of artifacts published before: ")
            && err(&refused).contains("; run the same command again to continue"),
        "{}{}",
        out(&refused),
        err(&refused)
    );
    site.server.refuse_uploads(false).await?;
    let rest = site.publish("")?;
    ensure!(rest.status.success(), "{}{}", out(&rest), err(&rest));
    let (there, published) = (count(&out(&rest), "there"), count(&out(&rest), "published"));
    ensure!(there > 0 && published > 0 && there + published >= ITEMS, "{}", out(&rest));
    ensure!(
        site.referrers().await? == [media::CYCLONEDX, media::BUNDLE].map(str::to_owned),
        "{:?}",
        site.referrers().await?
    );

    // Again, and after everything was signed once more, it is all there.
    for time in ["at once", "signed again"] {
        let log = site.server.log().len();
        let again = site.publish("")?;
        ensure!(
            again.status.success() && out(&again).contains("nothing was sent"),
            "{time}: {}{}",
            out(&again),
            err(&again)
        );
        let asked = site.server.log()[log..].to_owned();
        for method in ["PUT", "POST", "PATCH"] {
            ensure!(!asked.contains(&format!("method={method}")), "{time}: {asked}");
        }
        site.sign()?;
    }

    // Another publisher, with other files of the same version.
    std::fs::write(site.file("release/NOTES.md"), "Something else.\n")?;
    site.sign()?;
    let refused = site.publish("")?;
    let said = err(&refused);
    ensure!(refused.status.code() == Some(1) && said.contains("nothing was published"), "{said}");
    let tag = format!("{}/vdo-project/release:v{VERSION} refers to sha256:", site.prefix);
    ensure!(said.contains(&tag) && said.contains("the artifact to publish is sha256:"), "{said}");
    ensure!(!said.contains("vdo-operator:v"), "{said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn publish_once_by_one_publisher_in_a_registry_with_referrers() -> Result<()> {
    once_by_one(RegistryKind::Olareg).await
}

#[tokio::test(flavor = "multi_thread")]
async fn publish_once_by_one_publisher_in_a_registry_with_a_login() -> Result<()> {
    once_by_one(RegistryKind::Distribution).await
}

/// A repository as it is committed, and `make publish` in it.
struct Clone<'a> {
    site: &'a Site,
    folder: PathBuf,
}

impl<'a> Clone<'a> {
    fn of(site: &'a Site) -> Result<Self> {
        let folder = site.file("a clone");
        let root = env!("CARGO_MANIFEST_DIR");
        let cloned = Command::new("git").args(["clone", "--quiet", root]).arg(&folder).status()?;
        ensure!(cloned.success(), "{root} is not cloned");
        Ok(Self { site, folder })
    }

    /// `make publish`, for one processor. The programs are compiled without optimisation, whose result others test: that takes a quarter of the time.
    fn make(&self, dry_run: &str) -> Result<Output> {
        let mut make = self.site.command_of("make");
        make.arg("publish")
            .arg(format!("REGISTRY={}", self.site.prefix))
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", self.target())
            .envs([("VDO_ARCHITECTURES", "amd64"), ("VDO_DESKS", ""), ("DRY_RUN", dry_run)])
            .envs([
                ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
                ("CARGO_PROFILE_RELEASE_LTO", "off"),
                ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "256"),
            ])
            .env_remove("SOURCE_DATE_EPOCH");
        make.output().context("make")
    }

    /// Crates of others are compiled there once for all runs.
    fn target(&self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/make-publish")
    }
}

/// The whole step from the sources: what it publishes is a release that can be verified, read and run, and a second time nothing is built or sent.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs cargo-cyclonedx and cargo-about, and builds for minutes: `make test-all` runs it"]
async fn publish_with_make_builds_once_and_changes_nothing_again() -> Result<()> {
    let site = Site::without_files(RegistryKind::Distribution).await?;
    let clone = Clone::of(&site)?;
    // Of an earlier run of this test.
    let old = clone.target().join(format!("release-{VERSION}.built"));
    let _ = std::fs::remove_file(old);
    let first = clone.make("")?;
    let said = out(&first);
    ensure!(first.status.success(), "{said}{}", err(&first));
    ensure!(count(&said, "published") == ITEMS && !said.contains("NOT signed"), "{said}");
    for step in ["== image", "== release", "== publish to"] {
        ensure!(said.contains(step), "{said}");
    }

    let log = site.server.log().len();
    for dry_run in ["1", ""] {
        let again = clone.make(dry_run)?;
        let said = out(&again);
        ensure!(again.status.success(), "{said}{}", err(&again));
        ensure!(said.contains("is of this commit") && count(&said, "there") == ITEMS, "{said}");
        ensure!(!said.contains("optimised"), "{said}");
    }
    let asked = site.server.log()[log..].to_owned();
    for method in ["PUT", "POST", "PATCH"] {
        ensure!(!asked.contains(&format!("method={method}")), "{asked}");
    }
    read_back(&site).await
}

/// The files of the release as a user of another client gets them.
async fn read_back(site: &Site) -> Result<()> {
    let place = site.file("pulled");
    std::fs::create_dir(&place)?;
    site.oras(&["pull", "--output", &place.display().to_string()], "release").await?;
    let text = |name: &str| std::fs::read_to_string(place.join(name)).with_context(|| name.to_owned());
    let sums = Command::new("sha256sum")
        .args(["--check", "--strict", "--quiet", "SHA256SUMS"])
        .current_dir(&place)
        .output()?;
    ensure!(sums.status.success(), "{}{}", out(&sums), err(&sums));
    let keys = PublicKeys::parse(site.key.public().as_bytes())?;
    keys.verify(
        text("SHA256SUMS")?.as_bytes(),
        Some(&std::fs::read(place.join("SHA256SUMS.sigstore.json"))?),
    )?;
    ensure!(
        !text("NOTES.md")?.trim().is_empty() && !text("LICENCES.txt")?.is_empty(),
        "an empty page"
    );

    // The manifest for krew names the archive by its sum, and the program in it runs.
    let archive = format!("vdoctl-v{VERSION}-linux-amd64.tar.gz");
    let listed = text("SHA256SUMS")?;
    let sum = listed.lines().find_map(|line| line.strip_suffix(&format!("  {archive}")));
    let krew = text("vdo.yaml")?;
    ensure!(krew.contains(sum.context("a sum")?) && krew.contains(&archive), "{krew}");
    let unpacked = Command::new("tar").arg("-xzf").arg(&archive).current_dir(&place).status()?;
    ensure!(unpacked.success(), "{archive} is not unpacked");
    let version = Command::new(place.join("vdoctl")).args(["version", "--client"]).output()?;
    ensure!(out(&version).contains(VERSION), "{}{}", out(&version), err(&version));

    // What is applied names the image that the registry has.
    let image = site.oras(&["resolve"], "vdo-operator").await?;
    let named = format!("{}/vdo-project/vdo-operator:v{VERSION}@{}", site.prefix, image.trim());
    ensure!(text("install.yaml")?.contains(&named), "{named} is not in install.yaml");
    Ok(())
}

/// A registry with everything, and the image that is in it.
async fn published() -> Result<(Site, String)> {
    let site = Site::start(RegistryKind::Distribution).await?;
    let published = site.publish("")?;
    ensure!(published.status.success(), "{}{}", out(&published), err(&published));
    let name = format!("{}/vdo-project/vdo-operator:v{VERSION}", site.prefix);
    Ok((site, name))
}

/// The image of the operator in the cluster.
async fn image(bed: &Bed) -> Result<Value> {
    let deployment = bed.get("apps/v1", "Deployment", NS, "vdo-operator").await?;
    Ok(deployment["spec"]["template"]["spec"]["containers"][0]["image"].clone())
}

#[test]
#[ignore = "long"]
fn publish_is_all_that_helm_needs() -> Result<()> {
    BARE.run(async |bed| {
        let (site, name) = published().await?;
        let helm = Helm::of(&bed.cluster).await?;
        let ca = site.file("credentials/ca.crt").display().to_string();
        let login = [
            "registry",
            "login",
            &site.server.host(),
            "-u",
            LOGIN.0,
            "-p",
            LOGIN.1,
            "--ca-file",
            &ca,
        ];
        helm.run(&login).await?;
        let chart = format!("oci://{}/vdo-project/charts/vdo", site.prefix);
        let usual = ["--version", VERSION, "--namespace", NS, "--create-namespace", "--ca-file", &ca];
        helm.run(&[&["install", "vdo", &chart][..], &usual].concat()).await?;
        ensure!(image(bed).await? == name.as_str(), "{}", image(bed).await?);
        helm.run(&["uninstall", "vdo", "--namespace", NS, "--wait"]).await?;
        Ok(())
    })
}

#[test]
#[ignore = "long"]
fn publish_is_all_that_vdoctl_deploy_needs() -> Result<()> {
    BARE.run(async |bed| {
        let (site, name) = published().await?;
        let (matrix, credentials, keys) = (
            format!("oci://{}/vdo-project/matrix:stable", site.prefix),
            site.file("credentials").display().to_string(),
            site.file("keys.pem").display().to_string(),
        );
        let mut deploy = Deploy::to(bed)?;
        for (flag, value) in [
            ("--image-registry", site.prefix.as_str()),
            ("--matrix", &matrix),
            ("--matrix-credentials", &credentials),
            ("--matrix-keys", &keys),
        ] {
            deploy.args.extend([flag.to_owned(), value.to_owned()]);
        }
        let mut command = deploy.command(bed, &["--yes"]);
        let mut deploying = tokio::task::spawn_blocking(move || command.output());
        bed.flags = [
            ("matrix-credentials", credentials),
            ("matrix-keys", keys),
            ("matrix-interval", "1s".to_owned()),
        ]
        .map(|(flag, value)| (flag, crate::matrix_web::leaked(value)))
        .to_vec();
        tokio::select! {
            operated = operate(bed) => operated?,
            ended = &mut deploying => {
                let ended = ended??;
                bail!("vdoctl ended before the operator: {}{}", out(&ended), err(&ended));
            }
        }
        let deployed = deploying.await??;
        ensure!(deployed.status.success(), "{}{}", out(&deployed), err(&deployed));
        bed.until_ready().await?;
        ensure!(image(bed).await? == name.as_str(), "{}", image(bed).await?);
        bed.until_reason("MatrixFresh", "Healthy").await?;
        Ok(())
    })
}
