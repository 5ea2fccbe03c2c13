// SPDX-License-Identifier: Apache-2.0
//! Images in a test bed that stays up: they are named when it starts, and served again when their layouts have changed.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::State;
use crate::NodeAgent;
use crate::wait::{PATIENCE, Probe, until};

const REQUEST: &str = "images.request.json";

/// An image that the nodes can pull, written `REFERENCE=FOLDER`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedImage {
    /// Its name with a tag.
    pub reference: String,
    /// The folder with its layout.
    pub layout: PathBuf,
}

impl FromStr for ServedImage {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once('=').filter(|(reference, _)| reference.contains('/'));
        let (reference, layout) = parts.with_context(|| format!("{text:?} is not of the form REGISTRY/NAME:TAG=FOLDER"))?;
        let layout = Path::new(layout);
        Ok(Self {
            reference: reference.to_owned(),
            layout: layout.canonicalize().with_context(|| format!("folder {}", layout.display()))?,
        })
    }
}

impl ServedImage {
    /// What of a reference kwok leaves to the agent: everything beside the image.
    pub(super) fn claim(&self) -> String {
        let place = self.reference.rfind('/').map_or(0, |slash| slash + 1);
        self.reference[..place].to_owned()
    }

    pub(super) fn argument(&self) -> String {
        format!("{}={}", self.reference, self.layout.display())
    }
}

/// Serves all of them.
pub(super) async fn serve(agent: &NodeAgent, images: &[ServedImage]) -> Result<()> {
    for image in images {
        agent.serve_image(&image.reference, &image.layout).await?;
    }
    Ok(())
}

/// Has the holder of the running test bed in `dir` serve these images as they are now.
pub(super) async fn ask(dir: &Path, state: &State, images: &[ServedImage]) -> Result<()> {
    for image in images {
        ensure!(
            state.images.contains(&image.claim()),
            "the test bed in {} was started without images of {}: end it first with `vdo-testbed down`",
            dir.display(),
            image.claim()
        );
    }
    if images.is_empty() {
        return Ok(());
    }
    // Complete or absent: the holder looks for it.
    std::fs::write(dir.join("images.request.new"), serde_json::to_string_pretty(images)?)?;
    let request = dir.join(REQUEST);
    std::fs::rename(dir.join("images.request.new"), &request)?;
    until("the images to be served", PATIENCE, async || {
        if !super::running(dir)? {
            bail!("the test bed has ended; see {}", dir.join("testbed.log").display());
        }
        Ok(Probe::when(!request.exists(), "the request is not taken up"))
    })
    .await
}

/// The holder's side of [`ask`].
pub(super) async fn tend(agent: &NodeAgent, dir: &Path) -> Result<()> {
    let request = dir.join(REQUEST);
    let Ok(text) = std::fs::read(&request) else { return Ok(()) };
    let images: Vec<ServedImage> = serde_json::from_slice(&text).context("request for images")?;
    serve(agent, &images).await?;
    Ok(std::fs::remove_file(&request)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn served_image_argument_is_read_back() -> Result<()> {
        let text = "registry.test:5000/vdo/vdo-operator:v1=/";
        let image: ServedImage = text.parse()?;
        assert_eq!(
            (image.claim().as_str(), image.argument().as_str()),
            ("registry.test:5000/vdo/", text)
        );
        for bad in ["registry.test/a:v1", "name=/", "registry.test/a:v1=/no such folder"] {
            assert!(bad.parse::<ServedImage>().is_err(), "{bad:?} was accepted");
        }
        Ok(())
    }
}
