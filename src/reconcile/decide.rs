//! resolve, fetch, render, observe: what should exist, driver by driver (effects: reads only).
//!
//! What goes wrong with one driver is a failure of that driver. It is left at what was applied of it last, and the others go on.

use super::choose::{choose, connections};
use super::cluster_id::{agreed, claimed, cluster_id, contested, hold};
use super::error::ReconcileError;
use super::gates::{self, Hold};
use super::observe::connections;
use super::observe::deletion_guards::look_up;
use super::observe::{ClusterState, watches};
use super::phase::{Collect, Phase};
use super::preconditions::foreign_drivers::foreign_drivers;
use super::preconditions::{images, snapshots};
use super::record::{record, stored_matrix};
use super::render::{Wanted, drawn, last_configuration, render};
use super::stopwatch::Stopwatch;
use super::upgrade_available::{Hindrances, newer};
use super::{Mode, Ports, ReconcileInput, content, preconditions, prerequisites, requests, rights, rollback, served, webhook};
use kube::ResourceExt;
use requests::DriverFailures;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vdo_api::api::{Approval, Class, ConflictRule, STATE, VsphereCloudConfig};
use vdo_api::types::{DriverName, ObjectId};
use vdo_core::drivers::{self, CLOUD_PROVIDER, STORAGE};
use vdo_core::manifest::{Object, is_owned, remember_configuration, start_early};
use vdo_core::matrix::Resolution;
use vdo_core::plan::{self, Desired, Gate, Held, Input, Last, Needs, Observed, Plan, Record, RevisionFailure, Step, Wait};
use vdo_core::status::{DriverReport, Failure, Report};

/// Everything that was decided.
pub struct Decision {
    /// The chosen versions.
    pub resolution: Resolution,
    /// All objects that should exist. Of a driver that is kept: what was applied of it last.
    pub desired: Vec<Desired>,
    /// What was found of them.
    pub observed: Observed,
    /// What goes into the history.
    pub record: Record,
    /// Under which specification, matrix and platform all this was decided, where that is known.
    pub(super) basis: Option<String>,
    /// The drivers that nothing leads back for, because the matrix has withdrawn the version, and why it has.
    pub(super) withdrawn: BTreeMap<DriverName, String>,
    /// The whole way.
    pub plan: Plan,
    /// What went wrong with single drivers.
    pub failures: DriverFailures,
    /// The drivers that are asked for.
    pub requested: BTreeSet<DriverName>,
    /// The drivers that are left at what was applied last, because it is not known, or not said, what should exist of them.
    kept: BTreeSet<DriverName>,
    /// The drivers of which nothing at all is written.
    paused: BTreeSet<DriverName>,
    /// Secrets as they may have been applied last, by which what is not kept of them is known again.
    secrets: Vec<Object>,
    /// The identity under which volumes are registered.
    cluster_id: String,
    /// The state that a person has approved, where approval is asked for.
    pub(super) approved: Option<String>,
    rules: Vec<ConflictRule>,
    /// The state of the webhook's certificate, where it has to be written.
    store: Option<Step>,
    finalizer: bool,
    holds: Vec<Hold>,
    unhealthy: Vec<plan::Wait>,
    /// Which driver must not go on while which other one is left as it is.
    pub(super) needs: Needs,
    /// The drivers for which the administrator has not brought everything, or whose cluster id may be that of another cluster.
    missing: Held,
}

impl Decision {
    /// Plans the whole way, with the gates that are known before the server is asked: prerequisites, privileges, health.
    pub(super) fn replan(&mut self, state: &ClusterState) {
        let mut plan = plan::plan(&self.input(state));
        tracing::debug!(steps = plan.steps.len(), "planned");
        plan.hold_all(self.missing.clone(), &self.needs);
        for driver in &self.paused {
            plan.pause(driver);
        }
        for (from, wait) in &self.holds {
            plan.hold_waves(*from, wait);
        }
        self.plan = plan;
    }

