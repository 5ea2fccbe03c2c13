// SPDX-License-Identifier: Apache-2.0
//! Determines from the cluster which accounts `vdoctl users` handles: the connection or drivers of each account, its Secret and vCenter.

use super::super::args::{For, Global, UsersAccount, UsersVcenter};
use super::super::context::{Context, Deciding, Deployed};
use super::super::error::unknown;
use super::super::vcenter_address::{endpoint as typed, trust};
use super::super::{CliError, Exit};
use super::store::stored;
use kube::ResourceExt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vdo::cluster::{ClusterError, get};
use vdo::reconcile::connection::{endpoint, inputs, requirements};
use vdo::reconcile::{ReconcileError, connection_objects};
use vdo_admin::accounts::{Mark, Principal};
use vdo_api::api::{VDOConfig, VDOConfigSpec, VsphereCloudConfig};
use vdo_api::facts::{Credentials, Node, StoredCredentials};
use vdo_api::types::{DriverName, ObjectId};
use vdo_core::drivers::{CLOUD_PROVIDER, KNOWN, STORAGE, short};
use vdo_vsphere::vcenter::Endpoint;
use vdo_vsphere::vsphere::{self, Requirements, WantedPolicy};

/// A cluster and the vCenter that accounts are made in.
pub(super) struct Site {
    pub(super) context: Deciding,
    pub(super) endpoint: Endpoint,
    /// The UID of the cluster.
    pub(super) cluster: String,
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) config: Option<VDOConfig>,
    /// The namespaces of the Secrets that are not there.
    missing: BTreeSet<String>,
    pub(super) connections: Vec<VsphereCloudConfig>,
    pub(super) targets: Vec<Target>,
}

/// An account that is needed: for a connection, or for the drivers that were named.
pub(super) struct Target {
    pub(super) connection: Option<VsphereCloudConfig>,
    pub(super) mark: Mark,
    pub(super) requirements: Requirements,
    /// The Secret with its user name and password.
    pub(super) secret: ObjectId,
    /// What that Secret holds now.
    pub(super) stored: Option<StoredCredentials>,
}

impl Target {
    /// What it is called in a sentence.
    pub(super) fn name(&self) -> String {
        let drivers: Vec<&str> = self.mark.drivers.iter().map(String::as_str).collect();
        match &self.connection {
            Some(connection) => format!("connection {} ({})", connection.name_any(), drivers.join(", ")),
            None => drivers.join(", "),
        }
    }

    /// The Secret as namespace/name.
    pub(super) fn place(&self) -> String {
        format!("{}/{}", self.secret.namespace, self.secret.name)
    }

    /// The credentials that its Secret held when it was looked at.
    pub(super) fn seen(&self) -> Option<&Credentials> {
        self.stored.as_ref().map(|stored| &stored.credentials)
    }

    /// Its account: the one that was named, else the one in its Secret if that is ours, else the first of ours.
    pub(super) fn principal(&self, args: &UsersAccount) -> Result<Principal, CliError> {
        let domain = &args.vcenter.domain;
        if let Some(existing) = &args.existing {
            let parsed = existing.parse::<Principal>().map_err(|error| {
                CliError::new(
                    Exit::Usage,
                    error.to_string(),
                    "Write the user with its domain: k8s@corp.example.com",
                )
            })?;
            return Ok(Principal {
                group: args.group,
                ..parsed
            });
        }
        if let Some(name) = &args.name {
            return Ok(Principal::user(name, domain));
        }
        let ours = self.mark.names().map(|name| Principal::user(&name, domain));
        let stored = self
            .stored
            .as_ref()
            .map(|found| found.credentials.user.as_str())
            .unwrap_or_default();
        Ok(ours.iter().find(|one| one.is(stored)).unwrap_or(&ours[0]).clone())
    }
}

impl Site {
    /// Whether a namespace for a Secret is there.
    pub(super) fn has_namespace(&self, name: &str) -> bool {
        !self.missing.contains(name)
    }

    /// That no other connection takes its credentials from the Secret of this one: the account is made for one.
    pub(super) fn alone(&self, target: &Target) -> Result<(), CliError> {
        let names = target.connection.as_ref().map(|own| sharing(&self.connections, own));
        let names = names.unwrap_or_default();
        if names.is_empty() {
            return Ok(());
        }
        Err(CliError::new(
            Exit::Refused,
            format!(
                "Secret {} is also used by connection {}, and the new account is not for that connection",
                target.place(),
                names.join(", ")
            ),
            "Give each connection its own Secret in spec.credentials.",
        ))
    }

    /// Looks at the cluster: no vCenter is asked.
    pub(super) async fn find(args: &UsersAccount, global: &Global) -> Result<Self, CliError> {
        let looked = tokio::time::timeout(global.timeout(), Self::look(args, global)).await;
        looked.unwrap_or_else(|_| Err(CliError::timed_out(global.timeout())))
    }

