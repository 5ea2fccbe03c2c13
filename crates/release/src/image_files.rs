// SPDX-License-Identifier: Apache-2.0
//! The files in the operator's image (program, root certificates, /etc/passwd); `vdo-release context` writes them for deploy/Containerfile.

use crate::layer::File;
use crate::output;
use anyhow::{Context, Result, anyhow};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The program.
pub const PROGRAM: &str = "usr/local/bin/vdo-operator";
/// Where programs look for the roots of the machine.
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";
/// User and group in numbers, as deploy/operator.yaml runs it.
pub const USER: &str = "65532:65532";
const PASSWD: &str = "vdo:x:65532:65532::/:/sbin/nologin\n";

/// All files of the image.
pub fn files(program: Vec<u8>, certificates: &str) -> BTreeMap<String, File> {
    let file = |bytes: Vec<u8>, executable| File { bytes, executable };
    BTreeMap::from([
        (PROGRAM.to_owned(), file(program, true)),
        (CERTIFICATES.to_owned(), file(certificates.as_bytes().to_vec(), false)),
        ("etc/passwd".to_owned(), file(PASSWD.as_bytes().to_vec(), false)),
    ])
}

/// Root certificates in PEM: those of a file, or Mozilla's list as the lock file fixes it, which no machine that builds can change.
pub fn certificates(path: Option<&Path>) -> Result<String> {
    let Some(path) = path else {
        let encoding = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
        let certificate = |der: &[u8]| pem::encode_config(&pem::Pem::new("CERTIFICATE", der), encoding);
        return Ok(webpki_root_certs::TLS_SERVER_ROOT_CERTS
            .iter()
            .map(|der| certificate(der))
            .collect());
    };
    let text = String::from_utf8(output::read(path)?)
        .ok()
        .filter(|text| text.contains("-----BEGIN CERTIFICATE-----"));
    text.ok_or_else(|| anyhow!("{} holds no certificate in PEM", path.display()))
}

/// The input of deploy/Containerfile.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The operator's program, statically linked
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// Root certificates in PEM to put into the image instead of Mozilla's
    #[arg(long, value_name = "FILE")]
    ca_certificates: Option<PathBuf>,
    /// Folder to write
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
}

pub fn context(args: &Args) -> Result<()> {
    let certificates = certificates(args.ca_certificates.as_deref())?;
    for (path, file) in files(output::read(&args.program)?, &certificates) {
        let name = path.rsplit('/').next().unwrap_or(&path);
        let place = args.output.join(name);
        output::write(&place, &file.bytes)?;
        // As in the image; a umask would show in the layer.
        let mode = fs::Permissions::from_mode(if file.executable { 0o755 } else { 0o644 });
        fs::set_permissions(&place, mode).with_context(|| format!("cannot change the mode of {}", place.display()))?;
    }
    Ok(())
}
