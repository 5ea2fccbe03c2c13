// SPDX-License-Identifier: Apache-2.0
//! Encrypts the Secrets of a `--gitops` folder with the program `sops`; the plain text goes to its stdin, and into no file and no argument.

use super::super::super::progress::{Mark, Progress};
use super::super::super::{CliError, Exit};
use super::folder::RULES;
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use vdo_api::types::Secret;
use vdo_api::yaml::{dump_all, load_value};

const PROGRAM: &str = "sops";
/// What is encrypted of a Secret. Tools read the rest of it before they decrypt.
const VALUES: &str = "^(data|stringData)$";

/// Whether Secrets are encrypted: where it was asked for, or the folder has rules and the program is there.
///
/// # Errors
/// When it was asked for and the program is missing.
pub(super) async fn encrypts(asked: bool, folder: &Path, progress: &mut Progress) -> Result<bool, CliError> {
    if !asked && !folder.join(RULES).is_file() {
        return Ok(false);
    }
    match (asked, is_installed().await) {
        (_, true) => Ok(true),
        (true, false) => Err(missing()),
        (false, false) => {
            progress.step(
                Mark::Note,
                "the folder has a .sops.yaml, but this machine has no sops, so Secrets are left out",
            );
            Ok(false)
        }
    }
}

fn missing() -> CliError {
    CliError::new(
        Exit::Usage,
        "sops is not on PATH",
        "Install sops (https://github.com/getsops/sops/releases), or leave out --sops; the folder then has no Secrets.",
    )
}

async fn is_installed() -> bool {
    let mut command = Command::new(vdo_system::program(PROGRAM));
    command
        .arg("--help")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.kill_on_drop(true).status().await.is_ok()
}

/// The encrypted text of a Secret, for a file below the folder.
///
/// # Errors
/// When the program refuses; its own message is on stderr already.
pub(super) async fn encrypted(folder: &Path, name: &str, secret: &Value) -> Result<String, CliError> {
    let Some(input) = vdo_system::STANDARD_INPUT else {
        let why = "on this system sops can only read files, and vdoctl writes no password to a file; use Linux or macOS";
        return Err(failed(name, why));
    };
    std::fs::create_dir_all(folder).map_err(|error| {
        let what = format!("{} cannot be created: {error}", folder.display());
        CliError::new(Exit::Refused, what, "Name a folder where you may write.")
    })?;
    let forms = ["--input-type", "yaml", "--output-type", "yaml"];
    let mut command = command(folder, "encrypt");
    command.args(["--filename-override", name, "--encrypted-regex", VALUES]).args(forms);
    let plain = Secret::new(dump_all(std::slice::from_ref(secret)));
    let output = output(command.arg(input), Some(&plain)).await;
    let output = output.map_err(|error| failed(name, &error.to_string()))?;
    let text = output.filter(|text| is_encrypted(text, secret));
    text.ok_or_else(|| failed(name, "see its message above"))
}

/// Whether a file below the folder is this Secret, encrypted. Where this machine has no key for it, that is unknown, and it is encrypted once more.
pub(super) async fn is(folder: &Path, name: &str, secret: &Value) -> bool {
    let mut command = command(folder, "decrypt");
    command.args(["--output-type", "yaml", name]).stderr(Stdio::null());
    let output = output(&mut command, None).await;
    let text = output.ok().flatten().map(Secret::new);
    text.is_some_and(|text| load_value(text.expose()).is_ok_and(|found| found == *secret))
}

/// That none of the values is in it as it was.
fn is_encrypted(text: &str, secret: &Value) -> bool {
    let Ok(written) = load_value(text) else {
        return false;
    };
    let plain = secret.get("data").and_then(Value::as_object);
    let kept = |(key, value): (&String, &Value)| written["data"][key].is_string() && written["data"][key] != *value;
    written["metadata"] == secret["metadata"] && written["sops"].is_object() && plain.into_iter().flatten().all(kept)
}

fn command(folder: &Path, verb: &str) -> Command {
    let mut command = Command::new(vdo_system::program(PROGRAM));
    // Rules are looked for from here upwards.
    command.arg(verb).current_dir(folder).stdin(Stdio::null());
    command.stdout(Stdio::piped()).kill_on_drop(true);
    command
}

/// What it prints, `None` where it fails.
async fn output(command: &mut Command, input: Option<&Secret>) -> std::io::Result<Option<String>> {
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn()?;
    if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
        // Where it ends without reading, its exit code says why.
        let _ = pipe.write_all(input.expose().as_bytes()).await;
    }
    let output = child.wait_with_output().await?;
    let text = String::from_utf8(output.stdout).ok();
    Ok(text.filter(|_| output.status.success()))
}

fn failed(name: &str, why: &str) -> CliError {
    CliError::new(
        Exit::Refused,
        format!("sops did not encrypt {name}: {why}; nothing was written"),
        "Check the rules in .sops.yaml for this file, or the keys in the environment (SOPS_AGE_RECIPIENTS).",
    )
}
