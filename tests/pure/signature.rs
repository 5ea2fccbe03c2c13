// SPDX-License-Identifier: Apache-2.0
//! Signatures of the matrix: what openssl and cosign write is accepted, and nothing else is.

mod attached;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use vdo_api::types::{Digest, Remedy as _, Secret};
use vdo_source::signature::{Form, PrivateKey, PublicKeys, Signature, SignatureError};

/// What was signed with openssl: `dgst -sha256 -sign` for P-256, `pkeyutl -sign -rawin` for Ed25519.
const MESSAGE: &[u8] = b"drivers: {}\n";
const P256: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEMCeNk4gv8pvezkd2FdbQ/1JyVYed\n\
hyVlxIyUTC/MvsvCLwGCHNaJAWKa9DXCZhiSfquHNYYXtIXSCakII2xNFg==\n\
-----END PUBLIC KEY-----\n\
";
const P256_SIGNATURE: &str = "MEYCIQCtbaDGEOqEQeehAxF8Fgs82M7/JTTPeSVsHW3ZahyG1QIhALOIhgOgbBB4C+c3Uz7yDr6ckUMkGyxv74u779oeus5c";
const P256_FINGERPRINT: &str = "sha256:b2deca5047337de736c8ae2c2dca78dac1bfd25d1539f1f0121f187655f52303";
const ED25519: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MCowBQYDK2VwAyEAcoirQmVNPfxAULLAko4VCjZPpXBIfJgJ3yy+Unop+34=\n\
-----END PUBLIC KEY-----\n\
";
const ED25519_SIGNATURE: &str = "bAe61QfaZUPvFe0gcIQOOX3aJ8GkL5dPBx0XPPdHPLiID0Qcv+nDsrEVfIGtlGVzn6o3IzMI4jXKeuHYw562Dg==";
/// Of a kind that is not verified: P-384.
const P384: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE2R2tFRGxqjkFFsKHVKQ+0KSBrWEmTnep\n\
IE2A/bYQ4sDrBAIq2X1tYBTJGJPSuRUYYQODZlAuG+y6hE+e06EtXBluHOBAoVle\n\
MpQlk36Ug+oi4Y6UyFsGPsttdc8QR4Ga\n\
-----END PUBLIC KEY-----\n\
";
/// What cosign 3.1.3 wrote for the same message: `sign-blob --output-signature`, and `sign-blob --bundle`.
const COSIGN: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEi/hu2eB4z+JROCMZ4UIu3B0M+a7f\n\
DA8d2ZVAccr+16zI+XXorYnusqXnpeA2oXPz5lhRmrXM6STjTLojPifYZA==\n\
-----END PUBLIC KEY-----\n\
";
const COSIGN_SIGNATURE: &str = "MEUCIFVBM1datzGhkHz//uhRLnP12HOha06tk91yWMK1O4scAiEAjsBuPukCpOAl3Jgjy87BRgD5+1hqPaMYxMwqYY9sRRE=";
const COSIGN_BUNDLE: &str = r#"{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json", "verificationMaterial":{"publicKey":{"hint":"Z6Nnul/Pb6AG/PBx7x+LYl9CaNSr47YFKPEIkfy5oes="}}, "messageSignature":{"messageDigest":{"algorithm":"SHA2_256", "digest":"hmybd4jdOApnaflK0/ll3NJzTIqShheIMCimmRoEZz0="}, "signature":"MEUCIAqWMeyCzuGGyjV8UDwG8PoEFJ9WddArEvVrj7qdf+O4AiEAsFkASaPbg3NXeCXXaukqZZRgF5BH1O91LfYSK3BATQw="}}"#;

fn keys(pem: &str) -> PublicKeys {
    PublicKeys::parse(pem.as_bytes()).expect("public keys")
}

