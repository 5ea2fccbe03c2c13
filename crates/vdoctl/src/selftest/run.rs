// SPDX-License-Identifier: Apache-2.0
//! Carries out the steps of a selftest: creates the objects of a step, reads them until the step is judged, and records the result.

use super::super::args::Global;
use super::super::context::Context;
use super::super::progress::{Mark, Progress};
use super::super::style::faint;
use super::super::views::selftest::StepView;
use super::super::{CliError, Exit, doctor};
use super::objects::{LARGER, Place, SIZE, SNAPSHOTS, Setting, Task, attachment_name};
use super::steps::{Before, ClaimSeen, Known, Outcome, PodSeen, Seen, Step, Verdict, judge, skipped};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use strum::IntoEnumIterator as _;
use tokio::time::{Instant, sleep};
use vdo::cluster::{ClusterError, Select, Watch, get, list};
use vdo_api::types::{Later as _, ObjectId};
use vdo_core::manifest::Object;
use vdo_core::volume_diagnosis::Finding;

const PACE: Duration = Duration::from_secs(1);
/// How long the driver and the kubelet may take for a step.
pub(super) const STEP: Duration = Duration::from_secs(300);

/// A run.
pub(super) struct Run<'a> {
    pub context: &'a Context,
    pub global: &'a Global,
    pub setting: &'a Setting,
    pub driver: &'a str,
    pub timeout: Duration,
    /// What became of the steps.
    pub steps: Vec<StepView>,
}

