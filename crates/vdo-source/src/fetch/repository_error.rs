// SPDX-License-Identifier: Apache-2.0
//! `RepositoryError`: why an index or a chart of a source is not used, with reason and remedy.

use super::{FetchError, RolledBack, SettingsError};
use crate::signature::SignatureError;
use std::borrow::Cow;
use std::sync::Arc;
use vdo_api::api::{Reason, chain};
use vdo_api::types::Remedy;
use vdo_core::chart::ArchiveError;
use vdo_core::matrix::IndexError;
use vdo_core::mirror_lock::LockError;

/// Why an index is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// As conditions say it.
    pub reason: Reason,
    /// For a person.
    pub message: String,
}

impl From<&RepositoryError> for Problem {
    fn from(error: &RepositoryError) -> Self {
        Self {
            reason: error.reason(),
            message: chain(error),
        }
    }
}

/// The index or a chart of a [`ChartRepository`] cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// It cannot be read, or its bytes are not the promised ones.
    #[error(transparent)]
    Fetch(Arc<FetchError>),
    /// The index is invalid.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// What a mirror has of it cannot be read, or belongs to another index.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The chart cannot be opened.
    #[error(transparent)]
    Chart(#[from] ArchiveError),
    /// No trusted key has signed the index.
    #[error("the matrix index is not trusted")]
    Signature(#[from] SignatureError),
    /// The index is an old one.
    #[error("the matrix index is not trusted")]
    RolledBack(#[from] RolledBack),
    /// The cluster names a source that is none.
    #[error("the source of the matrix is not valid")]
    Misnamed(#[from] SettingsError),
    /// The source was not asked yet.
    #[error("the operator has not read the matrix from {0} yet; the operator reads the matrix when it becomes the leader")]
    NotYet(String),
}

impl From<FetchError> for RepositoryError {
    fn from(error: FetchError) -> Self {
        Self::Fetch(error.into())
    }
}

impl RepositoryError {
    /// As conditions say it.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Fetch(error) => error.reason(),
            Self::Index(_) | Self::Lock(_) | Self::Misnamed(_) => Reason::MatrixInvalid,
            Self::Chart(_) => Reason::ChartUnavailable,
            Self::Signature(_) => Reason::MatrixNotTrusted,
            Self::RolledBack(_) => Reason::MatrixRolledBack,
            Self::NotYet(_) => Reason::MatrixUnreachable,
        }
    }
}

impl Remedy for RepositoryError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Fetch(error) => error.remedy(),
            Self::Index(error) => error.remedy(),
            Self::Lock(error) => error.remedy(),
            Self::Chart(error) => error.remedy(),
            Self::Signature(error) => error.remedy(),
            Self::RolledBack(RolledBack { found, .. }) => Some(
                format!(
                    "Publish an index with a higher version. If version {found} is intended, accept it with kubectl annotate --overwrite \
                     -n NAMESPACE vdoconfig NAME vdo.vmware.com/accept-matrix-version={found}."
                )
                .into(),
            ),
            Self::Misnamed(error) => error.remedy(),
            Self::NotYet(_) => None,
        }
    }
}
