// SPDX-License-Identifier: Apache-2.0
//! Writes programs that a test starts at once. A child writes the file, and not this process.
//!
//! A program that another thread starts has, for a moment, a copy of every file that this process has open. While such a file is open for
//! writing, the kernel does not run it ("Text file busy").

use std::io::{Error, Result, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program or a script that everybody may run, and the folders above. Replaces a file of this name.
///
/// # Errors
/// When `install`, a program of the operating system, cannot write the file.
pub fn write_program(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    let mut install = Command::new("install");
    install
        .args(["-D", "-m", "755", "--", "/dev/stdin"])
        .arg(path)
        .stdin(Stdio::piped());
    let mut child = install.spawn()?;
    // The end of the block closes the pipe, at which `install` ends.
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(content.as_ref())?;
    }
    match child.wait()?.success() {
        true => Ok(()),
        false => Err(Error::other(format!("install cannot write {}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn program_written_while_others_are_started_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !ended.load(Ordering::Relaxed) {
                        Command::new("sh").args(["-c", ":"]).status().expect("started");
                    }
                });
            }
            let failed = (0..100).find_map(|number| {
                let program = folder.path().join(format!("program-{number}"));
                write_program(&program, "#!/bin/sh\nexit 0\n").expect("written");
                Command::new(&program).status().err()
            });
            ended.store(true, Ordering::Relaxed);
            assert!(failed.is_none(), "{failed:?}");
        });
    }
}
