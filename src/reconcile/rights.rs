//! What has to be granted before the operator starts: to the drivers, which the administrator brings, and to the operator itself.

use super::driver_run::DriverRuns;
use super::error::ReconcileError;
use super::observe::{definitions, openshift};
use super::preconditions::{foreign_drivers, snapshots};
use super::{Ports, prerequisites};
use crate::cluster::{self, Select, Watch};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use vdo_api::api::{OPERATOR_NAMESPACE, STATE};
use vdo_api::types::{Digest, DriverName, DriverVersion, Remedy};
use vdo_core::admission::Allowed;
use vdo_core::certificate;
use vdo_core::chart::{self, Chart, Context, RenderError};
use vdo_core::drivers;
use vdo_core::manifest::{ManifestError, Object};
use vdo_core::matrix::{Index, IndexError};
use vdo_core::openshift::WORKLOADS;
use vdo_core::openshift::constraint;
use vdo_core::plan::Desired;
use vdo_core::rbac::{self, Mismatch, Rules, SingleRule, is_prerequisite};
use vdo_source::fetch::{ChartRepository, RepositoryError};

const ACCOUNT: &str = "vdo-operator";
const KUBE_SYSTEM: &str = "kube-system";

/// What cannot be granted, because it cannot be known.
#[derive(Debug, thiserror::Error)]
pub enum RightsError {
    /// The matrix.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A chart that cannot be fetched or opened.
    #[error(transparent)]
    ChartRepository(#[from] RepositoryError),
    /// A chart that cannot be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// A chart that renders something else than objects.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Versions that contradict each other.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

impl Remedy for RightsError {
    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Index(error) => error.remedy(),
            Self::ChartRepository(error) => error.remedy(),
            Self::Render(error) => error.remedy(),
            Self::Manifest(error) => error.remedy(),
            Self::Mismatch(error) => error.remedy(),
        }
    }
}

/// Objects for the administrator to apply.
pub struct Rights {
    /// Namespaces, roles and bindings of the drivers: enough for every version.
    pub drivers: Vec<Value>,
    /// The account of the operator with its roles.
    pub operator: Vec<Value>,
    /// What OpenShift asks for on top: which constraints the pods of the drivers may use, and that the operator sees what OpenShift runs.
    pub openshift: Vec<Value>,
    /// What that account may write into objects.
    pub content: Allowed,
    /// What keeps that account to this content.
    pub policy: Vec<Value>,
}

/// The versions that rights are for.
#[derive(Clone, Copy)]
pub enum Versions<'a> {
    /// Every version of every driver.
    All,
    /// These drivers, each in one version or in all of them.
    Of(&'a [(&'a str, Option<&'a DriverVersion>)]),
}

impl Versions<'_> {
    fn take(self, driver: &str, version: &DriverVersion) -> bool {
        match self {
            Self::All => true,
            Self::Of(named) => named
                .iter()
                .any(|(name, pin)| *name == driver && pin.is_none_or(|pin| pin == version)),
        }
    }
}

/// What the drivers of an index, in these versions, and the operator that installs them from this namespace need, with what that operator may
/// write into objects.
///
/// # Errors
/// When a chart cannot be had, or no role serves all versions.
pub async fn rights(repository: &ChartRepository, index: &Index, namespace: &str, versions: Versions<'_>) -> Result<Rights, RightsError> {
    let mut content = own_content(namespace);
    let learn = |chart: &Chart| content.learn(chart, &json!({}), |id| !is_prerequisite(id));
    let all = rendered(repository, index, versions, learn).await?;
    let user = format!("system:serviceaccount:{namespace}:{ACCOUNT}");
    Ok(Rights {
        policy: content.policy(&user, &written(&places(&all, namespace))).into(),
        content,
        ..granting(&all, namespace)?
    })
}

/// The same without content and policy: what a chart can render takes longer than everything else here.
///
/// # Errors
/// As [`rights`].
pub async fn rights_without_policy(
    repository: &ChartRepository,
    index: &Index,
    namespace: &str,
    versions: Versions<'_>,
) -> Result<Rights, RightsError> {
    let all = rendered(repository, index, versions, |_| ()).await?;
    Ok(granting(&all, namespace)?)
}

