// SPDX-License-Identifier: Apache-2.0
//! Verifies and creates detached signatures of a matrix index in the formats of cosign; `SignatureError` says why one is refused (pure).
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
    #[error("the file is not signed")]
    Unsigned,
    /// The signature is in none of the forms that are known.
    #[error("the signature cannot be read: {0}")]
    Unreadable(String),
    /// The manifest and what cosign has attached to it are larger than this many KiB.
    #[error("the OCI manifest and its cosign signatures together have more than {0} KiB")]
    TooLarge(usize),
    /// A bundle says that it is about other bytes.
    #[error("the signature does not match: the file was changed after it was signed, or the signature belongs to another file")]
    OtherBytes,
    /// None of the keys has signed these bytes.
    #[error("no trusted key has signed the file ({0} checked), or the file was changed after it was signed")]
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
            Self::Unsigned => "Sign the file with vdoctl matrix sign, or get the signed matrix from its publisher.",
            Self::Unreadable(_) | Self::OtherBytes => {
                "Get the index and the signature from the publisher again, both from the same release."
            }
            Self::TooLarge(_) => {
                "Sign the file index.yaml with vdoctl matrix sign and add the file index.yaml.sig to the artifact, or ask the publisher \
                 of the matrix to do this."
            }
            Self::NotTrusted(_) => {
                "Get the index and the signature from the publisher again; if the publisher has a new key, add the key to the trusted keys."
            }
            Self::PublicKeys(_) => "Give PEM blocks with the label PUBLIC KEY, as cosign and openssl write them.",
            Self::PrivateKey(_) => {
                "Give a PEM block with the label PRIVATE KEY; openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out KEY.pem creates a key."
            }
        }))
    }
}
