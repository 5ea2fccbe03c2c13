// SPDX-License-Identifier: Apache-2.0
//! Decides which failures of a registry cause a retry, and repeats a request; `vdo_api::retry` has the numbers and pauses.

use super::RegistryError;
use super::error::Fault;
use crate::web::WebError;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;
use vdo_api::retry::{self, Policy};

/// Sends a request, and again by this policy while the registry is busy or the connection breaks off.
///
/// # Errors
/// The last error.
pub async fn retry<T, F>(policy: Policy, mut ask: impl FnMut() -> F) -> Result<T, RegistryError>
where
    F: Future<Output = Result<T, RegistryError>>,
{
    let mut attempts = Attempts::new(policy);
    loop {
        match ask().await {
            Err(error) if attempts.goes_on(&error).await => {}
            result => return result,
        }
    }
}

impl RegistryError {
    /// Whether the same request may succeed later: the registry is busy, or the connection broke off.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self.fault() {
            Fault::Web(error) | Fault::Token { source: error, .. } => match error {
                WebError::Status { code, .. } => retry::may_pass(code.as_u16()),
                WebError::Asked(_) | WebError::TooSlow { .. } => true,
                _ => false,
            },
            _ => false,
        }
    }

    /// How long the registry asks to be left alone.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        match self.fault() {
            Fault::Web(WebError::Status { wait, .. })
            | Fault::Token {
                source: WebError::Status { wait, .. },
                ..
            } => *wait,
            _ => None,
        }
    }
}

/// Failures that are counted together.
#[derive(Debug)]
pub(crate) struct Attempts {
    policy: Policy,
    failures: u32,
}

impl Attempts {
    pub(crate) fn new(policy: Policy) -> Self {
        Self { policy, failures: 0 }
    }

    /// Waits after this error, if another attempt may end better. Whether there is to be one.
    pub(super) async fn goes_on(&mut self, error: &RegistryError) -> bool {
        error.may_pass() && self.wait(error.wait()).await
    }

    /// Waits after one more failure, as long as the registry asks for at least. Whether there is to be another attempt; if not, nothing is
    /// waited for.
    pub(crate) async fn wait(&mut self, asked: Option<Duration>) -> bool {
        self.failures = self.failures.saturating_add(1);
        // Uploads that fail together do not come back together.
        let seed = RandomState::new().hash_one(self.failures);
        let Some(pause) = self.policy.next(self.failures, asked, seed) else {
            return false;
        };
        tokio::time::sleep(pause).await;
        true
    }
}
