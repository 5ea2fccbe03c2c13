// SPDX-License-Identifier: Apache-2.0
//! A test bed that stays up for people.

mod former;
mod images;
mod programs;
mod rest;
mod screen;
mod show;
mod story;
mod volume;

pub use images::ServedImage;
pub use programs::build;
pub use show::show;

use std::fmt;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};

use crate::kubeconfig::{self, Proof};
use crate::process::tail;
use crate::{
    Binaries, Cluster, ClusterOptions, ContainerRun, CsiVersion, NodeAgent, NodeOptions, Part, Probe, Vcenter, VcenterOptions, Vm, until,
};

/// What the test bed shall have.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The folder for all its state and logs
    #[arg(long, default_value = ".demo")]
    pub dir: PathBuf,
    /// How many workers
    #[arg(long, default_value_t = 3)]
    pub nodes: u8,
    /// How many control plane nodes
    #[arg(long, default_value_t = 1)]
    pub control_planes: u8,
    /// The version the vCenter reports
    #[arg(long, default_value = "8.0.3")]
    pub vcenter_version: String,
    /// The build the vCenter reports
    #[arg(long, default_value = "24022515")]
    pub vcenter_build: String,
    /// The Kubernetes version the API server reports
    #[arg(long)]
    pub kubernetes_version: Option<String>,
    /// An image that the nodes can pull: a folder in the OCI image layout. Pods with it are really run
    #[arg(long = "image", value_name = "REFERENCE=FOLDER")]
    pub images: Vec<ServedImage>,
    /// Really runs the controllers of CSI 3.8.0 and 3.7.0, so that claims are bound; other versions are played
    #[arg(long)]
    pub csi: bool,
    /// First installs the drivers with another tool, and has VDO take them over
    #[arg(long, value_name = "TOOL")]
    pub from: Option<former::Former>,
}

impl Options {
    /// The programs that this needs.
    fn parts(&self) -> Vec<Part> {
        let csi = if self.csi { CSI[0].parts() } else { Vec::new() };
        let tool = self.from.and_then(former::Former::part);
        PARTS.into_iter().chain(csi).chain(tool).collect()
    }
}

/// What runs, as `state.json` says it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    /// The process that holds everything.
    pub pid: i32,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The API server's address.
    pub server: String,
    /// The nodes' names; the virtual machines have the same.
    pub nodes: Vec<String>,
    /// The vCenter.
    pub vcenter: VcenterState,
    /// The audit log of the API server.
    pub audit_log: PathBuf,
    /// The folder with the logs of the cloud providers.
    pub node_agent: PathBuf,
    /// The folder with the programs, such as kubectl.
    pub binaries: PathBuf,
    /// Beginnings of the references of images whose pods are really run.
    #[serde(default)]
    pub images: Vec<String>,
    /// Whether controllers of the CSI driver are really run.
    #[serde(default)]
    pub csi: bool,
    /// The containers that run, or should run, from their images, with the places of their ports.
    #[serde(default)]
    pub containers: Vec<ContainerRun>,
}

/// The versions of the CSI driver that can be run. All have the same programs.
const CSI: [CsiVersion; 2] = [CsiVersion::Newest, CsiVersion::Newer];

/// The programs that are always needed.
const PARTS: [Part; 8] = [
    Part::Vcsim,
    Part::Etcd,
    Part::Apiserver,
    Part::ControllerManager,
    Part::Scheduler,
    Part::Kubectl,
    Part::Kwok,
    Part::Cpi,
];

