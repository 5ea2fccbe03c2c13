// SPDX-License-Identifier: Apache-2.0
//! Attaches and checks cosign signatures of published manifests: an in-toto statement in a DSSE envelope, as `cosign sign --key` writes it.

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use vdo_api::retry::REGISTRY;
use vdo_api::types::Digest;
use vdo_oci::oci::{Annotations, Descriptor, Manifest, media};
use vdo_oci::registry::{Reference, Registry, retry};
use vdo_source::signature::{Form, PrivateKey, PublicKeys, pre_authenticated};

const PAYLOAD: &str = "application/vnd.in-toto+json";
const PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";
/// Bytes of a bundle.
const LIMIT: usize = 64 << 10;

/// The keys that belong to a private one.
pub fn public(key: &PrivateKey) -> Result<PublicKeys> {
    Ok(PublicKeys::parse(key.public().pem().as_bytes())?)
}

/// Attaches a signature to a manifest.
pub async fn attest(registry: &Registry, at: &Reference, subject: &Descriptor, key: &PrivateKey) -> Result<()> {
    let bundle = bundle(&subject.digest, key)?;
    let blob = Descriptor::of(media::BUNDLE, &bundle);
    registry.put_blob(&at.repository, media::EMPTY_JSON.into()).await?;
    registry.put_blob(&at.repository, bundle.into()).await?;
    let mut manifest = Manifest::referrer(
        media::BUNDLE,
        blob,
        Descriptor::new(&subject.media_type, subject.digest.clone(), subject.size),
    );
    manifest.annotations = Annotations::from([
        ("dev.sigstore.bundle.content".to_owned(), "dsse-envelope".to_owned()),
        ("dev.sigstore.bundle.predicateType".to_owned(), PREDICATE.to_owned()),
    ]);
    let own = Reference {
        tag: None,
        digest: None,
        ..at.clone()
    };
    registry.put_manifest(&own, &manifest).await?;
    Ok(())
}

/// Whether one of the keys has signed a manifest.
pub async fn attested(registry: &Registry, at: &Reference, subject: &Descriptor, keys: &PublicKeys) -> Result<bool> {
    let found = retry(REGISTRY, || registry.referrers(at, &subject.digest, media::BUNDLE)).await?;
    // As many as are looked at by those who verify.
    for entry in found.into_iter().take(16) {
        let at = at.at_digest(&entry.digest);
        let manifest = retry(REGISTRY, || registry.manifest(&at)).await?.manifest()?;
        let Some(blob) = manifest.layers.first() else { continue };
        let bundle = registry.blob_bytes(&at.repository, blob, LIMIT).await?;
        if verifies(&bundle, &subject.digest, keys).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn statement(subject: &Digest) -> Value {
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"digest": {"sha256": subject.hex()}}],
        "predicateType": PREDICATE,
        "predicate": {},
    })
}

fn bundle(subject: &Digest, key: &PrivateKey) -> Result<Vec<u8>> {
    let payload = statement(subject).to_string();
    let signature = key.sign(&pre_authenticated(PAYLOAD, payload.as_bytes()), Form::Bare)?;
    let fingerprint = key.public().fingerprint();
    let hint = hex::decode(fingerprint.hex())?;
    let bundle = json!({
        "mediaType": media::BUNDLE,
        "verificationMaterial": {"publicKey": {"hint": STANDARD.encode(hint)}},
        "dsseEnvelope": {
            "payload": STANDARD.encode(payload),
            "payloadType": PAYLOAD,
            "signatures": [{"sig": signature.trim()}],
        },
    });
    serde_json::to_vec(&bundle).context("a signature")
}

/// Whether a bundle says of this manifest that it is signed, with the signature of one of the keys.
fn verifies(bundle: &[u8], subject: &Digest, keys: &PublicKeys) -> Option<()> {
    let bundle: Value = serde_json::from_slice(bundle).ok()?;
    let envelope = &bundle["dsseEnvelope"];
    let payload = STANDARD.decode(envelope["payload"].as_str()?).ok()?;
    let signature = envelope["signatures"][0]["sig"].as_str()?;
    keys.verify(
        &pre_authenticated(envelope["payloadType"].as_str()?, &payload),
        Some(signature.as_bytes()),
    )
    .ok()?;
    let signed: Value = serde_json::from_slice(&payload).ok()?;
    let of = signed["subject"]
        .as_array()?
        .iter()
        .any(|one| one["digest"]["sha256"] == *subject.hex());
    (of && signed["predicateType"] == PREDICATE).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
    use vdo_api::types::Secret;

    fn key() -> PrivateKey {
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new()).expect("a key");
        let text = pem::encode(&pem::Pem::new("PRIVATE KEY", pkcs8.as_ref()));
        PrivateKey::parse(&Secret::new(text)).expect("a key")
    }

    #[test]
    fn attested_manifest_is_verified_by_its_key_and_no_other_and_no_other_manifest_is() {
        let (ours, other) = (key(), key());
        let (one, two) = (Digest::of(b"1"), Digest::of(b"2"));
        let bundle = bundle(&one, &ours).expect("a bundle");
        let keys = |key: &PrivateKey| public(key).expect("keys");
        assert!(verifies(&bundle, &one, &keys(&ours)).is_some());
        assert!(verifies(&bundle, &two, &keys(&ours)).is_none());
        assert!(verifies(&bundle, &one, &keys(&other)).is_none());
        assert!(verifies(b"{}", &one, &keys(&ours)).is_none());
    }
}
