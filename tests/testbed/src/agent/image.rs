// SPDX-License-Identifier: Apache-2.0
//! Images as folders in the OCI image layout, unpacked for the containers that run them.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::executable::write_program;

/// An unpacked image.
#[derive(Clone, Debug)]
pub(super) struct Image {
    /// Its root file system. Containers get copies made of hard links.
    pub(super) root: PathBuf,
    /// How it wants to be run.
    pub(super) config: RunConfig,
    /// The digests under which it can be named: of the manifest, and of the indexes above it.
    pub(super) digests: BTreeSet<String>,
}

/// What the configuration of an image says about its process.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct RunConfig {
    pub(super) user: Option<String>,
    pub(super) env: Option<Vec<String>>,
    pub(super) entrypoint: Option<Vec<String>>,
    pub(super) cmd: Option<Vec<String>>,
    pub(super) working_dir: Option<String>,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
    platform: Option<Platform>,
    artifact_type: Option<String>,
}

#[derive(Clone, Deserialize)]
struct Platform {
    os: String,
    architecture: String,
}

#[derive(Deserialize)]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Config {
    os: String,
    architecture: String,
    #[serde(default)]
    config: RunConfig,
    rootfs: RootFs,
}

#[derive(Deserialize)]
struct RootFs {
    diff_ids: Vec<String>,
}

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYERS: [&str; 2] = [
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
];

impl Image {
    /// Unpacks the image of this machine's platform below `folder`, or finds it there.
    pub(super) fn unpack(layout: &Path, folder: &Path) -> Result<Self> {
        Self::unpacked(layout, folder).with_context(|| format!("image layout {}", layout.display()))
    }

    /// An image that is one program, linked statically; its root file system is made below `folder`. A container that names no command
    /// runs it with these arguments and its own.
    pub(super) fn program(program: &Path, args: &[&str], folder: &Path) -> Result<Self> {
        let name = program.file_name().context("a program without a name")?;
        let root = folder.join(name);
        let inside = Path::new("bin").join(name);
        if !root.is_dir() {
            // Complete or absent.
            let fresh = root.with_extension("new");
            let _ = std::fs::remove_dir_all(&fresh);
            for folder in ["", "bin", "tmp"] {
                super::volumes::folder(&fresh.join(folder))?;
            }
            if std::fs::hard_link(program, fresh.join(&inside)).is_err() {
                write_program(&fresh.join(&inside), std::fs::read(program)?).with_context(|| format!("program {}", program.display()))?;
            }
            std::fs::rename(&fresh, &root)?;
        }
        let mut entrypoint = vec![format!("/{}", inside.display())];
        entrypoint.extend(args.iter().map(|arg| (*arg).to_owned()));
        Ok(Self {
            root,
            config: RunConfig {
                entrypoint: Some(entrypoint),
                ..RunConfig::default()
            },
            digests: BTreeSet::new(),
        })
    }

    fn unpacked(layout: &Path, folder: &Path) -> Result<Self> {
        let index: Index = parsed(&std::fs::read(layout.join("index.json")).context("index.json")?)?;
        let mut digests = BTreeSet::new();
        let (manifest, config) = find(layout, &index, &mut digests)?.with_context(|| format!("no image for linux/{}", architecture()))?;
        ensure!(
            manifest.layers.len() == config.rootfs.diff_ids.len(),
            "{} layers, but {} diff_ids",
            manifest.layers.len(),
            config.rootfs.diff_ids.len()
        );
        let name = manifest.config.digest.replace(':', "-");
        let root = folder.join(&name);
        if !root.is_dir() {
            // Complete or absent.
            let fresh = folder.join(format!("{name}.new"));
            let _ = std::fs::remove_dir_all(&fresh);
            std::fs::create_dir_all(&fresh)?;
            std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o755))?;
            for (layer, diff_id) in manifest.layers.iter().zip(&config.rootfs.diff_ids) {
                unpack_layer(layout, layer, diff_id, &fresh).with_context(|| format!("layer {}", layer.digest))?;
            }
            // Copied by a child, as programs are that run at once: tests/common/executable.rs says why.
            let copied = folder.join(format!("{name}.copied"));
            let _ = std::fs::remove_dir_all(&copied);
            let status = Command::new("cp").args(["-a", "--"]).args([&fresh, &copied]).status()?;
            ensure!(status.success(), "cp cannot write {}", copied.display());
            std::fs::remove_dir_all(&fresh)?;
            std::fs::rename(&copied, &root)?;
        }
        Ok(Self {
            root,
            config: config.config,
            digests,
        })
    }

    /// The user and group as numbers. A name in an image says nothing about its number before it runs.
    pub(super) fn user(&self) -> Result<(u32, u32)> {
        let user = self.config.user.as_deref().filter(|user| !user.is_empty()).unwrap_or("0");
        let (uid, gid) = user.split_once(':').unwrap_or((user, user));
        let number = |text: &str| text.parse().with_context(|| format!("user {user:?} of the image is not numeric"));
        Ok((number(uid)?, number(gid)?))
    }
}

