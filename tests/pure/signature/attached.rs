// SPDX-License-Identifier: Apache-2.0
//! What `cosign sign --key` attaches to a manifest in a registry.

use super::{keys, private};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use vdo_api::types::Digest;
use vdo_oci::oci::{TITLE, media};
use vdo_source::signature::{Form, PrivateKey, SignatureError, attached, pre_authenticated};

const INDEX: &[u8] = b"drivers: {}\n";

/// The manifest of an index in a registry.
fn manifest(files: &[(&str, &[u8])]) -> Value {
    let layer = |(name, bytes): &(&str, &[u8])| json!({"mediaType": media::MATRIX_INDEX, "digest": Digest::of(bytes).to_string(), "size": bytes.len(), "annotations": {TITLE: name}});
    let empty = json!({"mediaType": "application/vnd.oci.empty.v1+json", "digest": Digest::of(b"{}").to_string(), "size": 2});
    json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": media::MATRIX,
        "config": empty, "layers": files.iter().map(layer).collect::<Vec<_>>(),
    })
}

/// What is said of the manifest.
fn statement(manifest: &Value) -> Value {
    json!({
        "_type": "https://in-toto.io/Statement/v1", "predicateType": "https://sigstore.dev/cosign/sign/v1", "predicate": {},
        "subject": [{"name": "", "digest": {"sha256": Digest::of(manifest.to_string().as_bytes()).hex()}}],
    })
}

fn bundle(key: &PrivateKey, statement: &Value) -> Value {
    let (kind, payload) = ("application/vnd.in-toto+json", statement.to_string());
    let signature = key
        .sign(&pre_authenticated(kind, payload.as_bytes()), Form::Bare)
        .expect("a signature");
    json!({
        "mediaType": media::BUNDLE, "verificationMaterial": {},
        "dsseEnvelope": {"payload": STANDARD.encode(payload), "payloadType": kind, "signatures": [{"sig": signature.trim()}]},
    })
}

fn together(manifest: &Value, bundles: &[Value]) -> Vec<u8> {
    let bundles: Vec<Vec<u8>> = bundles.iter().map(|bundle| bundle.to_string().into_bytes()).collect();
    attached(manifest.to_string().as_bytes(), &bundles)
}

/// What a signature is made over, as DSSE specifies it.
#[test]
fn envelope_is_signed_with_its_kind_and_lengths() {
    assert_eq!(
        pre_authenticated("http://example.com/HelloWorld", b"hello world"),
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    );
}

