// SPDX-License-Identifier: Apache-2.0
//! The source `embedded`: the charts and the matrix index inside the binary, for an installation without network.

use super::{FetchError, verified};
use std::collections::BTreeMap;
use vdo_api::types::{ChartRef, DriverName, DriverVersion};
use vdo_core::chart::{Source, package};

mod table {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// The matrix index this build was made with.
#[must_use]
pub fn index() -> &'static [u8] {
    table::INDEX
}

/// What the index was made from beside the charts, by the names of the files.
pub fn facts() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let files: [(&str, &[u8]); 3] = [
        ("facts.yaml", include_bytes!("../../../../matrix-index/facts.yaml")),
        ("privileges.yaml", include_bytes!("../../../../matrix-index/privileges.yaml")),
        ("index.yaml", table::INDEX),
    ];
    files.into_iter()
}

/// The chart sources this build was made with, by driver.
#[must_use]
pub fn sources() -> BTreeMap<DriverName, Source> {
    let mut sources: BTreeMap<DriverName, Source> = BTreeMap::new();
    for (path, content) in table::CHARTS {
        if let Some((driver, file)) = path.split_once('/') {
            let source = sources.entry(driver.to_owned()).or_default();
            source.files.insert(file.to_owned(), content.to_vec());
        }
    }
    sources
}

/// The package a reference names: the first of its locations whose file name is a driver and version of this build.
///
/// # Errors
/// When there is none, or its bytes are not the promised ones.
pub fn chart(chart: &ChartRef) -> Result<Vec<u8>, FetchError> {
    let sources = sources();
    let named = chart.urls.iter().find_map(|url| named(&sources, url));
    let (driver, version, source) = named.ok_or_else(|| FetchError::NotFound {
        store: "a chart in this build".to_owned(),
        locations: chart.urls.join(", "),
    })?;
    let name = format!("{driver}-{version}.tgz");
    let bytes = package(source, &version).map_err(|source| FetchError::Package {
        name: name.clone(),
        source,
    })?;
    verified(|| format!("the embedded chart {name}"), bytes, &chart.digest)
}

/// `…/vsphere-csi-3.7.3.tgz` is the release 3.7.3 of the source `vsphere-csi`, if there are such.
fn named<'a>(sources: &'a BTreeMap<DriverName, Source>, url: &str) -> Option<(&'a str, DriverVersion, &'a Source)> {
    let name = url.rsplit('/').next()?.strip_suffix(".tgz")?;
    sources.iter().find_map(|(driver, source)| {
        let version: DriverVersion = name.strip_prefix(driver.as_str())?.strip_prefix('-')?.parse().ok()?;
        source.has(&version).then_some((driver.as_str(), version, source))
    })
}
