//! The part of the kubelet that kwok does not play: it really runs the cloud provider, and registers the CSI driver.

mod container;
mod cpi;
mod csinode;
mod view;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use futures::StreamExt;
use kube::Client;
use tokio::task::JoinHandle;

use crate::binaries::Binaries;
use crate::cluster::Cluster;
use crate::kubeconfig;
use crate::parts::Part;
use crate::workdir::Workdir;

pub use cpi::CpiRun;
use cpi::Runs;
use view::View;

/// How long the agent goes without looking at its processes.
const TICK: Duration = Duration::from_millis(250);

/// Stands in for the kubelets of all nodes. Dropping it ends the cloud providers it runs.
///
/// For each Running pod of a DaemonSet with a container that has the argument `--cloud-provider=vsphere`, it runs the
/// real program with the pod's arguments, files and service account. A program that ends is started again, and the pod
/// says so in its status. For each Running pod of the CSI node plugin it adds the driver to the node's `CSINode`.
#[derive(Debug)]
pub struct NodeAgent {
    task: JoinHandle<()>,
    runs: Arc<Mutex<Runs>>,
    workdir: Workdir,
}

/// What the agent's work needs.
pub(crate) struct Site {
    pub(crate) client: Client,
    pub(crate) server: String,
    pub(crate) ca: String,
    pub(crate) program: PathBuf,
    pub(crate) folder: PathBuf,
}

impl NodeAgent {
    /// Starts an agent that runs the test bed's cloud provider, building it first if it is missing.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        let binaries = tokio::task::spawn_blocking(|| Binaries::ensure(&[Part::Cpi])).await??;
        Self::start_with(cluster, binaries.path(Part::Cpi)).await
    }

    /// Starts an agent that runs this program as the cloud provider.
    pub async fn start_with(cluster: &Cluster, program: PathBuf) -> Result<Self> {
        let workdir = Workdir::lasting(&cluster.dir().join("node-agent"))?;
        let site = Site {
            client: kubeconfig::client(&cluster.agent_kubeconfig()).await?,
            server: cluster.server_url(),
            ca: cluster.ca_pem().to_owned(),
            program,
            folder: workdir.path().to_owned(),
        };
        let runs = Arc::new(Mutex::new(Runs::default()));
        let task = tokio::spawn(work(site, runs.clone()));
        Ok(Self { task, runs, workdir })
    }

    /// The cloud providers that run or should run.
    pub fn runs(&self) -> Vec<CpiRun> {
        lock(&self.runs).report()
    }

    /// The folder with logs: one per cloud provider pod, named `NAMESPACE.POD.log`.
    pub fn dir(&self) -> &Path {
        self.workdir.path()
    }

    /// The end of every cloud provider's log.
    pub fn logs(&self) -> String {
        let runs = self.runs();
        runs.iter()
            .map(|run| format!("{}:\n{}\n", run.log.display(), crate::process::tail(&run.log, 25)))
            .collect()
    }
}

impl Drop for NodeAgent {
    fn drop(&mut self) {
        self.task.abort();
        lock(&self.runs).close();
    }
}

pub(crate) fn lock(runs: &Mutex<Runs>) -> MutexGuard<'_, Runs> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn work(site: Site, runs: Arc<Mutex<Runs>>) {
    let mut view = View::default();
    let mut changes = view::watch(&site.client);
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            Some(change) = changes.next() => view.take(change),
            _ = tick.tick() => {
                // Both lists must be whole: an empty view would end everything.
                if view.complete() {
                    cpi::reconcile(&site, &view, &runs).await;
                    csinode::reconcile(&site.client, &view).await;
                }
            }
        }
    }
}
