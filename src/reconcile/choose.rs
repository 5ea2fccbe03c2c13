//! resolve: which versions, driver by driver (effects: reads only; the choice itself is pure).

use super::error::ReconcileError;
use super::observe::{ClusterState, connections};
use super::phase::Phase;
use super::preconditions::{shared_volumes, upgrade};
use super::requests::{DriverFailures, DriverRequests};
use super::{Mode, Ports, ReconcileInput, matrix_fallback, matrix_source, preconditions, upgradeable};
use crate::cluster::ClusterError;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use std::sync::Arc;
use vdo_api::api::{MatrixStatus, UpdatePolicy, VDOConfig, VsphereCloudConfig};
use vdo_api::facts::Connection;
use vdo_api::types::{DriverName, DriverVersion, VcenterVersion};
use vdo_core::lock::Lock;
use vdo_core::matrix::{self, Entry, Index, Query, Resolution};
use vdo_core::plan::Needs;
use vdo_core::status::Report;
use vdo_source::fetch::{LoadedIndex, settings};

/// The connections that some driver uses, with everything that they refer to. One that cannot be read, or is not verified, fails the
/// drivers that use it.
pub(super) async fn connections(
    ports: &Ports,
    objects: &[VsphereCloudConfig],
    asked: &DriverRequests,
) -> Result<(Vec<Connection>, DriverFailures), ReconcileError> {
    let mut failures = DriverFailures::default();
    let mut connections: Vec<Connection> = Vec::new();
    for object in objects.iter().filter(|o| asked.used().contains(o.name_any().as_str())) {
        let users = asked.users(&object.name_any());
        match connections::connection(&ports.reader, object).await {
            Ok(mut connection) => {
                connection.drivers = users;
                connections.push(connection);
            }
            Err(ReconcileError::Cluster(error)) => return Err(error.into()),
            Err(error) => failures.of(users, error),
        }
    }
    Ok((connections, failures))
}

/// What was chosen.
#[derive(Default)]
pub(super) struct Chosen {
    pub resolution: Resolution,
    pub needs: Needs,
    /// The matrix.
    pub index: Option<Arc<Index>>,
    /// It with its bytes, which the cluster is to keep.
    pub loaded: Option<LoadedIndex>,
    /// What the mirror holds that it comes from, if it is one.
    pub lock: Option<Arc<Lock>>,
    /// When installed drivers are changed, where the matrix knows all versions and each driver has one.
    pub policy: Option<Policy>,
}

/// When installed drivers are changed.
#[derive(Clone, Copy)]
pub(super) struct Policy {
    pub policy: matrix::UpdatePolicy,
    /// The ConfigMap that overrules the specification, if one does.
    pub by: Option<&'static str>,
}

impl Chosen {
    /// What the matrix says of a version.
    pub fn entry(&self, driver: &str, version: &DriverVersion) -> Option<&Entry> {
        self.index.as_ref()?.drivers.get(driver)?.entry(version)
    }

    /// Whether the chosen version of a driver needs another one, with the feature states that are asked for.
    pub fn requires(&self, driver: &str, other: &str, asked: &DriverRequests) -> bool {
        let pick = self.resolution.picks.get(driver);
        let request = asked.drivers.get(driver);
        let (Some(pick), Some(request)) = (pick, request) else {
            return false;
        };
        let entry = self.entry(driver, &pick.version);
        entry.is_some_and(|entry| {
            entry
                .requires
                .iter()
                .any(|need| need.driver == other && need.counts(&request.states))
        })
    }
}

