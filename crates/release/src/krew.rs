// SPDX-License-Identifier: Apache-2.0
//! `vdo-release krew`: writes the krew manifest that installs vdoctl as the kubectl plugin `kubectl vdo`.

use crate::output;
use anyhow::{Result, anyhow};
use serde_json::json;
use std::path::PathBuf;
use vdo_api::types::Digest;
use vdo_oci::oci::Platform;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Version of the release, with the letter v
    #[arg(long, value_name = "VERSION")]
    version: String,
    /// Address of the folder with the archives
    #[arg(long, value_name = "URL")]
    base: String,
    /// The archive for a platform, once for each
    #[arg(long = "archive", value_name = "PLATFORM=FILE", required = true, value_parser = output::by_platform)]
    archives: Vec<(Platform, PathBuf)>,
    /// File to write
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: &Args) -> Result<()> {
    let mut platforms = Vec::new();
    for (platform, path) in &args.archives {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or_else(|| anyhow!("{} has no name", path.display()))?;
        let program = if platform.os == "windows" { "vdoctl.exe" } else { "vdoctl" };
        platforms.push(json!({
            "selector": {"matchLabels": {"os": platform.os, "arch": platform.architecture}},
            "uri": format!("{}/{name}", args.base.trim_end_matches('/')),
            "sha256": Digest::of(&output::read(path)?).hex(),
            "bin": program,
            "files": [{"from": program, "to": "."}, {"from": "LICENSE", "to": "."}],
        }));
    }
    let manifest = json!({
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "vdo"},
        "spec": {
            "version": args.version,
            "homepage": "https://github.com/vdo-project/vdo",
            "shortDescription": "Install and explain the vSphere drivers",
            "description": "Installs the vSphere Kubernetes Drivers Operator, and shows, explains and changes its decisions:\nwhich versions of the cloud provider and the CSI driver fit, what would change, and what is wrong.\n",
            "platforms": platforms,
        },
    });
    output::write(&args.output, vdo_api::yaml::dump(&manifest)?.as_bytes())
}
