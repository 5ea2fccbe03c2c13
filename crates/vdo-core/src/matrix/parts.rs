// SPDX-License-Identifier: Apache-2.0
//! Splits an index with its signature and charts into parts for ConfigMaps (`vdoctl matrix load`), and joins these parts (pure).
//!
//! A list of contents names every file and its parts. Parts are named after their content, so while a list is replaced, readers never see a
//! mixture of two matrices.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use vdo_api::types::{Digest, Remedy, from_json};

/// Bytes of a part. A ConfigMap may have 1 MiB, and this many are 1 MiB in the base64 of a request.
const PART: usize = 768 * 1024;
/// Of the list of contents.
const VERSION: u32 = 1;
/// Parts of all files. A whole matrix with 52 charts has 61.
const MOST_PARTS: usize = 1024;
/// Bytes of all parts, packed: that matrix has 1 MiB.
const MOST_BYTES: usize = 16 << 20;

/// A matrix that was taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// The list of contents, as text.
    pub contents: String,
    /// The parts, each by the name that the list has for it.
    pub parts: BTreeMap<String, Vec<u8>>,
}

/// A matrix that was put together: files that are packed until one of them is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shelf(BTreeMap<String, Packed>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Packed {
    digest: Digest,
    bytes: Vec<u8>,
}

/// The parts do not make a matrix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartsError {
    /// The list of contents is none.
    #[error("the list of the matrix files cannot be read: {0}")]
    Contents(String),
    /// A part is not there.
    #[error("part {number} of {of} of the matrix file {file} is missing")]
    Missing {
        /// The file.
        file: String,
        /// Which part.
        number: usize,
        /// Of how many.
        of: usize,
    },
    /// A part has other content than the list says.
    #[error("part {number} of {of} of the matrix file {file} was cut off or changed")]
    Changed {
        /// The file.
        file: String,
        /// Which part.
        number: usize,
        /// Of how many.
        of: usize,
    },
    /// All parts are as the list says, and the file is not.
    #[error("the matrix file {0} does not match the list of the matrix files")]
    File(String),
    /// A file is larger than anything of its kind.
    #[error("the matrix file {file} is larger than {limit} bytes")]
    TooLarge {
        /// The file.
        file: String,
        /// The limit.
        limit: usize,
    },
}

impl Remedy for PartsError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("Load the matrix again with vdoctl matrix load.".into())
    }
}

/// The list of contents.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    version: u32,
    files: BTreeMap<String, Listed>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    digest: String,
    size: usize,
    parts: Vec<String>,
}

/// What a part is called: the beginning of its digest, which is enough to tell parts apart and says nothing of their being right.
fn name(digest: &Digest) -> String {
    digest.hex()[..16].to_owned()
}

impl Parts {
    /// These files, by their paths beside the index. The same files always give the same parts.
    #[must_use]
    pub fn of(files: &BTreeMap<String, Vec<u8>>) -> Self {
        let mut parts = BTreeMap::new();
        let mut listed = |(path, bytes): (&String, &Vec<u8>)| {
            let mut packer = GzEncoder::new(Vec::new(), Compression::best());
            // Writing into memory does not fail.
            let packed = packer.write_all(bytes).and_then(|()| packer.finish()).unwrap_or_default();
            let digests = packed.chunks(PART).map(|part| {
                let digest = Digest::of(part);
                parts.insert(name(&digest), part.to_vec());
                digest.to_string()
            });
            let entry = Listed {
                parts: digests.collect(),
                digest: Digest::of(bytes).to_string(),
                size: bytes.len(),
            };
            (path.clone(), entry)
        };
        let contents = Contents {
            version: VERSION,
            files: files.iter().map(&mut listed).collect(),
        };
        Self {
            contents: serde_json::to_string_pretty(&contents).unwrap_or_default() + "\n",
            parts,
        }
    }
}

impl Contents {
    fn parse(text: &str) -> Result<Self, PartsError> {
        let contents: Self = from_json(text).map_err(|error| PartsError::Contents(error.to_string()))?;
        match contents.version {
            VERSION => contents.checked(),
            other => Err(PartsError::Contents(format!(
                "it has version {other}, but this build supports version {VERSION}"
            ))),
        }
    }

