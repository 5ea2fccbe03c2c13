// SPDX-License-Identifier: Apache-2.0
//! The source "folder": reads a matrix index and charts from files (an unpacked mirror, a mounted ConfigMap, a working copy).
//!
//! Reads also the credentials of a source from a mounted Secret with the keys of Flux or of Docker. Has the limits of size and time of
//! these reads.

use super::keys::files;
use super::{Access, AccessError, FetchError, embedded, verified};
use crate::signature::Form;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use vdo_api::types::ChartRef;
use vdo_core::chart::archive::PACKED_LIMIT;
use vdo_core::matrix::INDEX_LIMIT;
use vdo_core::mirror_lock;

/// Bytes of what a mirror has: ten thousand images have 3 MiB.
pub(super) const LOCK_LIMIT: usize = 4 << 20;

/// Bytes of a signature, or of all trusted keys.
pub(super) const SMALL_LIMIT: usize = 64 << 10;

/// How long a file system may take.
pub(super) const DEADLINE: Duration = Duration::from_secs(30);

/// The key of a Secret of the type `kubernetes.io/dockerconfigjson`. Its file is hidden by its name.
const DOCKER: &str = ".dockerconfigjson";

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
    beside(path, mirror_lock::FILE, LOCK_LIMIT)
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

/// Reads files in a thread of its own: a file system that hangs must not keep anything else from going on.
pub(super) async fn aside<T: Send + 'static>(
    path: &Path,
    read: impl FnOnce(&Path) -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    let own = path.to_owned();
    let done = vdo_files::aside(DEADLINE, move || read(&own)).await;
    done.unwrap_or_else(|source| {
        Err(FetchError::Read {
            path: path.to_owned(),
            source,
        })
    })
}

/// The files of a folder, by their names.
///
/// # Errors
/// When they cannot be read.
pub fn credentials(folder: &Path) -> Result<Access, FetchError> {
    let docker = Some(folder.join(DOCKER)).filter(|file| file.is_file());
    let mut values = Vec::new();
    for file in files(folder)?.into_iter().chain(docker) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = String::from_utf8(read(&file, SMALL_LIMIT)?).map_err(|_| AccessError::new(format!("{name} is not text")))?;
        values.push((name, text));
    }
    Ok(Access::new(values))
}
