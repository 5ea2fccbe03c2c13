// SPDX-License-Identifier: Apache-2.0
//! Looks up every image of a mirror in its registry or in the existing bundle, for `mirror pull` and `mirror copy`.

use super::super::CliError;
use super::bundle::Bundle;
use super::collect::Stock;
use super::registries::Registries;
use super::{failed, unreadable};
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeSet;
use vdo_api::retry::REGISTRY;
use vdo_api::types::Digest;
use vdo_author::mirror::Wanted;
use vdo_core::mirror_lock::{Image, Lock};
use vdo_oci::oci::Platform;
use vdo_oci::registry::retry;
use vdo_oci::transfer::{AT_ONCE, Found, find};

/// What was pulled before.
pub(super) struct Before {
    pub(super) bundle: Bundle,
    /// What it says of its images, where it can be read.
    pub(super) lock: Option<Lock>,
    /// Blobs and manifests that are not what they should be.
    pub(super) damaged: BTreeSet<Digest>,
}

impl Before {
    /// What is there, with everything in it read: a pull replaces what is damaged.
    pub(super) fn of(bundle: Bundle) -> Result<Self, CliError> {
        let lock = bundle.matrix().ok().flatten().map(|matrix| matrix.lock);
        let damaged = bundle.layout.damaged().map_err(|error| unreadable(&error))?;
        Ok(Self { bundle, lock, damaged })
    }
}

/// An image that was found.
pub(super) struct Ready {
    /// As the lock lists it.
    pub(super) image: Image,
    /// What it is.
    pub(super) found: Found,
    /// The versions that need it.
    pub(super) versions: Vec<String>,
}

/// Looks all images up. One that leads to the same as before is taken from there.
pub(super) async fn all(stock: &Stock, registries: &Registries, before: Option<&Before>) -> Result<Vec<Ready>, CliError> {
    let before = before.and_then(|before| Some((before, before.lock.as_ref()?)));
    let before = before.filter(|(_, lock)| lock.platforms == stock.platforms());
    let each = stream::iter(&stock.images).map(|(_, (wanted, versions))| async move {
        let (image, found) = one(stock, registries, before, wanted).await?;
        let versions = versions.clone();
        Ok::<_, CliError>(Ready { image, found, versions })
    });
    let mut all: Vec<Ready> = each.buffer_unordered(AT_ONCE).try_collect().await?;
    all.sort_by(|a, b| a.image.reference.cmp(&b.image.reference));
    Ok(all)
}

/// Platforms as the lock lists them.
pub(super) fn names(platforms: &[Platform]) -> Vec<String> {
    let mut names: Vec<String> = platforms.iter().map(ToString::to_string).collect();
    names.sort_unstable();
    names.dedup();
    names
}

async fn one(
    stock: &Stock,
    registries: &Registries,
    before: Option<(&Before, &Lock)>,
    wanted: &Wanted,
) -> Result<(Image, Found), CliError> {
    let at = stock.place(wanted)?;
    let registry = registries.of(&at).await?;
    let image = |found: &Found| Image {
        reference: wanted.reference.clone(),
        digest: found.tree.root.digest.clone(),
        whole: found.whole.clone().or_else(|| stock.whole(wanted)),
        from: (at.to_string() != wanted.reference).then(|| at.to_string()),
    };
    if let Some((before, known)) = before.and_then(|(before, lock)| Some((before, lock.image(&wanted.reference)?))) {
        let seen = match at.moves() {
            true => retry(REGISTRY, || registry.head(&at))
                .await
                .map_err(|error| failed(&error.into()))?
                .and_then(|seen| seen.digest),
            false => at.digest.clone(),
        };
        if seen.is_some_and(|seen| seen == known.digest || Some(seen) == known.whole)
            && let Some(found) = in_bundle(before, known).await
        {
            return Ok((known.clone(), found));
        }
    }
    let found = find(&registry, &at, &stock.platforms).await.map_err(|error| failed(&error))?;
    Ok((image(&found), found))
}

/// What was pulled before, if all of it is there.
async fn in_bundle(before: &Before, known: &Image) -> Option<Found> {
    let descriptor = before
        .bundle
        .names
        .get(&known.reference)
        .filter(|descriptor| descriptor.digest == known.digest)?;
    let found = before.bundle.found(&known.reference, descriptor).await.ok()?;
    let complete = found
        .trees()
        .flat_map(|tree| tree.blobs.values())
        .all(|blob| before.bundle.layout.has(blob) && !before.damaged.contains(&blob.digest));
    complete.then_some(found)
}

/// What a reference is called without a tag.
pub(super) fn repository(reference: &str) -> &str {
    let path = reference.split('@').next().unwrap_or(reference);
    let end = path.rfind('/').map_or(0, |at| at + 1);
    path[end..].split_once(':').map_or(path, |(last, _)| &path[..end + last.len()])
}
