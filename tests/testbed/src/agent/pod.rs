// SPDX-License-Identifier: Apache-2.0
//! A kubelet's work for one pod: containers from their images, probes, restarts, status, and the end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::address::Address;
use super::events;
use super::network;
use super::pods::{ContainerRun, Shared, locked};
use super::root::{Refused, Start};
use super::run::{Kind, Run};
use super::status::{self, Conditions, State};
use super::volumes::Volumes;
use crate::process::Process;

/// How often the processes and probes are looked at.
const TICK: Duration = Duration::from_millis(100);
/// How often the volumes are: a kubelet does it once a minute.
const VOLUMES: Duration = Duration::from_secs(20);
/// What an image that cannot be pulled, or a volume that cannot be set up, waits for the next attempt.
const RETRY: Duration = Duration::from_secs(1);

/// Looks after one pod until it is deleted.
pub(super) struct Keeper {
    shared: Shared,
    updates: watch::Receiver<Arc<Pod>>,
    pod: Arc<Pod>,
    uid: String,
    folder: PathBuf,
    volumes: Volumes,
    refreshed: Option<Instant>,
    since: Timestamp,
    runs: Vec<Run>,
    conditions: Conditions,
    sent: Value,
}

impl Keeper {
    pub(super) fn new(shared: Shared, updates: watch::Receiver<Arc<Pod>>) -> Self {
        let pod = updates.borrow().clone();
        let uid = pod.uid().unwrap_or_default();
        let folder = shared.site.folder.join(&uid);
        Self {
            volumes: Volumes::new(&folder.join("volumes")),
            shared,
            updates,
            pod,
            uid,
            folder,
            refreshed: None,
            since: Timestamp::now(),
            runs: Vec::new(),
            conditions: Conditions::default(),
            sent: Value::Null,
        }
    }

    pub(super) async fn run(mut self) {
        if let Err(error) = self.work().await {
            tracing::warn!(
                "node agent: pod {}/{}: {error:#}",
                self.pod.namespace().unwrap_or_default(),
                self.pod.name_any()
            );
        }
        locked(&self.shared.table).remove(&self.uid);
        let _ = std::fs::remove_dir_all(&self.folder);
    }

