// SPDX-License-Identifier: Apache-2.0
//! Reads the trusted public keys from a file or a folder, at every use.

use super::FetchError;
use super::directory::{SMALL_LIMIT, read};
use crate::signature::{PublicKeys, SignatureError};
use std::path::{Path, PathBuf};
use vdo_api::api::chain;

/// A file with public keys, or a folder of such files: a ConfigMap or Secret that is mounted. It is read again whenever it is asked, so that
/// a key is trusted, or is not any more, without a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyStore(pub PathBuf);

impl KeyStore {
    /// The keys that are trusted now.
    ///
    /// # Errors
    /// When they cannot be read, or there is none: then nothing is trusted.
    pub fn keys(&self) -> Result<PublicKeys, SignatureError> {
        let text = self.text().map_err(|error| SignatureError::PublicKeys(chain(&error)))?;
        PublicKeys::parse(&text)
    }

    fn text(&self) -> Result<Vec<u8>, FetchError> {
        let mut text = Vec::new();
        for file in files(&self.0)? {
            text.extend(read(&file, SMALL_LIMIT)?);
            text.push(b'\n');
        }
        Ok(text)
    }
}

/// The file, or those of the folder. A mounted ConfigMap has further entries, whose names begin with a dot.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, FetchError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |source| FetchError::Read {
        path: path.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}
