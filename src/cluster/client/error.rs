// SPDX-License-Identifier: Apache-2.0
//! `ClientError`: why no client can be made from a kubeconfig or service account, before the first request.

use super::credentials::CredentialsError;
use super::proxy::ProxyOrigin;
use kube::config::KubeconfigError;
use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;
use vdo_api::types::{Remedy, nearest};

/// The cluster cannot be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The kubeconfig is unusable.
    #[error("the kubeconfig cannot be used")]
    Kubeconfig(#[source] KubeconfigError),
    /// The kubeconfig is not text.
    #[error("kubeconfig {} is not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// The kubeconfig is not YAML, or not what a kubeconfig has.
    #[error("kubeconfig {} cannot be read: {problem}", path.display())]
    NotKubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line where that is known, and without its text: secrets are in it.
        problem: String,
    },
    /// There is no such context.
    #[error("the kubeconfig has no context {name:?}")]
    NoContext {
        /// Its name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// There is neither a kubeconfig nor a service account.
    #[error("no cluster is configured")]
    Missing {
        /// The files that `KUBECONFIG` names.
        listed: Vec<PathBuf>,
        /// Why this is not a pod.
        source: kube::config::InferConfigError,
    },
    /// The client cannot be made from the configuration.
    #[error("no client can be created from the kubeconfig")]
    Client(#[source] kube::Error),
    /// There are no credentials.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The cluster has no address of an API server. It is not repeated: a password may be in it.
    #[error("the server of cluster {cluster:?} in the kubeconfig is not the address of an API server")]
    Server {
        /// The name of the cluster.
        cluster: String,
    },
    /// What is named as a proxy is not an address of one. It is not repeated: a password may be in it.
    #[error("{origin} is not the address of a proxy")]
    Proxy {
        /// Where it is named.
        origin: ProxyOrigin,
    },
    /// There is no such cluster or user.
    #[error("the kubeconfig has no {kind} {name:?}")]
    NoEntry {
        /// `cluster` or `user`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// Groups are only impersonated with a user.
    #[error("a group to impersonate is given, but no user to impersonate")]
    GroupsWithoutUser,
    /// A file or a command takes too long.
    #[error("{what} has not answered within {} s", after.as_secs_f64())]
    TimedOut {
        /// The file or the command.
        what: String,
        /// How long it was waited for.
        after: Duration,
        /// What to do.
        remedy: &'static str,
    },
}

impl Remedy for ClientError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Kubeconfig(_) => Some("Name another kubeconfig with --kubeconfig or KUBECONFIG.".into()),
            Self::NotText { .. } => {
                Some("Save the kubeconfig as UTF-8, or name another kubeconfig with --kubeconfig or KUBECONFIG.".into())
            }
            Self::NotKubeconfig { .. } => Some("Correct that file, or name another kubeconfig with --kubeconfig or KUBECONFIG.".into()),
            Self::NoContext { known, .. } if known.is_empty() => {
                Some("The kubeconfig has no contexts: name another kubeconfig with --kubeconfig or KUBECONFIG.".into())
            }
            Self::NoContext { name, known } => Some(format!("{}The contexts are: {}.", guess(name, known), known.join(", ")).into()),
            Self::Missing { .. } => Some("Name a kubeconfig with --kubeconfig or KUBECONFIG.".into()),
            Self::Client(_) => Some(
                "In the kubeconfig, correct the certificates, the field `tls-server-name` of the cluster, and the field `as` of the user."
                    .into(),
            ),
            Self::Credentials(error) => error.remedy(),
            Self::Server { .. } => Some(
                "Write the server as https://HOST:PORT. Credentials belong to the user in the kubeconfig, not into the address.".into(),
            ),
            Self::Proxy { origin } => Some(format!("Write {origin} as http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT.").into()),
            Self::NoEntry { kind, known, .. } if known.is_empty() => {
                Some(format!("The kubeconfig has no {kind}s: name another kubeconfig with --kubeconfig or KUBECONFIG.").into())
            }
            Self::NoEntry { kind, name, known } => {
                Some(format!("{}Name a {kind} with --kube-{kind}: {}.", guess(name, known), known.join(", ")).into())
            }
            Self::GroupsWithoutUser => Some("Name the user with --as.".into()),
            Self::TimedOut { remedy, .. } => Some((*remedy).into()),
        }
    }
}

/// The known name that is most like this one.
fn guess(name: &str, known: &[String]) -> String {
    let near = nearest(name, known.iter().map(String::as_str));
    near.map(|near| format!("Did you mean {near}? ")).unwrap_or_default()
}
