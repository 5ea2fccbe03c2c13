// SPDX-License-Identifier: Apache-2.0
//! Writes files as a reproducible gzipped tar archive: the layer of an image, and the `.tar.gz` archives of a release.
//!
//! The format is that of Go's archive/tar, which buildah uses: plain ustar, folders before their content, the kind of file in the mode as
//! well. So an image that buildah builds from the same files has the same layer.

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use std::collections::BTreeMap;
use std::io::Write;
use tar::{EntryType, Header};
use vdo_api::types::{Digest, Hasher};

/// A file of the image.
pub struct File {
    pub bytes: Vec<u8>,
    pub executable: bool,
}

/// Digest of the layer before compression, and its size in bytes.
pub struct Unpacked {
    pub diff_id: Digest,
    pub size: u64,
}

/// Writes the files, gzipped, with this modification time in seconds since 1970. Every file belongs to root.
pub fn write(files: &BTreeMap<String, File>, mtime: u64, to: &mut impl Write) -> Result<Unpacked> {
    // No name, no time; the system is "unknown".
    let gzip = GzBuilder::new().operating_system(255).write(to, Compression::best());
    let mut archive = tar::Builder::new(Counted {
        inner: gzip,
        hasher: Hasher::default(),
        size: 0,
    });
    let mut entries: BTreeMap<String, Option<&File>> = BTreeMap::new();
    for (path, file) in files {
        entries.extend(path.match_indices('/').map(|(at, _)| (path[..=at].to_owned(), None)));
        entries.insert(path.clone(), Some(file));
    }
    for (path, file) in entries {
        let mut header = Header::new_ustar();
        let (kind, mode, bytes) = match file {
            None => (EntryType::Directory, 0o040_755, &[][..]),
            Some(file) if file.executable => (EntryType::Regular, 0o100_755, file.bytes.as_slice()),
            Some(file) => (EntryType::Regular, 0o100_644, file.bytes.as_slice()),
        };
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(mtime);
        header.set_size(bytes.len() as u64);
        header.set_device_major(0)?;
        header.set_device_minor(0)?;
        header
            .set_path(&path)
            .with_context(|| format!("{path} is too long for the layer"))?;
        header.set_cksum();
        // Six digits, a zero and a space, as Go has it; the crate writes seven digits.
        let sum = format!("{:06o}\0 ", header.cksum()?);
        let place = header.as_ustar_mut().context("the header is not ustar")?;
        place.cksum = *sum.as_bytes().first_chunk().context("the sum is too short")?;
        archive
            .append(&header, bytes)
            .with_context(|| format!("cannot add {path} to the layer"))?;
    }
    let counted = archive.into_inner()?;
    counted.inner.finish()?;
    Ok(Unpacked {
        diff_id: counted.hasher.finish(),
        size: counted.size,
    })
}

struct Counted<W> {
    inner: W,
    hasher: Hasher,
    size: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}
