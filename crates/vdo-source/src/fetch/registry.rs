// SPDX-License-Identifier: Apache-2.0
//! The source `oci://`: downloads a matrix index, its signatures and charts from an artifact of an OCI registry (effects).

use super::directory::{LOCK_LIMIT, SMALL_LIMIT};
use super::web::Web;
use super::{Access, AccessError, FetchError, Signed, SourceState, Validators};
use crate::signature::{Form, attached};
use std::fmt;
use std::path::Path;
use vdo_api::types::Digest;
use vdo_core::chart::archive::PACKED_LIMIT;
use vdo_core::matrix::INDEX_LIMIT;
use vdo_core::mirror_lock;
use vdo_oci::oci::{Descriptor, media};
use vdo_oci::registry::{Fault, Fetched, Keychain, Login, Options, Reference, Registry, RegistryError, layers};

/// The file of the index.
const INDEX: &str = "index.yaml";
/// As many signatures as are looked at of those that were attached to one manifest.
const SIGNATURES: usize = 16;

/// An artifact with an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistrySource(Reference);

impl fmt::Display for RegistrySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oci://{}", self.0)
    }
}

impl RegistrySource {
    /// The artifact at `oci://HOST/REPOSITORY:TAG` or `@sha256:…`.
    ///
    /// # Errors
    /// When the text names neither tag nor digest, or nothing in a registry.
    pub(super) fn at(text: &str) -> Result<Self, String> {
        let reference: Reference = text
            .parse()
            .map_err(|error: vdo_oci::registry::ParseReferenceError| error.to_string())?;
        match reference.tag.is_some() || reference.digest.is_some() {
            true => Ok(Self(reference)),
            false => Err(format!("{text} names no tag; write oci://HOST/REPOSITORY:TAG or @sha256:…")),
        }
    }

    /// What it names.
    #[must_use]
    pub fn reference(&self) -> &Reference {
        &self.0
    }

    /// What is there now. Where the registry says that nothing has changed, `known`.
    pub(super) async fn fetch(&self, access: &Access, known: Option<&SourceState>) -> Result<SourceState, FetchError> {
        let registry = registry(access, &self.0, true)?;
        if let Some((known, digest)) = known.and_then(|known| Some((known, known.validators.etag.as_ref()?))) {
            // A tag is a hint, and a digest cannot lead to anything else.
            let seen = match self.0.moves() {
                true => registry.head(&self.0).await?.and_then(|seen| seen.digest),
                false => self.0.digest.clone(),
            };
            if seen.is_some_and(|seen| seen.to_string() == *digest) {
                return Ok(known.clone());
            }
        }
        let found = registry.manifest(&self.0).await?;
        let files = layers(&self.0, &found, media::MATRIX)?;
        let file = |path: &str| files.iter().find(|(file, _)| file == path).map(|(_, layer)| layer);
        let read = async |layer: &Descriptor, limit| registry.blob_bytes(&self.0.repository, layer, limit).await;
        let index = file(INDEX).ok_or_else(|| {
            let fault = Fault::Kind {
                expected: media::MATRIX,
                found: format!("an artifact without the file {INDEX}"),
            };
            RegistryError::new(format!("{self} cannot be used"), fault)
        })?;
        let index = read(index, INDEX_LIMIT).await?;
        let beside = Form::ALL
            .iter()
            .find_map(|form| file(&form.file_of(Path::new(INDEX)).to_string_lossy()));
        let signature = match beside {
            Some(layer) => Some(read(layer, SMALL_LIMIT).await?),
            None => self.attached(&registry, &found).await?,
        };
        let lock = match file(mirror_lock::FILE) {
            Some(layer) => Some(read(layer, LOCK_LIMIT).await?),
            None => None,
        };
        Ok(SourceState {
            signed: Signed { index, signature, lock }.into(),
            validators: Validators {
                etag: Some(found.descriptor.digest.to_string()),
                modified: None,
            },
            good_for: None,
        })
    }

