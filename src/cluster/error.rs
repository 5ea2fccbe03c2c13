// SPDX-License-Identifier: Apache-2.0
//! `ClusterError`: sorts the errors of the API server (missing right, conflict, admission, immutable field, timeout) with a remedy.

use super::access_review::{denied, rule};
use super::client::{CredentialsError, ProxyError};
use super::message::{is_page, said};
use kube::core::Status;
use kube::runtime::watcher;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;
use vdo_api::api::{Class, Classify, Reason};
use vdo_api::types::{ObjectId, Remedy};
use vdo_core::health::admission_remedy;

/// The message of the API server.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ApiMessage {
    /// The HTTP status.
    pub code: u16,
    /// The message.
    pub message: String,
}

/// A field that another manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldConflict {
    /// Where, for example `.spec.replicas`.
    pub path: String,
    /// The field manager.
    pub manager: String,
    /// When it wrote last, where that is known.
    pub since: Option<String>,
}

impl fmt::Display for FieldConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.since {
            Some(since) => write!(f, "{} ({}, {since})", self.path, self.manager),
            None => write!(f, "{} ({})", self.path, self.manager),
        }
    }
}

impl FieldConflict {
    /// From a cause as the server writes it: `conflict with "helm" using apps/v1`.
    fn of(path: &str, message: &str) -> Self {
        Self {
            path: path.to_owned(),
            manager: message.split('"').nth(1).unwrap_or(message).to_owned(),
            since: None,
        }
    }
}

fn list(fields: &[FieldConflict]) -> String {
    fields.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The Kubernetes API did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A right is missing.
    #[error("the operator may not {verb} {id}")]
    Forbidden {
        /// The verb.
        verb: String,
        /// The object; one without a name stands for all of its kind.
        id: ObjectId,
        /// The rule, as it would stand in a Role or ClusterRole.
        rule: String,
        /// What the server said.
        #[source]
        source: ApiMessage,
    },
    /// Other field managers own fields that would change.
    #[error("{id} has fields that another manager owns: {}", list(fields))]
    Conflict {
        /// The object.
        id: ObjectId,
        /// The fields with their managers.
        fields: Vec<FieldConflict>,
    },
    /// An object of this name belongs to another manager, which would undo our changes.
    #[error("{id} belongs to {who}, which would undo the changes of the operator")]
    NotOurs {
        /// The object.
        id: ObjectId,
        /// Who, with the mark that shows it.
        who: String,
    },
    /// The cluster does not know this kind at this version.
    #[error("the cluster does not serve {kind} in API version {api_version}, so {what} cannot be read or written")]
    NotServed {
        /// The object or objects.
        what: String,
        /// The kind.
        kind: String,
        /// The API version.
        api_version: String,
        /// What the server said.
        #[source]
        source: ApiMessage,
    },
    /// A policy, a webhook, a quota or a pod security level refuses it.
    #[error("admission control of the cluster refused {id}")]
    Denied {
        /// The object.
        id: ObjectId,
        /// What the server said.
        #[source]
        source: ApiMessage,
    },
    /// Admission control lets the workload in, and refuses its pods.
    #[error("admission control of the cluster refused a pod of {workload}")]
    PodDenied {
        /// The workload.
        workload: ObjectId,
        /// What the server said.
        #[source]
        source: ApiMessage,
    },
    /// A field differs that cannot be changed.
    #[error("{id} has an immutable field that would have to change")]
    Immutable {
        /// The object.
        id: ObjectId,
        /// What the server said.
        #[source]
        source: ApiMessage,
    },
    /// The API server refused the object.
    #[error("the API server refused {id}")]
    Refused {
        /// The object.
        id: ObjectId,
        /// What the server said.
        #[source]
        source: ApiMessage,
    },
    /// Another operator may be acting, so this one may not.
    #[error("{what} was not written, because this operator does not hold the Lease kube-system/vdo-operator at the moment")]
    NotLeading {
        /// The object.
        what: String,
    },
    /// The API server cannot be reached, is overloaded or failed.
    #[error("the API server did not answer the request to {verb} {what}")]
    Unavailable {
        /// The verb.
        verb: String,
        /// The object or objects.
        what: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A list changes faster than it is read, or has no end.
    #[error("the API server did not finish the list of {what}: {why}")]
    Unfinished {
        /// The objects.
        what: String,
        /// What happened.
        why: String,
    },
    /// The API server did not answer in time.
    #[error("the API server did not answer the request to {verb} {what} within {} s", after.as_secs_f64())]
    TimedOut {
        /// The verb.
        verb: String,
        /// The object or objects.
        what: String,
        /// The deadline.
        after: Duration,
    },
}

impl Remedy for ClusterError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Forbidden { rule, .. } => Some(format!("Add this rule to the role of the operator: {rule}.").into()),
            Self::Conflict { id, fields } if fields.iter().any(|field| is_selector(id, field)) => Some(
                format!(
                    "The selector of a workload cannot be changed; delete the workload to have it recreated: {}. Mounted volumes stay mounted.",
                    id.deletion()
                )
                .into(),
            ),
            Self::Conflict { id, .. } => Some(
                format!(
                    "Remove these fields from the configuration of that manager, or delete the object to have it recreated: {}.",
                    id.deletion()
                )
                .into(),
            ),
            Self::NotOurs { .. } => {
                Some("Remove the object from the configuration of that manager, so that the operator may write the object.".into())
            }
            Self::NotServed { .. } => Some("Choose a driver version that supports the Kubernetes version of the cluster.".into()),
            Self::Denied { id, source } | Self::PodDenied { workload: id, source } => Some(of_admission(id, &source.message).into()),
            Self::Immutable { id, .. } => Some(of_immutable(id)),
            Self::Unavailable { source, .. } => match source.downcast_ref::<CredentialsError>() {
                Some(error) => error.remedy(),
                None => ProxyError::among(source.as_ref())?.remedy(),
            },
            // The answer of the API server names the field; time or the Lease helps the others.
            Self::Refused { .. } | Self::NotLeading { .. } | Self::Unfinished { .. } | Self::TimedOut { .. } => None,
        }
    }
}

