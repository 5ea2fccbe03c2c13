// SPDX-License-Identifier: Apache-2.0
//! Parses a version of OpenShift, and computes its version of Kubernetes.

use std::str::FromStr;
use vdo_api::types::KubernetesVersion;

/// A minor version of OpenShift, such as 4.21.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenShiftVersion {
    kubernetes: KubernetesVersion,
}

/// The minor of Kubernetes that OpenShift 4.0 would have: 4.20 is 1.33.
pub const FIRST: u64 = 13;
/// 5.0, as a minor of 4.
const FIVE: u64 = 23;

/// A text that is not a version of OpenShift.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a version of OpenShift; write major and minor, for example 4.21")]
pub struct NotOpenShift(String);

impl FromStr for OpenShiftVersion {
    type Err = NotOpenShift;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let mut numbers = text.split('.');
            let major: u64 = numbers.next()?.parse().ok()?;
            let minor: u64 = numbers.next()?.parse().ok()?;
            // A patch may follow, which has the same Kubernetes.
            let rest = numbers
                .next()
                .is_none_or(|patch| patch.starts_with(|first: char| first.is_ascii_digit()));
            // 5.0 is what would be 4.23.
            let minor = match major {
                4 if minor <= FIVE => minor,
                5 => minor.checked_add(FIVE)?,
                _ => return None,
            };
            let kubernetes = format!("1.{}", minor.checked_add(FIRST)?).parse().ok()?;
            rest.then_some(Self { kubernetes })
        };
        read().ok_or_else(|| NotOpenShift(text.to_owned()))
    }
}

impl OpenShiftVersion {
    /// The version of Kubernetes in it.
    #[must_use]
    pub fn kubernetes(&self) -> &KubernetesVersion {
        &self.kubernetes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openshift_version_has_its_kubernetes() {
        for (text, expected) in [
            ("4.14", Some("1.27")),
            ("4.20", Some("1.33")),
            ("4.21.3", Some("1.34")),
            ("4.23", Some("1.36")),
            ("5.0", Some("1.36")),
            ("5.1", Some("1.37")),
            ("4.24", None),
            ("4", None),
            ("3.11", None),
            ("v4.20", None),
            ("4.20.x", None),
        ] {
            let found = text
                .parse::<OpenShiftVersion>()
                .map(|version| version.kubernetes().raw().to_owned());
            assert_eq!(found.ok().as_deref(), expected, "{text}");
        }
    }
}
