// SPDX-License-Identifier: Apache-2.0
//! The JSON and YAML document of `vdoctl secrets list`: `Secrets`, without credentials.

use super::super::output::View;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::Serialize;

/// The state of the credentials of all connections.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SecretsView {
    pub secrets: Vec<SecretView>,
}

/// The state of the credentials of a connection. The credentials themselves are not included.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SecretView {
    pub connection: String,
    /// The Secret with the credentials.
    pub secret: String,
    /// The user name of the account; null if the operator has not read the Secret yet.
    pub user: Option<String>,
    /// `accepted`, `refused`, `unanswered` or `not tried`.
    pub state: Option<String>,
    /// Why the vCenter refused the credentials.
    pub reason: Option<String>,
    pub last_tried: Option<Time>,
}

impl View for SecretsView {
    const KIND: &'static str = "Secrets";

    fn names(&self) -> Option<Vec<String>> {
        Some(self.secrets.iter().map(|one| one.secret.clone()).collect())
    }
}
