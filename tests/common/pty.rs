// SPDX-License-Identifier: Apache-2.0
//! Commands on terminals of some width, and what they write there.
#![allow(dead_code, clippy::expect_used, reason = "each test binary uses a part of it")]

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::{Winsize, openpty};
use std::fs::File;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};

/// What a text begins with that is copied and so stays on one line.
pub const COMMANDS: [&str; 8] = ["vdoctl ", "kubectl ", "govc ", "helm ", "curl ", "openssl ", "pass ", "sudo "];

/// Starts a command with a terminal for stdin, stdout and stderr; the other end is for reading and typing.
pub fn on_terminal(mut command: Command, columns: u16) -> (Child, File) {
    let size = Winsize {
        ws_row: 200,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let pty = openpty(Some(&size), None).expect("a terminal");
    // A daemon that the command starts would keep the terminal open.
    for end in [&pty.master, &pty.slave] {
        fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).expect("a flag");
    }
    let end = || Stdio::from(pty.slave.try_clone().expect("a handle"));
    let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("it starts");
    (child, File::from(pty.master))
}

/// Everything that a command writes to its terminal, without styles.
pub fn screen_of(command: Command, columns: u16) -> String {
    plain(&written(command, columns))
}

/// Everything that a command writes to its terminal.
pub fn written(command: Command, columns: u16) -> String {
    let (mut child, mut terminal) = on_terminal(command, columns);
    let mut bytes = Vec::new();
    // The end of a terminal is an error on Linux.
    let _ = terminal.read_to_end(&mut bytes);
    child.wait().expect("it ends");
    String::from_utf8(bytes).expect("UTF-8").replace("\r\n", "\n")
}

/// The text without styles and movements of the cursor.
pub fn plain(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(part.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, rest)| rest));
    }
    out
}

/// The line with no blank inside of backquotes, between which commands are.
pub fn whole_commands(line: &str) -> String {
    let parts = line.split('`').enumerate();
    let part = |(place, part): (usize, &str)| if place % 2 == 1 { part.replace(' ', "_") } else { part.to_owned() };
    parts.map(part).collect::<Vec<_>>().join("`")
}

/// The lines that the terminal breaks although they could have been broken at a blank. A single word, and a command that is copied, cannot.
pub fn too_wide(text: &str, columns: u16) -> Vec<String> {
    let wide = text.lines().filter(|line| line.chars().count() > usize::from(columns));
    let breakable = wide.filter(|line| {
        let line = whole_commands(line.trim_start());
        line.contains(' ') && !COMMANDS.iter().any(|command| line.starts_with(command))
    });
    breakable.map(str::to_owned).collect()
}
