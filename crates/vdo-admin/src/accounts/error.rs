// SPDX-License-Identifier: Apache-2.0
//! Why an administrator's change in a vCenter failed (`ChangeError`), whether other changes can continue, and the remedy.

use std::borrow::Cow;
use std::time::Duration;
use vdo_api::types::Remedy;
use vdo_vsphere::vsphere::SessionError;

/// An administrator's change in a vCenter was not made.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The vCenter did not answer as it should, or the session has ended.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The administrator lacks a privilege.
    #[error("{address} does not let {user:?} {what}: the user needs the privilege {privilege} on {object}")]
    NotPermitted {
        /// Host and port.
        address: String,
        /// The administrator.
        user: String,
        /// What was to be done.
        what: String,
        /// The privilege.
        privilege: String,
        /// The object.
        object: String,
    },
    /// The administrator may not manage users.
    #[error("{address} does not let {user:?} manage users of {domain}: the user is not in the group Administrators of this domain")]
    NoUserManager {
        /// Host and port.
        address: String,
        /// The administrator.
        user: String,
        /// The domain.
        domain: String,
    },
    /// The token service refused what the vCenter had accepted.
    #[error("the token service of {address} refuses {user:?}: {text}")]
    TokenRefused {
        /// Host and port.
        address: String,
        /// The administrator.
        user: String,
        /// The service's words.
        text: String,
    },
    /// The vCenter refused a change for another cause.
    #[error("{address} did not {what}: {kind}: {text}")]
    Refused {
        /// Host and port.
        address: String,
        /// What was to be done.
        what: String,
        /// The type of the fault.
        kind: String,
        /// The vCenter's words.
        text: String,
    },
    /// A task that makes a change is still not at its end.
    #[error("{address} has started to {what}, but its task has not finished within {after:?}")]
    Unfinished {
        /// Host and port.
        address: String,
        /// What was to be done.
        what: String,
        /// How long was waited.
        after: Duration,
    },
}

impl ChangeError {
    /// Whether it is about one object, so that changes of other objects may still be made. After anything else nothing more is asked: the
    /// session is gone, or the vCenter does not answer.
    #[must_use]
    pub fn is_of_one_object(&self) -> bool {
        match self {
            Self::NotPermitted { .. } | Self::Refused { .. } | Self::Unfinished { .. } => true,
            Self::Session(error) => matches!(error, SessionError::Fault { .. } | SessionError::Forbidden { .. }),
            Self::NoUserManager { .. } | Self::TokenRefused { .. } => false,
        }
    }

    /// Whether the vCenter has answered that the change was not made. After anything else that is not known.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::NotPermitted { .. } | Self::Refused { .. })
    }

    /// Whether the object that was to be removed is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { kind, .. } if kind == "NotFound" || kind.ends_with("NotFound") || kind.contains("InvalidPrincipal"))
    }

    /// Whether the object that was to be changed is not there any more.
    fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { kind, .. } if kind == "ManagedObjectNotFound")
    }

    /// Whether a role of this name was created by another one meanwhile.
    #[must_use]
    pub fn is_already_there(&self) -> bool {
        matches!(self, Self::Refused { kind, .. } if kind == "AlreadyExists" || kind == "DuplicateName")
    }

    /// Whether the role that was to be deleted got a user meanwhile.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::Refused { kind, .. } if kind == "RemoveFailed" || kind == "ResourceInUse")
    }
}

impl Remedy for ChangeError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Self::Session(SessionError::Lost { .. }) => "Run the same command again.",
            Self::Session(SessionError::InvalidLogin { .. }) => {
                "Run the command again with the right user name and \
                 password; the user name needs its domain, for example administrator@vsphere.local. The password was sent once."
            }
            Self::Session(error) => return error.remedy(),
            Self::NotPermitted { privilege, object, .. } => {
                return Some(
                    format!("Log in as a user with {privilege} on {object}; the role Administrator has this privilege. Or let an administrator run the commands that --emit govc prints.").into(),
                );
            }
            Self::NoUserManager { .. } => {
                "Log in as a member of that group, or create the user in its identity source and name the user with --existing."
            }
            Self::TokenRefused { .. } => "Check whether this user may log in to the vSphere Client; nothing was changed.",
            Self::Unfinished { .. } => "Check the task in the vSphere Client: it may still finish.",
            Self::Refused { kind, .. } if kind == "UserNotFound" => {
                "There is no such user or group in the identity sources of the vCenter: correct its name and domain. If vdoctl has \
                 already created roles for this name, delete these roles: run vdoctl users delete --existing NAME with the same name \
                 (for a group, add --group)."
            }
            Self::Refused { .. } if self.is_gone() => "The object was deleted in the meantime.",
            Self::Refused { .. } if self.is_already_there() => {
                "Another user has created the object at the same time. Run the same command again."
            }
            Self::Refused { .. } => {
                "Read the message of the vCenter; if users cannot be created in the domain, name a user of another domain with --existing."
            }
        };
        Some(remedy.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_vsphere::vsphere::ProbeError;

    /// After which errors other objects are still changed, and after which the change is known not to be made.
    #[test]
    fn change_error_of_each_kind_is_judged() {
        let (address, user, what) = (|| "vc:443".to_owned(), || "u".to_owned(), || "attach a tag".to_owned());
        let after = Duration::from_secs(1);
        let (kind, text) = (String::new(), String::new());
        for (error, of_one_object, refusal) in [
            (
                ChangeError::NotPermitted {
                    address: address(),
                    user: user(),
                    what: what(),
                    privilege: "P".into(),
                    object: "/".into(),
                },
                true,
                true,
            ),
            (
                ChangeError::Refused {
                    address: address(),
                    what: what(),
                    kind: kind.clone(),
                    text: text.clone(),
                },
                true,
                true,
            ),
            (
                ChangeError::Unfinished {
                    address: address(),
                    what: what(),
                    after,
                },
                true,
                false,
            ),
            (
                SessionError::Fault {
                    address: address(),
                    method: "M",
                    kind,
                    text,
                }
                .into(),
                true,
                false,
            ),
            (
                SessionError::Forbidden {
                    address: address(),
                    user: user(),
                    method: "M",
                }
                .into(),
                true,
                false,
            ),
            (
                SessionError::Lost {
                    address: address(),
                    user: user(),
                }
                .into(),
                false,
                false,
            ),
            (
                SessionError::TagsRefused {
                    address: address(),
                    user: user(),
                }
                .into(),
                false,
                false,
            ),
            (
                SessionError::TimedOut {
                    address: address(),
                    method: "M",
                    after,
                }
                .into(),
                false,
                false,
            ),
            (
                SessionError::Connection(ProbeError::Refused { address: address() }).into(),
                false,
                false,
            ),
        ] {
            assert_eq!(
                (error.is_of_one_object(), error.is_refusal()),
                (of_one_object, refusal),
                "{error:?}"
            );
        }
    }
}
