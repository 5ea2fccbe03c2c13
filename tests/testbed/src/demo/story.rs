// SPDX-License-Identifier: Apache-2.0
//! What the demonstration shows of an installation: the same commands that a person types, as they print on this terminal.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::State;
use super::screen::Screen;
use super::show::{NAMESPACE, TO_DO, Tools, quoted};
use crate::wait::{PATIENCE, Probe, until};

/// What is looked at of a healthy installation: what for, the command, and how it ends.
fn healthy(next_minor: &str) -> [(&'static str, String, i32); 5] {
    [
        ("", "vdoctl status".into(), 0),
        ("", format!("kubectl get vdoconfig -n {NAMESPACE}"), 0),
        (
            "\nEvery check of the connection to the vCenter, made now:",
            "vdoctl doctor connection vc1".into(),
            0,
        ),
        (
            "\nA preview, before a change is made:",
            "vdoctl plan --set cloudProvider.values.logLevel=4".into(),
            TO_DO,
        ),
        (
            "\nWhat if Kubernetes were upgraded?",
            format!("vdoctl upgrade plan --kubernetes {next_minor}"),
            0,
        ),
    ]
}

/// Shows a healthy installation. `minor` is that of Kubernetes: 34 for 1.34.
pub(super) fn look(screen: &mut Screen, tools: &Tools, minor: u16) -> Result<()> {
    for (what_for, line, code) in healthy(&format!("1.{}", minor + 1)) {
        if !what_for.is_empty() {
            screen.text(what_for);
        }
        typed(screen, tools, &line, &[code])?;
    }
    Ok(())
}

/// A password that the vCenter refuses, what the status says of it, and that its command is the remedy.
pub(super) async fn fault(screen: &mut Screen, tools: &Tools, state: &State) -> Result<()> {
    screen.text("\nA fault, and its remedy: the Secret gets a password of last year.");
    let patch =
        format!("kubectl patch secret vc1-credentials -n {NAMESPACE} \\\n    -p '{{\"stringData\":{{\"password\":\"last-year\"}}}}'");
    typed(screen, tools, &patch, &[0])?;
    let reported = until("the status to report the password", PATIENCE, async || {
        let (_, text) = tools.ended("vdoctl", &["status", "-o", "json"])?;
        let status: Value = serde_json::from_str(&text).context("vdoctl status -o json")?;
        Ok(match remedy(&status) {
            Some(command) => Probe::Ready(command.to_owned()),
            None => Probe::not_yet(status["problems"].to_string()),
        })
    });
    let command = screen.during("waiting until the operator has noticed it", reported).await?;
    typed(screen, tools, "vdoctl status", &[1])?;

    let file = &state.vcenter.password_file;
    screen.text(format!(
        "\nThe command below the ✗ asks for the right password, or takes it from a file:\n$ export VDO_PASSWORD_FILE={}",
        quoted(file)
    ));
    let tools = tools.with("VDO_PASSWORD_FILE", file);
    typed(screen, &tools, &command, &[0])?;
    typed(screen, &tools, "vdoctl wait --timeout 2m", &[0])?;
    typed(screen, &tools, "vdoctl status", &[0])
}

/// The command with which the status says how to fix the connections of the VDOConfig, once that is the one thing that is wrong.
fn remedy(status: &Value) -> Option<&str> {
    match status["problems"].as_array()?.as_slice() {
        [one] if one["condition"] == "ConnectionsReady" => one["command"].as_str(),
        _ => None,
    }
}

/// Runs a command before the reader's eyes, which ends with one of these codes.
pub(super) fn typed(screen: &mut Screen, tools: &Tools, line: &str, codes: &[i32]) -> Result<()> {
    screen.text(format!("\n$ {line}"));
    let ended = tools.typed(line)?;
    ensure!(codes.contains(&ended), "{line} ended with {ended} instead of {codes:?}");
    Ok(())
}

/// A command line of these words.
pub(super) fn line(program: &str, args: &[&str]) -> String {
    let args = args.iter().map(|arg| quoted(Path::new(arg)));
    std::iter::once(program.to_owned()).chain(args).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::remedy;
    use serde_json::json;

    #[test]
    fn remedy_is_the_command_of_the_one_problem_of_the_configuration() {
        let (command, other) = (
            json!({"condition": "ConnectionsReady", "command": "vdoctl secrets set vc1"}),
            json!({"condition": "Authenticated", "command": "vdoctl secrets set vc1"}),
        );
        for (problems, expected) in [
            (json!([]), None),
            (json!([other]), None),
            (json!([command, other]), None),
            (json!([{"condition": "ConnectionsReady"}]), None),
            (json!([command]), Some("vdoctl secrets set vc1")),
        ] {
            assert_eq!(remedy(&json!({"problems": problems})), expected);
        }
    }
}
