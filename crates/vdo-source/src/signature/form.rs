// SPDX-License-Identifier: Apache-2.0
//! The file formats of a signature: base64 alone or Sigstore bundle; parses and writes both.

use super::SignatureError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use vdo_api::types::{Digest, from_json};

/// The form that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// The base64 of the signature alone, as `cosign sign-blob --output-signature` writes.
    Bare,
    /// A Sigstore bundle, as `cosign sign-blob --bundle` writes.
    Bundle,
}

impl Form {
    /// Both, in the order in which they are looked for.
    pub const ALL: [Self; 2] = [Self::Bare, Self::Bundle];

    /// The file beside a signed one that has its signature in this form.
    #[must_use]
    pub fn file_of(self, signed: &Path) -> PathBuf {
        let mut name = signed.as_os_str().to_owned();
        name.push(match self {
            Self::Bare => ".sig",
            Self::Bundle => ".sigstore.json",
        });
        name.into()
    }
}

/// A signature as it was read. Nothing is said by it before a key has accepted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// One, or several: while a publisher replaces an index, there is one for the old and one for the new.
    pub(super) bytes: Vec<Vec<u8>>,
    /// What the bundle says that was signed.
    pub(super) digest: Option<Digest>,
}

/// A signature of P-256 is up to 72 bytes long, a bundle of it 600.
const LIMIT: usize = 64 * 1024;
/// Signatures in a file.
const MANY: usize = 4;
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    media_type: String,
    verification_material: Material,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_signature: Option<MessageSignature>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Material {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    public_key: Option<Hint>,
}

#[derive(Serialize, Deserialize)]
struct Hint {
    hint: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageSignature {
    message_digest: MessageDigest,
    signature: String,
}

#[derive(Serialize, Deserialize)]
struct MessageDigest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    algorithm: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

impl Signature {
    /// Reads either form.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &[u8]) -> Result<Self, SignatureError> {
        let wrong = |why: &str| SignatureError::Unreadable(why.to_owned());
        if text.len() > LIMIT {
            return Err(wrong("it is too large for a signature"));
        }
        let text = text.trim_ascii();
        if !text.starts_with(b"{") {
            let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
            let bytes: Result<Vec<Vec<u8>>, _> = lines.take(MANY).map(|line| STANDARD.decode(line)).collect();
            let bytes = bytes.map_err(|_| wrong("it is neither base64 nor a bundle"))?;
            return Ok(Self { bytes, digest: None });
        }
        let bundle: Bundle = from_json(text).map_err(|error| SignatureError::Unreadable(format!("it is not a valid bundle: {error}")))?;
        if bundle.media_type != BUNDLE {
            return Err(wrong("the version of the bundle is not 0.3"));
        }
        let message = bundle
            .message_signature
            .ok_or_else(|| wrong("the bundle has no signature of a message"))?;
        let bytes = STANDARD
            .decode(&message.signature)
            .map_err(|_| wrong("the signature in the bundle is not base64"))?;
        // cosign leaves the digest out for Ed25519, which signs the message itself.
        let digest = match (message.message_digest.algorithm.as_deref(), message.message_digest.digest) {
            (Some("SHA2_256"), Some(digest)) => {
                let raw = STANDARD.decode(digest).ok();
                let digest = raw.and_then(|raw| format!("sha256:{}", hex::encode(raw)).parse().ok());
                Some(digest.ok_or_else(|| wrong("the digest in the bundle is not a SHA-256 digest"))?)
            }
            (None, None) => None,
            _ => return Err(wrong("the digest in the bundle is not SHA-256")),
        };
        Ok(Self {
            bytes: vec![bytes],
            digest,
        })
    }

    /// The text of a bare signature, and these after it.
    #[must_use]
    pub fn joined(&self, bare: &str) -> String {
        let mut lines = vec![bare.trim().to_owned()];
        lines.extend(self.bytes.iter().map(|bytes| STANDARD.encode(bytes)));
        lines.dedup();
        lines.truncate(MANY);
        lines.join("\n") + "\n"
    }
}

/// Writes a signature of `bytes` down.
pub(super) fn written(form: Form, signature: &[u8], bytes: &[u8], key: &Digest) -> String {
    let encoded = STANDARD.encode(signature);
    let raw = |digest: &Digest| STANDARD.encode(hex::decode(digest.hex()).unwrap_or_default());
    match form {
        Form::Bare => format!("{encoded}\n"),
        Form::Bundle => {
            let bundle = Bundle {
                media_type: BUNDLE.into(),
                verification_material: Material {
                    public_key: Some(Hint { hint: raw(key) }),
                },
                message_signature: Some(MessageSignature {
                    message_digest: MessageDigest {
                        algorithm: Some("SHA2_256".into()),
                        digest: Some(raw(&Digest::of(bytes))),
                    },
                    signature: encoded,
                }),
            };
            format!("{}\n", serde_json::to_string_pretty(&bundle).unwrap_or_default())
        }
    }
}
