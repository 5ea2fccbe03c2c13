// SPDX-License-Identifier: Apache-2.0
//! `MatrixSource`: parses the text of a source (`embedded`, path, `https://`, `oci://`, `configmap://`) and calls the file of its kind.

use super::configmap_source::ConfigMaps;
use super::registry::{self, RegistrySource};
use super::stored_matrix_source::Kept;
use super::web::Web;
use super::{Access, FetchError, Signed, SourceState, directory, embedded};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use vdo_api::types::ChartRef;
use vdo_core::matrix::EMBEDDED;

/// A place that holds a matrix index and charts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MatrixSource {
    /// The binary itself.
    #[default]
    Embedded,
    /// An index file, or a folder with `index.yaml`; the charts are beside it, at the relative locations that the index names.
    Local(PathBuf),
    /// An index on a web server. Charts are at locations relative to it, or at addresses of their own.
    Web(Web),
    /// ConfigMaps of the cluster, which hold index, signature and charts.
    ConfigMaps(ConfigMaps),
    /// An artifact in a registry: index, signatures and charts. Charts may have addresses of their own, too.
    Registry(RegistrySource),
    /// What a cluster keeps of one of the others. No text names it.
    Kept(Kept),
}

impl fmt::Display for MatrixSource {
    /// `embedded`, the path or the address: the word that status shows as the source of the matrix.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str(EMBEDDED),
            Self::Local(path) => path.display().fmt(f),
            Self::Web(web) => web.fmt(f),
            Self::ConfigMaps(place) => place.fmt(f),
            Self::Registry(registry) => registry.fmt(f),
            Self::Kept(kept) => kept.source().fmt(f),
        }
    }
}

impl FromStr for MatrixSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        match scheme {
            "" if text.is_empty() => Err("no source is named".into()),
            "" if text == EMBEDDED => Ok(Self::Embedded),
            "" => Ok(Self::Local(text.into())),
            "file" => Ok(Self::Local(rest.into())),
            "https" => Web::at(text).map(Self::Web),
            "configmap" => ConfigMaps::at(rest).map(Self::ConfigMaps),
            "oci" => RegistrySource::at(text).map(Self::Registry),
            other => Err(format!(
                "{other}:// is not a source of a matrix; write embedded, a path, or an address with https://, oci:// or configmap://"
            )),
        }
    }
}

impl MatrixSource {
    /// Its ConfigMaps, where it has some: what they hold is handed over by the one who can read them.
    #[must_use]
    pub fn config_maps(&self) -> Option<&ConfigMaps> {
        match self {
            Self::ConfigMaps(place) => Some(place),
            Self::Kept(kept) => kept.source().config_maps(),
            _ => None,
        }
    }

    /// Whether it came out of a binary: this one, or that of the operator.
    #[must_use]
    pub fn is_embedded(&self) -> bool {
        match self {
            Self::Embedded => true,
            Self::Kept(kept) => kept.source().is_embedded(),
            _ => false,
        }
    }

    /// Whether it is asked from time to time, and not at every look.
    #[must_use]
    pub fn is_polled(&self) -> bool {
        matches!(self, Self::Web(_) | Self::Registry(_))
    }

