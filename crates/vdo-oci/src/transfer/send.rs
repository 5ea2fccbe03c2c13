// SPDX-License-Identifier: Apache-2.0
//! Copies images into a registry: each blob once, manifests from the bottom up, the tag last; `fetch.rs` copies into a layout.

use super::{AT_ONCE, Found, Meter, Origin, TransferError, Tree, parallel};
use crate::oci::Descriptor;
use crate::registry::{Attempts, Reference, Registry, Upload, retry};
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeMap;
use std::sync::Arc;
use vdo_api::retry::TRANSFER;
use vdo_api::types::{Digest, total};

/// An image on its way.
#[derive(Debug)]
pub struct Delivery {
    /// What it is.
    pub found: Found,
    /// Where it goes.
    pub to: Reference,
}

/// Sends images into a registry. Blobs go once into the registry, and from there into the other repositories that need them.
///
/// # Errors
/// When one of them cannot be read or written; those before it are complete.
pub async fn send(registry: &Registry, deliveries: &[Delivery], meter: &Arc<Meter>) -> Result<(), TransferError> {
    let mut blobs: BTreeMap<&Digest, Blob> = BTreeMap::new();
    for delivery in deliveries {
        for (digest, descriptor) in delivery.found.trees().flat_map(|tree| &tree.blobs) {
            let blob = blobs.entry(digest).or_insert_with(|| Blob {
                descriptor: descriptor.clone(),
                origin: delivery.found.origin.clone(),
                repositories: Vec::new(),
                reference: delivery.to.to_string(),
            });
            if !blob.repositories.contains(&delivery.to.repository) {
                blob.repositories.push(delivery.to.repository.clone());
            }
        }
    }
    meter.expect(total(blobs.values().map(|blob| blob.descriptor.size)));
    let sent = blobs.into_values().map(|blob| {
        let (registry, meter) = (registry.clone(), meter.clone());
        async move { blob.send(&registry, &meter).await.map_err(|error| error.of(&blob.reference)) }
    });
    parallel::all(sent).await?;
    // Images of one repository may have the same signatures, which clients list under one tag: these are written one after the other.
    let mut repositories: BTreeMap<&str, Vec<&Delivery>> = BTreeMap::new();
    for delivery in deliveries {
        repositories.entry(&delivery.to.repository).or_default().push(delivery);
    }
    let written = stream::iter(repositories.into_values()).map(|images| async move {
        for delivery in images {
            let written = write(registry, delivery).await;
            written.map_err(|error| error.of(&delivery.to.to_string()))?;
        }
        Ok(())
    });
    written.buffer_unordered(AT_ONCE).try_collect().await
}

/// A blob, and every repository that needs it.
struct Blob {
    descriptor: Descriptor,
    origin: Origin,
    repositories: Vec<String>,
    reference: String,
}

impl Blob {
    async fn send(&self, registry: &Registry, meter: &Meter) -> Result<(), TransferError> {
        let digest = &self.descriptor.digest;
        let mut from = self.origin.within(registry);
        let mut meter = Some(meter);
        for repository in &self.repositories {
            let known = retry(TRANSFER, || registry.has_blob(repository, digest)).await?;
            let sent = !known && self.send_to(registry, repository, from, meter).await?;
            from = Some(repository);
            // Only the first repository counts.
            if let Some(meter) = meter.take() {
                if !sent {
                    meter.moved(usize::try_from(self.descriptor.size).unwrap_or_default());
                }
                meter.complete();
            }
        }
        Ok(())
    }

    /// Whether its bytes were sent.
    async fn send_to(
        &self,
        registry: &Registry,
        repository: &str,
        from: Option<&str>,
        meter: Option<&Meter>,
    ) -> Result<bool, TransferError> {
        let (mut shown, mut attempts) = (0, Attempts::new(TRANSFER));
        loop {
            let upload = match from {
                Some(from) => registry.mount(repository, &self.descriptor.digest, from).await?,
                None => Some(registry.upload(repository).await?),
            };
            let Some(upload) = upload else { return Ok(false) };
            let mut read = 0;
            let sent = self.fill(upload, |bytes| {
                read += bytes;
                // What is sent once more has moved already.
                if let Some(meter) = meter.filter(|_| read > shown) {
                    meter.moved(read - shown);
                    shown = read;
                }
            });
            match sent.await {
                Err(TransferError::Registry(error)) if error.is_forgotten() && attempts.wait(None).await => {}
                sent => return sent.map(|()| true),
            }
        }
    }

    /// Sends all bytes; `moved` is given how many came, each time.
    async fn fill(&self, mut upload: Upload, mut moved: impl FnMut(usize)) -> Result<(), TransferError> {
        let mut reader = self.origin.blob(&self.descriptor).await?;
        let mut piece: Vec<u8> = Vec::new();
        // A registry is asked as seldom as possible, whatever pieces come.
        while let Some(bytes) = reader.next().await? {
            moved(bytes.len());
            if piece.len() + bytes.len() > PIECE {
                upload.write(std::mem::take(&mut piece).into()).await?;
                piece.reserve_exact(PIECE);
            }
            piece.extend_from_slice(&bytes);
        }
        upload.write(piece.into()).await?;
        Ok(upload.finish(&self.descriptor.digest).await?)
    }
}

/// Bytes that are sent at once, of each blob. They are in memory twice, as they are and encrypted.
const PIECE: usize = 2 << 20;

/// Manifests, those below first; the tag; then what belongs to it.
async fn write(registry: &Registry, delivery: &Delivery) -> Result<(), TransferError> {
    let found = &delivery.found;
    put(registry, &found.tree, &delivery.to).await?;
    for tree in &found.referrers {
        put(registry, tree, &delivery.to.at_digest(&tree.root.digest)).await?;
    }
    for (tag, tree) in &found.tagged {
        put(registry, tree, &delivery.to.at_tag(tag)).await?;
    }
    Ok(())
}

async fn put(registry: &Registry, tree: &Tree, to: &Reference) -> Result<(), TransferError> {
    for (descriptor, bytes) in &tree.documents {
        let at = match descriptor.digest == tree.root.digest {
            true => to.clone(),
            false => to.at_digest(&descriptor.digest),
        };
        registry.put_bytes(&at, &descriptor.media_type, bytes.clone()).await?;
    }
    Ok(())
}
