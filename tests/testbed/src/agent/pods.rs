// SPDX-License-Identifier: Apache-2.0
//! The pods whose images are run, and their processes.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Site;
use super::images::Images;
use super::pod::Keeper;
use super::root::Isolation;
use super::view::View;
use crate::process::{Launch, Process};

/// A container that runs, or should run, from its image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerRun {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's node.
    pub node: String,
    /// The container's name.
    pub container: String,
    /// The pod's address, which only this machine can reach.
    pub ip: IpAddr,
    /// Where the pod's ports are, by their numbers in its specification.
    pub ports: BTreeMap<u16, SocketAddr>,
    /// Where the program writes to, in all its runs.
    pub log: PathBuf,
    /// How often it was started.
    pub starts: u32,
    /// The program's process.
    pub pid: Option<u32>,
    /// Whether the container is ready.
    pub ready: bool,
    /// Why it does not run.
    pub problem: Option<String>,
}

/// A container by the UID of its pod and its name.
pub(super) type Key = (String, String);

struct Slot {
    report: ContainerRun,
    process: Option<Process>,
}

/// All containers of images. It outlives the tasks that look after them, so that dropping the agent ends every process at once.
#[derive(Default)]
pub(super) struct Table {
    slots: BTreeMap<Key, Slot>,
    closed: bool,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.slots.values().map(|slot| &slot.report)).finish()
    }
}

impl Table {
    pub(super) fn report(&self) -> Vec<ContainerRun> {
        let with_pid = |slot: &Slot| ContainerRun {
            pid: slot.process.as_ref().and_then(Process::program),
            ..slot.report.clone()
        };
        self.slots.values().map(with_pid).collect()
    }

    /// The UID of a pod whose container of this name is ready.
    pub(super) fn ready_pod(&self, namespace: &str, container: &str) -> Option<String> {
        let is_ready = |slot: &Slot| slot.report.ready && slot.report.namespace == namespace && slot.report.container == container;
        let mut slots = self.slots.iter();
        slots.find(|(_, slot)| is_ready(slot)).map(|((uid, _), _)| uid.clone())
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.slots.clear();
    }

    pub(super) fn add(&mut self, key: Key, report: ContainerRun) {
        if !self.closed {
            self.slots.insert(key, Slot { report, process: None });
        }
    }

    pub(super) fn change(&mut self, key: &Key, change: impl FnOnce(&mut ContainerRun)) {
        if let Some(slot) = self.slots.get_mut(key) {
            change(&mut slot.report);
        }
    }

    pub(super) fn start(&mut self, key: &Key, launch: Launch) -> Result<()> {
        let Some(slot) = self.slots.get_mut(key) else {
            bail!("the agent ends");
        };
        slot.process = Some(launch.spawn()?);
        slot.report.starts += 1;
        slot.report.problem = None;
        Ok(())
    }

    pub(super) fn process(&mut self, key: &Key) -> Option<&mut Process> {
        self.slots.get_mut(key)?.process.as_mut()
    }

    /// The exit code of a process that has ended; it is taken out.
    pub(super) fn ended(&mut self, key: &Key) -> Option<i32> {
        let slot = self.slots.get_mut(key)?;
        let status = slot.process.as_mut()?.exited()?;
        slot.process = None;
        Some(status.code().unwrap_or(137))
    }

    /// Kills what is left of a pod.
    pub(super) fn remove(&mut self, uid: &str) {
        self.slots.retain(|(of, _), _| of != uid);
    }
}

/// What the tasks of all pods share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) site: Arc<Site>,
    pub(super) images: Arc<Mutex<Images>>,
    pub(super) isolation: Arc<Mutex<Isolation>>,
    pub(super) table: Arc<Mutex<Table>>,
}

/// A lock that a test which panicked has held is as good as any.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One task for each pod.
#[derive(Debug)]
pub(super) struct Pods {
    shared: Shared,
    by_uid: BTreeMap<String, watch::Sender<Arc<Pod>>>,
    tasks: JoinSet<()>,
}

impl Pods {
    pub(super) fn new(shared: Shared) -> Self {
        Self {
            shared,
            by_uid: BTreeMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Begins with new pods, and tells the tasks of the others what has changed.
    pub(super) fn reconcile(&mut self, view: &View) {
        while self.tasks.try_join_next().is_some() {}
        // A task learns from the end of its channel that its pod does not exist any more.
        self.by_uid.retain(|uid, _| view.pod(uid).is_some());
        for pod in view.pods() {
            let Some(uid) = pod.uid() else { continue };
            if let Some(sender) = self.by_uid.get(&uid) {
                sender.send_if_modified(|known| {
                    let other = known.metadata.resource_version != pod.metadata.resource_version;
                    if other {
                        *known = Arc::new(pod.clone());
                    }
                    other
                });
            } else if self.is_ours(pod) {
                let (sender, receiver) = watch::channel(Arc::new(pod.clone()));
                self.by_uid.insert(uid, sender);
                self.tasks.spawn(Keeper::new(self.shared.clone(), receiver).run());
            }
        }
    }

    /// Whether a node has the pod, it is not at its end, and it has a container that kwok leaves to us.
    fn is_ours(&self, pod: &Pod) -> bool {
        let Some(spec) = &pod.spec else { return false };
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let images = locked(&self.shared.images);
        spec.node_name.is_some()
            && !matches!(phase, Some("Succeeded" | "Failed"))
            && spec
                .containers
                .iter()
                .any(|one| images.claims(one.image.as_deref().unwrap_or_default()))
    }
}
