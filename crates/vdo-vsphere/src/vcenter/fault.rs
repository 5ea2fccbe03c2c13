// SPDX-License-Identifier: Apache-2.0
//! A SOAP fault of a vCenter, and its conversion into a session error after a call or a login.

use crate::vsphere::SessionError;
use vdo_api::types::plain;

/// A fault as it came over the wire.
#[derive(Debug)]
pub struct Fault {
    /// Its type, without the word `Fault` at the end.
    pub kind: String,
    /// The vCenter's words. They are shown, never decided upon, but for the cause of a refused login, which has no other place.
    pub text: String,
    /// Of a refused call, the privilege that it needs and the object that it is needed on.
    pub denied: Option<(String, String)>,
}

impl Fault {
    /// What it means after a call that was not a login.
    pub fn of_call(self, address: String, user: &str, method: &'static str) -> SessionError {
        let user = user.to_owned();
        match self.kind.as_str() {
            "NotAuthenticated" => SessionError::Lost { address, user },
            "NoPermission" => SessionError::Forbidden { address, user, method },
            _ => SessionError::Fault {
                address,
                method,
                kind: plain(&self.kind),
                text: plain(&self.text),
            },
        }
    }

    /// What it means after a login.
    pub fn of_login(self, address: String, user: &str) -> SessionError {
        let words = self.text.to_lowercase();
        let owner = user.to_owned();
        match self.kind.as_str() {
            "InvalidLogin" | "NoPermission" | "PasswordExpired" | "SsoFaultInvalidCredentials" if words.contains("lock") => {
                SessionError::Locked { address, user: owner }
            }
            "PasswordExpired" => SessionError::Expired { address, user: owner },
            "InvalidLogin" | "NoPermission" if words.contains("expired") => SessionError::Expired { address, user: owner },
            "InvalidLogin" | "SsoFaultInvalidCredentials" => SessionError::InvalidLogin { address, user: owner },
            "NoPermission" => SessionError::Refused { address, user: owner },
            _ => self.of_call(address, user, "Login"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_api::types::Remedy as _;

    fn of_login(kind: &str, text: &str) -> SessionError {
        let fault = Fault {
            kind: kind.into(),
            text: text.into(),
            denied: None,
        };
        fault.of_login("vc:443".into(), "u")
    }

    #[test]
    fn login_fault_rejection_names_cause() {
        for (kind, text, expected) in [
            (
                "InvalidLogin",
                "Cannot complete login due to an incorrect user name or password.",
                "does not accept the user name or the password of \"u\"",
            ),
            ("InvalidLogin", "User account is locked.", "is locked"),
            ("InvalidLogin", "The account of the user is LOCKED out", "is locked"),
            ("InvalidLogin", "Login failed: password has expired", "has expired"),
            ("PasswordExpired", "", "has expired"),
            ("NoPermission", "Permission to perform this operation was denied.", "no permission"),
        ] {
            let error = of_login(kind, text);
            assert!(error.to_string().contains(expected), "{error} does not say {expected:?}");
            assert!(error.is_rejection() && error.remedy().is_some_and(|remedy| remedy.ends_with('.')));
        }
    }

    #[test]
    fn login_fault_of_other_kind_is_no_rejection() {
        for kind in ["NotAuthenticated", "SystemError", "HostCommunication"] {
            let error = of_login(kind, "no\nline");
            assert!(!error.is_rejection() && !error.to_string().contains('\n'), "{error}");
        }
    }
}
