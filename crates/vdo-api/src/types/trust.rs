// SPDX-License-Identifier: Apache-2.0
//! How the certificate of a vCenter is verified: by the system's CAs, a CA bundle, a thumbprint, or not at all.

use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// How the certificate of a vCenter is checked.
///
/// There is no "not specified" here: an absent thumbprint is [`Trust::SystemRoots`], never [`Trust::Insecure`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// By the certificate authorities of the machine.
    SystemRoots,
    /// By these certificates in PEM form, and no others.
    CaBundle(String),
    /// The certificate itself is known.
    Thumbprint(Thumbprint),
    /// Not at all, because the user asked for it.
    Insecure,
}

/// The SHA-1 or SHA-256 digest of a certificate, as vCenter shows it.
///
/// Read in any case, with or without colons or spaces; written in upper case with colons, the only spelling the drivers
/// compare with.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thumbprint(Vec<u8>);

/// The text is not a thumbprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a thumbprint; write 40 (SHA-1) or 64 (SHA-256) hex digits, with or without colons")]
pub struct ParseThumbprintError(String);

impl Thumbprint {
    /// The SHA-256 thumbprint of a certificate in DER form.
    #[must_use]
    pub fn sha256(der: &[u8]) -> Self {
        Self(Sha256::digest(der).to_vec())
    }

    /// A thumbprint from the twenty bytes of a SHA-1 digest.
    #[must_use]
    pub fn from_sha1(digest: [u8; 20]) -> Self {
        Self(digest.to_vec())
    }

    /// Whether this is a SHA-1 thumbprint; otherwise it is SHA-256.
    #[must_use]
    pub fn is_sha1(&self) -> bool {
        self.0.len() == 20
    }
}

impl FromStr for Thumbprint {
    type Err = ParseThumbprintError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseThumbprintError(text.chars().take(100).collect());
        let digits: String = text.chars().filter(|c| *c != ':' && !c.is_whitespace()).collect();
        let bytes = hex::decode(digits).map_err(|_| wrong())?;
        matches!(bytes.len(), 20 | 32).then_some(Self(bytes)).ok_or_else(wrong)
    }
}

impl fmt::Display for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02X}", if i == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thumbprint_with_another_last_byte_is_not_equal() {
        let print = Thumbprint::sha256(b"certificate");
        let written = print.to_string();
        let last = if written.ends_with("00") { "01" } else { "00" };
        let other = format!("{}{last}", &written[..written.len() - 2]);
        assert_ne!(other.parse(), Ok(print));
    }

    #[test]
    fn thumbprint_any_spelling_parses_to_same_digest() {
        let written = Thumbprint::sha256(b"certificate").to_string();
        for spelling in [
            written.clone(),
            written.to_lowercase(),
            written.replace(':', ""),
            written.replace(':', " ") + "\n",
        ] {
            assert_eq!(spelling.parse::<Thumbprint>().map(|print| print.to_string()), Ok(written.clone()));
        }
    }

    #[test]
    fn thumbprint_sha1_is_recognized() {
        assert!(Thumbprint::from_sha1([7; 20]).is_sha1());
    }

    #[test]
    fn thumbprint_malformed_text_is_rejected() {
        let written = Thumbprint::sha256(b"certificate").to_string();
        for bad in ["", "AB:CD", &written[3..], "zz", &format!("{written}:00")] {
            assert!(bad.parse::<Thumbprint>().is_err(), "{bad:?} was accepted");
        }
    }
}
