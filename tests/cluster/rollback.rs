// SPDX-License-Identifier: Apache-2.0
//! Changes that fail: they are rolled back to the last revision that worked, once, with everything as it was.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod asked;
mod halfway;
mod killed;
mod needs;

use crate::common::{Bed, NS, PATIENCE, condition};
use crate::fixture::INSTALLED;
use crate::install::{ensure_nothing_was_forbidden, until_at_rest};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vdo_testbed::{Probe, until};

const CSI: &str = "vsphere-csi";
const VDO: &str = "vdo.vmware.com/v1alpha1";
/// Images that can be had nowhere.
pub const NOWHERE: &str = "nowhere.invalid/images";

/// The revisions of the storage driver, the oldest first: number, version, outcome.
pub fn history(bed: &Bed) -> Result<Vec<(u64, String, String)>> {
    let (code, text, err) = bed.vdoctl(&["history", "csi", "-o", "json"])?;
    ensure!(code == 0, "{text}{err}");
    let all: Value = serde_json::from_str(&text)?;
    let revisions = all["drivers"][0]["revisions"].as_array().context("revisions")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |revision: &Value| {
        (
            revision["number"].as_u64().unwrap_or_default(),
            text(&revision["version"]),
            text(&revision["outcome"]),
        )
    };
    Ok(revisions.iter().map(of).collect())
}

/// The objects of the storage driver as they are meant to be: without what the API server and controllers add.
pub async fn objects(bed: &Bed) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for mut object in bed.owned().await? {
        if object["metadata"]["labels"]["vdo.vmware.com/driver"] != CSI {
            continue;
        }
        let name = crate::common::name(&object);
        let fields = object.as_object_mut().context("an object")?;
        fields.remove("status");
        let metadata = fields["metadata"].as_object_mut().context("metadata")?;
        for own in ["managedFields", "uid", "creationTimestamp", "resourceVersion", "generation"] {
            metadata.remove(own);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            // Counts the rollouts.
            annotations.remove("deprecated.daemonset.template.generation");
            annotations.remove("deployment.kubernetes.io/revision");
        }
        all.insert(name, object);
    }
    ensure!(all.len() > 7, "only {} objects", all.len());
    Ok(all)
}

pub fn ensure_same(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> Result<()> {
    let names: Vec<_> = before.keys().collect();
    ensure!(names == after.keys().collect::<Vec<_>>(), "{names:?}\n{:?}", after.keys());
    for (name, was) in before {
        ensure!(*was == after[name], "{name}:\n{was:#}\n{:#}", after[name]);
    }
    Ok(())
}

/// Waits until everything is back, and the driver healthy with it.
pub async fn until_rolled_back(bed: &Bed) -> Result<Value> {
    let found = until("the change to be rolled back", PATIENCE, async || {
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        let (rolled_back, csi) = (condition(&config, "RolledBack"), &config["status"]["drivers"][1]);
        let done = rolled_back["status"] == "True" && csi["ready"] == "True" && csi["running"] == csi["version"];
        Ok(match done {
            true => Probe::Ready(config),
            false => Probe::not_yet(format!("{}\n{csi}\n{rolled_back}", condition(&config, "Ready"))),
        })
    })
    .await?;
    until("the revision to be recorded as good", PATIENCE, async || {
        let all = history(bed)?;
        let newest = all.last().context("a revision")?;
        Ok(Probe::when(newest.2 == "Deployed", format!("{all:?}")))
    })
    .await?;
    Ok(found)
}

/// An upgrade whose images cannot be had, at each wave of its objects.
#[test]
#[ignore = "long"]
fn change_that_never_becomes_healthy_is_rolled_back_once_and_retried_when_asked() -> Result<()> {
    INSTALLED.run(async |bed| {
        until_at_rest(bed).await?;
        let mark = bed.cluster.audit().mark().await?;
        let before = objects(bed).await?;
        let first = history(bed)?.last().context("a revision")?.clone();
        ensure!(first.1 == "3.8.0" && first.2 == "Deployed", "{first:?}");

        let broken = json!({"progressDeadline": "10s", "cloudProvider": {}, "storageProvider": {"version": "3.6.3",
            "values": {"images": {"registry": NOWHERE}}}});
        bed.apply(&bed.config(broken)).await?;
        let config = until_rolled_back(bed).await?;
        let all = history(bed)?;
        let reported: Vec<(&str, &str)> = all
            .iter()
            .rev()
            .take(3)
            .map(|(_, version, outcome)| (version.as_str(), outcome.as_str()))
            .collect();
        assert_eq!(reported, [("3.8.0", "Deployed"), ("3.6.3", "Failed"), ("3.8.0", "Deployed")]);
        ensure_same(&before, &objects(bed).await?)?;
        let ready = bed.until_reason("Ready", "RolledBack").await?;
        let message = ready["message"].as_str().unwrap_or_default();
        println!("{message}");
        assert_eq!(ready["status"], "False");
        for words in [
            "CSI 3.6.3",
            "CSI 3.8.0) is installed again, with the current configuration",
            NOWHERE,
            "vdoctl upgrade retry",
        ] {
            ensure!(message.contains(words), "{words:?} is not in {message}");
        }
        assert_eq!(config["status"]["drivers"][1]["version"], "3.8.0");
        let (code, text, _) = bed.vdoctl(&["status"])?;
        let command = text.lines().any(|line| line.trim() == "vdoctl upgrade retry");
        ensure!(code == 1 && text.contains("RolledBack") && command, "{code}\n{text}");
        until("an event that reports that", PATIENCE, async || {
            let events = bed.list("events.k8s.io/v1", "Event", "").await?;
            Ok(Probe::when(
                events.iter().any(|event| event["reason"] == "RolledBack"),
                "there is none",
            ))
        })
        .await?;

        // A restart, and looking again, try nothing.
        bed.kill_operator();
        bed.start_operator().await?;
        until_at_rest(bed).await?;
        assert_eq!(history(bed)?, all);
        // Someone who asks is heard.
        let (code, text, err) = bed.vdoctl(&["upgrade", "retry"])?;
        ensure!(
            code == 0 && err.contains("the operator retries vsphere-csi 3.6.3"),
            "{code} {text}{err}"
        );
        until("another attempt", PATIENCE, async || {
            let newer = history(bed)?;
            Ok(Probe::when(newer.last() > all.last(), format!("{newer:?}")))
        })
        .await?;
        until_rolled_back(bed).await?;
        ensure_same(&before, &objects(bed).await?)?;

        bed.apply(&bed.config(json!({}))).await?;
        bed.until_ready().await?;
        let config = bed.get(VDO, "VDOConfig", NS, "vdo").await?;
        ensure!(condition(&config, "RolledBack") == Value::Null, "{config:#}");
        ensure_nothing_was_forbidden(bed, mark).await
    })
}