    /// What may be written now.
    #[must_use]
    pub fn run(&self, state: &ClusterState) -> Vec<Step> {
        let known = |driver: &str| {
            let live = |id: &_| state.live.get(id);
            state.inventory.last_applied(driver, live, &self.secrets)
        };
        let held = self.plan.held_drivers().into_iter().filter(|driver| !self.kept.contains(*driver));
        let last: Last = held.filter_map(|driver| Some((driver.to_owned(), known(driver)?))).collect();
        self.plan.run(&self.input(state), &last)
    }

    /// Whether nothing but what was applied last is known, or written, of a driver.
    pub(super) fn is_apart(&self, driver: &str) -> bool {
        self.kept.contains(driver) || self.paused.contains(driver)
    }

    /// Whether an object of this driver is to be written.
    pub(super) fn writes(&self, driver: &str, id: &ObjectId) -> bool {
        self.plan
            .writes()
            .any(|step| step.driver() == driver && step.id().as_ref() == Some(id))
    }

    /// Gives up the change of a driver: nothing more of it is written in this run, and its failure is recorded.
    pub(super) fn give_up(&mut self, driver: &str, failure: RevisionFailure, wait: Wait) {
        self.plan.hold(driver, &Gate::Waits(wait));
        self.record.failed.insert(driver.to_owned(), failure);
    }

    fn input<'a>(&'a self, state: &'a ClusterState) -> Input<'a> {
        Input {
            apply_set: &state.apply_set,
            desired: &self.desired,
            observed: &self.observed,
            inventory: &state.inventory,
            cluster_id: Some(&self.cluster_id),
            approved: self.approved.as_deref(),
            rules: &self.rules,
            kept: &self.kept,
            unhealthy: &self.unhealthy,
            record: &self.record,
            store: self.store.as_ref(),
            finalizer: self.finalizer,
            uninstall: None,
        }
    }
}

