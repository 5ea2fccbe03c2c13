// SPDX-License-Identifier: Apache-2.0
//! `Digest`: a SHA-256 digest, computed from bytes or parsed from `sha256:…`.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// A SHA-256 digest, written `sha256:` followed by 64 lower-case hex digits.
///
/// No other algorithm is accepted: a weaker one would make "by digest" mean less than it says.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Computes the digest of bytes that come in pieces.
#[derive(Debug, Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// The text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a digest; write sha256: and 64 lower-case hex digits")]
pub struct ParseDigestError(String);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The 64 hex digits without the algorithm.
    #[must_use]
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }

    /// The first twelve hex digits, for screens and names where a whole digest is too long to read.
    #[must_use]
    pub fn short(&self) -> String {
        hex::encode(&self.0[..6])
    }
}

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseDigestError(text.to_owned());
        let digits = text.strip_prefix("sha256:").ok_or_else(wrong)?;
        if digits.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| wrong())?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_short_is_the_first_twelve_digits() {
        let digest = Digest::of(b"vdo");
        assert_eq!(digest.short(), digest.hex()[..12]);
    }

    #[test]
    fn hasher_bytes_in_pieces_have_the_digest_of_the_whole() {
        let mut hasher = Hasher::default();
        hasher.update(b"v");
        hasher.update(b"do");
        assert_eq!(hasher.finish(), Digest::of(b"vdo"));
    }

    #[test]
    fn digest_text_round_trips_and_other_spelling_is_rejected() {
        let good = Digest::of(b"vdo").to_string();
        assert_eq!(good.parse::<Digest>().expect("its own text").to_string(), good);
        for bad in [
            "",
            "sha256:",
            "md5:d41d8cd98f00b204e9800998ecf8427e",
            &good.to_uppercase(),
            &good[7..],
            &good[..70],
        ] {
            assert!(bad.parse::<Digest>().is_err(), "{bad:?} was accepted");
        }
    }
}
