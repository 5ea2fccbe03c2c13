// SPDX-License-Identifier: Apache-2.0
//! Packs files into an OCI image layout whose image has no program to start; bundle images and catalog images use it.

use crate::image::{self, Reference};
use crate::layer::{self, File};
use crate::output;
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::Path;
use vdo_oci::layout::Layout;
use vdo_oci::oci::{Annotations, ContainerConfig, Index, media};

/// The files are the same on all of them, but those who pull an image look for one of theirs.
const PLATFORMS: [&str; 2] = ["linux/amd64", "linux/arm64"];

/// Packs files by their paths into an OCI image layout, and gives the digest of the image.
pub fn pack(place: &Path, files: BTreeMap<String, Vec<u8>>, labels: &Annotations, reference: &Reference, created: u64) -> Result<String> {
    let files = files
        .into_iter()
        .map(|(path, bytes)| (path, File { bytes, executable: false }))
        .collect();
    let mut digest = String::new();
    output::replace(place, "oci-layout", |folder| {
        let layout = Layout::create(folder)?;
        let mut blob = layout.blob()?;
        let unpacked = layer::write(&files, created, &mut blob)?;
        let layer = blob.finish(media::LAYER_GZIP)?;
        let created = output::rfc3339(created)?;
        let images = PLATFORMS.iter().map(|platform| {
            let container = ContainerConfig {
                labels: labels.clone(),
                ..ContainerConfig::default()
            };
            let content = (layer.clone(), unpacked.diff_id.clone());
            image::of_layer(&layout, &platform.parse()?, content, container, (&created, "vdo-release"))
        });
        let images = images.collect::<Result<Vec<_>>>()?;
        let mut index = layout.write_json(media::INDEX, &Index::new(images))?;
        index.annotations = reference.annotations();
        digest = index.digest.to_string();
        layout.set_index(&Index::new(vec![index]))?;
        // What was written is what is read.
        layout.verify().map(|_| ()).map_err(Into::into)
    })?;
    output::line(&format!("image {} {digest}", reference.whole))?;
    Ok(digest)
}
