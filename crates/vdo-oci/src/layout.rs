// SPDX-License-Identifier: Apache-2.0
//! Reads and writes an OCI image layout: a folder with `oci-layout`, `index.json` and one file for each blob, or a tar archive of it.
//!
//! # Guarantees
//! A blob is stored completely or not at all. Bytes are returned only when size and digest are those of their descriptor.

mod archive;
mod blob;
mod error;
mod lock_and_prune;
mod partial;
mod reader;
mod store;

pub use blob::BlobWriter;
pub use error::LayoutError;
pub use lock_and_prune::Swept;
pub use partial::Partial;
pub use reader::BlobFile;

use crate::oci::{Descriptor, Index, Kind, REF_NAME, children};
use error::io;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;
use store::Store;
use vdo_api::types::{Digest, from_json, total};

/// What the file `oci-layout` holds.
pub const MARK: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;

/// Where the blobs are.
const BLOBS: &str = "blobs/sha256";

/// The largest manifest, index or configuration that is read, as registries limit them: 4 MiB.
const DOCUMENT_LIMIT: u64 = 4 << 20;

/// The largest `index.json`: a hundred thousand images.
const INDEX_LIMIT: u64 = 32 << 20;

/// An image layout.
#[derive(Debug)]
pub struct Layout {
    store: Store,
}

