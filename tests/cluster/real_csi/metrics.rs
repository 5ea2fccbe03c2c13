//! What alerts and dashboard ask for of the driver, against what the running driver and its sidecars serve.

use super::text;
use crate::common::web::get;
use crate::common::{Bed, NS, PATIENCE};
use crate::monitoring::{Series, queried, scraped};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use vdo_testbed::{Probe, until};

const PREFIXES: [&str; 2] = ["vsphere_", "csi_sidecar_"];

/// Counted for the first time when the syncer has run for half an hour.
const LATER: [&str; 2] = ["vsphere_full_sync_ops_histogram", "vsphere_volume_health_gauge"];

/// Switches the metrics of the sidecars on, as the page says.
pub async fn served(bed: &Bed) -> Result<()> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/monitoring.md"))?;
    let block = page
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .context("a block")?;
    let change: Value = vdo_api::yaml::load_value(block)?;
    bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", change).await?;
    bed.until_ready().await?;
    Ok(())
}

/// After volumes have been made, attached, expanded and copied: the series with their labels.
pub async fn are_those_of_alerts_and_dashboard(bed: &Bed) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/monitoring");
    let mut asked = Series::new();
    for file in ["alerts.yaml", "dashboard.json"] {
        let content = std::fs::read_to_string(root.join(file))?;
        for prefix in PREFIXES {
            for (series, labels) in queried(prefix, &content) {
                asked.entry(series).or_default().extend(labels);
            }
        }
    }
    asked.retain(|series, _| !LATER.contains(&series.as_str()));
    ensure!(asked.len() > 2, "{asked:?}");
    let monitor = vdo_api::yaml::load_value(&std::fs::read_to_string(root.join("drivers.yaml"))?)?;
    let endpoints = monitor["spec"]["endpoints"].as_array().context("endpoints")?;
    until("what alerts and dashboard ask for to be served", PATIENCE, async || {
        let mut found = Series::new();
        for endpoint in endpoints {
            let content = get(address(bed, &text(endpoint, "/port")?).await?, "/metrics", "").await?;
            for prefix in PREFIXES {
                for (series, labels) in scraped(prefix, &content) {
                    found.entry(series).or_default().extend(labels);
                }
            }
        }
        let lacks = |(series, labels): &(&String, &std::collections::BTreeSet<String>)| {
            !found.get(*series).is_some_and(|known| labels.is_subset(known))
        };
        let lacking: Vec<_> = asked.iter().filter(lacks).collect();
        Ok(Probe::when(lacking.is_empty(), format!("{lacking:?} are not in {found:?}")))
    })
    .await
}

/// Where a port of the Service is: at the controller's pod.
async fn address(bed: &Bed, port: &str) -> Result<SocketAddr> {
    let namespace = "vmware-system-csi";
    let service = bed.get("v1", "Service", namespace, "vsphere-csi-controller").await?;
    let ports = service["spec"]["ports"].as_array().context("ports")?;
    let number = ports
        .iter()
        .find(|found| found["name"] == port)
        .with_context(|| format!("port {port}"))?["targetPort"]
        .as_u64();
    let pods = bed.list("v1", "Pod", "app=vsphere-csi-controller").await?;
    let pod = pods.first().context("a pod")?;
    let listed = pod["spec"]["containers"].as_array().into_iter().flatten();
    let listed = listed.flat_map(|container| container["ports"].as_array().into_iter().flatten());
    ensure!(
        listed.into_iter().any(|listed| listed["containerPort"].as_u64() == number),
        "no container has the port {number:?}"
    );
    let number = u16::try_from(number.context("a number")?)?;
    Ok(SocketAddr::new(text(pod, "/status/podIP")?.parse()?, number))
}
