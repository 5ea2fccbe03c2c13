// SPDX-License-Identifier: Apache-2.0
//! Verifies a signature that `cosign sign --key` attached to the manifest of a matrix in a registry (in-toto statement in DSSE).
//!
//! An index that is a file of such an artifact is signed by way of the manifest: the statement names the manifest, and the manifest names
//! the index. All three are needed to check it, so they are kept together as one signature.

use super::{PublicKey, PublicKeys, SignatureError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_api::types::{Digest, from_json};
use vdo_oci::oci::{Manifest, TITLE, media};

/// How the three are written down together.
const ATTACHED: &str = "application/vnd.vdo.matrix.attached.v1+json";
/// Of the manifest and its signatures together; a manifest with 150 charts has 50 KiB.
const LIMIT: usize = 128 << 10;
const PAYLOAD: &str = "application/vnd.in-toto+json";
const STATEMENT: &str = "https://in-toto.io/Statement/v1";
/// What the statement says of the manifest: that it is signed.
const PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";
/// The file of the index in an artifact.
const INDEX: &str = "index.yaml";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attached {
    media_type: String,
    manifest: String,
    bundles: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    media_type: String,
    dsse_envelope: Option<Envelope>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<Signed>,
}

#[derive(Deserialize)]
struct Signed {
    sig: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    predicate_type: String,
}

#[derive(Deserialize)]
struct Subject {
    digest: BTreeMap<String, String>,
}

/// A manifest with the bundles that were attached to it, as one signature of the index in it. What is not JSON is left out.
#[must_use]
pub fn attached(manifest: &[u8], bundles: &[Vec<u8>]) -> Vec<u8> {
    let attached = Attached {
        media_type: ATTACHED.into(),
        manifest: String::from_utf8_lossy(manifest).into_owned(),
        bundles: bundles.iter().filter_map(|bundle| from_json(bundle).ok()).collect(),
    };
    serde_json::to_vec(&attached).unwrap_or_default()
}

/// The bytes that are signed of an envelope (DSSE v1: pre-authentication encoding).
#[must_use]
pub fn pre_authenticated(kind: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// Whether a signature is one of these.
pub(super) fn is_attached(signature: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Typed {
        media_type: String,
    }
    from_json::<Typed>(signature).is_ok_and(|typed| typed.media_type == ATTACHED)
}

/// The key that has signed the manifest in which these bytes are the index.
pub(super) fn verify<'a>(keys: &'a PublicKeys, bytes: &[u8], signature: &[u8]) -> Result<&'a PublicKey, SignatureError> {
    if signature.len() > LIMIT {
        return Err(SignatureError::TooLarge(LIMIT >> 10));
    }
    let attached: Attached = from_json(signature).map_err(|error| SignatureError::Unreadable(error.to_string()))?;
    let manifest = Digest::of(attached.manifest.as_bytes());
    let mut problem = None;
    for bundle in &attached.bundles {
        match signer(keys, bundle, &manifest) {
            Ok(key) => {
                return match names(&attached.manifest, &Digest::of(bytes)) {
                    true => Ok(key),
                    false => Err(SignatureError::OtherBytes),
                };
            }
            // The best reason: a trusted key has signed, but something else; then that none has.
            Err(error) if problem.is_none() || error == SignatureError::OtherBytes => problem = Some(error),
            Err(_) => {}
        }
    }
    Err(problem.unwrap_or(SignatureError::Unsigned))
}

/// The key whose statement is about this manifest. Nothing of a statement is read before a key has accepted it.
fn signer<'a>(keys: &'a PublicKeys, bundle: &Value, manifest: &Digest) -> Result<&'a PublicKey, SignatureError> {
    let wrong = |why: &str| SignatureError::Unreadable(why.to_owned());
    let bundle: Bundle =
        Bundle::deserialize(bundle).map_err(|error| SignatureError::Unreadable(format!("it is not a valid bundle: {error}")))?;
    if bundle.media_type != media::BUNDLE {
        return Err(wrong("the version of the bundle is not 0.3"));
    }
    let envelope = bundle
        .dsse_envelope
        .ok_or_else(|| wrong("the bundle has no envelope with a statement"))?;
    if envelope.payload_type != PAYLOAD {
        return Err(wrong("the envelope contains no in-toto statement"));
    }
    let payload = STANDARD
        .decode(&envelope.payload)
        .map_err(|_| wrong("the statement is not base64"))?;
    let signed = pre_authenticated(&envelope.payload_type, &payload);
    let mut signatures = envelope
        .signatures
        .iter()
        .take(16)
        .filter_map(|signed| STANDARD.decode(&signed.sig).ok());
    let key = signatures.find_map(|signature| keys.accepting(&signed, &signature));
    let key = key.ok_or_else(|| keys.not_trusted())?;
    let statement: Statement =
        from_json(&payload).map_err(|error| SignatureError::Unreadable(format!("the statement in it is not valid: {error}")))?;
    if statement.kind != STATEMENT || statement.predicate_type != PREDICATE {
        return Err(wrong("it is not a signature statement"));
    }
    let is_manifest = |subject: &Subject| subject.digest.get("sha256").is_some_and(|digest| *digest == manifest.hex());
    match statement.subject.iter().any(is_manifest) {
        true => Ok(key),
        false => Err(SignatureError::OtherBytes),
    }
}

/// Whether a manifest is that of a matrix, with this index.
fn names(manifest: &str, index: &Digest) -> bool {
    let Ok(manifest) = from_json::<Manifest>(manifest) else {
        return false;
    };
    let is_index = |layer: &vdo_oci::oci::Descriptor| layer.annotations.get(TITLE).is_some_and(|title| title == INDEX);
    let mut indexes = manifest.layers.iter().filter(|layer| is_index(layer));
    let is_matrix = manifest.artifact_type.as_deref() == Some(media::MATRIX);
    is_matrix && indexes.next().is_some_and(|layer| layer.digest == *index) && indexes.next().is_none()
}
