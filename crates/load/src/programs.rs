// SPDX-License-Identifier: Apache-2.0
//! Runs external programs such as kubectl, kind and ssh with arguments, variables and input, and reads their output.

use crate::stop::Stop;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// There is no such program.
    Missing,
    /// With success, having printed this.
    Well(String),
    /// Otherwise: with this exit code, having said this.
    Badly(Option<i32>, String),
}

/// A program, its arguments and more variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// The name of the program, or its path.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// More variables.
    pub variables: Vec<(String, String)>,
}

impl Call {
    /// A call without more variables.
    pub fn of(program: impl Into<String>, arguments: &[&str]) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.iter().map(|one| (*one).to_owned()).collect(),
            variables: Vec::new(),
        }
    }

    /// The same with an option and its value.
    #[must_use]
    pub fn and(mut self, option: &str, value: impl Into<String>) -> Self {
        self.arguments.extend([option.to_owned(), value.into()]);
        self
    }

    /// The same with one more argument.
    #[must_use]
    pub fn then(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// The same with a variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn badly(&self) -> Stop {
        Stop::refused(format!("{} {} failed, see above", self.program, self.arguments.join(" ")))
    }

    fn failed(&self, error: &std::io::Error) -> Stop {
        Stop::refused(format!("{} cannot be started: {error}", self.program))
    }
}

/// What a program reads.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// Nothing.
    None,
    /// A file.
    File(&'a Path),
    /// What another program prints.
    Of(&'a Call),
}

/// Runs a program and keeps what it says.
///
/// # Errors
/// When it is there and cannot be started, or there is no such input.
pub fn ask(call: &Call, input: Input<'_>) -> Result<Ended, Stop> {
    let mut writer = None;
    let stdin = match input {
        Input::None => Stdio::null(),
        Input::File(path) => {
            let file = File::open(path).map_err(|error| Stop::refused(format!("{} cannot be read: {error}", path.display())))?;
            Stdio::from(file)
        }
        Input::Of(from) => {
            let mut child = from
                .command()
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(|error| from.failed(&error))?;
            let printed = child.stdout.take().map_or_else(Stdio::null, Stdio::from);
            writer = Some((from, child));
            printed
        }
    };
    let output = match call.command().stdin(stdin).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Ended::Missing),
        other => other.map_err(|error| call.failed(&error))?,
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if !output.status.success() {
        return Ok(Ended::Badly(output.status.code(), text(&output.stderr)));
    }
    if let Some((from, mut child)) = writer {
        // It has printed everything, or the reader has got less than there is.
        let ended = child.wait().map_err(|error| from.failed(&error))?;
        if !ended.success() {
            return Err(from.badly());
        }
    }
    Ok(Ended::Well(text(&output.stdout)))
}

/// Runs a program that shows its own output.
///
/// # Errors
/// When it fails.
pub fn step(call: &Call) -> Result<(), Stop> {
    let status = call.command().stdin(Stdio::null()).status().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Stop::usage(format!("{} is missing on this machine", call.program)),
        _ => call.failed(&error),
    })?;
    match status.success() {
        true => Ok(()),
        false => Err(call.badly()),
    }
}

/// Prints a line for people.
pub fn say(text: &str) {
    use std::io::Write as _;
    // Who reads no more needs no more.
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// The last line of what a program said, which is the one with the reason.
pub fn last_line(text: &str) -> &str {
    text.lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("no message")
}
