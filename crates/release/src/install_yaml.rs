// SPDX-License-Identifier: Apache-2.0
//! `vdo-release install-yaml`: joins the files that deploy/kustomization.yaml lists into install.yaml, and copies namespace.yaml beside it.
//!
//! The namespaces are separate, so that `kubectl delete -f install.yaml` does not delete them: the storage driver would end under its volumes.

use crate::output;
use anyhow::{Context, Result, anyhow, bail};
use std::path::{Path, PathBuf};

/// The operator's image in deploy/operator.yaml, without its tag.
const IMAGE: &str = "ghcr.io/vdo-project/vdo-operator";

/// The namespaces, in deploy/ and in a release.
const NAMESPACES: &str = "namespace.yaml";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder with kustomization.yaml
    #[arg(long, value_name = "DIR", default_value = "deploy")]
    source: PathBuf,
    /// Another name, tag or digest for the operator's image
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// File to write; namespace.yaml is written to the same folder
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: &Args) -> Result<()> {
    let mut files = Vec::new();
    resources(&args.source, &mut files)?;
    let mut text = String::from("# Installs the operator: kubectl apply --server-side -f namespace.yaml -f install.yaml\n");
    for file in &files {
        let content = String::from_utf8(output::read(file)?).with_context(|| format!("{} is not text", file.display()))?;
        vdo_api::yaml::load_all(&content).with_context(|| format!("{} cannot be read", file.display()))?;
        let content = content.trim_start_matches("---\n").trim_end();
        text.push_str(&format!("---\n{content}\n"));
    }
    if let Some(image) = &args.image {
        text = with_image(&text, image)?;
    }
    let objects = vdo_api::yaml::load_all(&text)?;
    if let Some(namespace) = objects.iter().find(|object| object["kind"] == "Namespace") {
        bail!(
            "the kustomization contains Namespace {}; kubectl delete would then delete the namespace with all its objects",
            namespace["metadata"]["name"]
        );
    }
    output::write(&args.output, text.as_bytes())?;
    output::write(
        &args.output.with_file_name(NAMESPACES),
        &output::read(&args.source.join(NAMESPACES))?,
    )?;
    output::line(&format!("  install.yaml: {} objects", objects.len()))
}

/// The files that a kustomization lists, in its order. What it may say beside them would be lost, so it is refused.
fn resources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let path = folder.join("kustomization.yaml");
    let value = vdo_api::yaml::load_value(&String::from_utf8_lossy(&output::read(&path)?))
        .with_context(|| format!("{} cannot be read", path.display()))?;
    let fields = value
        .as_object()
        .ok_or_else(|| anyhow!("{} is not a Kustomization", path.display()))?;
    if let Some(other) = fields
        .keys()
        .find(|key| !["apiVersion", "kind", "resources"].contains(&key.as_str()))
    {
        bail!(
            "{} has the field {other}, which install.yaml cannot contain; only the field resources is supported",
            path.display()
        );
    }
    for resource in fields.get("resources").and_then(|list| list.as_array()).into_iter().flatten() {
        let resource = resource
            .as_str()
            .ok_or_else(|| anyhow!("{}: a resource is not text", path.display()))?;
        let place = folder.join(resource);
        match place.is_dir() {
            true => resources(&place, files)?,
            false => files.push(place),
        }
    }
    Ok(())
}

/// The same text with another image of the operator, which it names once.
fn with_image(text: &str, image: &str) -> Result<String> {
    let is_image = |line: &&str| {
        line.trim_start()
            .strip_prefix("image: ")
            .is_some_and(|name| name.starts_with(IMAGE))
    };
    let found: Vec<&str> = text.lines().filter(is_image).collect();
    let [line] = found.as_slice() else {
        bail!("the manifests name the image {IMAGE} {} times instead of once", found.len());
    };
    let indent = &line[..line.len() - line.trim_start().len()];
    Ok(text.replace(line, &format!("{indent}image: {image}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_is_replaced_where_it_is_named_once() {
        let line = format!("  image: {IMAGE}:v0.1.0\n");
        assert_eq!(
            with_image(&format!("a:\n{line}"), "other@sha256:0").expect("a text"),
            "a:\n  image: other@sha256:0\n"
        );
        for wrong in ["a: b\n".to_owned(), line.repeat(2)] {
            assert!(with_image(&wrong, "other").is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn kustomization_with_patches_is_rejected() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |text: &str| std::fs::write(folder.path().join("kustomization.yaml"), text).expect("a file");
        let mut files = Vec::new();
        write("kind: Kustomization\nresources:\n  - b.yaml\n  - a.yaml\n");
        resources(folder.path(), &mut files).expect("files");
        assert_eq!(files, ["b.yaml", "a.yaml"].map(|name| folder.path().join(name)));
        write("kind: Kustomization\nresources: []\npatches: []\n");
        assert!(resources(folder.path(), &mut files).is_err());
    }
}
