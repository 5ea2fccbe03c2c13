// SPDX-License-Identifier: Apache-2.0
//! `--resolve-digests` of charts and matrices: asks registries for the digests of images.

use super::args::{Registries as Args, Resolving};
use super::error::sentence;
use super::mirror::registries::{Registries, Substitutes};
use futures::{StreamExt as _, stream};
use std::collections::BTreeMap;
use vdo_api::types::Digest;
use vdo_core::chart::{self, Chart, ImageSource};
use vdo_oci::oci::Platform;
use vdo_oci::registry::Reference;
use vdo_oci::transfer::{AT_ONCE, TransferError, digest};

/// How registries are asked.
pub(super) struct Digests {
    registries: Registries,
    substitutes: Substitutes,
    platforms: Vec<Platform>,
}

/// What was found of images, by their references.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Resolved {
    /// The digests.
    pub(super) found: BTreeMap<String, Digest>,
    /// What keeps others from having one, each as a sentence.
    pub(super) missing: BTreeMap<String, String>,
}

impl Digests {
    pub(super) fn new(resolving: &Resolving, registries: &Args) -> Self {
        Self {
            registries: Registries::new(registries),
            substitutes: Substitutes(resolving.images_from.clone()),
            platforms: resolving.platform.clone(),
        }
    }

    /// Asks for each image once. A registry that cannot be reached for one image is not asked for its others.
    pub(super) async fn of(&self, references: impl IntoIterator<Item = String>) -> Resolved {
        let mut resolved = Resolved::default();
        let mut by_host: BTreeMap<String, BTreeMap<String, Reference>> = BTreeMap::new();
        for reference in references {
            match self.substitutes.source(&reference) {
                Ok(at) => drop(by_host.entry(at.host.clone()).or_default().insert(reference, at)),
                Err(error) => drop(resolved.missing.insert(reference, error.what)),
            }
        }
        for images in by_host.into_values() {
            let mut images = images.into_iter();
            let Some((reference, at)) = images.next() else { continue };
            let first = self.one(&at).await;
            let silent = first
                .as_ref()
                .err()
                .filter(|refusal| refusal.is_of_all)
                .map(|refusal| refusal.problem.clone());
            resolved.take(reference, first);
            if let Some(problem) = silent {
                resolved.missing.extend(images.map(|(reference, _)| {
                    (
                        reference.clone(),
                        format!("the registry was not asked for the digest of {reference}, because an earlier request failed: {problem}"),
                    )
                }));
                continue;
            }
            let asked = stream::iter(images).map(|(reference, at)| async move {
                let answer = self.one(&at).await;
                (reference, answer)
            });
            let answers: Vec<_> = asked.buffer_unordered(AT_ONCE).collect().await;
            answers.into_iter().for_each(|(reference, answer)| resolved.take(reference, answer));
        }
        resolved
    }

    async fn one(&self, at: &Reference) -> Result<Digest, Refusal> {
        let registry = self.registries.of(at).await.map_err(|error| Refusal {
            problem: error.what,
            is_of_all: true,
        })?;
        digest(&registry, at, &self.platforms).await.map_err(|error| Refusal {
            problem: sentence(&error),
            is_of_all: matches!(&error, TransferError::Registry(error) if error.may_pass()),
        })
    }
}

/// Why an image has no digest.
struct Refusal {
    problem: String,
    /// It holds for every image of the registry.
    is_of_all: bool,
}

impl Resolved {
    fn take(&mut self, reference: String, answer: Result<Digest, Refusal>) {
        match answer {
            Ok(digest) => drop(self.found.insert(reference, digest)),
            Err(refusal) => drop(self.missing.insert(reference, refusal.problem)),
        }
    }
}

/// What a chart's images are asked for by: where they are now, without those whose registry was shut down.
pub(super) fn open_images(chart: &Chart) -> impl Iterator<Item = (&str, &ImageSource)> {
    let is_open = |image: &&ImageSource| chart::unavailable(chart, std::slice::from_ref(&image.reference())).is_empty();
    chart.release.images.iter().filter_map(move |(name, image)| {
        let again = image.republished.as_deref();
        let open = [Some(image), again].into_iter().flatten().find(is_open)?;
        (!open.tag.is_empty()).then_some((name.as_str(), open))
    })
}
