// SPDX-License-Identifier: Apache-2.0
//! Finds and opens the chart of `NAME --version VERSION`, from the charts in vdoctl or from the folder of `--charts`.

use super::super::args::ChartName;
use super::super::error::{capital, sentence};
use super::super::{CliError, Exit, matrix};
use std::path::{Path, PathBuf};
use vdo_api::types::{Digest, DriverVersion};
use vdo_core::chart::{self, Chart};
use vdo_core::matrix::{Driver, Entry, Index};
use vdo_source::fetch::embedded;

/// A chart that was named, as a package and unpacked.
pub(super) struct Opened {
    /// The package.
    pub(super) bytes: Vec<u8>,
    /// What is in it.
    pub(super) chart: Chart,
    /// The newest Kubernetes that it is known to work with.
    pub(super) kubernetes: Option<String>,
}

impl Opened {
    /// One line about the package.
    pub(super) fn line(&self) -> String {
        let digest = Digest::of(&self.bytes);
        format!("{}, {} bytes, {digest}", self.chart.label(), self.bytes.len())
    }
}

/// The chart of that name and version.
pub(super) async fn open(name: &ChartName) -> Result<Opened, CliError> {
    let index = matrix::embedded_index()?;
    let (bytes, kubernetes) = if let Some(folder) = &name.charts {
        (package(folder, name, &index)?, None)
    } else {
        let (_, entry) = entry(&index, name)?;
        let bytes = embedded::chart(&entry.chart).map_err(|error| CliError::of(Exit::Refused, &error))?;
        let range = &entry.kubernetes.range;
        (bytes, range.max().or(range.min()).map(ToOwned::to_owned))
    };
    let chart = chart::open(&bytes).map_err(|error| CliError::of(Exit::Refused, &error))?;
    Ok(Opened { bytes, chart, kubernetes })
}

/// Packages a release of the chart sources in a folder. A driver of its own that no matrix knows yet is found by its folder.
fn package(folder: &Path, name: &ChartName, index: &Index) -> Result<Vec<u8>, CliError> {
    let driver = matrix::driver(index, &name.driver).map_or(name.driver.as_str(), |(driver, _)| driver);
    let version: DriverVersion = name
        .version
        .parse()
        .map_err(|error| CliError::new(Exit::Usage, sentence(&error), ""))?;
    let read = |path: &PathBuf| super::folder::read(path, "With --charts, name the folder that has a subfolder for each driver.");
    let paths = super::folder::of_driver(folder, driver);
    let elsewhere = paths
        .iter()
        .skip(1)
        .filter_map(|path| read(path).ok())
        .find(|source| source.has(&version));
    let source = match read(&paths[0]) {
        Ok(source) if source.has(&version) => source,
        own => elsewhere.map_or(own, Ok)?,
    };
    chart::package(&source, &version).map_err(|error| CliError::of(Exit::Refused, &error))
}

/// The entry of the matrix that was named; a wrong name is answered with what there is.
fn entry<'a>(index: &'a Index, name: &ChartName) -> Result<(&'a str, &'a Entry), CliError> {
    let (driver, all) = matrix::driver(index, &name.driver)?;
    let version = name.version.parse::<DriverVersion>();
    if let Some(entry) = version.as_ref().ok().and_then(|version| all.entry(version)) {
        return Ok((driver, entry));
    }
    let near = match &version {
        Ok(version) => all.nearest(version),
        Err(_) => beginning_with(all, &name.version),
    };
    let near: Vec<String> = near
        .iter()
        .filter_map(|version| all.entry(version))
        .map(|entry| {
            format!(
                "{} (Kubernetes {}, vSphere {})",
                entry.version, entry.kubernetes.range, entry.vsphere.range
            )
        })
        .collect();
    let remedy = match near.as_slice() {
        [] => String::new(),
        [one] => format!("The nearest version is {one}.\n"),
        many => capital(&format!("the nearest versions are {}.\n", many.join(" and ")))
            .trim_end_matches('.')
            .to_owned(),
    };
    Err(CliError::new(
        Exit::NotFound,
        format!("{driver} has no version {:?} in the matrix of this vdoctl", name.version),
        format!("{remedy}All versions: vdoctl matrix list {driver}"),
    ))
}

/// The newest versions that begin with what was typed, or the newest of all.
fn beginning_with(driver: &Driver, typed: &str) -> Vec<DriverVersion> {
    let typed = typed.trim_start_matches('v');
    let mut all: Vec<&DriverVersion> = driver.versions.iter().map(|entry| &entry.version).collect();
    all.sort_by(|a, b| b.cmp(a));
    let fits: Vec<DriverVersion> = all
        .iter()
        .filter(|v| format!("{v}.").starts_with(&format!("{typed}.")))
        .take(2)
        .map(|v| (*v).clone())
        .collect();
    if fits.is_empty() {
        all.into_iter().take(1).cloned().collect()
    } else {
        fits
    }
}