/// What the charts of these versions render where everything is switched on. Each chart is seen by `learn`.
async fn rendered(
    repository: &ChartRepository,
    index: &Index,
    versions: Versions<'_>,
    mut learn: impl FnMut(&Chart),
) -> Result<Vec<Desired>, RightsError> {
    let mut all = Vec::new();
    for (name, driver) in &index.drivers {
        let known: Arc<str> = name.as_str().into();
        for entry in driver.versions.iter().filter(|entry| versions.take(name, &entry.version)) {
            let chart = repository.chart(&entry.chart).await?;
            learn(&chart);
            for object in chart::render(&chart, &chart::everything(&chart), &Context::default())? {
                all.push(Desired {
                    object: Object::new(object)?,
                    driver: known.clone(),
                    wave: 0,
                });
            }
        }
    }
    Ok(all)
}

/// What the operator writes that is in no chart, from this namespace.
fn own_content(namespace: &str) -> Allowed {
    let mut allowed = Allowed::default();
    allowed.learn_own(namespace, certificate::SECRET);
    for driver in drivers::KNOWN {
        for (kind, name) in driver.written {
            allowed.learn_configuration(kind, driver.namespace, name);
        }
    }
    allowed
}

/// The resources that are written, by API group.
fn written(places: &Places) -> BTreeSet<(String, String)> {
    // A review is a question, of which nothing is stored.
    let is_review = |group: &str| matches!(group, "authentication.k8s.io" | "authorization.k8s.io");
    let rules = places.values().flat_map(Rules::single).filter(|rule| !is_review(rule.group));
    let writes = |rule: &SingleRule<'_>| rule.verbs.iter().any(|verb| matches!(*verb, "create" | "patch" | "update" | "*"));
    rules
        .filter(writes)
        .map(|rule| (rule.group.to_owned(), rule.resource.to_owned()))
        .collect()
}

/// What has to be granted for these objects, to an operator in this namespace.
fn granting(all: &[Desired], namespace: &str) -> Result<Rights, Mismatch> {
    Ok(Rights {
        drivers: rbac::union(all.iter().map(|d| &d.object))?,
        operator: account(&places(all, namespace), namespace),
        openshift: on_openshift(all, namespace),
        content: Allowed::default(),
        policy: Vec::new(),
    })
}

/// What the objects of a version need that is not granted where those of another one were installed, as sentences.
///
/// # Errors
/// When a version contradicts itself.
pub fn more_rights(old: &[Object], new: &[Object]) -> Result<Vec<String>, RightsError> {
    let grants = |objects: &[Object]| -> Result<Vec<Object>, RightsError> {
        let desired = |object: &Object| Desired {
            object: object.clone(),
            driver: "".into(),
            wave: 0,
        };
        let rights = granting(&objects.iter().map(desired).collect::<Vec<_>>(), OPERATOR_NAMESPACE)?;
        let all = [rights.drivers, rights.operator].concat().into_iter().map(Object::new);
        Ok(all.collect::<Result<_, _>>()?)
    };
    let (old, new) = (grants(old)?, grants(new)?);
    let before = |wanted: &Object| old.iter().find(|object| object.identity() == wanted.identity());
    Ok(new.iter().filter_map(|wanted| rbac::lacking(wanted, before(wanted))).collect())
}

/// Rules by namespace; the empty one is the cluster.
type Places = BTreeMap<String, Rules>;

/// What the operator may do in a namespace of its own: read what it decides by, and write the objects of these charts, by name.
fn places(all: &[Desired], home: &str) -> Places {
    let mut places = Places::new();
    own(&mut places, home);
    manage(&mut places, all);
    configuration(&mut places);
    places
}

/// The account of the operator and what it may do.
fn account(places: &Places, home: &str) -> Vec<Value> {
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": home},
    });
    [vec![account], roles(ACCOUNT, places, home)].concat()
}

/// Roles of this name and their bindings, one of each for every place.
fn roles(name: &str, places: &Places, home: &str) -> Vec<Value> {
    let mut documents = Vec::new();
    for (namespace, rules) in places {
        let (kind, metadata) = if namespace.is_empty() {
            ("ClusterRole", json!({"name": name}))
        } else {
            ("Role", json!({"name": name, "namespace": namespace}))
        };
        let version = format!("{}/v1", rbac::GROUP);
        documents.push(json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules.json()}));
        documents.push(json!({
            "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": {"apiGroup": rbac::GROUP, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": home}],
        }));
    }
    documents
}

