// SPDX-License-Identifier: Apache-2.0
//! Asks the drivers' own parsers what a configuration means, OpenShift's admission code whether it lets pods in, and the code of GitOps tools what a
//! status means.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::binaries::Binaries;
use crate::upstream_programs::Part;

/// A configuration file of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grammar {
    /// The CSI driver's `csi-vsphere.conf`, read with gcfg as the driver does.
    Csi,
    /// The cloud provider's `vsphere.conf`, read as YAML.
    Cpi,
}

/// What the driver's parser understands, as a tree with the keys' names; the parser's message where it refuses. It
/// blocks, and builds the parser if it is missing.
pub fn parsed(grammar: Grammar, text: &str) -> Result<Value> {
    ask(grammar, &[], text.as_bytes())
}

/// The same for many texts, which cost no more than one.
pub fn parsed_many(grammar: Grammar, texts: &[String]) -> Result<Vec<Value>> {
    let answer = ask(grammar, &["many"], &serde_json::to_vec(texts)?)?;
    Ok(serde_json::from_value(answer)?)
}

/// Which constraint of OpenShift lets each pod in, or why none does. The question has `constraints`, `namespaces`, `grants` and `pods`.
pub fn admitted(question: &Value) -> Result<Vec<Value>> {
    let program = Binaries::ensure(&[Part::Scccheck])?.path(Part::Scccheck);
    let answer = said(Command::new(program), &serde_json::to_vec(question)?)?;
    Ok(serde_json::from_value(answer)?)
}

/// What a GitOps tool shows of an object.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Health {
    /// Of kstatus such as `Current`, of Argo CD such as `Healthy`.
    pub status: String,
    /// What is said about it.
    pub message: String,
}

/// What kstatus, by which Flux judges, says of these objects.
pub fn kstatus(objects: &[Value]) -> Result<Vec<Health>> {
    judged("kstatus", &json!({"objects": objects}))
}

/// What Argo CD says of these objects with a health check in Lua; the interpreter's message where the script fails.
pub fn argocd_health(script: &str, objects: &[Value]) -> Result<Vec<Health>> {
    judged("argocd", &json!({"script": script, "objects": objects}))
}

fn judged(tool: &str, question: &Value) -> Result<Vec<Health>> {
    let mut command = Command::new(Binaries::ensure(&[Part::Gitopscheck])?.path(Part::Gitopscheck));
    command.arg(tool);
    Ok(serde_json::from_value(said(command, &serde_json::to_vec(question)?)?)?)
}

fn ask(grammar: Grammar, more: &[&str], input: &[u8]) -> Result<Value> {
    let program = Binaries::ensure(&[Part::Gcfgcheck])?.path(Part::Gcfgcheck);
    let mode = match grammar {
        Grammar::Csi => "csi",
        Grammar::Cpi => "cpi",
    };
    let mut command = Command::new(program);
    command.arg(mode).args(more);
    said(command, input)
}

/// What a program answers to this input.
fn said(mut command: Command, input: &[u8]) -> Result<Value> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // The program reads all before it writes, so one after the other cannot block.
    child.stdin.take().context("no input")?.write_all(input)?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
