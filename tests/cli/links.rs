// SPDX-License-Identifier: Apache-2.0
//! Files that verbs write where others may write, too: no link leads them elsewhere.

use crate::vdoctl;
use anyhow::{Result, ensure};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const PACKAGE: [&str; 6] = ["chart", "package", "cpi", "--version", "1.34.0", "-o"];

fn package(place: &Path) -> Result<String> {
    let output = vdoctl(&PACKAGE).arg(place).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{}: {said}", place.display());
    Ok(said)
}

#[test]
fn output_over_a_link_replaces_the_link_and_leaves_its_target() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    fs::write(at("dear"), "dear")?;
    fs::create_dir(at("home"))?;
    for (name, to) in [("file", at("dear")), ("nothing", at("home/new")), ("loop", at("loop"))] {
        symlink(&to, at(name))?;
        package(&at(name))?;
        ensure!(
            !at(name).is_symlink() && fs::read(at(name))?.starts_with(&[0x1f, 0x8b]),
            "{name} is not the package"
        );
    }
    assert_eq!(fs::read_to_string(at("dear"))?, "dear");
    assert_eq!(fs::read_dir(at("home"))?.count(), 0);
    Ok(())
}

/// `/dev/stdout` is a link, and belongs to the system.
#[test]
fn output_to_a_stream_goes_through_the_links_of_the_system() -> Result<()> {
    let output = vdoctl(&PACKAGE).arg("/dev/stdout").output()?;
    ensure!(output.status.success() && output.stdout.starts_with(&[0x1f, 0x8b]), "{output:?}");
    Ok(())
}