/// The vCenter of a [`State`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VcenterState {
    /// The host to connect to.
    pub host: String,
    /// The port to connect to.
    pub port: u16,
    /// The one datacenter.
    pub datacenter: String,
    /// The user who can log in.
    pub user: String,
    /// The file with that user's password.
    pub password_file: PathBuf,
    /// The file with the authority of its certificate.
    pub ca_file: PathBuf,
    /// SHA-1 thumbprint of its certificate.
    pub thumbprint: String,
    /// SHA-256 thumbprint of its certificate.
    pub thumbprint_sha256: String,
    /// Its version.
    pub version: String,
    /// Its build.
    pub build: String,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vcenter = &self.vcenter;
        writeln!(f, "kubeconfig   {}", self.kubeconfig.display())?;
        writeln!(f, "API server   {}", self.server)?;
        writeln!(f, "nodes        {}", self.nodes.join(" "))?;
        writeln!(
            f,
            "vCenter      {}:{} ({} build {})",
            vcenter.host, vcenter.port, vcenter.version, vcenter.build
        )?;
        writeln!(f, "  user       {}", vcenter.user)?;
        writeln!(f, "  password   in {}", vcenter.password_file.display())?;
        writeln!(f, "  CA         {}", vcenter.ca_file.display())?;
        writeln!(f, "  SHA-1      {}", vcenter.thumbprint)?;
        for run in &self.containers {
            let ports: Vec<String> = run.ports.values().map(|place| format!("http://{place}")).collect();
            let problem = run.problem.as_ref().map_or(String::new(), |problem| format!(", {problem}"));
            writeln!(
                f,
                "pod          {}/{} {}{problem}, log {}",
                run.namespace,
                run.pod,
                ports.join(" "),
                run.log.display()
            )?;
        }
        write!(f, "process      {}", self.pid)
    }
}

/// Starts a test bed that outlives the caller, or finds the one that runs.
pub async fn up(options: &Options) -> Result<String> {
    let parts = options.parts();
    tokio::task::spawn_blocking(move || Binaries::ensure(&parts)).await??;
    let (state, found) = find_or_start(options).await?;
    let dir = options.dir.display();
    Ok(match found {
        true => format!("the test bed in {dir} is already running\n{state}"),
        false => format!("the test bed in {dir} is running\n{state}"),
    })
}

/// The test bed, and whether it ran before.
async fn find_or_start(options: &Options) -> Result<(State, bool)> {
    std::fs::create_dir_all(&options.dir)?;
    let dir = options.dir.canonicalize()?;
    if running(&dir)? {
        let state = ready(&dir, None).await?;
        images::ask(&dir, &state, &options.images).await?;
        return Ok((state, true));
    }
    let _ = std::fs::remove_file(dir.join("state.json"));
    let log = File::create(dir.join("testbed.log"))?;
    let mut command = Command::new("setsid");
    command.arg(std::env::current_exe()?).arg("run").arg("--dir").arg(&dir);
    command
        .arg("--nodes")
        .arg(options.nodes.to_string())
        .arg("--control-planes")
        .arg(options.control_planes.to_string());
    command.args([
        "--vcenter-version",
        &options.vcenter_version,
        "--vcenter-build",
        &options.vcenter_build,
    ]);
    if let Some(version) = &options.kubernetes_version {
        command.args(["--kubernetes-version", version]);
    }
    for image in &options.images {
        command.arg("--image").arg(image.argument());
    }
    if options.csi {
        command.arg("--csi");
    }
    // Not in a group of its own yet: setsid would fork, and this would not be the process that holds the test bed.
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let mut child = command.spawn().context("cannot run setsid (Debian: apt install util-linux)")?;
    Ok((ready(&dir, Some(&mut child)).await?, false))
}

async fn ready(dir: &Path, mut child: Option<&mut std::process::Child>) -> Result<State> {
    let log = dir.join("testbed.log");
    until("the test bed", Duration::from_secs(180), async || {
        if let Ok(state) = state(dir) {
            return Ok(Probe::Ready(state));
        }
        let status = match &mut child {
            Some(child) => child.try_wait()?,
            None => None,
        };
        if child.is_none() && !running(dir)? {
            bail!("the test bed ended; the end of {}:\n{}", log.display(), tail(&log, 15));
        }
        if let Some(status) = status {
            bail!("the test bed ended ({status}); the end of {}:\n{}", log.display(), tail(&log, 15));
        }
        Ok(Probe::not_yet(format!("see {}", log.display())))
    })
    .await
}

