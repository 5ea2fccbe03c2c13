// SPDX-License-Identifier: Apache-2.0
//! Parses a platform such as `linux/arm/v7`, and decides whether an image for one platform runs on another.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Where an image runs, written `linux/amd64` or `linux/arm/v7`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Platform {
    /// As Go calls it: `amd64`, `arm64`.
    pub architecture: String,
    /// As Go calls it: `linux`.
    pub os: String,
    /// Of the architecture: `v7`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// The text is not a platform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a platform; write linux/amd64 or linux/arm64")]
pub struct ParsePlatformError(String);

impl FromStr for Platform {
    type Err = ParsePlatformError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('/').collect();
        let is_word = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let (os, architecture, variant) = match parts.as_slice() {
            [os, architecture] => (os, architecture, None),
            [os, architecture, variant] => (os, architecture, Some(variant)),
            _ => return Err(ParsePlatformError(text.to_owned())),
        };
        if !parts.iter().all(is_word) {
            return Err(ParsePlatformError(text.to_owned()));
        }
        Ok(Self {
            architecture: (*architecture).to_owned(),
            os: (*os).to_owned(),
            variant: variant.map(|variant| (*variant).to_owned()),
        })
    }
}

impl Platform {
    /// Whether what is made for this platform runs where the other one is wanted. A variant that is not asked for does not matter.
    #[must_use]
    pub fn serves(&self, wanted: &Self) -> bool {
        (&self.os, &self.architecture) == (&wanted.os, &wanted.architecture) && (wanted.variant.is_none() || wanted.variant == self.variant)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.iter().try_for_each(|variant| write!(f, "/{variant}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platform_text_round_trips_and_other_spelling_is_rejected() {
        for good in ["linux/amd64", "linux/arm64", "linux/arm/v7"] {
            assert_eq!(good.parse::<Platform>().expect("a platform").to_string(), good);
        }
        for bad in [
            "",
            "linux",
            "linux/",
            "/amd64",
            "linux/amd64/",
            "Linux/amd64",
            "linux/arm/v7/x",
            "linux/x86_64",
        ] {
            assert!(bad.parse::<Platform>().is_err(), "{bad:?} was accepted");
        }
    }
}
