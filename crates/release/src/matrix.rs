// SPDX-License-Identifier: Apache-2.0
//! `vdo-release matrix`: writes the built-in matrix index and its charts into a folder, with SHA256SUMS, signed if there is a key.
//!
//! A web server can serve the folder, and `vdoctl mirror` can copy it.

use crate::{output, sign, sums};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;
use vdo_author::publish::Release;
use vdo_core::matrix::Index;
use vdo_source::fetch::embedded;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder to write
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
}

pub fn run(args: &Args) -> Result<()> {
    let index = Index::parse(embedded::index()).context("the matrix")?;
    let mut charts = BTreeMap::new();
    for entry in index.drivers.values().flat_map(|driver| &driver.versions) {
        let bytes = embedded::chart(&entry.chart).with_context(|| format!("the chart of {}", entry.version))?;
        let place = entry.chart.urls.first().context("a chart has no location")?;
        charts.insert(place.clone(), bytes);
    }
    let mut release = Release {
        index: embedded::index().to_vec(),
        charts,
        ..Release::default()
    };
    match sign::key()? {
        None => output::line("  NOT signed: VDO_SIGNING_KEY names no key")?,
        Some(key) => {
            release.signatures = key.signatures(&release.index)?;
            output::line(&format!("  signed by {}", key.public()))?;
        }
    }
    for (path, bytes) in release.files() {
        output::write(&args.output.join(path), &bytes)?;
    }
    sums::write(&args.output)?;
    output::line(&format!("matrix version {}, {} charts", index.version, release.charts.len()))
}
