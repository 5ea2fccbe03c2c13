// SPDX-License-Identifier: Apache-2.0
//! A cluster in which rights of the operator are taken away and given back.

use crate::common::{Bed, KINDS, NS, OPERATOR, PATIENCE, condition};
use crate::rights::granted::{Right, Roles};
use crate::rights::rules::{named, rules};
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use vdo_testbed::{Probe, until};

/// Looked at before the storage driver goes. That they are watched then only brings the news that the last one is gone.
pub const BEFORE_REMOVAL: [&str; 3] = ["persistentvolumes", "volumeattachments", "volumesnapshotcontents"];

/// How long the operator may take to say what it lacks.
pub const TELLING: Duration = Duration::from_secs(30);

/// From the return of a right to the end that was waited for, without being asked for.
const RECOVERY: Duration = Duration::from_secs(30);

/// The storage driver alone, which is all that a right of its own can keep from being made.
pub fn storage(webhook: bool) -> Value {
    let mut spec = everything(webhook);
    spec.as_object_mut().map(|spec| spec.remove("cloudProvider"));
    spec
}

/// Everything at once but the webhook, which the API server would have to ask before it stores a StorageClass.
pub fn everything(webhook: bool) -> Value {
    json!({"cloudProvider": {}, "storageProvider": {"webhook": webhook, "storageClasses": [{"name": "fast"}]}})
}

pub struct Lab<'a> {
    pub bed: &'a mut Bed,
    pub roles: Roles,
    /// The rights that are missing.
    missing: BTreeSet<Right>,
    asked: usize,
    /// What was not as it should be, of all rights.
    problems: Vec<String>,
    /// Every right that was taken away once.
    taken: BTreeSet<Right>,
}

impl<'a> Lab<'a> {
    pub fn new(bed: &'a mut Bed) -> Result<Self> {
        Ok(Self {
            bed,
            roles: Roles::read()?,
            missing: BTreeSet::new(),
            asked: 0,
            problems: Vec::new(),
            taken: BTreeSet::new(),
        })
    }

    /// Fails with what was not as it should be, and when one of the rights was left out that had to be taken away.
    pub fn finish(&self, planned: &[Right]) -> Result<()> {
        ensure!(self.problems.is_empty(), "{:#?}", self.problems);
        let untried: Vec<String> = planned
            .iter()
            .filter(|right| !self.taken.contains(right))
            .map(Right::to_string)
            .collect();
        ensure!(untried.is_empty(), "never taken away: {untried:#?}");
        Ok(())
    }

    /// Asks for everything, and waits until it is there.
    pub async fn install_everything(&self) -> Result<()> {
        for webhook in [false, true] {
            self.bed.apply(&self.bed.config(everything(webhook))).await?;
            self.bed
                .until_ready()
                .await
                .with_context(|| format!("with the webhook: {webhook}"))?;
        }
        Ok(())
    }

    /// Takes a right away, and then gives the one before back: at no time is nothing missing.
    pub async fn take(&mut self, right: Option<&Right>) -> Result<()> {
        self.take_and_ask(right, None).await
    }

    /// The same, with something else asked for while both are missing.
    pub async fn take_and_ask(&mut self, right: Option<&Right>, spec: Option<Value>) -> Result<()> {
        let wanted: BTreeSet<Right> = right.cloned().into_iter().collect();
        let both: BTreeSet<Right> = self.missing.union(&wanted).cloned().collect();
        let changes = !self.missing.is_empty() && both != self.missing;
        self.lack(&both).await?;
        // The operator asks for its rights one namespace after the other: a run that asked for the new one before it was taken, and for the
        // old one after it was given back, would miss neither.
        for _ in 0..if changes { 2 } else { 0 } {
            self.next_run().await?;
        }
        if let Some(spec) = spec {
            self.bed.apply(&self.bed.config(spec)).await?;
            // A run that began with the old specification may still end with it, so it is over before a right is back.
            if self.missing.iter().all(|right| right.resource != "vdoconfigs/status") {
                until("the operator to know what is asked for", PATIENCE, async || {
                    let config = self.bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await?;
                    let (seen, is) = (&config["status"]["observedGeneration"], &config["metadata"]["generation"]);
                    Ok(Probe::when(seen == is, format!("it knows generation {seen} of {is}")))
                })
                .await?;
            }
        }
        self.lack(&wanted).await
    }

    /// The objects of the cloud provider.
    pub async fn cloud_provider(&self) -> Result<Vec<Value>> {
        self.bed.until_condition("VsphereCloudConfig", "vc1", "Ready", "Healthy").await?;
        let mut spec = everything(false);
        spec["managementState"] = "Paused".into();
        self.bed.apply(&self.bed.config(spec)).await?;
        let (code, out, err) = self.bed.vdoctl(&["render", "-o", "json"])?;
        ensure!(code == 0, "{err}");
        let all: Value = serde_json::from_str(&out)?;
        let all = all.as_array().or(all["items"].as_array()).context("objects")?;
        let own = all
            .iter()
            .filter(|o| o["metadata"]["labels"]["vdo.vmware.com/driver"] == "vsphere-cpi");
        Ok(own.cloned().collect())
    }

