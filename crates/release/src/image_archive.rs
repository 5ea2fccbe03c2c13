// SPDX-License-Identifier: Apache-2.0
//! `vdo-release image-archive`: writes the image of one platform as a tar file for kind, k3d, minikube, docker, podman and ctr.
//!
//! The file has the format that `docker save` writes since version 25: an image layout, which containerd and Podman read, and beside it
//! `manifest.json`, which Docker, minikube and skopeo read. Both lead to the same blobs.

use crate::built::Built;
use crate::output;
use anyhow::{Result, anyhow};
use serde_json::json;
use std::path::PathBuf;
use tar::{EntryType, Header};
use vdo_oci::layout::{Layout, MARK};
use vdo_oci::oci::{Descriptor, Index, Manifest, Platform, REF_NAME};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The image, as `vdo-release image` writes it
    #[arg(long, value_name = "DIR")]
    layout: PathBuf,
    /// The platform of the image
    #[arg(long)]
    platform: Platform,
    /// The name of the image, without a tag; the tag is computed from the content
    #[arg(long, value_name = "NAME")]
    name: String,
    /// The archive to write
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: &Args) -> Result<()> {
    let built = Built::open(&args.layout)?;
    let list: Index = built.layout.read_json(&built.root)?;
    let fits = |entry: &Descriptor| entry.platform.as_ref().is_some_and(|platform| platform.serves(&args.platform));
    let image = list.manifests.into_iter().find(fits);
    let image = image.ok_or_else(|| anyhow!("the image in {} is not built for {}", args.layout.display(), args.platform))?;
    let tag = built.own_tag();
    let reference = format!("{}:{tag}", args.name);
    let archive = archive(&built.layout, image, (&reference, &tag))?;
    output::write(&args.output, &archive)?;
    output::line(&format!(
        "  {}: {}, {}",
        args.output.display(),
        args.platform,
        output::size(archive.len() as u64)
    ))?;
    // Who calls it reads the last line.
    output::line(&reference)
}

fn archive(layout: &Layout, mut image: Descriptor, (reference, tag): (&str, &str)) -> Result<Vec<u8>> {
    let manifest: Manifest = layout.read_json(&image)?;
    let path = |blob: &Descriptor| format!("blobs/sha256/{}", blob.digest.hex());
    let of_docker = json!([{
        "Config": path(&manifest.config),
        "RepoTags": [reference],
        "Layers": manifest.layers.iter().map(path).collect::<Vec<_>>(),
    }]);
    let mut files = vec![("oci-layout".to_owned(), MARK.as_bytes().to_vec())];
    for blob in [&image, &manifest.config].into_iter().chain(&manifest.layers) {
        files.push((path(blob), layout.read(blob)?));
    }
    image.annotations = [(REF_NAME, tag), ("io.containerd.image.name", reference)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    files.push(("index.json".to_owned(), serde_json::to_vec(&Index::new(vec![image]))?));
    files.push(("manifest.json".to_owned(), of_docker.to_string().into_bytes()));
    let mut archive = tar::Builder::new(Vec::new());
    for (path, bytes) in files {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(0o644);
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, path, bytes.as_slice())?;
    }
    Ok(archive.into_inner()?)
}