    /// A file of the artifact.
    pub(super) async fn beside(&self, access: &Access, name: &str, limit: usize) -> Result<Option<Vec<u8>>, FetchError> {
        let registry = registry(access, &self.0, true)?;
        let files = layers(&self.0, &registry.manifest(&self.0).await?, media::MATRIX)?;
        match files.iter().find(|(file, _)| file == name) {
            Some((_, layer)) => Ok(Some(registry.blob_bytes(&self.0.repository, layer, limit).await?)),
            None => Ok(None),
        }
    }

    /// What cosign has attached to the manifest.
    async fn attached(&self, registry: &Registry, subject: &Fetched) -> Result<Option<Vec<u8>>, FetchError> {
        let repository = &self.0.repository;
        let listed = registry.referrers(&self.0, &subject.descriptor.digest, media::BUNDLE).await?;
        let mut bundles = Vec::new();
        for entry in listed.iter().take(SIGNATURES) {
            let manifest = registry.manifest(&self.0.at_digest(&entry.digest)).await?.manifest()?;
            for layer in manifest.layers.iter().filter(|layer| layer.media_type == media::BUNDLE).take(1) {
                bundles.push(registry.blob_bytes(repository, layer, SMALL_LIMIT).await?);
            }
        }
        Ok((!bundles.is_empty()).then(|| attached(&subject.bytes, &bundles)))
    }

    /// A chart at a location of the index: a file beside it, or an https address of its own. `None` for another kind of location.
    pub(super) async fn chart(&self, access: &Access, location: &str, digest: &Digest) -> Option<Result<Vec<u8>, FetchError>> {
        if location.starts_with("https://") {
            let web = Web::at(location).ok()?;
            return web.chart(&access.authorities(), location, digest).await;
        }
        (!location.contains("://")).then_some(())?;
        // A file of the artifact is a blob with its own digest, so it is found whatever the tag leads to by now.
        Some(blob(access, &self.0, true, digest).await)
    }
}

/// A chart in a registry, at `oci://HOST/REPOSITORY:TAG`: an artifact of Helm, whose package is a blob with its own digest. `own` is the
/// registry that the credentials are for, if they are for one.
pub(super) async fn chart(access: &Access, own: Option<&Reference>, location: &str, digest: &Digest) -> Result<Vec<u8>, FetchError> {
    let reference: Reference = location.parse().map_err(|_| FetchError::NotFound {
        store: "an address in a registry".into(),
        locations: location.to_owned(),
    })?;
    let own = own.is_some_and(|own| own.host == reference.host);
    blob(access, &reference, own, digest).await
}

async fn blob(access: &Access, at: &Reference, own: bool, digest: &Digest) -> Result<Vec<u8>, FetchError> {
    let registry = registry(access, at, own)?;
    Ok(registry.blob_by_digest(&at.repository, digest, PACKED_LIMIT).await?)
}

/// A registry as these credentials let us ask it. A name and a password are for the registry of the source alone; a configuration of Docker names
/// its registries itself.
fn registry(access: &Access, reference: &Reference, own: bool) -> Result<Registry, FetchError> {
    let mut login = None;
    if own && access.authorization()?.is_some() {
        login = match (access.line("username"), access.line("password"), access.value("bearerToken")) {
            (Some(user), Some(password), _) => Some(Login::Basic {
                user: user.to_owned(),
                password: vdo_api::types::Secret::new(password),
            }),
            (_, _, Some(token)) => Some(Login::Token(token.clone())),
            _ => None,
        };
    }
    if login.is_none() {
        login = docker(access)?.and_then(|keychain| keychain.login(&reference.host, &reference.repository).cloned());
    }
    let options = Options {
        access: access.clone(),
        own,
        login: login.unwrap_or_default(),
        plain_http: false,
    };
    Ok(Registry::new(&reference.host, options)?)
}

fn docker(access: &Access) -> Result<Option<Keychain>, AccessError> {
    let named = [".dockerconfigjson", "config.json"]
        .into_iter()
        .find_map(|key| Some((key, access.value(key)?)));
    named.map(|(key, text)| Keychain::parse(key, text)).transpose()
}
