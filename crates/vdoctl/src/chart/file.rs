// SPDX-License-Identifier: Apache-2.0
//! Reads a file that the command line names, or stdin for `-`, as text or bytes of at most 16 MiB.

use super::super::{CliError, Exit};
use std::io::{ErrorKind, Read as _};
use std::path::Path;

/// The most that is read of one file: many times the largest manifest there is.
const LIMIT: u64 = 16 << 20;

/// The text of a file; `-` is stdin. `what` says what the file is for.
pub(in super::super) fn text(what: &str, path: &Path) -> Result<String, CliError> {
    String::from_utf8(bytes(what, path)?).map_err(|_| {
        let problem = format!("{what} {} is not UTF-8 text", path.display());
        CliError::new(Exit::Refused, problem, "Save the file as UTF-8 and run the command again.")
    })
}

/// The bytes of a file; `-` is stdin.
pub(in super::super) fn bytes(what: &str, path: &Path) -> Result<Vec<u8>, CliError> {
    let wrong = |exit, problem: &str, remedy: &str| Err(CliError::new(exit, format!("{what} {} {problem}", path.display()), remedy));
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().take(LIMIT + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LIMIT + 1).read_to_end(&mut bytes))
    };
    match read {
        Ok(_) if bytes.len() as u64 > LIMIT => wrong(Exit::Refused, "is larger than 16 MiB", "Name a smaller file."),
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => wrong(
            Exit::NotFound,
            "does not exist",
            "Check the path; a relative path starts at the current folder.",
        ),
        // Windows says of a folder that the access is denied.
        Err(_) if path.is_dir() => wrong(Exit::Refused, "is a folder", "Name a file in this folder."),
        Err(error) => wrong(
            Exit::Refused,
            &format!("cannot be read: {error}"),
            "Check that you may read this file.",
        ),
    }
}
