// SPDX-License-Identifier: Apache-2.0
//! What is measured, reported and logged of an installation: metrics against their page, dashboard and alerts; events; and the log
//! as an audit trail against the API server's own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use crate::common::{Bed, NS, PATIENCE};
use crate::fixture::{EMPTY, INSTALLED};
use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;
use vdo::controller::events::{EventRecorder, Recorded};
use vdo_core::status::Note;
use vdo_testbed::{Probe, until};

/// Series with their labels.
pub type Series = BTreeMap<String, BTreeSet<String>>;

async fn scrape(bed: &Bed) -> Result<String> {
    let text = bed.fetch("/metrics").await?;
    Ok(text.split_once("\r\n\r\n").context("no body")?.1.to_owned())
}

/// The name that a histogram's samples have in common.
fn family(name: &str) -> &str {
    ["_bucket", "_sum", "_count"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name)
}

fn label_names(text: &str) -> BTreeSet<String> {
    let parts = text.split(',').filter_map(|part| part.split(['=', '!', '<', '>']).next());
    parts
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty() && name != "le")
        .collect()
}

/// The series of a scrape whose names begin so.
pub fn scraped(prefix: &str, text: &str) -> Series {
    let mut found = Series::new();
    for line in text.lines().filter(|line| line.starts_with(prefix)) {
        // An answer in pieces may cut a line.
        let Some((name, rest)) = line.split_once(['{', ' ']) else {
            continue;
        };
        let labels = if line.contains('{') {
            rest.split('}').next().unwrap_or_default()
        } else {
            ""
        };
        found.entry(family(name).to_owned()).or_default().extend(label_names(labels));
    }
    found
}

fn documented(page: &str) -> Series {
    let ticked = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    page.lines()
        .filter(|line| line.starts_with("| `vdo_"))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').collect();
            (ticked(cells[1])[0].clone(), ticked(cells[3]).into_iter().collect())
        })
        .collect()
}

/// The series of all queries in a text, with the labels that stand in their braces.
pub fn queried(prefix: &str, text: &str) -> Series {
    let mut found = Series::new();
    for (at, _) in text.match_indices(prefix) {
        let rest = &text[at..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let labels = rest[end..]
            .strip_prefix('{')
            .and_then(|rest| rest.split('}').next())
            .unwrap_or_default();
        let labels = label_names(&labels.replace("\\\"", "\""));
        found.entry(family(&rest[..end]).to_owned()).or_default().extend(labels);
    }
    found
}

#[test]
fn metrics_match_their_page_dashboard_and_alerts() -> Result<()> {
    const STAGES: [&str; 8] = ["observe", "resolve", "fetch", "render", "plan", "apply", "report", "all"];
    let has_stage = |text: &str, stage: &str| text.contains(&format!("vdo_reconcile_duration_seconds_count{{stage=\"{stage}\"}}"));
    INSTALLED.run(async |bed| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let read = |path: &str| std::fs::read_to_string(root.join(path));
        // A repair, so that this process has gone through every stage, written something and recorded an event.
        let (namespace, account) = ("vmware-system-csi", "vsphere-csi-node");
        bed.delete("v1", "ServiceAccount", namespace, account).await?;
        // The volumes are counted from the second look at the vCenter on, when their cluster id is in use.
        let now = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": "now"}}});
        bed.merge("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc1", now).await?;
        let text = until("the repair to be measured", PATIENCE, async || {
            let text = scrape(bed).await?;
            let repaired = bed.get("v1", "ServiceAccount", namespace, account).await? != Value::Null;
            let measured = ["\nvdo_events_total{", "\nvdo_volumes{"].iter().all(|series| text.contains(series));
            let measured = measured && STAGES.iter().all(|stage| has_stage(&text, stage));
            Ok(if repaired && measured {
                Probe::Ready(text)
            } else {
                Probe::not_yet(text)
            })
        })
        .await?;
        let served = scraped("vdo_", &text);
        assert_eq!(served, documented(&read("docs/metrics.md")?), "docs/metrics.md and a scrape differ");
        let (dashboard, alerts) = (read("deploy/monitoring/dashboard.json")?, read("deploy/monitoring/alerts.yaml")?);
        let _: Value = serde_json::from_str(&dashboard)?;
        for (name, text) in [("dashboard.json", &dashboard), ("alerts.yaml", &alerts)] {
            for (series, labels) in queried("vdo_", text) {
                let known = served
                    .get(&series)
                    .with_context(|| format!("{name} asks for {series}, which is not served"))?;
                ensure!(labels.is_subset(known), "{name} asks {series} for {labels:?}; it has {known:?}");
            }
        }
        let shown: BTreeSet<String> = queried("vdo_", &dashboard).into_keys().collect();
        let served: BTreeSet<String> = served.into_keys().collect();
        assert_eq!(shown, served, "the dashboard shows every series");
        Ok(())
    })
}

