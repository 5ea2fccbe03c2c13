// SPDX-License-Identifier: Apache-2.0
//! `vdo-release sign`: signs files with the key in VDO_SIGNING_KEY, without a network, in the format that cosign verifies.
//!
//! Each signature is a Sigstore bundle (version 0.3) with a message signature of an ECDSA key on P-256.

use crate::output;
use anyhow::{Context, Result, anyhow};
use std::fs;
use std::path::PathBuf;
use vdo_api::types::Secret;
use vdo_source::signature::{Form, PrivateKey};

/// Where the key comes from; never an argument, which other users could see.
const KEY: &str = "VDO_SIGNING_KEY";
/// The key is in the environment: VDO_SIGNING_KEY has it as PEM, or the path of a PEM file.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files to sign; the signature of FILE is FILE.sigstore.json
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub fn run(args: &Args) -> Result<()> {
    let key = key()?.ok_or_else(|| anyhow!("{KEY} is not set; give it a private key as PEM, or the path of one"))?;
    for file in &args.files {
        let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let text = key.sign(&bytes, Form::Bundle)?;
        output::write(&Form::Bundle.file_of(file), text.as_bytes())?;
        output::line(&format!("  signed {}", file.display()))?;
    }
    Ok(())
}

/// The key, if there is one.
pub fn key() -> Result<Option<PrivateKey>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "an argument would show the key to other users of the machine"
    )]
    let value = std::env::var(KEY).ok().filter(|value| !value.is_empty());
    value.map(|value| read(&Secret::new(value))).transpose()
}

/// A key from PEM, or from the file of this name. No error repeats what was given.
fn read(value: &Secret) -> Result<PrivateKey> {
    let text = match value.expose().contains("-----BEGIN ") {
        true => value.clone(),
        false => Secret::new(
            fs::read_to_string(value.expose().trim())
                .with_context(|| format!("{KEY} is neither PEM nor the path of a file that can be read"))?,
        ),
    };
    PrivateKey::parse(&text).context(KEY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
    use vdo_source::signature::PublicKeys;

    fn key() -> String {
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new()).expect("a key");
        pem::encode(&pem::Pem::new("PRIVATE KEY", pkcs8.as_ref()))
    }

    #[test]
    fn key_from_file_signs_and_wrong_key_is_not_repeated() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a key.pem");
        let text = key();
        fs::write(&path, &text).expect("a file");
        let key = read(&Secret::new(path.display().to_string())).expect("a key");
        let bundle = key.sign(b"a release", Form::Bundle).expect("a bundle");
        let public = PublicKeys::parse(key.public().pem().as_bytes()).expect("its public key");
        public.verify(b"a release", Some(bundle.as_bytes())).expect("its signature");
        let body = text.lines().nth(1).expect("a line");
        for wrong in [text.replace("-----END", "----"), format!("{}/none", path.display())] {
            let error = format!("{:#}", read(&Secret::new(wrong)).expect_err("no key"));
            assert!(error.contains(KEY) && !error.contains(body), "{error}");
        }
    }
}
