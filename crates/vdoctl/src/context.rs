// SPDX-License-Identifier: Apache-2.0
//! Opens the cluster of a command (kubeconfig, context, version), finds its VDOConfig, and runs the operator's pipeline up to the plan.

use super::args::{Global, MatrixFile};
use super::error::sentence;
use super::matrix::{Choice, Used};
use super::{CliError, Exit, api_server_connection, remedy, stopping};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock};
use vdo::cluster::{ClusterError, Reader, Writer, get, server_version};
use vdo::reconcile::Phase;
use vdo::reconcile::{
    self, ClusterState, DriverFailure, DryRunCache, Mode, Planned, Ports, ReconcileError, ReconcileInput, acting, configs,
};
use vdo_api::api::{API_VERSION, Classify as _, Reason, VDOConfig};
use vdo_api::types::KubernetesVersion;
use vdo_core::manifest::Object;
use vdo_core::plan::{Plan, RepairHistory};
use vdo_source::fetch::{ChartRepository, MatrixSource};
use vdo_vsphere::vsphere::{Claim, Requirements};

/// How to install, where nothing is installed.
const INSTALL: &str = "Install VDO: vdoctl deploy --vcenter HOST --user NAME";

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
    pub left: Vec<Left>,
    /// Their names.
    pub undecided: BTreeSet<String>,
    /// What was decided.
    pub planned: Planned,
}

/// A cluster, and the matrix that is decided with: nothing can be decided before one was chosen.
pub(super) struct Deciding {
    context: Context,
    /// Which matrix it is.
    pub used: Used,
}