/// Ends the test bed and waits until it is gone.
pub async fn down(dir: &Path) -> Result<String> {
    if !running(dir)? {
        return Ok(format!("no test bed is running in {}", dir.display()));
    }
    let pid: i32 = std::fs::read_to_string(dir.join("pid"))?.trim().parse().context("pid file")?;
    kill(Pid::from_raw(pid), Signal::SIGTERM).with_context(|| format!("process {pid}"))?;
    // The lock of the folder is free a moment before the process is gone.
    let ended = || std::fs::read(format!("/proc/{pid}/cmdline")).map_or(true, |line| line.is_empty());
    let gone = until("the test bed's end", Duration::from_secs(20), async || {
        Ok(Probe::when(!running(dir)? && ended(), "still there"))
    })
    .await;
    if gone.is_err() {
        kill(Pid::from_raw(pid), Signal::SIGKILL).with_context(|| format!("process {pid}"))?;
    }
    let _ = std::fs::remove_file(dir.join("state.json"));
    Ok(format!("the test bed in {} has ended", dir.display()))
}

/// Says what runs.
pub fn status(dir: &Path) -> Result<String> {
    if !running(dir)? {
        return Ok(format!("no test bed is running in {}", dir.display()));
    }
    Ok(state(dir).map_or_else(|_| "the test bed is starting".into(), |state| state.to_string()))
}

/// Writes the kubeconfig of a service account of the running test bed.
pub async fn token(dir: &Path, namespace: &str, name: &str) -> Result<PathBuf> {
    if !running(dir)? {
        bail!("no test bed is running in {}", dir.display());
    }
    let state = state(dir)?;
    let client = kubeconfig::client(&state.kubeconfig).await?;
    let token = crate::cluster::token(&client, namespace, name, None).await?;
    let ca = std::fs::read_to_string(state.kubeconfig.with_file_name("cluster").join("ca.crt"))?;
    let path = dir.canonicalize()?.join(format!("{namespace}.{name}.kubeconfig"));
    kubeconfig::write(
        &path,
        &state.server,
        &ca,
        &format!("system:serviceaccount:{namespace}:{name}"),
        &Proof::Token(&token),
    )
}

fn state(dir: &Path) -> Result<State> {
    let path = dir.join("state.json");
    let text = std::fs::read(&path).with_context(|| format!("file {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("file {}", path.display()))
}

/// Whether someone holds the folder's lock.
fn running(dir: &Path) -> Result<bool> {
    let Ok(file) = File::open(dir.join("lock")) else { return Ok(false) };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error).context("lock of the test bed's folder"),
    }
}

/// Runs a test bed until it is stopped.
pub async fn run(options: &Options) -> Result<()> {
    std::fs::create_dir_all(&options.dir)?;
    let dir = options.dir.canonicalize()?;
    let lock = File::create(dir.join("lock"))?;
    if lock.try_lock().is_err() {
        bail!("another test bed is running in {}", dir.display());
    }
    std::fs::write(dir.join("pid"), std::process::id().to_string())?;
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut bed = tokio::select! {
        bed = start(options, &dir) => bed?,
        _ = term.recv() => return Ok(()),
        _ = int.recv() => return Ok(()),
    };
    bed.state.write(&dir)?;
    let mut look = tokio::time::interval(Duration::from_millis(250));
    let outcome = loop {
        tokio::select! {
            _ = term.recv() => break Ok(()),
            _ = int.recv() => break Ok(()),
            _ = look.tick() => {
                if !dir.join("lock").exists() {
                    break Err(anyhow!("the folder {} is gone", dir.display()));
                }
                // Half a test bed helps no one; an operator that has ended is something to look at.
                let mut whole = bed.cluster.check().and_then(|()| bed.vcenter.check()).and_then(|()| bed.tend(&dir));
                if whole.is_ok() {
                    whole = images::tend(&bed.agent, &dir).await;
                }
                if whole.is_err() {
                    break whole;
                }
            }
        }
    };
    let _ = std::fs::remove_file(dir.join("state.json"));
    drop(bed);
    outcome
}

