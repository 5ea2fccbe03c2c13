// SPDX-License-Identifier: Apache-2.0
//! `vdo-release matrix`: the matrix and its charts as a folder that a web server can serve, or a mirror copy.

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
