// SPDX-License-Identifier: Apache-2.0
//! Credentials in a folder: a Secret that is mounted, with the keys of Flux or of Docker.

use super::directory::{SMALL_LIMIT, read};
use super::keys::files;
use super::{Access, AccessError, FetchError};
use std::path::Path;

/// The key of a Secret of the type `kubernetes.io/dockerconfigjson`. Its file is hidden by its name.
const DOCKER: &str = ".dockerconfigjson";

/// The files of a folder, by their names.
///
/// # Errors
/// When they cannot be read.
pub fn credentials(folder: &Path) -> Result<Access, FetchError> {
    let docker = Some(folder.join(DOCKER)).filter(|file| file.is_file());
    let mut values = Vec::new();
    for file in files(folder)?.into_iter().chain(docker) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = String::from_utf8(read(&file, SMALL_LIMIT)?).map_err(|_| AccessError::new(format!("{name} is not text")))?;
        values.push((name, text));
    }
    Ok(Access::new(values))
}
