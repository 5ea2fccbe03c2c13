// SPDX-License-Identifier: Apache-2.0
//! Builds the connection to the API server from the global flags (kubeconfig, token, impersonation), and explains a failed connection.

use super::args::Global;
use super::error::sentence;
use super::password_file::secret;
use super::{CliError, Exit};
use std::error::Error;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use vdo::cluster::{CredentialsError, KubeOptions, NO_API_SERVER, ProxyError};
use vdo_api::types::{Remedy as _, Secret, is_of_certificate};

/// What to do where nothing more is known.
const CHECK: &str =
    "Check that the API server runs and that this machine may connect to it, or choose another cluster with --kubeconfig or --context.";

/// What to do where the API server answers, and its certificate is not accepted.
const CERTIFICATE: &str = "Check certificate-authority-data and the address of this cluster in the kubeconfig: `kubectl config view --minify` shows them. \
                           Or choose another cluster with --kubeconfig or --context.";

/// What to do where something answers that is no API server.
const ANOTHER: &str = "A proxy or a login page may answer instead of the API server. Check the address of this cluster in the kubeconfig: \
                       `kubectl config view --minify` shows the address. Or choose another cluster with --kubeconfig or --context.";

/// The cluster that the command line names.
pub(super) fn options(global: &Global) -> Result<KubeOptions, CliError> {
    Ok(KubeOptions {
        kubeconfig: global.kubeconfig.clone(),
        context: global.context.clone(),
        cluster: global.kube_cluster.clone(),
        user: global.kube_user.clone(),
        token: global.token_file.as_deref().map(token).transpose()?,
        impersonate: global.impersonate.clone(),
        groups: global.groups.clone(),
        environment_proxies: true,
        // Before the time of the verb is over: this error says more than that one.
        timeout: Some(global.timeout() * 9 / 10),
    })
}

/// Reads a token. A verb may connect more than once, and stdin can be read only once.
fn token(file: &Path) -> Result<Secret, CliError> {
    static OF_STDIN: Mutex<Option<Secret>> = Mutex::new(None);
    if file != Path::new("-") {
        return read(file);
    }
    let mut known = OF_STDIN.lock().unwrap_or_else(PoisonError::into_inner);
    match &*known {
        Some(token) => Ok(token.clone()),
        None => Ok(known.insert(read(file)?).clone()),
    }
}

fn read(file: &Path) -> Result<Secret, CliError> {
    // Who else may read it is not looked at: that of a service account is readable for all of its pod.
    let (text, _) = secret(file, "the token")?;
    let token = text.expose().trim();
    if token.is_empty() {
        let what = format!("there is no token in {}", file.display());
        return Err(CliError::new(
            Exit::Usage,
            what,
            "Name a file with a token. Only one of --token-file and --password-file can be stdin.",
        ));
    }
    Ok(Secret::new(token))
}

/// The API server gives no answer.
pub(super) fn out_of_reach(name: &str, server: &str, error: &(dyn Error + 'static)) -> CliError {
    if let Some(proxy) = ProxyError::among(error) {
        let remedy = proxy.remedy().unwrap_or_default();
        return CliError::new(Exit::Cluster, unreachable(name, server, &sentence(proxy)), remedy);
    }
    if let Some(credentials) = error.downcast_ref::<CredentialsError>() {
        return CliError::of(Exit::Cluster, credentials);
    }
    let cause = sentence(error);
    let remedy = match () {
        () if of_certificate(error) => CERTIFICATE,
        () if cause.contains(NO_API_SERVER) => ANOTHER,
        () => CHECK,
    };
    CliError::new(Exit::Cluster, unreachable(name, server, &cause), remedy)
}

fn of_certificate(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if is_of_certificate(&error.to_string()) {
            return true;
        }
        next = error.source();
    }
    false
}

/// The API server gives no answer in time.
pub(super) fn late(name: &str, server: &str, after: Duration) -> CliError {
    CliError::new(
        Exit::Cluster,
        unreachable(name, server, &format!("no answer within {} s", after.as_secs_f64())),
        CHECK,
    )
}

fn unreachable(name: &str, server: &str, cause: &str) -> String {
    format!("cluster {name} at {server} cannot be reached: {cause}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_read_without_its_line_end_and_never_empty() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        std::fs::write(&file, "ey.token\r\n").expect("written");
        assert_eq!(token(&file).expect("a token").expose(), "ey.token");
        std::fs::write(&file, "\n").expect("written");
        let error = token(&file).expect_err("nothing is in it");
        assert_eq!(
            (error.exit, error.what),
            (Exit::Usage, format!("there is no token in {}", file.display()))
        );
    }
}
