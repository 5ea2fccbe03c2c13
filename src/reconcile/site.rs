//! What the drivers are configured for: the vSphere connections, and the identity of the cluster (effect: reads).

use super::cluster_id::{ClusterId, agreed, cluster_id};
use super::driver_run::DriverRuns;
use super::error::ReconcileError;
use super::observe::{ClusterState, connections};
use super::phase::{Collect, Phase};
use super::preconditions::snapshots;
use super::requests::requests;
use super::{Ports, ReconcileInput, preconditions};
use kube::ResourceExt;
use vdo_api::api::VsphereCloudConfig;
use vdo_api::facts::Connection;
use vdo_core::drivers::STORAGE;
use vdo_core::status::Report;

/// What the drivers are configured for.
pub(super) struct Site {
    /// The namespace of the VDOConfig.
    pub namespace: String,
    /// The vSphere connections, as they are in the cluster.
    pub objects: Vec<VsphereCloudConfig>,
    /// Those in use, with everything that they refer to.
    pub connections: Vec<Connection>,
    /// The identity under which volumes are registered.
    pub cluster_id: ClusterId,
}

/// Reads the site, and what is asked for there. A connection that cannot be read fails the drivers that use it.
pub(super) async fn site(input: &ReconcileInput<'_>, ports: &Ports, state: &ClusterState) -> Phase<(Site, DriverRuns)> {
    let config = input.config;
    let mut found = Report::default();
    let namespace = config.namespace().unwrap_or_default();
    let objects = found.check(connections::connection_objects(&ports.reader, &namespace).await)?;
    let names = objects.iter().map(ResourceExt::name_any).collect();
    let mut runs = requests(&config.spec, &namespace, &names);
    let connections = found.check(in_use(ports, &objects, &mut runs).await)?;
    found.connections.clone_from(&connections);
    found.preconditions.push(preconditions::trust(&connections));
    found.preconditions.push(snapshots::check(&ports.reader, &config.spec).await);
    let cluster_id = found.check(cluster_id(input, ports, state, &runs).await)?;
    if let Err(error) = agreed(config, &cluster_id) {
        runs.of(STORAGE.name).fail(error);
    }
    let site = Site {
        namespace,
        objects,
        connections,
        cluster_id,
    };
    Ok(((site, runs), found))
}

async fn in_use(ports: &Ports, objects: &[VsphereCloudConfig], runs: &mut DriverRuns) -> Result<Vec<Connection>, ReconcileError> {
    let mut all: Vec<Connection> = Vec::new();
    for object in objects {
        let users = runs.users(&object.name_any());
        if users.is_empty() {
            continue;
        }
        match connections::connection(&ports.reader, object).await {
            Ok(mut connection) => {
                connection.drivers = users.into_iter().collect();
                all.push(connection);
            }
            Err(ReconcileError::Cluster(error)) => return Err(error.into()),
            Err(error) => runs.fail(&users, error),
        }
    }
    Ok(all)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use vdo_api::facts::Credentials;
    use vdo_api::types::{Secret, Trust};

    /// A connection that is verified by nothing yet.
    pub fn connection(name: &str) -> Connection {
        Connection {
            name: name.into(),
            server: "vc.example.com".into(),
            port: 443,
            datacenters: vec!["dc".into()],
            trust: Trust::SystemRoots,
            sha1: None,
            version: None,
            build: None,
            ready: Some(true),
            message: String::new(),
            credentials: Credentials {
                user: "user@vsphere.local".into(),
                password: Secret::new("password"),
            },
            blocked: None,
            drivers: Vec::new(),
            lacking_privileges: Vec::new(),
        }
    }
}