/// Each write that the API server has seen is in the log with its object and the resource version that it led to, and the other
/// way round.
#[test]
#[ignore = "long"]
fn log_of_installation_names_every_write() -> Result<()> {
    EMPTY.run(async |bed| {
        bed.flags.clear();
        bed.lead_directly();
        bed.start_operator().await?;
        let mark = bed.cluster.audit().mark().await?;
        bed.apply_samples().await?;
        bed.until_ready().await?;
        let requests = bed.operator_requests(mark).await?;
        let seen = requests.only(|e| {
            let own = ["vdoconfigs", "vspherecloudconfigs", "events", "leases"];
            e.verb == "patch" && !e.tries() && e.code < 300 && !own.contains(&e.resource.as_str())
        });
        let text = std::fs::read_to_string(bed.operator_log())?;
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let applied: Vec<&Value> = lines
            .iter()
            .filter(|l| {
                l["message"] == "applied" && {
                    let object = l["object"].as_str().unwrap_or_default();
                    !object.starts_with("VDOConfig") && !object.starts_with("Lease")
                }
            })
            .collect();
        for line in &applied {
            let version = line["resource_version"].as_str().unwrap_or_default();
            ensure!(
                version.parse::<u64>().is_ok_and(|version| version > 0),
                "{line} has no resource version"
            );
        }
        assert_eq!(applied.len(), seen.len(), "writes in the log and in the audit log:\n{seen}");
        for driver in ["vsphere-cpi", "vsphere-csi"] {
            let chosen = lines
                .iter()
                .find(|l| l["message"] == "chosen" && l["driver"] == driver)
                .context("the choice is not in the log")?;
            ensure!(
                chosen["because"].as_str().is_some_and(|because| !because.is_empty()),
                "{chosen} does not say why"
            );
        }
        ensure!(
            lines.iter().any(|l| l["ready"] == "True" && l["reason"] == "Healthy"),
            "that it is ready is not in the log"
        );
        Ok(())
    })
}

#[test]
fn events_of_a_repeated_failure_are_one_series() -> Result<()> {
    INSTALLED.run(async |bed| {
        const NOTE: &str = "no answer, attempt";
        let config = bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
        let reference = serde_json::from_value(json!({
            "apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig", "name": "vdo", "namespace": NS, "uid": config["metadata"]["uid"],
        }))?;
        let announcer = EventRecorder::new(bed.cluster.client());
        let mut published = 0;
        for i in 0..1000 {
            let note = Note {
                warning: true,
                reason: "ApiUnavailable".into(),
                action: "Reconcile".into(),
                message: format!("{NOTE} {i}"),
            };
            published += usize::from(announcer.record(&reference, &note, None).await == Recorded::Published);
        }
        let events = bed.list("events.k8s.io/v1", "Event", "").await?;
        let of_test = |e: &&Value| e["reason"] == "ApiUnavailable" && e["note"].as_str().is_some_and(|note| note.starts_with(NOTE));
        let found = events.iter().filter(of_test).count();
        assert_eq!((published, found), (1, 1));
        // Another reason is another event.
        let other = Note {
            warning: false,
            reason: "Healthy".into(),
            action: "Reconcile".into(),
            message: "well".into(),
        };
        assert_eq!(announcer.record(&reference, &other, None).await, Recorded::Published);
        Ok(())
    })
}

/// Changes that come at the same time are carried out together, and the last one wins.
#[test]
#[ignore = "long"]
fn hundred_edits_are_carried_out_with_few_writes() -> Result<()> {
    INSTALLED.run(async |bed| {
        const LAST: &str = "the last of them";
        let mark = bed.cluster.audit().mark().await?;
        let edit = async |name: &str| {
            let change = json!({"spec": {"cloudProvider": {}, "storageProvider": {"clusterDistribution": name}}});
            bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", change).await
        };
        let names: Vec<String> = (1..100).map(|number| format!("edit {number}")).collect();
        let begun = Instant::now();
        // A few at a time: those of one moment are conflicts, which the API server repeats for half a minute.
        for few in names.chunks(5) {
            futures::future::try_join_all(few.iter().map(|name| edit(name))).await?;
        }
        edit(LAST).await?;
        let took = begun.elapsed();
        bed.until_ready().await?;
        let secret = bed.get("v1", "Secret", "vmware-system-csi", "vsphere-config-secret").await?;
        let file = STANDARD.decode(secret["data"]["csi-vsphere.conf"].as_str().context("the file")?)?;
        ensure!(String::from_utf8_lossy(&file).contains(LAST), "the last edit did not win");
        let requests = bed.operator_requests(mark).await?;
        let writes = requests.only(|e| e.verb == "patch" && !e.tries() && e.name == "vsphere-config-secret");
        println!(
            "100 edits in {:.1} s: the configuration was written {} times",
            took.as_secs_f64(),
            writes.len()
        );
        ensure!((1..=30).contains(&writes.len()), "{writes}");
        Ok(())
    })
}
