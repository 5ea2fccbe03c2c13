// SPDX-License-Identifier: Apache-2.0
//! Pulls that are interrupted, and disks that are full.

use super::{Done, Site, done};
use crate::publish::folder::Publisher;
use crate::{sample, vdoctl};
use anyhow::Result;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use vdo_api::types::Digest;
use vdo_oci::oci::{Descriptor, Index, Manifest, media};
use vdo_testbed::{Asked, PATIENCE, Probe, RegistryAuth, RegistryKind, RegistryServer, WebAnswer, WebServer, until};

#[tokio::test]
async fn pull_without_room_ends_with_the_old_bundle_and_goes_on_when_there_is_some() -> Result<()> {
    let site = Site::start().await?;
    let bundle = site.path("bundle");
    site.pull(&bundle, &["--driver", "toy=1.0.0"])?.good();
    // No file may be larger than 100 KiB, and a layer has 200,000 bytes. The shell ignores the signal, so that the write fails.
    let flags = site.flags();
    let program = vdoctl(&[]).get_program().to_owned();
    let archive = site.path("bundle.tar");
    site.pull(&archive, &["--driver", "toy=1.0.0"])?.good();
    // No file may be larger than so many KiB, and a layer has 200,000 bytes; an archive of all of them has more. The shell ignores the signal, so
    // that the write fails.
    for (target, limit) in [
        (&bundle, 0),
        (&bundle, 1),
        (&bundle, 100),
        (&archive, 0),
        (&archive, 100),
        (&archive, 400),
    ] {
        let script = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"");
        let output = Command::new("bash")
            .args(["-c", &script])
            .arg(&program)
            .args(["mirror", "pull", target, "--all"])
            .args(&flags)
            .env("HOME", site.home.path())
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{target} {limit}: {said}");
        assert!(said.contains("cannot read or write"), "{target} {limit}: {said}");
        let verified = site.run(&["mirror", "verify", target])?.good();
        assert!(verified.out.contains("1 version, 2 images"), "{}", verified.out);
    }
    for target in [&bundle, &archive] {
        site.pull(target, &["--all"])?.good();
        let verified = site.run(&["mirror", "verify", target])?.good();
        assert!(verified.out.contains("3 versions, 4 images"), "{}", verified.out);
    }
    Ok(())
}

#[tokio::test]
async fn bundle_on_a_medium_that_is_only_read_is_verified_and_pushed_and_not_pulled_into() -> Result<()> {
    const TEST: &str = "bundle_on_a_medium_that_is_only_read_is_verified_and_pushed_and_not_pulled_into";
    let site = Site::start().await?;
    let target = RegistryServer::start(RegistryKind::Olareg, RegistryAuth::None).await?;
    let (bundle, ca) = (site.path("bundle"), target.ca_file()?.display().to_string());
    site.pull(&bundle, &["--driver", "toy=1.0.0"])?.good();
    let inside = |script: &str, arguments: &[&str]| -> Result<Done> {
        let output = Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", script, &bundle])
            .args(arguments)
            .env("HOME", site.home.path())
            .output()?;
        Ok(Done {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout)?,
            err: String::from_utf8(output.stderr)?,
        })
    };
    let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\"";
    if !inside(mount, &[]).is_ok_and(|done| done.code == 0) {
        // Past the harness, which keeps what a good test prints.
        writeln!(std::io::stderr(), "SKIPPED: needs mount namespaces ({TEST})")?;
        return Ok(());
    }
    let program = vdoctl(&[]).get_program().to_string_lossy().into_owned();
    let run = |arguments: &[&str]| inside(&format!("{mount} && exec \"$@\""), &[&[&*program], arguments].concat());
    run(&["mirror", "verify", &bundle])?.good();
    run(&["mirror", "push", &bundle, &format!("oci://{}", target.host()), "--ca-file", &ca])?.good();
    let flags = site.flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    for arguments in [
        [&["mirror", "pull", &bundle, "--all"][..], &flags].concat(),
        vec!["mirror", "prune", &bundle, "--driver", "toy=1.0.0"],
    ] {
        let refused = run(&arguments)?;
        assert_eq!(refused.code, 4, "{}{}", refused.out, refused.err);
        assert!(
            refused.err.contains("Read-only file system") && refused.err.contains("Check that you may read and write there"),
            "{}",
            refused.err
        );
    }
    site.run(&["mirror", "verify", &bundle])?.good();
    Ok(())
}

/// An image of one layer, as a registry serves it.
pub(super) struct Image {
    pub(super) manifest: Vec<u8>,
    pub(super) config: Vec<u8>,
    pub(super) layer: Vec<u8>,
}

