//! The commands of docs/uninstall.md, as they stand there.

use super::{ensure_nothing_is_left, install, is_there};
use crate::bed::{Bed, NS};
use crate::fixture::BARE;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};
use vdo_testbed::{Binaries, Part};

/// The indented lines below a heading, up to the next one.
fn commands(heading: &str) -> Result<Vec<String>> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/uninstall.md"))?;
    let after = page
        .split(&format!("\n## {heading}\n"))
        .nth(1)
        .with_context(|| format!("no heading {heading:?}"))?;
    let section = after.split("\n## ").next().unwrap_or_default();
    let found: Vec<String> = section
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .map(str::to_owned)
        .collect();
    ensure!(!found.is_empty(), "no command below {heading:?}");
    Ok(found)
}

/// Runs it in the root of the project as a shell does, with our vdoctl and the test bed's kubectl on PATH.
fn run(bed: &Bed, command: &str) -> Result<String> {
    let kubectl = Binaries::ensure(&[Part::Kubectl])?.path(Part::Kubectl);
    let programs = [Path::new(env!("CARGO_BIN_EXE_vdoctl")), kubectl.as_path()]
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
    println!("$ {command}\n{text}");
    ensure!(output.status.success(), "{command}: {:?}\n{text}", output.status.code());
    Ok(text)
}

#[test]
fn uninstall_page_commands_of_kubectl_leave_nothing() -> Result<()> {
    BARE.run(async |bed| {
        install(bed).await?;
        for command in commands("With kubectl")? {
            run(bed, &command)?;
        }
        ensure_nothing_is_left(bed).await
    })
}

#[test]
fn uninstall_page_commands_after_the_wrong_way_leave_nothing() -> Result<()> {
    BARE.run(async |bed| {
        install(bed).await?;
        bed.kill_operator();
        run(bed, "kubectl delete --ignore-not-found --wait=false -k deploy")?;
        for command in commands("After the wrong way")? {
            run(bed, &command)?;
        }
        ensure!(
            !is_there(bed, "vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?,
            "the VDOConfig is left"
        );
        ensure_nothing_is_left(bed).await
    })
}
