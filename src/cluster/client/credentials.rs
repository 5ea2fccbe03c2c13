// SPDX-License-Identifier: Apache-2.0
//! `CredentialsError`: why a kubeconfig gives no credentials, without the output and arguments of its exec command.
//!
//! kube repeats both in its errors, and a token may be in them.

use super::cause;
use kube::client::AuthError;
use kube::config::AuthInfo;
use std::borrow::Cow;
use std::error::Error;
use std::io::ErrorKind;
use vdo_api::types::Remedy;

/// There are no credentials for the API server.
#[derive(Debug, thiserror::Error)]
#[error("{who} {problem}")]
pub struct CredentialsError {
    /// The command, the file or the token of the kubeconfig.
    who: String,
    problem: String,
    remedy: &'static str,
}

impl Remedy for CredentialsError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(self.remedy.into())
    }
}

/// The command that gives the credentials, for messages; its arguments may hold secrets.
pub(super) fn command(user: &AuthInfo) -> String {
    let exec = user.exec.as_ref().and_then(|exec| exec.command.as_ref());
    let provider = || user.auth_provider.as_ref().and_then(|provider| provider.config.get("cmd-path"));
    match exec.or_else(provider) {
        Some(command) => format!("the credential command {command:?} of the kubeconfig"),
        None => SOME_COMMAND.into(),
    }
}

const SOME_COMMAND: &str = "the credential plugin of the kubeconfig";

