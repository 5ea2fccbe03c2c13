//! Signatures, verified by openssl and, where it is installed, by cosign.

use crate::{judged, root, text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const TEST: &str = "signature_is_verified_by_openssl_and_cosign";

/// A key made by openssl, and a file that was signed with it.
fn signed(folder: &Path) -> Option<()> {
    let at = |name: &str| folder.join(name).display().to_string();
    judged(
        TEST,
        "openssl",
        &[
            "genpkey",
            "-algorithm",
            "EC",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-out",
            &at("key.pem"),
        ],
    )?;
    judged(TEST, "openssl", &["pkey", "-in", &at("key.pem"), "-pubout", "-out", &at("key.pub")])?;
    fs::write(at("SHA256SUMS"), "0  a\n").expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_vdo-release"));
    let output = command
        .current_dir(root())
        .args(["sign", &at("SHA256SUMS")])
        .env("VDO_SIGNING_KEY", at("key.pem"))
        .output();
    let output = output.expect("vdo-release starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

#[test]
fn signature_is_verified_by_openssl_and_cosign() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(()) = signed(folder.path()) else { return };
    let at = |name: &str| folder.path().join(name).display().to_string();
    let bundle: Value = serde_json::from_slice(&fs::read(at("SHA256SUMS.sigstore.json")).expect("a bundle")).expect("JSON");
    let field = |value: &Value| STANDARD.decode(value.as_str().expect("text")).expect("base64");
    fs::write(at("signature"), field(&bundle["messageSignature"]["signature"])).expect("a file");
    let verify = [
        "dgst",
        "-sha256",
        "-verify",
        &at("key.pub"),
        "-signature",
        &at("signature"),
        &at("SHA256SUMS"),
    ];
    judged(TEST, "openssl", &verify);
    // The hint names the key: the digest of its public part as openssl encodes it.
    judged(
        TEST,
        "openssl",
        &["pkey", "-pubin", "-in", &at("key.pub"), "-outform", "DER", "-out", &at("key.der")],
    );
    let wanted = ring::digest::digest(&ring::digest::SHA256, &fs::read(at("key.der")).expect("a key"));
    assert_eq!(field(&bundle["verificationMaterial"]["publicKey"]["hint"]), wanted.as_ref());
    let (key, bundle, file) = (at("key.pub"), at("SHA256SUMS.sigstore.json"), at("SHA256SUMS"));
    let cosign = [
        "verify-blob",
        "--key",
        &key,
        "--bundle",
        &bundle,
        "--insecure-ignore-tlog=true",
        &file,
    ];
    judged(TEST, "cosign", &cosign);

    fs::write(at("SHA256SUMS"), "1  a\n").expect("a file");
    let output = Command::new("openssl").args(verify).output().expect("it starts");
    assert!(!output.status.success(), "another file was accepted");
}

#[test]
fn signature_without_key_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "text").expect("a file");
    let message = crate::refused(&["sign", text(&file)]);
    assert!(message.contains("VDO_SIGNING_KEY is not set"), "{message}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}