impl Run<'_> {
    /// All steps in one place but the last.
    pub(super) async fn place(&mut self, place: &Place, known: &Known, progress: &mut Progress) {
        let mut done = Vec::new();
        let mut before = Before::default();
        for step in Step::iter().filter(|step| *step != Step::Delete) {
            let (began, skip) = (Instant::now(), skipped(step, known, &done));
            let (result, message) = match skip {
                Some(why) => (Outcome::Skipped, why),
                None => match self.step(step, place, known, &mut before, progress).await {
                    Ok(message) => (Outcome::Passed, message),
                    Err(message) => (Outcome::Failed, message),
                },
            };
            done.push((step, result));
            let findings = match result {
                Outcome::Failed => self.findings().await,
                _ => Vec::new(),
            };
            self.note((step, place.zone()), result, (began, message), findings, progress);
        }
    }

    /// Notes what became of a step, and shows it.
    pub(super) fn note(
        &mut self,
        (step, zone): (Step, String),
        result: Outcome,
        (began, message): (Instant, String),
        findings: Vec<Finding>,
        progress: &mut Progress,
    ) {
        let view = StepView {
            step,
            zone,
            result,
            milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            message,
            findings,
        };
        let mark = match result {
            Outcome::Passed => Mark::Done,
            Outcome::Failed => Mark::Failed,
            Outcome::Skipped => Mark::Note,
        };
        progress.step(mark, &shown(&view));
        self.steps.push(view);
    }

    async fn step(&self, step: Step, place: &Place, known: &Known, before: &mut Before, progress: &mut Progress) -> Result<String, String> {
        let end = Instant::now().later(self.timeout);
        self.begin(step, place, known, before).await.map_err(|error| whole(&error))?;
        loop {
            let waits = match self.look(step, place).await {
                Ok(seen) => match judge(step, &seen, before) {
                    Verdict::Passed(message) => {
                        remember(step, &seen, before);
                        return Ok(message);
                    }
                    Verdict::Failed(message) => return Err(message),
                    Verdict::Waits(what) => what,
                },
                // The API server may come back.
                Err(error) if error.exit == Exit::Cluster => whole(&error),
                Err(error) => return Err(whole(&error)),
            };
            if Instant::now() >= end {
                return Err(format!("not done within {} s: {waits}", self.timeout.as_secs()));
            }
            progress.waiting(&[format!("{}: {waits}", step.name())]);
            sleep(PACE).await;
        }
    }

    async fn begin(&self, step: Step, place: &Place, known: &Known, before: &Before) -> Result<(), CliError> {
        let (setting, data) = (self.setting, place.named("data"));
        match step {
            Step::Claim => {
                self.apply(setting.claim(&data, SIZE, None)).await?;
                // Where the class waits for it, the volume is made for this pod.
                self.apply(setting.pod(&place.named("writer"), &data, place, Task::Write)).await
            }
            Step::Attach | Step::Write | Step::Delete => Ok(()),
            Step::Expand => {
                let id = ObjectId::new("", "PersistentVolumeClaim", &setting.namespace, &data);
                let larger = json!({"spec": {"resources": {"requests": {"storage": LARGER}}}});
                self.context.ports.writer.merge("v1", &id, &larger, false).await?;
                Ok(())
            }
            Step::Snapshot => {
                let class = known.snapshots.as_deref().unwrap_or_default();
                self.apply(setting.snapshot(&place.named("snapshot"), class, &data)).await
            }
            Step::Restore => {
                let (claim, size) = (place.named("restored"), if before.grown { LARGER } else { SIZE });
                self.apply(setting.claim(&claim, size, Some(&place.named("snapshot")))).await?;
                self.apply(setting.pod(&place.named("restored-reader"), &claim, place, Task::Read))
                    .await
            }
            Step::Move => {
                let task = Task::ReadElsewhere {
                    not_on: &before.node,
                    grown: before.grown,
                };
                self.apply(setting.pod(&place.named("reader"), &data, place, task)).await
            }
        }
    }

    async fn apply(&self, object: Value) -> Result<(), CliError> {
        let object = Object::new(object).map_err(|error| CliError::internal(&error))?;
        self.context.ports.writer.apply(&object, false).await?;
        Ok(())
    }

    async fn look(&self, step: Step, place: &Place) -> Result<Seen, CliError> {
        let (pod, claim) = match step {
            Step::Restore => ("restored-reader", "restored"),
            Step::Move => ("reader", "data"),
            _ => ("writer", "data"),
        };
        let mut seen = Seen {
            pod: self
                .one("v1", "", "Pod", &place.named(pod))
                .await?
                .as_ref()
                .map(pod_seen)
                .unwrap_or_default(),
            ..Seen::default()
        };
        let claim = self.one("v1", "", "PersistentVolumeClaim", &place.named(claim)).await?;
        seen.claim = claim.as_ref().map(claim_seen).unwrap_or_default();
        if !seen.claim.volume.is_empty() {
            let id = ObjectId::new("", "PersistentVolume", "", &seen.claim.volume);
            let volume = get(&self.context.ports.client, "v1", &id).await?;
            seen.volume_size = volume
                .as_ref()
                .map(|found| found.text("/spec/capacity/storage").to_owned())
                .unwrap_or_default();
            if step == Step::Attach {
                let handle = volume
                    .as_ref()
                    .map(|found| found.text("/spec/csi/volumeHandle"))
                    .unwrap_or_default();
                seen.attachment = self.attachment(handle, &seen.pod.node).await?;
            }
        }
        if step == Step::Snapshot {
            let group = "snapshot.storage.k8s.io";
            let found = self.one(SNAPSHOTS, group, "VolumeSnapshot", &place.named("snapshot")).await?;
            seen.snapshot = found.as_ref().and_then(snapshot_seen);
        }
        Ok(seen)
    }

    async fn one(&self, api_version: &str, group: &str, kind: &str, name: &str) -> Result<Option<Object>, ClusterError> {
        let id = ObjectId::new(group, kind, &self.setting.namespace, name);
        get(&self.context.ports.client, api_version, &id).await
    }

    async fn attachment(&self, handle: &str, node: &str) -> Result<Option<Result<bool, String>>, CliError> {
        if handle.is_empty() || node.is_empty() {
            return Ok(None);
        }
        let id = ObjectId::new("storage.k8s.io", "VolumeAttachment", "", attachment_name(handle, self.driver, node));
        let found = get(&self.context.ports.client, "storage.k8s.io/v1", &id).await?;
        Ok(found.map(|found| match found.text("/status/attachError/message") {
            "" => Ok(found.value().pointer("/status/attached") == Some(&Value::Bool(true))),
            error => Err(error.to_owned()),
        }))
    }

    /// Why something failed, from the table of `vdoctl doctor volumes`. What cannot be read is said there.
    pub(super) async fn findings(&self) -> Vec<Finding> {
        let Ok(view) = doctor::volume_findings(self.global).await else {
            return Vec::new();
        };
        let namespace = &self.setting.namespace;
        let volumes = self.volumes().await;
        let is_ours = |finding: &Finding| match finding.kind.as_str() {
            "StorageClass" => finding.name == self.setting.class,
            "CSIDriver" => finding.name == self.driver,
            _ => finding.namespace == *namespace || volumes.contains(&finding.name),
        };
        view.findings.into_iter().filter(is_ours).collect()
    }

    /// The volumes of the claims, and their attachments.
    async fn volumes(&self) -> BTreeSet<String> {
        let watch = |kind: &str, api_version: &str| Watch::new(api_version, kind, "", Select::All);
        let client = &self.context.ports.client;
        let all = list(client, &watch("PersistentVolume", "v1")).await.unwrap_or_default();
        let ours = all
            .iter()
            .filter(|volume| volume.text("/spec/claimRef/namespace") == self.setting.namespace);
        let mut names: BTreeSet<String> = ours.map(|volume| volume.name().to_owned()).collect();
        let attachments = list(client, &watch("VolumeAttachment", "storage.k8s.io/v1"))
            .await
            .unwrap_or_default();
        let of_ours = attachments
            .iter()
            .filter(|one| names.contains(one.text("/spec/source/persistentVolumeName")));
        let attached: Vec<String> = of_ours.map(|one| one.name().to_owned()).collect();
        names.extend(attached);
        names
    }
}

