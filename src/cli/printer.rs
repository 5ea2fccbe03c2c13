//! The one mouth: nothing else in `vdoctl` writes to stdout or stderr.

use super::args::Color;
use super::{Answer, CliError, Exit, style};
use anstream::{AutoStream, ColorChoice};
use std::io::{self, IsTerminal, Write};

/// Writes answers and failures, and says how the process ends.
pub struct Printer {
    color: ColorChoice,
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
        Self { color }
    }

    /// A printer for what goes wrong before `--color` is known.
    #[must_use]
    pub fn auto() -> Self {
        Self::new(Color::Auto)
    }

    /// Writes an answer: data to stdout, talk to stderr.
    pub fn answer(&mut self, answer: &Answer) -> Exit {
        let written = self.write(io::stdout(), &answer.data);
        for line in &answer.talk {
            self.talk(&format!("{line}\n"));
        }
        written.err().map_or(answer.exit, |error| self.unwritable(&error))
    }

    /// Replaces what is on the terminal by this answer. On a pipe it is written below the last one, and only when it is new.
    pub fn redraw(&mut self, answer: &Answer, new: bool, again: bool) -> io::Result<()> {
        const CLEAR: &[u8] = b"\x1b[H\x1b[2J\x1b[3J";
        let mut data = Vec::new();
        if io::stdout().is_terminal() {
            io::stdout().write_all(CLEAR)?;
        } else if !new {
            return Ok(());
        } else if again && !answer.data.is_empty() {
            data.push(b'\n');
        }
        data.extend(&answer.data);
        self.write(io::stdout(), &data)?;
        answer.talk.iter().for_each(|line| self.talk(&format!("{line}\n")));
        Ok(())
    }

    /// Writes a failure to stderr.
    pub fn failure(&mut self, error: &CliError) -> Exit {
        let mut text = format!("{} {}\n", style::bad("error:"), error.what);
        for line in error.remedy.lines() {
            text.push_str(&format!("  {line}\n"));
        }
        self.talk(&text);
        error.exit
    }

    /// Writes what the argument parser has to say: help and version are data, all else is talk.
    pub fn usage(&mut self, error: &clap::Error) -> Exit {
        let text = error.render().ansi().to_string();
        if error.use_stderr() {
            self.talk(&text);
            return Exit::Usage;
        }
        self.write(io::stdout(), text.as_bytes())
            .err()
            .map_or(Exit::Ok, |error| self.unwritable(&error))
    }

    fn write(&self, stream: io::Stdout, data: &[u8]) -> io::Result<()> {
        // Only text has styles to lose; a package must arrive as it is.
        if std::str::from_utf8(data).is_err() {
            let mut raw = stream.lock();
            raw.write_all(data)?;
            return raw.flush();
        }
        let mut stream = AutoStream::new(stream, self.color).lock();
        stream.write_all(data)?;
        stream.flush()
    }

    /// That nobody listens is no failure of the verb.
    fn talk(&self, text: &str) {
        let _ = AutoStream::new(io::stderr(), self.color).lock().write_all(text.as_bytes());
    }

    fn unwritable(&self, error: &io::Error) -> Exit {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Exit::Ok;
        }
        self.talk(&format!("{} the output cannot be written: {error}\n", style::bad("error:")));
        Exit::Refused
    }
}