/// Finds the manifest for this machine, and the digests on the way to it.
fn find(layout: &Path, index: &Index, digests: &mut BTreeSet<String>) -> Result<Option<(Manifest, Config)>> {
    for descriptor in index.manifests.iter().filter(|one| one.artifact_type.is_none()) {
        let fits = |platform: &Platform| platform.os == "linux" && platform.architecture == architecture();
        let found = if descriptor.media_type == INDEX {
            find(layout, &parsed(&blob(layout, descriptor)?)?, digests)?
        } else if descriptor.platform.as_ref().is_none_or(fits) {
            let manifest: Manifest = parsed(&blob(layout, descriptor)?)?;
            image(layout, manifest)?
        } else {
            None
        };
        if found.is_some() {
            digests.insert(descriptor.digest.clone());
            return Ok(found);
        }
    }
    Ok(None)
}

/// The manifest with its configuration, if it is that of an image for this machine.
fn image(layout: &Path, manifest: Manifest) -> Result<Option<(Manifest, Config)>> {
    if manifest.config.media_type != CONFIG {
        return Ok(None);
    }
    let config: Config = parsed(&blob(layout, &manifest.config)?)?;
    let fits = config.os == "linux" && config.architecture == architecture();
    Ok(fits.then_some((manifest, config)))
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn blob(layout: &Path, descriptor: &Descriptor) -> Result<Vec<u8>> {
    let (algorithm, hex) = descriptor.digest.split_once(':').context("a digest without an algorithm")?;
    ensure!(
        algorithm == "sha256" && !hex.contains('/'),
        "digest {} is not understood",
        descriptor.digest
    );
    let bytes = std::fs::read(layout.join("blobs/sha256").join(hex)).with_context(|| format!("blob {}", descriptor.digest))?;
    ensure!(
        bytes.len() as u64 == descriptor.size && digest(&bytes) == descriptor.digest,
        "blob {} has {} bytes and digest {}, expected are {} bytes",
        descriptor.digest,
        bytes.len(),
        digest(&bytes),
        descriptor.size
    );
    Ok(bytes)
}

pub(super) fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).context("a document of the layout")
}