fn blob_name(digest: &Digest) -> String {
    format!("{BLOBS}/{}", digest.hex())
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
        let blobs = root.join(BLOBS);
        fs::create_dir_all(&blobs).map_err(io(&blobs))?;
        let layout = Self {
            store: Store::Folder(root.to_owned()),
        };
        layout.set_index(&Index::new(Vec::new()))?;
        // Last: what has the mark is a layout.
        blob::replace(root, &mark, MARK.as_bytes())?;
        Ok(layout)
    }

    /// Opens an existing layout: a folder, or a tar archive, which is only read.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(root: &Path) -> Result<Self, LayoutError> {
        let store = match root.is_file() {
            true => Store::tar(root)?,
            false => Store::Folder(root.to_owned()),
        };
        let mut text = Vec::new();
        let read = store.open("oci-layout").and_then(|file| {
            let read = file.take(DOCUMENT_LIMIT).read_to_end(&mut text);
            read.map_err(io(&store.name("oci-layout")))
        });
        match read {
            Ok(_) => {}
            Err(LayoutError::Io { source, .. }) => {
                return Err(LayoutError::None {
                    root: root.to_owned(),
                    source,
                });
            }
            Err(other) => return Err(other),
        }
        let version: serde_json::Value = from_json(&text).unwrap_or_default();
        if version.get("imageLayoutVersion").and_then(|version| version.as_str()) != Some("1.0.0") {
            return Err(LayoutError::Version {
                path: store.name("oci-layout"),
            });
        }
        Ok(Self { store })
    }

    /// The folder or the archive.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// Begins a blob that is too large to be held in memory.
    ///
    /// # Errors
    /// When its file cannot be created.
    pub fn blob(&self) -> Result<BlobWriter, LayoutError> {
        BlobWriter::new(self.store.folder()?)
    }

    /// Stores a blob.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, media_type: &str, bytes: &[u8]) -> Result<Descriptor, LayoutError> {
        let mut blob = self.blob()?;
        blob.append(bytes)?;
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

    /// A blob, when it is the one described. For what fits into memory.
    ///
    /// # Errors
    /// When it is missing, or its size or digest differ.
    pub fn read(&self, descriptor: &Descriptor) -> Result<Vec<u8>, LayoutError> {
        let mut blob = self.open_blob(descriptor)?;
        let (mut bytes, mut piece) = (Vec::new(), Vec::new());
        while blob.next(&mut piece)? {
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    /// A manifest or an index, as it is.
    ///
    /// # Errors
    /// As [`Layout::read`], and when it is larger than any registry accepts.
    pub fn document(&self, descriptor: &Descriptor) -> Result<Vec<u8>, LayoutError> {
        if descriptor.size > DOCUMENT_LIMIT {
            return Err(LayoutError::TooLarge {
                what: format!("{} {}", descriptor.media_type, descriptor.digest),
                limit: DOCUMENT_LIMIT,
            });
        }
        self.read(descriptor)
    }

    /// A manifest, an index or a configuration.
    ///
    /// # Errors
    /// As [`Layout::read`], and when it is not JSON of that type or larger than any registry accepts.
    pub fn read_json<T: DeserializeOwned>(&self, descriptor: &Descriptor) -> Result<T, LayoutError> {
        from_json(&self.document(descriptor)?).map_err(json(descriptor))
    }

    /// What the layout holds.
    ///
    /// # Errors
    /// When `index.json` cannot be read.
    pub fn index(&self) -> Result<Index, LayoutError> {
        let path = self.store.name("index.json");
        let mut bytes = Vec::new();
        let file = self.store.open("index.json")?;
        file.take(INDEX_LIMIT + 1).read_to_end(&mut bytes).map_err(io(&path))?;
        let what = path.display().to_string();
        if bytes.len() as u64 > INDEX_LIMIT {
            return Err(LayoutError::TooLarge { what, limit: INDEX_LIMIT });
        }
        from_json(&bytes).map_err(|source| LayoutError::Json { what, source })
    }

    /// Says what the layout holds. The blobs have to be there already.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set_index(&self, index: &Index) -> Result<(), LayoutError> {
        let root = self.store.folder()?;
        let bytes = serde_json::to_vec(index).map_err(|source| LayoutError::Json {
            what: "index.json".to_owned(),
            source,
        })?;
        blob::replace(root, &root.join("index.json"), &bytes)
    }

    /// Reads everything that `index.json` leads to, each blob once. Returns their number.
    ///
    /// # Errors
    /// With the first blob that is missing or changed.
    pub fn verify(&self) -> Result<usize, LayoutError> {
        let mut sound = BTreeSet::new();
        for root in self.index()?.manifests {
            if let Some((_, fault)) = self.faults(&root, &mut sound).into_iter().next() {
                return Err(fault);
            }
        }
        Ok(sound.len())
    }

    /// Everything below a manifest that is missing or changed, with what is wrong. Blobs that are `sound` are not read again; those that turn out
    /// to be so are added to them.
    pub fn faults(&self, root: &Descriptor, sound: &mut BTreeSet<Digest>) -> Vec<(Descriptor, LayoutError)> {
        let (mut faults, mut seen) = (Vec::new(), BTreeSet::new());
        let mut open = vec![root.clone()];
        while let Some(descriptor) = open.pop() {
            let is_blob = Kind::of(&descriptor.media_type) == Kind::Blob;
            if !seen.insert(descriptor.digest.clone()) || (is_blob && sound.contains(&descriptor.digest)) {
                continue;
            }
            match self.below(&descriptor) {
                Ok(below) => {
                    open.extend(below);
                    sound.insert(descriptor.digest);
                }
                Err(error) => faults.push((descriptor, error)),
            }
        }
        faults
    }

    /// Bytes of these blobs together.
    #[must_use]
    pub fn bytes(&self, blobs: &BTreeSet<Digest>) -> u64 {
        total(blobs.iter().filter_map(|digest| self.store.size(&blob_name(digest))))
    }

    /// What belongs to a manifest: signatures, bills of materials. They are listed without a name.
    ///
    /// # Errors
    /// When a manifest cannot be read.
    pub fn referrers(&self, subject: &Digest) -> Result<Vec<Descriptor>, LayoutError> {
        let mut found = self.index()?.manifests;
        found.retain(|entry| !entry.annotations.contains_key(REF_NAME) && Kind::of(&entry.media_type) != Kind::Blob);
        let mut referrers = Vec::new();
        for entry in found {
            if self.subject(&entry)?.as_ref() == Some(subject) {
                referrers.push(entry);
            }
        }
        Ok(referrers)
    }

    /// The manifest to which another one belongs.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn subject(&self, entry: &Descriptor) -> Result<Option<Digest>, LayoutError> {
        let about: About = self.read_json(entry)?;
        Ok(about.subject.map(|subject| subject.digest))
    }

    /// Adds everything that a manifest leads to. Blobs are not read.
    ///
    /// # Errors
    /// When a manifest is missing or changed.
    pub fn reach(&self, root: &Descriptor, found: &mut BTreeSet<Digest>) -> Result<(), LayoutError> {
        let mut open = vec![root.clone()];
        while let Some(descriptor) = open.pop() {
            if found.insert(descriptor.digest.clone()) && Kind::of(&descriptor.media_type) != Kind::Blob {
                open.extend(self.children(&descriptor)?);
            }
        }
        Ok(())
    }

    /// What a manifest or a list names. A blob, which names nothing, is read as a whole.
    fn below(&self, descriptor: &Descriptor) -> Result<Vec<Descriptor>, LayoutError> {
        match Kind::of(&descriptor.media_type) {
            Kind::Blob => self.check(descriptor).map(|()| Vec::new()),
            _ => self.children(descriptor),
        }
    }

    fn children(&self, descriptor: &Descriptor) -> Result<Vec<Descriptor>, LayoutError> {
        children(&descriptor.media_type, &self.document(descriptor)?).map_err(json(descriptor))
    }
}

/// What a manifest says of itself to those who list it.
#[derive(Deserialize)]
struct About {
    subject: Option<Descriptor>,
}

fn json(descriptor: &Descriptor) -> impl FnOnce(serde_json::Error) -> LayoutError {
    let what = format!("{} {}", descriptor.media_type, descriptor.digest);
    move |source| LayoutError::Json { what, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oci::{BlobError, Manifest, media};
    use std::io::Write;

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
        let (folder, layout, layer) = layout();
        let path = folder.path().join(blob_name(&layer.digest));
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
