// SPDX-License-Identifier: Apache-2.0
//! Writes and reads the tar.gz archive of a support bundle, with limits on its size and on each file.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::Component;

/// The most that is put in, and that is read, in bytes before packing.
const MOST: usize = 64 << 20;

/// The most of one file.
const FILE: usize = 4 << 20;

/// The files of a bundle by their paths below its folder.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// An archive that is being written.
pub(super) struct Archive {
    folder: String,
    files: Files,
    size: usize,
    left_out: Vec<String>,
}

impl Archive {
    pub(super) fn new(folder: String) -> Self {
        Self {
            folder,
            files: Files::new(),
            size: 0,
            left_out: Vec::new(),
        }
    }

    /// Adds a file; of one that is too long its end, where what happened last is. Once the archive is full, nothing but small files is added.
    pub(super) fn add(&mut self, path: &str, content: &[u8]) {
        let content = match content.len() {
            long if long > FILE => {
                self.left_out.push(format!("the first {} bytes of {path}", long - FILE));
                &content[long - FILE..]
            }
            _ => content,
        };
        if self.size + content.len() > MOST {
            self.left_out.push(path.to_owned());
            return;
        }
        self.size += content.len();
        self.files.insert(path.to_owned(), content.to_vec());
    }

    /// What found no room.
    pub(super) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    pub(super) fn files(&self) -> usize {
        self.files.len()
    }

    pub(super) fn finish(self) -> io::Result<Vec<u8>> {
        let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
        for (path, content) in &self.files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o600);
            builder.append_data(&mut header, format!("{}/{path}", self.folder), content.as_slice())?;
        }
        builder.into_inner()?.finish()
    }
}

/// Reads an archive to its end.
///
/// # Errors
/// When it is not whole, not an archive, or longer than one can be.
pub(super) fn open(bytes: &[u8]) -> io::Result<Files> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut unpacked = Vec::new();
    // Blocks and headers of the archive are a part of it.
    let room = 2 * MOST as u64;
    GzDecoder::new(bytes).take(room).read_to_end(&mut unpacked)?;
    if unpacked.len() as u64 == room {
        return Err(wrong("the archive is too long"));
    }
    let mut archive = tar::Archive::new(unpacked.as_slice());
    let mut files = Files::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path()?.into_owned();
        let mut parts = path.components();
        // The folder is called after the cluster.
        let (Some(Component::Normal(_)), rest) = (parts.next(), parts.as_path()) else {
            return Err(wrong("a file in the archive is outside the folder of the bundle"));
        };
        let name = rest.to_str().ok_or_else(|| wrong("a file in the archive has no name"))?.to_owned();
        if entry.size() > FILE as u64 {
            return Err(wrong("a file in the archive is too long"));
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        files.insert(name, content);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_keeps_the_end_of_long_files_and_says_what_it_left_out() {
        let mut archive = Archive::new("b".into());
        let mut long = vec![b'a'; FILE];
        long.extend(b"end");
        archive.add("log", &long);
        for number in 0..20 {
            archive.add(&format!("full{number}"), &vec![b'x'; FILE]);
        }
        assert!(archive.left_out().iter().any(|line| line == "the first 3 bytes of log"));
        assert!(archive.left_out().iter().any(|line| line == "full19"), "{:?}", archive.left_out());
        let files = open(&archive.finish().expect("an archive")).expect("files");
        assert!(files["log"].ends_with(b"end") && files["log"].len() == FILE && !files.contains_key("full19"));
    }
}
