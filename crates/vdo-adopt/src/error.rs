// SPDX-License-Identifier: Apache-2.0
//! Why the settings of an installation cannot be adopted (`AdoptError`), with file, line and remedy, and without any value.

use crate::origin::Origin;
use std::borrow::Cow;
use vdo_api::types::Remedy;
use vdo_core::driverconfig::gcfg_reader::ReadError;
use vdo_core::drivers::CSI_SECRET;

/// An installation whose settings cannot be read. No value is part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdoptError {
    /// The driver refuses its file as well.
    #[error("{origin}: the driver cannot read the file")]
    Grammar {
        /// The file.
        origin: Origin,
        /// The line, and what is wrong there.
        #[source]
        source: ReadError,
    },
    /// A file in YAML.
    #[error("{origin}: the file is not YAML: {problem}")]
    Yaml {
        /// The file, and the line.
        origin: Origin,
        /// What is wrong there.
        problem: String,
    },
    /// There is nothing in the file.
    #[error("{origin}: the file is empty")]
    Empty {
        /// The file.
        origin: Origin,
    },
    /// A section or a key stands twice.
    #[error("{origin}: {what} already exists on line {first}")]
    Twice {
        /// The second one.
        origin: Origin,
        /// What it is.
        what: String,
        /// The line of the first one.
        first: usize,
    },
    /// A value that the driver does not understand.
    #[error("{origin}: {key} is not {expected}")]
    Value {
        /// The line.
        origin: Origin,
        /// The key.
        key: String,
        /// What it should be.
        expected: &'static str,
    },
    /// Two places of one installation say different things.
    #[error("{what} differs between {first} and {second}")]
    Contradiction {
        /// What it is.
        what: String,
        /// One place.
        first: Origin,
        /// The other.
        second: Origin,
    },
    /// The file is in no object of the cluster.
    #[error("{workload} reads {path}, but no Secret or ConfigMap that its pods mount contains this file")]
    NoFile {
        /// The workload.
        workload: String,
        /// The path in its pods.
        path: String,
    },
    /// An object is not there.
    #[error("{object} does not exist, but {by} refers to it")]
    Missing {
        /// The object.
        object: String,
        /// What refers to it.
        by: String,
    },
    /// No account for a vCenter.
    #[error("{origin}: vCenter {server} has no user or no password")]
    NoCredentials {
        /// The vCenter.
        server: String,
        /// Where they should be.
        origin: Origin,
    },
    /// Nothing says which vCenter the driver uses.
    #[error("only a part of the driver exists ({workload}); there is no controller and no Secret {CSI_SECRET} that names the vCenter")]
    Half {
        /// The workloads that are left.
        workload: String,
    },
    /// No vCenter.
    #[error("{origin}: the file names no vCenter")]
    NoServer {
        /// The file.
        origin: Origin,
    },
}

impl Remedy for AdoptError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::Grammar { source, .. } => return source.remedy(),
            Self::Yaml { .. } | Self::Value { .. } => "Correct the line; the driver cannot start with this line either.".into(),
            Self::Empty { .. } => {
                "Restore the content of the file; the pods that still run read the file before its content was removed.".into()
            }
            Self::Twice { .. } => "Keep one of the two sections or keys. The driver uses the last value of a key.".into(),
            Self::Contradiction { .. } => "Make both entries the same, or remove the entry that is not in use.".into(),
            Self::NoFile { .. } => "Put the file into a Secret or a ConfigMap that is mounted at this path.".into(),
            Self::Missing { .. } => "Create the object, or get the right to read it.".into(),
            Self::NoCredentials { .. } => "Add the user and the password of this vCenter to the file or Secret that the message names. Write \
                 the vCenter's address exactly as in the driver's configuration file."
                .into(),
            Self::Half { .. } => format!(
                "Apply the manifests of the controller or the Secret {CSI_SECRET} again, then run vdoctl adopt. If you have neither, name the \
                 vCenter: vdoctl deploy --vcenter HOST --user NAME"
            )
            .into(),
            Self::NoServer { .. } => "Name the vCenter in the file.".into(),
        })
    }
}
