// SPDX-License-Identifier: Apache-2.0
//! Creates, reserves and deletes the namespace of a selftest, with the volumes of its claims; checks the user's rights.

use super::super::context::Context;
use super::super::progress::{Mark, Progress};
use super::super::{CliError, Exit};
use super::objects::{BEAT, OURS, SNAPSHOTS, Setting};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use vdo::cluster::{ClusterError, Select, Watch, Writer, get, list, rights};
use vdo_api::types::{Later as _, ObjectId};
use vdo_core::manifest::Object;

/// How often it is shown that a run lives, and how long another run waits for that.
const PULSE: Duration = Duration::from_secs(3);
const SILENCE: Duration = Duration::from_secs(12);
const PACE: Duration = Duration::from_millis(500);

const CLAIM: &str = "PersistentVolumeClaim";
const VOLUME: &str = "PersistentVolume";
const SNAPSHOT: &str = "VolumeSnapshot";
const CONTENT: &str = "VolumeSnapshotContent";

/// What the user of the test needs: verbs on a kind, in the namespace or in the cluster.
const NEEDED: [(&str, &str, bool, &[&str]); 7] = [
    ("v1", "Namespace", false, &["get", "create", "patch", "delete"]),
    ("v1", VOLUME, false, &["get", "list", "patch"]),
    ("storage.k8s.io/v1", "VolumeAttachment", false, &["get"]),
    ("v1", CLAIM, true, &["get", "list", "create", "patch"]),
    ("v1", "Pod", true, &["get", "list", "create", "patch", "delete"]),
    (SNAPSHOTS, SNAPSHOT, true, &["get", "list", "create", "patch", "delete"]),
    (SNAPSHOTS, CONTENT, false, &["list", "patch"]),
];

/// The namespace.
pub(super) struct Home<'a> {
    context: &'a Context,
    writer: Writer,
    name: String,
    timeout: Duration,
    pulse: Option<JoinHandle<()>>,
}

impl Drop for Home<'_> {
    fn drop(&mut self) {
        if let Some(pulse) = &self.pulse {
            pulse.abort();
        }
    }
}

impl<'a> Home<'a> {
    pub(super) fn new(context: &'a Context, name: &str, timeout: Duration) -> Self {
        Self {
            context,
            writer: context.ports.writer.clone(),
            name: name.to_owned(),
            timeout,
            pulse: None,
        }
    }

    fn id(&self) -> ObjectId {
        ObjectId::new("", "Namespace", "", &self.name)
    }

    async fn live(&self) -> Result<Option<Object>, ClusterError> {
        get(&self.context.ports.client, "v1", &self.id()).await
    }

    /// Every right that the test needs, before anything is written.
    pub(super) async fn may(&self, with_snapshots: bool) -> Result<(), CliError> {
        let rights = rights(&self.context.ports.client, &self.name).await?;
        for (api_version, kind, is_inside, verbs) in NEEDED {
            if api_version == SNAPSHOTS && !with_snapshots {
                continue;
            }
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            let namespace = if is_inside { self.name.as_str() } else { "" };
            rights.require(verbs, api_version, &ObjectId::new(group, kind, namespace, ""))?;
        }
        Ok(())
    }

    /// Deletes what a run has left that was killed. A namespace of others is refused, and one of a run that lives.
    pub(super) async fn vacate(&self, progress: &mut Progress) -> Result<(), CliError> {
        let Some(found) = self.live().await? else { return Ok(()) };
        if found.label(OURS) != Some("true") {
            return Err(CliError::new(
                Exit::Refused,
                format!("namespace {} exists and does not belong to a selftest", self.name),
                "Name another namespace: vdoctl selftest --test-namespace NAME",
            ));
        }
        let beat = found.annotation(BEAT).unwrap_or_default().to_owned();
        let end = Instant::now().later(SILENCE);
        progress.waiting(&[format!("namespace {} exists; checking whether another run uses it", self.name)]);
        while Instant::now() < end && !found.is_terminating() {
            sleep(PACE).await;
            let Some(now) = self.live().await? else { return Ok(()) };
            if now.annotation(BEAT).unwrap_or_default() != beat {
                return Err(CliError::new(
                    Exit::Refused,
                    format!("another selftest runs in namespace {}", self.name),
                    "Wait until that selftest ends, or name another namespace: vdoctl selftest --test-namespace NAME",
                ));
            }
        }
        self.delete(progress).await?;
        let line = format!("namespace {} of an earlier run was deleted", self.name);
        progress.step(Mark::Note, &line);
        Ok(())
    }

    /// Makes the namespace, and shows from now on that it is in use.
    pub(super) async fn enter(&mut self, setting: &Setting) -> Result<(), CliError> {
        let wanted = Object::new(setting.namespace()).map_err(|error| CliError::internal(&error))?;
        self.writer.apply(&wanted, false).await?;
        let (writer, id, run) = (self.writer.clone(), self.id(), setting.run.clone());
        self.pulse = Some(tokio::spawn(async move {
            for beat in 1_u64.. {
                sleep(PULSE).await;
                let change = json!({"metadata": {"annotations": {BEAT: format!("{run}/{beat}")}}});
                // A beat that is lost is followed by the next one.
                let _ = writer.merge("v1", &id, &change, false).await;
            }
        }));
        Ok(())
    }

