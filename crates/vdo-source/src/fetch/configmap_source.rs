// SPDX-License-Identifier: Apache-2.0
//! The source `configmap://`: assembles a matrix index and charts from a Secret and its ConfigMaps, which the caller has read.

use super::directory::{LOCK_LIMIT, SMALL_LIMIT, stays_inside};
use super::{FetchError, Signed, SourceState, embedded, verified};
use crate::signature::Form;
use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use vdo_api::types::{ChartRef, Remedy};
use vdo_core::chart::archive::PACKED_LIMIT;
use vdo_core::matrix::{INDEX_LIMIT, PartsError, Shelf};
use vdo_core::mirror_lock;

/// What the index is called in there.
pub const INDEX_FILE: &str = "index.yaml";
const SCHEME: &str = "configmap://";

/// The name of the Secret with the list of contents. Its parts are ConfigMaps, called after it: the list has their digests, so that nothing is
/// gained by writing one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigMaps {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for ConfigMaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.namespace, self.name)
    }
}

impl FromStr for ConfigMaps {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix(SCHEME) {
            Some(rest) => Self::at(rest),
            None => Err(format!("{text} is not a ConfigMap; write {SCHEME}NAMESPACE/NAME")),
        }
    }
}

impl ConfigMaps {
    /// The ones that an address names.
    ///
    /// # Errors
    /// When it does not name one object.
    pub(super) fn at(rest: &str) -> Result<Self, String> {
        // As a DNS label: parts are called after it, with a dash and sixteen digits.
        let is_name = |text: &str| {
            let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            !text.is_empty() && text.len() <= 63 && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
        };
        match rest.split_once('/') {
            Some((namespace, name)) if is_name(namespace) && is_name(name) => Ok(Self {
                namespace: namespace.into(),
                name: name.into(),
            }),
            _ => Err(format!("{SCHEME}{rest} names no ConfigMap; write {SCHEME}NAMESPACE/NAME")),
        }
    }

    /// The ConfigMap of a part.
    #[must_use]
    pub fn part(&self, part: &str) -> String {
        format!("{}-{part}", self.name)
    }

    fn broken(&self, error: PartsError) -> FetchError {
        FetchError::ConfigMaps {
            place: self.to_string(),
            source: ConfigMapsError::Parts(error),
        }
    }

    /// What is in there, from what was read of the cluster.
    ///
    /// # Errors
    /// When there is no index, or its parts are not whole.
    pub fn stock(&self, contents: Option<&str>, part: impl Fn(&str) -> Option<Vec<u8>>) -> Result<Stock, FetchError> {
        let missing = || FetchError::ConfigMaps {
            place: self.to_string(),
            source: ConfigMapsError::Missing(self.clone()),
        };
        let contents = contents.ok_or_else(missing)?;
        let shelf = Shelf::read(contents, |name| part(&self.part(name))).map_err(|error| self.broken(error))?;
        let file = |path: &str, limit| shelf.file(path, limit).map_err(|error| self.broken(error));
        let index = file(INDEX_FILE, INDEX_LIMIT)?.ok_or_else(missing)?;
        let mut signature = None;
        for form in Form::ALL {
            let path = form.file_of(Path::new(INDEX_FILE));
            if signature.is_none() {
                signature = file(&path.to_string_lossy(), SMALL_LIMIT)?;
            }
        }
        Ok(Stock {
            place: self.clone(),
            look: SourceState::at(Signed {
                index,
                signature,
                lock: file(mirror_lock::FILE, LOCK_LIMIT)?,
            }),
            shelf,
        })
    }

    /// That no one has handed over what they hold.
    pub(super) fn not_read(&self) -> FetchError {
        FetchError::ConfigMaps {
            place: self.to_string(),
            source: ConfigMapsError::NotRead,
        }
    }

    /// That nothing vouches for the list of files.
    #[must_use]
    pub fn unproven(&self) -> FetchError {
        FetchError::ConfigMaps {
            place: self.to_string(),
            source: ConfigMapsError::Unproven(self.clone()),
        }
    }

    /// That the operator does not look there.
    #[must_use]
    pub fn elsewhere(&self, namespace: &str) -> FetchError {
        FetchError::ConfigMaps {
            place: self.to_string(),
            source: ConfigMapsError::Elsewhere {
                place: self.clone(),
                namespace: namespace.into(),
            },
        }
    }
}

/// ConfigMaps do not hold a matrix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigMapsError {
    /// The first of them is not there, or has no index.
    #[error("there is no Secret {} in namespace {} with the list of the files of a matrix", .0.name, .0.namespace)]
    Missing(ConfigMaps),
    /// The list is a ConfigMap, as former versions wrote it, and no keys are trusted.
    #[error(
        "the list of the matrix files is a ConfigMap, which is accepted only with --matrix-keys: a user who may only write ConfigMaps must \
         not choose the software that runs"
    )]
    Unproven(ConfigMaps),
    /// They are where the operator may not look.
    #[error("the matrix is in another namespace than the operator; the operator reads ConfigMaps of {namespace} only")]
    Elsewhere {
        /// The ConfigMaps.
        place: ConfigMaps,
        /// The namespace of the operator.
        namespace: String,
    },
    /// They are in a cluster, and none was read.
    #[error("the matrix is in a cluster, but this command does not read from a cluster")]
    NotRead,
    /// Their parts are not whole.
    #[error(transparent)]
    Parts(#[from] PartsError),
}

