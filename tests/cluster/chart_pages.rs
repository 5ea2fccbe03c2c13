//! Pages that people follow word by word are followed here: every `sh` block is run as it stands, and what the `text` block after it
//! shows has to be in its output.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test should stop where it fails")]

use crate::fixture::BARE;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;
use vdo_testbed::{Binaries, Part};

/// A block of commands with the lines that are promised to be in its output.
struct Block {
    line: usize,
    commands: String,
    promised: Vec<String>,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut all: Vec<Block> = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let kind = line.trim_start().strip_prefix("```");
        let Some(kind @ ("sh" | "text")) = kind else { continue };
        let body: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        match (kind, all.last_mut()) {
            ("sh", _) => all.push(Block {
                line: number + 1,
                commands: body.join("\n"),
                promised: Vec::new(),
            }),
            (_, Some(last)) => last.promised.extend(body.into_iter().map(str::to_owned)),
            (_, None) => panic!("line {}: nothing was run before this output", number + 1),
        }
    }
    all
}

/// Runs a page from its first block to its last, all in one folder.
fn follow(page: &str, programs: &[&Path], kubeconfig: Option<&Path>) -> Result<usize> {
    follow_with(page, programs, kubeconfig, &[], |_| Ok(()))
}

/// The same with variables of the environment, in a folder that is prepared before.
pub fn follow_with(
    page: &str,
    programs: &[&Path],
    kubeconfig: Option<&Path>,
    environment: &[(&str, &str)],
    prepare: impl FnOnce(&Path) -> Result<()>,
) -> Result<usize> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page);
    let blocks = blocks(&std::fs::read_to_string(file)?);
    let folder = tempfile::tempdir()?;
    prepare(folder.path())?;
    let vdoctl = Path::new(env!("CARGO_BIN_EXE_vdoctl")).parent().context("a folder")?;
    let own = std::env::join_paths(
        [vdoctl]
            .iter()
            .chain(programs)
            .copied()
            .chain([Path::new("/usr/bin"), Path::new("/bin")]),
    )?;
    for block in &blocks {
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", &block.commands]).current_dir(folder.path());
        shell.env_clear().env("PATH", &own).env("HOME", folder.path());
        shell.envs(kubeconfig.map(|path| ("KUBECONFIG", path)));
        shell.envs(environment.iter().copied());
        let output = shell.output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let place = format!("{page}, line {}", block.line);
        let talk = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{place}: {}\n{text}{talk}", output.status);
        for line in &block.promised {
            ensure!(
                text.contains(line.as_str()),
                "{place} promises {line:?}, and this comes:\n{text}{talk}"
            );
        }
    }
    Ok(blocks.len())
}

#[test]
fn page_new_driver_works_as_written() -> Result<()> {
    ensure!(follow("new-driver.md", &[], None)? >= 7);
    Ok(())
}

#[test]
fn page_faq_works_as_written() -> Result<()> {
    ensure!(follow("faq.md", &[], None)? >= 2);
    Ok(())
}

#[test]
fn page_manual_works_as_written() -> Result<()> {
    BARE.run(async |bed| {
        let kubectl = Binaries::ensure(&[Part::Kubectl])?.path(Part::Kubectl);
        let kubeconfig = bed.cluster.kubeconfig();
        let folder = kubectl.parent().context("a folder")?.to_owned();
        let followed = tokio::task::spawn_blocking(move || follow("manual.md", &[&folder], Some(&kubeconfig))).await??;
        ensure!(followed >= 5, "only {followed} blocks");
        Ok(())
    })
}

/// The files of the page in the drivers' grammars: the operator, given the same connection, writes the same.
#[test]
fn page_manual_shows_the_files_that_the_operator_writes() -> Result<()> {
    use vdo::driverconfig::{Connection, Trust, cpi, csi};
    use vdo::types::Secret;
    let connection = |name: &str, user: &str| Connection {
        name: name.into(),
        server: "vcenter.example.com".into(),
        port: 443,
        datacenters: vec!["dc-1".into()],
        trust: Trust::SystemRoots,
        sha1: None,
        user: user.into(),
        password: Secret::new("change-me"),
    };
    let options = csi::CsiOptions::new("choose-one-and-never-change-it");
    let files = csi::render(&"3.7.3".parse()?, &options, &[connection("main", "csi@vsphere.local")])?;
    let options = cpi::CpiOptions {
        secret_name: "vsphere-cloud-secret".into(),
        secret_namespace: "kube-system".into(),
        ..cpi::CpiOptions::default()
    };
    let config = cpi::render(&"1.34.0".parse()?, &options, &[connection("main", "cpi@vsphere.local")])?;
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/manual.md"))?;
    let page: Vec<&str> = page.lines().map(str::trim).collect();
    let credentials = config.secret.iter().map(|(key, value)| format!("{key}: {}", value.expose()));
    let wanted: Vec<String> = [files[csi::FILE].expose(), config.conf.as_str()]
        .iter()
        .flat_map(|text| text.lines())
        .map(|line| line.trim().to_owned())
        .chain(credentials)
        .filter(|line| !line.is_empty())
        .collect();
    for line in &wanted {
        ensure!(page.contains(&line.as_str()), "the page lacks {line:?} of\n{}", wanted.join("\n"));
    }
    Ok(())
}
