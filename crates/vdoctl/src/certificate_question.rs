// SPDX-License-Identifier: Apache-2.0
//! Asks a person to confirm the thumbprint of a vCenter's certificate that this machine does not trust.

use super::progress::{Mark, Progress};
use super::{CliError, Exit, prompt};
use vdo_api::types::Trust;
use vdo_core::certificate::CertificateFacts;
use vdo_vsphere::vcenter::{self, Budget, Endpoint};
use vdo_vsphere::vsphere::ProbeError;

/// Why the certificate of a vCenter is not accepted, where nothing says how to trust it and a person can say that it is the right one. Any
/// other fault is found by the checks.
async fn refused_certificate(endpoint: &Endpoint) -> Option<(String, CertificateFacts)> {
    if endpoint.trust != Trust::SystemRoots {
        return None;
    }
    let error = vcenter::facts(endpoint, &Budget::default()).await.err()?;
    let text = match &error {
        ProbeError::UnknownIssuer { address, .. } => {
            format!("the certificate of {address} is not signed by an authority that this machine trusts")
        }
        error => error.to_string(),
    };
    match error {
        ProbeError::UnknownIssuer { presented, .. }
        | ProbeError::BadCertificate { presented, .. }
        | ProbeError::WrongName { presented, .. } => Some((text, *presented)),
        _ => None,
    }
}

/// Asks a person about such a certificate, unless the one that is there is `taken`.
pub(crate) async fn trusted(endpoint: &mut Endpoint, taken: bool, progress: &mut Progress) -> Result<(), CliError> {
    let Some((why, presented)) = refused_certificate(endpoint).await else {
        return Ok(());
    };
    let server = endpoint.address();
    if !taken && !prompt::is_terminal() {
        return Err(CliError::new(
            Exit::Vcenter,
            format!("{why}, and there is no terminal on which to confirm the certificate"),
            format!(
                "If vCenter shows this SHA-256 thumbprint under Administration > Certificates, add the flag:\n\
                 --thumbprint {}\n\
                 Or name the authorities with --ca-file FILE.",
                presented.sha256
            ),
        ));
    }
    progress.step(Mark::Note, &shown(&why, &presented));
    let confirmed = taken || prompt::yes("    Does vCenter show this thumbprint (Administration > Certificates)?").is_ok_and(|yes| yes);
    if !confirmed {
        return Err(CliError::new(
            Exit::Refused,
            format!("the certificate of {server} is not trusted, so nothing was sent there and nothing was written"),
            "Find out which server answers at this address, or name the authorities that sign the certificate with --ca-file FILE.",
        ));
    }
    endpoint.trust = Trust::Thumbprint(presented.sha256);
    Ok(())
}

fn shown(why: &str, presented: &CertificateFacts) -> String {
    let until = presented
        .not_after
        .map(|end| format!(", valid until {}", end.strftime("%Y-%m-%d")))
        .unwrap_or_default();
    format!("{why}\nissued by {}{until}\nSHA-256 {}", presented.issuer, presented.sha256)
}
