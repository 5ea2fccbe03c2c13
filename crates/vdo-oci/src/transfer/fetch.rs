// SPDX-License-Identifier: Apache-2.0
//! Copies images into a layout: skips existing blobs, replaces damaged blobs, resumes partial blobs; `send.rs` copies into a registry.

use super::{Found, Meter, Origin, TransferError, parallel};
use crate::layout::{Layout, Partial};
use crate::oci::Descriptor;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vdo_api::types::{Digest, total};

/// A layout that may have some of what is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The layout, which may be the one that is written.
    pub layout: &'a Arc<Layout>,
    /// Blobs of it that are not what they should be.
    pub damaged: &'a BTreeSet<Digest>,
}

/// Brings images into a layout, each with its name and what belongs to it. What is there is not moved again, what is known elsewhere comes from
/// there, and what is damaged is replaced. The layout does not name the images yet. The caller holds its lock.
///
/// # Errors
/// When one of them cannot be had or is another one, or there is no room for it. What is complete stays, and so does what a later call can go
/// on with.
pub async fn fetch(
    images: &[(String, Found)],
    known: Option<Known<'_>>,
    into: &Arc<Layout>,
    meter: &Arc<Meter>,
) -> Result<(), TransferError> {
    let is_damaged = |digest: &Digest| known.is_some_and(|known| known.damaged.contains(digest));
    let elsewhere = known.map(|known| (known.layout, Origin::Layout(known.layout.clone())));
    let mut blobs: BTreeMap<&Digest, (&Origin, &str, &Descriptor)> = BTreeMap::new();
    for (name, found) in images {
        for (digest, descriptor) in found.trees().flat_map(|tree| &tree.blobs) {
            if into.has(descriptor) && !is_damaged(digest) {
                continue;
            }
            let elsewhere = elsewhere
                .as_ref()
                .filter(|(layout, _)| layout.has(descriptor) && !is_damaged(digest));
            let origin = elsewhere.map_or(&found.origin, |(_, origin)| origin);
            blobs.entry(digest).or_insert((origin, name, descriptor));
        }
    }
    meter.expect(total(blobs.values().map(|(.., blob)| blob.size.saturating_sub(into.begun(blob)))));
    let fetched = blobs.into_values().map(|(origin, name, descriptor)| {
        let (origin, name, descriptor) = (origin.clone(), name.to_owned(), descriptor.clone());
        let (into, meter) = (into.clone(), meter.clone());
        async move { blob(&origin, &descriptor, &into, &meter).await.map_err(|error| error.of(&name)) }
    });
    parallel::all(fetched).await?;
    let documents = images.iter().flat_map(|(_, found)| found.trees()).flat_map(|tree| &tree.documents);
    for (descriptor, bytes) in documents {
        if !into.has(descriptor) || is_damaged(&descriptor.digest) {
            into.write(&descriptor.media_type, bytes)?;
        }
    }
    Ok(into.forget()?)
}

/// A blob, from where an earlier call has left it.
async fn blob(origin: &Origin, blob: &Descriptor, into: &Layout, meter: &Meter) -> Result<(), TransferError> {
    let mut partial = into.partial(blob)?;
    if matches!(origin, Origin::Layout(_)) {
        partial.restart()?;
    }
    let begun = partial.so_far().0 > 0;
    let mut read = read(origin, blob, &mut partial, meter).await;
    if begun && read.as_ref().is_err_and(TransferError::is_of_rest) {
        partial.restart()?;
        read = self::read(origin, blob, &mut partial, meter).await;
    }
    match read {
        Ok(()) => partial.finish()?,
        Err(error) => {
            if error.is_of_rest() {
                partial.restart()?;
            }
            return Err(error);
        }
    }
    meter.complete();
    Ok(())
}

/// Reads what is missing. The reader compares size and digest of the whole.
async fn read(origin: &Origin, blob: &Descriptor, partial: &mut Partial, meter: &Meter) -> Result<(), TransferError> {
    let mut reader = origin.rest(blob, &partial.so_far()).await?;
    while let Some(piece) = reader.next().await? {
        partial.append(&piece)?;
        meter.moved(piece.len());
    }
    Ok(())
}
