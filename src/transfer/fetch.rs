use super::{AT_ONCE, Found, Meter, Origin, TransferError};
use crate::layout::Layout;
use crate::oci::Descriptor;
use crate::types::Digest;
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeMap;

/// Brings images into a layout, each with its name and what belongs to it. What is there is not moved again. The layout does not name them yet.
///
/// # Errors
/// When one of them cannot be had or is another one, or there is no room for it. What is complete stays.
pub async fn fetch(images: &[(String, Found)], into: &Layout, meter: &Meter) -> Result<(), TransferError> {
    let mut blobs: BTreeMap<&Digest, (&Origin, &str, &Descriptor)> = BTreeMap::new();
    for (name, found) in images {
        for (digest, descriptor) in found.trees().flat_map(|tree| &tree.blobs) {
            if !into.has(descriptor) {
                blobs.entry(digest).or_insert((&found.origin, name, descriptor));
            }
        }
    }
    meter.expect(blobs.values().map(|(.., blob)| blob.size).sum());
    let fetched = stream::iter(blobs.into_values())
        .map(|(origin, name, descriptor)| async move { blob(origin, descriptor, into, meter).await.map_err(|error| error.of(name)) });
    fetched.buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
    let documents = images.iter().flat_map(|(_, found)| found.trees()).flat_map(|tree| &tree.documents);
    for (descriptor, bytes) in documents {
        if !into.has(descriptor) {
            into.write(&descriptor.media_type, bytes)?;
        }
    }
    Ok(())
}

async fn blob(origin: &Origin, blob: &Descriptor, into: &Layout, meter: &Meter) -> Result<(), TransferError> {
    let mut reader = origin.blob(blob).await?;
    let mut writer = into.blob()?;
    while let Some(piece) = reader.next().await? {
        writer.append(&piece)?;
        meter.moved(piece.len());
    }
    // The reader has compared size and digest.
    writer.finish(&blob.media_type)?;
    meter.complete();
    Ok(())
}
