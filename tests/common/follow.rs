// SPDX-License-Identifier: Apache-2.0
//! Pages that people follow word by word are followed here: every `sh` block is run as it stands, in one folder, and what the `text` block
//! after it shows has to be in its output.
#![allow(dead_code, reason = "every binary uses a part of it")]

use anyhow::{Context, Result, ensure};
use std::fmt::Display;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A block of commands with the lines that are promised to be in its output.
struct Block {
    line: usize,
    commands: String,
    promised: Vec<String>,
    done: bool,
}

fn blocks(page: &str) -> Result<Vec<Block>> {
    let mut all: Vec<Block> = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let (indent, kind) = line.split_at(line.len() - line.trim_start().len());
        let Some(kind @ ("sh" | "text")) = kind.strip_prefix("```") else {
            continue;
        };
        let body = lines.by_ref().map(|(_, line)| line.strip_prefix(indent).unwrap_or(line));
        let body: Vec<&str> = body.take_while(|line| *line != "```").collect();
        if kind == "sh" {
            all.push(Block {
                line: number + 1,
                commands: body.join("\n"),
                promised: Vec::new(),
                done: false,
            });
        } else {
            let last = all.last_mut();
            let last = last.with_context(|| format!("line {}: nothing was run before this output", number + 1))?;
            last.promised.extend(body.into_iter().map(str::to_owned));
        }
    }
    Ok(all)
}

/// A page of which the commands are run, block by block.
pub struct Page {
    name: &'static str,
    folder: TempDir,
    path: Vec<PathBuf>,
    environment: Vec<(String, String)>,
    blocks: Vec<Block>,
}

impl Page {
    /// A page of docs, with the programs of the system on PATH.
    pub fn open(name: &'static str) -> Result<Self> {
        let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        let file = folders.map(|folder| folder.join("docs").join(name)).find(|file| file.is_file());
        let text = std::fs::read_to_string(file.with_context(|| format!("there is no page {name}"))?)?;
        Ok(Self {
            name,
            folder: tempfile::tempdir()?,
            path: ["/usr/bin", "/bin"].map(PathBuf::from).into(),
            environment: Vec::new(),
            blocks: blocks(&text).with_context(|| name)?,
        })
    }

    /// With a program that is found before those of the system.
    pub fn with(mut self, program: &Path) -> Result<Self> {
        self.path.insert(0, program.parent().context("a folder")?.to_owned());
        Ok(self)
    }

    /// With a variable of the environment.
    pub fn set(mut self, name: &str, value: impl Display) -> Self {
        self.environment.push((name.to_owned(), value.to_string()));
        self
    }

    /// With other words in a command, for what a test has in another place or wants less of.
    pub fn instead(mut self, words: &str, other: &str) -> Result<Self> {
        let block = self.blocks.iter_mut().find(|block| block.commands.contains(words));
        let block = block.with_context(|| format!("{}: no block has {words:?}", self.name))?;
        block.commands = block.commands.replacen(words, other, 1);
        Ok(self)
    }

    /// The folder in which the commands run, which is also their HOME.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file that no one else can read there.
    pub fn file(&self, name: &str, text: &str) -> Result<()> {
        let path = self.folder().join(name);
        std::fs::create_dir_all(path.parent().context("a folder")?)?;
        std::fs::write(&path, text)?;
        Ok(std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?)
    }

    /// Runs the block that begins with these words; what it prints.
    pub fn run(&mut self, begins: &str) -> Result<String> {
        let place = self.blocks.iter().position(|block| block.commands.starts_with(begins));
        let place = place.with_context(|| format!("{}: no block begins with {begins:?}", self.name))?;
        self.blocks[place].done = true;
        self.run_block(&self.blocks[place])
    }

    /// Runs every block.
    pub fn run_all(self) -> Result<()> {
        self.run_but(&[])
    }

    /// Runs every block but those that begin with these words: other tests run them.
    pub fn run_but(mut self, elsewhere: &[&str]) -> Result<()> {
        for block in &mut self.blocks {
            block.done = elsewhere.iter().any(|begins| block.commands.starts_with(begins));
        }
        let left: Vec<&Block> = self.blocks.iter().filter(|block| !block.done).collect();
        ensure!(!left.is_empty(), "{}: there is nothing to run", self.name);
        left.into_iter().try_for_each(|block| self.run_block(block).map(drop))
    }

    /// Every block was run, but for those that begin with these words: other tests run them.
    pub fn end(&self, elsewhere: &[&str]) -> Result<()> {
        let is_elsewhere = |block: &&Block| elsewhere.iter().any(|begins| block.commands.starts_with(begins));
        let forgotten = self.blocks.iter().find(|block| !block.done && !is_elsewhere(block));
        ensure!(
            forgotten.is_none(),
            "{}: no test runs the block at line {}",
            self.name,
            forgotten.map_or(0, |block| block.line)
        );
        Ok(())
    }

    fn run_block(&self, block: &Block) -> Result<String> {
        let mut shell = Command::new("bash");
        shell
            .args(["-euo", "pipefail", "-c", &block.commands])
            .current_dir(self.folder())
            .stdin(Stdio::null());
        shell
            .env_clear()
            .env("PATH", std::env::join_paths(&self.path)?)
            .env("HOME", self.folder());
        shell.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let output = shell.output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        let place = format!("{}, line {}", self.name, block.line);
        ensure!(output.status.success(), "{place}: {}\n{text}{errors}", output.status);
        for line in &block.promised {
            ensure!(
                text.contains(line.as_str()),
                "{place} promises {line:?}, and this comes:\n{text}{errors}"
            );
        }
        Ok(text)
    }
}
