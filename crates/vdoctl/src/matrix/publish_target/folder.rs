// SPDX-License-Identifier: Apache-2.0
//! Locks the folder of a published matrix, replaces its files one by one, and removes incomplete files of an interrupted vdoctl.

use super::super::super::{CliError, Exit, atomic_files};
use std::fs::{self, File};
use std::path::Path;
use vdo_api::types::shell_word;
use vdo_author::publish::Write;
use vdo_files::UNFINISHED;

/// Does not wait: where another publisher is at work, this one is too late.
pub(super) fn turn(folder: &Path) -> Result<File, CliError> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => CliError::new(
            Exit::NotFound,
            format!("the folder {} does not exist", folder.display()),
            format!(
                "To create a matrix there: vdoctl matrix init {}",
                shell_word(&folder.display().to_string())
            ),
        ),
        _ => CliError::new(
            Exit::Refused,
            format!("the folder {} cannot be opened: {error}", folder.display()),
            "Check that you may read and write this folder.",
        ),
    };
    vdo_system::file_for_one(folder).map_err(failed)?.ok_or_else(|| {
        CliError::new(
            Exit::Refused,
            format!("another vdoctl is publishing to {} right now", folder.display()),
            "When the other vdoctl has finished, run the command again: it reads the newly published matrix and makes its change there.",
        )
    })
}

/// Takes away what a publisher that was killed had not completed: files that stand beside those that are published.
fn tidy(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') && name.ends_with(UNFINISHED) {
            // Where it cannot be removed it does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Carries writes out, one after the other.
pub(super) fn write(folder: &Path, writes: &[Write]) -> Result<(), CliError> {
    tidy(folder);
    tidy(&folder.join("charts"));
    for Write { path, content } in writes {
        let file = folder.join(path);
        let written = match content {
            Some(bytes) => {
                let parent = file.parent().map_or(Ok(()), fs::create_dir_all);
                parent.and_then(|()| atomic_files::write(&file, bytes))
            }
            None => match fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        };
        written.map_err(|error| {
            CliError::new(
                Exit::Refused,
                format!("{} cannot be written: {error}", file.display()),
                "Free some space, or check that you may write there, and run the command again. Until then, the matrix stays at its last published version.",
            )
        })?;
    }
    Ok(())
}
