// SPDX-License-Identifier: Apache-2.0
//! The test bed's programs are built on a machine that has nothing of them yet.

use crate::fixture::alone;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;
use vdo_testbed::{Binaries, Part};

/// What Go is set to on this machine.
fn go_env(name: &str) -> Result<String> {
    let output = Command::new("go").args(["env", name]).output().context("go")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Builds a part in a folder of its own, with no module downloaded before. What this machine has downloaded serves as the proxy, so that no
/// network is needed.
fn built(folder: &Path, part: Part) -> Result<Binaries> {
    let here = go_env("GOMODCACHE")?.replace(' ', "%20");
    let go = [
        ("GOMODCACHE", folder.join("modules").display().to_string()),
        ("GOPROXY", format!("file://{here}/cache/download,{}", go_env("GOPROXY")?)),
        ("GOFLAGS", "-modcacherw".to_owned()),
    ];
    let go = go.map(|(name, value)| (name.to_owned(), value)).into();
    let binaries = Binaries::ensure_in(&folder.join("built"), go, &[part])?;
    ensure!(binaries.path(part).is_file(), "{part:?} is not there");
    Ok(binaries)
}

/// kwok's stage files are in its module's sources, which `go list` does not find before something has downloaded them.
#[test]
#[ignore = "long"]
fn testbed_build_with_empty_module_cache_finds_kwok_and_its_stages() -> Result<()> {
    alone(async || {
        let folder = tempfile::tempdir()?;
        let stages = built(folder.path(), Part::Kwok)?.kwok_stages()?;
        ensure!(stages.len() == 5, "{stages:?}");
        Ok(())
    })
}

/// The sources that are changed before they are built are in Go's module cache, which nothing may write to.
#[test]
#[ignore = "long"]
fn testbed_build_with_empty_module_cache_changes_a_copy_of_the_sources() -> Result<()> {
    alone(async || {
        let folder = tempfile::tempdir()?;
        built(folder.path(), Part::CsiResizer).map(|_| ())
    })
}
