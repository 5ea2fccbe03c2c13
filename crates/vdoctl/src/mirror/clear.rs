//! `vdoctl mirror prune` in a registry: what this mirror has written there and does not need any more.
//!
//! What it has written is known from its matrix and from those that this one has replaced. Images are compared by their digests, in each
//! repository by itself; what another tag leads to stays.

use super::super::args::MirrorPrune as Args;
use super::super::output::document;
use super::super::{Answer, CliError, registry as login, style};
use super::narrow::narrow;
use super::remote::{Remote, remember, replaced};
use super::{Prefix, failed};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::retry::REGISTRY;
use vdo_api::types::{Digest, count};
use vdo_core::lock::{Lock, placed};
use vdo_oci::registry::{Reference, Registry, matrix_artifact, push_matrix, retry};
use vdo_oci::transfer::{Found, TransferError, find, signature_tag};

pub(super) async fn run(args: &Args) -> Result<Answer, CliError> {
    let prefix = Prefix::parse(&args.mirror)?;
    let at = prefix.matrix()?;
    let registry = login::open(&args.registry, &at).await?;
    let refused = |error| login::failed(&error);
    let remote = Remote::open(&registry, &at, &args.mirror).await?;
    let narrow = narrow(&args.select, &remote.matrix, |blob| remote.read(blob))?;
    if let Some(narrow) = narrow.as_ref().filter(|_| !args.dry_run) {
        // First: who follows the matrix chooses nothing that is going to be deleted.
        let next = matrix_artifact(&narrow.files).digest().map_err(refused)?;
        let before = remember(&registry, &at, &next).await?;
        let pushed = push_matrix(&registry, &at, &narrow.files, before.as_ref()).await;
        pushed.map_err(refused)?;
    }
    let replaced = replaced(&registry, &at).await.map_err(refused)?;
    let kept = narrow.as_ref().map_or(&remote.matrix.lock, |narrow| &narrow.lock);
    let written = replaced.iter().filter_map(|(lock, _)| lock.as_ref()).chain([&remote.matrix.lock]);
    let mut removed = Vec::new();
    let mut spared = Vec::new();
    for (repository, images) in unneeded(kept, written) {
        let place = prefix.at(&repository)?;
        let doomed = Doomed::of(&registry, &place, &images, &kept_in(kept, &repository)).await;
        let doomed = doomed.map_err(|error| failed(&error))?;
        for digest in &doomed.manifests {
            let at = place.at_digest(digest);
            if !args.dry_run {
                retry(REGISTRY, || registry.delete(&at))
                    .await
                    .map_err(|error| failed(&error.into()))?;
            }
        }
        removed.extend(doomed.images.into_iter().map(|digest| place.at_digest(&digest)));
        spared.extend(doomed.spared);
    }
    // Last, so that a prune that was interrupted finds again what it has to do.
    let current = registry.manifest(&at).await.map_err(refused)?.descriptor.digest;
    for (_, matrix) in replaced
        .iter()
        .filter(|(_, matrix)| !args.dry_run && matrix.digest.as_ref() != Some(&current))
    {
        registry.delete(matrix).await.map_err(refused)?;
    }
    answer(args, &removed, &spared)
}

fn answer(args: &Args, removed: &[Reference], spared: &[String]) -> Result<Answer, CliError> {
    let names: Vec<String> = removed.iter().map(ToString::to_string).collect();
    let done = if args.dry_run { "would be removed" } else { "removed" };
    Answer::formatted(
        args.output.or_table(),
        || {
            document(
                "MirrorPrune",
                json!({"dryRun": args.dry_run, "removedImages": names, "kept": spared}),
            )
        },
        || {
            let mut text: String = names.iter().map(|name| format!("  {name}\n")).collect();
            text.push_str(&format!("{} {done}: {}\n", style::good("✓"), count(names.len(), "image")));
            spared.iter().for_each(|note| text.push_str(&format!("  {note}\n")));
            if !names.is_empty() {
                text.push_str("  the registry frees their blobs when it collects its garbage\n");
            }
            text
        },
    )
}

/// The digests of images that were written and are not kept, by their repositories below the prefix, each with the tags it was written under.
fn unneeded<'a>(kept: &Lock, written: impl Iterator<Item = &'a Lock>) -> BTreeMap<String, BTreeMap<Digest, BTreeSet<String>>> {
    let mut all: BTreeMap<String, BTreeMap<Digest, BTreeSet<String>>> = BTreeMap::new();
    for image in written.flat_map(|lock| &lock.images) {
        let (repository, tag) = parts(&image.reference);
        if kept_in(kept, &repository).iter().all(|(digest, _)| *digest != image.digest) {
            let tags = all.entry(repository).or_default().entry(image.digest.clone()).or_default();
            tags.extend(tag);
        }
    }
    all
}

/// The images of a repository that stay, with their tags.
fn kept_in(kept: &Lock, repository: &str) -> Vec<(Digest, Option<String>)> {
    let images = kept.images.iter().map(|image| (parts(&image.reference), image));
    let of_repository = images.filter(|((own, _), _)| own == repository);
    of_repository.map(|((_, tag), image)| (image.digest.clone(), tag)).collect()
}

