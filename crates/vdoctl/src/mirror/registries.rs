// SPDX-License-Identifier: Apache-2.0
//! Opens each registry of a verb once, with its login, and replaces the registries of images (`--from`, `--images-from`).

use super::super::args::{Registries as Args, RegistryArgs};
use super::super::{CliError, Exit, registry};
use std::sync::{Mutex, PoisonError};
use vdo_core::chart::ImageSource;
use vdo_oci::registry::{Login, Reference, Registry};

/// Registries with the same login share their connections.
pub(crate) struct Registries {
    args: RegistryArgs,
    open: Mutex<Vec<(String, Login, Registry)>>,
}

impl Registries {
    pub(crate) fn new(args: &Args) -> Self {
        Self {
            args: args.clone().into(),
            open: Mutex::default(),
        }
    }

    /// The registry of a reference, with the login that is kept for it.
    pub(crate) async fn of(&self, reference: &Reference) -> Result<Registry, CliError> {
        let login = registry::login(&self.args, reference).await?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open.iter().find(|(host, known, _)| *host == reference.host && *known == login);
        if let Some((.., known)) = known {
            return Ok(known.clone());
        }
        let opened = registry::with(&self.args, reference, login.clone())?;
        open.push((reference.host.clone(), login, opened.clone()));
        Ok(opened)
    }
}

/// What begins with the first is pulled from the second. The longest beginning counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Substitutes(pub(crate) Vec<(String, String)>);

impl Substitutes {
    /// Where an image is pulled from. One without a registry is on Docker's.
    pub(crate) fn source(&self, image: &str) -> Result<Reference, CliError> {
        let parsed = ImageSource::parse(image);
        let full = match (parsed.registry.is_empty(), parsed.repository.contains('/')) {
            (false, _) => image.to_owned(),
            (true, true) => format!("docker.io/{image}"),
            (true, false) => format!("docker.io/library/{image}"),
        };
        let begins = |from: &str| {
            full.strip_prefix(from)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':', '@']))
        };
        let fitting = self.0.iter().filter(|(from, _)| begins(from)).max_by_key(|(from, _)| from.len());
        let found = match fitting {
            Some((from, to)) => format!("{to}{}", &full[from.len()..]),
            None => full,
        };
        found.parse().map_err(|error: vdo_oci::registry::ParseReferenceError| {
            CliError::new(
                Exit::Usage,
                format!("{image} cannot be pulled: {error}"),
                "Correct the chart, or --from.",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substitute_with_the_longest_beginning_counts_at_the_end_of_a_part() {
        let pairs = [
            ("registry.k8s.io", "mirror.example/k8s"),
            ("registry.k8s.io/csi", "mirror.example/csi"),
            ("docker.io", "mirror.example/hub"),
        ];
        let substitutes = Substitutes(pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect());
        for (image, expected) in [
            ("registry.k8s.io/sig-storage/x:v1", "mirror.example/k8s/sig-storage/x:v1"),
            ("registry.k8s.io/csi/driver:v1", "mirror.example/csi/driver:v1"),
            ("registry.k8s.io/csi-vsphere/driver:v1", "mirror.example/k8s/csi-vsphere/driver:v1"),
            ("registry.k8s.io.example/a:1", "registry.k8s.io.example/a:1"),
            ("busybox:1", "mirror.example/hub/library/busybox:1"),
            ("antrea/antrea:v2", "mirror.example/hub/antrea/antrea:v2"),
        ] {
            assert_eq!(substitutes.source(image).map(|found| found.to_string()).as_deref(), Ok(expected));
        }
    }
}
