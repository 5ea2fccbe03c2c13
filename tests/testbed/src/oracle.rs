//! Asks the drivers' own parsers what a configuration means, and OpenShift's admission code whether it lets pods in.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::binaries::Binaries;
use crate::parts::Part;

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
