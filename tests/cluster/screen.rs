// SPDX-License-Identifier: Apache-2.0
//! `vdoctl` on a terminal of 80 columns: what a person sees, and what a person types.

use crate::pty::on_terminal;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use vdo_testbed::{PATIENCE, Probe, until};

/// How wide the terminal is.
pub const COLUMNS: usize = 80;

/// A command with a terminal for stdin, stdout and stderr. It ends with its test.
pub struct Screen {
    child: Child,
    terminal: File,
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Screen {
    /// The terminal is also the one that `/dev/tty` names: passwords are asked for there.
    pub fn start_controlled(command: &Command) -> Result<Self> {
        let mut controlled = Command::new("setsid");
        controlled.arg("--ctty").arg(command.get_program()).args(command.get_args());
        controlled.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Self::start(controlled)
    }

    pub fn pid(&self) -> Result<i32> {
        Ok(i32::try_from(self.child.id())?)
    }

    /// Whether the terminal shows what is typed.
    pub fn echoes(&self) -> Result<bool> {
        use nix::sys::termios::{LocalFlags, tcgetattr};
        Ok(tcgetattr(&self.terminal)?.local_flags.contains(LocalFlags::ECHO))
    }

    pub fn start(command: Command) -> Result<Self> {
        let (child, terminal) = on_terminal(command, u16::try_from(COLUMNS)?);
        let (mut from, bytes) = (terminal.try_clone()?, Arc::new(Mutex::new(Vec::new())));
        let into = bytes.clone();
        let reader = std::thread::spawn(move || {
            let mut part = [0; 4096];
            // The end of a terminal is an error on Linux.
            while let Ok(length @ 1..) = from.read(&mut part) {
                into.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend_from_slice(&part[..length]);
            }
        });
        Ok(Self {
            child,
            terminal,
            bytes,
            reader: Some(reader),
        })
    }

    /// What the terminal shows now, line by line.
    pub fn shown(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        drawn(&String::from_utf8_lossy(&bytes))
    }

    /// Waits until this is shown.
    pub async fn until(&mut self, words: &str) -> Result<()> {
        until(&format!("{words:?} on the terminal"), PATIENCE, async || {
            let shown = self.shown();
            match shown.contains(words) {
                true => Ok(Probe::Ready(())),
                false if self.child.try_wait()?.is_some() => anyhow::bail!("it ended without {words:?}:\n{shown}"),
                false => Ok(Probe::not_yet(shown)),
            }
        })
        .await
    }

    pub fn types(&mut self, text: &str) -> Result<()> {
        Ok(self.terminal.write_all(text.as_bytes())?)
    }

    /// SIGKILL; what was shown until then.
    pub fn kill(mut self) -> Result<String> {
        self.child.kill()?;
        self.child.wait()?;
        self.rest();
        Ok(self.shown())
    }

    /// Waits for its end; the exit code and what is shown.
    pub async fn ended(mut self) -> Result<(i32, String)> {
        let code = self.code().await?;
        self.rest();
        Ok((code, self.shown()))
    }

    /// Waits for its end; the exit code. The terminal stays.
    pub async fn code(&mut self) -> Result<i32> {
        let status = until("the command to end", PATIENCE, async || {
            Ok(match self.child.try_wait()? {
                Some(status) => Probe::Ready(status),
                None => Probe::not_yet(self.shown()),
            })
        })
        .await?;
        status.code().context("it was killed")
    }

    fn rest(&mut self) {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a terminal shows of a text with the few commands that `vdoctl` sends: lines up, clear below, colours.
fn drawn(text: &str) -> String {
    let (mut lines, mut row, mut column) = (vec![Vec::new()], 0, 0);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\r' => column = 0,
            '\n' => {
                row += 1;
                if row == lines.len() {
                    lines.push(Vec::new());
                }
            }
            '\u{1b}' => {
                let command: String = rest.by_ref().skip(1).take_while_inclusive();
                match command.split_at(command.len().saturating_sub(1)) {
                    (count, "A") => row = row.saturating_sub(count.parse().unwrap_or(1)),
                    (_, "J") => {
                        lines.truncate(row + 1);
                        lines[row].truncate(column);
                    }
                    _ => {}
                }
            }
            c => {
                if column == COLUMNS {
                    (row, column) = (row + 1, 0);
                    if row == lines.len() {
                        lines.push(Vec::new());
                    }
                }
                let line = &mut lines[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = c;
                column += 1;
            }
        }
    }
    let lines: Vec<String> = lines
        .iter()
        .map(|line| line.iter().collect::<String>().trim_end().to_owned())
        .collect();
    lines.join("\n")
}

trait Commands: Iterator<Item = char> + Sized {
    /// The characters up to the letter that ends a command.
    fn take_while_inclusive(self) -> String {
        let mut command = String::new();
        for c in self {
            command.push(c);
            if c.is_ascii_alphabetic() {
                break;
            }
        }
        command
    }
}

impl<I: Iterator<Item = char>> Commands for I {}

#[test]
fn terminal_replaces_what_is_drawn_again() {
    let shown = drawn("\u{1b}[32m✓\u{1b}[0m one\r\nwaits 1\r\nwaits 2\r\n\u{1b}[2A\u{1b}[Jtwo\r\n");
    assert_eq!(shown, "✓ one\ntwo\n");
    assert_eq!(drawn(&"x".repeat(81)), format!("{}\nx", "x".repeat(80)));
}
