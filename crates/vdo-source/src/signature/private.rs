// SPDX-License-Identifier: Apache-2.0
//! `PrivateKey`: parses a PEM private key and signs bytes.

use super::SignatureError;
use super::form::{Form, written};
use super::public::{Algorithm, PublicKey};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use std::collections::BTreeMap;
use vdo_api::types::Secret;

enum Pair {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// A private key. It is shown by nothing.
pub struct PrivateKey(Pair);

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PrivateKey")
    }
}

impl PrivateKey {
    /// Reads a PEM block with the label `PRIVATE KEY` (PKCS #8, without a password).
    ///
    /// # Errors
    /// When it is another kind of key or none.
    pub fn parse(text: &Secret) -> Result<Self, SignatureError> {
        let wrong = SignatureError::PrivateKey;
        let pem = pem::parse(text.expose()).map_err(|_| wrong("it is not PEM"))?;
        match pem.tag() {
            "PRIVATE KEY" => {}
            "EC PRIVATE KEY" => {
                return Err(wrong(
                    "it is in an old format; convert it with: openssl pkcs8 -topk8 -nocrypt -in KEY -out KEY.pem",
                ));
            }
            tag if tag.starts_with("ENCRYPTED") => {
                return Err(wrong("it is encrypted; give a key without a password"));
            }
            _ => return Err(wrong("it is not a private key")),
        }
        let random = SystemRandom::new();
        if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pem.contents(), &random) {
            return Ok(Self(Pair::P256(pair)));
        }
        match Ed25519KeyPair::from_pkcs8_maybe_unchecked(pem.contents()) {
            Ok(pair) => Ok(Self(Pair::Ed25519(pair))),
            Err(_) => Err(wrong("it is neither ECDSA on P-256 nor Ed25519")),
        }
    }

    /// Its public half.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        match &self.0 {
            Pair::P256(pair) => PublicKey::new(Algorithm::P256, pair.public_key().as_ref()),
            Pair::Ed25519(pair) => PublicKey::new(Algorithm::Ed25519, pair.public_key().as_ref()),
        }
    }

    /// Whether cosign verifies bundles of it. An Ed25519 key signs the bytes and not their digest, which it misses in a bundle.
    #[must_use]
    pub fn has_bundles(&self) -> bool {
        matches!(self.0, Pair::P256(_))
    }

    /// Signs these bytes in every form that cosign verifies.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn signatures(&self, bytes: &[u8]) -> Result<BTreeMap<Form, String>, SignatureError> {
        let forms = Form::ALL.into_iter().filter(|form| *form == Form::Bare || self.has_bundles());
        forms.map(|form| Ok((form, self.sign(bytes, form)?))).collect()
    }

    /// Signs these bytes.
    ///
    /// # Errors
    /// When the system has no randomness, and for a bundle of an Ed25519 key, which cosign does not verify.
    pub fn sign(&self, bytes: &[u8], form: Form) -> Result<String, SignatureError> {
        let signature = match &self.0 {
            Pair::P256(pair) => pair
                .sign(&SystemRandom::new(), bytes)
                .map_err(|_| SignatureError::PrivateKey("the system has no randomness"))?
                .as_ref()
                .to_vec(),
            Pair::Ed25519(_) if form == Form::Bundle => {
                return Err(SignatureError::PrivateKey(
                    "cosign cannot verify a bundle that an Ed25519 key signed; use a key on P-256",
                ));
            }
            Pair::Ed25519(pair) => pair.sign(bytes).as_ref().to_vec(),
        };
        Ok(written(form, &signature, bytes, &self.public().fingerprint()))
    }
}