    /// The index as it is now, with its signature. Nothing vouches for them yet: signature and version are the caller's to check.
    /// `known` is what the last look found; a server then only says whether that is still so.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn fetch(&self, access: &Access, known: Option<&SourceState>) -> Result<SourceState, FetchError> {
        let signed = match self {
            Self::Embedded => Signed {
                index: embedded::index().to_vec(),
                signature: None,
                lock: None,
            },
            Self::Local(path) => {
                directory::aside(path, |path| {
                    Ok(Signed {
                        index: directory::index(path)?,
                        signature: directory::signature(path)?,
                        lock: directory::lock(path)?,
                    })
                })
                .await?
            }
            Self::Kept(kept) => return Ok(kept.state()),
            Self::ConfigMaps(place) => return Err(FetchError::Index(Box::new(place.not_read()))),
            Self::Web(web) => {
                let looked = web.fetch(access, known).await;
                return looked.map_err(|error| FetchError::Index(Box::new(error)));
            }
            Self::Registry(registry) => {
                let looked = registry.fetch(access, known).await;
                return looked.map_err(|error| FetchError::Index(Box::new(error)));
            }
        };
        Ok(SourceState::at(signed))
    }

    /// A file beside the index; `None` where there is none of this name. Nothing vouches for it yet.
    ///
    /// # Errors
    /// When it cannot be read, or has more bytes than `limit`.
    pub async fn beside(&self, access: &Access, name: &str, limit: usize) -> Result<Option<Vec<u8>>, FetchError> {
        match self {
            Self::Embedded | Self::ConfigMaps(_) | Self::Kept(_) => Ok(None),
            Self::Local(path) => {
                let name = name.to_owned();
                directory::aside(path, move |path| directory::beside(path, &name, limit)).await
            }
            Self::Web(web) => web.beside(access, name, limit).await,
            Self::Registry(registry) => registry.beside(access, name, limit).await,
        }
    }

    /// The bytes of a chart package, with the digest the reference asks for. A chart that is in the binary comes from there: its digest
    /// says that it is the same.
    ///
    /// # Errors
    /// When the chart is not there or its bytes are others than promised.
    pub async fn chart(&self, access: &Access, chart: &ChartRef) -> Result<Vec<u8>, FetchError> {
        let here = match self {
            Self::Kept(kept) => return kept.chart(access, chart).await,
            Self::Local(path) => {
                let chart = chart.clone();
                directory::aside(path, move |path| directory::chart(path, &chart)).await
            }
            _ => embedded::chart(chart),
        };
        match (self, here) {
            (Self::Embedded, here) | (_, here @ Ok(_)) => here,
            (Self::ConfigMaps(place), Err(_)) => Err(place.not_read()),
            // A file that was changed is reported, and not passed over.
            (Self::Local(_), Err(error)) if !matches!(error, FetchError::NotFound { .. }) => Err(error),
            (_, Err(error)) => self
                .distant(access, chart)
                .await
                .unwrap_or(Err(error))
                .map_err(|error| self.nowhere(error)),
        }
    }

    fn nowhere(&self, error: FetchError) -> FetchError {
        match error {
            FetchError::NotFound { store, locations } if self.is_polled() => FetchError::NotFound {
                store: format!("a file beside {self}, an address with https:// or oci://, or {store}"),
                locations,
            },
            other => other,
        }
    }

    /// The chart at the first of its locations that has it; the last error where none has, and `None` where no location leads to another machine.
    async fn distant(&self, access: &Access, chart: &ChartRef) -> Option<Result<Vec<u8>, FetchError>> {
        let mut last = None;
        for location in &chart.urls {
            let own = match self {
                Self::Registry(registry) => Some(registry.reference()),
                _ => None,
            };
            let got = match self {
                _ if location.starts_with("oci://") => Some(registry::chart(access, own, location, &chart.digest).await),
                Self::Web(web) => web.chart(access, location, &chart.digest).await,
                Self::Registry(registry) => registry.chart(access, location, &chart.digest).await,
                _ => None,
            };
            last = got.or(last);
            if matches!(last, Some(Ok(_))) {
                break;
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_text_is_read_and_shown_again() {
        for text in [
            "embedded",
            "matrix-index",
            "/etc/vdo/index.yaml",
            "https://vdo.example.com/matrix/index.yaml",
            "https://vdo.example.com:8443/index.json?v=1",
            "configmap://vmware-system-vdo/matrix",
            "oci://registry.example.com:5000/vdo/matrix:stable",
        ] {
            let source: MatrixSource = text.parse().expect(text);
            assert_eq!(source.to_string(), text);
            assert_eq!(source.is_polled(), text.contains("://") && !text.starts_with("configmap"));
        }
        assert_eq!("file:///etc/vdo".parse(), Ok(MatrixSource::Local("/etc/vdo".into())));
    }

    #[test]
    fn source_of_unknown_kind_is_rejected() {
        for (text, said) in [
            ("", "no source is named"),
            ("http://vdo.example.com/index.yaml", "http:// is not a source"),
            ("ftp://vdo.example.com/index.yaml", "ftp:// is not a source"),
            ("https://", "is not an address"),
            ("configmap://matrix", "write configmap://NAMESPACE/NAME"),
            ("https://user:secret@vdo.example.com/index.yaml", "credentials"),
            ("https://vdo.example.com/index.yaml#part", "must not contain #"),
            ("oci://registry.example.com/matrix", "names no tag"),
            ("oci://registry.example.com/Matrix:1", "small letters"),
            ("oci://user:secret@registry.example.com/matrix:1", "credentials"),
        ] {
            let error = text.parse::<MatrixSource>().expect_err(text);
            assert!(error.contains(said) && !error.contains("secret"), "{error}");
        }
    }
}
