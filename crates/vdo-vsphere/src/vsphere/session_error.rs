// SPDX-License-Identifier: Apache-2.0
//! Why a login or a call in a session failed, with reason and remedy; `connect_error.rs` has errors before the login.

use super::ProbeError;
use std::borrow::Cow;
use std::time::Duration;
use vdo_api::api::{Class, Classify, Reason};
use vdo_api::types::Remedy;

/// A vCenter did not do what was asked of it within a session.
///
/// The text says what happened to which account; [`Remedy::remedy`] says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// It could not be reached or understood.
    #[error(transparent)]
    Connection(#[from] ProbeError),
    /// User or password is wrong.
    #[error("{address} does not accept the user name or the password of {user:?}")]
    InvalidLogin {
        /// Host and port.
        address: String,
        /// The user.
        user: String,
    },
    /// User or password cannot be written in the language that a vCenter speaks, so they were not sent.
    #[error("the user name or the password of {user:?} contains a control character, which cannot be sent to {address}")]
    Unsendable {
        /// Host and port.
        address: String,
        /// The user.
        user: String,
    },
    /// Too many wrong passwords, or an administrator did it.
    #[error("{address} reports that the account {user:?} is locked")]
    Locked {
        /// Host and port.
        address: String,
        /// The user.
        user: String,
    },
    /// The password is too old.
    #[error("{address} reports that the password of {user:?} has expired")]
    Expired {
        /// Host and port.
        address: String,
        /// The user.
        user: String,
    },
    /// The user is known and has no rights at all.
    #[error("{address} knows {user:?} but refuses the login, because this user has no permission there")]
    Refused {
        /// Host and port.
        address: String,
        /// The user.
        user: String,
    },
    /// The service that keeps the tags does not accept the login that the vCenter has accepted.
    #[error("{address} accepts the login of {user:?}, but its service for tags refuses the same user name and password")]
    TagsRefused {
        /// Host and port.
        address: String,
        /// The user.
        user: String,
    },
    /// The session ended, and could not be had again.
    #[error("{address} has ended the session of {user:?}")]
    Lost {
        /// Host and port.
        address: String,
        /// The user.
        user: String,
    },
    /// A call was not permitted.
    #[error("{address} does not permit {method} for user {user:?}")]
    Forbidden {
        /// Host and port.
        address: String,
        /// The user.
        user: String,
        /// The call.
        method: &'static str,
    },
    /// A call failed for another cause.
    #[error("{address} failed to answer {method}: {kind}: {text}")]
    Fault {
        /// Host and port.
        address: String,
        /// The call.
        method: &'static str,
        /// The type of the fault.
        kind: String,
        /// The vCenter's words.
        text: String,
    },
    /// No answer in time.
    #[error("{address} did not answer {method} within {after:?}")]
    TimedOut {
        /// Host and port.
        address: String,
        /// The call.
        method: &'static str,
        /// How long was waited.
        after: Duration,
    },
}

impl SessionError {
    /// Whether the vCenter has judged the credentials and did not let them in. Another attempt with the same ones would be
    /// one step nearer to a locked account.
    #[must_use]
    pub fn is_rejection(&self) -> bool {
        matches!(
            self,
            Self::InvalidLogin { .. } | Self::Unsendable { .. } | Self::Locked { .. } | Self::Expired { .. } | Self::Refused { .. }
        )
    }

    /// Whether nothing more can be asked in this session: the account may not log in any more, the session is lost, or the budget of the
    /// inspection is spent.
    #[must_use]
    pub fn ends_session(&self) -> bool {
        let spent = matches!(self, Self::Connection(ProbeError::TooMuch { .. } | ProbeError::Unfinished { .. }));
        spent || self.is_rejection() || matches!(self, Self::Lost { .. })
    }
}

impl Remedy for SessionError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        let remedy = match self {
            Self::Connection(error) => return error.remedy(),
            Self::Unsendable { .. } => "Set a password without control characters, and write it into the Secret.",
            Self::InvalidLogin { .. } | Self::Locked { .. } | Self::Expired { .. } | Self::Refused { .. } => {
                of_refused_login(self.reason())
            }
            Self::TagsRefused { .. } => {
                "Check whether the account may sign in to the vSphere Client, and \
                 whether the vAPI endpoint of the vCenter works; a changed Secret is tried at once."
            }
            Self::Lost { .. } => {
                "No action is needed if this happens once. If it happens repeatedly, find out in vCenter why sessions end."
            }
            Self::Forbidden { .. } => "Give the user the role Read-only on the root folder, with propagation.",
            Self::Fault { .. } | Self::TimedOut { .. } => "Check the health of the vCenter; the request is repeated later.",
        };
        Some(remedy.into())
    }
}

