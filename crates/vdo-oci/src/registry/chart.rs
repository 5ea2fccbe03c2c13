// SPDX-License-Identifier: Apache-2.0
//! Pushes and pulls Helm charts in registries, in the format of `helm push` and `helm pull`.

use super::{Fault, Reference, Registry, RegistryError};
use crate::oci::{Annotations, Descriptor, Manifest, media};
use hyper::body::Bytes;

/// The manifest of a package, with what a registry shows of the chart.
#[must_use]
pub fn chart_manifest(config: &[u8], package: &[u8], annotations: Annotations) -> Manifest {
    Manifest {
        annotations,
        ..Manifest::image(
            Descriptor::of(media::HELM_CONFIG, config),
            vec![Descriptor::of(media::HELM_CHART, package)],
        )
    }
}

/// Publishes a package under the tag of the reference; gives the manifest.
///
/// # Errors
/// When the registry does not take it.
pub async fn push_chart(
    registry: &Registry,
    to: &Reference,
    config: Vec<u8>,
    package: Vec<u8>,
    annotations: Annotations,
) -> Result<Descriptor, RegistryError> {
    let manifest = chart_manifest(&config, &package, annotations);
    for content in [config, package] {
        registry.put_blob(&to.repository, Bytes::from(content)).await?;
    }
    registry.put_manifest(to, &manifest).await
}

/// The package that a reference names, and its manifest. It has at most `limit` bytes.
///
/// # Errors
/// When it is not there or cannot be had, or is not a chart.
pub async fn pull_chart(registry: &Registry, from: &Reference, limit: usize) -> Result<(Descriptor, Vec<u8>), RegistryError> {
    let fetched = registry.manifest(from).await?;
    let manifest = fetched.manifest()?;
    let wrong = |found: String| {
        let fault = Fault::Kind {
            expected: "a Helm chart",
            found,
        };
        RegistryError::new(format!("{from} cannot be used"), fault)
    };
    if manifest.config.media_type != media::HELM_CONFIG {
        return Err(wrong(format!("an artifact of the type {:?}", manifest.config.media_type)));
    }
    let mut packages = manifest.layers.iter().filter(|layer| layer.media_type == media::HELM_CHART);
    let (Some(package), None) = (packages.next(), packages.next()) else {
        return Err(wrong("an artifact without a chart package or with several packages".into()));
    };
    let bytes = registry.blob_bytes(&from.repository, package, limit).await?;
    Ok((fetched.descriptor, bytes))
}
