// SPDX-License-Identifier: Apache-2.0
//! Pulls that go on where an earlier one was ended.

use super::hostile::{Image, Stage, once};
use anyhow::Result;
use std::fs;
use std::path::PathBuf;
use vdo_api::types::Digest;
use vdo_oci::oci::media;
use vdo_testbed::{Asked, PATIENCE, Probe, WebAnswer, until};

/// A registry with one image, and a bundle that lacks its layer but for what a test puts there.
struct Half {
    stage: Stage,
    image: Image,
}

impl Half {
    async fn new() -> Result<Self> {
        let (stage, image) = (Stage::new().await?, Image::new(media::LAYER_GZIP)?);
        image.serve(&stage.server);
        Ok(Self { stage, image })
    }

    fn file(&self) -> PathBuf {
        let name = format!("bundle/.{}.partial", Digest::of(&self.image.layer).hex());
        self.stage.home.path().join(name)
    }

    /// A pull that finds these bytes of the layer. Gives what was asked for the layer: ranges and answers.
    async fn pull_with(&self, bytes: &[u8]) -> Result<Vec<(Option<String>, u16)>> {
        let _ = fs::remove_dir_all(self.stage.home.path().join("bundle"));
        self.stage.pull().await?.good();
        let bundle = self.stage.home.path().join("bundle");
        fs::remove_file(bundle.join("blobs/sha256").join(Digest::of(&self.image.layer).hex()))?;
        fs::write(self.file(), bytes)?;
        self.stage.server.forget();
        self.stage.pull().await?.good();
        self.stage.verify()?.good();
        assert_eq!(fs::read_dir(&bundle)?.count(), 3, "something is left");
        Ok(self.asked())
    }

    fn asked(&self) -> Vec<(Option<String>, u16)> {
        let all = self.stage.server.asked();
        let of_layer = all.into_iter().filter(|asked| asked.path.contains(&self.image.layer()));
        of_layer.map(|Asked { range, status, .. }| (range, status)).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_killed_within_a_layer_goes_on_from_there() -> Result<()> {
    let half = Half::new().await?;
    half.stage.server.answer(once(half.image.layer(), WebAnswer::Stall));
    let mut child = half.stage.spawn()?;
    until("half of the layer to be there", PATIENCE, async || {
        let size = fs::metadata(half.file()).map(|found| found.len()).unwrap_or_default();
        Ok(Probe::when(size == 150_000, format!("{size} bytes")))
    })
    .await?;
    child.kill()?;
    child.wait()?;
    half.stage.server.forget();
    half.stage.pull().await?.good();
    assert_eq!(half.asked(), [(Some("bytes=150000-".into()), 206)]);
    half.stage.verify()?.good();
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_with_a_part_of_a_layer_asks_for_the_rest_and_begins_again_where_that_is_wrong() -> Result<()> {
    let half = Half::new().await?;
    let rest = || Some("bytes=100000-".to_owned());
    let part = half.image.layer[..100_000].to_vec();
    assert_eq!(half.pull_with(&part).await?, [(rest(), 206)]);
    // Bytes of something else: the whole has another digest.
    assert_eq!(half.pull_with(&[9; 100_000]).await?, [(rest(), 206), (None, 200)]);
    // More than the layer has, and all of it.
    assert_eq!(half.pull_with(&[7; 300_001]).await?, [(None, 200)]);
    assert_eq!(half.pull_with(&half.image.layer).await?, []);
    assert_eq!(half.pull_with(&[9; 300_000]).await?, [(None, 200)]);
    // Registries that give no parts: one that gives everything, and one that refuses.
    half.stage.server.answer(|_| WebAnswer::Whole);
    assert_eq!(half.pull_with(&part).await?, [(rest(), 200)]);
    let layer = half.image.layer();
    half.stage
        .server
        .answer(move |asked| match asked.path.contains(&layer) && asked.range.is_some() {
            true => WebAnswer::Status(416, Vec::new(), String::new()),
            false => WebAnswer::File,
        });
    assert_eq!(half.pull_with(&part).await?, [(rest(), 416), (None, 200)]);
    Ok(())
}
