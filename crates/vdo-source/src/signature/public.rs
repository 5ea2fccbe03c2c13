// SPDX-License-Identifier: Apache-2.0
//! `PublicKeys`: parses trusted PEM public keys, verifies signatures with them, and computes their fingerprints.

use super::{Signature, SignatureError, attached};
use ring::signature::{ECDSA_P256_SHA256_ASN1, ED25519, UnparsedPublicKey};
use std::fmt;
use vdo_api::types::Digest;

/// What precedes the point of a key in its SubjectPublicKeyInfo (RFC 5480 for P-256, RFC 8410 for Ed25519). Both are of fixed length.
pub(super) const P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01,
    0x07, 0x03, 0x42, 0x00,
];
pub(super) const ED25519_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// How many keys a person would trust at once; each is tried on each signature.
const MANY: usize = 64;

/// The algorithm of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    P256,
    Ed25519,
}

/// A key that verifies.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    algorithm: Algorithm,
    /// Its SubjectPublicKeyInfo.
    der: Vec<u8>,
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// Its fingerprint: the SHA-256 of its SubjectPublicKeyInfo, which `openssl pkey -pubin -outform DER | sha256sum` shows as well.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fingerprint().fmt(f)
    }
}

impl PublicKey {
    pub(super) fn new(algorithm: Algorithm, point: &[u8]) -> Self {
        let prefix: &[u8] = match algorithm {
            Algorithm::P256 => &P256_PREFIX,
            Algorithm::Ed25519 => &ED25519_PREFIX,
        };
        Self {
            algorithm,
            der: [prefix, point].concat(),
        }
    }

    fn from_der(der: &[u8]) -> Option<Self> {
        let (algorithm, length) = match der {
            _ if der.starts_with(&P256_PREFIX) => (Algorithm::P256, P256_PREFIX.len() + 65),
            _ if der.starts_with(&ED25519_PREFIX) => (Algorithm::Ed25519, ED25519_PREFIX.len() + 32),
            _ => return None,
        };
        (der.len() == length).then(|| Self {
            algorithm,
            der: der.to_vec(),
        })
    }

    /// The digest that names it.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        Digest::of(&self.der)
    }

    /// As PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        pem::encode_config(
            &pem::Pem::new("PUBLIC KEY", self.der.as_slice()),
            pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF),
        )
    }

    fn accepts(&self, bytes: &[u8], signature: &[u8]) -> bool {
        let outcome = match self.algorithm {
            Algorithm::P256 => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.der[P256_PREFIX.len()..]).verify(bytes, signature),
            Algorithm::Ed25519 => UnparsedPublicKey::new(&ED25519, &self.der[ED25519_PREFIX.len()..]).verify(bytes, signature),
        };
        outcome.is_ok()
    }
}

/// The keys that are trusted: one, or several while an old one is replaced by a new one. There is always one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKeys(Vec<PublicKey>);

impl PublicKeys {
    /// What each is called by.
    pub fn fingerprints(&self) -> impl Iterator<Item = Digest> {
        self.0.iter().map(PublicKey::fingerprint)
    }

    /// Reads PEM blocks with the label `PUBLIC KEY`. What is between them is a comment.
    ///
    /// # Errors
    /// When there is none, or one that is of another kind: leaving it out would refuse what its owner signs.
    pub fn parse(text: &[u8]) -> Result<Self, SignatureError> {
        let wrong = |why: &str| SignatureError::PublicKeys(why.to_owned());
        let blocks = pem::parse_many(text).map_err(|_| wrong("they are not PEM"))?;
        let mut keys: Vec<PublicKey> = Vec::new();
        for block in &blocks {
            if block.tag() != "PUBLIC KEY" {
                return Err(SignatureError::PublicKeys(format!(
                    "a PEM block has the label {}, not PUBLIC KEY",
                    plain(block.tag())
                )));
            }
            let key = PublicKey::from_der(block.contents()).ok_or_else(|| wrong("one key is neither ECDSA on P-256 nor Ed25519"))?;
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        match keys.len() {
            0 => Err(wrong("there is no key")),
            1..=MANY => Ok(Self(keys)),
            _ => Err(wrong("there are more than 64 keys")),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &PublicKey> {
        self.0.iter()
    }

    /// The key that has signed exactly these bytes.
    ///
    /// # Errors
    /// When none has.
    pub fn verify(&self, bytes: &[u8], signature: Option<&[u8]>) -> Result<&PublicKey, SignatureError> {
        let signature = signature.ok_or(SignatureError::Unsigned)?;
        if attached::is_attached(signature) {
            return attached::verify(self, bytes, signature);
        }
        let signature = Signature::parse(signature)?;
        if signature.digest.as_ref().is_some_and(|digest| *digest != Digest::of(bytes)) {
            return Err(SignatureError::OtherBytes);
        }
        let key = signature.bytes.iter().find_map(|one| self.accepting(bytes, one));
        key.ok_or_else(|| self.not_trusted())
    }

    /// The key that accepts a signature of these bytes.
    pub(super) fn accepting(&self, bytes: &[u8], signature: &[u8]) -> Option<&PublicKey> {
        self.0.iter().find(|key| key.accepts(bytes, signature))
    }

    pub(super) fn not_trusted(&self) -> SignatureError {
        SignatureError::NotTrusted(self.0.len())
    }
}

/// A word of a file in letters that no terminal obeys.
fn plain(word: &str) -> String {
    word.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').take(40).collect()
}
