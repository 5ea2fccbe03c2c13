// SPDX-License-Identifier: Apache-2.0
//! `/metrics` with `--metrics-auth`: the API server says whose token it is and what it may.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, PATIENCE};
use crate::fixture::OPERATOR;
use anyhow::Result;
use serde_json::json;
use std::path::Path;
use vdo_testbed::{Probe, until};

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// Waits until a scrape with this header gets this answer.
async fn answered(bed: &Bed, path: &str, header: &str, status: &str, within: &str) -> Result<()> {
    until(&format!("{path} to answer {status}"), PATIENCE, async || {
        let text = bed.fetch_with(path, header).await?;
        let first = text.lines().next().unwrap_or_default().to_owned();
        Ok(Probe::when(first.contains(status) && text.contains(within), first))
    })
    .await
}

#[test]
#[ignore = "long"]
fn metrics_with_auth_are_shown_to_accounts_that_may_read_them() -> Result<()> {
    OPERATOR.flags(&[("metrics-auth", "true")]).run(async |bed| {
        bed.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "scraper", "namespace": "default"}}))
            .await?;
        let token = bed.cluster.service_account_token("default", "scraper").await?;
        let bearer = format!("Authorization: Bearer {token}\r\n");
        // Without the rights to ask, the operator shows nothing, and the probes answer.
        answered(bed, "/metrics", &bearer, "503", "").await?;
        answered(bed, "/healthz", "", "200", "ok").await?;
        bed.cluster
            .apply_file(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/monitoring/metrics-auth.yaml"))
            .await?;
        answered(bed, "/metrics", "", "401", "").await?;
        answered(bed, "/metrics", "Authorization: Bearer none\r\n", "401", "").await?;
        answered(bed, "/metrics", &bearer, "403", "").await?;
        bed.apply(
            &json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": "scraper"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "vdo-metrics-reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "scraper", "namespace": "default"}]}),
        )
        .await?;
        answered(bed, "/metrics", &bearer, "200", "vdo_").await
    })
}
