// SPDX-License-Identifier: Apache-2.0
//! An index with charts beside it: an unpacked mirror, a mounted ConfigMap, or a working copy.

use super::{FetchError, embedded, verified};
use crate::signature::Form;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use vdo_api::types::ChartRef;
use vdo_core::chart::archive::PACKED_LIMIT;
use vdo_core::lock;
use vdo_core::matrix::INDEX_LIMIT;

/// Bytes of what a mirror has: ten thousand images have 3 MiB.
pub(super) const LOCK_LIMIT: usize = 4 << 20;

/// Bytes of a signature, or of all trusted keys.
pub(super) const SMALL_LIMIT: usize = 64 << 10;

/// The file of an index: itself, or `index.yaml` in a folder.
#[must_use]
pub fn index_file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("index.yaml") } else { path.to_owned() }
}

pub(super) fn index(path: &Path) -> Result<Vec<u8>, FetchError> {
    read(&index_file(path), INDEX_LIMIT).map_err(|error| FetchError::Index(Box::new(error)))
}

pub(super) fn signature(path: &Path) -> Result<Option<Vec<u8>>, FetchError> {
    let index = index_file(path);
    let files = Form::ALL.map(|form| form.file_of(&index));
    let found = files.iter().find(|file| file.exists());
    found.map(|file| read(file, SMALL_LIMIT)).transpose()
}

/// What a mirror has of the index beside it.
pub(super) fn lock(path: &Path) -> Result<Option<Vec<u8>>, FetchError> {
    beside(path, lock::FILE, LOCK_LIMIT)
}

/// A file in the folder of the index.
pub(super) fn beside(path: &Path, name: &str, limit: usize) -> Result<Option<Vec<u8>>, FetchError> {
    let file = folder(path).join(name);
    file.exists().then(|| read(&file, limit)).transpose()
}

fn folder(path: &Path) -> &Path {
    if path.is_dir() {
        path
    } else {
        path.parent().unwrap_or(Path::new("."))
    }
}

/// The first location of a chart that leads to a file beside the index, with that file.
#[must_use]
pub fn chart_file<'a>(path: &Path, chart: &'a ChartRef) -> Option<(&'a str, PathBuf)> {
    let local = chart.urls.iter().filter(|url| stays_inside(url));
    local
        .map(|url| (url.as_str(), folder(path).join(url)))
        .find(|(_, file)| file.is_file())
}

pub(super) fn chart(path: &Path, chart: &ChartRef) -> Result<Vec<u8>, FetchError> {
    let Some((_, path)) = chart_file(path, chart) else {
        let folder = folder(path);
        return embedded::chart(chart).map_err(|error| match error {
            FetchError::NotFound { store, locations } => FetchError::NotFound {
                store: format!("a file in {}, or {store}", folder.display()),
                locations,
            },
            other => other,
        });
    };
    let bytes = read(&path, PACKED_LIMIT)?;
    verified(|| path.display().to_string(), bytes, &chart.digest)
}

/// The index names its charts; it must not name other files of this machine.
pub(super) fn stays_inside(url: &str) -> bool {
    !url.contains("://")
        && Path::new(url)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

pub(super) fn read(path: &Path, limit: usize) -> Result<Vec<u8>, FetchError> {
    vdo_files::read(path, limit).map_err(|source| match source.kind() {
        ErrorKind::FileTooLarge => FetchError::TooLarge {
            path: path.to_owned(),
            limit,
        },
        _ => FetchError::Read {
            path: path.to_owned(),
            source,
        },
    })
}
