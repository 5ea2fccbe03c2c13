// SPDX-License-Identifier: Apache-2.0
//! A user or group of an identity source in both spellings, `DOMAIN\name` and `name@domain`.

use std::fmt;
use std::str::FromStr;

/// A user or a group of an identity source. A vCenter spells it `VSPHERE.LOCAL\k8s`, people and drivers `k8s@vsphere.local`; both are the
/// same one, whatever the case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Principal {
    /// The name without the domain.
    pub name: String,
    /// The domain, in small letters.
    pub domain: String,
    /// Whether it is a group.
    pub group: bool,
}

/// A user as the identity source of the vCenter has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Person {
    /// Its name without the domain.
    pub name: String,
    /// Its description, which marks ours.
    pub description: String,
    /// Whether too many wrong passwords were sent for it.
    pub locked: bool,
    /// Whether an administrator has disabled it.
    pub disabled: bool,
}

/// A text that names no user of a domain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a user name with a domain")]
pub struct ParsePrincipalError(String);

impl Principal {
    /// A user.
    #[must_use]
    pub fn user(name: &str, domain: &str) -> Self {
        Self {
            name: name.to_owned(),
            domain: domain.to_lowercase(),
            group: false,
        }
    }

    /// As a vCenter spells it.
    #[must_use]
    pub fn down_level(&self) -> String {
        format!("{}\\{}", self.domain.to_uppercase(), self.name)
    }

    /// Whether this text names it, in either spelling.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        text.parse::<Self>()
            .is_ok_and(|other| other.domain == self.domain && other.name.eq_ignore_ascii_case(&self.name))
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.domain)
    }
}

impl FromStr for Principal {
    type Err = ParsePrincipalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = match text.split_once('\\') {
            Some((domain, name)) => Some((name, domain)),
            None => text.rsplit_once('@'),
        };
        parts
            .filter(|(name, domain)| !name.is_empty() && !domain.is_empty())
            .map(|(name, domain)| Self::user(name, domain))
            .ok_or_else(|| ParsePrincipalError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_both_spellings_are_one() {
        let user = Principal::user("k8s", "VSPHERE.LOCAL");
        assert_eq!(
            (user.to_string(), user.down_level()),
            ("k8s@vsphere.local".into(), "VSPHERE.LOCAL\\k8s".into())
        );
        for (text, same) in [
            ("k8s@vsphere.local", true),
            ("K8S@VSphere.Local", true),
            ("VSPHERE.LOCAL\\k8s", true),
            ("k8s", false),
            ("k8s@example.com", false),
            ("k9s@vsphere.local", false),
            ("@vsphere.local", false),
        ] {
            assert_eq!(user.is(text), same, "{text}");
        }
        assert_eq!("a@b@corp".parse::<Principal>().map(|p| p.name), Ok("a@b".into()));
        assert!("k8s".parse::<Principal>().is_err());
    }
}
