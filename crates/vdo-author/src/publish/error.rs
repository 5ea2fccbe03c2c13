// SPDX-License-Identifier: Apache-2.0
//! Why a matrix cannot be published (`PublishError`), with the remedy.

use std::borrow::Cow;
use vdo_api::types::{Digest, DriverName, DriverVersion, Remedy};
use vdo_core::matrix::IndexError;

/// Why a matrix cannot be published. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// What is there is no index.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// It is in the format of the original operator, which names no charts.
    #[error("the matrix is in the format of the original operator, which cannot contain charts and their digests")]
    Original,
    /// The last index is from the future.
    #[error("the last version of the matrix was published at {0}, which is in the future")]
    Clock(jiff::Timestamp),
    /// The driver has no such version.
    #[error("{driver} has no version {version} in this matrix")]
    NotListed {
        /// The driver.
        driver: DriverName,
        /// The version.
        version: DriverVersion,
    },
    /// The version is there with another chart.
    #[error("{driver} {version} was published with the chart {listed}, but this chart is {given}; a published version is never changed")]
    Published {
        /// The driver.
        driver: DriverName,
        /// The version.
        version: DriverVersion,
        /// The digest in the index.
        listed: Digest,
        /// The digest of the package.
        given: Digest,
    },
    /// The driver is known with another role.
    #[error("{driver} has the role {listed} in this matrix, but its chart names the role {given}")]
    Role {
        /// The driver.
        driver: DriverName,
        /// By the index.
        listed: String,
        /// By the chart.
        given: String,
    },
    /// The file with facts says something else than facts.
    #[error("the facts cannot be used: {0}")]
    Facts(String),
    /// It is not known what the version supports.
    #[error(
        "no {what} versions are given that {driver} {version} supports, and the matrix has no older {minor} release of the driver to copy them from"
    )]
    NotStated {
        /// The driver.
        driver: DriverName,
        /// The version.
        version: DriverVersion,
        /// Major and minor of the version.
        minor: String,
        /// Kubernetes or vSphere.
        what: &'static str,
    },
    /// The next index would have mistakes.
    #[error("the matrix would have mistakes: {}", .0.join("; "))]
    Mistakes(Vec<String>),
}

impl Remedy for PublishError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Index(error) => error.remedy(),
            Self::Original => Some("Create a new matrix with vdoctl matrix init, and publish the charts into it.".into()),
            Self::Clock(_) => Some("Set the clock of this machine.".into()),
            Self::NotListed { .. } => Some("Name one of the versions that vdoctl matrix list shows for the driver.".into()),
            Self::Published { .. } => Some("Give the chart a new version.".into()),
            Self::Role { .. } => Some("Correct the annotation vdo.vmware.com/role of the chart, or give the driver another name.".into()),
            Self::Facts(_) => Some(
                "Write only the fields kubernetes, vsphere, requires, features, upgradesFrom, state, sources and preconditions; \
                 docs/matrix.md describes these fields."
                    .into(),
            ),
            Self::NotStated { what, .. } => Some(match *what {
                "Kubernetes" => "Name the versions with --kubernetes MIN..MAX, or in a file with --facts.".into(),
                _ => "Name the versions with --vsphere MIN..MAX, or in a file with --facts.".into(),
            }),
            Self::Mistakes(_) => Some("Correct the facts that were given.".into()),
        }
    }
}
