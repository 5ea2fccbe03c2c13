//! resolve, fetch, render, observe: what should exist, driver by driver (effects: reads only).
//!
//! What goes wrong with one driver is a failure of that driver. It is left at what was applied of it last, and the others go on.

use super::choose::{choose, connections};
use super::desired::{Wanted, drawn, last_configuration, render};
use super::error::ReconcileError;
use super::foreign::foreign_drivers;
use super::gates::{self, Hold};
use super::look_up::look_up;
use super::stopwatch::Stopwatch;
use super::survey::{Survey, watches};
use super::{Mode, Occasion, World, gather, preconditions, prerequisites, select, snapshots, webhook};
use crate::api::{Approval, Class, ConflictRule};
use crate::cluster::{Select, Watch, list};
use crate::driverconfig::csi;
use crate::manifest::{Object, is_owned, remember_configuration};
use crate::matrix::Resolution;
use crate::plan::{self, Desired, Drawn, Held, Input, Last, Needs, Observed, Plan, Step};
use crate::status::{DriverReport, Report, Trouble};
use crate::types::{CPI, CSI, DriverName};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::ResourceExt;
use select::Failures;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Everything that was decided.
pub struct Decision {
    /// The chosen versions.
    pub resolution: Resolution,
    /// All objects that should exist. Of a driver that is kept: what was applied of it last.
    pub desired: Vec<Desired>,
    /// What was found of them.
    pub observed: Observed,
    /// What of the wanted objects is drawn by chance, for the hash of the plan.
    pub drawn: Drawn,
    /// The whole way.
    pub plan: Plan,
    /// What went wrong with single drivers.
    pub failures: Failures,
    /// The drivers that are asked for.
    pub requested: BTreeSet<DriverName>,
    /// The drivers that are left at what was applied last, because it is not known, or not said, what should exist of them.
    kept: BTreeSet<DriverName>,
    /// The drivers of which nothing at all is written.
    paused: BTreeSet<DriverName>,
    /// Secrets as they may have been applied last, by which what is not kept of them is known again.
    secrets: Vec<Object>,
    /// The identity under which volumes are registered.
    cluster_id: Option<String>,
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
    /// The drivers for which the administrator has not brought everything.
    missing: Held,
}

