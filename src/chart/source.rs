use super::model::Files;
use crate::types::DriverVersion;

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

    /// The versions there is a release file for, oldest first.
    #[must_use]
    pub fn versions(&self) -> Vec<DriverVersion> {
        let mut versions: Vec<DriverVersion> = self
            .files
            .keys()
            .filter_map(|path| path.strip_prefix("releases/")?.strip_suffix(".yaml")?.parse().ok())
            .collect();
        versions.sort();
        versions
    }

    /// Files among the releases that are none, because their names are no versions.
    #[must_use]
    pub fn strangers(&self) -> Vec<&str> {
        let is_release = |path: &str| {
            path.strip_suffix(".yaml")
                .is_some_and(|version| version.parse::<DriverVersion>().is_ok())
        };
        let all = self.files.keys();
        all.filter(|path| path.strip_prefix("releases/").is_some_and(|name| !is_release(name)))
            .map(String::as_str)
            .collect()
    }
}
