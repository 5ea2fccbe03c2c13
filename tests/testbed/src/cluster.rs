// SPDX-License-Identifier: Apache-2.0
//! A Kubernetes cluster on loopback: real control plane, simulated nodes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};

use crate::audit::AuditLog;
use crate::binaries::Binaries;
use crate::kubeconfig::{self, Proof};
use crate::layout::{Layout, POLICY};
use crate::nodes::{self, NodeOptions};
use crate::process::Process;
use crate::upstream_programs::{Minor, Part};
use crate::wait::{PATIENCE, Probe, until};
use crate::workdir::Workdir;

/// What a cluster shall have.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// A lasting folder; without one a temporary folder is used and removed.
    pub dir: Option<PathBuf>,
    /// Runs kube-controller-manager.
    pub controller_manager: bool,
    /// Runs kube-scheduler.
    pub scheduler: bool,
    /// Runs kwok, which plays nodes and pods.
    pub kwok: bool,
    /// The control plane of another minor.
    pub minor: Option<Minor>,
    /// The version the API server says it is, such as `v1.35.0`. It stays the code of the control plane.
    pub reported_version: Option<String>,
    /// More arguments for kube-apiserver.
    pub apiserver_args: Vec<String>,
    /// Beginnings of image references, such as `ghcr.io/vdo-project/`. kwok leaves pods with such an image alone, and a
    /// [`NodeAgent`](crate::NodeAgent) runs them.
    pub images: Vec<String>,
    /// How long a node pulls the images of a pod that kwok plays.
    pub pull: Duration,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            dir: None,
            controller_manager: true,
            scheduler: true,
            kwok: true,
            minor: None,
            reported_version: None,
            apiserver_args: Vec::new(),
            images: Vec::new(),
            pull: Duration::ZERO,
        }
    }
}

impl ClusterOptions {
    /// etcd and kube-apiserver alone.
    pub fn api_only() -> Self {
        Self {
            controller_manager: false,
            scheduler: false,
            kwok: false,
            ..Self::default()
        }
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts = vec![Part::Etcd, Part::Apiserver];
        parts.extend(self.controller_manager.then_some(Part::ControllerManager));
        parts.extend(self.scheduler.then_some(Part::Scheduler));
        parts.extend(self.kwok.then_some(Part::Kwok));
        parts
    }
}

/// A running cluster. Dropping it ends everything and removes its temporary folder, unless the thread is panicking or
/// `VDO_TESTBED_KEEP` is set.
pub struct Cluster {
    // Dropped in this order: clients of a server before the server, the folder last.
    helpers: Vec<Process>,
    apiserver: Option<Process>,
    etcd: Process,
    client: Client,
    binaries: Binaries,
    options: ClusterOptions,
    layout: Layout,
}

impl Cluster {
    /// Starts a cluster, building the programs first where they are missing, and waits until it can be used.
    pub async fn start(options: ClusterOptions) -> Result<Self> {
        let parts = options.parts();
        let ensure = move || match options.minor {
            Some(minor) => Binaries::ensure_of(minor, &parts),
            None => Binaries::ensure(&parts),
        };
        let binaries = tokio::task::spawn_blocking(ensure).await??;
        let layout = Layout::prepare(Workdir::new("cluster", options.dir.as_deref())?)?;
        std::fs::write(layout.path("audit-policy.yaml"), POLICY)?;
        let etcd = layout.etcd(&binaries).spawn()?;
        let client = kubeconfig::client(&layout.path("admin.kubeconfig")).await?;
        let mut cluster = Self {
            helpers: Vec::new(),
            apiserver: None,
            etcd,
            client,
            binaries,
            options,
            layout,
        };
        match cluster.start_all().await {
            Ok(()) => Ok(cluster),
            Err(error) => {
                cluster.keep_dir();
                Err(error)
            }
        }
    }

    async fn start_all(&mut self) -> Result<()> {
        self.start_apiserver().await?;
        self.start_helpers()?;
        if self.options.controller_manager {
            self.await_default_account().await?;
        }
        Ok(())
    }

    /// A client that may do everything, known to the cluster as [`Cluster::ADMIN`].
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Everything that is stored, as etcd has it: keys such as `/registry/configmaps/NAMESPACE/NAME`, and bytes.
    pub async fn stored(&self) -> Result<Vec<(String, Vec<u8>)>> {
        crate::etcd::dump(self.layout.etcd_port()).await
    }

