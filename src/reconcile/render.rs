// SPDX-License-Identifier: Apache-2.0
//! The phase render: makes the desired objects of each driver from chart, values, patches and connections (pure, with a cache).

use super::choose::Choice;
use super::driver_run::{DriverRun, DriverRuns, Source};
use super::error::ReconcileError;
use super::observe::ClusterState;
use super::rollback;
use super::site::Site;
use super::webhook::Served;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use vdo_api::api::VDOConfigSpec;
use vdo_api::facts::{Cluster, Connection};
use vdo_api::types::{Digest, DriverName, DriverVersion};
use vdo_core::chart::{self, Chart};
use vdo_core::drivers::{self, Material, Setup};
use vdo_core::manifest::{ManifestError, Object, Owner, stamp};
use vdo_core::mirror_lock::{self, Lock};
use vdo_core::openshift::constraint;
use vdo_core::patches::{self, Numbered, Origins};
use vdo_core::plan::{Desired, RandomContent, wave};

/// What objects are made from, beside the chart.
pub struct RenderInput<'a> {
    /// The specification.
    pub spec: &'a VDOConfigSpec,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The vSphere connections and the identity of the cluster.
    pub(super) site: &'a Site,
    /// The id of the apply set.
    pub apply_set: &'a str,
    /// The certificate of the CSI driver's webhook, where that is asked for.
    pub webhook: Option<&'a Material>,
    /// What the mirror holds that the matrix comes from, if it is one.
    pub lock: Option<&'a Arc<Lock>>,
    /// Whether pods need SecurityContextConstraints.
    pub constraints: bool,
}

/// The objects that were made last for each driver, with what they were made from: the same is not rendered in every reconcile.
/// It may be lost at any instant without harm.
#[derive(Default)]
pub struct RenderCache(Mutex<BTreeMap<DriverName, (RenderKey, Rendered)>>);

/// The objects of a driver.
#[derive(Clone, Default)]
struct Rendered {
    objects: Vec<Desired>,
    /// Of those that hold a part of the certificate, whose keys are drawn by chance: the digest that they would have with any certificate.
    random: RandomContent,
    /// Which patches are in them.
    patched: Origins,
}

/// Everything that the objects of a driver depend on.
struct RenderKey {
    chart: Arc<Chart>,
    values: Value,
    patches: Numbered,
    context: chart::Context,
    /// Objects that are in no chart.
    more: Vec<Object>,
    owner: Owner,
    /// The digests of images, and the registry that they are pulled from.
    lock: Option<Arc<Lock>>,
    registry: Option<String>,
    constraints: bool,
}

impl PartialEq for RenderKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chart, &other.chart)
            && (&self.values, &self.patches, &self.context) == (&other.values, &other.patches, &other.context)
            && (&self.more, &self.owner) == (&other.more, &other.owner)
            && (&self.lock, &self.registry, self.constraints) == (&other.lock, &other.registry, other.constraints)
    }
}

impl RenderKey {
    /// The objects, in the order in which they are applied.
    fn make(&self, webhook: Option<&Material>) -> Result<Rendered, ReconcileError> {
        let mut rendered = chart::render(&self.chart, &self.values, &self.context)?;
        // Before images get their digests and pods their constraints: a patch may name an image, and what a pod needs.
        let driver = format!("{} {}", self.owner.driver, self.owner.version);
        let patched = patches::apply(&mut rendered, &driver, &self.patches).map_err(|refused| ReconcileError::Patch {
            namespace: self.context.namespace.clone(),
            refused: Box::new(refused),
        })?;
        if let Some(lock) = &self.lock {
            mirror_lock::pin(&mut rendered, lock, self.registry.as_deref());
        }
        if self.constraints {
            constraint::require(&mut rendered);
        }
        let mut objects = rendered.into_iter().map(Object::new).collect::<Result<Vec<_>, _>>()?;
        objects.extend(self.more.iter().cloned());
        let masked = webhook.map(|material| masked(&objects, material)).transpose()?;
        let objects = self.stamped(objects);
        let random = masked.map(|masked| random(&objects, &self.stamped(masked))).unwrap_or_default();
        Ok(Rendered { objects, random, patched })
    }

    /// With their labels, the digest of their configuration and their waves. Pods are restarted by that later: `look` puts it into their templates.
    fn stamped(&self, mut objects: Vec<Object>) -> Vec<Desired> {
        stamp(&mut objects, &self.owner);
        ordered(objects, &self.owner.driver, |object| wave(object.kind(), self.chart.metadata.role))
    }
}

/// The objects of a driver in the order in which they are applied.
pub(super) fn ordered(objects: Vec<Object>, driver: &str, wave: impl Fn(&Object) -> u8) -> Vec<Desired> {
    let driver: Arc<str> = driver.into();
    let desired = |object: Object| Desired {
        wave: wave(&object),
        driver: driver.clone(),
        object,
    };
    let mut all: Vec<Desired> = objects.into_iter().map(desired).collect();
    all.sort_by_key(|d| (d.wave, d.object.id()));
    all
}

