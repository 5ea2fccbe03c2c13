// SPDX-License-Identifier: Apache-2.0
//! The metrics of the real cloud provider, with the objects of `deploy/monitoring/cloud-provider.yaml`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use crate::common::{Bed, PATIENCE};
use crate::fixture::INSTALLED;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use vdo_testbed::{Probe, until};

/// What the page says there is.
const NAMED: [&str; 3] = [
    "node_controller_cloud_provider_taint_removal_delay_seconds",
    "rest_client_requests_total",
    "workqueue_depth",
];

const RBAC: &str = "rbac.authorization.k8s.io/v1";

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/monitoring")
}

/// Waits until `/metrics` of the cloud provider answers with this status; gives the content.
async fn answered(bed: &Bed, token: &str, status: u16) -> Result<String> {
    // The cloud provider makes its certificate itself, so that the ServiceMonitor cannot verify it either.
    let client = reqwest::Client::builder().danger_accept_invalid_certs(true).build()?;
    until(
        &format!("/metrics of the cloud provider to answer {status}"),
        PATIENCE,
        async || {
            let runs = bed.agent.runs();
            let Some(run) = runs.iter().find(|run| run.running) else {
                return Ok(Probe::not_yet(format!("{runs:?}")));
            };
            let address = format!("https://127.0.0.1:{}/metrics", run.secure_port);
            let answer = match client.get(address).bearer_auth(token).send().await {
                Ok(answer) => answer,
                Err(error) => return Ok(Probe::not_yet(error.to_string())),
            };
            let found = answer.status().as_u16();
            let content = answer.text().await?;
            Ok(if found == status {
                Probe::Ready(content)
            } else {
                Probe::not_yet(format!("{found}: {content}"))
            })
        },
    )
    .await
}

/// The token of an account that may do nothing yet.
async fn scraper(bed: &Bed) -> Result<String> {
    bed.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "cpi-scraper", "namespace": "default"}}))
        .await?;
    bed.cluster.service_account_token("default", "cpi-scraper").await
}

#[test]
#[ignore = "long"]
fn cloud_provider_shows_its_metrics_to_accounts_that_may_read_them() -> Result<()> {
    INSTALLED.run(async |bed| {
        let token = scraper(bed).await?;
        let objects = vdo_api::yaml::load_all(&std::fs::read_to_string(folder().join("cloud-provider.yaml"))?)?;
        // With upstream's roles the cloud provider cannot ask whose token a token is.
        answered(bed, &token, 401).await?;
        for object in objects.iter().filter(|object| object["kind"] != "ServiceMonitor") {
            bed.apply(object).await?;
        }
        answered(bed, &token, 403).await?;
        answered(bed, "none", 401).await?;
        bed.apply(
            &json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": "cpi-scraper"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": "vsphere-cloud-controller-manager-metrics-reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "cpi-scraper", "namespace": "default"}]}),
        )
        .await?;
        let content = answered(bed, &token, 200).await?;
        let page = std::fs::read_to_string(folder().join("../../docs/monitoring.md"))?;
        for series in NAMED {
            ensure!(page.contains(series), "{series} is not on the page");
            ensure!(content.contains(&format!("\n{series}")), "{series} is not in {content}");
        }
        selects_the_pods(bed, &objects).await
    })
}

/// The Service has the pods of the cloud provider, and the ServiceMonitor the Service.
async fn selects_the_pods(bed: &Bed, objects: &[Value]) -> Result<()> {
    let of = |kind: &str| objects.iter().find(|object| object["kind"] == kind).context(kind.to_owned());
    let (service, monitor) = (of("Service")?, of("ServiceMonitor")?);
    let set = bed
        .get("apps/v1", "DaemonSet", "kube-system", "vsphere-cloud-controller-manager")
        .await?;
    let labels = &set["spec"]["template"]["metadata"]["labels"];
    let selector = service["spec"]["selector"].as_object().context("a selector")?;
    ensure!(
        selector.iter().all(|(key, value)| labels[key] == *value),
        "{selector:?} is not in {labels}"
    );
    ensure!(
        monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"],
        "{monitor}"
    );
    ensure!(
        monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"],
        "{monitor}"
    );
    let account = set["spec"]["template"]["spec"]["serviceAccountName"].clone();
    ensure!(of("ClusterRoleBinding")?["subjects"][0]["name"] == account, "{account}");
    Ok(())
}