/// Chooses the versions of all drivers of which everything is known, jointly. A driver that has no version fails; the others are then
/// chosen without it.
pub(super) async fn choose(
    input: &ReconcileInput<'_>,
    ports: &Ports,
    state: &ClusterState,
    (objects, connections): (&[VsphereCloudConfig], &[Connection]),
    asked: &mut DriverRequests,
    failures: &mut DriverFailures,
) -> Phase<Chosen> {
    let mut report = Report::default();
    let config = input.config;
    let installed = state.versions();
    let (frozen, unheard) = follow_source(input, ports).await?;
    let basis = match matrix_fallback::basis(&ports.repository, config, &state.inventory, &installed, asked).await {
        Ok(basis) => basis,
        Err(error) => {
            failures.of(asked.drivers.keys().cloned(), error);
            return Ok((Chosen::default(), report));
        }
    };
    let loaded = Some(basis.loaded.clone()).filter(|_| !basis.narrowed);
    let nothing = || Chosen {
        loaded: loaded.clone(),
        ..Chosen::default()
    };
    let index: &Index = &basis.loaded.index;
    asked.leave_to(index);
    upgrade::hold_upgrades(&ports.reader, state, objects, index, asked).await?;
    report.matrix = (!basis.narrowed).then(|| MatrixStatus {
        source: basis.loaded.source.clone(),
        version: i64::try_from(index.version).unwrap_or(i64::MAX),
        digest: basis.loaded.digest.to_string(),
        signer: basis.loaded.signer.as_ref().map(ToString::to_string),
        // Keys that cannot be read now are those of before: nothing new is used without them.
        keys: ports.repository.trusted().unwrap_or_else(|| keys_of(config)),
        generated: index.generated.map(Time),
        expires: index.expires.map(Time),
        knows: matrix::knowledge(index),
    });
    report
        .preconditions
        .push(preconditions::matrix(&basis, &ports.repository.to_string(), unheard, input.now));
    let (vcenters, unverified) = vcenters(connections, index);
    for (connection, error) in unverified {
        failures.of(asked.users(&connection), error);
    }
    let mut drivers = asked.drivers.clone();
    drivers.retain(|driver, _| !failures.names(driver));
    let asked_for = if frozen.is_some() {
        UpdatePolicy::Disabled
    } else {
        config.spec.update_policy
    };
    let policy = index.policy(policy(asked_for), input.now);
    if drivers.is_empty() {
        let query = Query {
            kubernetes: &state.cluster.version,
            vcenters: &[],
            drivers: &asked.drivers,
            installed: &installed,
            policy,
        };
        report.preconditions.extend(preconditions::supported(index, &query, None));
        return Ok((nothing(), report));
    }
    let mut reported = false;
    loop {
        let query = Query {
            kubernetes: &state.cluster.version,
            vcenters: &vcenters,
            drivers: &drivers,
            installed: &installed,
            policy,
        };
        let (shared, resolution) = shared_volumes::choose(&ports.reader, index, &query).await;
        // The first answer is about everything that is asked for.
        if !std::mem::replace(&mut reported, true) {
            report.upgradeable = (!basis.narrowed).then(|| upgradeable::upgradeable(index, &query));
            report.preconditions.push(shared);
            report
                .preconditions
                .extend(preconditions::supported(index, &query, resolution.as_ref().ok()));
        }
        match resolution {
            Ok(resolution) => {
                let needs = matrix::apart(index, &query, &resolution);
                let index = Some(basis.loaded.index.clone());
                let lock = basis.loaded.lock.clone();
                let whole = !basis.narrowed && resolution.picks.len() == asked.drivers.len();
                let chosen = Chosen {
                    policy: whole.then_some(Policy { policy, by: frozen }),
                    resolution,
                    needs,
                    index,
                    loaded: loaded.clone(),
                    lock,
                };
                return Ok((chosen, report));
            }
            Err(error) => {
                let unfit: Vec<DriverName> = error.all().map(|unfit| unfit.driver.clone()).collect();
                failures.of(unfit.iter().cloned(), error.into());
                drivers.retain(|driver, _| !unfit.contains(driver));
                if drivers.is_empty() {
                    return Ok((nothing(), report));
                }
            }
        }
    }
}

/// Follows what the cluster says of the source of the matrix. Which ConfigMap switches upgrades off, if one does, and which names a source that
/// is not followed.
async fn follow_source(input: &ReconcileInput<'_>, ports: &Ports) -> Result<(Option<&'static str>, Option<String>), ReconcileError> {
    let namespace = input.config.namespace().unwrap_or_default();
    let named = match matrix_source::named(&ports.reader, input.config).await {
        // The user of a command need not have this right of the operator.
        Err(ClusterError::Forbidden { .. }) if input.mode == Mode::Command => return Ok((None, None)),
        named => named?,
    };
    // A command decides with the matrix that was chosen for it.
    if input.mode == Mode::Command {
        return Ok((named.frozen_by(), None));
    }
    ports.repository.follow(settings(&named));
    matrix_source::supply(&ports.repository, &ports.reader, &namespace).await?;
    Ok((named.frozen_by(), named.unheard().filter(|_| !ports.repository.is_fixed())))
}

/// The keys that were trusted by the word of the status.
fn keys_of(config: &VDOConfig) -> Vec<String> {
    let matrix = config.status.as_ref().and_then(|status| status.matrix.as_ref());
    matrix.map(|matrix| matrix.keys.clone()).unwrap_or_default()
}

/// Connections, each with what keeps it from being used.
type Unverified = Vec<(String, ReconcileError)>;

/// The version of every vCenter in use; an old answer counts while there is no new one, but nothing counts that must not reach
/// a driver. Beside them the connections of which that is so, or nothing is known.
fn vcenters(connections: &[Connection], index: &Index) -> (Vec<(String, VcenterVersion)>, Unverified) {
    let (mut known, mut unverified) = (Vec::new(), Vec::new());
    for c in connections {
        let message = match (&c.version, &c.blocked) {
            (Some(version), None) => {
                known.push((c.name.clone(), index.vcenter(version, c.build.as_deref())));
                continue;
            }
            (Some(_), Some(because)) => because,
            (None, _) => &c.message,
        };
        let error = ReconcileError::ConnectionNotReady {
            connection: c.name.clone(),
            message: message.clone(),
        };
        unverified.push((c.name.clone(), error));
    }
    (known, unverified)
}

/// The policy of the specification in the words of the resolver.
#[must_use]
pub fn policy(policy: UpdatePolicy) -> matrix::UpdatePolicy {
    match policy {
        UpdatePolicy::Compatible => matrix::UpdatePolicy::Compatible,
        UpdatePolicy::Latest => matrix::UpdatePolicy::Latest,
        UpdatePolicy::Disabled => matrix::UpdatePolicy::Disabled,
    }
}
