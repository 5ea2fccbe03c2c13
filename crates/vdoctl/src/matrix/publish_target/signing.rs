// SPDX-License-Identifier: Apache-2.0
//! Reads the private key of `--key-file`, signs an index, and refuses to change a signed matrix without its key.

use super::super::super::password_file::secret;
use super::super::super::{CliError, Exit};
use std::collections::BTreeMap;
use std::path::Path;
use vdo_api::types::shell_word;
use vdo_author::publish::Release;
use vdo_source::signature::{PrivateKey, PublicKeys};

/// The key in a file, if one is named, with a warning where others can read it.
pub(in super::super) fn signing_key(file: Option<&Path>) -> Result<(Option<PrivateKey>, Option<String>), CliError> {
    let Some((key, warning)) = file.map(private_key).transpose()? else {
        return Ok((None, None));
    };
    Ok((Some(key), warning))
}

/// The key in a file.
pub(in super::super) fn private_key(file: &Path) -> Result<(PrivateKey, Option<String>), CliError> {
    let (text, warning) = secret(file, "the private key")?;
    let key = PrivateKey::parse(&text).map_err(|error| CliError::of(Exit::Usage, &error))?;
    Ok((key, warning))
}

/// An index with its signatures in every form that the key has.
pub(in super::super) fn signed(index: Vec<u8>, charts: BTreeMap<String, Vec<u8>>, key: Option<&PrivateKey>) -> Result<Release, CliError> {
    let signatures = key.map(|key| key.signatures(&index)).transpose();
    let signatures = signatures.map_err(|error| CliError::of(Exit::Usage, &error))?.unwrap_or_default();
    Ok(Release { index, signatures, charts })
}

/// A matrix that is signed stays so, and a publisher builds on nothing that another key has signed.
pub(super) fn signed_by(key: Option<&PrivateKey>, index: &[u8], signature: &[u8], place: &str) -> Result<(), CliError> {
    let Some(key) = key else {
        return Err(CliError::new(
            Exit::Usage,
            format!("the matrix in {place} is signed, and there is no key to sign the next version"),
            "Name the file of the key with --key-file.",
        ));
    };
    if verifies(Some(key), index, Some(signature.to_vec())) {
        return Ok(());
    }
    Err(CliError::new(
        Exit::Refused,
        format!("the matrix in {place} is not signed by this key, or was changed after it was signed"),
        format!(
            "Check the matrix with vdoctl matrix diff; if the matrix is correct, sign it: vdoctl matrix sign {} --key-file FILE",
            shell_word(place)
        ),
    ))
}

/// True where a signature is of this index, by this key.
pub(super) fn verifies(key: Option<&PrivateKey>, index: &[u8], signature: Option<Vec<u8>>) -> bool {
    let keys = key.and_then(|key| PublicKeys::parse(key.public().pem().as_bytes()).ok());
    keys.is_some_and(|keys| keys.verify(index, signature.as_deref()).is_ok())
}
