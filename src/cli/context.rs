//! The cluster of a command: found as kubectl finds it, and read once.

use super::args::{Global, MatrixFile};
use super::error::sentence;
use super::matrix::repository;
use super::{CliError, Exit};
use crate::api::{API_VERSION, MatrixStatus, VDOConfig};
use crate::cluster::{ClusterError, KubeOptions, Reader, Writer, get, server_version};
use crate::fetch::{ChartRepository, MatrixSource};
use crate::manifest::Object;
use crate::plan::{Plan, RepairHistory};
use crate::reconcile::Phase;
use crate::reconcile::{
    self, ClusterState, Decision, DriverFailure, DryRunCache, Mode, Ports, ReconcileError, ReconcileInput, acting, configs,
};
use crate::types::KubernetesVersion;
use crate::vsphere::{Claim, Requirements};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

/// How to install, where nothing is installed.
const INSTALL: &str = "Install it: vdoctl deploy --vcenter HOST --user NAME";

/// A cluster that has answered.
pub(super) struct Context {
    /// What people call it: the context, or `in-cluster`.
    pub name: String,
    /// The address of the API server.
    pub server: String,
    /// The version of the API server.
    pub kubernetes: KubernetesVersion,
    /// The ports of the pipeline.
    pub ports: Ports,
    namespace: String,
}

/// What there is of VDO in a cluster.
pub(super) enum Deployed {
    /// Not even the definitions of its objects.
    Nothing,
    /// The definitions, but no VDOConfig in the namespace; those of other namespaces are named.
    NoConfig(Vec<String>),
    /// The VDOConfig that acts.
    Config(Box<VDOConfig>),
}

/// Everything that was decided for a cluster.
pub(super) struct Decided {
    /// The object it was decided for.
    pub config: VDOConfig,
    /// What was found.
    pub state: ClusterState,
    /// Drivers of which it could not be decided what should exist, each with why.
    pub left: Vec<String>,
    /// What was decided.
    pub decision: Decision,
    /// From which matrix.
    matrix: Option<MatrixStatus>,
}

impl Decided {
    /// That the operator decides with another matrix, if it does.
    pub(super) fn other_matrix(&self) -> Option<String> {
        let own = self.matrix.as_ref()?;
        let other = self
            .config
            .status
            .as_ref()?
            .matrix
            .as_ref()
            .filter(|other| other.digest != own.digest)?;
        Some(format!(
            "The operator decides with another matrix than this: {}, version {}; give it with --matrix to decide as it does.",
            other.source, other.version
        ))
    }
}

impl Context {
    /// Finds the cluster and asks for its version.
    pub(super) async fn open(global: &Global) -> Result<Self, CliError> {
        let options = KubeOptions {
            kubeconfig: global.kubeconfig.clone(),
            context: global.context.clone(),
            impersonate: global.impersonate.clone(),
            // Before the time of the verb is over: this error says more than that one.
            timeout: Some(global.timeout() * 9 / 10),
        };
        let found = options.connect().await?;
        let server = found.config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = found.client;
        let name = found.context.unwrap_or_else(|| "in-cluster".into());
        let kubernetes = server_version(&client).await.map_err(|error| match &error {
            ClusterError::Unavailable { source, .. } => out_of_reach(&name, &server, &sentence(source.as_ref())),
            ClusterError::TimedOut { after, .. } => out_of_reach(&name, &server, &format!("no answer within {} s", after.as_secs())),
            _ => CliError::cluster(&error),
        })?;
        let ports = Ports {
            reader: Reader::Once(client.clone()),
            writer: Writer::new(client.clone(), |_, _| {}),
            renders: crate::reconcile::RenderCache::default(),
            permitted: crate::reconcile::Permitted::default(),
            evidence: crate::reconcile::CrashLogs::default(),
            repository: ChartRepository::new(MatrixSource::Embedded),
            dry_runs: Some(DryRunCache::default()),
            client,
        };
        Ok(Self {
            name,
            server,
            kubernetes,
            ports,
            namespace: global.namespace.clone(),
        })
    }

    /// Chooses versions and takes charts from this matrix, as an operator does that was started with it.
    pub(super) async fn choosing_from(self, named: &MatrixFile, global: &Global) -> Result<Self, CliError> {
        let (repository, _) = repository(named, global).await?;
        Ok(self.with(repository))
    }

    /// The same, with this matrix.
    pub(super) fn with(mut self, repository: ChartRepository) -> Self {
        self.ports.repository = repository;
        self
    }

    /// The namespace of the operator.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// From now on the cluster is read as if these objects were there.
    pub(super) fn suppose(&mut self, objects: Vec<Object>) {
        self.ports.reader = Reader::Preview(self.ports.client.clone(), objects.into());
    }

    /// Whether it is read as if something were there.
    pub(super) fn supposes(&self) -> bool {
        matches!(self.ports.reader, Reader::Preview(..))
    }

    /// Looks for a VDOConfig.
    pub(super) async fn deployed(&self) -> Result<Deployed, CliError> {
        let reader = &self.ports.reader;
        let all = match configs(reader, "").await {
            Err(ClusterError::Forbidden { .. }) => configs(reader, &self.namespace).await,
            result => result,
        };
        let all = match all {
            Ok(all) => all,
            Err(ClusterError::NotServed { .. }) => return Ok(Deployed::Nothing),
            Err(error) => return Err(error.into()),
        };
        let here = acting(
            all.iter()
                .map(AsRef::as_ref)
                .filter(|c: &&VDOConfig| c.namespace().as_deref() == Some(self.namespace.as_str())),
        );
        Ok(match here {
            Some(config) => Deployed::Config(Box::new(config.clone())),
            None => Deployed::NoConfig(all.iter().map(|config| id(config)).collect()),
        })
    }