    /// Has exactly these rights missing.
    pub async fn lack(&mut self, wanted: &BTreeSet<Right>) -> Result<()> {
        let before = std::mem::replace(&mut self.missing, wanted.clone());
        let kept = |held: &[Right], gone: &BTreeSet<Right>| -> Vec<Value> {
            let kept = held.iter().filter(|held| !gone.iter().any(|gone| held.covers(gone)));
            kept.map(Right::rule).collect()
        };
        for (document, held) in &self.roles.0 {
            let rules = kept(held, wanted);
            if rules != kept(held, &before) {
                let mut document = document.clone();
                document["rules"] = rules.into();
                self.bed.apply(&document).await?;
            }
        }
        for right in before.symmetric_difference(wanted) {
            let allowed = before.contains(right);
            until(&format!("{right} to be allowed: {allowed}"), PATIENCE, async || {
                Ok(Probe::when(self.is_allowed(right).await? == allowed, right))
            })
            .await?;
        }
        self.taken.extend(wanted.iter().cloned());
        Ok(())
    }

    /// Has the operator look, and waits until a run has ended; after the second of them one has begun since the first call.
    async fn next_run(&mut self) -> Result<()> {
        let before = self.bed.reconciles().await?;
        self.wake().await?;
        until("another run to end", PATIENCE, async || {
            let now = self.bed.reconciles().await?;
            Ok(Probe::when(now > before, format!("{now} runs have ended")))
        })
        .await
    }

    async fn is_allowed(&self, right: &Right) -> Result<bool> {
        let (resource, subresource) = right.resource.split_once('/').unwrap_or((&right.resource, ""));
        let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {
            "user": OPERATOR,
            "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{NS}"), "system:authenticated"],
            "resourceAttributes": {"namespace": right.namespace, "group": right.group, "resource": resource, "subresource": subresource,
                "verb": right.verb, "name": right.name},
        }}))?;
        let api: Api<SubjectAccessReview> = Api::all(self.bed.cluster.client());
        let answer = api.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// Has the operator look at once, as an administrator would.
    pub async fn wake(&mut self) -> Result<()> {
        self.asked += 1;
        let change = json!({"metadata": {"annotations": {"vdo.vmware.com/reconcile-at": self.asked.to_string()}}});
        self.bed.merge("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo", change).await
    }

    pub async fn config(&self) -> Result<Value> {
        self.bed.get("vdo.vmware.com/v1alpha1", "VDOConfig", NS, "vdo").await
    }

    /// Waits until the rule of this right is named, and no other; for a right that grants, any of a role. A right that both drivers need
    /// is named for each, perhaps once in the words of the API server.
    pub async fn named(&self, right: &Right) -> Result<()> {
        let what = format!("a condition that names the rule for {right}");
        until(&what, TELLING, async || {
            let config = self.config().await?;
            let ready = condition(&config, "Ready");
            let named = named(&config);
            // Snapshots and warnings are not needed: without a look at them the drivers run, and a condition of theirs shows that. Other
            // definitions are: a newer operator may have brought ours, and OpenShift may run the drivers itself.
            let needed = right.name.is_some() && !right.is_of_snapshots();
            let informs = matches!(right.resource.as_str(), "customresourcedefinitions" | "events");
            let stops = needed || !(informs && matches!(right.verb.as_str(), "list" | "watch"));
            let said = (ready["reason"] == "Forbidden") == stops && (stops || ready["status"] == "True");
            let one = match stops {
                true => rules(ready["message"].as_str().unwrap_or_default()).len(),
                false => named.len(),
            };
            let done = said && one == 1 && named.iter().all(|rule| right.is_in(rule));
            Ok(Probe::when(done, json!({"named": named, "ready": ready})))
        })
        .await
    }

    /// All objects of the drivers, by UID and specification.
    pub async fn owned(&self) -> Result<BTreeMap<String, String>> {
        let mut all = BTreeMap::new();
        let more = [
            ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
            ("storage.k8s.io/v1", "StorageClass"),
        ];
        for (api_version, kind) in KINDS.into_iter().chain(more) {
            for object in self
                .bed
                .list(api_version, kind, "app.kubernetes.io/managed-by=vdo,vdo.vmware.com/driver")
                .await?
            {
                let metadata = &object["metadata"];
                let content = json!([
                    metadata["uid"],
                    metadata["deletionTimestamp"],
                    object["spec"],
                    object["rules"],
                    object["data"]
                ]);
                all.insert(
                    format!("{kind} {}/{}", metadata["namespace"], metadata["name"]),
                    content.to_string(),
                );
            }
        }
        Ok(all)
    }

    /// Fails if anything of the drivers is not as it was.
    pub async fn untouched(&self, before: &BTreeMap<String, String>, when: &str) -> Result<()> {
        let now = self.owned().await?;
        let touched: Vec<&String> = before.keys().filter(|key| before.get(*key) != now.get(*key)).collect();
        ensure!(touched.is_empty(), "{when} these were touched: {touched:?}");
        Ok(())
    }

    /// Goes on with the next right: what is wrong is said of all at the end.
    pub fn note(&mut self, when: &str, right: &Right, found: Result<()>) {
        if let Err(error) = found {
            println!("{when} without the right to {right}: {error:#}");
            self.problems.push(format!("{when} without the right to {right}: {error:#}"));
        }
    }

    pub fn count(&self, what: &str, begun: Instant, count: usize) {
        println!("{what:15} {count:3} rights taken away, {:.0} s", begun.elapsed().as_secs_f64());
    }

    /// Waits until all is as it should be, no rule is named any more, without being asked for.
    pub async fn well_again(&self, since: Instant) -> Result<()> {
        self.bed.until_ready().await?;
        until("no rule to be named any more", PATIENCE, async || {
            let left = named(&self.config().await?);
            Ok(Probe::when(left.is_empty(), json!(left)))
        })
        .await?;
        ensure!(since.elapsed() < RECOVERY, "it took {:.1} s", since.elapsed().as_secs_f64());
        Ok(())
    }
}
