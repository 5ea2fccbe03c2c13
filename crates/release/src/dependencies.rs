//! The crates that make a program: those that `cargo tree` finds from the package `vdo`, with what `cargo metadata` and the lock file
//! know of them.

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the crates are looked up.
#[derive(Debug, clap::Args)]
pub struct Source {
    /// The workspace's Cargo.toml
    #[arg(long, value_name = "FILE", default_value = "Cargo.toml")]
    manifest_path: PathBuf,
    /// The target that the programs are built for; crates for others are left out
    #[arg(long, value_name = "TRIPLE")]
    pub target: String,
    /// A crate whose data is in the image beside the program
    #[arg(long = "with", value_name = "CRATE")]
    with: Vec<String>,
}

/// Name and version; no registry has two packages of one.
pub type Key = (String, String);

/// What is known of a crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// An SPDX expression.
    pub license: Option<String>,
    pub repository: Option<String>,
    /// SHA-256 of its archive on crates.io; crates of this workspace have none.
    pub checksum: Option<String>,
    /// Its sources.
    pub folder: PathBuf,
}

/// The crates and their edges.
#[derive(Debug)]
pub struct Dependencies {
    pub root: Key,
    pub packages: BTreeMap<Key, Package>,
    /// A crate and one that it uses.
    pub edges: BTreeSet<(Key, Key)>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Described>,
}

#[derive(Deserialize)]
struct Described {
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
    manifest_path: PathBuf,
}

impl Source {
    /// Asks cargo.
    pub fn read(&self) -> Result<Dependencies> {
        // `tree` knows which features the package alone has; `metadata` joins them with those of the other members.
        let edges = [
            "--edges",
            "normal",
            "--prefix",
            "depth",
            "--format",
            " {p}",
            "--target",
            &self.target,
        ];
        let tree = self.cargo("tree", &[&["--package", "vdo"][..], &edges].concat())?;
        let (root, mut keys, edges) = parse_tree(&tree)?;
        // Macros run where the compiler does.
        let here = host()?;
        let platforms = [
            "--format-version",
            "1",
            "--filter-platform",
            &self.target,
            "--filter-platform",
            &here,
        ];
        let metadata = self.cargo("metadata", &platforms)?;
        let metadata: Metadata = serde_json::from_str(&metadata).context("cargo metadata: the answer is not understood")?;
        for name in &self.with {
            let found = metadata.packages.iter().find(|package| package.name == *name);
            let found = found.ok_or_else(|| anyhow!("--with {name}: the workspace does not use such a crate"))?;
            keys.insert((found.name.clone(), found.version.clone()));
        }
        let lock = self.manifest_path.with_file_name("Cargo.lock");
        let lock = fs::read_to_string(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
        let checksums = parse_lock(&lock);
        let mut packages = BTreeMap::new();
        for package in metadata.packages {
            let key = (package.name, package.version);
            if !keys.remove(&key) {
                continue;
            }
            let known = Package {
                // How crates wrote it before SPDX expressions.
                license: package.license.map(|license| license.replace('/', " OR ")),
                repository: package.repository,
                checksum: checksums.get(&key).cloned(),
                folder: package.manifest_path.parent().unwrap_or(Path::new("")).to_owned(),
            };
            packages.insert(key, known);
        }
        if let Some((name, version)) = keys.first() {
            bail!("cargo tree names {name} {version} and cargo metadata does not");
        }
        Ok(Dependencies { root, packages, edges })
    }

    fn cargo(&self, verb: &str, args: &[&str]) -> Result<String> {
        #[expect(clippy::disallowed_methods, reason = "cargo names itself to the programs that it starts")]
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        answer(
            command
                .arg(verb)
                .args(args)
                .arg("--locked")
                .arg("--manifest-path")
                .arg(&self.manifest_path),
        )
    }
}

/// The target of the compiler itself.
fn host() -> Result<String> {
    let text = answer(Command::new("rustc").arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| anyhow!("rustc -vV names no host"))
}

fn answer(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        bail!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{name}: the answer is not text"))
}

type Tree = (Key, BTreeSet<Key>, BTreeSet<(Key, Key)>);

/// Lines such as `2 serde v1.0.228 (proc-macro)`: depth, name, version, remarks.
fn parse_tree(text: &str) -> Result<Tree> {
    let (mut keys, mut edges, mut path): (_, _, Vec<Key>) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let mut parse = || {
            let depth: usize = words.next()?.parse().ok()?;
            let key = (words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned());
            (depth <= path.len()).then_some((depth, key))
        };
        let (depth, key) = parse().ok_or_else(|| anyhow!("cargo tree: {line:?} is not understood"))?;
        path.truncate(depth);
        edges.extend(path.last().map(|parent| (parent.clone(), key.clone())));
        keys.insert(key.clone());
        path.push(key);
    }
    let root = path.into_iter().next().ok_or_else(|| anyhow!("cargo tree: the answer is empty"))?;
    Ok((root, keys, edges))
}

/// The checksums of a lock file. Each package has name, version and checksum on lines of their own, in this order.
fn parse_lock(text: &str) -> BTreeMap<Key, String> {
    let mut checksums = BTreeMap::new();
    for block in text.split("[[package]]") {
        let field = |name: &str| {
            let prefix = format!("{name} = \"");
            block
                .lines()
                .find_map(|line| line.strip_prefix(&prefix)?.strip_suffix('"'))
                .map(str::to_owned)
        };
        if let (Some(name), Some(version), Some(checksum)) = (field("name"), field("version"), field("checksum")) {
            checksums.insert((name, version), checksum);
        }
    }
    checksums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        let (name, version) = text.split_once(' ').expect("name and version");
        (name.to_owned(), version.to_owned())
    }

    #[test]
    fn tree_edges_follow_the_depth() {
        let text = "0 vdo v0.1.0 (/vdo)\n1 a v1.0.0\n2 b v2.0.0 (proc-macro)\n1 c v3.0.0\n2 b v2.0.0 (proc-macro) (*)\n";
        let (root, keys, edges) = parse_tree(text).expect("a tree");
        assert_eq!((root, keys.len()), (key("vdo 0.1.0"), 4));
        let wanted = [
            ("vdo 0.1.0", "a 1.0.0"),
            ("a 1.0.0", "b 2.0.0"),
            ("vdo 0.1.0", "c 3.0.0"),
            ("c 3.0.0", "b 2.0.0"),
        ];
        assert_eq!(edges, wanted.map(|(a, b)| (key(a), key(b))).into());
        for bad in ["", "0 vdo", "x vdo v1", "2 vdo v1.0.0", "0 vdo 1.0.0"] {
            assert!(parse_tree(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn lock_packages_without_checksum_are_left_out() {
        let text = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"00ff\"\n\n[[package]]\nname = \"vdo\"\nversion = \"0.1.0\"\n";
        assert_eq!(parse_lock(text), BTreeMap::from([(key("a 1.0.0"), "00ff".to_owned())]));
    }
}