/// The objects as they would be with any certificate.
fn masked(objects: &[Object], material: &Material) -> Result<Vec<Object>, ManifestError> {
    const ANY: &str = "any";
    let parts = [&material.bundle, &material.certificate, material.key.expose()];
    let mut masks: Vec<(String, String)> = parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .flat_map(|part| [(part.to_owned(), ANY.to_owned()), (STANDARD.encode(part), STANDARD.encode(ANY))])
        .collect();
    // One may be a part of another.
    masks.sort_by_key(|(part, _)| Reverse(part.len()));
    let masked = |object: &Object| {
        let mut value = object.value().clone();
        mask(&mut value, &masks);
        Object::new(value)
    };
    objects.iter().map(masked).collect()
}

fn mask(value: &mut Value, masks: &[(String, String)]) {
    match value {
        Value::String(text) => {
            for (part, any) in masks {
                if text.contains(part.as_str()) {
                    *text = text.replace(part.as_str(), any);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, masks)),
        Value::Object(fields) => fields.values_mut().for_each(|field| mask(field, masks)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The digests of those that differ.
fn random(real: &[Desired], masked: &[Desired]) -> RandomContent {
    let digest = |d: &Desired| d.object.applied().map(str::to_owned);
    let both = real.iter().zip(masked).filter(|(real, any)| digest(real) != digest(any));
    both.filter_map(|(_, any)| Some((any.object.id(), digest(any)?))).collect()
}

impl RenderCache {
    /// The digest of the values that the objects of a driver were made with.
    pub(super) fn values(&self, driver: &str) -> Option<Digest> {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.get(driver).map(|(from, _)| Digest::of(from.values.to_string().as_bytes()))
    }

    /// The digest of the patches that are in the objects of a driver; empty without patches.
    pub(super) fn patches(&self, driver: &str) -> String {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let used = made.get(driver).filter(|(from, _)| !from.patches.is_empty());
        used.map(|(from, _)| Digest::of(format!("{:?}", from.patches).as_bytes()).to_string())
            .unwrap_or_default()
    }

    fn made(&self, from: RenderKey, webhook: Option<&Material>) -> Result<Rendered, ReconcileError> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((last, made)) = lock().get(&from.owner.driver)
            && *last == from
        {
            return Ok(made.clone());
        }
        let made = from.make(webhook)?;
        lock().insert(from.owner.driver.clone(), (from, made.clone()));
        Ok(made)
    }
}

/// Makes the objects of every driver, from its chart or from the revision that it is brought back to. Gives the parts of
/// them that are random, such as keys.
pub(super) fn render(input: &RenderInput<'_>, runs: &mut DriverRuns, renders: &RenderCache) -> RandomContent {
    let mut all = RandomContent::new();
    for run in runs.iter_mut() {
        let rendered = match &run.source {
            Some(Source::Chart(chart)) => of_chart(input, run, chart, renders),
            Some(Source::Revision(back)) => rollback::objects(input, run, back).map(|objects| Rendered {
                objects,
                ..Rendered::default()
            }),
            Some(Source::LastApplied) | None => continue,
        };
        match rendered {
            Ok(Rendered { objects, random, patched }) => {
                run.objects = objects;
                run.patched = patched;
                all.extend(random);
            }
            Err(error) => run.fail(error),
        }
    }
    all
}

fn of_chart(input: &RenderInput<'_>, run: &DriverRun, chart: &Arc<Chart>, renders: &RenderCache) -> Result<Rendered, ReconcileError> {
    let own = input.connections_of(Some(run));
    let values = drivers::values(input.spec, chart, input.webhook);
    let effective = chart::accepted(chart, &values)?;
    let namespace = effective.get("namespace").and_then(Value::as_str).unwrap_or_default();
    let key = RenderKey {
        chart: chart.clone(),
        context: context(input, &own),
        more: input.setup(&chart.metadata.version, namespace, &own).write(&run.name)?,
        values,
        patches: patches::of_driver(input.spec, &run.name),
        owner: input.owner(&run.name, chart.metadata.version.to_string()),
        lock: input.lock.cloned(),
        registry: input.spec.images.as_ref().and_then(|images| images.registry.clone()),
        constraints: input.constraints,
    };
    renders.made(key, input.webhook)
}

impl<'a> RenderInput<'a> {
    pub(super) fn of(state: &'a ClusterState, site: &'a Site, choice: &'a Choice, webhook: Option<&'a Served>) -> Self {
        Self {
            spec: &site.spec,
            cluster: &state.cluster,
            site,
            apply_set: &state.apply_set,
            webhook: webhook.map(|webhook| &webhook.material),
            lock: choice.lock.as_ref(),
            constraints: state.openshift.as_ref().is_some_and(|openshift| openshift.constraints),
        }
    }

    fn connections_of(&self, run: Option<&DriverRun>) -> Vec<Connection> {
        let own = self.site.connections.iter();
        own.filter(|c| run.is_some_and(|run| run.uses(&c.name))).cloned().collect()
    }

    fn setup<'b>(&'b self, version: &'b DriverVersion, namespace: &'b str, connections: &[Connection]) -> Setup<'b> {
        Setup {
            spec: self.spec,
            version,
            namespace,
            connections: connections.iter().map(drivers::connection).collect(),
            cluster_id: &self.site.cluster_id.id,
            salt: &self.cluster.uid,
            webhook: self.webhook,
        }
    }

    /// The configuration of a driver in this version.
    pub(super) fn configuration(&self, run: &DriverRun, version: &DriverVersion, namespace: &str) -> Result<Vec<Object>, ReconcileError> {
        Ok(self.setup(version, namespace, &self.connections_of(Some(run))).write(&run.name)?)
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
pub(super) fn last_configuration(input: &RenderInput<'_>, runs: &DriverRuns, state: &ClusterState) -> Vec<Object> {
    let mut all = Vec::new();
    for (driver, version) in state.versions() {
        let secrets = state
            .inventory
            .objects
            .iter()
            .filter(|(id, entry)| entry.driver == driver && id.kind() == "Secret");
        let Some((first, _)) = secrets.into_iter().next() else { continue };
        let verified = |c: &&Connection| c.version.is_some() && c.blocked.is_none();
        let readable: Vec<Connection> = input.site.connections.clone();
        let own = input.connections_of(runs.get(&driver));
        let sets = [
            own.iter().filter(verified).cloned().collect(),
            own.clone(),
            readable.iter().filter(verified).cloned().collect(),
            readable,
        ];
        for connections in sets {
            let setup = input.setup(&version, &first.namespace, &connections);
            let Ok(mut objects) = setup.write(&driver) else { continue };
            stamp(&mut objects, &input.owner(&driver, version.to_string()));
            all.extend(objects.into_iter().filter(Object::is_secret));
        }
    }
    all
}

fn context(input: &RenderInput<'_>, connections: &[Connection]) -> chart::Context {
    chart::Context {
        cluster: chart::Cluster {
            version: input.cluster.version.raw().into(),
            minor: input.cluster.version.minor(),
            distribution: input.spec.storage_provider.as_ref().and_then(|s| s.cluster_distribution.clone()),
            uid: input.cluster.uid.clone(),
            control_plane: chart::ControlPlane {
                count: u32::try_from(input.cluster.control_plane_count()).unwrap_or(u32::MAX),
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
        namespace: input.site.namespace.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::cluster_id::ClusterId;
    use crate::reconcile::site::tests::connection;
    use serde_json::json;
    use vdo_api::types::Secret;
    use vdo_core::drivers::CSI;
    use vdo_source::fetch::embedded;

    fn rendered(part: &str) -> Rendered {
        let source = embedded::sources().remove(CSI).expect("a chart");
        let version: DriverVersion = "3.7.3".parse().expect("a version");
        let chart = Arc::new(chart::open(&chart::package(&source, &version).expect("a package")).expect("a chart"));
        let spec = serde_json::from_value(json!({"storageProvider": {"webhook": true}})).expect("a specification");
        let site = Site {
            namespace: "ns".into(),
            objects: Vec::new(),
            connections: vec![connection("vc1")],
            cluster_id: ClusterId {
                id: "id".into(),
                used: false,
                doubt: None,
            },
            spec: VDOConfigSpec::default(),
        };
        let material = Material {
            bundle: part.into(),
            certificate: format!("{part} certificate"),
            key: Secret::new(format!("{part} key")),
        };
        let input = RenderInput {
            spec: &spec,
            cluster: &Cluster {
                version: "v1.34.4".parse().expect("a version"),
                uid: "uid".into(),
                nodes: Vec::new(),
            },
            site: &site,
            apply_set: "set",
            webhook: Some(&material),
            lock: None,
            constraints: false,
        };
        of_chart(&input, &DriverRun::using(CSI, &["vc1"]), &chart, &RenderCache::default()).expect("objects")
    }

    /// A person who approves a plan approves the same one when the keys are drawn again.
    #[test]
    fn render_random_content_is_the_same_with_any_certificate() {
        let [one, other] = ["-----BEGIN ONE-----", "-----BEGIN OTHER-----"].map(rendered);
        let differ = random(&one.objects, &other.objects);
        assert!(differ.len() >= 2, "the Secret and the configuration of the webhook: {differ:?}");
        assert_eq!(one.random.keys().collect::<Vec<_>>(), differ.keys().collect::<Vec<_>>());
        assert_eq!(one.random, other.random);
    }
}