impl Remedy for ConfigMapsError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Missing(place) | Self::Unproven(place) => Some(format!("Load a matrix with vdoctl matrix load FOLDER {place}.").into()),
            Self::Elsewhere { place, namespace } => {
                let place = ConfigMaps {
                    namespace: namespace.clone(),
                    name: place.name.clone(),
                };
                Some(format!("Load the matrix into that namespace with vdoctl matrix load FOLDER {place}.").into())
            }
            Self::NotRead => Some("Name a folder instead.".into()),
            Self::Parts(error) => error.remedy(),
        }
    }
}

/// What ConfigMaps hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stock {
    place: ConfigMaps,
    look: SourceState,
    shelf: Shelf,
}

impl Stock {
    /// The index with its signature.
    pub(super) fn state(&self) -> SourceState {
        self.look.clone()
    }

    /// The bytes of a chart, if they are the promised ones. One that is not there comes out of the binary.
    pub(super) fn chart(&self, chart: &ChartRef) -> Result<Vec<u8>, FetchError> {
        for url in chart.urls.iter().filter(|url| stays_inside(url)) {
            let path = url.trim_start_matches("./");
            if let Some(bytes) = self.shelf.file(path, PACKED_LIMIT).map_err(|error| self.place.broken(error))? {
                return verified(|| format!("{path} in {}", self.place), bytes, &chart.digest);
            }
        }
        embedded::chart(chart).map_err(|error| match error {
            FetchError::NotFound { store, locations } => FetchError::NotFound {
                store: format!("a file in {}, or {store}", self.place),
                locations,
            },
            other => other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use vdo_api::types::Digest;
    use vdo_core::matrix::Parts;

    fn place() -> ConfigMaps {
        ConfigMaps::at("vmware-system-vdo/matrix").expect("an address")
    }

    #[test]
    fn address_of_config_maps_is_a_namespace_and_a_name() {
        assert_eq!(place().to_string(), "configmap://vmware-system-vdo/matrix");
        for text in ["", "matrix", "a/b/c", "a/", "/b", "A/b", "a/b.c", "a/-b", "a/b?c"] {
            let error = ConfigMaps::at(text).expect_err(text);
            assert_eq!(
                error,
                format!("configmap://{text} names no ConfigMap; write configmap://NAMESPACE/NAME")
            );
        }
    }

    #[test]
    fn stock_has_index_signature_and_charts() {
        let chart = b"a chart".to_vec();
        let files = BTreeMap::from([
            ("index.yaml".to_owned(), b"drivers: {}".to_vec()),
            ("index.yaml.sigstore.json".to_owned(), b"signed".to_vec()),
            ("charts/a-1.0.0.tgz".to_owned(), chart.clone()),
        ]);
        let parts = Parts::of(&files);
        let part = |name: &str| parts.parts.get(name.strip_prefix("matrix-")?).cloned();
        let stock = place().stock(Some(&parts.contents), part).expect("all of it");
        assert_eq!(stock.state().signed.index, b"drivers: {}");
        assert_eq!(stock.state().signed.signature.as_deref(), Some(&b"signed"[..]));
        let wanted = |url: &str, bytes: &[u8]| ChartRef {
            urls: vec![url.into()],
            digest: Digest::of(bytes),
        };
        assert_eq!(stock.chart(&wanted("./charts/a-1.0.0.tgz", &chart)).expect("it is there"), chart);
        for (chart, said) in [
            (wanted("charts/a-1.0.0.tgz", b"another"), "was changed after it was published"),
            (
                wanted("charts/b-1.0.0.tgz", &chart),
                "none of its locations (charts/b-1.0.0.tgz) is a file in configmap://",
            ),
            (wanted("../a-1.0.0.tgz", &chart), "none of"),
        ] {
            let error = stock.chart(&chart).expect_err(said).to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn config_maps_without_an_index_are_reported_with_what_to_load() {
        let parts = Parts::of(&BTreeMap::from([("readme".to_owned(), b"x".to_vec())]));
        let part = |name: &str| parts.parts.get(name.strip_prefix("matrix-")?).cloned();
        for contents in [None, Some(&*parts.contents)] {
            let error = place().stock(contents, part).expect_err("no index");
            assert_eq!(error.to_string(), "configmap://vmware-system-vdo/matrix cannot be used");
            let remedy = error.remedy().expect("a remedy");
            assert_eq!(
                remedy,
                "Load a matrix with vdoctl matrix load FOLDER configmap://vmware-system-vdo/matrix."
            );
        }
        let elsewhere = place().elsewhere("vdo");
        assert!(elsewhere.remedy().expect("a remedy").contains("configmap://vdo/matrix"));
    }
}