    /// The same, if what it lists can be put together: before any part is read.
    fn checked(self) -> Result<Self, PartsError> {
        let wrong = |what: String| Err(PartsError::Contents(what));
        if self.files.values().map(|listed| listed.parts.len()).sum::<usize>() > MOST_PARTS {
            return wrong(format!("it lists more than {MOST_PARTS} parts"));
        }
        for (file, listed) in &self.files {
            let mut seen = BTreeSet::new();
            if let Some(twice) = listed.parts.iter().find(|part| !seen.insert(*part)) {
                return wrong(format!("it lists the part {twice} of the matrix file {file} twice"));
            }
        }
        Ok(self)
    }
}

fn digest(text: &str) -> Result<Digest, PartsError> {
    text.parse()
        .map_err(|error: vdo_api::types::ParseDigestError| PartsError::Contents(error.to_string()))
}

impl Shelf {
    /// The files of a list of contents; `part` finds a part by its name. Each part has to be what the list says.
    ///
    /// # Errors
    /// When something is missing, was cut off or changed.
    pub fn read(contents: &str, part: impl Fn(&str) -> Option<Vec<u8>>) -> Result<Self, PartsError> {
        let (mut files, mut room) = (BTreeMap::new(), MOST_BYTES);
        for (file, listed) in Contents::parse(contents)?.files {
            let (of, mut bytes) = (listed.parts.len(), Vec::new());
            for (at, text) in listed.parts.iter().enumerate() {
                let (digest, number) = (digest(text)?, at + 1);
                let found = part(&name(&digest));
                let Some(found) = found else {
                    return Err(PartsError::Missing { file, number, of });
                };
                room = room
                    .checked_sub(found.len())
                    .ok_or_else(|| PartsError::Contents(format!("its parts together are larger than {} MiB", MOST_BYTES >> 20)))?;
                if Digest::of(&found) != digest {
                    return Err(PartsError::Changed { file, number, of });
                }
                bytes.extend(found);
            }
            let digest = digest(&listed.digest)?;
            files.insert(file, Packed { digest, bytes });
        }
        Ok(Self(files))
    }