impl Deref for Deciding {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

impl DerefMut for Deciding {
    fn deref_mut(&mut self) -> &mut Context {
        &mut self.context
    }
}

impl Context {
    /// Finds the cluster and asks for its version.
    pub(super) async fn open(global: &Global) -> Result<Self, CliError> {
        let found = api_server_connection::options(global)?.connect().await?;
        let server = found.config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = found.client;
        let name = found.context.unwrap_or_else(|| "in-cluster".into());
        let kubernetes = server_version(&client).await.map_err(|error| match &error {
            ClusterError::Unavailable { source, .. } => api_server_connection::out_of_reach(&name, &server, source.as_ref()),
            ClusterError::TimedOut { after, .. } => api_server_connection::late(&name, &server, *after),
            _ => CliError::cluster(&error),
        })?;
        let ports = Ports {
            reader: Reader::Once(client.clone()),
            writer: Writer::new(client.clone(), |_, kind| stopping::wrote(kind)).behind(stopping::fence()),
            renders: vdo::reconcile::RenderCache::default(),
            permitted: vdo::reconcile::Permitted::default(),
            contents: vdo::reconcile::SoundContents::default(),
            evidence: vdo::reconcile::CrashLogs::default(),
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

    /// Decides with the matrix that is named, else as the operator does.
    pub(super) async fn choosing_from(self, named: &MatrixFile, global: &Global) -> Result<Deciding, CliError> {
        let choice = Choice::in_cluster(named, &self, global).await?;
        Ok(self.deciding_with(choice))
    }

    /// Decides as the operator does.
    pub(super) async fn like_the_operator(self, global: &Global) -> Result<Deciding, CliError> {
        self.choosing_from(&MatrixFile::default(), global).await
    }

    /// Decides with the matrix of this vdoctl, as an operator of this build is going to.
    pub(super) async fn like_this_build(self) -> Result<Deciding, CliError> {
        let why = "an operator of this version contains the same matrix";
        let choice = Choice::own(why.into(), None).await?;
        Ok(self.deciding_with(choice))
    }

    /// Decides with this matrix.
    pub(super) fn deciding_with(mut self, choice: Choice) -> Deciding {
        self.ports.repository = choice.repository;
        Deciding {
            context: self,
            used: choice.used,
        }
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

    /// Finds the VDOConfig that acts in this cluster.
    pub(super) async fn find_config(&self) -> Result<Deployed, CliError> {
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

    /// The VDOConfig that acts.
    pub(super) async fn acting(&self) -> Result<VDOConfig, CliError> {
        match self.find_config().await? {
            Deployed::Config(config) => Ok(*config),
            other => Err(self.no_config_error(&other)),
        }
    }

    /// The same, as an object.
    pub(super) async fn acting_object(&self) -> Result<Object, CliError> {
        let id = self.acting().await?.id();
        let found = get(&self.ports.client, API_VERSION, &id).await?;
        found.ok_or_else(|| CliError::new(Exit::NotFound, format!("{id} was deleted just now"), "Run vdoctl status."))
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

    /// The cluster id that the CSI driver is about to use, if it uses the connection that this is required of, with the volumes that the
    /// cluster knows. Where those cannot be read it is not checked; the operator does so before it writes.
    pub(super) async fn claim(&self, config: &VDOConfig, requirements: &Requirements) -> Option<Arc<Claim>> {
        let claim = reconcile::connection::claim(&self.ports.client, &self.ports.reader, config, requirements).await;
        claim.ok().flatten().map(Arc::new)
    }

    /// The error of a verb that needs a VDOConfig, where there is none.
    pub(super) fn no_config_error(&self, found: &Deployed) -> CliError {
        match found {
            Deployed::Nothing => CliError::new(
                Exit::NotFound,
                format!(
                    "VDO is not deployed in cluster {} ({}): the CustomResourceDefinition of VDOConfig does not exist",
                    self.name, self.server
                ),
                INSTALL,
            ),
            Deployed::NoConfig(others) if others.is_empty() => CliError::new(
                Exit::NotFound,
                format!(
                    "there is no VDOConfig in cluster {} ({}), so no driver is requested",
                    self.name, self.server
                ),
                format!(
                    "Create a VDOConfig in namespace {}; an empty spec installs both drivers.\nTo create it together with a vSphere connection: \
                     vdoctl deploy --vcenter HOST --user NAME",
                    self.namespace
                ),
            ),
            Deployed::NoConfig(others) => CliError::new(
                Exit::NotFound,
                format!("there is no VDOConfig in namespace {} of cluster {}", self.namespace, self.name),
                format!(
                    "Other namespaces have VDOConfig {}. An operator reads only its own namespace: if an operator runs there, name that namespace with -n.",
                    others.join(" and VDOConfig ")
                ),
            ),
            Deployed::Config(..) => CliError::new(Exit::Ok, "", ""),
        }
    }
}

impl Deciding {
    /// Runs the pipeline up to the plan, for the VDOConfig that acts.
    pub(super) async fn decide(&self) -> Result<Decided, CliError> {
        let config = self.acting().await?;
        let ((state, planned), _) = self.prepare(&config).await.map_err(|stopped| stopped.error)?;
        if let Some(error) = planned.runs.failure_of_all() {
            return Err(error.as_ref().into());
        }
        Ok(Decided::new(config, state, planned))
    }

    /// The pipeline up to the plan.
    pub(super) async fn prepare(&self, config: &VDOConfig) -> Phase<(ClusterState, Planned)> {
        let state = reconcile::observe(&self.ports.reader, config, self.kubernetes.clone()).await?;
        let (planned, found) = reconcile::plan_drivers(&self.input(config), &self.ports, &state).await?;
        Ok(((state, planned), found))
    }

    /// Which matrix is decided with, for the header of an answer, and whether the operator may decide otherwise.
    pub(super) fn matrix_lines(&self) -> impl Iterator<Item = String> {
        [Some(self.used.line()), self.used.warning()].into_iter().flatten()
    }
}

impl Decided {
    /// With the drivers that are left alone.
    pub(super) fn new(config: VDOConfig, state: ClusterState, planned: Planned) -> Self {
        let failures = planned.runs.failures();
        Self {
            config,
            state,
            planned,
            left: failures.iter().map(Left::of).collect(),
            undecided: failures.iter().flat_map(|failure| failure.drivers.clone()).collect(),
        }
    }
}

/// Drivers that are left at what was applied last.
pub(super) struct Left {
    /// Which, and why.
    pub what: String,
    /// Whether they wait for the driver of another manager to make room.
    pub is_kept_out: bool,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Left {
    fn of(failure: &DriverFailure) -> Self {
        let drivers: Vec<&str> = failure.drivers.iter().map(String::as_str).collect();
        let sentence = sentence(failure.error.as_ref());
        // A sentence about the driver names the driver already.
        let is_named = drivers.iter().all(|driver| remedy::names(&sentence, driver));
        let named = match is_named {
            true => String::new(),
            false => format!("{}: ", drivers.join(" and ")),
        };
        Self {
            what: format!("{named}{sentence}"),
            is_kept_out: failure.error.reason() == Reason::NotOurs,
        }
    }
}

/// Several of them, as one sentence.
pub(super) fn joined<'a>(all: impl IntoIterator<Item = &'a Left>) -> String {
    let all: Vec<&str> = all.into_iter().map(|left| left.what.as_str()).collect();
    all.join("; ")
}

/// namespace/name of a VDOConfig.
pub(super) fn id(config: &VDOConfig) -> String {
    format!("{}/{}", config.namespace().unwrap_or_default(), config.name_any())
}

/// The time, at the edge where it enters.
#[expect(clippy::disallowed_methods, reason = "the clock enters the command here")]
pub(super) fn now() -> Timestamp {
    Timestamp::now()
}