/// Decides what should exist, without writing anything.
///
/// # Errors
/// With what concerns all drivers, and what was found until then.
pub async fn decide(input: &ReconcileInput<'_>, ports: &Ports, state: &ClusterState) -> Phase<Decision> {
    let config = input.config;
    let mut found = Report::default();
    let mut watch = Stopwatch::start();
    let namespace = config.namespace().unwrap_or_default();
    let objects = found.check(connections::connection_objects(&ports.reader, &namespace).await)?;
    let names: BTreeSet<String> = objects.iter().map(ResourceExt::name_any).collect();
    let (mut asked, mut failures) = requests::requests(&config.spec, &namespace, &names);
    let (connections, unusable) = found.check(connections(ports, &objects, &asked).await)?;
    failures.join(unusable);
    found.connections.clone_from(&connections);
    found.preconditions.push(preconditions::trust(&connections));
    found.preconditions.push(snapshots::check(&ports.reader, &config.spec).await);
    let cluster_id = found.check(cluster_id(input, ports, state, &asked).await)?;
    if let Err(error) = agreed(config, &cluster_id) {
        failures.of([STORAGE.name.to_owned()], error);
    }

    let sound: BTreeSet<DriverName> = asked.drivers.keys().filter(|driver| !failures.names(driver)).cloned().collect();
    let mut chosen = found.take(choose(input, ports, state, (&objects, &connections), &mut asked, &mut failures).await)?;
    let basis = rollback::basis(config, found.matrix.as_ref(), input.kubernetes.raw(), &connections);
    let mut backs = rollback::backs(config, state, &asked, basis.as_deref(), &mut failures);
    backs.retain(|driver, _| sound.contains(driver));
    found.check(served::keep_served(ports, state, &mut backs, &mut failures).await)?;
    // What is brought back needs neither a matrix nor a chart.
    failures.forgive(|driver| backs.contains_key(driver));
    found.failures.extend(rollback::left_to_people(config, state));
    for (driver, back) in &backs {
        found.failures.extend(back.failure(driver, state.unpullable.get(driver)));
        back.picked(driver, &mut chosen.resolution);
    }
    found.stages.push(watch.lap("resolve"));
    let mut charts = BTreeMap::new();
    for (driver, pick) in chosen.resolution.picks.iter().filter(|(driver, _)| !backs.contains_key(*driver)) {
        match ports.repository.chart(&pick.chart).await {
            Ok(chart) => drop(charts.insert(driver.clone(), chart)),
            Err(error) => failures.of([driver.clone()], error.into()),
        }
    }
    found.stages.push(watch.lap("fetch"));
    let mut store = None;
    let webhook = match webhook::wanted(input, charts.get(STORAGE.name).map(AsRef::as_ref), backs.get(STORAGE.name)) {
        Some(place) => match webhook::material(input, ports, state, &place).await {
            Ok((material, write, reported)) => {
                found.preconditions.push(reported);
                store = write;
                Some(material)
            }
            Err(error) => {
                charts.remove(STORAGE.name);
                failures.of([STORAGE.name.to_owned()], error);
                None
            }
        },
        None => {
            found.preconditions.push(webhook::not_asked_for());
            None
        }
    };
    let wanted = Wanted {
        webhook: webhook.as_ref(),
        lock: chosen.lock.as_ref(),
        spec: &config.spec,
        asked: &asked,
        cluster: &state.cluster,
        connections: &connections,
        charts: &charts,
        cluster_id: &cluster_id.id,
        apply_set: &state.apply_set,
        namespace: &namespace,
    };
    let mut desired = Vec::new();
    found.ignored = Some(charts.values().flat_map(|chart| drivers::ignored(&config.spec, chart)).collect());
    for driver in charts.keys() {
        match render(&wanted, driver, &ports.renders) {
            Ok(objects) => desired.extend(objects),
            Err(error) => failures.of([driver.clone()], error),
        }
    }
    for (driver, back) in &backs {
        match rollback::objects(&wanted, driver, back) {
            Ok(objects) => desired.extend(objects),
            Err(error) => failures.of([driver.clone()], error),
        }
    }
    let drawn = found.check(drawn(&wanted, &desired))?;
    found
        .preconditions
        .push(images::mirrored(&config.spec, chosen.lock.as_deref(), &desired));
    found.stages.push(watch.lap("render"));
    failures.join(found.check(rights::permitted(ports, &chosen.resolution, &desired).await)?);
    desired.retain(|d| !failures.names(&d.driver));
    let mut missing = found.check(prerequisites::missing(ports, &mut desired).await)?;
    let failure = |wait: &Wait, class| Failure {
        reason: wait.reason,
        class,
        message: wait.message.clone(),
    };
    found.failures.extend(missing.values().map(|wait| failure(wait, Class::Wait)));
    let of_storage = asked.connections.get(STORAGE.name);
    let uses = |object: &VsphereCloudConfig| of_storage.is_some_and(|names| names.contains(&object.name_any()));
    if !cluster_id.used
        && let Some(id) = claimed(config, &state.cluster.uid)
        && desired.iter().any(|d| *d.driver == *STORAGE.name)
        && let Some((wait, class)) = hold(&id, objects.iter().filter(|o| uses(o)))
    {
        found.failures.push(failure(&wait, class));
        missing.entry(STORAGE.name.to_owned()).or_insert(wait);
    }
    if let Some(wait) = contested(config, &cluster_id) {
        found.failures.push(failure(&wait, Class::Terminal));
        missing.insert(STORAGE.name.to_owned(), wait);
    }
    let paused = requests::paused(&config.spec);
    let hindrances = Hindrances {
        backs: &backs,
        failures: &failures,
        missing: &missing,
        paused: &paused,
    };
    found.newer = newer(&chosen, &asked, &hindrances);
    let (alone, displaced) = found.check(foreign_drivers(ports, state, &desired, &namespace).await)?;
    found.preconditions.push(alone);
    failures.join(displaced);
    desired.retain(|d| !failures.names(&d.driver));

    // What is kept is known by what was applied last.
    let removed = requests::removed(&config.spec);
    let requested: BTreeSet<DriverName> = desired.iter().map(|d| d.driver.to_string()).collect();
    let listed = state.inventory.drivers();
    let kept: BTreeSet<DriverName> = listed
        .into_iter()
        .filter(|driver| !requested.contains(driver) && !removed.contains(driver))
        .collect();
    let secrets = match kept.is_empty() {
        true => Vec::new(),
        false => last_configuration(&wanted, state),
    };
    let live = |id: &_| state.live.get(id);
    for driver in &kept {
        let last = state.inventory.last_applied(driver, live, &secrets);
        desired.extend(last.unwrap_or_default());
    }
    // The few that most questions are about.
    let workloads: Vec<Desired> = desired.iter().filter(|d| d.object.pod_spec().is_some()).cloned().collect();
    found
        .preconditions
        .push(preconditions::control_plane(&workloads, &state.cluster.nodes));
    // What is in the inventory was looked at already.
    let known = &state.inventory.objects;
    let new: Vec<Object> = desired
        .iter()
        .map(|d| &d.object)
        .filter(|o| !known.contains_key(o.identity()))
        .cloned()
        .collect();
    found.drivers = reports(state, &chosen.resolution, &desired, &failures);
    found.inventory = Some((STATE.to_owned(), state.inventory.objects.len() + new.len()));
    found.failures.splice(0..0, failures.published());
    found.unrequested = kept.iter().filter(|driver| !asked.wants(driver)).cloned().collect();
    found.removing = removed.into_iter().collect();

    // A version that knows the machine of a node by another way is there as soon as the nodes are.
    let after_nodes = chosen.requires(STORAGE.name, CLOUD_PROVIDER.name, &asked);
    let observed = Observed {
        force_reapply: input.force_reapply.clone(),
        at: input.now,
        timeout: input.timeout,
        ..found.check(observe(ports, state, &mut desired, &new, after_nodes).await)?
    };
    let record = Record {
        matrix: stored_matrix(&ports.repository, &chosen, &state.inventory),
        ..record(config, &chosen, (&wanted, &ports.renders), &backs, &desired, drawn)
    };
    let withdrawn = rollback::withdrawn(state, &chosen);
    let mut needs = chosen.needs;
    needs.extend(gates::needs(&workloads, &state.running));
    let mut holds = gates::hold_lacking_privileges(&workloads, &asked, &connections, &state.running);
    let age = state.age(CLOUD_PROVIDER.name, input.now);
    let nodes = after_nodes.then(|| gates::hold(&workloads, &state.cluster, &state.running, age));
    let first = nodes.flatten().filter(|_| holds.is_empty());
    holds.extend(first.or_else(|| gates::hold_webhook(&desired, &state.live).filter(|_| holds.is_empty())));
    let mut decision = Decision {
        resolution: chosen.resolution,
        desired,
        observed,
        record,
        basis,
        withdrawn,
        plan: Plan::default(),
        failures,
        requested: asked.drivers.keys().cloned().collect(),
        paused,
        kept,
        secrets,
        cluster_id: cluster_id.id.clone(),
        approved: state
            .inventory
            .approved
            .clone()
            .filter(|_| config.spec.approval == Approval::Manual),
        rules: config.spec.conflicts.clone(),
        store: store.filter(|_| input.mode == Mode::Operator),
        finalizer: config.finalizers().iter().any(|f| f == vdo_api::api::FINALIZER),
        holds,
        unhealthy: gates::unproven(&state.running),
        needs,
        missing,
    };
    let lookups = plan::lookups(&decision.input(state));
    found.check(look_up(ports, config, lookups, &mut decision.observed).await)?;
    decision.replan(state);
    let refused = content::refused(ports, &decision.resolution, &charts, &decision.desired, &decision.plan).await;
    for (driver, failure) in refused.by_driver() {
        let wait = Wait {
            driver: driver.clone(),
            reason: failure.reason,
            message: failure.message.clone(),
        };
        found.failures.push(failure);
        decision.missing.insert(driver, wait);
        decision.replan(state);
    }
    // A driver that turns out to be held is repaired to what was applied of it last.
    if decision.kept.is_empty() && decision.plan.is_transition() {
        decision.secrets = last_configuration(&wanted, state);
    }
    found.skipped.clone_from(&decision.plan.skipped);
    found.cluster_id = Some(cluster_id.id).filter(|_| cluster_id.used && cluster_id.contested.is_none());
    found.stages.push(watch.lap("plan"));
    Ok((decision, found))
}