/// What is granted on OpenShift alone.
fn on_openshift(all: &[Desired], home: &str) -> Vec<Value> {
    let workloads: Vec<Value> = all.iter().map(|d| d.object.value().clone()).collect();
    let bindings = constraint::bindings(&workloads);
    let mut places = Places::new();
    let cluster = place(&mut places, "");
    for (group, resource, names) in openshift::OBJECTS {
        cluster.add(group, resource, names, &["list", "watch"]);
    }
    for (kind, name) in WORKLOADS {
        cluster.add("apps", &plural(kind), &[name], &["list", "watch"]);
    }
    for binding in &bindings {
        let text = |pointer: &str| binding.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let place = place(&mut places, text("/metadata/namespace"));
        place.add(rbac::GROUP, "rolebindings", &[text("/metadata/name")], &["list", "watch"]);
    }
    [bindings, roles(&format!("{ACCOUNT}-openshift"), &places, home)].concat()
}

fn place<'a>(places: &'a mut Places, namespace: &str) -> &'a mut Rules {
    places.entry(namespace.to_owned()).or_default()
}

/// What the operator needs to manage the objects of charts.
fn manage(places: &mut Places, all: &[Desired]) {
    for watch in foreign_drivers::watches(all).iter().chain(&prerequisites::watches(all)) {
        see(places, watch);
    }
    for d in all.iter().filter(|d| !is_prerequisite(d.object.identity())) {
        write(places, &d.object);
    }
}

/// The charts of which it is known that the operator may manage their objects, by driver.
#[derive(Default)]
pub struct Permitted(Mutex<BTreeMap<DriverName, Digest>>);

/// Fails every driver whose objects the operator may not manage, before it reads them. The charts of the binary are installed together
/// with their rights, so only charts from elsewhere are asked about, once each.
///
/// # Errors
/// When the rights cannot be asked for.
pub(super) async fn permitted(ports: &Ports, runs: &mut DriverRuns) -> Result<(), ReconcileError> {
    if ports.repository.is_embedded() {
        return Ok(());
    }
    let known = || ports.permitted.0.lock().unwrap_or_else(PoisonError::into_inner);
    let mut granted: BTreeMap<String, cluster::Permissions> = BTreeMap::new();
    for run in runs.iter_mut() {
        let Some(pick) = run.pick.as_ref().filter(|pick| known().get(&run.name) != Some(&pick.chart.digest)) else {
            continue;
        };
        let mut places = Places::new();
        manage(&mut places, &run.objects);
        let mut lacking = Vec::new();
        for (namespace, rules) in &places {
            let granted = match granted.entry(namespace.clone()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(cluster::rights(&ports.client, namespace).await?),
            };
            lacking.extend(rules.single().filter_map(|rule| {
                let refused = granted.refused(&rule.verbs, rule.group, rule.resource, rule.name)?;
                let place = if namespace.is_empty() {
                    String::new()
                } else {
                    format!(" in namespace {namespace}")
                };
                Some(format!("{refused}{place}"))
            }));
        }
        match lacking.first() {
            None => drop(known().insert(run.name.clone(), pick.chart.digest.clone())),
            Some(first) => {
                let more = match lacking.len() - 1 {
                    0 => String::new(),
                    more => format!(", and {more} more"),
                };
                let error = ReconcileError::RightsMissing {
                    driver: run.name.clone(),
                    version: pick.version.to_string(),
                    lacking: format!("{first}{more}"),
                    matrix: ports.repository.to_string(),
                };
                run.fail(error);
            }
        }
    }
    Ok(())
}

