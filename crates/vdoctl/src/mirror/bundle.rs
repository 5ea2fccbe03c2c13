// SPDX-License-Identifier: Apache-2.0
//! Reads and writes a bundle of `vdoctl mirror`: an OCI image layout that contains the images by reference, and the matrix as an artifact.

use super::super::{CliError, Exit};
use super::{failed, unreadable};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use vdo_api::types::{ChartRef, Digest};
use vdo_core::chart::{self, Chart};
use vdo_core::matrix::Index;
use vdo_core::mirror_lock::{self, Lock, MATRIX};
use vdo_oci::layout::{Layout, LayoutError};
use vdo_oci::oci::{Descriptor, Kind, Manifest, REF_NAME, media};
use vdo_oci::registry::matrix_artifact;
use vdo_oci::transfer::{Found, Tree, find_in, signature_tag};
use vdo_source::fetch::INDEX_FILE;
use vdo_source::signature::Form;

/// A bundle, or another layout.
pub(super) struct Bundle {
    pub(super) layout: Arc<Layout>,
    /// What has a name, by that.
    pub(super) names: BTreeMap<String, Descriptor>,
    /// What has none: what belongs to images, and an image alone in a layout.
    pub(super) unnamed: Vec<Descriptor>,
}

/// The matrix of a mirror.
pub(super) struct Matrix {
    /// Its files, by their paths.
    pub(super) files: BTreeMap<String, Descriptor>,
    /// What the mirror holds.
    pub(super) lock: Lock,
    /// The bytes of the index.
    pub(super) bytes: Vec<u8>,
    /// What they say.
    pub(super) index: Index,
}

impl Bundle {
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        let layout = Arc::new(Layout::open(path).map_err(|error| unreadable(&error))?);
        let (mut names, mut unnamed) = (BTreeMap::new(), Vec::new());
        for entry in layout.index().map_err(|error| unreadable(&error))?.manifests {
            match entry.annotations.get(REF_NAME) {
                Some(name) => drop(names.insert(name.clone(), entry)),
                None => unnamed.push(entry),
            }
        }
        Ok(Self { layout, names, unnamed })
    }

    /// Its matrix, if it has one.
    pub(super) fn matrix(&self) -> Result<Option<Matrix>, CliError> {
        let Some(descriptor) = self.names.get(MATRIX) else {
            return Ok(None);
        };
        let manifest: Manifest = self.layout.read_json(descriptor).map_err(|error| unreadable(&error))?;
        let read = |blob: &Descriptor| self.layout.read(blob).map_err(|error| unreadable(&error));
        Matrix::of(&manifest, &self.layout.path().display().to_string(), read).map(Some)
    }

    /// An image with what belongs to it.
    pub(super) async fn found(&self, name: &str, descriptor: &Descriptor) -> Result<Found, CliError> {
        let mut found = find_in(&self.layout, name, descriptor).await.map_err(|error| failed(&error))?;
        let tag = signature_tag(&descriptor.digest);
        if let Some(signature) = self.names.get(&signature_name(name, &descriptor.digest)) {
            let signature = find_in(&self.layout, name, signature).await.map_err(|error| failed(&error))?;
            found.tagged.push((tag, signature.tree));
        }
        Ok(found)
    }

    /// Images without a name.
    pub(super) fn alone(&self) -> Vec<&Descriptor> {
        let is_image = |entry: &&Descriptor| Kind::of(&entry.media_type) != Kind::Blob && entry.artifact_type.is_none();
        self.unnamed.iter().filter(is_image).collect()
    }
}

impl Matrix {
    /// The matrix of an artifact whose files can be read.
    pub(super) fn of(manifest: &Manifest, place: &str, read: impl Fn(&Descriptor) -> Result<Vec<u8>, CliError>) -> Result<Self, CliError> {
        let wrong = |problem: String| {
            CliError::new(
                Exit::Refused,
                format!("the matrix of {place} cannot be used: {problem}"),
                "Pull or push the mirror again.",
            )
        };
        if manifest.kind() != media::MATRIX {
            return Err(wrong(format!("it is of the type {:?}", manifest.kind())));
        }
        let files: BTreeMap<String, Descriptor> = manifest
            .files()
            .map_err(|problem| wrong(format!("it has {problem}")))?
            .into_iter()
            .collect();
        let file = |path: &str| {
            let blob = files.get(path).ok_or_else(|| wrong(format!("it has no file {path}")))?;
            read(blob)
        };
        let bytes = file(INDEX_FILE)?;
        let lock = Lock::parse(&file(mirror_lock::FILE)?, &Digest::of(&bytes)).map_err(|error| CliError::of(Exit::Refused, &error))?;
        let index = Index::parse(&bytes).map_err(|error| CliError::of(Exit::Refused, &error))?;
        Ok(Self { files, lock, bytes, index })
    }

    /// Its signature among its files.
    pub(super) fn signature(&self) -> Option<&Descriptor> {
        let file = |form: Form| form.file_of(Path::new(INDEX_FILE)).display().to_string();
        Form::ALL.into_iter().find_map(|form| self.files.get(&file(form)))
    }

    /// The package of a chart among its files.
    pub(super) fn package(&self, chart: &ChartRef) -> Option<&Descriptor> {
        self.files.values().find(|blob| blob.digest == chart.digest)
    }
}

/// What a signature that is found by a tag is called.
pub(super) fn signature_name(image: &str, digest: &Digest) -> String {
    format!("{}:{}", super::find::repository(image), signature_tag(digest))
}

/// Whether a name is one of those.
pub(super) fn is_signature(name: &str) -> bool {
    let tag = name.rsplit(':').next();
    tag.is_some_and(|tag| tag.starts_with("sha256-") && tag.ends_with(".sig"))
}

/// Writes the matrix with these files as an artifact.
pub(super) fn write_matrix(layout: &Layout, files: &BTreeMap<String, Vec<u8>>) -> Result<Descriptor, LayoutError> {
    let artifact = matrix_artifact(files);
    layout.write(media::EMPTY, media::EMPTY_JSON)?;
    for file in &artifact.files {
        layout.write(&file.media_type, &file.bytes)?;
    }
    let mut written = layout.write_json(media::MANIFEST, &artifact.manifest())?;
    written.artifact_type = Some(media::MATRIX.to_owned());
    Ok(named(&written, MATRIX))
}

/// How `index.json` lists what has a name.
pub(super) fn named(descriptor: &Descriptor, name: &str) -> Descriptor {
    let mut descriptor = descriptor.clone();
    descriptor.annotations.insert(REF_NAME.to_owned(), name.to_owned());
    descriptor.platform = None;
    descriptor
}

/// A chart from its package.
pub(super) fn opened(package: &[u8]) -> Result<Chart, CliError> {
    chart::open(package).map_err(|error| CliError::of(Exit::Refused, &error))
}

/// Everything that trees name, each descriptor once.
pub(super) fn all_of<'a>(trees: impl Iterator<Item = &'a Tree>) -> BTreeMap<Digest, u64> {
    let mut all = BTreeMap::new();
    for tree in trees {
        all.extend(tree.blobs.iter().map(|(digest, blob)| (digest.clone(), blob.size)));
        all.extend(tree.documents.iter().map(|(document, _)| (document.digest.clone(), document.size)));
    }
    all
}
