//! The rights whose loss only the log can tell: nothing can be written down about it, or nothing that matters depends on it.

use crate::bed::{NS, PATIENCE, condition, logged};
use crate::blind::OWN_OBJECTS;
use crate::granted::Right;
use crate::lab::{BEFORE_REMOVAL, Lab, TELLING, everything};
use crate::rules::rules;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Instant;
use vdo_testbed::{Probe, TROUBLE, until};

const CSI: &str = "vmware-system-csi";

/// Why a right is not taken away, if there is a reason.
pub fn reason_not_to_try(right: &Right) -> Option<&'static str> {
    match (right.verb.as_str(), right.resource.as_str()) {
        ("patch", "events") => Some("the second event of a series comes five minutes after the first"),
        ("watch", resource) if BEFORE_REMOVAL.contains(&resource) => Some("it only brings the news that the last one is gone"),
        _ => None,
    }
}

/// A version that there is not, and one that does not fit.
fn wrong(version: &str) -> Value {
    json!({"cloudProvider": {}, "storageProvider": {"version": version, "storageClasses": [{"name": "fast"}]}})
}

impl Lab {
    /// Each is named in the log; what runs is not touched; and what was left undone is done when the right is back.
    pub async fn unheard(&mut self) -> Result<()> {
        let begun = Instant::now();
        let before = self.owned().await?;
        let mut count = self.own_objects().await?;
        count += self.statuses().await?;
        count += self.events().await?;
        count += self.lease().await?;
        count += self.last_words().await?;
        self.untouched(&before, "without rights of which only the log tells").await?;
        self.count("log", begun, count);
        Ok(())
    }

    fn rights_to(&self, verb: &str, resources: &[&str]) -> BTreeSet<Right> {
        let wanted = |right: &Right| right.verb == verb && resources.contains(&right.resource.as_str());
        self.all("vdo-operator").into_iter().filter(wanted).collect()
    }

    /// Takes rights away from the operator that runs. Only what it logs from now on counts.
    async fn told_without(&mut self, rights: &BTreeSet<Right>, provoke: impl AsyncFnOnce(&mut Self) -> Result<()>) -> Result<()> {
        ensure!(!rights.is_empty(), "there are no such rights");
        let known = std::fs::read_to_string(self.bed.operator_log())?.len();
        self.lack(rights).await?;
        provoke(self).await?;
        self.logs_rules(rights, known).await
    }

    /// Takes rights away from an operator that starts then.
    async fn told_at_start(&mut self, rights: &BTreeSet<Right>) -> Result<()> {
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
            let told: BTreeSet<String> = log[from.min(log.len())..].lines().flat_map(rules_of_line).collect();
            let others: Vec<&String> = told.iter().filter(|rule| !rights.iter().any(|right| right.is_in(rule))).collect();
            ensure!(others.is_empty(), "{others:?} are named without {wanted:?}");
            let all = rights.iter().all(|right| told.iter().any(|rule| right.is_in(rule)));
            Ok(Probe::when(all, json!(told)))
        })
        .await
    }

    /// Gives all back, and has the operator see something new that changes no object.
    async fn goes_on(&mut self) -> Result<()> {
        self.lack(&BTreeSet::new()).await?;
        let begun = Instant::now();
        let mut spec = everything(true);
        spec["conflicts"] = json!([{"kind": "ConfigMap", "path": "data.nothing", "policy": "Yield"}]);
        for spec in [spec, everything(true)] {
            self.bed.apply(&self.bed.config(spec)).await?;
            self.well_again(begun).await?;
        }
        Ok(())
    }

    /// Without its own objects it does not know what to do, nor whom to tell.
    async fn own_objects(&mut self) -> Result<usize> {
        let mut count = 0;
        for verb in ["list", "watch"] {
            let rights = self.rights_to(verb, &OWN_OBJECTS);
            self.told_at_start(&rights).await?;
            self.lack(&BTreeSet::new()).await?;
            logged(&self.bed.operator_log(), "ready").await?;
            self.goes_on().await?;
            count += rights.len();
        }
        Ok(count)
    }

    async fn statuses(&mut self) -> Result<usize> {
        let rights = self.rights_to("patch", &["vdoconfigs/status", "vspherecloudconfigs/status"]);
        self.told_without(&rights, async |lab| {
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
        self.goes_on().await?;
        Ok(rights.len())
    }

    async fn events(&mut self) -> Result<usize> {
        let told = async |lab: &Self| {
            let events = lab.bed.list("events.k8s.io/v1", "Event", "").await?;
            anyhow::Ok(events.iter().any(|event| event["reason"] == "IncompatiblePin"))
        };
        let rights = self.rights_to("create", &["events"]);
        self.told_without(&rights, async |lab| {
            lab.bed.apply(&lab.bed.config(wrong("3.0.0"))).await?;
            lab.bed.until_reason("Ready", "IncompatiblePin").await.map(|_| ())
        })
        .await?;
        ensure!(!told(self).await?, "an event was recorded without the right to");
        self.goes_on().await?;
        self.bed.apply(&self.bed.config(wrong("3.0.0"))).await?;
        until("the event that could not be recorded", PATIENCE, async || {
            Ok(Probe::when(told(self).await?, "none"))
        })
        .await?;
        self.goes_on().await?;
        Ok(rights.len())
    }

    /// Nothing is written by an operator that does not know that it is the one to write.
    async fn lease(&mut self) -> Result<usize> {
        let mut count = 0;
        for verb in ["create", "get", "update"] {
            let rights = self.rights_to(verb, &["leases"]);
            if verb == "create" {
                self.bed.kill_operator();
                self.bed
                    .delete("coordination.k8s.io/v1", "Lease", "kube-system", "vdo-operator")
                    .await?;
            }
            self.told_at_start(&rights).await?;
            self.lack(&BTreeSet::new()).await?;
            logged(&self.bed.operator_log(), "leading").await?;
            self.goes_on().await?;
            count += rights.len();
        }
        Ok(count)
    }

    /// The log of a container that crashed is a courtesy: all else is told without it.
    async fn last_words(&mut self) -> Result<usize> {
        let rights = self.rights_to("get", &["pods/log"]);
        let pods = self.bed.list("v1", "Pod", "app=vsphere-csi-controller").await?;
        let pod = pods[0]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.told_without(&rights, async |lab| {
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
        Ok(rights.len())
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