impl Decision {
    /// Plans the whole way, with the gates that are known before the server is asked: prerequisites, privileges, health.
    pub(super) fn replan(&mut self, survey: &Survey) {
        let mut plan = plan::plan(&self.input(survey));
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
    pub fn run(&self, survey: &Survey) -> Vec<Step> {
        let known = |driver: &str| {
            let live = |id: &_| survey.live.get(id);
            survey.inventory.last_applied(driver, live, &self.secrets)
        };
        let held = self.plan.held_drivers().into_iter().filter(|driver| !self.kept.contains(*driver));
        let last: Last = held.filter_map(|driver| Some((driver.to_owned(), known(driver)?))).collect();
        self.plan.run(&self.input(survey), &last)
    }

    fn input<'a>(&'a self, survey: &'a Survey) -> Input<'a> {
        Input {
            apply_set: &survey.apply_set,
            desired: &self.desired,
            observed: &self.observed,
            inventory: &survey.inventory,
            cluster_id: self.cluster_id.as_deref(),
            approved: self.approved.as_deref(),
            rules: &self.rules,
            kept: &self.kept,
            unhealthy: &self.unhealthy,
            store: self.store.as_ref(),
            finalizer: self.finalizer,
            uninstall: None,
        }
    }
}

/// Decides what should exist, without writing anything.
///
/// # Errors
/// With what concerns all drivers; the report holds what was found out until then.
pub async fn decide(occasion: &Occasion<'_>, world: &World, survey: &Survey, report: &mut Report) -> Result<Decision, ReconcileError> {
    let config = occasion.config;
    let mut watch = Stopwatch::start();
    let namespace = config.namespace().unwrap_or_default();
    let objects = gather::connection_objects(&world.reader, &namespace).await?;
    let names: BTreeSet<String> = objects.iter().map(ResourceExt::name_any).collect();
    let (mut asked, mut failures) = select::requests(&config.spec, &namespace, &names);
    let connections = connections(world, &objects, &mut asked, &mut failures, report).await?;
    report.preconditions.push(preconditions::trust(&connections));
    report.preconditions.push(snapshots::survey(&world.reader, &config.spec).await);
    let cluster_id = fixed_cluster_id(occasion, world, survey, &mut failures).await?;

    let chosen = choose(occasion, world, survey, &objects, &connections, &mut asked, &mut failures, report).await?;
    watch.lap(report, "resolve");
    let mut charts = BTreeMap::new();
    for (driver, pick) in &chosen.resolution.picks {
        match world.library.chart(&pick.chart).await {
            Ok(chart) => drop(charts.insert(driver.clone(), chart)),
            Err(error) => failures.of([driver.clone()], error.into()),
        }
    }
    watch.lap(report, "fetch");
    let mut store = None;
    let webhook = match webhook::wanted(occasion, charts.get(CSI).map(AsRef::as_ref)) {
        Some(place) => match webhook::material(occasion, world, survey, &place).await {
            Ok((material, write, told)) => {
                report.preconditions.push(told);
                store = write;
                Some(material)
            }
            Err(error) => {
                charts.remove(CSI);
                failures.of([CSI.to_owned()], error);
                None
            }
        },
        None => {
            report.preconditions.push(webhook::not_asked_for());
            None
        }
    };
    let wanted = Wanted {
        webhook: webhook.as_ref(),
        spec: &config.spec,
        asked: &asked,
        cluster: &survey.cluster,
        connections: &connections,
        charts: &charts,
        cluster_id: cluster_id.as_deref().unwrap_or_default(),
        apply_set: &survey.apply_set,
        namespace: &namespace,
    };
    let mut desired = Vec::new();
    for driver in charts.keys() {
        match render(&wanted, driver, &world.renders) {
            Ok(objects) => desired.extend(objects),
            Err(error) => failures.of([driver.clone()], error),
        }
    }
    let drawn = drawn(&wanted, &desired)?;
    watch.lap(report, "render");
    let missing = prerequisites::missing(world, &mut desired).await?;
    report.troubles.extend(missing.values().map(|wait| Trouble {
        reason: wait.reason,
        class: Class::Wait,
        message: wait.message.clone(),
    }));
    foreign_drivers(world, survey, &desired, &mut failures, report).await?;
    desired.retain(|d| !failures.names(&d.driver));

    // What is kept is known by what was applied last.
    let removed = select::removed(&config.spec);
    let requested: BTreeSet<DriverName> = desired.iter().map(|d| d.driver.to_string()).collect();
    let listed = survey.inventory.drivers();
    let kept: BTreeSet<DriverName> = listed
        .into_iter()
        .filter(|driver| !requested.contains(driver) && !removed.contains(driver.as_str()))
        .collect();
    let secrets = match kept.is_empty() {
        true => Vec::new(),
        false => last_configuration(&wanted, survey),
    };
    let live = |id: &_| survey.live.get(id);
    for driver in &kept {
        let last = survey.inventory.last_applied(driver, live, &secrets);
        desired.extend(last.unwrap_or_default());
    }
    // The few that most questions are about.
    let workloads: Vec<Desired> = desired.iter().filter(|d| d.object.pod_spec().is_some()).cloned().collect();
    report
        .preconditions
        .push(preconditions::control_plane(&workloads, &survey.cluster.nodes));
    // What is in the inventory was looked at already.
    let known = &survey.inventory.objects;
    let new: Vec<Object> = desired
        .iter()
        .map(|d| &d.object)
        .filter(|o| !known.contains_key(o.identity()))
        .cloned()
        .collect();
    tell(report, survey, &chosen.resolution, &desired, new.len(), &failures);
    report.troubles.splice(0..0, failures.troubles());
    report.unrequested = kept.iter().filter(|driver| !asked.wants(driver)).cloned().collect();
    report.removing = removed.iter().map(|driver| (*driver).to_owned()).collect();

    let observed = Observed {
        suspect: occasion.suspect.clone(),
        at: occasion.now,
        patience: occasion.patience,
        ..observe(world, survey, &mut desired, &new).await?
    };
    let mut needs = chosen.needs;
    needs.extend(gates::needs(&workloads, &survey.running));
    let mut holds = gates::hold_lamed(&workloads, &asked, &connections, &survey.running);
    let nodes = gates::hold(&workloads, &survey.cluster, &survey.running, survey.age(CPI, occasion.now));
    let first = holds.is_empty().then_some(nodes).flatten();
    holds.extend(first.or_else(|| gates::hold_webhook(&desired, &survey.live).filter(|_| holds.is_empty())));
    let mut decision = Decision {
        resolution: chosen.resolution,
        desired,
        observed,
        drawn,
        plan: Plan::default(),
        failures,
        requested: asked.drivers.keys().cloned().collect(),
        paused: select::paused(&config.spec),
        kept,
        secrets,
        cluster_id: cluster_id.clone(),
        approved: survey
            .inventory
            .approved
            .clone()
            .filter(|_| config.spec.approval == Approval::Manual),
        rules: config.spec.conflicts.clone(),
        store: store.filter(|_| occasion.mode == Mode::Operator),
        finalizer: config.finalizers().iter().any(|f| f == crate::api::FINALIZER),
        holds,
        unhealthy: gates::unproven(&survey.running),
        needs,
        missing,
    };
    let lookups = plan::lookups(&decision.input(survey));
    look_up(world, config, lookups, &mut decision.observed).await?;
    decision.replan(survey);
    // A driver that turns out to be held is repaired to what was applied of it last.
    if decision.kept.is_empty() && decision.plan.is_transition() {
        decision.secrets = last_configuration(&wanted, survey);
    }
    report.waiting.clone_from(&decision.plan.waiting);
    report.skipped.clone_from(&decision.plan.skipped);
    report.cluster_id.clone_from(&decision.cluster_id);
    watch.lap(report, "plan");
    Ok(decision)
}

/// The identity of the cluster. One that contradicts the specification fails the storage driver.
async fn fixed_cluster_id(
    occasion: &Occasion<'_>,
    world: &World,
    survey: &Survey,
    failures: &mut Failures,
) -> Result<Option<String>, ReconcileError> {
    let known = match &survey.inventory.cluster_id {
        Some(fixed) => Some(fixed.clone()),
        None => registered(world).await?,
    };
    match cluster_id(occasion, survey, known.clone()) {
        Ok(id) => Ok(Some(id)),
        Err(error) => {
            failures.of([CSI.to_owned()], error);
            Ok(known)
        }
    }
}

/// The identity under which volumes are registered: fixed by the first installation, ours or somebody else's, given by the
/// specification, or that of the cluster.
fn cluster_id(occasion: &Occasion<'_>, survey: &Survey, known: Option<String>) -> Result<String, ReconcileError> {
    let given = occasion.config.spec.storage_provider.as_ref().and_then(|s| s.cluster_id.clone());
    match (known, given) {
        (Some(fixed), Some(given)) if fixed != given => Err(ReconcileError::InvalidSpec {
            object: format!("VDOConfig {}", occasion.config.name_any()),
            field: "spec.storageProvider.clusterId".into(),
            problem: format!("volumes are registered in vCenter under {fixed}; write that, or leave the field out"),
        }),
        (Some(fixed), _) => Ok(fixed),
        (None, given) => Ok(given.unwrap_or_else(|| survey.cluster.uid.clone())),
    }
}

/// The identity under which a driver that somebody installed before us, or whose inventory is lost, registers its volumes: in its
/// configuration, or where the driver keeps the one that it made up.
async fn registered(world: &World) -> Result<Option<String>, ReconcileError> {
    const NAMESPACE: &str = "vmware-system-csi";
    let named = |kind: &str, name: &str| Watch::new("v1", kind, NAMESPACE, Select::Name(name.to_owned()));
    let secret = list(&world.client, &named("Secret", "vsphere-config-secret")).await?.pop();
    let file = secret.and_then(|secret| STANDARD.decode(secret.text(&format!("/data/{}", csi::FILE))).ok());
    if let Some(id) = file.and_then(|file| csi::cluster_id(&String::from_utf8_lossy(&file))) {
        return Ok(Some(id));
    }
    let map = list(&world.client, &named("ConfigMap", "vsphere-csi-cluster-id")).await?.pop();
    Ok(map.map(|map| map.text("/data/clusterID").to_owned()).filter(|id| !id.is_empty()))
}

fn tell(report: &mut Report, survey: &Survey, resolution: &Resolution, desired: &[Desired], new: usize, failures: &Failures) {
    // They come driver by driver.
    let counts: BTreeMap<&str, usize> = desired
        .chunk_by(|one, other| Arc::ptr_eq(&one.driver, &other.driver))
        .map(|all| (&*all[0].driver, all.len()))
        .collect();
    report.drivers = resolution
        .picks
        .iter()
        .map(|(name, pick)| DriverReport {
            name: name.clone(),
            version: pick.version.to_string(),
            installed: survey.installed.get(name).cloned(),
            available: pick.newest.as_ref().map(ToString::to_string).unwrap_or_default(),
            chart: pick.chart.digest.to_string(),
            because: match &pick.waits {
                Some(waits) => format!("{}; {waits}", pick.because),
                None => pick.because.clone(),
            },
            objects: counts.get(name.as_str()).copied().unwrap_or_default(),
            health: survey.running.get(name).cloned(),
        })
        .collect();
    report.drivers.retain(|driver| !failures.names(&driver.name));
    let others = |driver: &DriverReport| !report.drivers.iter().any(|known| known.name == driver.name);
    let others: Vec<DriverReport> = survey.reports().into_iter().filter(others).collect();
    report.drivers.extend(others);
    report.drivers.sort_by(|one, other| one.name.cmp(&other.name));
    report.inventory = Some((survey.inventory_name.clone(), survey.inventory.objects.len() + new));
}

/// The live objects of everything that is wanted or in the inventory. What is wanted of a workload depends on them in one thing:
/// with which configuration its pods began.
async fn observe(world: &World, survey: &Survey, desired: &mut [Desired], new: &[Object]) -> Result<Observed, ReconcileError> {
    let mut live = survey.live.clone();
    if !new.is_empty() {
        let new: Vec<_> = new.iter().map(|o| (o.identity(), o.api_version())).collect();
        let found = world.reader.live(&new, watches(&new, &survey.apply_set)).await?;
        Arc::make_mut(&mut live).extend(found);
    }
    for d in desired.iter_mut().filter(|d| d.object.pod_spec().is_some()) {
        if let Some(live) = live.get(d.object.identity()).filter(|live| is_owned(live, &survey.apply_set)) {
            remember_configuration(&mut d.object, live, &survey.cluster.uid);
        }
    }
    let pairs = desired.iter().filter_map(|d| Some((&d.object, live.get(d.object.identity())?)));
    let settled = world.reader.cache().map(|cache| cache.settled().among(pairs)).unwrap_or_default();
    Ok(Observed {
        live,
        settled,
        ..Observed::default()
    })
}