    async fn look(args: &UsersAccount, global: &Global) -> Result<Self, CliError> {
        let context = Context::open(global).await?.like_the_operator(global).await?;
        let reader = &context.ports.reader;
        let cluster = cluster_uid(&context).await?;
        let nodes = vdo::reconcile::nodes(reader).await?;
        let config = match context.find_config().await? {
            Deployed::Config(config) => Some(*config),
            _ => None,
        };
        let connections = match connection_objects(reader, &global.namespace).await {
            Err(ReconcileError::Cluster(ClusterError::NotServed { .. })) => Vec::new(),
            result => result?,
        };
        let (endpoint, connection) = place(&args.vcenter, &context, &connections).await?;
        let mut targets = match connection {
            Some(connection) => vec![of_connection(args, &context, &config, &connections, connection, &cluster).await?],
            None => of_drivers(args, &config, &cluster, &global.namespace)?,
        };
        for target in &mut targets {
            if target.connection.is_none() {
                target.stored = stored(&context, &target.secret).await?;
            }
            if !args.features.is_empty() {
                target.requirements.features = args.features.iter().copied().collect();
            }
            // A policy that encrypts needs more privileges, and a class that will name it may not be there yet.
            let named = args.storage_policy.iter().map(|name| WantedPolicy {
                name: name.clone(),
                named_in: "--storage-policy".to_owned(),
            });
            target.requirements.policies.extend(named);
        }
        let mut missing = BTreeSet::new();
        for place in targets.iter().map(|target| &target.secret.namespace) {
            let id = ObjectId::new("", "Namespace", "", place.clone());
            if get(&context.ports.client, "v1", &id).await?.is_none() {
                missing.insert(place.to_string());
            }
        }
        Ok(Self {
            missing,
            endpoint,
            cluster,
            nodes,
            config,
            connections,
            targets,
            context,
        })
    }
}

/// The other connections that take their credentials from the same Secret.
fn sharing(connections: &[VsphereCloudConfig], own: &VsphereCloudConfig) -> Vec<String> {
    let secret = |one: &VsphereCloudConfig| {
        (
            one.spec.credentials.clone(),
            one.spec.credentials_namespace.clone(),
            one.namespace(),
        )
    };
    let others = connections
        .iter()
        .filter(|one| one.name_any() != own.name_any() && secret(one) == secret(own));
    others.map(ResourceExt::name_any).collect()
}

/// Where the vCenter is: of the connection, or as typed.
pub(crate) async fn place<'a>(
    args: &UsersVcenter,
    context: &Context,
    connections: &'a [VsphereCloudConfig],
) -> Result<(Endpoint, Option<&'a VsphereCloudConfig>), CliError> {
    if let Some(address) = &args.vcenter {
        let trust = trust(args.trust.thumbprint.as_ref(), args.trust.ca_file.as_deref(), args.trust.insecure)?;
        return Ok((typed(address, trust)?, None));
    }
    let names: Vec<String> = connections.iter().map(ResourceExt::name_any).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = match (&args.connection, connections) {
        (Some(name), _) => connections
            .iter()
            .find(|one| one.name_any() == *name)
            .ok_or_else(|| unknown("vSphere connection", name, &names))?,
        (None, [one]) => one,
        (None, []) => {
            return Err(CliError::new(
                Exit::Usage,
                "there is no vSphere connection in this cluster, and no vCenter was named",
                "Name the vCenter with --vcenter HOST.",
            ));
        }
        (None, _) => {
            return Err(CliError::new(
                Exit::Usage,
                format!("there are several vSphere connections: {}", names.join(", ")),
                "Name a connection with --connection NAME.",
            ));
        }
    };
    let inputs = inputs(&context.ports.reader, found).await;
    match endpoint(found, &inputs) {
        Some(endpoint) => Ok((endpoint, Some(found))),
        None => match inputs.trust {
            Err(error) => Err(error.into()),
            Ok(_) => Err(CliError::new(
                Exit::Refused,
                format!("connection {} has no address", found.name_any()),
                "",
            )),
        },
    }
}

/// The UID of the cluster's kube-system namespace.
pub(super) async fn cluster_uid(context: &Context) -> Result<String, CliError> {
    let id = ObjectId::new("", "Namespace", "", "kube-system");
    let found = get(&context.ports.client, "v1", &id).await?;
    Ok(found.map(|namespace| namespace.uid().to_owned()).unwrap_or_default())
}

/// The drivers that were named.
fn named(args: &UsersAccount) -> Option<BTreeSet<DriverName>> {
    let one = |name: &str| [name.to_owned()].into();
    args.drivers.map(|drivers| match drivers {
        For::Cpi => one(CLOUD_PROVIDER.name),
        For::Csi => one(STORAGE.name),
        For::Both => KNOWN.map(|driver| driver.name.to_owned()).into(),
    })
}

