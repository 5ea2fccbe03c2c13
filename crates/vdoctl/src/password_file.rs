// SPDX-License-Identifier: Apache-2.0
//! Reads a password, key or token from a file, from stdin or from the terminal, and warns about or refuses a file that others can read.

use super::{CliError, Exit, prompt};
use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use vdo_api::types::{Secret, shell_word};

/// Longer than any password, and short enough that a wrong file is noticed.
const MAX: u64 = 64 << 10;

const PASSWORD: &str = "the password";

/// Reads it from a file, from stdin for `-`, or asks for it. The line end after it is not part of it. Gives a warning with it where
/// others could read the file.
pub(crate) fn password(file: Option<&Path>, user: &str) -> Result<(Secret, Option<String>), CliError> {
    let (text, warning) = match file {
        Some(path) => secret(path, PASSWORD)?,
        None if std::io::stdin().is_terminal() => {
            let typed = prompt::password(user).map_err(|error| unreadable(PASSWORD, "the terminal", &error))?;
            (Secret::new(typed), None)
        }
        None => {
            return Err(CliError::new(
                Exit::Usage,
                "no password was given, and there is no terminal to ask for it",
                "Name a file with --password-file FILE, or - for stdin. vdoctl does not accept a password as an argument.",
            ));
        }
    };
    let text = text.expose();
    let text = text.strip_suffix('\n').map_or(text, |line| line.strip_suffix('\r').unwrap_or(line));
    if text.is_empty() {
        return Err(CliError::new(
            Exit::Usage,
            "the password is empty",
            "Give the password of the account. vdoctl never sends an empty password.",
        ));
    }
    Ok((Secret::new(text), warning))
}

/// Reads a secret of this kind from a file, or from stdin for `-`, with a warning where others could read the file.
pub(crate) fn secret(path: &Path, what: &str) -> Result<(Secret, Option<String>), CliError> {
    if path == Path::new("-") {
        return Ok((read(std::io::stdin().lock(), what, "stdin")?, None));
    }
    let name = path.display().to_string();
    let open = std::fs::File::open(path).map_err(|error| unreadable(what, &name, &error))?;
    let found = open.metadata().map_err(|error| unreadable(what, &name, &error))?;
    let warning = vdo_system::readable_by_others(&found).then(|| {
        format!(
            "Other users of this machine can read {what} in {name}. Make the file private: chmod 600 {}",
            shell_word(&name)
        )
    });
    Ok((read(open, what, &name)?, warning))
}

/// A user who may read the file may use the account: ssh refuses such a key, and this such a password.
pub(crate) fn private(file: &Path) -> Result<(), CliError> {
    let readable = std::fs::metadata(file).is_ok_and(|found| found.is_file() && vdo_system::readable_by_others(&found));
    if !readable {
        return Ok(());
    }
    let name = file.display();
    Err(CliError::new(
        Exit::Refused,
        format!("other users of this machine can read the password in {name}"),
        format!("Make the file private: chmod 600 {}", shell_word(&name.to_string())),
    ))
}

fn read(from: impl std::io::Read, what: &str, name: &str) -> Result<Secret, CliError> {
    let mut text = String::new();
    from.take(MAX)
        .read_to_string(&mut text)
        .map_err(|error| unreadable(what, name, &error))?;
    Ok(Secret::new(text))
}

fn unreadable(what: &str, name: &str, error: &std::io::Error) -> CliError {
    CliError::new(Exit::Usage, format!("{what} cannot be read from {name}: {error}"), "")
}