/// Every driver that is chosen, or installed.
fn reports(state: &ClusterState, resolution: &Resolution, desired: &[Desired], failures: &DriverFailures) -> Vec<DriverReport> {
    // They come driver by driver.
    let counts: BTreeMap<&str, usize> = desired
        .chunk_by(|one, other| Arc::ptr_eq(&one.driver, &other.driver))
        .map(|all| (&*all[0].driver, all.len()))
        .collect();
    let mut reports: Vec<DriverReport> = resolution
        .picks
        .iter()
        .map(|(name, pick)| DriverReport {
            name: name.clone(),
            version: pick.version.to_string(),
            installed: state.installed.get(name).cloned(),
            revision: state.revision(name),
            available: pick.newest.as_ref().map(ToString::to_string).unwrap_or_default(),
            chart: pick.chart.digest.to_string(),
            because: match &pick.waits {
                Some(waits) => format!("{}; {waits}", pick.because),
                None => pick.because.clone(),
            },
            objects: counts.get(name.as_str()).copied().unwrap_or_default(),
            health: state.health(name),
        })
        .collect();
    reports.retain(|driver| !failures.names(&driver.name));
    let others = |driver: &DriverReport| !reports.iter().any(|known| known.name == driver.name);
    let mut others: Vec<DriverReport> = state.reports().into_iter().filter(others).collect();
    // What keeps a version from being installed does not keep it from being known.
    for driver in &mut others {
        let newest = resolution.picks.get(&driver.name).and_then(|pick| pick.newest.as_ref());
        driver.available = newest.map(ToString::to_string).unwrap_or_default();
    }
    reports.extend(others);
    reports.sort_by(|one, other| one.name.cmp(&other.name));
    reports
}

