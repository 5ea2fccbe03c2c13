// SPDX-License-Identifier: Apache-2.0
//! `ReconcileError`: why a reconcile or one of its drivers failed, with reason, failure class and remedy.

use super::rights::add_missing;
use crate::cluster::ClusterError;
use std::borrow::Cow;
use vdo_api::api::{Class, Classify, Reason};
use vdo_api::types::{Remedy, shell_word};
use vdo_core::drivers::SetupError;
use vdo_core::plan::{InventoryError, InventoryTooLarge, PlanRejected};
use vdo_source::fetch::RepositoryError;

/// Why a reconcile did not come through. Errors of other rooms are passed on as they are: each says its own sentence.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// There is nothing to connect to.
    #[error("there is no vSphere connection in namespace {namespace}")]
    NoConnections {
        /// The namespace of the VDOConfig.
        namespace: String,
    },
    /// A name in the specification leads nowhere.
    #[error("{field} names vSphere connection {name}, which does not exist; the existing connections are: {known}")]
    ConnectionNotFound {
        /// Where the name stands.
        field: String,
        /// The name.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// Values that the specification names are not there.
    #[error("{field} names {problem}")]
    ValuesNotFound {
        /// Where the source stands.
        field: String,
        /// The source, and what is wrong with it.
        problem: String,
    },
    /// Nothing is known of a vCenter yet.
    #[error("vSphere connection {connection} is not verified: {message}")]
    ConnectionNotReady {
        /// The connection.
        connection: String,
        /// What its own status says.
        message: String,
    },
    /// The Secret is not there.
    #[error("vSphere connection {connection} needs Secret {name}, which is not in namespace {places}")]
    SecretNotFound {
        /// The connection.
        connection: String,
        /// The name of the Secret.
        name: String,
        /// The namespaces that were looked at.
        places: String,
        /// Why one of them could not be looked at.
        #[source]
        source: Option<ClusterError>,
    },
    /// The Secret is in a namespace from which none is read.
    #[error("vSphere connection {connection} names Secret {secret}, but Secrets are read only in namespaces {namespace} and kube-system")]
    SecretElsewhere {
        /// The connection.
        connection: String,
        /// The Secret.
        secret: String,
        /// The namespace of the connection.
        namespace: String,
    },
    /// The Secret is for other servers.
    #[error(
        "vSphere connection {connection} uses {server}, but the annotation vdo.vmware.com/servers of Secret {secret} \
         allows its credentials only for {servers:?}"
    )]
    ServerNotNamed {
        /// The connection.
        connection: String,
        /// Where it leads.
        server: String,
        /// The Secret.
        secret: String,
        /// The servers that the Secret names.
        servers: String,
    },
    /// The Secret is of another type.
    #[error("vSphere connection {connection} names Secret {secret}, which is of type {found:?}")]
    SecretWrongType {
        /// The connection.
        connection: String,
        /// The Secret.
        secret: String,
        /// Its type.
        found: String,
    },
    /// A part of the Secret is missing.
    #[error("vSphere connection {connection} names Secret {secret}, whose key {key} is missing or empty")]
    SecretIncomplete {
        /// The connection.
        connection: String,
        /// The Secret.
        secret: String,
        /// The key.
        key: &'static str,
    },
    /// A part of the Secret ends with a line break, as `echo` and editors leave it.
    #[error("vSphere connection {connection} names Secret {secret}, whose key {key} ends with a line break")]
    SecretLineBreak {
        /// The connection.
        connection: String,
        /// The Secret.
        secret: String,
        /// The key.
        key: &'static str,
    },
    /// The certificate authorities cannot be read.
    #[error(
        "vSphere connection {connection} reads its certificate authorities from key {key} of {place}, but this key is missing or is not text"
    )]
    CaBundle {
        /// The connection.
        connection: String,
        /// The ConfigMap or Secret.
        place: String,
        /// The key.
        key: String,
    },
    /// The certificate authorities cannot be used.
    #[error("vSphere connection {connection} reads its certificate authorities from key {key} of {place}, {found}")]
    CaBundleContent {
        /// The connection.
        connection: String,
        /// The ConfigMap or Secret.
        place: String,
        /// The key.
        key: String,
        /// What was there instead.
        found: String,
    },
    /// A revision that a driver is to be at cannot be had.
    #[error("{driver} cannot be rolled back to revision {revision}: {problem}")]
    RevisionUnusable {
        /// The driver.
        driver: String,
        /// The revision, as it is named.
        revision: String,
        /// Why not.
        problem: String,
    },
    /// A field makes no sense.
    #[error("{field} of {object}: {problem}")]
    InvalidSpec {
        /// The object.
        object: String,
        /// The field.
        field: String,
        /// What is wrong and what to write.
        problem: String,
    },
    /// Another manager runs a driver, or an operator of drivers.
    #[error("the operator does not install the drivers: another manager runs a vSphere driver in this cluster: {message}")]
    ForeignDriver {
        /// Whose it is and what to do.
        message: String,
    },
    /// kube-system cannot be seen.
    #[error("the operator cannot read namespace kube-system, and the UID of this namespace is the identity of the cluster")]
    NoClusterId,
    /// The matrix has nothing that fits.
    #[error(transparent)]
    NoFit(#[from] Box<vdo_core::matrix::NoFit>),
    /// The matrix or a chart cannot be used.
    #[error(transparent)]
    ChartRepository(#[from] RepositoryError),
    /// The chart cannot be rendered.
    #[error(transparent)]
    Render(#[from] vdo_core::chart::RenderError),
    /// The operator may not manage what the chart of a driver contains.
    #[error("{driver} {version} waits, because the operator lacks rights for it: {lacking}")]
    RightsMissing {
        /// The driver.
        driver: String,
        /// Its version.
        version: String,
        /// What is not allowed.
        lacking: String,
        /// Where the chart is from; `None` for the operator itself.
        matrix: Option<String>,
    },
    /// A patch of the specification does not fit the objects of its driver.
    #[error("{refused}")]
    Patch {
        /// The namespace of the VDOConfig.
        namespace: String,
        /// Which patch, and why.
        refused: Box<vdo_core::patches::PatchRefused>,
    },
    /// An object has content that no chart gives it.
    #[error(transparent)]
    Content(Box<vdo_core::admission::ContentRefused>),
    /// The configuration cannot be written.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A rendered document is not an object.
    #[error(transparent)]
    Manifest(#[from] vdo_core::manifest::ManifestError),
    /// The definition of one of our kinds is newer than this operator.
    #[error(
        "CustomResourceDefinition {definition} has objects of version {versions}, which this operator does not know; nothing is changed"
    )]
    NewerDefinition {
        /// The definition.
        definition: String,
        /// The versions.
        versions: String,
    },
    /// The inventory is damaged.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// The inventory would be too large.
    #[error(transparent)]
    InventoryTooLarge(#[from] InventoryTooLarge),
    /// The plan broke a rule.
    #[error(transparent)]
    Plan(#[from] PlanRejected),
    /// No keys can be drawn.
    #[error("the certificate of the CSI webhook cannot be created")]
    Certificate(#[source] rcgen::Error),
    /// The Kubernetes API did not do what was asked.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl Remedy for ReconcileError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        let own = match self {
            Self::NoConnections { .. } => "Create a VsphereCloudConfig in this namespace.",
            Self::ConnectionNotFound { .. } => "Correct the name, or create that VsphereCloudConfig.",
            Self::SecretNotFound { source, .. } => {
                let own = "Create the Secret with type kubernetes.io/basic-auth and the keys username and password.";
                let more = source.as_ref().and_then(Remedy::remedy);
                return Some(more.map_or(own.into(), |more| format!("{own} {more}").into()));
            }
            Self::SecretElsewhere { .. } => "Create the Secret in one of these two namespaces.",
            Self::ServerNotNamed { .. } => "Nothing was sent: correct the address, or add it to the annotation.",
            Self::SecretWrongType { .. } => "Recreate the Secret with type kubernetes.io/basic-auth.",
            Self::SecretIncomplete { .. } => "Set this key.",
            Self::SecretLineBreak { connection, .. } => {
                return Some(
                    format!(
                        "Nothing was sent. Write the value without the line break: vdoctl secrets set {}.",
                        shell_word(connection)
                    )
                    .into(),
                );
            }
            Self::CaBundle { .. } => "Write PEM certificates into this key.",
            Self::CaBundleContent { .. } => "Write PEM certificates into this key, and nothing else.",
            Self::ValuesNotFound { .. } => "Create the object with values as YAML, or remove the entry from the list.",
            Self::NoClusterId => "Give the operator the right to get this namespace.",
            Self::RevisionUnusable { .. } => {
                "See vdoctl history, and name another revision with vdoctl rollback, or end the rollback with vdoctl rollback --lift."
            }
            Self::NewerDefinition { .. } => "Run the operator release that introduced this version of the objects, or a newer release.",
            // What is wrong says what to write; so does the status of a connection, and what tells a foreign driver.
            Self::InvalidSpec { .. } | Self::ConnectionNotReady { .. } | Self::ForeignDriver { .. } => return None,
            Self::NoFit(error) => return error.remedy(),
            Self::ChartRepository(error) => return error.remedy(),
            Self::Render(error) => return error.remedy(),
            Self::RightsMissing { matrix, .. } => {
                let flags = matrix.as_ref().map(|matrix| format!(" --matrix {}", shell_word(matrix)));
                let command = add_missing(flags.as_deref().unwrap_or_default());
                return Some(format!("As administrator, run `{command}` to add the missing rights.").into());
            }
            Self::Patch { namespace, .. } => {
                let edit = format!("kubectl edit vdoconfigs --namespace {}", shell_word(namespace));
                return Some(
                    format!("Correct the patch: {edit}. To remove all patches: vdoctl configure drivers --set patches=null.").into(),
                );
            }
            Self::Content(error) => return error.remedy(),
            Self::Setup(error) => return error.remedy(),
            Self::Manifest(error) => return error.remedy(),
            Self::Inventory(error) => return error.remedy(),
            Self::InventoryTooLarge(error) => return error.remedy(),
            Self::Plan(error) => return error.remedy(),
            Self::Cluster(error) => return error.remedy(),
            // No keys: nothing that a person can do.
            Self::Certificate(_) => return None,
        };
        Some(own.into())
    }
}

impl Classify for ReconcileError {
    fn reason(&self) -> Reason {
        match self {
            Self::NoConnections { .. } => Reason::NoConnections,
            Self::ConnectionNotFound { .. } => Reason::ConnectionNotFound,
            Self::ConnectionNotReady { .. } => Reason::ConnectionNotReady,
            Self::SecretNotFound { .. } => Reason::SecretNotFound,
            Self::SecretElsewhere { .. } => Reason::SecretElsewhere,
            Self::ServerNotNamed { .. } => Reason::ServerNotNamed,
            Self::SecretWrongType { .. } => Reason::SecretWrongType,
            Self::SecretIncomplete { .. } | Self::SecretLineBreak { .. } => Reason::SecretIncomplete,
            Self::CaBundle { .. } | Self::CaBundleContent { .. } => Reason::CaBundleInvalid,
            Self::InvalidSpec { .. } => Reason::InvalidSpec,
            Self::ValuesNotFound { .. } => Reason::ValuesNotFound,
            Self::ForeignDriver { .. } => Reason::NotOurs,
            Self::RightsMissing { .. } => Reason::RightsMissing,
            Self::Patch { .. } => Reason::PatchNotApplicable,
            Self::Content(_) => Reason::AdmissionDenied,
            Self::NoClusterId => Reason::Forbidden,
            Self::RevisionUnusable { .. } => Reason::RevisionUnusable,
            Self::NoFit(error) => no_fit(error),
            Self::ChartRepository(error) => error.reason(),
            Self::Render(error) => render(error),
            Self::Setup(SetupError::Config(_)) => Reason::ConfigurationInvalid,
            Self::Setup(SetupError::Manifest(_)) | Self::Manifest(_) => Reason::RenderFailed,
            Self::NewerDefinition { .. } => Reason::NewerOperator,
            Self::Inventory(error) if error.is_newer() => Reason::NewerOperator,
            Self::Inventory(_) => Reason::InvalidSpec,
            Self::InventoryTooLarge(_) => Reason::RenderFailed,
            Self::Plan(_) => Reason::PlanRejected,
            Self::Certificate(_) => Reason::WebhookCertificateInvalid,
            Self::Cluster(error) => error.reason(),
        }
    }

    fn class(&self) -> Class {
        match self {
            // A watch sees the object that is missing or changes.
            Self::NoConnections { .. } | Self::ConnectionNotReady { .. } | Self::SecretNotFound { .. } | Self::CaBundle { .. } => {
                Class::Wait
            }
            Self::CaBundleContent { .. }
            | Self::SecretElsewhere { .. }
            | Self::ServerNotNamed { .. }
            | Self::SecretWrongType { .. }
            | Self::SecretIncomplete { .. }
            | Self::SecretLineBreak { .. }
            | Self::NewerDefinition { .. }
            | Self::ValuesNotFound { .. }
            | Self::ForeignDriver { .. } => Class::Wait,
            Self::NoClusterId | Self::RightsMissing { .. } | Self::Certificate(_) => Class::Retry,
            Self::ChartRepository(RepositoryError::Fetch(_) | RepositoryError::NotYet(_)) => Class::Retry,
            Self::Cluster(error) => error.class(),
            Self::ConnectionNotFound { .. }
            | Self::InvalidSpec { .. }
            | Self::RevisionUnusable { .. }
            | Self::NoFit(_)
            | Self::ChartRepository(_)
            | Self::Render(_)
            | Self::Patch { .. }
            | Self::Content(_)
            | Self::Setup(_)
            | Self::Manifest(_)
            | Self::Inventory(_)
            | Self::InventoryTooLarge(_)
            | Self::Plan(_) => Class::Terminal,
        }
    }
}

fn no_fit(error: &vdo_core::matrix::NoFit) -> Reason {
    use vdo_core::matrix::Cause;
    match error.cause {
        Cause::UnknownPin { .. } => Reason::UnknownVersion,
        Cause::PinRejected { .. } => Reason::IncompatiblePin,
        Cause::UnknownDriver { .. } | Cause::NothingFits | Cause::InstalledUnknown { .. } => Reason::NoCompatibleVersion,
    }
}

fn render(error: &vdo_core::chart::RenderError) -> Reason {
    match error {
        vdo_core::chart::RenderError::Values { .. } | vdo_core::chart::RenderError::Refused { .. } => Reason::InvalidValues,
        _ => Reason::RenderFailed,
    }
}
