//! A folder with OCI images and artifacts: `oci-layout`, `index.json` and one file for each blob, named by its digest.
//!
//! # Guarantees
//! A blob is in its place whole or not at all. Bytes are given out only when size and digest are those of their descriptor.

mod blob;
mod error;

pub use blob::BlobWriter;
pub use error::LayoutError;

use crate::oci::{Descriptor, Index, Manifest, media};
use error::io;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// What the file `oci-layout` holds.
const MARK: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;

/// The largest manifest, index or configuration that is read, as registries limit them: 4 MiB.
const DOCUMENT_LIMIT: u64 = 4 << 20;

/// An image layout in a folder.
#[derive(Debug)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Begins an empty layout. The folder may exist; it must not hold a layout already.
    ///
    /// # Errors
    /// When it holds one, or cannot be written.
    pub fn create(root: &Path) -> Result<Self, LayoutError> {
        let mark = root.join("oci-layout");
        if mark.exists() {
            return Err(LayoutError::Exists { root: root.to_owned() });
        }
        let blobs = root.join("blobs").join("sha256");
        fs::create_dir_all(&blobs).map_err(io(&blobs))?;
        let layout = Self { root: root.to_owned() };
        layout.set_index(&Index::new(Vec::new()))?;
        // Last: what has the mark is a layout.
        fs::write(&mark, MARK).map_err(io(&mark))?;
        Ok(layout)
    }

    /// Opens an existing layout.
    ///
    /// # Errors
    /// When the folder holds none.
    pub fn open(root: &Path) -> Result<Self, LayoutError> {
        let mark = root.join("oci-layout");
        let text = fs::read(&mark).map_err(|source| LayoutError::None {
            root: root.to_owned(),
            source,
        })?;
        let version: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        if version.get("imageLayoutVersion").and_then(|version| version.as_str()) != Some("1.0.0") {
            return Err(LayoutError::Version { path: mark });
        }
        Ok(Self { root: root.to_owned() })
    }

    /// Begins a blob that is too large to be held in memory.
    ///
    /// # Errors
    /// When its file cannot be created.
    pub fn blob(&self) -> Result<BlobWriter, LayoutError> {
        BlobWriter::new(&self.root)
    }

    /// Stores a blob.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, media_type: &str, bytes: &[u8]) -> Result<Descriptor, LayoutError> {
        let mut blob = self.blob()?;
        blob.write_all(bytes).map_err(io(&self.root))?;
        blob.finish(media_type)
    }

    /// Stores a manifest, an index or a configuration.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_json<T: Serialize>(&self, media_type: &str, document: &T) -> Result<Descriptor, LayoutError> {
        let bytes = serde_json::to_vec(document).map_err(|source| LayoutError::Json {
            what: media_type.to_owned(),
            source,
        })?;
        self.write(media_type, &bytes)
    }

    /// A blob, when it is the one described.
    ///
    /// # Errors
    /// When it is missing, or its size or digest differ.
    pub fn read(&self, descriptor: &Descriptor) -> Result<Vec<u8>, LayoutError> {
        let path = self.path(descriptor);
        let file = fs::File::open(&path).map_err(io(&path))?;
        let mut bytes = Vec::new();
        let limit = descriptor.size.saturating_add(1);
        file.take(limit).read_to_end(&mut bytes).map_err(io(&path))?;
        descriptor.check(&bytes)?;
        Ok(bytes)
    }

    /// A manifest, an index or a configuration.
    ///
    /// # Errors
    /// As [`Layout::read`], and when it is not JSON of that type or larger than any registry accepts.
    pub fn read_json<T: DeserializeOwned>(&self, descriptor: &Descriptor) -> Result<T, LayoutError> {
        let what = || format!("{} {}", descriptor.media_type, descriptor.digest);
        if descriptor.size > DOCUMENT_LIMIT {
            return Err(LayoutError::TooLarge {
                what: what(),
                limit: DOCUMENT_LIMIT,
            });
        }
        serde_json::from_slice(&self.read(descriptor)?).map_err(|source| LayoutError::Json { what: what(), source })
    }

    /// What the layout holds.
    ///
    /// # Errors
    /// When `index.json` cannot be read.
    pub fn index(&self) -> Result<Index, LayoutError> {
        let path = self.root.join("index.json");
        let bytes = fs::read(&path).map_err(io(&path))?;
        serde_json::from_slice(&bytes).map_err(|source| LayoutError::Json {
            what: path.display().to_string(),
            source,
        })
    }

    /// Says what the layout holds. The blobs have to be there already.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set_index(&self, index: &Index) -> Result<(), LayoutError> {
        let path = self.root.join("index.json");
        let bytes = serde_json::to_vec(index).map_err(|source| LayoutError::Json {
            what: "index.json".to_owned(),
            source,
        })?;
        blob::replace(&self.root, &path, &bytes)
    }

    /// Reads everything that `index.json` leads to, each blob once. Returns their number.
    ///
    /// # Errors
    /// With the first blob that is missing or changed.
    pub fn verify(&self) -> Result<usize, LayoutError> {
        let mut open = self.index()?.manifests;
        let mut seen = BTreeSet::new();
        while let Some(descriptor) = open.pop() {
            if !seen.insert(descriptor.digest.clone()) {
                continue;
            }
            match descriptor.media_type.as_str() {
                media::INDEX => open.extend(self.read_json::<Index>(&descriptor)?.manifests),
                media::MANIFEST => {
                    let manifest: Manifest = self.read_json(&descriptor)?;
                    open.push(manifest.config);
                    open.extend(manifest.layers);
                }
                _ => drop(self.read(&descriptor)?),
            }
        }
        Ok(seen.len())
    }

    fn path(&self, descriptor: &Descriptor) -> PathBuf {
        self.root.join("blobs").join("sha256").join(descriptor.digest.hex())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oci::BlobError;

    fn layout() -> (tempfile::TempDir, Layout, Descriptor) {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = Layout::create(folder.path()).expect("a layout");
        let layer = layout.write("text/plain", b"a layer").expect("a blob");
        let config = layout.write(media::EMPTY, b"{}").expect("a blob");
        let manifest = Manifest::image(config, vec![layer.clone()]);
        let manifest = layout.write_json(media::MANIFEST, &manifest).expect("a manifest");
        layout.set_index(&Index::new(vec![manifest])).expect("an index");
        (folder, layout, layer)
    }

    #[test]
    fn layout_everything_written_is_read_and_verified() {
        let (folder, layout, layer) = layout();
        assert_eq!(layout.verify().expect("good blobs"), 3);
        let opened = Layout::open(folder.path()).expect("a layout");
        assert_eq!(opened.read(&layer).expect("the layer"), b"a layer");
        let names: Vec<_> = fs::read_dir(folder.path()).expect("a folder").collect();
        assert_eq!(names.len(), 3, "{names:?}");
    }

    #[test]
    fn layout_changed_or_cut_or_missing_blob_is_rejected() {
        let (_folder, layout, layer) = layout();
        let path = layout.path(&layer);
        let flipped = |error| matches!(error, LayoutError::Blob(BlobError::Digest { .. }));
        let sized = |error| matches!(error, LayoutError::Blob(BlobError::Size { .. }));
        fs::write(&path, b"b layer").expect("a file");
        assert!(flipped(layout.verify().expect_err("a changed blob")));
        for wrong in [&b"a laye"[..], b"a layer and more"] {
            fs::write(&path, wrong).expect("a file");
            assert!(sized(layout.verify().expect_err("a cut blob")));
        }
        fs::remove_file(&path).expect("a file");
        assert!(matches!(layout.verify(), Err(LayoutError::Io { .. })));
    }

    #[test]
    fn layout_is_not_begun_where_one_is_and_not_opened_where_none_is() {
        let (folder, ..) = layout();
        assert!(matches!(Layout::create(folder.path()), Err(LayoutError::Exists { .. })));
        assert!(matches!(Layout::open(&folder.path().join("blobs")), Err(LayoutError::None { .. })));
        fs::write(folder.path().join("oci-layout"), r#"{"imageLayoutVersion":"2.0.0"}"#).expect("a file");
        assert!(matches!(Layout::open(folder.path()), Err(LayoutError::Version { .. })));
    }

    #[test]
    fn layout_blob_that_is_not_finished_leaves_nothing() {
        let (folder, layout, _) = layout();
        let mut blob = layout.blob().expect("a blob");
        blob.write_all(b"half").expect("bytes");
        drop(blob);
        let count = |folder: &Path| fs::read_dir(folder).expect("a folder").count();
        assert_eq!((count(folder.path()), count(&folder.path().join("blobs/sha256"))), (3, 3));
    }
}