impl Image {
    pub(super) fn new(layer_type: &str) -> Result<Self> {
        let (config, layer) = (b"{\"architecture\":\"amd64\",\"os\":\"linux\"}".to_vec(), vec![7; 300_000]);
        let mut described = Descriptor::of(layer_type, &layer);
        described.annotations.insert("name".into(), "layer".into());
        let manifest = Manifest::image(Descriptor::of(media::CONFIG, &config), vec![described]);
        Ok(Self {
            manifest: serde_json::to_vec(&manifest)?,
            config,
            layer,
        })
    }

    pub(super) fn serve(&self, server: &WebServer) {
        let digest = Digest::of(&self.manifest);
        for pointer in ["v1.0.0".to_owned(), digest.to_string()] {
            server.put(&format!("/v2/src/toy/manifests/{pointer}"), self.manifest.clone());
        }
        for blob in [&self.config, &self.layer] {
            server.put(&format!("/v2/src/toy/blobs/{}", Digest::of(blob)), blob.clone());
        }
    }

    pub(super) fn layer(&self) -> String {
        format!("/blobs/{}", Digest::of(&self.layer))
    }
}

/// A home, a publisher with one version, and a server that plays its registry.
pub(super) struct Stage {
    pub(super) publisher: Publisher,
    pub(super) server: WebServer,
    pub(super) home: tempfile::TempDir,
}

impl Stage {
    pub(super) async fn new() -> Result<Self> {
        let stage = Self {
            publisher: Publisher::toy(),
            server: WebServer::start().await?,
            home: tempfile::tempdir()?,
        };
        std::fs::write(stage.home.path().join("ca.pem"), stage.server.authority().pem())?;
        Ok(stage)
    }

    pub(super) fn arguments(&self) -> Vec<String> {
        let path = |name: &str| self.home.path().join(name).display().to_string();
        let host = self.server.url("").trim_start_matches("https://").trim_end_matches('/').to_owned();
        let arguments = [
            "mirror".to_owned(),
            "pull".into(),
            path("bundle"),
            "--all".into(),
            "--image".into(),
            "none".into(),
            "--matrix".into(),
            self.publisher.matrix(),
            "--from".into(),
            format!("registry.example={host}/src"),
            "--ca-file".into(),
            path("ca.pem"),
        ];
        arguments.to_vec()
    }

    pub(super) async fn pull(&self) -> Result<Done> {
        self.run(self.arguments()).await
    }

    pub(super) async fn run(&self, arguments: Vec<String>) -> Result<Done> {
        let home = self.home.path().to_owned();
        // The server answers in this very process.
        tokio::task::spawn_blocking(move || done(&home, &arguments.iter().map(String::as_str).collect::<Vec<_>>())).await?
    }

    /// Begins a pull, which the caller ends.
    pub(super) fn spawn(&self) -> Result<std::process::Child> {
        let mut command = Command::new(vdoctl(&[]).get_program());
        command.args(self.arguments()).env_clear().env("HOME", self.home.path());
        Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
    }

    pub(super) fn verify(&self) -> Result<Done> {
        let bundle = self.home.path().join("bundle").display().to_string();
        done(self.home.path(), &["mirror", "verify", &bundle])
    }
}