fn mark(drivers: &BTreeSet<DriverName>, cluster: &str) -> Mark {
    Mark {
        cluster: cluster.to_owned(),
        // It is known after the login.
        vcenter: String::new(),
        drivers: drivers.iter().map(|driver| short(driver).to_lowercase()).collect(),
    }
}

async fn of_connection(
    args: &UsersAccount,
    context: &Context,
    config: &Option<VDOConfig>,
    connections: &[VsphereCloudConfig],
    connection: &VsphereCloudConfig,
    cluster: &str,
) -> Result<Target, CliError> {
    let (name, namespace) = (connection.name_any(), connection.namespace().unwrap_or_default());
    let names: BTreeSet<String> = connections.iter().map(ResourceExt::name_any).collect();
    let default = VDOConfig::new("vdo", VDOConfigSpec::default());
    let requirements = requirements(config.as_ref().unwrap_or(&default), &namespace, &names, &name);
    if requirements.drivers.is_empty() {
        return Err(CliError::new(
            Exit::Refused,
            format!("no driver uses connection {name}, so it needs no account"),
            "Name the connection of a driver with --connection NAME.",
        ));
    }
    if named(args).is_some_and(|named| named != requirements.drivers) {
        let users: Vec<&str> = requirements.drivers.iter().map(|driver| short(driver)).collect();
        return Err(CliError::new(
            Exit::Usage,
            format!("connection {name} is used by {}, which share one account", users.join(" and ")),
            "Leave out --for. To give each driver its own account, give each driver its own connection: spec.cloudProvider.vsphereCloudConfigs and spec.storageProvider.vsphereCloudConfigs.",
        ));
    }
    let stored = match inputs(&context.ports.reader, connection).await.credentials {
        Ok(stored) => Some(stored),
        Err(ReconcileError::Cluster(error)) => return Err(error.into()),
        Err(_) => None,
    };
    let place = connection.spec.credentials_namespace.clone().unwrap_or(namespace);
    let place = stored
        .as_ref()
        .and_then(|stored| stored.secret.split_once('/'))
        .map_or(place, |(namespace, _)| namespace.to_owned());
    Ok(Target {
        mark: mark(&requirements.drivers, cluster),
        secret: ObjectId::new("", "Secret", place, connection.spec.credentials.clone()),
        connection: Some(connection.clone()),
        requirements,
        stored,
    })
}

/// Before there is a connection: an account for each driver, or one for all.
fn of_drivers(args: &UsersAccount, config: &Option<VDOConfig>, cluster: &str, namespace: &str) -> Result<Vec<Target>, CliError> {
    let all = named(args).unwrap_or_else(|| KNOWN.map(|driver| driver.name.to_owned()).into());
    let groups: Vec<BTreeSet<DriverName>> = match args.shared {
        true => vec![all],
        false => all.into_iter().map(|driver| [driver].into()).collect(),
    };
    if groups.len() > 1 && (args.existing.is_some() || args.name.is_some()) {
        return Err(CliError::new(
            Exit::Usage,
            "each driver has a separate account, but the command names only one account",
            "Name one driver with --for, or use one account for both drivers with --shared.",
        ));
    }
    let spec = config.as_ref().map(|config| config.spec.clone()).unwrap_or_default();
    let target = |drivers: BTreeSet<DriverName>| {
        let mark = mark(&drivers, cluster);
        let names: Vec<&str> = mark.drivers.iter().map(String::as_str).collect();
        Target {
            connection: None,
            secret: ObjectId::new("", "Secret", namespace, format!("vdo-{}-credentials", names.join("-"))),
            requirements: vsphere::requirements(&spec, drivers, 0, BTreeMap::new()),
            stored: None,
            mark,
        }
    };
    Ok(groups.into_iter().map(target).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use vdo_api::api::VsphereCloudConfigSpec;

    /// A new account in a Secret that another connection uses as well would end that one's logins.
    #[test]
    fn site_connections_that_share_a_secret_are_named() {
        let connection = |name: &str, secret: &str, namespace: Option<&str>| {
            let spec = VsphereCloudConfigSpec {
                credentials: secret.into(),
                credentials_namespace: namespace.map(Into::into),
                ..VsphereCloudConfigSpec::default()
            };
            VsphereCloudConfig::new(name, spec)
        };
        let own = connection("vc1", "one", None);
        for (other, shared) in [
            (connection("vc2", "one", None), true),
            (connection("vc2", "two", None), false),
            (connection("vc2", "one", Some("elsewhere")), false),
        ] {
            let found = sharing(&[own.clone(), other.clone()], &own);
            assert_eq!(found == ["vc2"], shared, "{other:?}");
        }
    }
}