    /// A file, if there is one at this path.
    ///
    /// # Errors
    /// When it is larger than `limit` bytes, or is not what the list says.
    pub fn file(&self, path: &str, limit: usize) -> Result<Option<Vec<u8>>, PartsError> {
        let Some(packed) = self.0.get(path) else { return Ok(None) };
        let mut bytes = Vec::new();
        let read = GzDecoder::new(&*packed.bytes).take(limit as u64 + 1).read_to_end(&mut bytes);
        if bytes.len() > limit {
            return Err(PartsError::TooLarge { file: path.into(), limit });
        }
        match read {
            Ok(_) if Digest::of(&bytes) == packed.digest => Ok(Some(bytes)),
            _ => Err(PartsError::File(path.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that cannot be compressed.
    fn noise(count: usize) -> Vec<u8> {
        let mut next = 1_u64;
        let mut byte = || {
            next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (next >> 56) as u8
        };
        (0..count).map(|_| byte()).collect()
    }

    fn files() -> BTreeMap<String, Vec<u8>> {
        let chart = noise(2 * PART + 1000);
        BTreeMap::from([
            ("index.yaml".to_owned(), b"drivers: {}".to_vec()),
            ("charts/a-1.0.0.tgz".to_owned(), chart),
        ])
    }

    #[test]
    fn parts_put_together_are_the_files_again() {
        let files = files();
        let parts = Parts::of(&files);
        assert_eq!(parts.parts.len(), 4, "one of the index, three of the chart");
        assert!(parts.parts.values().all(|part| part.len() <= PART));
        let megabyte = BTreeMap::from([("file".to_owned(), noise(1 << 20))]);
        assert_eq!(Parts::of(&megabyte).parts.len(), 2, "a ConfigMap takes less than 1 MiB");
        assert_eq!(parts, Parts::of(&files), "the same files give the same parts");
        let shelf = Shelf::read(&parts.contents, |name| parts.parts.get(name).cloned()).expect("all of it");
        for (path, bytes) in &files {
            assert_eq!(shelf.file(path, bytes.len()).expect("it is whole").as_ref(), Some(bytes), "{path}");
        }
        assert_eq!(shelf.file("charts/b-1.0.0.tgz", 1).expect("no error"), None);
        let large = shelf.file("charts/a-1.0.0.tgz", 1000).expect_err("it is too large").to_string();
        assert_eq!(large, "the matrix file charts/a-1.0.0.tgz is larger than 1000 bytes");
    }

    #[test]
    fn parts_missing_cut_off_or_changed_are_refused() {
        let parts = Parts::of(&files());
        let largest = parts.parts.iter().max_by_key(|(_, part)| part.len()).expect("a part").0;
        let contents = Contents::parse(&parts.contents).expect("a list");
        let listed = contents.files["charts/a-1.0.0.tgz"].parts.iter();
        let number = 1 + listed.take_while(|digest| !digest.contains(largest)).count();
        let read = |change: &dyn Fn(&mut Vec<u8>) -> bool| {
            let part = |name: &str| {
                let mut part = parts.parts.get(name)?.clone();
                (name != largest || change(&mut part)).then_some(part)
            };
            Shelf::read(&parts.contents, part).err().map(|error| error.to_string())
        };
        let said = |found: Option<String>, what: &str| {
            let found = found.expect(what);
            assert_eq!(found, format!("part {number} of 3 of the matrix file charts/a-1.0.0.tgz {what}"));
        };
        said(read(&|_| false), "is missing");
        said(
            read(&|part| {
                part.truncate(1000);
                true
            }),
            "was cut off or changed",
        );
        said(
            read(&|part| {
                part[9] ^= 1;
                true
            }),
            "was cut off or changed",
        );
        assert_eq!(read(&|_| true), None);
    }

    /// What a list makes of a few parts is bounded before the parts are read.
    #[test]
    fn list_that_repeats_parts_or_lists_too_many_is_refused_before_they_are_read() {
        let part = noise(PART);
        let digest = Digest::of(&part).to_string();
        let list = |files: usize, parts: &[String]| {
            let files: BTreeMap<String, Listed> = (0..files)
                .map(|number| {
                    let listed = Listed {
                        digest: digest.clone(),
                        size: 1,
                        parts: parts.to_vec(),
                    };
                    (format!("f{number}"), listed)
                })
                .collect();
            serde_json::to_string(&Contents { version: VERSION, files }).expect("JSON")
        };
        let read = |contents: &str| {
            let mut given = std::cell::Cell::new(0);
            let found = Shelf::read(contents, |_| {
                given.set(given.get() + 1);
                Some(part.clone())
            });
            (found.err().map(|error| error.to_string()), *given.get_mut())
        };
        let others: Vec<String> = (0..=MOST_PARTS)
            .map(|number| Digest::of(&number.to_le_bytes()).to_string())
            .collect();
        let twice = read(&list(1, &vec![digest.clone(); 400]));
        assert!(twice.0.expect("an error").contains("of the matrix file f0 twice") && twice.1 == 0);
        let many = read(&list(1, &others));
        assert!(many.0.expect("an error").contains("more than 1024 parts") && many.1 == 0);
        // One part in many files is held once for each.
        let large = read(&list(400, std::slice::from_ref(&digest)));
        assert!(large.0.expect("an error").contains("larger than 16 MiB"));
        assert_eq!(large.1, MOST_BYTES / PART + 1);
        assert_eq!(read(&list(4, std::slice::from_ref(&digest))).0, None);
    }

    #[test]
    fn list_of_contents_that_is_none_or_lies_is_refused() {
        let parts = Parts::of(&BTreeMap::from([("index.yaml".to_owned(), b"drivers: {}".to_vec())]));
        let other = Digest::of(b"drivers: []").to_string();
        let lies = parts.contents.replace(&Digest::of(b"drivers: {}").to_string(), &other);
        for (text, said) in [
            ("[", "cannot be read"),
            (&*parts.contents.replace("\"version\": 1", "\"version\": 2"), "it has version 2"),
            (&parts.contents.replace("sha256:", "md5:"), "is not a digest"),
            (&lies, "does not match the list of the matrix files"),
        ] {
            let found = Shelf::read(text, |name| parts.parts.get(name).cloned()).and_then(|shelf| shelf.file("index.yaml", 1000));
            let found = found.expect_err(said).to_string();
            assert!(found.contains(said), "{found}");
        }
    }
}
