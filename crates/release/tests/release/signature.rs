// SPDX-License-Identifier: Apache-2.0
//! Tests `vdo-release sign`: openssl and, where it is installed, cosign verify a signature with the commands of docs/release.md.

use crate::follow::Page;
use crate::{judged, root, text};
use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const TEST: &str = "page_release_is_verified_as_written";

/// A file that was signed with a key made by openssl.
#[test]
fn page_release_is_verified_as_written() -> Result<()> {
    let mut page = Page::open("release.md")?;
    let Some(_) = judged(TEST, "openssl", &["version"]) else {
        return Ok(());
    };
    let at = |page: &Page, name: &str| page.folder().join(name).display().to_string();
    page.run("openssl genpkey")?;
    page.file("a", "text")?;
    let digest = ring::digest::digest(&ring::digest::SHA256, b"text");
    page.file("SHA256SUMS", &format!("{}  a\n", hex::encode(digest)))?;
    let output = Command::new(env!("CARGO_BIN_EXE_vdo-release"))
        .current_dir(root())
        .args(["sign", &at(&page, "SHA256SUMS")])
        .env("VDO_SIGNING_KEY", at(&page, "KEY.pem"))
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    page.run("sha256sum --check")?;
    page.run("sed -n")?;
    if judged(TEST, "cosign", &["version"]).is_some() {
        // Its folder is on PATH here, and not on that of a page.
        let cosign = judged(TEST, "sh", &["-c", "command -v cosign"]).context("cosign")?;
        page = page.with(Path::new(cosign.trim()))?;
        page.run("cosign verify-blob")?;
    }
    page.end(&["cosign verify-blob"])?;

    // The hint names the key: the digest of its public part as openssl encodes it.
    let (key, der) = (at(&page, "KEY.pub"), at(&page, "key.der"));
    judged(TEST, "openssl", &["pkey", "-pubin", "-in", &key, "-outform", "DER", "-out", &der]);
    let wanted = ring::digest::digest(&ring::digest::SHA256, &fs::read(&der)?);
    let bundle: Value = serde_json::from_slice(&fs::read(at(&page, "SHA256SUMS.sigstore.json"))?)?;
    let hint = bundle["verificationMaterial"]["publicKey"]["hint"].as_str().unwrap_or_default();
    ensure!(STANDARD.decode(hint)? == wanted.as_ref(), "{bundle}");

    // What was changed after it was signed is refused.
    page.file("SHA256SUMS", "1  a\n")?;
    for begins in ["sha256sum --check", "sed -n"] {
        ensure!(page.run(begins).is_err(), "{begins}: another file was accepted");
    }
    Ok(())
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
