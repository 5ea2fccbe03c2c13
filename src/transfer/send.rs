//! Into a registry: blobs once for each registry, manifests below before those above, tags last.

use super::retry::patiently;
use super::{AT_ONCE, Found, Meter, Origin, TransferError, Tree};
use crate::oci::Descriptor;
use crate::registry::{Reference, Registry, RegistryError};
use crate::types::Digest;
use futures::{StreamExt, TryStreamExt, stream};
use hyper::body::Bytes;
use std::collections::BTreeMap;

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
pub async fn send(registry: &Registry, deliveries: &[Delivery], meter: &Meter) -> Result<(), TransferError> {
    let mut blobs: BTreeMap<&Digest, Blob<'_>> = BTreeMap::new();
    for delivery in deliveries {
        for (digest, descriptor) in delivery.found.trees().flat_map(|tree| &tree.blobs) {
            let blob = blobs.entry(digest).or_insert_with(|| Blob {
                descriptor,
                origin: &delivery.found.origin,
                repositories: Vec::new(),
                reference: &delivery.to,
            });
            if !blob.repositories.contains(&delivery.to.repository.as_str()) {
                blob.repositories.push(&delivery.to.repository);
            }
        }
    }
    meter.expect(blobs.values().map(|blob| blob.descriptor.size).sum());
    let sent = stream::iter(blobs.into_values()).map(|blob| async move {
        let sent = blob.send(registry, meter).await;
        sent.map_err(|error| error.of(&blob.reference.to_string()))
    });
    sent.buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
    for delivery in deliveries {
        let written = write(registry, delivery).await;
        written.map_err(|error| error.of(&delivery.to.to_string()))?;
    }
    Ok(())
}

/// A blob, and every repository that needs it.
struct Blob<'a> {
    descriptor: &'a Descriptor,
    origin: &'a Origin,
    repositories: Vec<&'a str>,
    reference: &'a Reference,
}

impl Blob<'_> {
    async fn send(&self, registry: &Registry, meter: &Meter) -> Result<(), TransferError> {
        let digest = &self.descriptor.digest;
        let mut from = self.origin.within(registry);
        let mut meter = Some(meter);
        for repository in &self.repositories {
            let known = patiently::<_, TransferError>(async || registry.has_blob(repository, digest).await).await?;
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
        let upload = match from {
            Some(from) => patiently::<_, RegistryError>(async || registry.mount(repository, &self.descriptor.digest, from).await).await?,
            None => Some(patiently::<_, RegistryError>(async || registry.upload(repository).await).await?),
        };
        let Some(mut upload) = upload else { return Ok(false) };
        let mut reader = self.origin.blob(self.descriptor).await?;
        let mut piece: Vec<u8> = Vec::new();
        // A registry is asked as seldom as possible, whatever pieces come.
        while let Some(bytes) = reader.next().await? {
            meter.iter().for_each(|meter| meter.moved(bytes.len()));
            piece.extend_from_slice(&bytes);
            if piece.len() >= PIECE {
                upload.write(Bytes::from(std::mem::take(&mut piece))).await?;
            }
        }
        upload.write(piece.into()).await?;
        upload.finish(&self.descriptor.digest).await?;
        Ok(true)
    }
}

/// Bytes that are sent at once, of each blob.
const PIECE: usize = 4 << 20;

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
        patiently::<_, TransferError>(async || registry.put_bytes(&at, &descriptor.media_type, bytes.clone()).await).await?;
    }
    Ok(())
}
