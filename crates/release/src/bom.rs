// SPDX-License-Identifier: Apache-2.0
//! `vdo-release bom`: completes the CycloneDX bill of materials that cargo-cyclonedx writes for a package.
//!
//! It adds the standard library of Rust and the crates of `--with`, and replaces paths of the build folder: every folder gives the same bytes.

use crate::output;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The folder of a package of this workspace, as cargo writes it into an identifier.
const OWN: &str = "path+file://";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The bill of materials of a package, in CycloneDX JSON as cargo-cyclonedx writes it
    #[arg(long, value_name = "FILE")]
    bom: PathBuf,
    /// A crate whose data is in the image, and a bill of materials that lists the crate
    #[arg(long = "with", value_name = "CRATE=FILE", value_parser = crate_in)]
    with: Vec<(String, PathBuf)>,
    /// The output of `rustc --version`; each program contains the standard library of this compiler
    #[arg(long, value_name = "TEXT")]
    rustc: String,
    /// File to write
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

fn crate_in(text: &str) -> Result<(String, PathBuf)> {
    let (name, file) = text.split_once('=').ok_or_else(|| anyhow!("write CRATE=FILE"))?;
    Ok((name.to_owned(), file.into()))
}

pub fn run(args: &Args) -> Result<()> {
    let mut bom = read(&args.bom)?;
    let mut beside = vec![json!({
        "type": "library",
        "bom-ref": "rust-std",
        "name": "rust-std",
        "version": args.rustc,
        "description": "The standard library of Rust, including the C library of the target",
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
    })];
    for (name, file) in &args.with {
        let other = read(file)?;
        let found = components(&other).find(|component| component["name"] == *name).cloned();
        beside.push(found.with_context(|| format!("--with {name}: {} does not list this crate", file.display()))?);
    }
    let listed = bom["components"]
        .as_array_mut()
        .context("the bill of materials has no components")?;
    listed.extend(beside);
    let number = listed.len();
    output::write(&args.output, anywhere(&bom)?.as_bytes())?;
    output::line(&format!("  bill of materials: {number} components in {}", args.output.display()))
}

fn read(path: &Path) -> Result<Value> {
    serde_json::from_slice(&output::read(path)?).with_context(|| format!("{} is not a bill of materials", path.display()))
}

fn components(bom: &Value) -> impl Iterator<Item = &Value> {
    bom["components"].as_array().into_iter().flatten()
}

/// The text of a bill, in which packages of this workspace are called by name and version. An identifier of cargo has their folder, and the
/// name only where the folder has another one.
fn anywhere(bom: &Value) -> Result<String> {
    let mut text = format!("{bom:#}\n");
    for component in components(bom).chain([&bom["metadata"]["component"]]) {
        let field = |name: &str| component[name].as_str().unwrap_or_default();
        if field("bom-ref").starts_with(OWN) {
            // Targets of a package have its identifier as a beginning.
            text = text.replace(
                &format!("\"{}", field("bom-ref")),
                &format!("\"{} {}", field("name"), field("version")),
            );
        }
    }
    match text.contains(OWN) {
        false => Ok(text),
        true => bail!("the bill of materials names a folder of this machine"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What cargo-cyclonedx writes in a folder.
    fn written(folder: &str, id: &str) -> Value {
        let own = |path: &str| format!("path+file://{folder}{path}");
        json!({
            "metadata": {"component": {"bom-ref": own("/crates/vdoctl#0.1.0"), "name": "vdoctl", "version": "0.1.0",
                "components": [{"bom-ref": own("/crates/vdoctl#0.1.0 bin-target-0")}]}},
            "components": [
                {"bom-ref": own(id), "name": "vdo", "version": "0.1.0"},
                {"bom-ref": "registry+https://github.com/rust-lang/crates.io-index#serde@1.0.0", "name": "serde", "version": "1.0.0"},
            ],
            "dependencies": [{"ref": own("/crates/vdoctl#0.1.0"), "dependsOn": [own(id)]}],
        })
    }

    #[test]
    fn bom_of_any_folder_is_the_same() {
        let one = anywhere(&written("/a/b%20c", "#vdo@0.1.0")).expect("a bill");
        assert_eq!(one, anywhere(&written("/vdo", "#0.1.0")).expect("a bill"));
        for part in ["\"vdo 0.1.0\"", "\"vdoctl 0.1.0 bin-target-0\"", "\"registry+https://"] {
            assert!(one.contains(part), "{one}");
        }
    }

    #[test]
    fn bom_with_a_folder_that_no_component_explains_is_refused() {
        let mut bom = written("/a", "#vdo@0.1.0");
        bom["dependencies"][0]["dependsOn"] = json!(["path+file:///elsewhere#x@1.0.0"]);
        assert!(anywhere(&bom).is_err());
    }
}