/// A private key as its owner has it, in the form that openssl and cosign write.
fn private(algorithm: &str) -> PrivateKey {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
    let random = SystemRandom::new();
    let der = match algorithm {
        "P-256" => EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random),
        _ => Ed25519KeyPair::generate_pkcs8(&random),
    };
    let pem = pem::encode(&pem::Pem::new("PRIVATE KEY", der.expect("a key").as_ref()));
    PrivateKey::parse(&Secret::new(pem)).expect("a private key")
}

#[test]
fn signature_of_openssl_or_cosign_is_verified_with_any_of_the_keys() {
    let both = format!("the old one:\n{P256}the new one:\n{ED25519}");
    for (name, pem, signature) in [
        ("P-256", P256, P256_SIGNATURE),
        ("Ed25519", ED25519, ED25519_SIGNATURE),
        ("P-256 of two", both.as_str(), P256_SIGNATURE),
        ("Ed25519 of two", both.as_str(), ED25519_SIGNATURE),
        ("cosign", COSIGN, COSIGN_SIGNATURE),
        ("bundle of cosign", COSIGN, COSIGN_BUNDLE),
    ] {
        for written in [signature.to_owned(), format!("{signature}\n"), format!("\r\n {signature}\r\n")] {
            let keys = keys(pem);
            keys.verify(MESSAGE, Some(written.as_bytes()))
                .unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
    let trusted = keys(P256);
    let signer = trusted.verify(MESSAGE, Some(P256_SIGNATURE.as_bytes())).expect("its signature");
    // As `openssl pkey -pubin -outform DER | sha256sum` shows it.
    assert_eq!(signer.fingerprint().to_string(), P256_FINGERPRINT);
    assert_eq!(keys(&signer.pem()), trusted, "it is written as it was read");
}

/// The bytes are what was signed, not what they mean.
#[test]
fn signature_over_other_bytes_is_refused() {
    let keys = keys(P256);
    for other in [
        &b"drivers: {}"[..],
        b"drivers: {}\r\n",
        b"drivers: {}\n\n",
        b"\xef\xbb\xbfdrivers: {}\n",
        b"drivers: {} \n",
        b"\"drivers\": {}\n",
        b"drivers: {}\n#",
        b"",
    ] {
        let error = keys.verify(other, Some(P256_SIGNATURE.as_bytes())).expect_err("other bytes");
        assert_eq!(error, SignatureError::NotTrusted(1), "{other:?}");
    }
}

#[test]
fn signature_missing_or_of_another_key_is_refused() {
    assert_eq!(keys(P256).verify(MESSAGE, None).expect_err("none"), SignatureError::Unsigned);
    let of_another = keys(&private("P-256").public().pem());
    let error = of_another
        .verify(MESSAGE, Some(P256_SIGNATURE.as_bytes()))
        .expect_err("another key");
    assert_eq!(error, SignatureError::NotTrusted(1));
    // Revocation: the key that signed is not in the list any more.
    let error = keys(ED25519)
        .verify(MESSAGE, Some(P256_SIGNATURE.as_bytes()))
        .expect_err("a revoked key");
    assert_eq!(error, SignatureError::NotTrusted(1));
    assert!(error.remedy().expect("a remedy").contains("trusted keys"));
}

#[test]
fn signature_in_no_known_form_is_refused_with_what_is_wrong() {
    let large = "A".repeat(65 << 10);
    let key = private("P-256");
    let bundle = key.sign(MESSAGE, Form::Bundle).expect("a bundle");
    let keys = keys(&key.public().pem());
    for (text, said) in [
        ("", "NotTrusted"),
        ("not base64!", "base64"),
        ("<html>Log in</html>", "base64"),
        (large.as_str(), "too large"),
        ("{}", "it is not a valid bundle"),
        ("{\"base64Signature\": \"MEUC\"}", "it is not a valid bundle"),
        (&bundle.replace("v0.3", "v0.9"), "version"),
        (&bundle.replace("SHA2_256", "SHA2_512"), "not SHA-256"),
        (&bundle.replace("messageSignature", "dsseEnvelope"), "no signature of a message"),
        (&bundle[..bundle.len() / 2], "it is not a valid bundle"),
    ] {
        let error = keys.verify(MESSAGE, Some(text.as_bytes())).expect_err(said);
        let reported = format!("{error} {error:?}");
        assert!(reported.contains(said), "{said}: {reported}");
    }
    // A bundle of other bytes is recognised.
    let error = keys.verify(b"other", Some(bundle.as_bytes())).expect_err("other bytes");
    assert_eq!(error, SignatureError::OtherBytes);
}

#[test]
fn signature_written_is_verified_and_has_the_fields_of_cosign() {
    for algorithm in ["P-256", "Ed25519"] {
        let key = private(algorithm);
        let keys = keys(&key.public().pem());
        let bare = key.sign(MESSAGE, Form::Bare).expect("a signature");
        let signer = keys.verify(MESSAGE, Some(bare.as_bytes())).expect("its signature");
        assert_eq!(*signer, key.public());
        assert!(keys.verify(b"other", Some(bare.as_bytes())).is_err(), "{algorithm}");
        assert_eq!(key.sign(MESSAGE, Form::Bundle).is_ok(), key.has_bundles(), "{algorithm}");
    }
    let key = private("P-256");
    let bundle = key.sign(MESSAGE, Form::Bundle).expect("a bundle");
    keys(&key.public().pem())
        .verify(MESSAGE, Some(bundle.as_bytes()))
        .expect("its bundle");
    let bundle: serde_json::Value = serde_json::from_str(&bundle).expect("JSON");
    let raw = |digest: Digest| STANDARD.encode(hex::decode(digest.hex()).expect("hex"));
    assert_eq!(bundle["mediaType"], "application/vnd.dev.sigstore.bundle.v0.3+json");
    assert_eq!(bundle["verificationMaterial"]["publicKey"]["hint"], raw(key.public().fingerprint()));
    assert_eq!(
        bundle["messageSignature"]["messageDigest"],
        serde_json::json!({"algorithm": "SHA2_256", "digest": raw(Digest::of(MESSAGE))})
    );
}

#[test]
fn keys_that_cannot_be_used_are_refused_as_a_whole() {
    let secret = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMG\n-----END PRIVATE KEY-----\n";
    let certificate = P256.replace("PUBLIC KEY", "CERTIFICATE");
    let mixed = format!("{P256}{P384}");
    for (text, said) in [
        ("", "there is no key"),
        ("# no key yet", "there is no key"),
        (secret, "has the label PRIVATE KEY"),
        (&certificate, "has the label CERTIFICATE"),
        (P384, "neither ECDSA on P-256 nor Ed25519"),
        (&mixed, "neither ECDSA on P-256 nor Ed25519"),
        (&P256.replace("MFkw", "????"), "not PEM"),
    ] {
        let error = PublicKeys::parse(text.as_bytes()).expect_err(said).to_string();
        assert!(error.contains(said), "{said}: {error}");
        assert!(!error.contains("MIGH"), "a key is repeated: {error}");
    }
    // An X25519 key is as long as an Ed25519 key, and signs nothing.
    let agreement = pem::encode(&pem::Pem::new(
        "PUBLIC KEY",
        [&b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x6e\x03\x21\x00"[..], &[7; 32]].concat(),
    ));
    let error = PublicKeys::parse(agreement.as_bytes()).expect_err("it signs nothing").to_string();
    assert!(error.contains("neither ECDSA on P-256 nor Ed25519"), "{error}");
    assert_eq!(keys(&format!("{P256}{P256}")).iter().count(), 1);
    let both = keys(&format!("{P256}{ED25519}"));
    let prints: Vec<Digest> = both.fingerprints().collect();
    assert_eq!(
        prints,
        both.iter().map(vdo_source::signature::PublicKey::fingerprint).collect::<Vec<_>>()
    );
    assert_eq!((prints.len(), prints[0].to_string().as_str()), (2, P256_FINGERPRINT));
}

#[test]
fn private_key_of_another_kind_is_refused_and_not_repeated() {
    use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
    let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &ring::rand::SystemRandom::new()).expect("a key");
    let good = pem::encode(&pem::Pem::new("PRIVATE KEY", der.as_ref()));
    let body = good.lines().nth(1).expect("a line");
    for (text, said) in [
        (good.replace("PRIVATE KEY", "EC PRIVATE KEY"), "openssl pkcs8"),
        (good.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"), "encrypted"),
        (good.replace("PRIVATE KEY", "PUBLIC KEY"), "not a private key"),
        (good.replace("-----END", "----"), "not PEM"),
        (good.replacen("MIG", "MIH", 1), "neither"),
    ] {
        let error = PrivateKey::parse(&Secret::new(text)).expect_err(said);
        let reported = format!("{error} {error:?}");
        assert!(reported.contains(said) && !reported.contains(body), "{said}: {reported}");
    }
    assert_eq!(format!("{:?}", private("P-256")), "PrivateKey");
}

/// While a key is replaced a file holds signatures of both: a line for each, as many as are read.
#[test]
fn signatures_joined_are_read_line_by_line() {
    let (old, new) = (private("P-256"), private("Ed25519"));
    let sign = |key: &PrivateKey| key.sign(MESSAGE, Form::Bare).expect("a signature");
    let one = Signature::parse(sign(&old).as_bytes()).expect("a signature");
    let both = one.joined(&sign(&new));
    assert_eq!(both, sign(&new) + one.joined("").trim_start());
    for key in [&old, &new] {
        let trusted = keys(&key.public().pem());
        assert_eq!(*trusted.verify(MESSAGE, Some(both.as_bytes())).expect("one of both"), key.public());
    }
    let lines = |text: &str| text.lines().count();
    let two = Signature::parse(both.as_bytes()).expect("signatures");
    assert_eq!(lines(&two.joined(&sign(&new))), 2, "the same one is not written twice");
    let mut all = both;
    for expected in [3, 4, 4] {
        all = Signature::parse(all.as_bytes())
            .expect("signatures")
            .joined(&sign(&private("Ed25519")));
        assert_eq!(lines(&all), expected);
    }
}

#[test]
fn signature_file_of_the_largest_size_is_read() {
    let mut text = P256_SIGNATURE.as_bytes().to_vec();
    text.resize(64 << 10, b' ');
    assert!(keys(P256).verify(MESSAGE, Some(&text)).is_ok());
    text.push(b' ');
    assert!(keys(P256).verify(MESSAGE, Some(&text)).is_err());
}

/// cosign leaves the digest out of the bundle where the key signs the message itself.
#[test]
fn bundle_of_ed25519_has_no_digest() {
    let bundle = serde_json::json!({
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "verificationMaterial": {},
        "messageSignature": {"messageDigest": {}, "signature": ED25519_SIGNATURE},
    });
    let keys = keys(ED25519);
    assert!(keys.verify(MESSAGE, Some(bundle.to_string().as_bytes())).is_ok());
    assert_eq!(
        keys.verify(b"other", Some(bundle.to_string().as_bytes())),
        Err(SignatureError::NotTrusted(1))
    );
}

#[test]
fn signatures_of_a_key_are_written_in_the_forms_that_cosign_verifies() {
    for (algorithm, files) in [
        ("P-256", &["index.yaml.sig", "index.yaml.sigstore.json"][..]),
        ("Ed25519", &["index.yaml.sig"]),
    ] {
        let key = private(algorithm);
        let all = key.signatures(MESSAGE).expect("signatures");
        let named: Vec<String> = all
            .keys()
            .map(|form| form.file_of(std::path::Path::new("index.yaml")).display().to_string())
            .collect();
        assert_eq!(named, files, "{algorithm}");
        for text in all.values() {
            assert!(
                keys(&key.public().pem()).verify(MESSAGE, Some(text.as_bytes())).is_ok(),
                "{algorithm}"
            );
        }
    }
}