impl Classify for ClusterError {
    fn reason(&self) -> Reason {
        match self {
            Self::Forbidden { .. } => Reason::Forbidden,
            Self::Conflict { .. } => Reason::Conflict,
            Self::NotOurs { .. } => Reason::NotOurs,
            Self::NotServed { .. } => Reason::ApiNotServed,
            Self::Denied { .. } | Self::PodDenied { .. } => Reason::AdmissionDenied,
            Self::Immutable { .. } => Reason::ImmutableField,
            Self::Refused { .. } => Reason::ApplyFailed,
            Self::NotLeading { .. } | Self::Unavailable { .. } | Self::Unfinished { .. } | Self::TimedOut { .. } => Reason::ApiUnavailable,
        }
    }

    fn class(&self) -> Class {
        Class::Retry
    }
}

impl ClusterError {
    /// Why a watch does not run. That the server forgot where it was is no error: it starts over.
    #[must_use]
    pub fn of_watch(api_version: &str, id: &ObjectId, error: watcher::Error) -> Option<Self> {
        let source = match error {
            watcher::Error::InitialListFailed(source) | watcher::Error::WatchStartFailed(source) | watcher::Error::WatchFailed(source) => {
                source
            }
            watcher::Error::WatchError(status) => kube::Error::Api(status),
            watcher::Error::NoResourceVersion => return None,
        };
        Some(Self::of("list", api_version, id, source))
    }

