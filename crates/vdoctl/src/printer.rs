// SPDX-License-Identifier: Apache-2.0
//! Writes all answers, progress and errors to stdout and stderr (only `prompt.rs` writes its questions itself); `--color`, width, escapes.
//!
//! Text for people is always escaped, also in a pipe, because a person reads it in the end: no text can control the terminal. Data for
//! programs is not changed, except that JSON has such characters as `\u` escapes, and that YAML is escaped on a terminal.

use super::args::Color;
use super::commands::ClusterFlags;
use super::context::now;
use super::output::Form;
use super::wrap::{columns_of, fit};
use super::{Answer, CliError, Exit, ages, style, terminal_escapes};
use anstream::stream::{AsLockedWrite, RawStream};
use anstream::{AutoStream, ColorChoice};
use clap::builder::StyledStr;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes answers and failures, and says how the process ends.
#[derive(Clone)]
pub struct Printer {
    color: ColorChoice,
    /// What the commands in a text need to reach the same cluster.
    cluster: ClusterFlags,
    /// Of all copies.
    silent: Arc<AtomicBool>,
}

impl Printer {
    /// A printer with what `--color` says.
    #[must_use]
    pub fn new(color: Color) -> Self {
        let color = match color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        Self {
            color,
            cluster: ClusterFlags::default(),
            silent: Arc::default(),
        }
    }

    /// With these flags in the commands that are shown.
    #[must_use]
    pub(super) fn with_cluster(mut self, flags: ClusterFlags) -> Self {
        self.cluster = flags;
        self
    }

    /// A printer for what goes wrong before `--color` is known.
    #[must_use]
    pub fn auto() -> Self {
        Self::new(Color::Auto)
    }

    /// A printer that is not silenced with the others.
    #[must_use]
    pub(super) fn apart(&self) -> Self {
        Self {
            silent: Arc::default(),
            ..self.clone()
        }
    }

    /// Prints nothing more: a process that is stopped does not report that it could not finish.
    pub fn silence(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    /// Writes an answer: data to stdout, talk to stderr.
    pub fn answer(&mut self, answer: &Answer) -> Exit {
        if answer.form == Form::Bytes && io::stdout().is_terminal() && std::str::from_utf8(&answer.data).is_err() {
            return self.failure(&CliError::new(
                Exit::Refused,
                "a terminal cannot show a package",
                "Name a file with -o, or send the output into a pipe or a file.",
            ));
        }
        let written = self.write(answer.form, &answer.data);
        self.talk_of(answer);
        written.err().map_or(answer.exit, |error| self.unwritable(&error))
    }

    /// Replaces what is on the terminal by this answer. On a pipe it is written below the last one, and only when it is new.
    ///
    /// # Errors
    /// The exit code, once the output cannot be read any more.
    pub fn redraw(&mut self, answer: &Answer, new: bool, again: bool) -> Result<(), Exit> {
        let terminal = io::stdout().is_terminal();
        if !terminal && !new {
            return Ok(());
        }
        self.drawn(answer, terminal, again).map_err(|error| self.unwritable(&error))?;
        self.talk_of(answer);
        Ok(())
    }

    fn drawn(&self, answer: &Answer, terminal: bool, again: bool) -> io::Result<()> {
        const CLEAR: &[u8] = b"\x1b[H\x1b[2J\x1b[3J";
        if terminal {
            io::stdout().write_all(CLEAR)?;
        } else if again && !answer.data.is_empty() {
            io::stdout().write_all(b"\n")?;
        }
        self.write(answer.form, &answer.data)
    }

    /// Writes to stdout in place of the last lines of the terminal, as many as `up`.
    ///
    /// # Errors
    /// The exit code, once the output cannot be read any more.
    pub fn replace(&self, up: usize, form: Form, text: &str) -> Result<(), Exit> {
        if self.silent.load(Ordering::Relaxed) {
            return Ok(());
        }
        let clear = if up > 0 { format!("\x1b[{up}A\x1b[J") } else { String::new() };
        let written = io::stdout()
            .write_all(clear.as_bytes())
            .and_then(|()| self.write(form, text.as_bytes()));
        written.map_err(|error| self.unwritable(&error))
    }

    /// Writes a failure to stderr.
    pub fn failure(&mut self, error: &CliError) -> Exit {
        let what = ages::counted_from(&error.what, now());
        let mut text = format!("{} {what}\n", style::bad("error:"));
        for line in error.remedy.lines() {
            text.push_str(&format!("  {line}\n"));
        }
        self.talk(&text);
        error.exit
    }

    /// Writes what the argument parser has to say: help and version are data, all else is talk. It comes a second time without any paint.
    pub fn usage(&mut self, painted: &clap::Error, bare: &clap::Error) -> Exit {
        let text = help(&painted.render(), &bare.render());
        if painted.use_stderr() {
            self.talk(&text);
            return Exit::Usage;
        }
        let written = self.write(Form::Text, text.as_bytes());
        written.err().map_or(Exit::Ok, |error| self.unwritable(&error))
    }

    fn write(&self, form: Form, data: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout();
        let text = || String::from_utf8_lossy(data);
        let raw = match form {
            Form::Text => return self.paint(stdout, &self.for_people(&text(), columns_of(&io::stdout()))),
            Form::Foreign => return self.paint(stdout, &terminal_escapes::shown(&fit(&text(), columns_of(&io::stdout())))),
            Form::Json => Cow::Owned(terminal_escapes::json(&text()).into_bytes()),
            // There is no simple way to write the same YAML in other letters. On a terminal only a person reads it.
            Form::Yaml if stdout.is_terminal() => Cow::Owned(terminal_escapes::shown(&text()).into_bytes()),
            Form::Yaml | Form::Bytes => Cow::Borrowed(data),
        };
        stdout.write_all(&raw)?;
        stdout.flush()
    }

    fn for_people(&self, text: &str, columns: Option<usize>) -> String {
        terminal_escapes::shown(&fit(&self.cluster.added_to(text), columns))
    }

    /// Writes text with its styles, or without them where they are not wanted.
    fn paint<S: RawStream + AsLockedWrite>(&self, stream: S, text: &str) -> io::Result<()> {
        let mut stream = AutoStream::new(stream, self.color);
        stream.write_all(text.as_bytes())?;
        stream.flush()
    }

    fn talk_of(&self, answer: &Answer) {
        for line in &answer.talk {
            self.talk(&format!("{line}\n"));
        }
    }

    /// A closed output is not a failure of the verb.
    fn talk(&self, text: &str) {
        if !self.silent.load(Ordering::Relaxed) {
            let _ = self.paint(io::stderr(), &self.for_people(text, columns_of(&io::stderr())));
        }
    }

    fn unwritable(&self, error: &io::Error) -> Exit {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Exit::Ok;
        }
        self.talk(&format!("{} the output cannot be written: {error}\n", style::bad("error:")));
        Exit::Refused
    }
}

/// What the argument parser has to say, in our styles. It paints in its own way and repeats what was typed, so it comes a second time without
/// any paint: if it then holds nothing that would command a terminal, the paint is all there is.
pub fn help(painted: &StyledStr, bare: &StyledStr) -> String {
    let bare = bare.ansi().to_string();
    match bare == terminal_escapes::shown(&bare) {
        true => style::ours(&painted.ansi().to_string()),
        false => bare,
    }
}
