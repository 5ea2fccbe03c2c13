//! A folder with `index.yaml` and charts beside it: an unpacked mirror, or a working copy.

use super::{FetchError, verified};
use crate::chart::archive::PACKED_LIMIT;
use crate::types::ChartRef;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path};

/// Bytes of an index. The embedded one has 30 KiB.
const INDEX_LIMIT: usize = 8 << 20;

pub(super) fn index(folder: &Path) -> Result<Vec<u8>, FetchError> {
    read(&folder.join("index.yaml"), INDEX_LIMIT)
}

pub(super) fn chart(folder: &Path, chart: &ChartRef) -> Result<Vec<u8>, FetchError> {
    let local = chart.urls.iter().filter(|url| stays_inside(url));
    let path = local
        .map(|url| folder.join(url))
        .find(|path| path.is_file())
        .ok_or_else(|| FetchError::NotFound {
            store: format!("a file in {}", folder.display()),
            locations: chart.urls.join(", "),
        })?;
    let bytes = read(&path, PACKED_LIMIT)?;
    verified(|| path.display().to_string(), bytes, &chart.digest)
}

/// The index names its charts; it must not name other files of this machine.
fn stays_inside(url: &str) -> bool {
    !url.contains("://")
        && Path::new(url)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

fn read(path: &Path, limit: usize) -> Result<Vec<u8>, FetchError> {
    let failed = |source| FetchError::Read {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > limit {
        return Err(FetchError::TooLarge {
            path: path.to_owned(),
            limit,
        });
    }
    Ok(bytes)
}
