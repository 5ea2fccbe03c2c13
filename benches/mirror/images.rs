// SPDX-License-Identifier: Apache-2.0
//! Images of the shape that those of the drivers have: platforms, layers that several share, and sizes, but with noise for content.

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::io::{Read, Write};
use std::path::Path;
use vdo_api::types::Hasher;
use vdo_oci::layout::{BlobWriter, Layout};
use vdo_oci::oci::{Descriptor, Index, Manifest, Platform, REF_NAME, media};

const MIB: u64 = 1 << 20;
const MANY: &[&str] = &["linux/amd64", "linux/arm64", "linux/arm/v7", "linux/ppc64le", "linux/s390x"];

/// Platforms, bytes of the layer that images of this kind share, and of the one that is their own.
fn shape(repository: &str) -> (&'static [&'static str], u64, u64) {
    match repository.rsplit('/').next().unwrap_or_default() {
        "driver" => (&MANY[..1], 16 * MIB, 105 * MIB),
        "syncer" => (&MANY[..1], 16 * MIB, 80 * MIB),
        "cloud-provider-vsphere" => (&MANY[..2], MIB, 24 * MIB),
        "livenessprobe" | "csi-node-driver-registrar" => (MANY, MIB, 13 * MIB),
        "large" => (&MANY[..1], 16 * MIB, 512 * MIB),
        _ => (MANY, MIB, 29 * MIB),
    }
}

/// Writes an image for each of these names into a new layout, with a part of its size.
pub fn make(folder: &Path, names: &[String], part: u64) -> Result<()> {
    let layout = Layout::create(folder)?;
    let mut listed = Vec::new();
    for name in names {
        let repository = name.rsplit_once(':').map_or(name.as_str(), |(repository, _)| repository);
        let (platforms, shared, own) = shape(repository);
        let part = if repository.ends_with("/large") { 1 } else { part };
        let mut parts = Vec::new();
        for text in platforms {
            let platform: Platform = text.parse().map_err(anyhow::Error::msg)?;
            let layers = [
                layer(&layout, &format!("{shared} {text}"), shared / part)?,
                layer(&layout, &format!("{name} {text}"), own / part)?,
            ];
            let diffs: Vec<String> = layers.iter().map(|(_, diff)| diff.clone()).collect();
            let config = json!({
                "architecture": platform.architecture, "os": platform.os, "config": {}, "rootfs": {"type": "layers", "diff_ids": diffs},
            });
            let config = layout.write_json(media::CONFIG, &config)?;
            let manifest = Manifest::image(config, layers.into_iter().map(|(layer, _)| layer).collect());
            let mut manifest = layout.write_json(media::MANIFEST, &manifest)?;
            manifest.platform = Some(platform);
            parts.push(manifest);
        }
        let mut image = layout.write_json(media::INDEX, &Index::new(parts))?;
        image.annotations.insert(REF_NAME.into(), name.clone());
        listed.push(image);
    }
    Ok(layout.set_index(&Index::new(listed))?)
}

/// Noise, in the form of a compressed layer, which programs look at. Gives its digest without that form, too.
fn layer(layout: &Layout, seed: &str, bytes: u64) -> Result<(Descriptor, String)> {
    let mut packed = GzEncoder::new(layout.blob()?, Compression::none());
    let (mut noise, mut hasher) = (Noise::of(seed).take(bytes), Hasher::default());
    let mut piece = vec![0; 64 << 10];
    loop {
        let count = noise.read(&mut piece)?;
        if count == 0 {
            break;
        }
        hasher.update(&piece[..count]);
        packed.write_all(&piece[..count])?;
    }
    let blob: BlobWriter = packed.finish()?;
    Ok((blob.finish(media::LAYER_GZIP)?, hasher.finish().to_string()))
}

/// Bytes that nothing compresses, the same for the same seed.
struct Noise(u64);

impl Noise {
    fn of(seed: &str) -> Self {
        let fold = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(seed.bytes().fold(0xcbf2_9ce4_8422_2325, fold) | 1)
    }
}

impl Read for Noise {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        for part in bytes.chunks_mut(8) {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            part.copy_from_slice(&self.0.to_le_bytes()[..part.len()]);
        }
        Ok(bytes.len())
    }
}
