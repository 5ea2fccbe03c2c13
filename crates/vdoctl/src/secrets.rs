// SPDX-License-Identifier: Apache-2.0
//! `vdoctl secrets list` and `vdoctl secrets set`: prints the state of the credentials of each vSphere connection, and replaces them.

use super::ages::ago;
use super::args::{Global, Secrets as Args, SecretsList, SecretsSet, SecretsVerb};
use super::configure::connection::{Target, credentials, has_user, inspected};
use super::configure::write;
use super::context::{Context, now};
use super::deploy::Judge;
use super::object_write::Change;
use super::password_file::{password, private};
use super::printer::Printer;
use super::progress::Progress;
use super::style::{bad, good, table};
use super::views::secrets::{SecretView, SecretsView};
use super::wait::after;
use super::{Answer, CliError, Exit, prompt};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use vdo::reconcile::{connection_objects, port, trust};
use vdo_api::api::{CredentialStatus, VsphereCloudConfig};
use vdo_vsphere::vcenter::Endpoint;

pub(super) async fn run(args: &Args, global: &Global, printer: &Printer) -> Result<Answer, CliError> {
    match &args.verb {
        SecretsVerb::List(args) => super::within(global, list(args, global)).await,
        SecretsVerb::Set(args) => {
            let mut progress = Progress::new(printer, args.writing.output.or_table());
            let answer = set(args, global, &mut progress).await;
            let answer = match progress.end() {
                Some(exit) => answer.map(|answer| answer.exit(exit)),
                None => answer,
            };
            after(args.writing.waits(), answer, args.writing.output.or_table(), global, printer).await
        }
    }
}

pub(super) async fn list(args: &SecretsList, global: &Global) -> Result<Answer, CliError> {
    let context = Context::open(global).await?;
    let all = connection_objects(&context.ports.reader, context.namespace()).await?;
    let view = SecretsView {
        secrets: all.iter().map(view).collect(),
    };
    let text = || {
        let rows: Vec<Vec<String>> = all.iter().map(|connection| row(connection, now())).collect();
        table(&["CONNECTION", "SECRET", "USER", "STATE"], &rows)
    };
    let answer = Answer::view(args.output.or_table(), &view, text)?;
    Ok(match all.is_empty() {
        true => answer
            .note(format!("there is no vSphere connection in namespace {}", context.namespace()))
            .exit(Exit::NotFound),
        false => answer,
    })
}

/// What is known of the credentials of a connection.
fn state(credential: &CredentialStatus) -> (&'static str, Option<&str>) {
    match &credential.refused {
        _ if credential.verified.as_ref() == Some(&credential.version) => ("accepted", None),
        Some(reason) => ("refused", Some(reason)),
        None if credential.attempts > 0 => ("unanswered", None),
        None => ("not tried", None),
    }
}

fn credential(connection: &VsphereCloudConfig) -> Option<&CredentialStatus> {
    connection.status.as_ref()?.credential.as_ref()
}

fn row(connection: &VsphereCloudConfig, now: Timestamp) -> Vec<String> {
    let Some(credential) = credential(connection) else {
        return vec![
            connection.name_any(),
            connection.spec.credentials.clone(),
            "-".into(),
            "not read yet".into(),
        ];
    };
    let tried = credential
        .last_tried
        .as_ref()
        .map(|at| format!(" {} ago", ago(at.0, now)))
        .unwrap_or_default();
    let state = match state(credential) {
        ("refused", reason) => format!("{} ({}){tried}", bad("refused"), reason.unwrap_or_default()),
        ("accepted", _) => good("accepted"),
        (other, _) => format!("{other}{tried}"),
    };
    vec![connection.name_any(), credential.secret.clone(), credential.user.clone(), state]
}

fn view(connection: &VsphereCloudConfig) -> SecretView {
    let found = credential(connection);
    let (state, reason) = found.map(state).unzip();
    SecretView {
        connection: connection.name_any(),
        secret: found.map_or(&connection.spec.credentials, |found| &found.secret).clone(),
        user: found.map(|found| found.user.clone()),
        state: state.map(str::to_owned),
        reason: reason.flatten().map(str::to_owned),
        last_tried: found.and_then(|found| found.last_tried.clone()),
    }
}

async fn set(args: &SecretsSet, global: &Global, progress: &mut Progress) -> Result<Answer, CliError> {
    let mut context = Context::open(global).await?.like_the_operator(global).await?;
    let config = context.acting_object().await?;
    let target = Target::find(&context, args.connection.as_deref()).await?;
    let connection = target.existing()?;
    let (id, found) = target.secret(&context).await?;
    let known = credential(connection).map(|credential| credential.user.clone());
    let written = match has_user(found.as_ref()) {
        true => args.user.clone(),
        false => user(args, known.clone(), &target.name)?,
    };
    let user = written.clone().or(known);
    if let Some(file) = &args.password_file {
        private(file)?;
    }
    let asked = user.clone().unwrap_or_else(|| format!("connection {}", target.name));
    let (password, _) = password(args.password_file.as_deref(), &asked)?;
    let endpoint = Endpoint {
        server: connection.spec.vc_ip.clone(),
        port: port(connection),
        trust: trust(&context.ports.reader, connection).await?,
    };
    let mut change = credentials(&context, &id, found, written.as_deref(), &password, &endpoint).await?;
    // The operator sends what was refused once for each version of the Secret: where the account was put right in the vCenter, a new version
    // lets it log in.
    let refused = credential(connection).is_some_and(|credential| credential.refused.is_some());
    if let Some(live) = change.before.clone().filter(|_| refused && change.is_none()) {
        change = Change::reconcile(&context, live).await?;
    }
    let judge = if args.writing.ignore_checks { Judge::Nothing } else { Judge::Login };
    inspected(&mut context, &target, &config, std::slice::from_ref(&change), judge, true, progress).await?;
    write(&context, &[change], args.writing, progress).await
}

/// The user for a Secret that has none: the one that is named, the one that was used before, or the answer on a terminal.
fn user(args: &SecretsSet, known: Option<String>, connection: &str) -> Result<Option<String>, CliError> {
    let known = args.user.clone().or(known.filter(|user| !user.is_empty()));
    if known.is_some() || !prompt::is_terminal() {
        return Ok(known);
    }
    prompt::line(&format!("User of connection {connection}, for example k8s@vsphere.local"), None).map_err(|error| {
        let what = format!("the answer cannot be read from the terminal: {error}");
        CliError::new(Exit::Usage, what, "Name the user with --user NAME.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_state_follows_the_version_that_logged_in() {
        let credential = |verified: Option<&str>, attempts, refused: Option<&str>| CredentialStatus {
            version: "2".into(),
            verified: verified.map(Into::into),
            attempts,
            refused: refused.map(Into::into),
            ..CredentialStatus::default()
        };
        for (given, expected) in [
            (credential(Some("2"), 0, None), ("accepted", None)),
            (credential(Some("1"), 0, None), ("not tried", None)),
            (
                credential(Some("1"), 1, Some("InvalidCredentials")),
                ("refused", Some("InvalidCredentials")),
            ),
            (credential(None, 2, None), ("unanswered", None)),
        ] {
            assert_eq!(state(&given), expected, "{given:?}");
        }
    }
}