    /// Whether the same request would be refused for the same cause until a person does something: the server is neither away nor overloaded.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Refused { source, .. } => (400..500).contains(&source.code) && !matches!(source.code, 408 | 409 | 429),
            Self::NotLeading { .. } | Self::Unavailable { .. } | Self::Unfinished { .. } | Self::TimedOut { .. } => false,
            _ => true,
        }
    }

    /// Whether nothing new can be created there, because the namespace is being deleted.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if source.code == 403 && source.message.contains("being terminated"))
    }

    /// The same once more, if a right is missing: that holds until the right is granted.
    pub(super) fn repeated(&self) -> Option<Self> {
        let Self::Forbidden { verb, id, rule, source } = self else {
            return None;
        };
        Some(Self::Forbidden {
            verb: verb.clone(),
            id: id.clone(),
            rule: rule.clone(),
            source: source.clone(),
        })
    }

    /// A right that is known to be missing before anything was tried.
    pub(super) fn lacking(verb: &str, api_version: &str, id: &ObjectId) -> Self {
        Self::Forbidden {
            verb: verb.into(),
            id: id.clone(),
            rule: rule(api_version, id, verb, None),
            source: ApiMessage {
                code: 403,
                message: "the rules of the operator do not contain this right".into(),
            },
        }
    }

    /// An object whose pods the namespace would not let in.
    #[must_use]
    pub fn pod_security(id: ObjectId, warning: &str) -> Self {
        Self::Denied {
            id,
            source: ApiMessage {
                code: 403,
                message: warning.into(),
            },
        }
    }

    /// Sorts an error of a request about one object.
    #[must_use]
    pub fn of(verb: &str, api_version: &str, id: &ObjectId, error: kube::Error) -> Self {
        let unavailable = |source| Self::Unavailable {
            verb: verb.into(),
            what: id.to_string(),
            source,
        };
        let status = match error {
            kube::Error::Api(status) => status,
            other => {
                let source = match CredentialsError::among(&other) {
                    Some(problem) => problem.into(),
                    None => other.into(),
                };
                return unavailable(source);
            }
        };
        let source = ApiMessage {
            code: status.code,
            message: said(&status),
        };
        match status.code {
            _ if is_page(&status) => unavailable(source.into()),
            401 | 403 if status.code == 401 || status.message.contains(" cannot ") => {
                let verb = denied(&status.message, " cannot ", ' ').unwrap_or(verb).to_owned();
                let resource = denied(&status.message, " resource \"", '"');
                let rule = rule(api_version, id, &verb, resource);
                Self::Forbidden {
                    verb,
                    id: id.clone(),
                    rule,
                    source,
                }
            }
            409 if !status.details.as_ref().is_none_or(|d| d.causes.is_empty()) => {
                let causes = status.details.as_ref().map(|d| d.causes.as_slice()).unwrap_or_default();
                let fields = causes.iter().map(|cause| FieldConflict::of(&cause.field, &cause.message)).collect();
                Self::Conflict { id: id.clone(), fields }
            }
            _ if by_admission(&status) => Self::Denied { id: id.clone(), source },
            404 if status.details.as_ref().is_none_or(|d| d.name.is_empty()) => Self::NotServed {
                what: id.to_string(),
                kind: id.kind().to_owned(),
                api_version: api_version.to_owned(),
                source,
            },
            422 if status
                .details
                .as_ref()
                .is_some_and(|d| d.causes.iter().any(|c| forbids_change(&c.message))) =>
            {
                Self::Immutable { id: id.clone(), source }
            }
            // What cannot be decoded for a server-side apply is an error of the server, in its own words.
            500 if status.message.contains("failed to create typed patch object") => Self::Refused { id: id.clone(), source },
            429 | 500..=599 => unavailable(source.into()),
            _ => Self::Refused { id: id.clone(), source },
        }
    }
}

/// Whether an admission plugin refused it: a webhook, a policy, a quota, a limit or a pod security level. What is forbidden and no matter
/// of the account's rights was refused by one of them, but for a namespace or a definition that is terminating.
fn by_admission(status: &Status) -> bool {
    const WORDS: [&str; 3] = ["denied the request", "denied request", "failed calling webhook"];
    let terminating = ["being terminated", "is terminating"]
        .iter()
        .any(|words| status.message.contains(words));
    let grants = status.message.contains("attempting to grant RBAC permissions");
    WORDS.iter().any(|words| status.message.contains(words)) || (status.code == 403 && !terminating && !grants)
}

/// Whether a cause of an invalid object is that a field must stay as it is. The API server has no word of its own for that.
fn forbids_change(message: &str) -> bool {
    const WORDS: [&str; 5] = ["immutable", "cannot change", "updates to ", "may not change", "cannot be changed"];
    WORDS.iter().any(|words| message.contains(words))
}