fn unpack_layer(layout: &Path, layer: &Descriptor, diff_id: &str, root: &Path) -> Result<()> {
    let mut bytes = blob(layout, layer)?;
    ensure!(
        LAYERS.contains(&layer.media_type.as_str()),
        "media type {} is not understood",
        layer.media_type
    );
    if layer.media_type.ends_with("+gzip") {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut plain)?;
        bytes = plain;
    }
    ensure!(
        digest(&bytes) == diff_id,
        "its content has digest {}, not {diff_id}",
        digest(&bytes)
    );
    let mut archive = tar::Archive::new(bytes.as_slice());
    archive.set_preserve_permissions(true);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".wh.")) {
            bail!("{} deletes a file of a lower layer, which is not understood", path.display());
        }
        ensure!(entry.unpack_in(root)?, "{} is outside of the root", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::io::Write;

    /// A layout that is written as it is read.
    struct Written(tempfile::TempDir);

    impl Written {
        fn put(&self, media_type: &str, bytes: &[u8]) -> Result<Value> {
            let digest = digest(bytes);
            let folder = self.0.path().join("blobs/sha256");
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join(digest.trim_start_matches("sha256:")), bytes)?;
            Ok(json!({ "mediaType": media_type, "digest": digest, "size": bytes.len() }))
        }

        /// An image with one file in one layer, below an index, beside one of another machine and a bill of materials.
        fn new(file: &str, architecture: &str) -> Result<Self> {
            let layout = Self(tempfile::tempdir()?);
            let mut archive = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_ustar();
            header.set_mode(0o755);
            header.set_size(5);
            archive.append_data(&mut header, file, &b"hello"[..])?;
            let plain = archive.into_inner()?;
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(&plain)?;
            let layer = layout.put(LAYERS[1], &gzip.finish()?)?;
            let mut images = Vec::new();
            for (architecture, layers) in [("other", vec![]), (architecture, vec![layer])] {
                let diff_ids: Vec<String> = layers.iter().map(|_| digest(&plain)).collect();
                let config = json!({ "os": "linux", "architecture": architecture, "config": { "User": "65532:65532", "Entrypoint": ["/bin/x"] },
                    "rootfs": { "type": "layers", "diff_ids": diff_ids } });
                let config = layout.put(CONFIG, config.to_string().as_bytes())?;
                let manifest = json!({ "config": config, "layers": layers }).to_string();
                let mut manifest = layout.put("application/vnd.oci.image.manifest.v1+json", manifest.as_bytes())?;
                manifest["platform"] = json!({ "os": "linux", "architecture": architecture });
                images.push(manifest);
            }
            let index = layout.put(INDEX, json!({ "manifests": images }).to_string().as_bytes())?;
            let mut bill = layout.put("application/vnd.oci.image.manifest.v1+json", b"no image")?;
            bill["artifactType"] = "application/vnd.cyclonedx+json".into();
            std::fs::write(
                layout.0.path().join("index.json"),
                json!({ "manifests": [bill, index] }).to_string(),
            )?;
            Ok(layout)
        }

        fn unpack(&self) -> Result<Image> {
            Image::unpack(self.0.path(), &self.0.path().join("unpacked"))
        }

        /// Changes a byte of each blob in which the text occurs.
        fn damage(&self, text: &str) -> Result<()> {
            for entry in std::fs::read_dir(self.0.path().join("blobs/sha256"))? {
                let path = entry?.path();
                let bytes = std::fs::read(&path)?;
                if let Some(place) = bytes.windows(text.len()).position(|window| window == text.as_bytes()) {
                    let mut bytes = bytes;
                    bytes[place] ^= 1;
                    std::fs::write(&path, bytes)?;
                }
            }
            Ok(())
        }
    }

    #[test]
    fn image_of_this_machine_is_unpacked_with_modes_and_digests() -> Result<()> {
        let layout = Written::new("bin/x", architecture())?;
        let image = layout.unpack()?;
        let file = image.root.join("bin/x");
        assert_eq!(std::fs::read_to_string(&file)?, "hello");
        assert_eq!(std::fs::metadata(&file)?.permissions().mode() & 0o777, 0o755);
        assert_eq!(image.user()?, (65532, 65532));
        assert_eq!(image.digests.len(), 2, "of the manifest and of the index");
        assert_eq!(layout.unpack()?.root, image.root, "it is unpacked once");
        Ok(())
    }

    #[test]
    fn image_damaged_or_hostile_is_refused_and_leaves_no_root() -> Result<()> {
        let damaged = Written::new("bin/x", architecture())?;
        damaged.damage("diff_ids")?;
        let cases = [
            (Written::new("bin/x", "vax")?, "no image for linux/"),
            (Written::new("bin/.wh.x", architecture())?, "deletes a file"),
            (damaged, "has"),
        ];
        for (layout, wanted) in cases {
            let error = format!("{:#}", layout.unpack().expect_err("it was accepted"));
            assert!(error.contains(wanted), "{error}");
            let left = std::fs::read_dir(layout.0.path().join("unpacked")).into_iter().flatten().flatten();
            let left: Vec<_> = left
                .map(|entry| entry.file_name())
                .filter(|name| !name.to_string_lossy().ends_with(".new"))
                .collect();
            assert!(left.is_empty(), "{left:?}");
        }
        Ok(())
    }
}
