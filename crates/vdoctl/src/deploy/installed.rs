// SPDX-License-Identifier: Apache-2.0
//! Reads the operator and VDOConfig that exist in the cluster; refuses `vdoctl deploy`: downgrade, second operator, Helm or OLM, deletion.

use super::super::context::{Context, Deployed, id};
use super::super::{CliError, Exit};
use kube::ResourceExt;
use serde_json::Value;
use vdo::cluster::{ClusterError, Select, Watch, get, list};
use vdo_api::api::{VDOConfig, VsphereCloudConfig};
use vdo_core::install::{Change, Manager, OPERATOR, change, operator_version};
use vdo_core::manifest::Object;
use vdo_source::fetch::MatrixSource;

/// What there is of an installation.
pub(crate) struct Installed {
    /// The version of the operator, where there is one.
    pub(super) version: Option<String>,
    /// The VDOConfig that acts.
    pub(crate) config: Option<VDOConfig>,
    connections: Vec<VsphereCloudConfig>,
    /// The operator's Deployments, of every namespace.
    operators: Vec<Object>,
    /// What is there of the objects that an installation begins with, each if it is there.
    ground: Vec<Object>,
}

impl Installed {
    /// Reads it. `wanted` is what is going to be applied.
    pub(super) async fn look(context: &Context, wanted: &[Object]) -> Result<Self, CliError> {
        let client = &context.ports.client;
        let operators = list(client, &Watch::new("apps/v1", "Deployment", "", Select::Name(OPERATOR.into()))).await?;
        let mut ground = Vec::new();
        for object in wanted
            .iter()
            .filter(|o| matches!(o.kind(), "Namespace" | "CustomResourceDefinition"))
        {
            ground.extend(get(client, object.api_version(), object.identity()).await?);
        }
        let config = match context.find_config().await? {
            Deployed::Config(config) => Some(*config),
            Deployed::Nothing | Deployed::NoConfig(_) => None,
        };
        let connections = match vdo::reconcile::connection_objects(&context.ports.reader, context.namespace()).await {
            Err(vdo::reconcile::ReconcileError::Cluster(ClusterError::NotServed { .. })) => Vec::new(),
            found => found?,
        };
        let own = operators.iter().find(|operator| operator.namespace() == context.namespace());
        Ok(Self {
            version: own.and_then(operator_version),
            config,
            connections,
            ground,
            operators,
        })
    }

    /// The operator's Deployment, where there is one.
    pub(super) fn operator(&self, context: &Context) -> Option<&Object> {
        self.operators.iter().find(|operator| operator.namespace() == context.namespace())
    }

    /// Whether the operator decides with another matrix than the one inside of it.
    pub(super) fn has_another_matrix(&self) -> bool {
        let status = self.config.as_ref().and_then(|config| config.status.as_ref());
        let matrix = status.and_then(|status| status.matrix.as_ref());
        matrix.is_some_and(|matrix| matrix.source.parse() != Ok(MatrixSource::Embedded))
    }

    /// What the deployment does to the operator that is there.
    ///
    /// # Errors
    /// When it must not be made.
    pub(super) fn permits(&self, context: &Context, wanted: &[Object], downgrade: bool) -> Result<Change, CliError> {
        let refused = |what: String, remedy: String| Err(CliError::new(Exit::Refused, what, remedy));
        if let Some(leaving) = self.ground.iter().find(|object| object.is_terminating()) {
            return refused(
                format!("{leaving} is being deleted, and nothing can be deployed until its deletion is complete"),
                "If the deletion does not end, vdoctl status shows what blocks the deletion, and vdoctl delete finishes an uninstallation."
                    .into(),
            );
        }
        if let Some(config) = self.config.as_ref().filter(|config| config.metadata.deletion_timestamp.is_some()) {
            return refused(
                format!("VDOConfig {} is being deleted", id(config)),
                "Wait until its drivers are removed (vdoctl status), then deploy again.".into(),
            );
        }
        for operator in &self.operators {
            if operator.namespace() != context.namespace() {
                return refused(
                    format!("{operator} is another operator in this cluster, and only one operator may manage the drivers of a cluster"),
                    format!(
                        "Upgrade that operator with -n {}, or remove it first: vdoctl delete -n {0}",
                        operator.namespace()
                    ),
                );
            }
            if let Some(manager) = Manager::of(operator) {
                let by = manager.installed_by();
                return refused(
                    format!("{operator} was installed {by}, which would revert the changes of vdoctl deploy"),
                    manager.upgrade(operator.namespace()),
                );
            }
        }
        self.stored_versions(wanted)?;
        let change = change(self.version.as_deref());
        if change == Change::Downgrade && !downgrade {
            return refused(
                format!(
                    "the operator in the cluster has version {}, which is newer than this vdoctl, {}",
                    self.version.as_deref().unwrap_or_default(),
                    env!("CARGO_PKG_VERSION")
                ),
                "Use a vdoctl of that version or a newer one; --allow-downgrade replaces the operator with the older version.".into(),
            );
        }
        Ok(change)
    }

    /// Objects are stored in versions that a definition must not leave out.
    fn stored_versions(&self, wanted: &[Object]) -> Result<(), CliError> {
        for live in self.ground.iter().filter(|object| object.kind() == "CustomResourceDefinition") {
            let Some(new) = wanted.iter().find(|object| object.identity() == live.identity()) else {
                continue;
            };
            let texts = |value: &Value, pointer: &str, key: Option<&str>| -> Vec<String> {
                let all = value.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
                all.filter_map(|one| key.map_or(one, |key| &one[key]).as_str().map(str::to_owned))
                    .collect()
            };
            let known = texts(new.value(), "/spec/versions", Some("name"));
            let stored = texts(live.value(), "/status/storedVersions", None);
            if let Some(lost) = stored.iter().find(|version| !known.contains(version)) {
                return Err(CliError::new(
                    Exit::Refused,
                    format!("objects of {live} are stored in version {lost}, which this vdoctl does not know"),
                    "Use a vdoctl that knows this version; nothing was changed.",
                ));
            }
        }
        Ok(())
    }

    /// Whether this server is the one of the connection that would be changed.
    ///
    /// # Errors
    /// When the connection leads to another one.
    pub(super) fn same_server(&self, connection: &str, server: &str) -> Result<(), CliError> {
        match self.connections.iter().find(|known| known.name_any() == connection) {
            Some(known) if known.spec.vc_ip != server => Err(CliError::new(
                Exit::Refused,
                format!(
                    "connection {connection} of this cluster uses vCenter {}, not {server}",
                    known.spec.vc_ip
                ),
                "Volumes and nodes belong to their vCenter. To add a vCenter, or to change the address of this vCenter, give the whole \
                 configuration with --values FILE.",
            )),
            _ => Ok(()),
        }
    }
}
