// SPDX-License-Identifier: Apache-2.0
//! Test helper: runs `vdo-load` with a PATH of stub programs that record their calls.

use crate::executable::write_program;
use crate::root;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// What scripts of the test and of the product need besides.
const USUAL: &str = "sh bash env cat sed awk tar mktemp rm cp mv grep dirname sha256sum cut df tail uname id head printf test true";

pub struct Desk {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

impl Desk {
    /// A machine with nothing but the usual programs.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["bin", "usual", "record"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        for name in USUAL.split(' ') {
            let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name));
            let found = found.iter().find(|file| file.exists());
            symlink(found.expect(name), folder.path().join("usual").join(name)).expect("a link");
        }
        Self {
            folder,
            variables: Vec::new(),
        }
    }

    /// Adds a program: it records its arguments, and what else the lines do. `$record` is the folder for that.
    pub fn program(self, name: &str, lines: &str) -> Self {
        let file = self.at("bin").join(name);
        let record = self.at("record").display().to_string();
        let text = format!("#!/bin/sh\nrecord='{record}'\nprintf '%s\\n' \"{name} $*\" >>\"$record/calls\"\n{lines}\n");
        write_program(&file, &text).expect("a program");
        self
    }

    /// Sets a variable.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn load(&self, what: &str) -> Output {
        let program = Path::new(env!("CARGO_BIN_EXE_vdo-release")).with_file_name("vdo-load");
        assert!(program.is_file(), "{} is missing: cargo build --workspace", program.display());
        let mut command = Command::new(program);
        command
            .arg(what)
            .current_dir(root())
            .env_clear()
            .env("PATH", format!("{}:{}", self.at("bin").display(), self.at("usual").display()))
            .env("HOME", self.folder.path())
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.output().expect("vdo-load starts")
    }

    /// What was recorded; nothing where nothing was.
    pub fn recorded(&self, name: &str) -> String {
        fs::read_to_string(self.at("record").join(name)).unwrap_or_default()
    }

    /// How programs were called.
    pub fn calls(&self) -> Vec<String> {
        self.recorded("calls").lines().map(str::to_owned).collect()
    }
}

/// Everything that was printed.
pub fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