/// What a person does about a login that the vCenter has refused, now or in an earlier attempt.
pub(crate) const fn of_refused_login(reason: Reason) -> &'static str {
    match reason {
        Reason::AccountLocked => {
            "Unlock the account in vCenter under Administration, Single Sign On, or wait until it is unlocked automatically."
        }
        Reason::PasswordExpired => "Set a new password in vCenter, then run vdoctl secrets set.",
        Reason::LoginRefused => "Give the user a role on the vCenter's inventory; Read-only is enough to log in.",
        _ => "Give the right user name and password; the user name needs its domain, for example k8s@vsphere.local.",
    }
}

impl Classify for SessionError {
    fn reason(&self) -> Reason {
        match self {
            Self::Connection(error) => error.reason(),
            Self::InvalidLogin { .. } | Self::Unsendable { .. } => Reason::InvalidCredentials,
            Self::Locked { .. } => Reason::AccountLocked,
            Self::Expired { .. } => Reason::PasswordExpired,
            Self::Refused { .. } => Reason::LoginRefused,
            Self::TagsRefused { .. } => Reason::TagLoginRefused,
            Self::Lost { .. } => Reason::SessionLost,
            Self::Forbidden { .. } => Reason::InventoryForbidden,
            Self::TimedOut { .. } => Reason::TimedOut,
            Self::Fault { .. } => Reason::BadAnswer,
        }
    }

    fn class(&self) -> Class {
        match self {
            Self::Connection(error) => error.class(),
            Self::Lost { .. } | Self::TimedOut { .. } | Self::Fault { .. } => Class::Retry,
            _ => Class::Terminal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vsphere::Excess;

    /// What counts against an account, after what nothing more is asked, and what is tried again by itself.
    #[test]
    fn session_error_of_each_kind_is_judged() {
        let (address, user) = ("vc:443".to_owned(), "u".to_owned());
        let account = |error: fn(String, String) -> SessionError| error(address.clone(), user.clone());
        let (secs, method) = (Duration::from_secs(1), "Login");
        let unfinished = ProbeError::Unfinished {
            address: address.clone(),
            after: secs,
        };
        let too_much = ProbeError::TooMuch {
            address: address.clone(),
            excess: Excess::Bytes(1),
        };
        let refused = ProbeError::Refused { address: address.clone() };
        for (error, rejects, ends, class) in [
            (
                account(|address, user| SessionError::InvalidLogin { address, user }),
                true,
                true,
                Class::Terminal,
            ),
            (
                account(|address, user| SessionError::Unsendable { address, user }),
                true,
                true,
                Class::Terminal,
            ),
            (
                account(|address, user| SessionError::Locked { address, user }),
                true,
                true,
                Class::Terminal,
            ),
            (
                account(|address, user| SessionError::Expired { address, user }),
                true,
                true,
                Class::Terminal,
            ),
            (
                account(|address, user| SessionError::Refused { address, user }),
                true,
                true,
                Class::Terminal,
            ),
            (
                account(|address, user| SessionError::Lost { address, user }),
                false,
                true,
                Class::Retry,
            ),
            (
                account(|address, user| SessionError::TagsRefused { address, user }),
                false,
                false,
                Class::Terminal,
            ),
            (
                SessionError::Forbidden {
                    address: address.clone(),
                    user: user.clone(),
                    method,
                },
                false,
                false,
                Class::Terminal,
            ),
            (
                SessionError::Fault {
                    address: address.clone(),
                    method,
                    kind: "k".into(),
                    text: "t".into(),
                },
                false,
                false,
                Class::Retry,
            ),
            (
                SessionError::TimedOut {
                    address: address.clone(),
                    method,
                    after: secs,
                },
                false,
                false,
                Class::Retry,
            ),
            (unfinished.into(), false, true, Class::Retry),
            (too_much.into(), false, true, Class::Retry),
            (refused.into(), false, false, Class::Retry),
        ] {
            let found = (error.is_rejection(), error.ends_session(), error.class());
            assert_eq!(found, (rejects, ends, class), "{error:?}");
        }
    }
}