/// What later steps compare with.
fn remember(step: Step, seen: &Seen, before: &mut Before) {
    match step {
        Step::Claim => before.size = seen.volume_size.clone(),
        Step::Write => before.node = seen.pod.node.clone(),
        Step::Expand => before.grown = true,
        _ => {}
    }
}

/// An error in a line.
pub(super) fn whole(error: &CliError) -> String {
    match error.remedy.as_str() {
        "" => error.what.clone(),
        remedy => format!("{}. {}", error.what, remedy.replace('\n', " ")),
    }
}

fn shown(step: &StepView) -> String {
    let zone = if step.zone.is_empty() {
        String::new()
    } else {
        format!(" {}", step.zone)
    };
    let time = format!("{}.{} s", step.milliseconds / 1000, step.milliseconds / 100 % 10);
    let message = match (step.message.as_str(), step.result) {
        ("", _) => String::new(),
        (message, Outcome::Skipped) => format!("  skipped: {message}"),
        (message, _) => format!("  {message}"),
    };
    let mut lines = vec![format!("{}{zone}{message}  {}", step.step.name(), faint(&time))];
    lines.extend(super::found(&step.findings));
    lines.join("\n")
}

fn claim_seen(claim: &Object) -> ClaimSeen {
    ClaimSeen {
        phase: claim.text("/status/phase").to_owned(),
        volume: claim.text("/spec/volumeName").to_owned(),
        size: claim.text("/status/capacity/storage").to_owned(),
    }
}

fn pod_seen(pod: &Object) -> PodSeen {
    let container = |pointer: &str| pod.text(&format!("/status/containerStatuses/0/state/{pointer}")).trim().to_owned();
    let conditions = pod.value().pointer("/status/conditions").and_then(Value::as_array);
    let unplaced = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False")
        .and_then(|condition| condition["message"].as_str());
    let said = [
        container("terminated/message"),
        container("waiting/message"),
        container("waiting/reason"),
        unplaced.unwrap_or_default().to_owned(),
    ];
    PodSeen {
        phase: pod.text("/status/phase").to_owned(),
        node: pod.text("/spec/nodeName").to_owned(),
        message: said.into_iter().find(|text| !text.is_empty()).unwrap_or_default(),
    }
}

fn snapshot_seen(snapshot: &Object) -> Option<Result<bool, String>> {
    let status = snapshot.value().get("status")?;
    match (
        status["readyToUse"].as_bool(),
        status.pointer("/error/message").and_then(Value::as_str),
    ) {
        (Some(true), _) => Some(Ok(true)),
        (_, Some(error)) => Some(Err(error.to_owned())),
        (ready, None) => Some(Ok(ready.unwrap_or_default())),
    }
}
