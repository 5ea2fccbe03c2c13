// SPDX-License-Identifier: Apache-2.0
//! The error of every verb (`CliError`): what happened to which object, the remedy, the exit code; converts errors of the API server.

use super::Exit;
use super::style;
use kube::config::KubeconfigError;
use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use vdo::cluster::{ClientError, ClusterError, NO_API_SERVER, ProxyError, said};
use vdo::reconcile::ReconcileError;
use vdo_api::types::{Remedy, in_words, without_number};
use vdo_core::matrix::NoFit;

/// Why a verb did not come through: what happened to which object, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliError {
    /// What happened, to which object.
    pub what: String,
    /// What to do; one line for each step, none when there is nothing to be done.
    pub remedy: String,
    /// The exit code.
    pub exit: Exit,
    /// No cluster was named at all, as opposed to one that does not answer.
    pub(super) no_cluster: bool,
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for CliError {}

impl CliError {
    /// An error from its parts.
    pub fn new(exit: Exit, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            what: without_number(&what.into()),
            remedy: remedy.into(),
            exit,
            no_cluster: false,
        }
    }

    /// Something that cannot be the user's doing.
    pub(super) fn internal(error: &(dyn Error + 'static)) -> Self {
        Self::new(
            Exit::Refused,
            sentence(error),
            "This is a defect of vdoctl. Please report it, with the command that you ran.",
        )
    }

    /// An error with what can be done about it.
    pub(super) fn of(exit: Exit, error: &(impl Remedy + 'static)) -> Self {
        Self::new(exit, sentence(error), error.remedy().unwrap_or_default())
    }

    /// The verb took longer than `--timeout`.
    pub(super) fn timed_out(after: Duration) -> Self {
        Self::new(
            Exit::TimedOut,
            format!("the cluster did not answer all requests within {} s", after.as_secs()),
            "Wait longer with --timeout, or check the load of the API server.",
        )
    }

    /// The API server did not do what was asked.
    pub(super) fn cluster(error: &ClusterError) -> Self {
        match error {
            ClusterError::Forbidden { source, .. } if source.code == 401 => Self::new(
                Exit::Refused,
                format!("the API server does not accept your credentials: {}", source.message),
                "Log in again, or choose other credentials with --kubeconfig or --context.",
            ),
            ClusterError::Forbidden { verb, id, rule, .. } => Self::new(
                Exit::Refused,
                format!("you lack the right to {verb} {id}"),
                format!("Ask for a role with this rule: {rule}"),
            ),
            ClusterError::Unavailable { verb, what, source } => Self::new(
                Exit::Cluster,
                match ProxyError::among(source.as_ref()) {
                    Some(proxy) => format!("the API server did not {verb} {what}: {}", sentence(proxy)),
                    None => format!("the API server did not {verb} {what}: {}", sentence(source.as_ref())),
                },
                error
                    .remedy()
                    .unwrap_or("Try again; if the error remains, check the API server.".into()),
            ),
            ClusterError::TimedOut { verb, what, after } => Self::new(
                Exit::Cluster,
                format!("the API server did not {verb} {what} within {} s", after.as_secs_f64()),
                "Try again, with a longer --request-timeout if the connection is slow; if the error remains, check the API server.",
            ),
            ClusterError::Unfinished { .. } => Self::new(
                Exit::Cluster,
                error.to_string(),
                "Try again; if the error remains, check the API server.",
            ),
            ClusterError::Refused { .. }
            | ClusterError::Denied { .. }
            | ClusterError::PodDenied { .. }
            | ClusterError::Immutable { .. }
            | ClusterError::NotServed { .. }
            | ClusterError::Conflict { .. }
            | ClusterError::NotOurs { .. }
            | ClusterError::NotLeading { .. } => Self::of(Exit::Refused, error),
        }
    }

    /// Nothing fits: the choice is what was asked to be prepared, so its failure is a refusal here.
    fn no_fit(error: &NoFit) -> Self {
        let advice = error.remedy().map(|advice| format!("{advice}\n")).unwrap_or_default();
        let remedy = format!("{advice}`vdoctl matrix resolve -o wide` lists every candidate with the reason for its rejection.");
        Self::new(Exit::Refused, error.to_string(), remedy)
    }
}

impl From<&ReconcileError> for CliError {
    fn from(error: &ReconcileError) -> Self {
        match error {
            ReconcileError::Cluster(error) => Self::cluster(error),
            ReconcileError::NoFit(error) => Self::no_fit(error),
            ReconcileError::NoConnections { .. }
            | ReconcileError::ConnectionNotFound { .. }
            | ReconcileError::SecretNotFound { .. }
            | ReconcileError::CaBundle { .. } => Self::of(Exit::NotFound, error),
            ReconcileError::ConnectionNotReady { .. } => Self::of(Exit::Vcenter, error),
            _ => Self::of(Exit::Refused, error),
        }
    }
}

impl From<ReconcileError> for CliError {
    fn from(error: ReconcileError) -> Self {
        Self::from(&error)
    }
}

impl From<ClusterError> for CliError {
    fn from(error: ClusterError) -> Self {
        Self::cluster(&error)
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match &error {
            ClientError::Kubeconfig(KubeconfigError::ReadConfig(cause, path)) => Self::new(
                Exit::Cluster,
                format!("kubeconfig {} cannot be read: {cause}", path.display()),
                "Name another kubeconfig with --kubeconfig or KUBECONFIG.",
            ),
            ClientError::NotText { path } => Self::new(
                Exit::Cluster,
                format!("kubeconfig {} is not UTF-8 text", path.display()),
                "Save the kubeconfig as UTF-8, or name another kubeconfig with --kubeconfig or KUBECONFIG.",
            ),
            ClientError::GroupsWithoutUser => Self::of(Exit::Usage, &error),
            ClientError::TimedOut { .. } => {
                let slow = Self::of(Exit::TimedOut, &error);
                Self::new(slow.exit, slow.what, format!("{}\nOr wait longer with --timeout.", slow.remedy))
            }
            ClientError::Missing { listed, .. } => Self {
                no_cluster: true,
                ..Self::new(
                    Exit::Cluster,
                    no_cluster(listed),
                    "Name a kubeconfig with --kubeconfig or KUBECONFIG.",
                )
            },
            _ => Self::of(Exit::Cluster, &error),
        }
    }
}

fn no_cluster(listed: &[PathBuf]) -> String {
    let kubeconfig = match listed {
        [] => "there is no kubeconfig that can be read".to_owned(),
        listed => {
            let files: Vec<String> = listed.iter().map(|file| file.display().to_string()).collect();
            format!("KUBECONFIG names {}, which cannot be read", files.join(", "))
        }
    };
    format!("no cluster is configured: {kubeconfig}, and vdoctl does not run in a pod")
}

/// The error and its sources as one sentence. Errors of the Kubernetes client repeat their sources and show their insides;
/// of these only the innermost cause is shown.
pub(super) fn sentence(error: &(dyn Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        next = error.source();
        match error.downcast_ref::<kube::Error>() {
            Some(kube::Error::Api(status)) => {
                parts.push(said(status));
                break;
            }
            // No JSON at all, as opposed to an object that has an unexpected field.
            Some(kube::Error::SerdeError(error)) if !error.is_data() => {
                parts.push(format!("the answer {NO_API_SERVER}"));
                break;
            }
            Some(_) if next.is_some() => continue,
            _ => {}
        }
        let text = error.to_string();
        // What a wrapper repeats of its source is left to the source.
        let inner = next.map(ToString::to_string).unwrap_or_default();
        let own = text
            .strip_suffix(inner.as_str())
            .filter(|_| !inner.is_empty())
            .map_or(text.as_str(), |own| own.trim_end_matches([':', ' ']));
        let text = in_words(own);
        if !text.is_empty() && !parts.contains(&text) {
            parts.push(text);
        }
    }
    parts.join(": ")
}

/// With a capital letter and a full stop.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let rest = letters.as_str();
    let stop = if rest.ends_with(['.', '!', '?', '}', ')']) { "" } else { "." };
    format!("{first}{rest}{stop}")
}

/// There is no such thing; the nearest word is suggested and all are listed.
pub(super) fn unknown(what: &str, word: &str, known: &[&str]) -> CliError {
    let guess = style::nearest(word, known.iter().copied())
        .map(|near| format!("Did you mean {near}? "))
        .unwrap_or_default();
    let available = match known {
        [] => "None is available.".to_owned(),
        known => format!("Available: {}.", known.join(", ")),
    };
    CliError::new(
        Exit::NotFound,
        format!("there is no {what} {word:?}"),
        format!("{guess}{available}"),
    )
}