impl State {
    fn write(&self, dir: &Path) -> Result<()> {
        // Complete or absent: someone waits for it.
        std::fs::write(dir.join("state.json.new"), serde_json::to_string_pretty(self)?)?;
        std::fs::rename(dir.join("state.json.new"), dir.join("state.json"))?;
        Ok(())
    }
}

impl Bed {
    fn tend(&mut self, dir: &Path) -> Result<()> {
        let containers = self.agent.containers();
        if containers != self.state.containers {
            self.state.containers = containers;
            self.state.write(dir)?;
        }
        Ok(())
    }
}

struct Bed {
    state: State,
    agent: NodeAgent,
    vcenter: Vcenter,
    cluster: Cluster,
}

async fn start(options: &Options, dir: &Path) -> Result<Bed> {
    let control_planes = (1..=options.control_planes).map(|n| NodeOptions::control_plane(&format!("cp-{n}")));
    let workers = (1..=options.nodes).map(|n| NodeOptions::worker(&format!("w-{n}")));
    let nodes: Vec<NodeOptions> = control_planes.chain(workers).map(NodeOptions::uninitialized).collect();
    let vms = nodes
        .iter()
        .enumerate()
        .map(|(n, node)| Vm::new(&node.name, &format!("192.168.10.{}", n + 11)));
    let vcenter_options = VcenterOptions {
        version: options.vcenter_version.clone(),
        build: options.vcenter_build.clone(),
        vms: vms.collect(),
        dir: Some(dir.join("vcenter")),
        ..VcenterOptions::default()
    };
    let csi: &[CsiVersion] = if options.csi { &CSI } else { &[] };
    let csi_images = csi.iter().map(|version| version.claim().to_owned());
    let cluster_options = ClusterOptions {
        dir: Some(dir.join("cluster")),
        reported_version: options.kubernetes_version.clone(),
        images: options.images.iter().map(ServedImage::claim).chain(csi_images).collect(),
        ..ClusterOptions::default()
    };
    let (vcenter, cluster) = tokio::try_join!(Vcenter::start(vcenter_options), Cluster::start(cluster_options))?;
    for node in &nodes {
        cluster.add_node(node.clone()).await?;
    }
    let agent = NodeAgent::start(&cluster).await?;
    images::serve(&agent, &options.images).await?;
    for version in csi {
        agent.serve_csi(*version).await?;
    }
    let kubeconfig = dir.join("admin.kubeconfig");
    std::fs::copy(cluster.kubeconfig(), &kubeconfig)?;
    let state = State {
        pid: i32::try_from(std::process::id())?,
        kubeconfig,
        server: cluster.server_url(),
        nodes: nodes.into_iter().map(|node| node.name).collect(),
        vcenter: VcenterState {
            host: vcenter.host().into(),
            port: vcenter.port(),
            datacenter: vcenter.options().datacenter.clone(),
            user: vcenter.user().into(),
            password_file: vcenter.dir().join("password"),
            ca_file: vcenter.dir().join("ca.crt"),
            thumbprint: vcenter.thumbprint_sha1(),
            thumbprint_sha256: vcenter.thumbprint_sha256(),
            version: options.vcenter_version.clone(),
            build: options.vcenter_build.clone(),
        },
        audit_log: cluster.audit().path().to_owned(),
        node_agent: agent.dir().to_owned(),
        binaries: cluster.binaries().path(Part::Kubectl).parent().unwrap_or(dir).to_owned(),
        images: options.images.iter().map(ServedImage::claim).collect(),
        csi: options.csi,
        containers: Vec::new(),
    };
    Ok(Bed {
        state,
        agent,
        vcenter,
        cluster,
    })
}