    /// Runs the pipeline up to the plan, for the VDOConfig that acts.
    pub(super) async fn decide(&self) -> Result<Decided, CliError> {
        let config = self.acting().await?;
        let ((state, mut decision), found) = self.prepare(&config).await.map_err(|stopped| stopped.error)?;
        let failures = std::mem::take(&mut decision.failures);
        let left = failures.iter().map(left_alone).collect();
        if let Some(error) = failures.of_all(&decision.requested) {
            return Err(error.into());
        }
        Ok(Decided {
            config,
            state,
            decision,
            left,
            matrix: found.matrix,
        })
    }

    /// The VDOConfig that acts.
    pub(super) async fn acting(&self) -> Result<VDOConfig, CliError> {
        match self.deployed().await? {
            Deployed::Config(config) => Ok(*config),
            other => Err(self.missing(&other)),
        }
    }

    /// The same, as an object.
    pub(super) async fn acting_object(&self) -> Result<Object, CliError> {
        let id = reconcile::id(&self.acting().await?);
        let found = get(&self.ports.client, API_VERSION, &id).await?;
        found.ok_or_else(|| {
            CliError::new(
                Exit::NotFound,
                format!("{id} was deleted just now"),
                "vdoctl status says what is there.",
            )
        })
    }

    /// Every delete that the removal of the drivers leads to.
    pub(super) async fn removal(&self, config: &VDOConfig) -> Result<(ClusterState, Plan), ReconcileError> {
        reconcile::uninstallation(&self.input(config), &self.ports).await
    }

    /// What the pipeline knows when it begins for this VDOConfig.
    pub(super) fn input<'a>(&self, config: &'a VDOConfig) -> ReconcileInput<'a> {
        static NOTHING_FORCED: BTreeSet<String> = BTreeSet::new();
        static NO_HISTORY: LazyLock<RepairHistory> = LazyLock::new(RepairHistory::default);
        ReconcileInput {
            mode: Mode::Command,
            config,
            acting: config.metadata.name.as_deref().unwrap_or_default(),
            kubernetes: self.kubernetes.clone(),
            now: now(),
            force_reapply: &NOTHING_FORCED,
            timeout: std::time::Duration::from_secs(300),
            history: &NO_HISTORY,
            due: true,
        }
    }

    /// The pipeline up to the plan.
    pub(super) async fn prepare(&self, config: &VDOConfig) -> Phase<(ClusterState, Decision)> {
        let state = reconcile::observe(&self.ports.reader, config, self.kubernetes.clone()).await?;
        let (decision, found) = reconcile::decide(&self.input(config), &self.ports, &state).await?;
        Ok(((state, decision), found))
    }

    /// The cluster id that the CSI driver is about to use, if it uses the connection that this is required of, with the volumes that the
    /// cluster knows. Where those cannot be read it is not checked; the operator does so before it writes.
    pub(super) async fn claim(&self, config: &VDOConfig, requirements: &Requirements) -> Option<Arc<Claim>> {
        let claim = reconcile::connection::claim(&self.ports.client, &self.ports.reader, config, requirements).await;
        claim.ok().flatten().map(Arc::new)
    }

    /// Why there is nothing to look at.
    pub(super) fn missing(&self, found: &Deployed) -> CliError {
        match found {
            Deployed::Nothing => CliError::new(
                Exit::NotFound,
                format!(
                    "VDO is not deployed in cluster {} ({}): it has no VDOConfig definition",
                    self.name, self.server
                ),
                INSTALL,
            ),
            Deployed::NoConfig(others) if others.is_empty() => CliError::new(
                Exit::NotFound,
                format!(
                    "there is no VDOConfig in cluster {} ({}), so no driver is asked for",
                    self.name, self.server
                ),
                format!("Create one in namespace {}; an empty spec installs both drivers.", self.namespace),
            ),
            Deployed::NoConfig(others) => CliError::new(
                Exit::NotFound,
                format!("there is no VDOConfig in namespace {} of cluster {}", self.namespace, self.name),
                format!(
                    "There is {}. An operator reads only its own namespace: name another with -n if one runs there.",
                    others.join(" and ")
                ),
            ),
            Deployed::Config(..) => CliError::new(Exit::Ok, "", ""),
        }
    }
}

/// A driver that is left at what was applied last.
fn left_alone(failure: &DriverFailure) -> String {
    let drivers: Vec<&str> = failure.drivers.iter().map(String::as_str).collect();
    format!(
        "{}: {}; nothing new of it is applied",
        drivers.join(" and "),
        sentence(&failure.error)
    )
}

/// namespace/name of a VDOConfig.
pub(super) fn id(config: &VDOConfig) -> String {
    format!("{}/{}", config.namespace().unwrap_or_default(), config.name_any())
}

fn out_of_reach(name: &str, server: &str, cause: &str) -> CliError {
    CliError::new(
        Exit::Cluster,
        format!("cluster {name} at {server} cannot be reached: {cause}"),
        "Check that it runs and that this machine may connect to it, or choose another with --kubeconfig or --context.",
    )
}

/// The time, at the edge where it enters.
#[expect(clippy::disallowed_methods, reason = "the clock enters the command here")]
pub(super) fn now() -> Timestamp {
    Timestamp::now()
}