/// The repository below the prefix in which an image lies, and its tag.
fn parts(reference: &str) -> (String, Option<String>) {
    let placed = placed(reference);
    let repository = super::find::repository(&placed).to_owned();
    let tag = placed[repository.len()..]
        .strip_prefix(':')
        .map(|tag| tag.split('@').next().unwrap_or(tag));
    (repository, tag.map(str::to_owned))
}

/// What is going to be deleted in a repository.
#[derive(Default)]
struct Doomed {
    images: Vec<Digest>,
    /// Lists before what they name.
    manifests: Vec<Digest>,
    /// What stays, and why.
    spared: Vec<String>,
}

impl Doomed {
    async fn of(
        registry: &Registry,
        place: &Reference,
        images: &BTreeMap<Digest, BTreeSet<String>>,
        kept: &[(Digest, Option<String>)],
    ) -> Result<Self, TransferError> {
        let mut doomed = Self::default();
        let mut needed = BTreeSet::new();
        // Of an image that is not complete it is not known what it needs.
        for (digest, _) in kept {
            let image = find(registry, &place.at_digest(digest), &[]).await?;
            needed.extend(manifests(Some(&image)));
        }
        let mut found = Vec::new();
        for digest in images.keys() {
            if let Some(image) = look(registry, &place.at_digest(digest)).await? {
                found.push((digest, image));
            }
        }
        if found.is_empty() {
            return Ok(doomed);
        }
        // Tags that the mirror has not written.
        let own: BTreeSet<&String> = images
            .values()
            .flatten()
            .chain(kept.iter().filter_map(|(_, tag)| tag.as_ref()))
            .collect();
        let mut others = BTreeMap::new();
        for tag in registry
            .tags(&place.repository)
            .await?
            .into_iter()
            .filter(|tag| !own.contains(tag) && !tag.starts_with("sha256-"))
        {
            let tagged = place.at_tag(&tag);
            let seen = retry(REGISTRY, || registry.head(&tagged)).await?;
            if let Some(digest) = seen.and_then(|seen| seen.digest) {
                needed.extend(manifests(look(registry, &place.at_digest(&digest)).await?.as_ref()));
                others.insert(digest, tag);
            }
        }
        for (digest, image) in found {
            if let Some(tag) = others.get(digest) {
                doomed
                    .spared
                    .push(format!("{} stays: the tag {tag} leads to it", place.at_digest(digest)));
                continue;
            }
            doomed.images.push(digest.clone());
            doomed
                .manifests
                .extend(manifests(Some(&image)).into_iter().filter(|manifest| !needed.contains(manifest)));
            // Where a registry lists no referrers, clients do, under a tag.
            let list = place.at_tag(signature_tag(digest).trim_end_matches(".sig"));
            let seen = retry(REGISTRY, || registry.head(&list)).await?;
            doomed.manifests.extend(seen.and_then(|seen| seen.digest));
        }
        Ok(doomed)
    }
}

/// An image with what belongs to it, where it is there.
async fn look(registry: &Registry, at: &Reference) -> Result<Option<Found>, TransferError> {
    match find(registry, at, &[]).await {
        Ok(found) => Ok(Some(found)),
        Err(TransferError::Registry(error)) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Its manifests, those above first.
fn manifests(found: Option<&Found>) -> Vec<Digest> {
    let documents = found
        .into_iter()
        .flat_map(Found::trees)
        .flat_map(|tree| tree.documents.iter().rev());
    documents.map(|(descriptor, _)| descriptor.digest.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_core::lock::Image;

    fn lock(images: &[(&str, &[u8])]) -> Lock {
        let mut lock = Lock::of("embedded".into(), Digest::of(b"index"), jiff::Timestamp::UNIX_EPOCH);
        let image = |(reference, content): &(&str, &[u8])| Image {
            reference: (*reference).to_owned(),
            digest: Digest::of(content),
            whole: None,
            from: None,
        };
        lock.images = images.iter().map(image).collect();
        lock
    }

    #[test]
    fn images_that_were_written_and_are_not_kept_are_unneeded_in_their_repository() {
        let kept = lock(&[("a.example/x/y:2", b"2"), ("a.example/z:1", b"1"), ("a.example/x/y:same", b"3")]);
        let written = [
            kept.clone(),
            lock(&[
                ("a.example/x/y:1", b"1"),
                ("b.example/x/y:one", b"1"),
                ("a.example/x/y:2", b"2 before"),
                ("a.example/x/y:3", b"3"),
            ]),
            lock(&[(&format!("a.example/z@{}", Digest::of(b"0")), b"0")]),
        ];
        let mut found: Vec<String> = unneeded(&kept, written.iter())
            .into_iter()
            .flat_map(|(repository, images)| {
                let line = move |(digest, tags): (Digest, BTreeSet<String>)| {
                    format!("{repository} {} {}", digest.short(), Vec::from_iter(tags).join(","))
                };
                images.into_iter().map(line)
            })
            .collect();
        let mut expected = [
            format!("x/y {} 1,one", Digest::of(b"1").short()),
            format!("x/y {} 2", Digest::of(b"2 before").short()),
            format!("z {} ", Digest::of(b"0").short()),
        ];
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}
