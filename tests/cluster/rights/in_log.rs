// SPDX-License-Identifier: Apache-2.0
//! The rights whose loss only the log can report: nothing can be written down about it, or nothing that matters depends on it.

use crate::common::{NS, PATIENCE, condition, logged};
use crate::fixture::INSTALLED;
use crate::rights::blind::OWN_OBJECTS;
use crate::rights::granted::{Right, Roles};
use crate::rights::lab::{BEFORE_REMOVAL, Lab, TELLING};
use crate::rights::rules::rules;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Instant;
use vdo_testbed::{Probe, TROUBLE, until};

const CSI: &str = "vmware-system-csi";

/// Whether it is needed to install the snapshot controller, which comes where it is named, or to remove it. That the definitions are looked at is
/// another right.
fn is_of_the_snapshot_controller(right: &Right, verb: &str, resource: &str) -> bool {
    let is_written = matches!(verb, "create" | "patch" | "delete");
    let of_definitions = right.name.as_ref().is_some_and(|name| name.ends_with("snapshot.storage.k8s.io"));
    let of_objects = right.name.as_ref().is_some_and(|name| name.starts_with("snapshot-controller"));
    let is_counted = verb == "list" && right.group.ends_with("snapshot.storage.k8s.io") && !BEFORE_REMOVAL.contains(&resource);
    (is_written && of_definitions) || of_objects || is_counted
}

/// Why a right is not taken away, if there is a reason.
pub fn reason_not_to_try(right: &Right) -> Option<&'static str> {
    match (right.verb.as_str(), right.resource.as_str()) {
        ("get", "pods/log") if right.namespace.as_deref() != Some(CSI) => {
            Some("the real cloud provider runs, and does not crash on request")
        }
        ("delete", "configmaps") if right.namespace.as_deref() == Some(NS) => {
            Some("only what operators before this one kept there is deleted")
        }
        ("create", "subjectaccessreviews") => Some("it is asked only about a driver that another namespace has"),
        ("list", "secrets")
            if right.name.as_deref() == Some("vsphere-config-secret") && right.namespace.as_deref() == Some("kube-system") =>
        {
            Some("it is asked only before the first installation; see the test of cluster ids there")
        }
        ("list", "events") if right.namespace.is_some() => {
            Some("pods would have to be refused, and only the words for it would be missing")
        }
        ("patch", "events") => Some("the second event of a series comes five minutes after the first"),
        (verb, resource) if is_of_the_snapshot_controller(right, verb, resource) => Some("the driver is not asked for"),
        ("list" | "watch", "customresourcedefinitions") if right.name.is_none() => {
            Some("definitions of drivers are looked for where one that brings some is asked for")
        }
        (_, "poddisruptionbudgets") => Some("one control-plane node has one controller, which needs none"),
        (_, "volumesnapshotclasses") => Some("the kind is not served there"),
        ("watch", "persistentvolumeclaims") => Some("a claim is looked at when a warning is about it"),
        ("watch", resource) if BEFORE_REMOVAL.contains(&resource) => Some("it only brings the news that the last one is gone"),
        _ => None,
    }
}

/// A version that does not exist, or one that does not fit.
fn wrong(version: &str) -> Value {
    json!({"cloudProvider": {}, "storageProvider": {"version": version}})
}