/// Whether a field is the selector of a workload, which is fixed when that is created.
fn is_selector(id: &ObjectId, field: &FieldConflict) -> bool {
    let is_workload = matches!(id.kind(), "DaemonSet" | "Deployment" | "StatefulSet");
    is_workload && (field.path == ".spec.selector" || field.path.starts_with(".spec.selector."))
}

/// What a person does about an object that is not let in, as a sentence.
fn of_admission(id: &ObjectId, message: &str) -> String {
    let remedy = admission_remedy(id, message);
    let (first, rest) = remedy.split_at(remedy.chars().next().map_or(0, char::len_utf8));
    format!("{}{rest}.", first.to_uppercase())
}

/// How a person gets a field changed that cannot be.
fn of_immutable(id: &ObjectId) -> Cow<'static, str> {
    match id.kind() {
        "StorageClass" => {
            "Give the StorageClass another name in the VDOConfig, or delete the StorageClass to have it recreated: existing volumes do \
             not need their StorageClass."
                .into()
        }
        "PersistentVolume" | "PersistentVolumeClaim" => "Restore the old value: an object that holds data is never recreated.".into(),
        "Namespace" | "CustomResourceDefinition" => {
            "Restore the old value: if the object is recreated, everything in it is deleted.".into()
        }
        _ => format!("Delete the object to have it recreated: {}.", id.deletion()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::response::{StatusCause, StatusDetails};
    use vdo_api::api::chain;

    fn error(code: u16, message: &str, causes: Vec<StatusCause>) -> ClusterError {
        let details = Some(StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes,
            retry_after_seconds: 0,
        });
        let status = Status {
            code,
            message: message.into(),
            reason: String::new(),
            details,
            status: None,
            metadata: None,
        };
        ClusterError::of(
            "patch",
            "apps/v1",
            &ObjectId::new("apps", "DaemonSet", "kube-system", "cpi"),
            kube::Error::Api(Box::new(status)),
        )
    }

    #[test]
    fn rbac_forbidden_error_names_rule_to_add() {
        let message = r#"daemonsets.apps "cpi" is forbidden: User "u" cannot create resource "daemonsets" in API group "apps" in the namespace "kube-system""#;
        let failure = error(403, message, vec![]);
        assert_eq!(failure.reason(), Reason::Forbidden);
        assert_eq!(
            (failure.to_string(), failure.remedy().unwrap_or_default()),
            (
                "the operator may not create DaemonSet kube-system/cpi".into(),
                "Add this rule to the role of the operator: {apiGroups: [\"apps\"], resources: [daemonsets], verbs: [create], \
                 resourceNames: [cpi]} (Role in namespace kube-system)."
                    .into()
            )
        );
    }

    #[test]
    fn conflict_contested_field_shows_manager_and_time() {
        let message = "conflict with \"kubectl-edit\" with subresource \"scale\" using apps/v1";
        let contested = FieldConflict {
            since: Some("2026-01-01T00:00:00Z".into()),
            ..FieldConflict::of(".spec.replicas", message)
        };
        assert_eq!(contested.to_string(), ".spec.replicas (kubectl-edit, 2026-01-01T00:00:00Z)");
        assert_eq!(FieldConflict::of(".data.x", "conflict with \"flux\"").to_string(), ".data.x (flux)");
    }

    /// Answers that the API server of the test bed does not give; those that it does are in `tests/pure/api_answers.rs`.
    #[test]
    fn api_error_that_cannot_be_recorded_maps_to_reason() {
        let scc = "pods \"x\" is forbidden: unable to validate against any security context constraint: []";
        for (failure, reason) in [
            (error(403, scc, vec![]), Reason::AdmissionDenied),
            (error(503, "etcd", vec![]), Reason::ApiUnavailable),
            (error(422, "invalid", vec![]), Reason::ApplyFailed),
        ] {
            assert_eq!(failure.reason(), reason, "{}", chain(&failure));
        }
    }
}