/// Answers the first of the requests that contain this in another way.
pub(super) fn once(part: String, answer: WebAnswer) -> impl Fn(&Asked) -> WebAnswer + Send + Sync + 'static {
    let first = AtomicBool::new(true);
    move |asked| match asked.path.contains(&part) && first.swap(false, Ordering::SeqCst) {
        true => answer.clone(),
        false => WebAnswer::File,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_from_a_registry_that_is_busy_or_breaks_off_goes_on() -> Result<()> {
    let stage = Stage::new().await?;
    let image = Image::new(media::LAYER_GZIP)?;
    image.serve(&stage.server);
    let busy = WebAnswer::Status(429, vec![("retry-after", "1".into())], String::new());
    let anywhere: Vec<usize> = (0..image.layer.len()).collect();
    let anywhere = sample::some("where a connection breaks off", &anywhere, 1)[0];
    for (part, answer) in [
        (image.layer(), WebAnswer::Cut),
        (image.layer(), WebAnswer::CutAt(0)),
        (image.layer(), WebAnswer::CutAt(anywhere)),
        (image.layer(), WebAnswer::CutAt(image.layer.len() - 1)),
        (image.layer(), busy.clone()),
        ("/manifests/v1.0.0".into(), busy),
        (image.layer(), WebAnswer::Status(503, Vec::new(), String::new())),
    ] {
        let _ = std::fs::remove_dir_all(stage.home.path().join("bundle"));
        stage.server.forget();
        stage.server.answer(once(part.clone(), answer.clone()));
        stage.pull().await?.good();
        stage.verify()?.good();
        let times = stage.server.asked().iter().filter(|asked| asked.path.contains(&part)).count();
        assert!(times >= 2, "{answer:?} was not given");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_from_a_registry_that_lies_ends_with_the_reference_and_keeps_the_old_bundle() -> Result<()> {
    let stage = Stage::new().await?;
    let good = Image::new(media::LAYER_GZIP)?;
    good.serve(&stage.server);
    stage.pull().await?.good();
    // The tag leads to another image now, and with that one something is wrong.
    let mut other = Image::new(media::LAYER_GZIP)?;
    other.layer[0] = 8;
    let described = Descriptor::of(media::LAYER_GZIP, &other.layer);
    other.manifest = serde_json::to_vec(&Manifest::image(Descriptor::of(media::CONFIG, &other.config), vec![described]))?;
    other.serve(&stage.server);
    let status = |code: u16, body: &str| WebAnswer::Status(code, Vec::new(), body.to_owned());
    let large = "x".repeat(5 << 20);
    // A list can name itself only if somewhere a digest is wrong.
    let itself = Digest::of(b"itself");
    let itself_list = format!(
        "{{\"schemaVersion\": 2, \"mediaType\": \"{}\", \"manifests\": [{{\"mediaType\": \"{}\", \"digest\": \"{itself}\", \"size\": 300}}]}}",
        media::INDEX,
        media::INDEX
    );
    stage.server.put(&format!("/v2/src/toy/manifests/{itself}"), itself_list.clone());
    for (part, answer, said) in [
        (other.layer(), status(200, &"\u{7}".repeat(300_000)), "digest"),
        (other.layer(), status(200, "short"), "bytes"),
        (other.layer(), status(401, ""), "401"),
        (other.layer(), status(404, ""), "404"),
        (other.layer(), WebAnswer::Cut, "toy"),
        (other.layer(), WebAnswer::Endless, "bytes"),
        ("/manifests/v1.0.0".into(), status(200, "<html>Log in</html>"), "web page"),
        ("/manifests/v1.0.0".into(), status(200, &large), "larger"),
        ("/manifests/v1.0.0".into(), WebAnswer::Endless, "larger"),
        (
            "/manifests/v1.0.0".into(),
            status(200, "{\"mediaType\":\"a/b\"}"),
            "unknown media type",
        ),
        ("/manifests/v1.0.0".into(), status(200, &itself_list), "digest"),
    ] {
        let again = part.clone();
        stage.server.answer(move |asked| match asked.path.contains(&again) {
            true => answer.clone(),
            false => WebAnswer::File,
        });
        let pulled = stage.pull().await?;
        assert_eq!(pulled.code, 4, "{part} {said}: {}{}", pulled.out, pulled.err);
        assert!(pulled.err.contains(said) && pulled.err.contains("toy"), "{said}: {}", pulled.err);
        assert!(pulled.err.lines().count() >= 2, "there is no remedy: {}", pulled.err);
        let verified = stage.verify()?.good();
        assert!(verified.out.contains("1 version, 1 image"), "{}", verified.out);
    }
    // The blobs of the old image are untouched, and nothing half-written is left.
    let bundle = stage.home.path().join("bundle");
    let left: Vec<_> = std::fs::read_dir(&bundle)?
        .map(|entry| Ok(entry?.file_name()))
        .collect::<Result<_>>()?;
    assert_eq!(left.len(), 3, "{left:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_of_a_layer_that_its_registry_does_not_give_out_says_which_platform_to_leave_out() -> Result<()> {
    let stage = Stage::new().await?;
    let image = Image::new("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip")?;
    image.serve(&stage.server);
    let layer = image.layer();
    stage.server.answer(move |asked| match asked.path.contains(&layer) {
        true => WebAnswer::Status(404, Vec::new(), String::new()),
        false => WebAnswer::File,
    });
    let pulled = stage.pull().await?;
    assert_eq!(pulled.code, 4, "{}", pulled.err);
    assert!(
        pulled.err.contains("does not provide") && pulled.err.contains("--platform"),
        "{}",
        pulled.err
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_that_is_killed_leaves_the_old_bundle_and_the_next_one_does_not_fetch_again() -> Result<()> {
    let stage = Stage::new().await?;
    let image = Image::new(media::LAYER_GZIP)?;
    image.serve(&stage.server);
    stage.pull().await?.good();
    let mut other = Image::new(media::LAYER_GZIP)?;
    other.config.push(b' ');
    other.layer[0] = 9;
    let described = Descriptor::of(media::LAYER_GZIP, &other.layer);
    other.manifest = serde_json::to_vec(&Manifest::image(Descriptor::of(media::CONFIG, &other.config), vec![described]))?;
    other.serve(&stage.server);
    // The configuration comes, and the layer never does.
    let layer = other.layer();
    stage.server.forget();
    stage.server.answer(move |asked| match asked.path.contains(&layer) {
        true => WebAnswer::Silence,
        false => WebAnswer::File,
    });
    let config = Digest::of(&other.config).hex();
    let blobs = stage.home.path().join("bundle/blobs/sha256");
    let mut child = stage.spawn()?;
    until("the configuration to be there", PATIENCE, async || {
        Ok(Probe::when(blobs.join(&config).is_file(), "not yet"))
    })
    .await?;
    child.kill()?;
    child.wait()?;
    assert!(stage.verify()?.good().out.contains("1 version, 1 image"));

    stage.server.forget();
    stage.server.answer(|_| WebAnswer::File);
    stage.pull().await?.good();
    let asked = stage.server.asked();
    let times = |part: &str| asked.iter().filter(|asked| asked.path.contains(part)).count();
    assert_eq!((times(&config), times(&other.layer())), (0, 1), "{asked:?}");
    stage.verify()?.good();
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_of_lists_in_lists_without_end_stops_at_what_no_image_has() -> Result<()> {
    let stage = Stage::new().await?;
    let image = Image::new(media::LAYER_GZIP)?;
    image.serve(&stage.server);
    let mut inner = Descriptor::of(media::MANIFEST, &image.manifest);
    let mut list = Vec::new();
    for _ in 0..600 {
        list = serde_json::to_vec(&Index::new(vec![inner]))?;
        inner = Descriptor::of(media::INDEX, &list);
        stage.server.put(&format!("/v2/src/toy/manifests/{}", inner.digest), list.clone());
    }
    stage.server.put("/v2/src/toy/manifests/v1.0.0", list);
    let pulled = stage.pull().await?;
    assert_eq!(pulled.code, 4, "{}", pulled.err);
    assert!(pulled.err.contains("more than 500 manifests"), "{}", pulled.err);
    Ok(())
}

/// Another user who may write into the folder of the bundle may put anything beside it.
#[tokio::test]
async fn pull_into_an_archive_works_in_a_folder_of_its_own_or_not_at_all() -> Result<()> {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let site = Site::start().await?;
    let (archive, work, other) = (site.path("b.tar"), site.path(".b.tar.d"), site.path("other"));
    std::fs::create_dir(&other)?;
    symlink(&other, &work)?;
    let refused = site.pull(&archive, &["--driver", "toy=1.0.0"])?;
    assert!(
        refused.code == 4 && refused.err.contains(".b.tar.d") && refused.err.contains("it is a link"),
        "{}",
        refused.err
    );
    assert_eq!(std::fs::read_dir(&other)?.count(), 0, "it followed the link");
    std::fs::remove_file(&work)?;
    std::fs::create_dir(&work)?;
    std::fs::set_permissions(&work, std::fs::Permissions::from_mode(0o777))?;
    let refused = site.pull(&archive, &["--driver", "toy=1.0.0"])?;
    assert!(refused.code == 4 && refused.err.contains("other users"), "{}", refused.err);
    // A blob that an earlier pull has begun is one of ours, and no link.
    std::fs::set_permissions(&work, std::fs::Permissions::from_mode(0o700))?;
    std::fs::write(site.path("dear"), "dear")?;
    let bundle = site.path("bundle");
    site.pull(&bundle, &["--driver", "toy=1.0.0"])?.good();
    let blobs: Vec<_> = std::fs::read_dir(format!("{bundle}/blobs/sha256"))?.collect::<Result<_, _>>()?;
    for blob in &blobs {
        symlink(site.path("dear"), format!("{work}/.{}.partial", blob.file_name().to_string_lossy()))?;
    }
    let refused = site.pull(&archive, &["--driver", "toy=1.0.0"])?;
    assert_eq!(refused.code, 4, "{}", refused.err);
    assert_eq!(std::fs::read_to_string(site.path("dear"))?, "dear");
    std::fs::remove_dir_all(&work)?;
    site.pull(&archive, &["--driver", "toy=1.0.0"])?.good();
    site.run(&["mirror", "verify", &archive])?.good();
    Ok(())
}