impl CredentialsError {
    /// What an error of a request says about the credentials, which are renewed now and then.
    #[must_use]
    pub fn among(error: &(dyn Error + 'static)) -> Option<Self> {
        Self::of(cause(error)?, SOME_COMMAND)
    }

    /// The same, with this command.
    pub(super) fn of(error: &AuthError, command: &str) -> Option<Self> {
        const BY_HAND: &str = "Run this command by hand to see what is wrong.";
        let own = |problem: String, remedy| Self {
            who: command.to_owned(),
            problem,
            remedy,
        };
        Some(match error {
            AuthError::AuthExecStart(error) if error.kind() == ErrorKind::NotFound => own(
                "is not installed".into(),
                "Install this command, or add its folder to PATH. Or name another user of the kubeconfig with --kube-user.",
            ),
            AuthError::AuthExecStart(error) => own(format!("cannot be started: {error}"), "Check that you may run this command."),
            AuthError::AuthExecRun { out, .. } => own(format!("ended with {}", out.status), BY_HAND),
            AuthError::AuthExecParse(_) | AuthError::ExecPluginFailed | AuthError::ParseTokenKey(_) => {
                own("returned no credentials".into(), BY_HAND)
            }
            AuthError::AuthExec(_) => own(
                "returned no credentials".into(),
                "Most kinds of auth-provider are no longer supported: name the command under exec of the user in the kubeconfig.",
            ),
            AuthError::MalformedTokenExpirationDate(_) => own("returned a token whose expiry date is not valid".into(), BY_HAND),
            AuthError::UnrefreshableTokenResponse => own("returned a token that cannot be renewed".into(), BY_HAND),
            AuthError::MissingCommand => Self {
                who: "the user of the kubeconfig".into(),
                problem: "has an exec section without a command".into(),
                remedy: "Write the command into this section, or name another user with --kube-user.",
            },
            AuthError::ExecMissingClusterInfo => own("needs data of the cluster, and the kubeconfig names no cluster".into(), BY_HAND),
            AuthError::ReadTokenFile(error, path) => Self {
                who: format!("the token file {}", path.display()),
                problem: format!("cannot be read: {error}"),
                remedy: "Correct tokenFile of the user in the kubeconfig.",
            },
            AuthError::InvalidBasicAuth(_) | AuthError::InvalidBearerToken(_) => Self::unfit(),
            _ => return None,
        })
    }

    /// What is wrong with the token of a user. kube does not survive one that no header can carry.
    pub(super) fn of_token(user: &AuthInfo) -> Option<Self> {
        let written = serde_json::to_value(user).ok()?;
        let provided = written["auth-provider"]["config"].as_object();
        let tokens = ["id-token", "access-token"].map(|name| provided?.get(name));
        let mut tokens = tokens.into_iter().flatten().chain([&written["token"]]);
        let unfit = tokens.any(|token| token.as_str().is_some_and(|token| token.contains(char::is_control)));
        unfit.then(Self::unfit)
    }

    fn unfit() -> Self {
        Self {
            who: "the token that the kubeconfig refers to".into(),
            problem: "contains a character that is not allowed in a token".into(),
            remedy: "Write the token on one line.",
        }
    }
}

/// Reads the file with the token, once, where the file ends with a line break as most programs write it: kubectl leaves the line break out, kube
/// does not. The tokens that a kubelet replaces have none.
pub(super) fn read_token_file(user: &mut AuthInfo) {
    if user.token.is_some() {
        return;
    }
    let text = user.token_file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    if let Some(text) = text.filter(|text| text.trim().len() < text.len()) {
        user.token = Some(text.trim().to_owned().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use vdo_api::api::chain;

    const SECRET: &str = "t0ken";

    fn output(code: &str) -> Box<std::process::Output> {
        let script = format!("echo {SECRET}; echo {SECRET} >&2; exit {code}");
        let output = std::process::Command::new("sh").args(["-c", &script]).output();
        Box::new(output.expect("sh starts"))
    }

    #[test]
    fn errors_of_credential_commands_show_nothing_that_a_command_wrote() {
        let run = AuthError::AuthExecRun {
            cmd: format!("login --token {SECRET}"),
            out: output("3"),
        };
        let unread = || AuthError::ReadTokenFile(io::ErrorKind::NotFound.into(), "/nowhere/token".into());
        let header = hyper::header::HeaderValue::try_from(format!("Bearer {SECRET}\n")).expect_err("no header");
        for (error, expected) in [
            (
                AuthError::AuthExecStart(io::ErrorKind::NotFound.into()),
                "the command is not installed. Install this command",
            ),
            (
                AuthError::AuthExecStart(io::ErrorKind::PermissionDenied.into()),
                "the command cannot be started: permission denied. Check that you may run",
            ),
            (run, "the command ended with exit status: 3. Run this command by hand"),
            (
                AuthError::AuthExec(SECRET.into()),
                "the command returned no credentials. Most kinds",
            ),
            (AuthError::ExecPluginFailed, "the command returned no credentials. Run"),
            (
                AuthError::MissingCommand,
                "the user of the kubeconfig has an exec section without a command",
            ),
            (
                unread(),
                "the token file /nowhere/token cannot be read: entity not found. Correct tokenFile",
            ),
            (
                AuthError::InvalidBearerToken(header),
                "the token that the kubeconfig refers to contains a character",
            ),
        ] {
            let said = chain(&CredentialsError::of(&error, "the command").expect("known"));
            assert!(said.starts_with(expected), "{said}");
            assert!(!said.contains(SECRET), "{said}");
        }
        // A request that renews them has the same error within others.
        let request = kube::Error::Service(Box::new(unread()));
        assert!(
            CredentialsError::among(&request)
                .expect("found")
                .to_string()
                .contains("/nowhere/token")
        );
        assert!(CredentialsError::among(&kube::Error::LinesCodecMaxLineLengthExceeded).is_none());
    }

    #[test]
    fn token_with_a_line_break_is_refused_and_one_of_a_file_is_trimmed() {
        let user = |token: &str| AuthInfo {
            token: Some(token.to_owned().into()),
            ..AuthInfo::default()
        };
        assert!(CredentialsError::of_token(&user("a b-ü.c")).is_none());
        for bad in ["a\n", "a\u{7f}b", "\0"] {
            let said = chain(&CredentialsError::of_token(&user(bad)).expect("refused"));
            assert!(said.ends_with("Write the token on one line."), "{said}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        for (written, token) in [("abc\n", Some("abc")), (" abc\r\n", Some("abc")), ("abc", None)] {
            let file = folder.path().join("token");
            std::fs::write(&file, written).expect("written");
            let mut user = AuthInfo {
                token_file: Some(file.display().to_string()),
                ..AuthInfo::default()
            };
            read_token_file(&mut user);
            let found = serde_json::to_value(&user).expect("JSON");
            assert_eq!(found["token"].as_str(), token, "{written:?}");
        }
    }
}