/// Rights that are taken away together.
#[derive(Clone, Copy, Debug)]
pub enum Case {
    /// To list or to watch the operator's own objects.
    OwnObjects(&'static str),
    Statuses,
    Events,
    /// A verb on the Lease.
    Lease(&'static str),
    LastWords,
    /// A verb on the pods that are tried before a change.
    TriedPods(&'static str),
}

pub const CASES: [Case; 10] = [
    Case::OwnObjects("list"),
    Case::OwnObjects("watch"),
    Case::Statuses,
    Case::Events,
    Case::Lease("create"),
    Case::Lease("get"),
    Case::Lease("update"),
    Case::LastWords,
    Case::TriedPods("create"),
    Case::TriedPods("patch"),
];

impl Case {
    pub fn rights(self, roles: &Roles) -> BTreeSet<Right> {
        let (verb, resources) = match self {
            Self::OwnObjects(verb) => (verb, &OWN_OBJECTS[..]),
            Self::Statuses => ("patch", &["vdoconfigs/status", "vspherecloudconfigs/status"][..]),
            Self::Events => ("create", &["events"][..]),
            Self::Lease(verb) => (verb, &["leases"][..]),
            Self::LastWords => ("get", &["pods/log"][..]),
            Self::TriedPods(verb) => (verb, &["pods"][..]),
        };
        let wanted =
            |right: &Right| right.verb == verb && resources.contains(&right.resource.as_str()) && reason_not_to_try(right).is_none();
        roles.all().into_iter().filter(wanted).collect()
    }
}

/// Each is named in the log; what runs is not touched; and what was left undone is done when the right is back.
#[test]
#[ignore = "long"]
fn loss_that_only_the_log_reports_is_named_there_and_made_up_for() -> Result<()> {
    const COUNT: usize = 1;
    INSTALLED.run(async |bed| {
        // Events and back-off of before are not known to a new process.
        bed.kill_operator();
        bed.start_operator().await?;
        let mut lab = Lab::new(bed)?;
        let (begun, before) = (Instant::now(), lab.owned().await?);
        let mut planned = Vec::new();
        for case in super::some("log", &CASES, COUNT) {
            println!("{case:?}");
            let rights = case.rights(&lab.roles);
            match case {
                Case::OwnObjects(_) => lab.own_objects(&rights).await,
                Case::Statuses => lab.statuses(&rights).await,
                Case::Events => lab.events(&rights).await,
                Case::Lease(verb) => lab.lease(verb, &rights).await,
                Case::LastWords => lab.last_words(&rights).await,
                Case::TriedPods(_) => lab.tried_pods(&rights).await,
            }
            .with_context(|| format!("{case:?}"))?;
            planned.extend(rights);
        }
        lab.untouched(&before, "without rights whose loss only the log reports").await?;
        lab.count("log", begun, planned.len());
        lab.finish(&planned)
    })
}

impl Lab<'_> {
    /// Takes rights away from the operator that runs. Only what it logs from now on counts.
    async fn named_without(&mut self, rights: &BTreeSet<Right>, provoke: impl AsyncFnOnce(&mut Self) -> Result<()>) -> Result<()> {
        ensure!(!rights.is_empty(), "there are no such rights");
        let known = std::fs::read_to_string(self.bed.operator_log())?.len();
        self.lack(rights).await?;
        provoke(self).await?;
        self.logs_rules(rights, known).await
    }

    /// Takes rights away from an operator that starts then.
    async fn named_at_start(&mut self, rights: &BTreeSet<Right>) -> Result<()> {
        ensure!(!rights.is_empty(), "there are no such rights");
        self.bed.kill_operator();
        self.lack(rights).await?;
        self.bed.operator = Some(self.bed.launch_operator("vdo-operator-0")?);
        self.logs_rules(rights, 0).await
    }

    /// Waits until each of these rights is named in the log from this byte on, and checks that no other is.
    async fn logs_rules(&self, rights: &BTreeSet<Right>, from: usize) -> Result<()> {
        let wanted: Vec<String> = rights.iter().map(Right::to_string).collect();
        until(&format!("the log to name the rules for {wanted:?}"), TELLING, async || {
            let log = std::fs::read_to_string(self.bed.operator_log()).unwrap_or_default();
            let named: BTreeSet<String> = log[from.min(log.len())..].lines().flat_map(rules_of_line).collect();
            let others: Vec<&String> = named.iter().filter(|rule| !rights.iter().any(|right| right.is_in(rule))).collect();
            ensure!(others.is_empty(), "{others:?} are named without {wanted:?}");
            let all = rights.iter().all(|right| named.iter().any(|rule| right.is_in(rule)));
            Ok(Probe::when(all, json!(named)))
        })
        .await
    }

    /// Gives all back, and has the operator see something new that changes no object.
    async fn goes_on(&mut self) -> Result<()> {
        self.lack(&BTreeSet::new()).await?;
        let begun = Instant::now();
        let new = json!({"conflicts": [{"kind": "ConfigMap", "path": "data.nothing", "policy": "Yield"}]});
        for spec in [new, json!({})] {
            self.bed.apply(&self.bed.config(spec)).await?;
            self.well_again(begun).await?;
        }
        Ok(())
    }

    /// Without its own objects it knows neither what to do nor where to report.
    async fn own_objects(&mut self, rights: &BTreeSet<Right>) -> Result<()> {
        self.named_at_start(rights).await?;
        self.lack(&BTreeSet::new()).await?;
        logged(&self.bed.operator_log(), "ready").await?;
        self.goes_on().await
    }

    async fn statuses(&mut self, rights: &BTreeSet<Right>) -> Result<()> {
        self.named_without(rights, async |lab| {
            lab.bed.apply(&lab.bed.connection("vc2")).await?;
            lab.bed.apply(&lab.bed.config(wrong("9.9.9"))).await
        })
        .await?;
        self.lack(&BTreeSet::new()).await?;
        self.bed.until_reason("Ready", "UnknownVersion").await?;
        until("the status of the second connection", PATIENCE, async || {
            let connection = self.bed.get("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc2").await?;
            Ok(Probe::when(connection["status"]["observedGeneration"] == 1, &connection["status"]))
        })
        .await?;
        self.bed.delete("vdo.vmware.com/v1alpha1", "VsphereCloudConfig", NS, "vc2").await?;
        self.goes_on().await
    }

    async fn events(&mut self, rights: &BTreeSet<Right>) -> Result<()> {
        let recorded = async |lab: &Self| {
            let events = lab.bed.list("events.k8s.io/v1", "Event", "").await?;
            let of_reason = events.iter().filter(|event| event["reason"] == "IncompatiblePin");
            anyhow::Ok(of_reason.map(|event| event["metadata"]["uid"].to_string()).collect::<BTreeSet<_>>())
        };
        let before = recorded(self).await?;
        self.named_without(rights, async |lab| {
            lab.bed.apply(&lab.bed.config(wrong("3.0.0"))).await?;
            lab.bed.until_reason("Ready", "IncompatiblePin").await.map(|_| ())
        })
        .await?;
        ensure!(recorded(self).await? == before, "an event was recorded without the right to");
        self.goes_on().await?;
        self.bed.apply(&self.bed.config(wrong("3.0.0"))).await?;
        until("the event that could not be recorded", PATIENCE, async || {
            let now = recorded(self).await?;
            Ok(Probe::when(!now.is_subset(&before), "none"))
        })
        .await?;
        self.goes_on().await
    }

    /// Nothing is written by an operator that does not know that it is the one to write.
    async fn lease(&mut self, verb: &str, rights: &BTreeSet<Right>) -> Result<()> {
        if verb == "create" {
            self.bed.kill_operator();
            self.bed
                .delete("coordination.k8s.io/v1", "Lease", "kube-system", "vdo-operator")
                .await?;
        }
        self.named_at_start(rights).await?;
        self.lack(&BTreeSet::new()).await?;
        logged(&self.bed.operator_log(), "leading").await?;
        self.goes_on().await
    }

    /// The log of a container that crashed is a courtesy: all else is reported without it.
    async fn last_words(&mut self, rights: &BTreeSet<Right>) -> Result<()> {
        let pods = self.bed.list("v1", "Pod", "app=vsphere-csi-controller").await?;
        let pod = pods[0]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.named_without(rights, async |lab| {
            let change = json!({"metadata": {"annotations": {TROUBLE: "crash"}}});
            lab.bed.merge("v1", "Pod", CSI, &pod, change).await
        })
        .await?;
        let found = self.bed.until_reason("StorageReady", "PodsFailing").await?;
        ensure!(found["message"].as_str().is_some_and(|m| m.contains("CrashLoopBackOff")), "{found}");
        self.lack(&BTreeSet::new()).await?;
        self.bed.delete("v1", "Pod", CSI, &pod).await?;
        self.bed.until_ready().await?;
        ensure!(
            condition(&self.config().await?, "StorageReady")["status"] == "True",
            "it is still failing"
        );
        Ok(())
    }

    /// What would be said of a pod comes later then, from its controller; the change itself is made.
    async fn tried_pods(&mut self, rights: &BTreeSet<Right>) -> Result<()> {
        // A process that knows of the loss tries no more pods for a while.
        self.bed.kill_operator();
        self.bed.start_operator().await?;
        self.named_without(rights, async |lab| {
            let of = |level: Value| json!({"values": {"logLevel": level}});
            let both = json!({"cloudProvider": of(6.into()), "storageProvider": of("DEVELOPMENT".into())});
            lab.bed.apply(&lab.bed.config(both)).await?;
            lab.bed.until_ready().await.map(|_| ())
        })
        .await?;
        self.goes_on().await
    }
}

/// The rules that a line of the log names, in whichever field.
fn rules_of_line(line: &str) -> Vec<String> {
    let fields: Value = serde_json::from_str(line).unwrap_or_default();
    let texts = fields
        .as_object()
        .into_iter()
        .flat_map(|map| map.values().filter_map(Value::as_str));
    texts.flat_map(rules).collect()
}