/// The live objects of everything that is wanted or in the inventory. What is wanted of a workload depends on them in two things:
/// with which configuration its pods began, and whether they could run before the nodes were initialised.
async fn observe(
    ports: &Ports,
    state: &ClusterState,
    desired: &mut [Desired],
    new: &[Object],
    after_nodes: bool,
) -> Result<Observed, ReconcileError> {
    let mut live = state.live.clone();
    if !new.is_empty() {
        let new: Vec<_> = new.iter().map(|o| (o.identity(), o.api_version())).collect();
        let found = ports.reader.live(&new, watches(&new, &state.apply_set)).await?;
        Arc::make_mut(&mut live).extend(found);
    }
    let salt = &state.cluster.uid;
    for d in desired.iter_mut().filter(|d| d.object.pod_spec().is_some()) {
        let there = live.get(d.object.identity());
        if *d.driver == *STORAGE.name {
            let last = there.is_none().then(|| last_applied(state, d)).flatten();
            start_early(&mut d.object, there.or(last.as_ref()), !after_nodes, salt);
        }
        if let Some(live) = there.filter(|live| is_owned(live, &state.apply_set)) {
            remember_configuration(&mut d.object, live, salt);
        }
    }
    let pairs = desired.iter().filter_map(|d| Some((&d.object, live.get(d.object.identity())?)));
    let in_sync = ports.reader.cache().map(|cache| cache.in_sync().among(pairs)).unwrap_or_default();
    Ok(Observed {
        live,
        in_sync,
        ..Observed::default()
    })
}

/// What was applied last of an object that is not there.
fn last_applied(state: &ClusterState, wanted: &Desired) -> Option<Object> {
    let all = state.inventory.last_applied(&wanted.driver, |_| None, &[])?;
    let found = all.into_iter().find(|last| last.object.identity() == wanted.object.identity())?;
    Some(found.object)
}
