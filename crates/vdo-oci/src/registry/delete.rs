//! Deletion of manifests.

use super::{Fault, Need, Reference, Registry, RegistryError};
use crate::web::Clock;
use reqwest::{Method, StatusCode};

impl Registry {
    /// Deletes what a reference leads to, by its digest with all tags that lead there; `false` when it is not there. Registries free the blobs
    /// later.
    ///
    /// # Errors
    /// When the registry does not do it: [`Fault::Keeps`] where it deletes nothing.
    pub async fn delete(&self, at: &Reference) -> Result<bool, RegistryError> {
        let deleted = async {
            let url = self.url(&at.repository, &format!("manifests/{}", at.pointer()))?;
            let request = self.request(Method::DELETE, url);
            let (clock, response) = self.ask((&at.repository, Need::Delete), request, Clock::start).await?;
            match response.status() {
                StatusCode::ACCEPTED | StatusCode::OK | StatusCode::NO_CONTENT => Ok(true),
                StatusCode::NOT_FOUND => Ok(false),
                code @ (StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED) => Err(Fault::Keeps(code)),
                _ => Err(self.refusal((clock, response)).await),
            }
        };
        deleted
            .await
            .map_err(|fault| RegistryError::new(format!("{at} cannot be deleted"), fault))
    }
}
