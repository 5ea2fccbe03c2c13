// SPDX-License-Identifier: Apache-2.0
//! Lists the referrers of a manifest (signatures, bills of materials), with the fallback tag `sha256-…` of registries without the API.

use super::pull::document;
use super::{Fault, Reference, Registry, RegistryError, retry};
use crate::oci::{Descriptor, Index, media};
use crate::web::WebError;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use vdo_api::retry::TRANSFER;
use vdo_api::types::Digest;

/// How often the list under a tag is written again when another writer was in between.
const TRIES: u32 = 3;

/// A list as registries give it: some write null for none, and some entries are not ours to understand.
#[derive(Deserialize)]
struct List {
    manifests: Option<Vec<Value>>,
}

impl List {
    fn entries(self) -> impl Iterator<Item = Descriptor> {
        let all = self.manifests.unwrap_or_default().into_iter();
        all.filter_map(|entry| serde_json::from_value(entry).ok())
    }
}

/// The tag under which clients list what belongs to a manifest.
fn tag_of(subject: &Digest) -> String {
    format!("sha256-{}", subject.hex())
}

impl Registry {
    /// What belongs to a manifest and is of this type.
    ///
    /// # Errors
    /// When it cannot be had. That there is none is no error.
    pub async fn referrers(&self, subject: &Reference, digest: &Digest, artifact_type: &str) -> Result<Vec<Descriptor>, RegistryError> {
        let mut all = self.list_referrers(subject, digest, Some(artifact_type)).await?;
        // A registry may leave the choice to its clients.
        all.retain(|entry| entry.artifact_type.as_deref() == Some(artifact_type));
        Ok(all)
    }

    /// Everything that belongs to a manifest.
    ///
    /// # Errors
    /// When it cannot be had. That there is nothing is no error.
    pub async fn all_referrers(&self, subject: &Reference, digest: &Digest) -> Result<Vec<Descriptor>, RegistryError> {
        self.list_referrers(subject, digest, None).await
    }

    async fn list_referrers(&self, subject: &Reference, digest: &Digest, kind: Option<&str>) -> Result<Vec<Descriptor>, RegistryError> {
        let repository = subject.repository.as_str();
        let failed = |fault| {
            RegistryError::new(
                format!("the referrers of {digest} in {}/{repository} cannot be listed", self.host()),
                fault,
            )
        };
        let url = self.url(repository, &format!("referrers/{digest}")).map(|mut url| {
            if let Some(kind) = kind {
                url.query_pairs_mut().append_pair("artifactType", kind);
            }
            url
        });
        let listed: Result<Vec<List>, Fault> = match url {
            Ok(url) => self.pages(repository, url).await,
            Err(fault) => Err(fault),
        };
        let lists = match listed {
            Ok(lists) => lists,
            Err(Fault::Web(WebError::Status { code, .. })) if !lists_referrers(code) => {
                match self.manifest(&subject.at_tag(&tag_of(digest))).await {
                    Ok(list) => vec![document(&list.bytes).map_err(failed)?],
                    Err(error) if error.is_missing() => Vec::new(),
                    Err(error) => return Err(error),
                }
            }
            Err(fault) => return Err(failed(fault)),
        };
        Ok(lists.into_iter().flat_map(List::entries).collect())
    }

    /// Lists a manifest under the tag of its subject, because the registry does not.
    pub(super) async fn list_by_tag(&self, at: &Reference, subject: &Digest, entry: Descriptor) -> Result<(), RegistryError> {
        let tag = at.at_tag(&tag_of(subject));
        let mut tries = 0;
        loop {
            let mut entries: Vec<Descriptor> = match retry(TRANSFER, || self.manifest(&tag)).await {
                Ok(list) => {
                    let read = document::<List>(&list.bytes);
                    let list = read.map_err(|fault| RegistryError::new(format!("{tag} cannot be used"), fault))?;
                    list.entries().collect()
                }
                Err(error) if error.is_missing() => Vec::new(),
                Err(error) => return Err(error),
            };
            if entries.iter().any(|known| known.digest == entry.digest) {
                return Ok(());
            }
            if tries == TRIES {
                return Err(RegistryError::new(
                    format!("{tag} cannot be written"),
                    Fault::NotRegistry("the server accepted the tag several times, but did not store the tag".into()),
                ));
            }
            tries += 1;
            entries.push(entry.clone());
            let bytes = serde_json::to_vec(&Index::new(entries));
            let bytes =
                bytes.map_err(|error| RegistryError::new(format!("{tag} cannot be written"), Fault::NotRegistry(error.to_string())))?;
            retry(TRANSFER, || self.put_document(&tag, media::INDEX, bytes.clone())).await?;
        }
    }
}

/// Whether an answer means that the registry knows the question.
fn lists_referrers(code: StatusCode) -> bool {
    !matches!(
        code,
        StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED
    )
}
