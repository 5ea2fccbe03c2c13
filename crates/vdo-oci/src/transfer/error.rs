// SPDX-License-Identifier: Apache-2.0
//! Why an image cannot be copied between registries and layouts (`TransferError`), with the remedy.

use crate::layout::LayoutError;
use crate::registry::RegistryError;
use std::borrow::Cow;
use vdo_api::types::Remedy;

/// Something could not be moved.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// A registry does not give or take it.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A layout cannot be read or written.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// It belongs to an image.
    #[error("{reference} is not complete")]
    Image {
        /// The image.
        reference: String,
        /// What is wrong.
        #[source]
        source: Box<TransferError>,
    },
    /// It is not there for a platform.
    #[error("{reference} is not available for {}; it is available for {}", wanted.join(", "), known.join(", "))]
    Platform {
        /// The image.
        reference: String,
        /// What was asked for.
        wanted: Vec<String>,
        /// What there is.
        known: Vec<String>,
    },
    /// A layer that its publisher gives out elsewhere.
    #[error("the registry of {reference} does not provide one of its layers (type {media_type})")]
    Foreign {
        /// The image.
        reference: String,
        /// The type of the layer.
        media_type: String,
        /// What the registry says.
        #[source]
        source: RegistryError,
    },
    /// It leads to itself, or to more than any image has.
    #[error("{reference} has more than {limit} manifests")]
    TooMany {
        /// The image.
        reference: String,
        /// The limit.
        limit: usize,
    },
    /// A manifest is of an unknown kind.
    #[error("{reference} has the unknown media type {media_type:?}")]
    Kind {
        /// The image.
        reference: String,
        /// Its type.
        media_type: String,
    },
    /// A manifest is not what its type says.
    #[error("a manifest of {reference} cannot be parsed")]
    Json {
        /// The image.
        reference: String,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
}

impl Remedy for TransferError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Registry(error) => error.remedy(),
            Self::Layout(error) => error.remedy(),
            Self::Image { source, .. } => source.remedy(),
            Self::Platform { .. } => {
                Some("Name platforms of this image with --platform, or leave out --platform to take all of them.".into())
            }
            Self::Foreign { .. } => Some("Name only the platforms that you need, for example --platform linux/amd64.".into()),
            Self::TooMany { .. } | Self::Kind { .. } | Self::Json { .. } => {
                Some("Ask the publisher of the image; the image is not used.".into())
            }
        }
    }
}

impl TransferError {
    /// Whether what was read before may be what is wrong.
    pub(super) fn is_of_rest(&self) -> bool {
        match self {
            Self::Registry(error) => error.is_of_rest(),
            Self::Layout(error) => matches!(error, LayoutError::Blob(_)),
            _ => false,
        }
    }

    /// Says to which image it belongs.
    #[must_use]
    pub fn of(self, reference: &str) -> Self {
        match self {
            error @ (Self::Registry(_) | Self::Layout(_)) => Self::Image {
                reference: reference.to_owned(),
                source: Box::new(error),
            },
            other => other,
        }
    }
}
