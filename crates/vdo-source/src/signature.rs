// SPDX-License-Identifier: Apache-2.0
//! Detached signatures over exact bytes, as cosign writes and checks them: who signed a matrix index, and signing one (pure).
//!
//! Two forms are read: the base64 of a signature alone, and a Sigstore bundle (version 0.3) with a message signature. Keys are ECDSA on
//! P-256 with SHA-256, or Ed25519. An index in a registry may also be signed by way of its manifest, as `cosign sign` does.

mod attached;
mod form;
mod private;
mod public;

pub use attached::{attached, pre_authenticated};
pub use form::{Form, Signature};
pub use private::PrivateKey;
pub use public::{PublicKey, PublicKeys};

use std::borrow::Cow;
use vdo_api::types::Remedy;

/// Why bytes are not accepted as signed, or cannot be signed. No error repeats a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// There are keys, and no signature.
    #[error("it is not signed")]
    Unsigned,
    /// The signature is in none of the forms that are known.
    #[error("its signature cannot be read: {0}")]
    Unreadable(String),
    /// A bundle says that it is about other bytes.
    #[error("its signature does not match: it was changed after it was signed, or the signature belongs to another file")]
    OtherBytes,
    /// None of the keys has signed these bytes.
    #[error("it is signed by none of the {0} trusted keys, or it was changed after it was signed")]
    NotTrusted(usize),
    /// The text with public keys cannot be used.
    #[error("the public keys cannot be used: {0}")]
    PublicKeys(String),
    /// The private key cannot be used.
    #[error("the private key cannot be used: {0}")]
    PrivateKey(&'static str),
}

impl Remedy for SignatureError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Self::Unsigned => "Sign it with vdoctl matrix sign, or get the signed matrix from its publisher.",
            Self::Unreadable(_) | Self::OtherBytes => {
                "Get the index and the signature from the publisher again, both from the same release."
            }
            Self::NotTrusted(_) => {
                "Get the index and the signature from the publisher again; if the publisher has a new key, add the key to the trusted keys."
            }
            Self::PublicKeys(_) => "Give PEM blocks of the kind PUBLIC KEY, as cosign and openssl write them.",
            Self::PrivateKey(_) => {
                "Give a PEM block of the kind PRIVATE KEY; openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out KEY.pem creates a key."
            }
        }))
    }
}