    async fn work(&mut self) -> Result<()> {
        let address = Address::choose(&self.pod)?;
        self.begin(&address);
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if self.is_gone(&mut tick).await {
                return Ok(());
            }
            if self.pod.metadata.deletion_timestamp.is_some() {
                return self.terminate(&address, &mut tick).await;
            }
            self.refresh().await;
            for place in 0..self.runs.len() {
                self.step(place, &address).await;
            }
            self.report(&address).await;
        }
    }

    /// Waits for the next look, and says whether the pod's object does not exist any more.
    async fn is_gone(&mut self, tick: &mut tokio::time::Interval) -> bool {
        tokio::select! {
            changed = self.updates.changed() => if changed.is_err() { return true },
            _ = tick.tick() => {}
        }
        self.pod = self.updates.borrow().clone();
        false
    }

    fn begin(&mut self, address: &Address) {
        let containers: Vec<Container> = self.pod.spec.iter().flat_map(|spec| spec.containers.clone()).collect();
        for spec in containers {
            let key = (self.uid.clone(), spec.name.clone());
            let claimed = locked(&self.shared.images).runs(spec.image.as_deref().unwrap_or_default());
            if claimed {
                let report = self.report_of(&spec, address);
                locked(&self.shared.table).add(key.clone(), report);
            }
            self.runs.push(Run::new(key, &spec, claimed));
        }
    }

    fn report_of(&self, container: &Container, address: &Address) -> ContainerRun {
        let (namespace, pod) = (self.pod.namespace().unwrap_or_default(), self.pod.name_any());
        ContainerRun {
            log: self.shared.site.folder.join(format!("{namespace}.{pod}.{}.log", container.name)),
            namespace,
            pod,
            node: self.pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
            container: container.name.clone(),
            ip: address.ip,
            ports: address.ports.clone(),
            starts: 0,
            pid: None,
            ready: false,
            problem: None,
        }
    }

    async fn event(&self, container: &str, kind: &str, reason: &str, message: String) {
        events::write(&self.shared.site.client, &self.pod, container, kind, reason, message).await;
    }

    /// Brings the volumes up to date. Running containers keep what they have when that fails.
    async fn refresh(&mut self) {
        if self.refreshed.is_some_and(|last| last.elapsed() < VOLUMES) {
            return;
        }
        if let (None, Some(message)) = (self.refreshed, network::lacking(&self.shared.site.client, &self.pod).await) {
            return self.cannot_begin("NetworkNotReady", message).await;
        }
        match self.volumes.refresh(&self.shared.site.client, &self.pod).await {
            Ok(()) => self.refreshed = Some(Instant::now()),
            Err(error) if self.refreshed.is_none() => self.cannot_begin("FailedMount", format!("{error:#}")).await,
            Err(error) => {
                tracing::debug!("node agent: volumes of pod {}: {error:#}", self.pod.name_any());
                self.refreshed = Some(Instant::now());
            }
        }
    }

    async fn cannot_begin(&mut self, reason: &str, message: String) {
        let mut news = false;
        for run in self.runs.iter_mut().filter(|run| run.is_due(true)) {
            news |= run.refused("ContainerCreating", message.clone(), RETRY);
        }
        if news {
            self.event("", "Warning", reason, message).await;
        }
    }

    fn restarts(&self) -> bool {
        let policy = self.pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
        policy.is_none_or(|policy| policy == "Always")
    }

    async fn step(&mut self, place: usize, address: &Address) {
        let restarts = self.restarts();
        let key = self.runs[place].key.clone();
        let ended = locked(&self.shared.table).ended(&key);
        if let Some(code) = ended {
            self.runs[place].ended(code, restarts);
        }
        if self.refreshed.is_some() && self.runs[place].is_due(restarts) {
            self.start(place, address).await;
        }
        let run = &self.runs[place];
        if let Some(deadline) = run.stopping
            && Instant::now() >= deadline
            && let Some(process) = locked(&self.shared.table).process(&key)
        {
            let _ = process.signal("KILL");
        }
        self.probe(place).await;
    }

    async fn start(&mut self, place: usize, address: &Address) {
        let (name, image) = (self.runs[place].spec.name.clone(), self.runs[place].image().to_owned());
        let Some(pulled) = locked(&self.shared.images).pull(&image).cloned() else {
            return self.cannot_pull(place, &name, &image).await;
        };
        let isolation = locked(&self.shared.isolation).clone();
        let folder = self.folder.join("containers").join(&name);
        let log = self.report_of(&self.runs[place].spec, address).log;
        let start = Start {
            site: &self.shared.site,
            isolation: &isolation,
            pod: &self.pod,
            container: &self.runs[place].spec,
            image: &pulled,
            address,
            volumes: &self.volumes,
            folder: &folder,
            log: &log,
        };
        let key = self.runs[place].key.clone();
        let outcome = start.launch().await.and_then(|launch| {
            let started = locked(&self.shared.table).start(&key, launch);
            started.map_err(|error| Refused("RunContainerError", format!("{error:#}")))
        });
        match outcome {
            Ok(()) => {
                self.runs[place].image_id = pulled.digests.first().map_or(String::new(), |digest| format!("{image}@{digest}"));
                self.runs[place].started(address);
                self.event(&name, "Normal", "Started", format!("Started container {name}")).await;
            }
            Err(Refused(reason, message)) => {
                if self.runs[place].refused(reason, message.clone(), RETRY) {
                    self.event(&name, "Warning", "Failed", format!("Error: {message}")).await;
                }
            }
        }
    }

    /// First the error itself, then the pause. A kubelet's pauses grow to minutes; here the image is looked for every second.
    async fn cannot_pull(&mut self, place: usize, name: &str, image: &str) {
        let run = &mut self.runs[place];
        if matches!(
            run.state,
            State::Waiting {
                reason: "ErrImagePull" | "ImagePullBackOff",
                ..
            }
        ) {
            let message = format!("Back-off pulling image {image:?}: ErrImagePull: {image}: not found");
            if run.refused("ImagePullBackOff", message, RETRY) {
                self.event(name, "Normal", "BackOff", format!("Back-off pulling image {image:?}"))
                    .await;
            }
            return;
        }
        let message = format!("failed to pull and unpack image {image:?}: failed to resolve reference {image:?}: {image}: not found");
        run.refused("ErrImagePull", message.clone(), RETRY);
        self.event(name, "Normal", "Pulling", format!("Pulling image {image:?}")).await;
        self.event(name, "Warning", "Failed", format!("Failed to pull image {image:?}: {message}"))
            .await;
        self.event(name, "Warning", "Failed", "Error: ErrImagePull".into()).await;
    }

    async fn probe(&mut self, place: usize) {
        let mut failed = None;
        let started = self.runs[place].is_started();
        let running = matches!(self.runs[place].state, State::Running { .. }) && self.runs[place].stopping.is_none();
        let mut events = Vec::new();
        for probe in self.runs[place].probes.iter_mut().filter(|_| running) {
            let waits = (probe.kind == Kind::Startup) == started;
            if waits || !probe.tally.is_due(Instant::now()) {
                continue;
            }
            let answer = match &probe.question {
                Ok(question) => question.ask(probe.terms.patience).await.map_err(|error| format!("{error:#}")),
                Err(problem) => Err(problem.clone()),
            };
            probe.tally.count(answer.is_ok(), Instant::now());
            if let Err(problem) = answer
                && problem != probe.said
            {
                events.push(format!("{:?} probe failed: {problem}", probe.kind));
                probe.said = problem;
            }
            if probe.kind != Kind::Readiness && probe.tally.verdict() == Some(false) {
                failed = Some(probe.kind);
            }
        }
        let name = self.runs[place].spec.name.clone();
        for event in events {
            self.event(&name, "Warning", "Unhealthy", event).await;
        }
        if let Some(kind) = failed {
            let message = format!(
                "Container {name} failed {} probe, will be restarted",
                format!("{kind:?}").to_lowercase()
            );
            self.event(&name, "Normal", "Killing", message).await;
            let spec = &self.runs[place].spec;
            let probe = if kind == Kind::Startup {
                &spec.startup_probe
            } else {
                &spec.liveness_probe
            };
            let grace = probe.as_ref().and_then(|probe| probe.termination_grace_period_seconds);
            self.stop(place, grace.map(i64::unsigned_abs));
        }
    }

    /// Asks a container to end, and notes when its time is over.
    fn stop(&mut self, place: usize, grace: Option<u64>) {
        let of_pod = self.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
        let grace = grace.or(of_pod.map(i64::unsigned_abs)).unwrap_or(30);
        if let Some(process) = locked(&self.shared.table).process(&self.runs[place].key) {
            let _ = process.signal("TERM");
        }
        self.runs[place].stopping = Some(Instant::now() + Duration::from_secs(grace));
    }

    async fn terminate(&mut self, address: &Address, tick: &mut tokio::time::Interval) -> Result<()> {
        let grace = self.pod.metadata.deletion_grace_period_seconds.map(i64::unsigned_abs);
        for place in 0..self.runs.len() {
            let name = self.runs[place].spec.name.clone();
            self.stop(place, grace);
            self.event(&name, "Normal", "Killing", format!("Stopping container {name}")).await;
        }
        self.report(address).await;
        loop {
            let mut alive = false;
            for run in self.runs.iter_mut().filter(|run| run.claimed) {
                let mut table = locked(&self.shared.table);
                if let Some(code) = table.ended(&run.key) {
                    run.ended(code, false);
                } else if let Some(process) = table.process(&run.key) {
                    alive = true;
                    if run.stopping.is_none_or(|deadline| Instant::now() >= deadline) {
                        Process::kill(process);
                    }
                }
            }
            if !alive {
                break;
            }
            if self.is_gone(tick).await {
                return Ok(());
            }
        }
        for run in self.runs.iter_mut().filter(|run| !run.claimed) {
            run.ended(0, false);
        }
        self.report(address).await;
        let api: Api<Pod> = Api::namespaced(self.shared.site.client.clone(), &self.pod.namespace().unwrap_or_default());
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: Some(self.uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        // The API server may be away; the pod is not forgotten while its object is there.
        while api
            .delete(&self.pod.name_any(), &params)
            .await
            .is_err_and(|error| !is_absent(&error))
        {
            if self.is_gone(tick).await {
                break;
            }
        }
        Ok(())
    }

    /// Writes the status, if it says something new.
    async fn report(&mut self, address: &Address) {
        let shown: Vec<_> = self.runs.iter().map(Run::shown).collect();
        for (run, shown) in self.runs.iter().zip(&shown) {
            locked(&self.shared.table).change(&run.key, |report| {
                report.ready = shown.ready;
                report.problem = match &shown.state {
                    State::Waiting { reason, message } => Some(format!("{reason}: {message}")),
                    State::Terminated(end) => Some(format!("ended with exit code {}", end.code)),
                    State::Running { .. } => None,
                };
            });
        }
        let begun = self.runs.iter().all(|run| run.begun);
        let restarts = self.restarts() && self.pod.metadata.deletion_timestamp.is_none();
        let times = (self.since, Timestamp::now());
        let patch = status::patch(&shown, (begun, restarts), address.ip, &mut self.conditions, times);
        if patch == self.sent && !status::is_contradicted(&self.pod, &patch) {
            return;
        }
        let api: Api<Pod> = Api::namespaced(self.shared.site.client.clone(), &self.pod.namespace().unwrap_or_default());
        let outcome = api
            .patch_status(&self.pod.name_any(), &PatchParams::default(), &Patch::Strategic(&patch))
            .await;
        match outcome {
            Ok(_) => self.sent = patch,
            Err(error) => tracing::debug!("status of pod {}: {error}", self.pod.name_any()),
        }
    }
}

fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404 || status.code == 409)
}
