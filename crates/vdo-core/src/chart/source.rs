// SPDX-License-Identifier: Apache-2.0
//! The type `Source`: the files of a chart folder with all its releases, before one release is packaged.

use super::opened_chart::Files;

/// The folder of a chart with all its releases, as it lies under `charts/`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// Every file by its path in the folder.
    pub files: Files,
}

impl Source {
    /// A source from its files.
    pub fn new(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        Self {
            files: files.into_iter().collect(),
        }
    }
}
