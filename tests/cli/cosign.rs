// SPDX-License-Identifier: Apache-2.0
//! Signatures of a matrix, with the real cosign as judge and as signer, where there is one.

use crate::{FROZEN, vdoctl};
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Output;

/// A signature that nothing on a network knows of.
const OFFLINE: [&str; 4] = ["--yes", "--tlog-upload=false", "--use-signing-config=false", "--key"];

fn cosign(arguments: &[&str], dir: &Path) -> std::io::Result<Output> {
    let mut command = std::process::Command::new("cosign");
    command.args(arguments).current_dir(dir).env("COSIGN_PASSWORD", "").output()
}

/// The same, where it succeeds.
fn done(arguments: &[&str], dir: &Path) -> Result<()> {
    let output = cosign(arguments, dir)?;
    ensure!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// A folder with an index; nothing where there is no cosign.
fn site() -> Result<Option<tempfile::TempDir>> {
    let folder = tempfile::tempdir()?;
    if cosign(&["version"], folder.path()).is_err() {
        // Past the harness, which captures what tests print.
        let line = "SKIPPED: needs cosign 3 on PATH, which verifies what vdoctl signs, and the other way round\n";
        std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes())?;
        return Ok(None);
    }
    std::fs::copy(FROZEN, folder.path().join("index.yaml"))?;
    Ok(Some(folder))
}

#[test]
fn matrix_signature_is_verified_by_cosign() -> Result<()> {
    let Some(folder) = site()? else { return Ok(()) };
    let path = |name: &str| folder.path().join(name).display().to_string();
    let pem = rcgen::KeyPair::generate()?.serialize_pem();
    let key = vdo_source::signature::PrivateKey::parse(&vdo_api::types::Secret::new(pem.clone()))?;
    std::fs::write(path("key.pem"), pem)?;
    std::fs::write(path("key.pub"), key.public().pem())?;
    let signed = vdoctl(&["matrix", "sign", &path("index.yaml"), "--key-file", &path("key.pem")]).output()?;
    ensure!(signed.status.success(), "{}", String::from_utf8_lossy(&signed.stderr));
    let verify = |form: [&str; 2]| {
        let arguments = [
            "verify-blob",
            "--insecure-ignore-tlog=true",
            "--key",
            "key.pub",
            form[0],
            form[1],
            "index.yaml",
        ];
        done(&arguments, folder.path())
    };
    let forms = [["--signature", "index.yaml.sig"], ["--bundle", "index.yaml.sigstore.json"]];
    for form in forms {
        verify(form)?;
    }
    std::fs::write(path("index.yaml"), "drivers: {}")?;
    for form in forms {
        ensure!(verify(form).is_err(), "{form:?} of other bytes");
    }
    Ok(())
}

#[test]
fn matrix_signature_of_cosign_is_verified_by_vdoctl() -> Result<()> {
    let Some(folder) = site()? else { return Ok(()) };
    let path = |name: &str| folder.path().join(name).display().to_string();
    done(&["generate-key-pair", "--output-key-prefix", "ck"], folder.path())?;
    for (file, form) in [
        ("index.yaml.sig", &["--new-bundle-format=false", "--output-signature"][..]),
        ("index.yaml.sigstore.json", &["--bundle"]),
    ] {
        let arguments = [&["sign-blob"][..], &OFFLINE, &["ck.key"], form, &[file, "index.yaml"]].concat();
        done(&arguments, folder.path())?;
        let verify = || vdoctl(&["matrix", "verify", &path("index.yaml"), "--keys", &path("ck.pub")]).output();
        let output = verify()?;
        ensure!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::write(path("index.yaml"), "drivers: {}")?;
        ensure!(!verify()?.status.success(), "{file} of other bytes");
        std::fs::copy(FROZEN, path("index.yaml"))?;
        std::fs::remove_file(path(file))?;
    }
    Ok(())
}
