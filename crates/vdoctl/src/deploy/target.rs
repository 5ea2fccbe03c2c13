// SPDX-License-Identifier: Apache-2.0
//! Reads the cluster for `vdoctl deploy` (nodes, served kinds, OpenShift, existing VDO), and builds the operator's own objects for it.

use super::super::CliError;
use super::super::args::{Deploy as Args, Global, MatrixFile};
use super::super::context::{Context, Deciding};
use super::super::matrix::Choice;
use super::super::progress::{Mark, Progress};
use super::super::rights::serves_constraints;
use super::installed::Installed;
use super::network;
use super::openshift::Found;
use std::sync::Arc;
use vdo::cluster::unserved;
use vdo_api::facts::Node;
use vdo_api::types::count;
use vdo_core::install::{HostNetwork, Mounts, Settings, Toleration, objects};
use vdo_core::manifest::Object;
use vdo_core::openshift::proxy::Proxy;

/// The API group of admission policies.
const ADMISSION: &str = "admissionregistration.k8s.io";

/// A cluster, as far as a deployment depends on it.
pub(crate) struct Target {
    /// Its nodes.
    pub(super) nodes: Vec<Arc<Node>>,
    /// What OpenShift knows.
    pub(super) openshift: Found,
    /// What of VDO there is.
    pub(crate) installed: Installed,
    served: Served,
    settings: Settings,
    asked_for_host_network: bool,
}

/// What of the operator's objects the API server decides.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Served {
    /// It serves admission policies, as it does from Kubernetes 1.30 on.
    admission_policies: bool,
    /// It serves SecurityContextConstraints, as that of OpenShift does.
    constraints: bool,
}

impl Served {
    async fn look(context: &Context) -> Result<Self, CliError> {
        let policies = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];
        let policies = policies.map(|kind| (format!("{ADMISSION}/v1"), kind.to_owned()));
        Ok(Self {
            admission_policies: unserved(&context.ports.client, &policies).await?.is_empty(),
            constraints: serves_constraints(context).await?,
        })
    }
}

impl Target {
    /// Asks the cluster.
    pub(crate) async fn look(args: &Args, global: &Global, context: &Context, nodes: Vec<Arc<Node>>) -> Result<Self, CliError> {
        let host_network = network::host_network(args.host_network, &context.ports.client, &nodes).await?;
        let served = Served::look(context).await?;
        let openshift = Found::look(context).await?;
        let mut settings = settings(args, global, host_network, served, openshift.proxy.clone());
        let bare = operator(&settings, Mounts::default())?;
        let installed = Installed::look(context, &bare).await?;
        // A deployment that forgets the flag must not take the operator off its node.
        if let (true, Some(live)) = (args.toleration.is_empty(), installed.operator(context)) {
            settings.tolerations = Toleration::added(live, &bare);
        }
        Ok(Self {
            nodes,
            openshift,
            installed,
            served,
            settings,
            asked_for_host_network: args.host_network,
        })
    }

    /// The operator's own objects, as far as the API server serves their kinds, with what it gets for the source of its matrix.
    pub(crate) fn operator(&self, matrix: Mounts) -> Result<Vec<Object>, CliError> {
        let mut all = operator(&self.settings, matrix)?;
        if !self.served.admission_policies {
            all.retain(|object| object.identity().group() != ADMISSION);
        }
        Ok(all)
    }

    /// The cluster, and what it means for the operator.
    pub(super) fn shown(&self, context: &Context, progress: &mut Progress) {
        let line = format!(
            "cluster {} ({}), Kubernetes {}, {}",
            context.name,
            context.server,
            context.kubernetes.raw(),
            count(self.nodes.len(), "node")
        );
        progress.step(Mark::Done, &line);
        if let Some(network) = &self.settings.host_network {
            progress.step(Mark::Note, &network::reported(network, self.asked_for_host_network));
        }
        let notes = [
            (
                self.served.constraints,
                "the operator gets the rights for OpenShift: SecurityContextConstraints for the drivers' pods",
            ),
            (
                self.openshift.proxy.is_some(),
                "the operator uses the proxy of the cluster, as set in Proxy cluster",
            ),
            (
                !self.served.admission_policies,
                "the operator gets no admission policy, because this API server does not serve ValidatingAdmissionPolicies",
            ),
        ];
        for (_, note) in notes.iter().filter(|(applies, _)| *applies) {
            progress.step(Mark::Note, note);
        }
    }

    /// Decides with the matrix that the operator is going to have.
    pub(crate) async fn deciding(&self, matrix: &MatrixFile, global: &Global, context: Context) -> Result<Deciding, CliError> {
        match (&matrix.matrix, self.installed.has_another_matrix()) {
            (Some(_), _) => {
                let choice = Choice::in_cluster(matrix, &context, global).await?;
                Ok(context.deciding_with(choice))
            }
            (None, true) => context.like_the_operator(global).await,
            (None, false) => context.like_this_build().await,
        }
    }
}

/// How the operator is to be installed.
pub(super) fn settings(args: &Args, global: &Global, host_network: Option<HostNetwork>, served: Served, proxy: Option<Proxy>) -> Settings {
    Settings {
        namespace: global.namespace.clone(),
        image: args.image.clone(),
        registry: args.image_registry.clone(),
        args: Vec::new(),
        matrix: Mounts::default(),
        host_network,
        openshift: served.constraints,
        proxy,
        tolerations: args.toleration.clone(),
    }
}

/// The operator's own objects, with what it gets for the source of its matrix.
pub(super) fn operator(settings: &Settings, matrix: Mounts) -> Result<Vec<Object>, CliError> {
    let settings = Settings {
        matrix,
        ..settings.clone()
    };
    objects(&settings).map_err(|error| CliError::internal(&error))
}
