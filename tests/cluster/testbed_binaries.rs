//! The test bed's programs are built on a machine that has nothing of them yet.

use crate::fixture::alone;
use anyhow::{Context, Result, ensure};
use std::process::Command;
use vdo_testbed::{Binaries, Part};

/// What Go is set to on this machine.
fn go_env(name: &str) -> Result<String> {
    let output = Command::new("go").args(["env", name]).output().context("go")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// kwok's stage files are in its module's sources, which `go list` does not find before something has downloaded them. What this machine
/// has downloaded before serves as the proxy, so that no network is needed.
#[test]
fn testbed_build_with_empty_module_cache_finds_kwok_and_its_stages() -> Result<()> {
    alone(async || {
        let folder = tempfile::tempdir()?;
        let here = go_env("GOMODCACHE")?.replace(' ', "%20");
        let go = [
            ("GOMODCACHE", folder.path().join("modules").display().to_string()),
            ("GOPROXY", format!("file://{here}/cache/download,{}", go_env("GOPROXY")?)),
            ("GOFLAGS", "-modcacherw".to_owned()),
        ];
        let go = go.map(|(name, value)| (name.to_owned(), value)).into();
        let binaries = Binaries::ensure_in(&folder.path().join("built"), go, &[Part::Kwok])?;
        ensure!(binaries.path(Part::Kwok).is_file(), "kwok is not there");
        let stages = binaries.kwok_stages()?;
        ensure!(stages.len() == 5, "{stages:?}");
        Ok(())
    })
}
