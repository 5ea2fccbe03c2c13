//! render: the chosen charts, the specification and the connections → the objects that should exist (pure).

use super::error::ReconcileError;
use super::observe::ClusterState;
use super::requests::DriverRequests;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use vdo_api::api::VDOConfigSpec;
use vdo_api::facts::{Cluster, Connection};
use vdo_api::types::{Digest, DriverName, DriverVersion, Secret};
use vdo_core::chart::{self, Chart};
use vdo_core::drivers::{self, Material, Setup};
use vdo_core::lock::{self, Lock};
use vdo_core::manifest::{Object, Owner, stamp};
use vdo_core::plan::{Desired, RandomContent, wave};

/// What objects are made from.
pub struct Wanted<'a> {
    /// The specification.
    pub spec: &'a VDOConfigSpec,
    /// What it asks for.
    pub asked: &'a DriverRequests,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The connections in use.
    pub connections: &'a [Connection],
    /// The chart of each driver.
    pub charts: &'a BTreeMap<DriverName, Arc<Chart>>,
    /// The identity under which volumes are registered.
    pub cluster_id: &'a str,
    /// The id of the apply set.
    pub apply_set: &'a str,
    /// The namespace of the VDOConfig.
    pub namespace: &'a str,
    /// The certificate of the CSI driver's webhook, where that is asked for.
    pub webhook: Option<&'a Material>,
    /// What the mirror holds that the matrix comes from, if it is one.
    pub lock: Option<&'a Arc<Lock>>,
}

/// The objects that were made last for each driver, with what they were made from: the same is not rendered in every reconcile.
/// It may be lost at any instant without harm.
#[derive(Default)]
pub struct RenderCache(Mutex<BTreeMap<DriverName, (RenderKey, Vec<Desired>)>>);

/// Everything that the objects of a driver depend on.
struct RenderKey {
    chart: Arc<Chart>,
    values: Value,
    context: chart::Context,
    /// Objects that are in no chart.
    more: Vec<Object>,
    owner: Owner,
    /// The digests of images, and the registry that they are pulled from.
    lock: Option<Arc<Lock>>,
    registry: Option<String>,
}

impl PartialEq for RenderKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chart, &other.chart)
            && (&self.values, &self.context) == (&other.values, &other.context)
            && (&self.more, &self.owner) == (&other.more, &other.owner)
            && (&self.lock, &self.registry) == (&other.lock, &other.registry)
    }
}

impl RenderKey {
    /// The objects, in the order in which they are applied.
    fn make(&self) -> Result<Vec<Desired>, ReconcileError> {
        let mut rendered = chart::render(&self.chart, &self.values, &self.context)?;
        if let Some(lock) = &self.lock {
            lock::pin(&mut rendered, lock, self.registry.as_deref());
        }
        let mut objects = rendered.into_iter().map(Object::new).collect::<Result<Vec<_>, _>>()?;
        objects.extend(self.more.iter().cloned());
        stamp(&mut objects, &self.owner);
        let driver: Arc<str> = self.owner.driver.as_str().into();
        let desired = |object: Object| Desired {
            wave: wave(object.kind(), self.chart.metadata.role),
            driver: driver.clone(),
            object: object.at_rest(),
        };
        let mut all: Vec<Desired> = objects.into_iter().map(desired).collect();
        all.sort_by_key(|d| (d.wave, d.object.id()));
        Ok(all)
    }
}

impl RenderCache {
    /// The digest of the values that the objects of a driver were made with.
    pub(super) fn values(&self, driver: &str) -> Option<Digest> {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.get(driver).map(|(from, _)| Digest::of(from.values.to_string().as_bytes()))
    }

    fn made(&self, from: RenderKey) -> Result<Vec<Desired>, ReconcileError> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((last, objects)) = lock().get(&from.owner.driver)
            && *last == from
        {
            return Ok(objects.clone());
        }
        let objects = from.make()?;
        lock().insert(from.owner.driver.clone(), (from, objects.clone()));
        Ok(objects)
    }
}

/// Every object of a driver, stamped, with its wave.
///
/// # Errors
/// When values break the chart's schema, a template fails, or a setting cannot be written in the driver's grammar.
pub fn render(wanted: &Wanted<'_>, driver: &str, renders: &RenderCache) -> Result<Vec<Desired>, ReconcileError> {
    let Some(chart) = wanted.charts.get(driver) else {
        return Ok(Vec::new());
    };
    let own = wanted.connections_of(driver);
    let values = drivers::values(wanted.spec, chart, wanted.webhook);
    let effective = chart::accepted(chart, &values)?;
    let namespace = effective.get("namespace").and_then(Value::as_str).unwrap_or_default();
    renders.made(RenderKey {
        chart: chart.clone(),
        context: context(wanted, &own),
        more: wanted.setup(&chart.metadata.version, namespace, &own).write(driver)?,
        values,
        owner: wanted.owner(driver, chart.metadata.version.to_string()),
        lock: wanted.lock.cloned(),
        registry: wanted.spec.images.as_ref().and_then(|images| images.registry.clone()),
    })
}