#[test]
fn attached_signature_each_forged_part_is_refused() {
    let (key, other) = (private("P-256"), private("P-256"));
    let trusted = keys(&key.public().pem());
    let good = manifest(&[("index.yaml", INDEX), ("charts/a.tgz", b"a chart")]);
    let of = |path: &str, to: Value, value: &Value| {
        let mut changed = value.clone();
        *changed.pointer_mut(path).expect("it is there") = to;
        changed
    };
    let signed = |manifest: &Value| together(manifest, &[bundle(&key, &statement(manifest))]);
    let stated = |change: &dyn Fn(Value) -> Value| together(&good, &[bundle(&key, &change(statement(&good)))]);
    let bundled = |path: &str, to: Value| together(&good, &[of(path, to, &bundle(&key, &statement(&good)))]);
    let two = json!([{"digest": {"sha256": "0".repeat(64)}}, statement(&good)["subject"][0]]);
    let signatures = |first: &str| json!([{"sig": first}, bundle(&key, &statement(&good))["dsseEnvelope"]["signatures"][0]]);
    let (fine, elsewhere) = ("fine", "OtherBytes");
    for (what, signature, expected) in [
        ("as it was signed", signed(&good), fine),
        ("the second subject is it", stated(&|s| of("/subject", two.clone(), &s)), fine),
        (
            "a signature that is none goes before",
            bundled("/dsseEnvelope/signatures", signatures("????")),
            fine,
        ),
        (
            "a wrong signature goes before",
            bundled("/dsseEnvelope/signatures", signatures("MEUC")),
            fine,
        ),
        ("no signature", bundled("/dsseEnvelope/signatures", json!([])), "NotTrusted"),
        ("another key", together(&good, &[bundle(&other, &statement(&good))]), "NotTrusted"),
        (
            "another kind of statement",
            stated(&|s| of("/_type", json!("x"), &s)),
            "not a signature statement",
        ),
        (
            "another predicate",
            stated(&|s| of("/predicateType", json!("x"), &s)),
            "not a signature statement",
        ),
        (
            "of another manifest",
            stated(&|s| of("/subject/0/digest/sha256", json!("0".repeat(64)), &s)),
            elsewhere,
        ),
        (
            "another payload",
            bundled("/dsseEnvelope/payloadType", json!("text/plain")),
            "no in-toto statement",
        ),
        (
            "a payload that is none",
            bundled("/dsseEnvelope/payload", json!("????")),
            "not base64",
        ),
        (
            "another version of bundles",
            bundled("/mediaType", json!("x")),
            "the version of the bundle",
        ),
        ("no envelope", bundled("/dsseEnvelope", json!(null)), "no envelope"),
        ("no bundle", together(&good, &[]), "Unsigned"),
        ("the index is another", signed(&manifest(&[("index.yaml", b"other")])), elsewhere),
        ("no file is the index", signed(&manifest(&[("other.yaml", INDEX)])), elsewhere),
        (
            "two files are the index",
            signed(&manifest(&[("index.yaml", INDEX), ("index.yaml", INDEX)])),
            elsewhere,
        ),
        (
            "something else than a matrix",
            signed(&of("/artifactType", json!("x"), &good)),
            elsewhere,
        ),
    ] {
        let found = match trusted.verify(INDEX, Some(&signature)) {
            Ok(signer) => {
                assert_eq!(*signer, key.public());
                fine.to_owned()
            }
            Err(error) => format!("{error:?} {error}"),
        };
        assert!(found.contains(expected), "{what}: {found}");
    }
}

/// One good bundle is enough, and of several problems the one that says most is reported.
#[test]
fn attached_signatures_any_good_one_counts_and_best_reason_is_reported() {
    let (key, other) = (private("P-256"), private("P-256"));
    let trusted = keys(&key.public().pem());
    let good = manifest(&[("index.yaml", INDEX)]);
    let fine = bundle(&key, &statement(&good));
    let untrusted = bundle(&other, &statement(&good));
    let elsewhere = bundle(&key, &statement(&manifest(&[])));
    let unreadable = json!({"mediaType": "x"});
    for (bundles, expected) in [
        (vec![&untrusted, &fine], None),
        (vec![&fine, &elsewhere], None),
        (vec![&unreadable, &fine], None),
        (vec![&untrusted, &elsewhere], Some("OtherBytes")),
        (vec![&elsewhere, &untrusted], Some("OtherBytes")),
        (vec![&untrusted, &unreadable], Some("NotTrusted(1)")),
    ] {
        let bundles: Vec<Value> = bundles.into_iter().cloned().collect();
        let error = trusted.verify(INDEX, Some(&together(&good, &bundles))).err();
        assert_eq!(error.map(|error| format!("{error:?}")).as_deref(), expected, "{bundles:?}");
    }
}

#[test]
fn attached_signature_above_its_limit_is_refused() {
    let key = private("P-256");
    let trusted = keys(&key.public().pem());
    let good = manifest(&[("index.yaml", INDEX)]);
    let mut signature = together(&good, &[bundle(&key, &statement(&good))]);
    signature.resize(128 << 10, b' ');
    assert!(trusted.verify(INDEX, Some(&signature)).is_ok());
    signature.push(b' ');
    let error = trusted.verify(INDEX, Some(&signature)).expect_err("it is too large");
    assert_eq!(error, SignatureError::TooLarge(128));
}
