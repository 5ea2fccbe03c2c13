//! The three inputs: where the vCenter is, who logs in, and the password; and how its certificate is trusted.

use super::super::args::DeployVcenter;
use super::super::doctor::password::password;
use super::super::doctor::preflight::{endpoint, trust};
use super::super::progress::{Mark, Progress};
use super::super::{CliError, Exit, prompt};
use crate::types::{Secret, Trust};
use crate::vcenter::{self, Budget, Endpoint};
use crate::vsphere::{CertificateFacts, ProbeError};
use std::io::IsTerminal as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A vCenter whose certificate is trusted, and the account there.
pub(super) struct Account {
    pub(super) endpoint: Endpoint,
    pub(super) user: String,
    pub(super) password: Secret,
}

/// What was typed, and on a terminal what is still asked for.
pub(super) async fn account(given: &DeployVcenter, online: bool, progress: &mut Progress) -> Result<Account, CliError> {
    let (Some(address), Some(user)) = (&given.vcenter, &given.user) else {
        return Err(CliError::new(
            Exit::Usage,
            "it is not known which vCenter the drivers use",
            "Name it with --vcenter HOST and --user NAME, and the password with --password-file FILE; or give the whole configuration with --values FILE.",
        ));
    };
    let typed = &given.trust;
    let trust = trust(typed.thumbprint.as_ref(), typed.ca_file.as_deref(), typed.insecure)?;
    let mut endpoint = endpoint(address, trust)?;
    if let Some(file) = &given.password_file {
        private(file)?;
    }
    let (password, _) = password(given.password_file.as_deref(), user)?;
    if online {
        trusted(&mut endpoint, false, progress).await?;
    }
    Ok(Account {
        endpoint,
        user: user.clone(),
        password,
    })
}

/// A user who may read the file may use the account: ssh refuses such a key, and this such a password.
pub(in crate::cli) fn private(file: &Path) -> Result<(), CliError> {
    let readable = std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.mode() & 0o077 != 0);
    if !readable {
        return Ok(());
    }
    let name = file.display();
    Err(CliError::new(
        Exit::Refused,
        format!("others on this machine may read the password in {name}"),
        format!("Keep it to yourself: chmod 600 {}", crate::types::shell_word(&name.to_string())),
    ))
}

/// Asks a person where the certificate is signed by no authority that this machine knows, unless the one that is there is `taken`. Any other
/// fault is found by the checks.
pub(in crate::cli) async fn trusted(endpoint: &mut Endpoint, taken: bool, progress: &mut Progress) -> Result<(), CliError> {
    if endpoint.trust != Trust::SystemRoots {
        return Ok(());
    }
    let Err(ProbeError::UnknownIssuer { presented, .. }) = vcenter::facts(endpoint, &Budget::default()).await else {
        return Ok(());
    };
    let print = &presented.sha256;
    let server = endpoint.address();
    if taken {
        progress.step(Mark::Note, &shown(&server, &presented));
        endpoint.trust = Trust::Thumbprint(presented.sha256.clone());
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(CliError::new(
            Exit::Vcenter,
            format!(
                "no authority that this machine knows has signed the certificate of {server}, and there is no terminal to ask whether it is the right one"
            ),
            format!(
                "If this is the SHA-256 thumbprint that vCenter shows (Administration > Certificates), add it:\n\
                 --thumbprint {print}\n\
                 Or name the authorities with --ca-file FILE."
            ),
        ));
    }
    progress.step(Mark::Note, &shown(&server, &presented));
    let answer = prompt::yes("    Is it the one that vCenter shows (Administration > Certificates)?");
    if !answer.is_ok_and(|yes| yes) {
        return Err(CliError::new(
            Exit::Refused,
            format!("the certificate of {server} is not trusted, so nothing was sent there and nothing was written"),
            "Find out who answers at that address, or name the authorities that sign the certificate with --ca-file FILE.",
        ));
    }
    endpoint.trust = Trust::Thumbprint(presented.sha256.clone());
    Ok(())
}

fn shown(server: &str, presented: &CertificateFacts) -> String {
    let until = presented
        .not_after
        .map(|end| format!(", valid until {}", end.strftime("%Y-%m-%d")))
        .unwrap_or_default();
    format!(
        "{server} shows a certificate that no authority known here has signed\nissued by {}{until}\nSHA-256 {}",
        presented.issuer, presented.sha256
    )
}
