// SPDX-License-Identifier: Apache-2.0
//! The programs of this project that a test runs, as `cargo build --workspace` made them.

use anyhow::{Context, Result, anyhow, ensure};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

/// Where `vdoctl` is.
///
/// # Panics
/// When it was not built, or is older than one of its sources: the message says what to run.
#[must_use]
#[expect(clippy::panic, reason = "without the program no test means anything")]
pub fn vdoctl() -> &'static str {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND.get_or_init(|| beside_tests("vdoctl").unwrap_or_else(|error| panic!("{error:#}")))
}

/// Where vdo-release is, which makes bundles and catalogs.
///
/// # Errors
/// When it was not built, or is older than one of its sources.
pub fn vdo_release() -> Result<String> {
    beside_tests("vdo-release")
}

/// A program in the target folder of the running one.
fn beside_tests(name: &str) -> Result<String> {
    let own = std::env::current_exe().context("this program")?;
    // Tests are in a folder of their own, `deps`.
    let path = own.ancestors().nth(2).context("the target folder")?.join(name);
    ensure_fresh(&path, &path.with_extension("d"), "cargo build --workspace")?;
    let path = path.into_os_string().into_string();
    path.map_err(|path| anyhow!("{} is not UTF-8", path.display()))
}

/// That what was made is newer than every source in a list, which has the form of a Makefile.
///
/// # Errors
/// When a source is newer, or one of the two is missing; the message names the `command` that makes it.
pub fn ensure_fresh(made: &Path, list: &Path, command: &str) -> Result<()> {
    let time = modified(made).with_context(|| format!("there is no {}: run `{command}`", made.display()))?;
    for source in sources(list).with_context(|| format!("{}: run `{command}`", list.display()))? {
        // A source that was deleted since then is not needed any more, or the program does not compile.
        let newer = modified(&source).is_ok_and(|changed| changed > time);
        ensure!(!newer, "{} is older than {}: run `{command}`", made.display(), source.display());
    }
    Ok(())
}

fn modified(file: &Path) -> Result<SystemTime> {
    Ok(std::fs::metadata(file)?.modified()?)
}

/// The files that the compiler read.
fn sources(list: &Path) -> Result<Vec<PathBuf>> {
    let text = std::fs::read_to_string(list)?;
    let (_, files) = text.split_once(": ").context("a list of files")?;
    let files = files.trim_end().replace("\\ ", "\0");
    Ok(files.split(' ').map(|file| PathBuf::from(file.replace('\0', " "))).collect())
}
