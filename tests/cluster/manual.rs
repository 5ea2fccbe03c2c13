// SPDX-License-Identifier: Apache-2.0
//! docs/manual.md: the drivers without the operator.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test should stop where it fails")]

use crate::fixture::BARE;
use crate::page::open;
use anyhow::{Result, ensure};
use std::path::Path;

#[test]
#[ignore = "long"]
fn page_manual_works_as_written() -> Result<()> {
    BARE.run(async |bed| open(bed, "manual.md")?.run_all())
}

/// The files of the page in the drivers' grammars: the operator, given the same connection, writes the same.
#[test]
fn page_manual_shows_the_files_that_the_operator_writes() -> Result<()> {
    use vdo_api::types::Secret;
    use vdo_core::driverconfig::{Connection, Trust, cpi, csi};
    let connection = |name: &str, user: &str| Connection {
        name: name.into(),
        server: "vcenter.example.com".into(),
        port: 443,
        datacenters: vec!["dc-1".into()],
        trust: Trust::SystemRoots,
        sha1: None,
        user: user.into(),
        password: Secret::new("change-me"),
    };
    let options = csi::CsiOptions::new("choose-one-and-never-change-it");
    let files = csi::render(&"3.8.0".parse()?, &options, &[connection("main", "csi@vsphere.local")])?;
    let options = cpi::CpiOptions {
        secret_name: "vsphere-cloud-secret".into(),
        secret_namespace: "kube-system".into(),
        ..cpi::CpiOptions::default()
    };
    let config = cpi::render(&"1.34.0".parse()?, &options, &[connection("main", "cpi@vsphere.local")])?;
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/manual.md"))?;
    let page: Vec<&str> = page.lines().map(str::trim).collect();
    let credentials = config.secret.iter().map(|(key, value)| format!("{key}: {}", value.expose()));
    let wanted: Vec<String> = [files[csi::FILE].expose(), config.conf.as_str()]
        .iter()
        .flat_map(|text| text.lines())
        .map(|line| line.trim().to_owned())
        .chain(credentials)
        .filter(|line| !line.is_empty())
        .collect();
    for line in &wanted {
        ensure!(page.contains(&line.as_str()), "the page lacks {line:?} of\n{}", wanted.join("\n"));
    }
    Ok(())
}
