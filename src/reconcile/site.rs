// SPDX-License-Identifier: Apache-2.0
//! The phase site: reads specification, values, connections and cluster id; the result is a `Site` and the driver requests (effect).

use super::cluster_id::{ClusterId, agreed, cluster_id};
use super::driver_run::DriverRuns;
use super::error::ReconcileError;
use super::observe::{ClusterState, connections};
use super::phase::{Collect, Phase};
use super::preconditions::{snapshot_controller, volume_warnings};
use super::requests::requests;
use super::{Mode, Ports, ReconcileInput, preconditions};
use crate::cluster::{Select, Watch};
use kube::ResourceExt;
use std::borrow::Cow;
use vdo_api::api::{VDOConfig, VDOConfigSpec, ValuesFrom, VsphereCloudConfig};
use vdo_api::facts::Connection;
use vdo_core::drivers::{self, STORAGE, Unread};
use vdo_core::manifest::Object;
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
    /// The specification, with the default classes that it leads to in this cluster.
    pub spec: VDOConfigSpec,
}

/// Reads the site, and what is asked for there. A connection that cannot be read fails the drivers that use it.
pub(super) async fn site(input: &ReconcileInput<'_>, ports: &Ports, state: &ClusterState) -> Phase<(Site, DriverRuns)> {
    let config = input.config;
    let mut found = Report::default();
    let namespace = config.namespace().unwrap_or_default();
    let objects = found.or_stop(connections::connection_objects(&ports.reader, &namespace).await)?;
    let names = objects.iter().map(ResourceExt::name_any).collect();
    let (config, unread) = found.or_stop(with_sources(ports, config, &namespace).await)?;
    let config = config.as_ref();
    let mut runs = requests(&config.spec, &namespace, &names);
    for one in unread {
        runs.of(&one.driver).fail(ReconcileError::ValuesNotFound {
            field: one.field,
            problem: one.problem,
        });
    }
    let connections = found.or_stop(in_use(ports, &objects, &mut runs).await)?;
    found.connections.clone_from(&connections);
    found.preconditions.push(preconditions::trust(&connections));
    found.preconditions.push(snapshot_controller::check(&ports.reader, config).await);
    // A command shows writes, and `vdoctl doctor volumes` reads everything.
    if input.mode == Mode::Operator {
        found
            .preconditions
            .push(volume_warnings::check(&ports.reader, config, input.now).await);
    }
    let cluster_id = found.or_stop(cluster_id(input, ports, state, &objects, &runs).await)?;
    if let Err(error) = agreed(config, &cluster_id) {
        runs.of(STORAGE.name).fail(error);
    }
    let site = Site {
        namespace,
        objects,
        connections,
        cluster_id,
        spec: found.or_stop(specification(ports, config.spec.clone(), state).await)?,
    };
    Ok(((site, runs), found))
}

/// The VDOConfig with the values that ConfigMaps and Secrets bring, and the drivers of which some cannot be read.
async fn with_sources<'a>(
    ports: &Ports,
    config: &'a VDOConfig,
    namespace: &str,
) -> Result<(Cow<'a, VDOConfig>, Vec<Unread>), ReconcileError> {
    let sources = drivers::values_sources(&config.spec);
    if sources.is_empty() {
        return Ok((Cow::Borrowed(config), Vec::new()));
    }
    let mut texts = Vec::new();
    for source in sources {
        let text = connections::text_of(&ports.reader, source.kind.into(), namespace, &source.name, &source.key).await?;
        texts.push((source, text));
    }
    let read = |source: &ValuesFrom| texts.iter().find(|(known, _)| *known == source).and_then(|(_, text)| text.clone());
    let (spec, unread) = drivers::with_values_from(&config.spec, read);
    let filled = VDOConfig { spec, ..config.clone() };
    Ok((Cow::Owned(filled), unread))
}

/// The specification. The classes of the cluster are watched only where it asks for a default one.
async fn specification(ports: &Ports, mut spec: VDOConfigSpec, state: &ClusterState) -> Result<VDOConfigSpec, ReconcileError> {
    let is_ours = |class: &Object| state.inventory.objects.contains_key(&class.id());
    if drivers::default_class(&spec).is_some() {
        let watch = Watch::new("storage.k8s.io/v1", "StorageClass", "", Select::All);
        let classes = ports.reader.load([watch.clone()]).await?.list(&watch);
        spec = drivers::with_default_class(&spec, &classes, is_ours);
    }
    if drivers::default_snapshot_class(&spec).is_some() && snapshot_controller::have_classes(&ports.reader, &spec).await? {
        let watch = Watch::new(snapshot_controller::API_VERSION, "VolumeSnapshotClass", "", Select::All);
        let classes = ports.reader.load([watch.clone()]).await?.list(&watch);
        spec = drivers::with_default_snapshot_class(&spec, &classes, is_ours);
    }
    Ok(spec)
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
            machines_twice: None,
            tag_categories: Some(std::collections::BTreeMap::new()),
        }
    }
}
