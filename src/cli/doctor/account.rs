//! A password, from where nobody else can read it.

use super::super::{CliError, Exit, prompt};
use crate::types::Secret;
use std::io::{IsTerminal as _, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Longer than any password, and short enough that a wrong file is noticed.
const MAX: u64 = 64 << 10;

/// Reads it from a file, from stdin for `-`, or asks for it. The line end after it is not part of it. Gives a warning with it where
/// others could read the file.
pub(super) fn password(file: Option<&Path>, user: &str) -> Result<(Secret, Option<String>), CliError> {
    let mut warning = None;
    let text = match file {
        Some(path) if path == Path::new("-") => read(std::io::stdin().lock(), "stdin")?,
        Some(path) => {
            let name = path.display().to_string();
            let open = std::fs::File::open(path).map_err(|error| unreadable(&name, &error))?;
            let mode = open.metadata().map_err(|error| unreadable(&name, &error))?.permissions().mode();
            if mode & 0o077 != 0 {
                warning = Some(format!(
                    "Others on this machine may read the password in {name}. Keep it to yourself: chmod 600 {name}"
                ));
            }
            read(open, &name)?
        }
        None if std::io::stdin().is_terminal() => prompt::password(user).map_err(|error| unreadable("the terminal", &error))?,
        None => {
            return Err(CliError::new(
                Exit::Usage,
                "there is no password and no terminal to ask for it",
                "Name a file with --password-file FILE, or - for stdin. A password is never an argument.",
            ));
        }
    };
    let text = text
        .strip_suffix('\n')
        .map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    if text.is_empty() {
        return Err(CliError::new(
            Exit::Usage,
            "the password is empty",
            "An empty password is never sent.",
        ));
    }
    Ok((Secret::new(text), warning))
}

fn read(from: impl std::io::Read, name: &str) -> Result<String, CliError> {
    let mut text = String::new();
    from.take(MAX).read_to_string(&mut text).map_err(|error| unreadable(name, &error))?;
    Ok(text)
}

fn unreadable(name: &str, error: &std::io::Error) -> CliError {
    CliError::new(Exit::Usage, format!("the password cannot be read from {name}: {error}"), "")
}
