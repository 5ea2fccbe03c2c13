// SPDX-License-Identifier: Apache-2.0
//! Uploads the missing parts of one artifact (image, Helm chart, files) to the registry, and signs the manifest.

use super::attest::{attest, attested};
use super::item::{Content, Item, State};
use anyhow::Result;
use std::sync::Arc;
use vdo_oci::layout::Layout;
use vdo_oci::oci::Descriptor;
use vdo_oci::registry::{Reference, Registry, push_chart, push_files};
use vdo_oci::transfer::{Delivery, Meter, find_in, send};
use vdo_source::signature::{PrivateKey, PublicKeys};

/// Sends an image with everything that belongs to it. What is there already is not sent; the tag is written when its content is there.
pub async fn image(registry: &Registry, layout: &Arc<Layout>, root: &Descriptor, to: &Reference) -> Result<()> {
    let found = find_in(layout, &to.to_string(), root).await?;
    let delivery = Delivery { found, to: to.clone() };
    Ok(send(registry, &[delivery], &Arc::new(Meter::default())).await?)
}

/// Sends what is missing of an item, and signs it.
pub async fn item(registry: &Registry, item: &Item, state: &State, key: Option<(&PrivateKey, &PublicKeys)>) -> Result<()> {
    match &item.content {
        Content::Image(layout) => image(registry, layout, &item.manifest, &item.to).await?,
        Content::Chart(described, package) => {
            let (config, annotations) = (described.config.clone(), described.annotations.clone());
            push_chart(registry, &item.to, config, package.clone(), annotations).await?;
        }
        Content::Files(artifact) | Content::Channel(artifact, _) => {
            let before = match state {
                State::Older(digest) => Some(digest),
                _ => None,
            };
            push_files(registry, &item.to, artifact, before).await?;
        }
    }
    if let Some((key, keys)) = key.filter(|_| item.content.is_signed())
        && !attested(registry, &item.to, &item.manifest, keys).await?
    {
        attest(registry, &item.to, &item.manifest, key).await?;
    }
    Ok(())
}
