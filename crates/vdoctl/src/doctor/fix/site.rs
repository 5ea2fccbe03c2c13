// SPDX-License-Identifier: Apache-2.0
//! Reads the cluster and logs in to its vCenter as administrator for `doctor --fix` and `--undo`; afterwards requests the operator's check.

use super::super::super::args::{Doctor as Args, DoctorVerb, Global, TypedTrust, UsersVcenter};
use super::super::super::context::{Context, Deployed};
use super::super::super::object_write::Change;
use super::super::super::support::word;
use super::super::super::{CliError, users};
use kube::ResourceExt;
use std::path::PathBuf;
use std::sync::Arc;
use vdo::cluster::ClusterError;
use vdo::reconcile::connection::requirements;
use vdo::reconcile::{ReconcileError, connection_objects};
use vdo_admin::accounts::ChangeError;
use vdo_admin::administrator::Administrator;
use vdo_api::api::VsphereCloudConfig;
use vdo_api::facts::Node;
use vdo_core::manifest::Object;
use vdo_vsphere::vcenter::{Budget, Endpoint, facts};
use vdo_vsphere::vsphere::{Inventory, NodeReport, Requirements, SessionError, match_vms};

/// Where things are fixed.
pub(super) struct Site {
    pub(super) endpoint: Endpoint,
    pub(super) admin: Administrator,
    /// The instance UUID of the vCenter.
    pub(super) vcenter: String,
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) requirements: Requirements,
    datacenters: Vec<String>,
    /// Where changes are recorded.
    pub(super) record: PathBuf,
    context: Context,
    /// The connections to this vCenter.
    connections: Vec<VsphereCloudConfig>,
}

impl Site {
    /// Looks at the cluster, and logs in. The password is asked for here and nowhere else.
    pub(super) async fn open(args: &Args, global: &Global) -> Result<(Self, Option<String>), CliError> {
        let looked = tokio::time::timeout(global.timeout(), look(args, global)).await;
        let (given, found) = looked.unwrap_or_else(|_| Err(CliError::timed_out(global.timeout())))?;
        let about = facts(&found.endpoint, &Budget::for_person(global.timeout)).await;
        let about = about.map_err(|error| super::failed(&ChangeError::Session(SessionError::Connection(error))))?;
        let (admin, warning) = users::log_in(&given, &found.endpoint).await?;
        let site = Self {
            vcenter: about.instance_uuid,
            admin,
            endpoint: found.endpoint,
            nodes: found.nodes,
            requirements: found.requirements,
            datacenters: found.datacenters,
            record: found.record,
            context: found.context,
            connections: found.connections,
        };
        Ok((site, warning))
    }

    /// Has the operator look at the vCenter now, where it would do so only with its next check. What keeps it from that.
    pub(super) async fn look_again(&self) -> Option<String> {
        for connection in &self.connections {
            if let Err(error) = wake(&self.context, connection).await {
                let name = connection.name_any();
                return Some(format!(
                    "vdoctl could not request a check of vSphere connection {name}, so the operator sees the changes only at its next check: {}.",
                    error.what
                ));
            }
        }
        None
    }

    /// The nodes with their machines.
    pub(super) fn reports(&self, inventory: &Inventory) -> Vec<NodeReport> {
        match_vms(&self.nodes, inventory, &self.datacenters, &self.requirements)
    }
}

struct FixSite {
    endpoint: Endpoint,
    nodes: Vec<Arc<Node>>,
    requirements: Requirements,
    datacenters: Vec<String>,
    record: PathBuf,
    context: Context,
    connections: Vec<VsphereCloudConfig>,
}

async fn wake(context: &Context, connection: &VsphereCloudConfig) -> Result<(), CliError> {
    let live = serde_json::to_value(connection).map_err(|error| CliError::internal(&error))?;
    let live = Object::new(live).map_err(|error| CliError::internal(&error))?;
    Change::reconcile(context, live).await?.make(context).await
}

async fn look(args: &Args, global: &Global) -> Result<(UsersVcenter, FixSite), CliError> {
    let context = Context::open(global).await?;
    let reader = &context.ports.reader;
    let nodes = vdo::reconcile::nodes(reader).await?;
    let connections = match connection_objects(reader, &global.namespace).await {
        Err(ReconcileError::Cluster(ClusterError::NotServed { .. })) => Vec::new(),
        result => result?,
    };
    let typed = &args.vcenter;
    let given = UsersVcenter {
        connection: match &args.what {
            Some(DoctorVerb::Connection { name }) => Some(name.clone()),
            _ => None,
        },
        vcenter: typed.vcenter.clone(),
        trust: TypedTrust {
            thumbprint: typed.thumbprint.clone(),
            ca_file: typed.ca_file.clone(),
            insecure: typed.insecure,
        },
        user: typed.user.clone().unwrap_or_default(),
        password_file: typed.password_file.clone(),
        domain: String::new(),
        output: args.format,
    };
    let (endpoint, connection) = users::place(&given, &context, &connections).await?;
    let names = connections.iter().map(ResourceExt::name_any).collect();
    let requirements = match (context.find_config().await?, connection) {
        (Deployed::Config(config), Some(connection)) => requirements(&config, &global.namespace, &names, &connection.name_any()),
        _ => Requirements::default(),
    };
    let default = || PathBuf::from(format!("vdo-fixes-{}.json", word(&context.name)));
    let server = endpoint.server.clone();
    let found = FixSite {
        endpoint,
        nodes,
        requirements,
        datacenters: connection.map_or_else(|| typed.datacenter.clone(), |one| one.spec.datacenters.clone()),
        record: args.fixing.record.clone().unwrap_or_else(default),
        connections: connections.iter().filter(|one| one.spec.vc_ip == server).cloned().collect(),
        context,
    };
    Ok((given, found))
}
