// SPDX-License-Identifier: Apache-2.0
//! `vdoctl matrix sign` and `vdoctl matrix verify`: writes and checks the signature of an index.

use super::super::args::{Sign, Verify};
use super::super::views::publish::MatrixVerifyView;
use super::super::{Answer, CliError, Exit, atomic_files, style};
use super::bytes;
use super::publish_target::private_key;
use vdo_api::types::{Digest, shell_word};
use vdo_source::fetch::{Access, KeyStore, MatrixSource, index_file};

pub(super) fn sign(args: &Sign) -> Result<Answer, CliError> {
    let (key, warning) = private_key(&args.key_file)?;
    let signed = index_file(&args.file);
    let signatures = key.signatures(&bytes(&signed)?);
    for (form, text) in signatures.map_err(|error| CliError::of(Exit::Usage, &error))? {
        let path = form.file_of(&signed);
        atomic_files::write(&path, text.as_bytes()).map_err(|error| {
            CliError::new(
                Exit::Usage,
                format!("{} cannot be written: {error}", path.display()),
                "Sign a copy in a folder where you may write.",
            )
        })?;
    }
    let mut answer = Answer::text(format!(
        "{} {} is signed with the key {}\n",
        style::good("✓"),
        signed.display(),
        key.public().fingerprint()
    ));
    if let Some(warning) = warning {
        answer = answer.note(warning);
    }
    Ok(answer)
}

pub(super) async fn verify(args: &Verify) -> Result<Answer, CliError> {
    let (store, signed) = (MatrixSource::Local(args.file.clone()), index_file(&args.file));
    let name = signed.display().to_string();
    let keys = KeyStore(args.keys.clone())
        .keys()
        .map_err(|error| CliError::of(Exit::Usage, &error))?;
    let look = store.fetch(&Access::default(), None).await;
    let found = look.map_err(|error| CliError::of(Exit::Refused, &error))?.signed;
    let signer = keys.verify(&found.index, found.signature.as_deref()).map_err(|error| {
        let reported = CliError::of(Exit::Refused, &error);
        CliError {
            what: format!("{}: {}", shell_word(&name), reported.what),
            ..reported
        }
    })?;
    let view = MatrixVerifyView {
        file: name,
        digest: Digest::of(&found.index).to_string(),
        signer: signer.to_string(),
    };
    let text = || format!("{} {} is signed by the key {}\n", style::good("✓"), view.file, view.signer);
    Answer::view(args.output.or_table(), &view, text)
}