    /// The user behind [`Cluster::client`] and [`Cluster::kubeconfig`].
    pub const ADMIN: &str = "testbed-admin";

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.path("admin.kubeconfig")
    }

    /// The kubeconfig of the test bed's own node agent: the same rights, another name in the audit log.
    pub(crate) fn agent_kubeconfig(&self) -> PathBuf {
        self.layout.path("agent.kubeconfig")
    }

    /// The API server's address.
    pub fn server_url(&self) -> String {
        self.layout.server_url()
    }

    /// The authority that signed the API server's certificate.
    pub fn ca_pem(&self) -> &str {
        self.layout.ca()
    }

    /// The beginnings of the image references that are left to a node agent.
    pub(crate) fn images(&self) -> &[String] {
        &self.options.images
    }

    /// The folder with all state and logs.
    pub fn dir(&self) -> &Path {
        self.layout.dir()
    }

    /// Keeps the folder when the cluster ends, for a test that fails without a panic.
    pub fn keep_dir(&mut self) {
        self.layout.keep();
    }

    /// The programs.
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// The record of all requests.
    pub fn audit(&self) -> AuditLog {
        AuditLog::new(self.layout.path("audit.log"), self.client())
    }

    /// The process groups of everything that runs.
    pub fn process_groups(&self) -> Vec<u32> {
        self.helpers
            .iter()
            .chain(&self.apiserver)
            .chain([&self.etcd])
            .map(Process::group)
            .collect()
    }

    /// Writes a kubeconfig for a service account, with a token that outlives any test.
    pub async fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let token = token(&self.client, namespace, name, None).await?;
        let path = self.layout.path(&format!("{namespace}.{name}.kubeconfig"));
        let user = format!("system:serviceaccount:{namespace}:{name}");
        kubeconfig::write(&path, &self.server_url(), self.ca_pem(), &user, &Proof::Token(&token))
    }

    /// A token of a service account.
    pub async fn service_account_token(&self, namespace: &str, name: &str) -> Result<String> {
        token(&self.client, namespace, name, None).await
    }

    /// A client for a service account.
    pub async fn service_account_client(&self, namespace: &str, name: &str) -> Result<Client> {
        kubeconfig::client(&self.service_account_kubeconfig(namespace, name).await?).await
    }

    /// Applies a manifest, given as text, on the server's side; waits until the definitions in it are established.
    pub async fn apply_yaml(&self, yaml: &str) -> Result<Vec<DynamicObject>> {
        crate::apply::apply(&self.client, yaml).await
    }

    /// Applies a manifest file.
    pub async fn apply_file(&self, path: impl AsRef<Path>) -> Result<Vec<DynamicObject>> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).with_context(|| format!("manifest {}", path.display()))?;
        self.apply_yaml(&text).await.with_context(|| format!("manifest {}", path.display()))
    }

    /// Adds a node and waits until it is ready; without kwok it is marked ready and no one looks after it.
    pub async fn add_node(&self, options: NodeOptions) -> Result<()> {
        if self.options.kwok {
            return nodes::add(&self.client, &options).await;
        }
        nodes::create(&self.client, &options).await?;
        nodes::mark_ready(&self.client, &options.name).await
    }

    /// Ends the API server as a crash would, or does nothing if it is not running.
    pub fn stop_apiserver(&mut self) {
        self.apiserver = None;
    }

    /// Starts the API server on its old address and waits until it is ready.
    pub async fn start_apiserver(&mut self) -> Result<()> {
        let version = self.options.reported_version.clone();
        let version = version.unwrap_or_else(|| self.binaries.kubernetes().into());
        let binaries = self.binaries.clone();
        let program = tokio::task::spawn_blocking(move || binaries.apiserver_reporting(&version)).await??;
        self.apiserver = None;
        let mut apiserver = self.layout.apiserver(&program, &self.options.apiserver_args).spawn()?;
        let (client, etcd) = (self.client.clone(), &mut self.etcd);
        until("kube-apiserver", PATIENCE, async || {
            etcd.check()?;
            apiserver.check()?;
            let request = http::Request::get("/readyz").body(Vec::new())?;
            Ok(match client.request_text(request).await {
                Ok(_) => Probe::Ready(()),
                Err(error) => Probe::not_yet(error),
            })
        })
        .await
        .with_context(|| format!("log: {}", apiserver.log().display()))?;
        self.apiserver = Some(apiserver);
        Ok(())
    }

    /// Ends etcd as a crash would. The API server is left to see for itself what it can do without.
    pub fn stop_etcd(&mut self) {
        self.etcd.kill();
    }

    /// Starts etcd with the data that it had.
    pub fn start_etcd(&mut self) -> Result<()> {
        self.etcd = self.layout.etcd(&self.binaries).spawn()?;
        Ok(())
    }

    /// Restarts the API server so that it says it is another version.
    pub async fn report_version(&mut self, version: &str) -> Result<()> {
        self.options.reported_version = Some(version.into());
        self.start_apiserver().await
    }

    /// Fails if any part of the cluster has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        let Some(apiserver) = &mut self.apiserver else {
            bail!("kube-apiserver is stopped")
        };
        for process in self.helpers.iter_mut().chain([apiserver, &mut self.etcd]) {
            process.check()?;
        }
        Ok(())
    }

    fn start_helpers(&mut self) -> Result<()> {
        if self.options.controller_manager {
            self.helpers.push(self.layout.controller_manager(&self.binaries).spawn()?);
        }
        if self.options.scheduler {
            self.helpers.push(self.layout.scheduler(&self.binaries).spawn()?);
        }
        if self.options.kwok {
            self.helpers.push(self.layout.kwok(&self.binaries, &self.options)?.spawn()?);
        }
        Ok(())
    }

    /// Pods can be made in a namespace once it has its default service account.
    async fn await_default_account(&mut self) -> Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), "default");
        let helpers = &mut self.helpers;
        until("the default service account", PATIENCE, async || {
            helpers.iter_mut().try_for_each(Process::check)?;
            Ok(Probe::when(
                accounts.get_opt("default").await?.is_some(),
                "kube-controller-manager has not made it",
            ))
        })
        .await
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("server", &self.server_url())
            .field("dir", &self.dir())
            .finish_non_exhaustive()
    }
}

/// Asks for a token of a service account, bound to a pod or to nothing.
pub(crate) async fn token(
    client: &Client,
    namespace: &str,
    name: &str,
    pod: Option<k8s_openapi::api::authentication::v1::BoundObjectReference>,
) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let spec = TokenRequestSpec {
        audiences: Vec::new(),
        bound_object_ref: pod,
        expiration_seconds: Some(30 * 24 * 3600),
    };
    let request = TokenRequest {
        spec,
        ..TokenRequest::default()
    };
    let answer = accounts.create_token_request(name, &PostParams::default(), &request).await;
    let answer = answer.with_context(|| format!("token for service account {namespace}/{name}"))?;
    Ok(answer.status.context("the API server gave no token")?.token)
}