impl Wanted<'_> {
    fn connections_of(&self, driver: &str) -> Vec<Connection> {
        let names = self.asked.connections.get(driver);
        let own = self
            .connections
            .iter()
            .filter(|c| names.is_some_and(|names| names.contains(&c.name)));
        own.cloned().collect()
    }

    fn setup<'b>(&'b self, version: &'b DriverVersion, namespace: &'b str, connections: &[Connection]) -> Setup<'b> {
        Setup {
            spec: self.spec,
            version,
            namespace,
            connections: connections.iter().map(drivers::connection).collect(),
            cluster_id: self.cluster_id,
            salt: &self.cluster.uid,
            webhook: self.webhook,
        }
    }

    /// The configuration of a driver in this version.
    pub(super) fn configuration(&self, driver: &str, version: &DriverVersion, namespace: &str) -> Result<Vec<Object>, ReconcileError> {
        Ok(self.setup(version, namespace, &self.connections_of(driver)).write(driver)?)
    }

    pub(super) fn owner(&self, driver: &str, version: String) -> Owner {
        Owner {
            apply_set: self.apply_set.into(),
            driver: driver.into(),
            version,
            salt: self.cluster.uid.clone(),
        }
    }
}

/// The configuration of what is installed, as it may have been applied last: with every connection that can be read, and with those that
/// are verified. What really was applied is known by its digest.
#[must_use]
pub(super) fn last_configuration(wanted: &Wanted<'_>, state: &ClusterState) -> Vec<Object> {
    let mut all = Vec::new();
    for (driver, version) in state.versions() {
        let secrets = state
            .inventory
            .objects
            .iter()
            .filter(|(id, entry)| entry.driver == driver && id.kind() == "Secret");
        let Some((first, _)) = secrets.into_iter().next() else { continue };
        let verified = |c: &&Connection| c.version.is_some() && c.blocked.is_none();
        let readable: Vec<Connection> = wanted.connections.to_vec();
        let own = wanted.connections_of(&driver);
        let sets = [
            own.iter().filter(verified).cloned().collect(),
            own.clone(),
            readable.iter().filter(verified).cloned().collect(),
            readable,
        ];
        for connections in sets {
            let setup = wanted.setup(&version, &first.namespace, &connections);
            let Ok(mut objects) = setup.write(&driver) else { continue };
            stamp(&mut objects, &wanted.owner(&driver, version.to_string()));
            all.extend(objects.into_iter().filter(Object::is_secret));
        }
    }
    all
}

/// What of these objects comes from the certificate, whose keys are drawn by chance: the digest of each such object as it would be with
/// any certificate.
///
/// # Errors
/// As for [`render`].
pub(super) fn drawn(wanted: &Wanted<'_>, all: &[Desired]) -> Result<RandomContent, ReconcileError> {
    if wanted.webhook.is_none() {
        return Ok(RandomContent::new());
    }
    let any = Material {
        bundle: "any".into(),
        certificate: "any".into(),
        key: Secret::new("any"),
    };
    let masked = Wanted {
        webhook: Some(&any),
        ..*wanted
    };
    // Not kept: what is kept are the real ones.
    let renders = RenderCache::default();
    let mut masked_all = Vec::new();
    for driver in masked.charts.keys().filter(|driver| all.iter().any(|d| *d.driver == ***driver)) {
        masked_all.extend(render(&masked, driver, &renders)?);
    }
    let masked = masked_all;
    let digest = |d: &Desired| d.object.applied().map(str::to_owned);
    let both = all.iter().zip(&masked).filter(|(real, any)| digest(real) != digest(any));
    Ok(both.filter_map(|(_, any)| Some((any.object.id(), digest(any)?))).collect())
}

fn context(wanted: &Wanted<'_>, connections: &[Connection]) -> chart::Context {
    chart::Context {
        cluster: chart::Cluster {
            version: wanted.cluster.version.raw().into(),
            minor: wanted.cluster.version.minor(),
            distribution: wanted.spec.storage_provider.as_ref().and_then(|s| s.cluster_distribution.clone()),
            uid: wanted.cluster.uid.clone(),
            control_plane: chart::ControlPlane {
                count: u32::try_from(wanted.cluster.control_plane_count()).unwrap_or(u32::MAX),
            },
        },
        connections: connections
            .iter()
            .map(|c| chart::Connection {
                name: c.name.clone(),
                server: c.server.clone(),
                port: c.port,
                datacenters: c.datacenters.clone(),
            })
            .collect(),
        namespace: wanted.namespace.into(),
    }
}
