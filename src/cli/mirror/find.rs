//! Every image of a selection, where it is now.

use super::super::CliError;
use super::bundle::Bundle;
use super::collect::Stock;
use super::failed;
use super::registries::Registries;
use crate::mirror::{Image, Lock, Wanted};
use crate::oci::Platform;
use crate::transfer::{AT_ONCE, Found, find, patiently};
use futures::{StreamExt, TryStreamExt, stream};

/// What was pulled before.
pub(super) struct Before {
    pub(super) bundle: Bundle,
    pub(super) lock: Lock,
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
pub(super) async fn all(
    stock: &Stock,
    registries: &Registries,
    platforms: &[Platform],
    before: Option<&Before>,
) -> Result<Vec<Ready>, CliError> {
    let before = before.filter(|before| before.lock.platforms == names(platforms));
    let each = stream::iter(&stock.images).map(|(_, (wanted, versions))| async move {
        let (image, found) = one(stock, registries, platforms, before, wanted).await?;
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
    platforms: &[Platform],
    before: Option<&Before>,
    wanted: &Wanted,
) -> Result<(Image, Found), CliError> {
    let mut at = stock.substitutes.source(&wanted.source)?;
    if let Some(digest) = &wanted.digest {
        at.digest = Some(digest.clone());
    }
    let registry = registries.of(&at).await?;
    let image = |found: &Found| Image {
        reference: wanted.reference.clone(),
        digest: found.tree.root.digest.clone(),
        whole: found.whole.clone(),
        from: (at.to_string() != wanted.reference).then(|| at.to_string()),
    };
    if let Some(known) = before.and_then(|before| before.lock.image(&wanted.reference).zip(Some(before))) {
        let (known, before) = known;
        let digest = known.whole.as_ref().unwrap_or(&known.digest);
        let seen = match at.moves() {
            true => patiently(async || registry.head(&at).await)
                .await
                .map_err(|error| failed(&error))?
                .and_then(|seen| seen.digest),
            false => at.digest.clone(),
        };
        if seen.as_ref() == Some(digest)
            && let Some(found) = in_bundle(before, known).await
        {
            return Ok((known.clone(), found));
        }
    }
    let found = find(&registry, &at, platforms).await.map_err(|error| failed(&error))?;
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
        .all(|blob| before.bundle.layout.has(blob));
    complete.then_some(found)
}

/// What a reference is called without a tag.
pub(super) fn repository(reference: &str) -> &str {
    let path = reference.split('@').next().unwrap_or(reference);
    let end = path.rfind('/').map_or(0, |at| at + 1);
    path[end..].split_once(':').map_or(path, |(last, _)| &path[..end + last.len()])
}
