use crate::types::Remedy;
use crate::vsphere::SessionError;
use std::borrow::Cow;

/// An administrator's change in a vCenter was not made.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The vCenter did not answer as it should, or the session has ended.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The administrator lacks a privilege.
    #[error("{address} does not let {user:?} {what}: it needs the privilege {privilege} on {object}")]
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
    #[error("{address} does not let {user:?} manage users of {domain}: it is not in the group Administrators there")]
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
}

impl ChangeError {
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
                "Run it again with the right user name and password; the user name needs its domain, for example administrator@vsphere.local. The password was sent once."
            }
            Self::Session(error) => return error.remedy(),
            Self::NotPermitted { privilege, object, .. } => {
                return Some(
                    format!("Log in as a user with {privilege} on {object}; the role Administrator has it. Or let an administrator run the commands that --emit govc prints.").into(),
                );
            }
            Self::NoUserManager { .. } => {
                "Log in as a member of that group, or have the user created in its identity source and name it with --existing."
            }
            Self::TokenRefused { .. } => "Look whether this user may log in to the vSphere Client; nothing was changed.",
            Self::Refused { .. } if self.is_gone() => "The object was deleted meanwhile.",
            Self::Refused { .. } if self.is_already_there() => "Another administrator runs this command at the same time.",
            Self::Refused { .. } => {
                "Look at the vCenter's words; where users cannot be created in the domain, name one of another domain with --existing."
            }
        };
        Some(remedy.into())
    }
}
