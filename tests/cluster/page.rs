// SPDX-License-Identifier: Apache-2.0
//! Parts of pages that people follow: what stands below a heading, the commands and the manifests in it.

use crate::common::Bed;
use crate::follow::Page;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use vdo_testbed::{Binaries, Part};

/// The text below a heading, up to the next one.
fn section(page: &str, heading: &str) -> Result<String> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page))?;
    let after = text
        .split(&format!("\n## {heading}\n"))
        .nth(1)
        .with_context(|| format!("{page}: no heading {heading:?}"))?;
    Ok(after.split("\n## ").next().unwrap_or_default().to_owned())
}

/// The indented lines below a heading.
pub fn commands(page: &str, heading: &str) -> Result<Vec<String>> {
    let section = section(page, heading)?;
    let lines = section.lines().filter_map(|line| line.strip_prefix("    "));
    let found: Vec<String> = lines.map(str::to_owned).collect();
    ensure!(!found.is_empty(), "{page}: no command below {heading:?}");
    Ok(found)
}

/// The objects of the one YAML block below a heading.
pub fn manifest(page: &str, heading: &str) -> Result<Vec<Value>> {
    let section = section(page, heading)?;
    let block = section.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    let block = block.with_context(|| format!("{page}: no manifest below {heading:?}"))?;
    Ok(vdo_api::yaml::load_all(block)?)
}

/// A page for the administrator of the cluster, with kubectl and Helm. `$VC_USER` and password.txt are the account of the drivers.
pub fn open(bed: &Bed, page: &'static str) -> Result<Page> {
    let parts = Binaries::ensure(&[Part::Kubectl, Part::Helm])?;
    let page = Page::open(page)?.with(Path::new(vdo_testbed::vdoctl()))?;
    let page = page.with(&parts.path(Part::Kubectl))?.with(&parts.path(Part::Helm))?;
    page.file("password.txt", bed.vcenter.password())?;
    let kubeconfig = bed.cluster.kubeconfig();
    Ok(page.set("KUBECONFIG", kubeconfig.display()).set("VC_USER", bed.vcenter.user()))
}

/// Runs it in the root of the project as a shell does, with our vdoctl and the test bed's kubectl and helm on PATH.
pub fn run(bed: &Bed, command: &str) -> Result<String> {
    let parts = Binaries::ensure(&[Part::Kubectl, Part::Helm])?;
    let (kubectl, helm) = (parts.path(Part::Kubectl), parts.path(Part::Helm));
    let programs = [Path::new(vdo_testbed::vdoctl()), kubectl.as_path(), helm.as_path()]
        .map(|program| program.parent().map(|folder| folder.display().to_string()).unwrap_or_default());
    let script = format!("PATH=\"{}:$PATH\"\n{command}", programs.join(":"));
    let output = Command::new("sh")
        .args(["-ec", &script])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("KUBECONFIG", bed.cluster.kubeconfig())
        .stdin(Stdio::null())
        .output()?;
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    ensure!(output.status.success(), "{command}: {:?}\n{text}", output.status.code());
    Ok(text)
}
