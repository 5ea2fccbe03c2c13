// SPDX-License-Identifier: Apache-2.0
//! Detects the mirror registry of a driver's images (`images.registry`), if they come neither from the chart's nor a public registry.

use super::containers::{all, program};
use serde_json::Value;
use std::collections::BTreeMap;
use vdo_core::chart::ImageSource;
use vdo_core::installed::Image;

/// Registries from which the drivers are published. What comes from one of them was chosen by the author of the manifest.
const PUBLIC: [&str; 7] = [
    "registry.k8s.io",
    "k8s.gcr.io",
    "gcr.io",
    "quay.io",
    "ghcr.io",
    "projects.registry.vmware.com",
    "public.ecr.aws",
];

/// Where images are pulled from, if not from where the chart has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Images {
    /// A registry, with or without a path, that has all of them below the chart's paths.
    Mirror(String),
    /// A registry with other paths.
    Elsewhere(String),
}

/// Where the images of a pod come from; `None` where they come from a public registry, or from the chart's.
pub(super) fn of(live: &Value, base: &Value, sources: &BTreeMap<String, ImageSource>) -> Option<Images> {
    let mut mirrors = Vec::new();
    for container in all(live) {
        let Some(program) = program(container) else { continue };
        let reference = container["image"].as_str().unwrap_or_default();
        let image = Image::parse(reference)?;
        let first = image.path.split('/').next().unwrap_or_default();
        let desired = all(base).filter(|other| super::containers::program(other) == Some(program));
        let mut desired = desired.filter_map(|other| Image::parse(other["image"].as_str()?));
        if PUBLIC.contains(&first) || desired.any(|other| other.path == image.path) {
            continue;
        }
        let source = sources.get(program).or_else(|| sources.get(&format!("{program}Windows")));
        let prefix = source.and_then(|source| {
            let repositories = std::iter::once(source).chain(source.republished.as_deref());
            let mut below = repositories.map(|source| format!("/{}", source.repository));
            below.find_map(|path| image.path.strip_suffix(&path))
        });
        mirrors.push(prefix.map_or_else(
            || Images::Elsewhere(image.path.to_owned()),
            |prefix| Images::Mirror(prefix.to_owned()),
        ));
    }
    let first = mirrors.first()?.clone();
    Some(match (&first, mirrors.iter().all(|one| *one == first)) {
        (Images::Mirror(_), true) => first,
        (Images::Mirror(registry) | Images::Elsewhere(registry), _) => Images::Elsewhere(registry.clone()),
    })
}