    async fn all(&self, api_version: &str, kind: &str, namespace: &str) -> Result<Vec<Object>, ClusterError> {
        let watch = Watch::new(api_version, kind, namespace, Select::All);
        match list(&self.context.ports.client, &watch).await {
            Err(ClusterError::NotServed { .. }) => Ok(Vec::new()),
            found => found,
        }
    }

    /// Deletes pods, then snapshots, then the namespace, and waits until the volumes are deleted, too. A volume or snapshot of the test is
    /// deleted whatever its class says. An API server that is away may come back.
    pub(super) async fn delete(&self, progress: &mut Progress) -> Result<(), CliError> {
        let end = Instant::now().later(self.timeout);
        let mut volumes = BTreeSet::new();
        loop {
            match self.deleted(&mut volumes, end, progress).await {
                Err(error) if error.exit == Exit::Cluster => self.waits(&error.what, end, progress).await?,
                ended => return ended,
            }
        }
    }

    async fn deleted(&self, volumes: &mut BTreeSet<String>, end: Instant, progress: &mut Progress) -> Result<(), CliError> {
        if self.live().await?.is_some_and(|found| found.label(OURS) == Some("true")) {
            self.let_go(volumes).await?;
            self.emptied("v1", "Pod", end, progress).await?;
            self.emptied(SNAPSHOTS, SNAPSHOT, end, progress).await?;
        }
        while let Some(found) = self.live().await?.filter(|found| found.label(OURS) == Some("true")) {
            if !found.is_terminating() {
                self.writer.delete_as_seen("v1", &found, false).await?;
            }
            self.waits(&format!("waiting for namespace {} to be deleted", self.name), end, progress)
                .await?;
        }
        loop {
            let all = self.all("v1", VOLUME, "").await?;
            let left: Vec<&str> = all.iter().map(Object::name).filter(|name| volumes.contains(*name)).collect();
            if left.is_empty() {
                return Ok(());
            }
            let what = format!("waiting for PersistentVolume {} to be deleted", left.join(", "));
            self.waits(&what, end, progress).await?;
        }
    }

    /// Volumes and snapshots of the test are deleted with their claims. Notes the volumes' names.
    async fn let_go(&self, names: &mut BTreeSet<String>) -> Result<(), CliError> {
        let claims = self.all("v1", CLAIM, &self.name).await?;
        let claims: BTreeSet<&str> = claims.iter().map(Object::uid).collect();
        for volume in self.all("v1", VOLUME, "").await? {
            if claims.contains(volume.text("/spec/claimRef/uid")) {
                names.insert(volume.name().to_owned());
                if volume.text("/spec/persistentVolumeReclaimPolicy") != "Delete" {
                    let change = json!({"spec": {"persistentVolumeReclaimPolicy": "Delete"}});
                    self.writer.merge("v1", &volume.id(), &change, false).await?;
                }
            }
        }
        let snapshots = self.all(SNAPSHOTS, SNAPSHOT, &self.name).await?;
        let snapshots: BTreeSet<&str> = snapshots.iter().map(Object::uid).collect();
        if snapshots.is_empty() {
            return Ok(());
        }
        for content in self.all(SNAPSHOTS, CONTENT, "").await? {
            let is_ours = snapshots.contains(content.text("/spec/volumeSnapshotRef/uid"));
            if is_ours && content.text("/spec/deletionPolicy") != "Delete" {
                let change = json!({"spec": {"deletionPolicy": "Delete"}});
                self.writer.merge(SNAPSHOTS, &content.id(), &change, false).await?;
            }
        }
        Ok(())
    }

    /// Deletes all objects of a kind, and waits until they are deleted.
    async fn emptied(&self, api_version: &str, kind: &str, end: Instant, progress: &mut Progress) -> Result<(), CliError> {
        loop {
            let left = self.all(api_version, kind, &self.name).await?;
            let Some(first) = left.first() else { return Ok(()) };
            for object in left.iter().filter(|object| !object.is_terminating()) {
                self.writer.delete_as_seen(api_version, object, false).await?;
            }
            self.waits(&format!("waiting for {} to be deleted", first.id()), end, progress)
                .await?;
        }
    }

    async fn waits(&self, what: &str, end: Instant, progress: &mut Progress) -> Result<(), CliError> {
        if Instant::now() >= end {
            return Err(CliError::new(
                Exit::Differences,
                format!("not finished after {} s: {what}", self.timeout.as_secs()),
                "To find the cause: vdoctl doctor volumes\nThe next vdoctl selftest continues the deletion.",
            ));
        }
        progress.waiting(&[what.to_owned()]);
        sleep(PACE).await;
        Ok(())
    }
}
