// SPDX-License-Identifier: Apache-2.0
//! Removes driver versions from the matrix of an existing mirror: computes the smaller index and lock file for `mirror prune`.

use super::super::args::Selecting;
use super::super::{CliError, Exit};
use super::bundle::{Matrix, opened};
use super::collect::{selection, wanted};
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::types::Digest;
use vdo_author::mirror::Versions;
use vdo_core::mirror_lock::{FILE, Lock};
use vdo_oci::oci::Descriptor;

/// A matrix with fewer versions.
pub(super) struct Narrow {
    /// What it is going to hold.
    pub(super) lock: Lock,
    /// Its files.
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

/// The matrix with the versions that are selected; `None` where that is all of them.
pub(super) fn narrow(
    select: &Selecting,
    matrix: &Matrix,
    read: impl Fn(&Descriptor) -> Result<Vec<u8>, CliError>,
) -> Result<Option<Narrow>, CliError> {
    let Some(versions) = kept(select, matrix)? else { return Ok(None) };
    let needed = |versions: &Versions| {
        let mut needed = BTreeSet::new();
        for (driver, versions) in versions {
            for version in versions {
                let entry = matrix.index.drivers.get(driver).and_then(|driver| driver.entry(version));
                let Some(package) = entry.and_then(|entry| matrix.package(&entry.chart)) else {
                    continue;
                };
                let images = wanted(&opened(&read(package)?)?, version, driver, &matrix.index)?;
                needed.extend(images.into_iter().map(|image| image.reference));
            }
        }
        Ok::<_, CliError>(needed)
    };
    // What no version needs, such as the operator, was asked for by itself.
    let (before, now) = (needed(&matrix.lock.versions)?, needed(&versions)?);
    let stays = |reference: &str| now.contains(reference) || !before.contains(reference);
    let mut lock: Lock = matrix.lock.clone();
    lock.images.retain(|image| stays(&image.reference));
    lock.versions = versions;
    let charts = lock
        .versions
        .iter()
        .flat_map(|(driver, versions)| versions.iter().map(move |version| (driver, version)));
    let charts: BTreeSet<&Digest> = charts
        .filter_map(|(driver, version)| Some(&matrix.index.drivers.get(driver)?.entry(version)?.chart.digest))
        .collect();
    let mut files = BTreeMap::new();
    for (path, blob) in &matrix.files {
        if !path.ends_with(".tgz") || charts.contains(&blob.digest) {
            files.insert(path.clone(), read(blob)?);
        }
    }
    let text = lock.text().map_err(|error| CliError::of(Exit::Refused, &error))?;
    files.insert(FILE.to_owned(), text.into_bytes());
    Ok(Some(Narrow { lock, files }))
}

/// The versions that stay, where not all do.
fn kept(select: &Selecting, matrix: &Matrix) -> Result<Option<Versions>, CliError> {
    if *select == Selecting::default() {
        return Ok(None);
    }
    let index = matrix.lock.narrow(&matrix.index);
    let chosen = selection(select, &index)?
        .choose(&index)
        .map_err(|error| CliError::of(Exit::Usage, &error))?;
    let mut versions = matrix.lock.versions.clone();
    for (driver, versions) in &mut versions {
        versions.retain(|version| chosen.get(driver).is_some_and(|chosen| chosen.contains(version)));
    }
    versions.retain(|_, versions| !versions.is_empty());
    match versions.is_empty() {
        true => Err(CliError::new(
            Exit::Usage,
            "the selection contains none of the driver versions in the mirror",
            "To see the content of the mirror: vdoctl mirror verify.",
        )),
        false => Ok(Some(versions).filter(|versions| *versions != matrix.lock.versions)),
    }
}
