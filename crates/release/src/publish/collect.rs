// SPDX-License-Identifier: Apache-2.0
//! Collects the artifacts to publish, in order and each with its tag, from the folders that `make release` and `make matrix` write.

use super::item::{Content, Item};
use crate::built::Built;
use crate::{folder, output};
use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vdo_core::chart::artifact::{described, tag};
use vdo_core::matrix::Index;
use vdo_oci::oci::{Descriptor, media};
use vdo_oci::registry::{Artifact, File, Reference, chart_manifest, matrix_artifact};

/// The files of a release.
const RELEASE: &str = "application/vnd.vdo.release.v1";
/// Below a registry: as the images that `vdoctl deploy --image-registry` looks for are named.
const PROJECT: &str = "vdo-project";

/// Where what is published was built.
pub struct Folders {
    /// `target/image`.
    pub image: PathBuf,
    /// Image layouts of OLM, where they exist.
    pub bundle: PathBuf,
    /// The same.
    pub catalog: PathBuf,
    /// `target/release-VERSION`.
    pub release: PathBuf,
    /// `target/matrix-VERSION`.
    pub matrix: PathBuf,
}

/// The registry, and where in it this is.
pub fn place(registry: &str, name: &str, tag: &str) -> Result<Reference> {
    let text = format!("{}/{PROJECT}/{name}:{tag}", registry.trim_end_matches('/'));
    text.parse().with_context(|| format!("{registry} cannot be the registry"))
}

/// Everything, in the order in which it is published: what others name comes before them, and last what says that a version is there.
pub fn collect(registry: &str, version: &str, folders: &Folders) -> Result<Vec<Item>> {
    let version_tag = format!("v{version}");
    let mut items = vec![image(
        "image of the operator",
        &folders.image,
        place(registry, "vdo-operator", &version_tag)?,
    )?];
    for (what, folder, name) in [
        ("bundle for OLM", &folders.bundle, "vdo-bundle"),
        ("catalog for OLM", &folders.catalog, "vdo-catalog"),
    ] {
        match folder.exists() {
            true => items.push(image(what, folder, place(registry, name, &version_tag)?)?),
            false => output::line(&format!("  NOT published: {what}, because {} does not exist", folder.display()))?,
        }
    }
    let release = folder::contents(&folders.release, |_, _| true)?;
    let named = items
        .first()
        .map(|item| item.to.at_tag(&version_tag))
        .context("there is no image")?;
    names(&release, &named, items.first().map(|item| &item.manifest))?;
    items.push(chart(registry, version, &release)?);
    items.extend(matrix(registry, &folders.matrix)?);
    items.push(artifact(
        "files of the release",
        place(registry, "release", &version_tag)?,
        archive(release),
    )?);
    Ok(items)
}

fn image(what: &str, folder: &Path, to: Reference) -> Result<Item> {
    let built = Built::open(folder)?;
    Ok(Item {
        what: what.to_owned(),
        to,
        manifest: built.root,
        content: Content::Image(built.layout),
    })
}

/// The manifest of the release must lead to the image that is published with it.
fn names(release: &BTreeMap<String, Vec<u8>>, image: &Reference, manifest: Option<&Descriptor>) -> Result<()> {
    let text = release
        .get("install.yaml")
        .map(|bytes| String::from_utf8_lossy(bytes))
        .unwrap_or_default();
    let digest = manifest.map(|manifest| manifest.digest.to_string()).unwrap_or_default();
    match text.contains(&format!("image: {image}@{digest}")) {
        true => Ok(()),
        false => bail!(
            "install.yaml of the release does not name {image}@{digest}; build the image and the release for this registry: \
             VDO_IMAGE={image} make release"
        ),
    }
}

fn chart(registry: &str, version: &str, release: &BTreeMap<String, Vec<u8>>) -> Result<Item> {
    let (_, package) = release
        .iter()
        .find(|(name, _)| name.ends_with(&format!("-{version}.tgz")))
        .ok_or_else(|| anyhow!("the release has no chart of version {version}"))?;
    let described = described(package, BTreeMap::new())?;
    let to = place(registry, &format!("charts/{}", described.name), &tag(&described.version))?;
    let manifest = chart_manifest(&described.config, package, described.annotations.clone());
    Ok(Item {
        what: "chart of the operator".into(),
        to,
        manifest: Descriptor::of(media::MANIFEST, &serde_json::to_vec(&manifest)?),
        content: Content::Chart(described, package.clone()),
    })
}

/// The matrix by its version, and under the tag that operators follow.
fn matrix(registry: &str, folder: &Path) -> Result<[Item; 2]> {
    let files = folder::contents(folder, |_, _| true)?;
    let index = files
        .get("index.yaml")
        .ok_or_else(|| anyhow!("{} has no index.yaml", folder.display()))?;
    let version = Index::parse(index).context("the matrix")?.version;
    let all = matrix_artifact(&files);
    let fixed = artifact(
        "matrix with its charts",
        place(registry, "matrix", &version.to_string())?,
        all.clone(),
    )?;
    Ok([
        fixed,
        Item {
            content: Content::Channel(all.clone(), version),
            ..artifact(
                "matrix under the tag that operators follow",
                place(registry, "matrix", "stable")?,
                all,
            )?
        },
    ])
}

fn artifact(what: &str, to: Reference, files: Artifact) -> Result<Item> {
    Ok(Item {
        what: what.to_owned(),
        to,
        manifest: Descriptor::of(media::MANIFEST, &serde_json::to_vec(&files.manifest())?),
        content: Content::Files(files),
    })
}

fn archive(files: BTreeMap<String, Vec<u8>>) -> Artifact {
    let media_type = |path: &str| match path.rsplit('.').next() {
        _ if path.ends_with(".sigstore.json") => media::BUNDLE,
        _ if path.ends_with(".cdx.json") => media::CYCLONEDX,
        Some("gz" | "tgz") => "application/gzip",
        Some("yaml") => "application/yaml",
        _ => "text/plain",
    };
    let file = |(path, bytes): (String, Vec<u8>)| File {
        media_type: media_type(&path).to_owned(),
        path,
        bytes,
    };
    Artifact {
        artifact_type: RELEASE.to_owned(),
        files: files.into_iter().map(file).collect(),
    }
}
