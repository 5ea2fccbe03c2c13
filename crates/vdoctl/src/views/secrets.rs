// SPDX-License-Identifier: Apache-2.0
//! The document of `vdoctl secrets list`.

use super::super::output::View;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::Serialize;

/// The credentials of the connections.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SecretsView {
    pub secrets: Vec<SecretView>,
}

/// The credentials of a connection, without them.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SecretView {
    pub connection: String,
    /// The Secret.
    pub secret: String,
    /// The account; null where the operator has not read it yet.
    pub user: Option<String>,
    /// `accepted`, `refused`, `unanswered` or `not tried`.
    pub state: Option<String>,
    /// Why it was refused.
    pub reason: Option<String>,
    pub last_tried: Option<Time>,
}

impl View for SecretsView {
    const KIND: &'static str = "Secrets";

    fn names(&self) -> Option<Vec<String>> {
        Some(self.secrets.iter().map(|one| one.secret.clone()).collect())
    }
}