/// What the operator needs for itself, whatever the charts contain.
fn own(places: &mut Places, home: &str) {
    let cluster = place(places, "");
    cluster.add("", "nodes", &[], &["list", "watch"]);
    cluster.add("storage.k8s.io", "csinodes", &[], &["list", "watch"]);
    cluster.add("", "namespaces", &[KUBE_SYSTEM], &["list", "watch"]);
    cluster.add(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        &snapshots::DEFINITIONS,
        &["list", "watch"],
    );
    // Is this OpenShift?
    let definitions = openshift::DEFINITIONS;
    cluster.add(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        &definitions,
        &["list", "watch"],
    );
    // Is this operator older than what is stored?
    let own = &definitions::DEFINITIONS;
    cluster.add("apiextensions.k8s.io", "customresourcedefinitions", own, &["list", "watch"]);
    // Those of the snapshot controller may be anywhere.
    cluster.add("", "pods", &[], &["list", "watch"]);
    // Asked before the storage driver or a storage class is removed: are there volumes or snapshots?
    cluster.add("", "persistentvolumes", &[], &["list", "watch"]);
    cluster.add("", "persistentvolumeclaims", &[], &["list"]);
    cluster.add("storage.k8s.io", "volumeattachments", &[], &["list", "watch"]);
    cluster.add("snapshot.storage.k8s.io", "volumesnapshotcontents", &[], &["list", "watch"]);
    // StorageClasses have the names that the VDOConfig gives them.
    cluster.add(
        "storage.k8s.io",
        "storageclasses",
        &[],
        &["list", "watch", "create", "delete", "patch"],
    );
    // Whether a workload of a tenant that has the name of a driver has its rights, too.
    cluster.add("authorization.k8s.io", "subjectaccessreviews", &[], &["create"]);
    let home = place(places, home);
    home.add("vdo.vmware.com", "vdoconfigs", &[], &["list", "watch", "patch"]);
    home.add("vdo.vmware.com", "vspherecloudconfigs", &[], &["list", "watch"]);
    home.add("vdo.vmware.com", "compatibilityconfigs", &[], &["list", "watch"]);
    home.add("vdo.vmware.com", "vdoconfigs/status", &[], &["patch"]);
    home.add("vdo.vmware.com", "vspherecloudconfigs/status", &[], &["patch"]);
    home.add("", "secrets", &[], &["list", "watch"]);
    // The state of the webhook's certificate.
    home.add("", "secrets", &[certificate::SECRET], &["create", "patch"]);
    // Its own state.
    home.add("", "secrets", &[STATE], &["create", "patch", "delete"]);
    // Delete: where operators before this one kept it.
    home.add("", "configmaps", &[], &["list", "watch", "delete"]);
    home.add("events.k8s.io", "events", &[], &["create", "patch"]);
    let kube_system = place(places, KUBE_SYSTEM);
    // One operator of several acts.
    kube_system.add("coordination.k8s.io", "leases", &[], &["create"]);
    kube_system.add("coordination.k8s.io", "leases", &["vdo-operator"], &["get", "update"]);
}

fn plural(kind: &str) -> String {
    format!("{}s", kind.to_lowercase())
}

/// What is watched by name.
fn see(places: &mut Places, watch: &Watch) {
    let group = watch.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let names: &[&str] = match &watch.select {
        Select::Name(name) => &[name],
        _ => &[],
    };
    place(places, &watch.namespace).add(group, &plural(&watch.kind), names, &["list", "watch"]);
}

/// What the operator writes.
fn write(places: &mut Places, object: &Object) {
    let home = place(places, object.namespace());
    self::object(home, object.identity().group(), object.kind(), object.name());
    // Asked before a definition is deleted: are there objects of it?
    if object.kind() == "CustomResourceDefinition" {
        let cluster = place(places, "");
        cluster.add(object.text("/spec/group"), object.text("/spec/names/plural"), &[], &["list"]);
        return;
    }
    // The last words of a container that fails, and whether a webhook is served.
    if object.pod_spec().is_some() {
        home.add("", "pods/log", &[], &["get"]);
        // Why pods of a DaemonSet are not made.
        if object.kind() == "DaemonSet" {
            home.add("", "events", &[], &["list"]);
        }
    } else if object.kind() == "Service" {
        home.add("discovery.k8s.io", "endpointslices", &[], &["list", "watch"]);
    }
}

/// The configuration of the drivers, which is in no chart.
fn configuration(places: &mut Places) {
    for driver in drivers::KNOWN {
        for (kind, name) in driver.written {
            object(place(places, driver.namespace), "", kind, name);
        }
    }
}

/// What it takes to manage an object. Secrets are read by their names only.
fn object(home: &mut Rules, group: &str, kind: &str, name: &str) {
    let resource = plural(kind);
    home.add(group, &resource, &[name], &["create", "delete", "patch"]);
    let names: &[&str] = if kind == "Secret" { &[name] } else { &[] };
    home.add(group, &resource, names, &["list", "watch"]);
}
