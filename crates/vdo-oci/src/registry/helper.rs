// SPDX-License-Identifier: Apache-2.0
//! Runs a Docker credential helper, `docker-credential-NAME get`, to get the login for a registry.

use super::Login;
use crate::web::AccessError;
use serde::Deserialize;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use vdo_api::types::{Secret, from_json};

/// A person may have to unlock it.
const TIMEOUT: Duration = Duration::from_secs(60);
/// What it says where it has none.
const NONE: &str = "credentials not found";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// What the program knows of a registry.
///
/// # Errors
/// When it cannot be run, fails, or does not answer within a minute.
pub async fn ask(helper: &str, host: &str) -> Result<Option<Login>, AccessError> {
    let is_name = !helper.is_empty() && helper.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if !is_name {
        return Err(AccessError::new(format!("{helper:?} is not a valid name of a credential helper")));
    }
    let name = format!("docker-credential-{helper}");
    let failed = |why: String| AccessError::new(format!("{name} did not return the login for {host}: {why}"));
    let server = if host == "docker.io" { "https://index.docker.io/v1/" } else { host };
    let run = async {
        let mut child = Command::new(vdo_system::program(&name))
            .arg("get")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(server.as_bytes()).await?;
        }
        child.wait_with_output().await
    };
    let output = tokio::time::timeout(TIMEOUT, run).await;
    let output = output.map_err(|_| failed("it does not answer".into()))?;
    let output = output.map_err(|error| failed(error.to_string()))?;
    let text = Secret::new(String::from_utf8_lossy(&output.stdout).into_owned());
    if !output.status.success() {
        return match text.expose().contains(NONE) {
            true => Ok(None),
            // What it printed may hold a secret.
            false => Err(failed(format!("it ended with {}", output.status))),
        };
    }
    let answer: Answer = from_json(text.expose()).map_err(|_| failed("its answer cannot be parsed".into()))?;
    let secret = Secret::new(answer.secret);
    Ok(Some(match answer.username.as_str() {
        "<token>" => Login::Identity(secret),
        _ => Login::Basic {
            user: answer.username,
            password: secret,
        },
    }))
}
