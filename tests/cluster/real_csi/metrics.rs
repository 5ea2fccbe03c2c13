// SPDX-License-Identifier: Apache-2.0
//! What alerts and dashboard ask for of the driver, against what the running driver and its sidecars serve.

use super::text;
use crate::common::web::get;
use crate::common::{Bed, NS, PATIENCE};
use crate::monitoring::{Series, queried, scraped};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use vdo_testbed::{Probe, until};

const PREFIXES: [&str; 2] = ["vsphere_", "csi_sidecar_"];

/// Switches the metrics of the sidecars on, as the page says, and has volumes compared each minute: what is counted then would otherwise come
/// after half an hour.
pub async fn served(bed: &Bed) -> Result<()> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/monitoring.md"))?;
    let block = page
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .context("a block")?;
    let mut change: Value = vdo_api::yaml::load_value(block)?;
    let page = &mut change["spec"]["storageProvider"]["values"]["controller"];
    ensure!(page["sidecarMetrics"] == true, "{block}");
    page["fullSyncMinutes"] = 1.into();
    bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", change).await?;
    bed.until_ready().await?;
    Ok(())
}

/// A sample of a scrape: its series and its labels.
type Sample = (String, BTreeMap<String, String>);
/// What a query asks of a series: the label, whether it shall be equal, the value.
type Matcher = (String, bool, String);
/// A series and what is asked of it.
type Selector = (String, Vec<Matcher>);

/// After volumes have been made, attached, expanded and copied, and while the vCenter refuses to make and to list them: every series of alerts and
/// dashboard is served with its labels, and there is a sample that the selectors of each alert and panel fit.
pub async fn are_those_of_alerts_and_dashboard(bed: &Bed) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/monitoring");
    let read = |file: &str| std::fs::read_to_string(root.join(file));
    let mut asked = Series::new();
    for content in [read("alerts.yaml")?, read("dashboard.json")?] {
        for prefix in PREFIXES {
            for (series, labels) in queried(prefix, &content) {
                asked.entry(series).or_default().extend(labels);
            }
        }
    }
    let expressions = [alerts(&read("alerts.yaml")?)?, panels(&read("dashboard.json")?)?].concat();
    let selectors: BTreeSet<Selector> = expressions.iter().flat_map(|text| selectors(text)).collect();
    ensure!(asked.len() > 3 && selectors.len() > 4, "{asked:?} {selectors:?}");
    let monitor = vdo_api::yaml::load_value(&read("drivers.yaml")?)?;
    let endpoints = monitor["spec"]["endpoints"].as_array().context("endpoints")?;
    // Each minute volumes are compared.
    until("what alerts and dashboard ask for to be served", PATIENCE, async || {
        let (mut found, mut samples) = (Series::new(), Vec::new());
        for endpoint in endpoints {
            let content = get(address(bed, &text(endpoint, "/port")?).await?, "/metrics", "").await?;
            for prefix in PREFIXES {
                for (series, labels) in scraped(prefix, &content) {
                    found.entry(series).or_default().extend(labels);
                }
            }
            samples.extend(content.lines().filter_map(sample));
        }
        let lacks = |(series, labels): &(&String, &BTreeSet<String>)| !found.get(*series).is_some_and(|known| labels.is_subset(known));
        let lacking: Vec<_> = asked.iter().filter(lacks).collect();
        let unmet: Vec<_> = selectors
            .iter()
            .filter(|selector| !samples.iter().any(|sample| fits(sample, selector)))
            .collect();
        Ok(Probe::when(
            lacking.is_empty() && unmet.is_empty(),
            format!("{lacking:?} are not in {found:?}; no sample fits {unmet:?}"),
        ))
    })
    .await
}

/// The expressions of the rules.
fn alerts(content: &str) -> Result<Vec<String>> {
    let document: Value = vdo_api::yaml::load_value(content)?;
    let groups = document["spec"]["groups"].as_array().into_iter().flatten();
    let rules = groups.flat_map(|group| group["rules"].as_array().into_iter().flatten());
    Ok(rules.filter_map(|rule| rule["expr"].as_str().map(str::to_owned)).collect())
}

/// The expressions of the panels.
fn panels(content: &str) -> Result<Vec<String>> {
    let document: Value = serde_json::from_str(content)?;
    let panels = document["panels"].as_array().into_iter().flatten();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    Ok(targets.filter_map(|target| target["expr"].as_str().map(str::to_owned)).collect())
}

/// The sample on a line. An answer in pieces may cut a line.
fn sample(line: &str) -> Option<Sample> {
    let (name, rest) = line.split_once('{')?;
    let (labels, _) = rest.split_once('}')?;
    let labels = labels.split("\",").filter_map(|pair| pair.split_once("=\""));
    let labels = labels.map(|(label, value)| (label.to_owned(), value.trim_end_matches('"').to_owned()));
    PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix))
        .then(|| (name.to_owned(), labels.collect()))
}

/// The series that a query selects by values of labels.
fn selectors(query: &str) -> Vec<Selector> {
    let parts: Vec<&str> = query.split('{').collect();
    let pairs = parts.windows(2).filter_map(|pair| Some((pair[0], pair[1].split_once('}')?.0)));
    let selectors = pairs.map(|(before, inside)| {
        let name = before.rsplit(|letter: char| !(letter.is_alphanumeric() || letter == '_')).next();
        let matchers = inside.split("\",").filter_map(|pair| {
            let (label, value) = pair.split_once("=\"")?;
            let value = value.trim_end_matches('"').to_owned();
            Some((label.trim_end_matches('!').to_owned(), !label.ends_with('!'), value))
        });
        (name.unwrap_or_default().to_owned(), matchers.collect())
    });
    selectors
        .filter(|(name, _): &Selector| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        .collect()
}

fn fits((name, labels): &Sample, (asked, matchers): &Selector) -> bool {
    let holds = |(label, equal, value): &Matcher| labels.get(label).is_some_and(|found| (found == value) == *equal);
    name == asked && matchers.iter().all(holds)
}

#[test]
fn metrics_of_a_query_are_those_with_its_labels() {
    let line = "vsphere_x_count{optype=\"attach-volume\",status=\"fail\"} 3";
    let sample = sample(line).unwrap_or_default();
    for (query, expected) in [
        ("sum by (optype) (increase(vsphere_x_count{status=\"fail\"}[30m])) > 5", true),
        ("vsphere_x_count{optype=\"attach-volume\",status!=\"pass\"} > 0", true),
        ("vsphere_x_count{status=\"failed\"} > 0", false),
        ("vsphere_x_count{status!=\"fail\"} > 0", false),
        ("vsphere_x_count{gone=\"fail\"} > 0", false),
        ("vsphere_y_count{status=\"fail\"} > 0", false),
    ] {
        let all = selectors(query);
        assert!(all.len() == 1 && fits(&sample, &all[0]) == expected, "{query}: {all:?}");
    }
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
