// SPDX-License-Identifier: Apache-2.0
//! The part of the kubelet that kwok does not play: it really runs the cloud provider, registers the CSI driver on nodes, and runs
//! containers of the images that it is given, such as those of the CSI driver's controller.

mod address;
mod claims;
mod container;
mod cpi;
mod csinode;
mod events;
mod image;
mod images;
mod network;
mod plugin;
mod pod;
mod pods;
mod probe;
mod root;
mod run;
mod source;
mod status;
mod view;
mod volumes;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::StreamExt;
use kube::Client;
use tokio::task::JoinHandle;

use crate::binaries::Binaries;
use crate::cluster::Cluster;
use crate::csi::{CsiVersion, Stand};
use crate::kubeconfig;
use crate::upstream_programs::Part;
use crate::workdir::Workdir;

pub use cpi::CpiRun;
use cpi::Runs;
use image::Image;
use images::Images;
pub use plugin::CsiPlugin;
pub use pods::ContainerRun;
use pods::{Pods, Shared, Table, locked};
pub use root::Isolation;
pub(crate) use root::launcher;
use view::View;

/// How long the agent goes without looking at its processes.
const TICK: Duration = Duration::from_millis(250);

/// Stands in for the kubelets of all nodes. Dropping it ends the cloud providers it runs.
///
/// For each Running pod of a DaemonSet with a container that has the argument `--cloud-provider=vsphere`, it runs the
/// real program with the pod's arguments, files and service account. A program that ends is started again, and the pod
/// shows that in its status. For each Running pod of the CSI node plugin it adds the driver to the node's `CSINode`.
///
/// For each pod on a node with a container whose image the cluster [leaves to it](crate::ClusterOptions::images), it does what a kubelet
/// does: it runs the container from its image, or says that the image cannot be pulled; it makes the probes, restarts what ends, and
/// ends what is deleted.
///
/// Pods that use a claim and are never restarted end well once their volumes are attached; nothing is mounted, and nothing runs in them.
#[derive(Debug)]
pub struct NodeAgent {
    task: JoinHandle<()>,
    runs: Arc<Mutex<Runs>>,
    shared: Shared,
    workdir: Workdir,
}

/// What the agent's work needs.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) client: Client,
    pub(crate) server: String,
    pub(crate) ca: String,
    pub(crate) program: PathBuf,
    pub(crate) folder: PathBuf,
    /// The program that becomes containers; empty where no image is claimed.
    pub(crate) launcher: PathBuf,
}

impl std::fmt::Debug for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Site").field("folder", &self.folder).finish_non_exhaustive()
    }
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
        let claimed = cluster.images().to_vec();
        let (launcher, isolation) = match claimed.is_empty() {
            true => (PathBuf::new(), Isolation::None("no image is run".into())),
            false => {
                let launcher = launcher()?;
                let isolation = Isolation::possible(&launcher, workdir.path());
                isolation.tell();
                (launcher, isolation)
            }
        };
        let site = Site {
            client: kubeconfig::client(&cluster.agent_kubeconfig()).await?,
            server: cluster.server_url(),
            ca: cluster.ca_pem().to_owned(),
            program,
            folder: workdir.path().to_owned(),
            launcher,
        };
        let runs = Arc::new(Mutex::new(Runs::default()));
        let shared = Shared {
            site: Arc::new(site.clone()),
            images: Arc::new(Mutex::new(Images::new(claimed))),
            isolation: Arc::new(Mutex::new(isolation)),
            table: Arc::new(Mutex::new(Table::default())),
        };
        let task = tokio::spawn(work(site, runs.clone(), shared.clone()));
        Ok(Self {
            task,
            runs,
            shared,
            workdir,
        })
    }

    /// Makes an image in the OCI image layout available under a reference with a tag, on all nodes. Pods name it by that, or by a digest
    /// of the layout. Running containers keep the image that they have.
    pub async fn serve_image(&self, reference: &str, layout: &Path) -> Result<()> {
        ensure!(
            locked(&self.shared.images).claims(reference),
            "image {reference} is played by kwok: name it in ClusterOptions::images"
        );
        let (layout, folder) = (layout.to_owned(), self.dir().join("images"));
        let image = tokio::task::spawn_blocking(move || Image::unpack(&layout, &folder)).await??;
        locked(&self.shared.images).serve(reference, image);
        Ok(())
    }

    /// Makes the images of this version of the CSI driver available, which are programs of the test bed; those that are missing are built.
    /// Digests and mirrors are not known.
    pub async fn serve_csi(&self, version: CsiVersion) -> Result<()> {
        ensure!(
            version.stands().iter().any(|stand| locked(&self.shared.images).claims(stand.image)),
            "the CSI driver's controller is played by kwok: put CSI_IMAGES into ClusterOptions::images"
        );
        let folder = self.dir().join("images");
        let images = tokio::task::spawn_blocking(move || {
            let binaries = Binaries::ensure(&version.parts())?;
            let stands = version.stands().iter();
            let image = |stand: &Stand| anyhow::Ok((stand.image, Image::program(&binaries.path(stand.part), stand.args, &folder)?));
            stands.map(image).collect::<Result<Vec<_>>>()
        });
        for (reference, image) in images.await?? {
            locked(&self.shared.images).serve(reference, image);
        }
        Ok(())
    }

    /// From now on the image cannot be pulled.
    pub fn withdraw_image(&self, reference: &str) {
        locked(&self.shared.images).withdraw(reference);
    }

    /// How containers of images are run from their next start on.
    pub fn isolation(&self) -> Isolation {
        locked(&self.shared.isolation).clone()
    }

    /// Runs containers, from their next start on, as on a machine that permits no namespaces.
    pub fn forbid_namespaces(&self) {
        *locked(&self.shared.isolation) = Isolation::None("forbidden by the test".into());
    }

    /// The containers that run, or should run, from their images.
    pub fn containers(&self) -> Vec<ContainerRun> {
        locked(&self.shared.table).report()
    }

    /// The cloud providers that run or should run.
    pub fn runs(&self) -> Vec<CpiRun> {
        lock(&self.runs).report()
    }

    /// The folder with logs: one per cloud provider pod, named `NAMESPACE.POD.log`, and one per container of an image, named
    /// `NAMESPACE.POD.CONTAINER.log`.
    pub fn dir(&self) -> &Path {
        self.workdir.path()
    }

    /// The end of every log.
    pub fn logs(&self) -> String {
        let (runs, containers) = (self.runs(), self.containers());
        let logs = runs.iter().map(|run| &run.log).chain(containers.iter().map(|run| &run.log));
        logs.map(|log| format!("{}:\n{}\n", log.display(), crate::process::tail(log, 25)))
            .collect()
    }
}

impl Drop for NodeAgent {
    fn drop(&mut self) {
        self.task.abort();
        lock(&self.runs).close();
        locked(&self.shared.table).close();
    }
}

pub(crate) fn lock(runs: &Mutex<Runs>) -> MutexGuard<'_, Runs> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn work(site: Site, runs: Arc<Mutex<Runs>>, shared: Shared) {
    let mut view = View::default();
    let mut pods = Pods::new(shared);
    let mut changes = view::watch(&site.client);
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            Some(change) = changes.next() => view.take(change),
            _ = tick.tick() => {
                // Both lists must be whole: an empty view would end everything.
                if view.complete() {
                    pods.reconcile(&view);
                    cpi::reconcile(&site, &view, &runs).await;
                    csinode::reconcile(&site.client, &view).await;
                    claims::reconcile(&site.client, &view).await;
                }
            }
        }
    }
}
