// SPDX-License-Identifier: Apache-2.0
//! Asks on the terminal: for a password (hidden), for a value, for yes or no, or for the confirmation that `--yes` replaces.

use super::terminal_escapes;
use super::wrap::{columns_of, fit};
use super::{CliError, Exit};
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How the terminal was set before it was asked to hide what is typed; only as long as it does.
static HIDING: Mutex<Option<String>> = Mutex::new(None);

/// Asks for the password of this user.
pub(super) fn password(user: &str) -> io::Result<String> {
    set(vdo_system::terminal_settings());
    let answer = rpassword::prompt_password(terminal_escapes::shown(&format!("Password for {user}: ")));
    set(None);
    if answer.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
        // Ctrl-C: the signal is on its way and ends the process; until then nothing is to be said.
        thread::sleep(Duration::from_secs(1));
    }
    answer
}

/// Asks for a value, which is `now` where nothing is typed.
pub(super) fn line(what: &str, now: Option<&str>) -> io::Result<Option<String>> {
    let shown = now.map(|now| format!(" [{now}]")).unwrap_or_default();
    let mut terminal = io::stderr();
    let columns = columns_of(&terminal);
    write!(terminal, "{}", terminal_escapes::shown(&fit(&format!("{what}{shown}: "), columns)))?;
    terminal.flush()?;
    let mut answer = String::new();
    if io::stdin().read_line(&mut answer)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let typed = Some(answer.trim().to_owned()).filter(|answer| !answer.is_empty());
    Ok(typed.or_else(|| now.map(str::to_owned)))
}

/// Asks a question that is answered with yes or no; anything else than yes is no.
pub(super) fn yes(question: &str) -> io::Result<bool> {
    let mut terminal = io::stderr();
    let columns = columns_of(&terminal);
    write!(
        terminal,
        "{}",
        terminal_escapes::shown(&fit(&format!("{question} [y/N] "), columns))
    )?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Whether there is a person to ask: a question is shown on stderr, and answered on stdin.
pub(super) fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks whether to go on, for what the command line has not confirmed.
///
/// # Errors
/// Exit code 4 with the words that `nothing` was done: with `confirm` as its remedy where there is no one to ask, and with `instead` where the
/// answer is no.
pub(super) fn confirmed(question: &str, nothing: &str, confirm: &str, instead: &str) -> Result<(), CliError> {
    if !is_terminal() {
        let what = format!("{nothing}: there is no terminal on which to confirm");
        return Err(CliError::new(Exit::Refused, what, confirm));
    }
    match yes(question) {
        Ok(true) => Ok(()),
        Ok(false) => Err(CliError::new(Exit::Refused, nothing, instead)),
        Err(error) => Err(CliError::internal(&error)),
    }
}

/// Lets the terminal show again what is typed, for an end in the middle of a question: the reader of the answer is not awaited.
pub(super) fn end() {
    if let Some(settings) = set(None) {
        vdo_system::restore_terminal(&settings);
    }
}

fn set(next: Option<String>) -> Option<String> {
    std::mem::replace(&mut *HIDING.lock().unwrap_or_else(PoisonError::into_inner), next)
}
