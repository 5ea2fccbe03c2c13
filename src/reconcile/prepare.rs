//! resolve, fetch, render, observe, plan: everything between the survey and the first write.

use super::desired::{Wanted, desired, drawn};
use super::error::ReconcileError;
use super::foreign::nobody_else;
use super::lookups::answered;
use super::stopwatch::Stopwatch;
use super::survey::{Survey, watches};
use super::{Occasion, World, ahead, attached, basis, gates, gather, preconditions, prerequisites, select, snapshots, upgrade, webhook};
use crate::api::{Approval, Class, ConflictRule, MatrixStatus, UpdatePolicy};
use crate::cluster::{Select, Watch, list};
use crate::driverconfig::csi;
use crate::facts::Connection;
use crate::manifest::{Object, is_owned, remember_configuration};
use crate::matrix::{self, Index, Query, Resolution};
use crate::plan::{self, Desired, Drawn, Held, Hold, Input, Needs, Observed, Plan, Wait};
use crate::status::{DriverReport, Report, Trouble};
use crate::types::{CPI, CSI, VcenterVersion};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::ResourceExt;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything that was decided.
pub struct Prepared {
    /// The chosen versions.
    pub resolution: Resolution,
    /// All objects that should exist.
    pub desired: Vec<Desired>,
    /// What was found of them.
    pub observed: Observed,
    /// What of the wanted objects is drawn by chance, for the hash of the plan.
    pub drawn: Drawn,
    /// The next increment.
    pub plan: Plan,
    /// The identity under which volumes are registered.
    cluster_id: String,
    /// The state that a person has approved, where approval is asked for.
    pub(super) approved: Option<String>,
    rules: Vec<ConflictRule>,
    hold: Option<Hold>,
    unproven: Vec<Wait>,
    /// Which driver must not go on while which other one is left as it is.
    pub(super) needs: Needs,
    /// The drivers for which the administrator has not brought everything.
    pub(super) missing: Held,
    /// The drivers that are left as they are: these, and those of which the server refuses something.
    pub(super) held: Held,
}

impl Prepared {
    /// Every write on the way to what is wanted.
    #[must_use]
    pub fn whole(&self, survey: &Survey) -> Plan {
        plan::whole(&self.input(survey, &self.observed))
    }

    /// The same if the storage driver had no volumes; what waits for them is in [`Plan::blocked`] of the plan.
    #[must_use]
    pub fn eventual(&self, survey: &Survey) -> Plan {
        plan::whole(&self.input(survey, &self.observed.without_volumes()))
    }

    /// Plans, and looks up what has to be known before something goes: now, or at the end of the whole way.
    async fn answer(&mut self, world: &World, occasion: &Occasion<'_>, survey: &Survey) -> Result<(), ReconcileError> {
        self.held = self.held_with(&self.whole(survey), survey, Held::new());
        let held = self.held.clone();
        self.plan = self.answered(world, occasion, survey, |input| plan::without(input, &held)).await?;
        if self.plan.is_transition() {
            self.answered(world, occasion, survey, |input| plan::whole(&input)).await?;
            self.replan(survey);
        }
        Ok(())
    }

    async fn answered(
        &mut self,
        world: &World,
        occasion: &Occasion<'_>,
        survey: &Survey,
        make: impl Fn(Input<'_>) -> Plan,
    ) -> Result<Plan, ReconcileError> {
        let observed = std::mem::take(&mut self.observed);
        let next = |observed: &Observed| make(self.input(survey, observed));
        let (observed, plan) = answered(world, occasion.config, observed, next).await?;
        self.observed = observed;
        Ok(plan)
    }

    /// The drivers that are left as they are when something of these is refused: these, those without their rights, and those that must
    /// not go on without one of them.
    pub(super) fn held_with(&self, whole: &Plan, survey: &Survey, refused: Held) -> Held {
        let mut all = self.missing.clone();
        all.extend(refused);
        plan::held(whole, &survey.inventory, all, &self.needs)
    }

    /// Plans again, because something was learned.
    pub(super) fn replan(&mut self, survey: &Survey) {
        self.plan = plan::without(self.input(survey, &self.observed), &self.held);
    }

    /// Lets nothing of this wave and after it start in the next increment.
    pub(super) fn hold_from(&mut self, wave: u8) {
        match &mut self.hold {
            Some(hold) => hold.from = hold.from.min(wave),
            None => {
                self.hold = Some(Hold {
                    from: wave,
                    waits: Vec::new(),
                })
            }
        }
    }

    fn input<'a>(&'a self, survey: &'a Survey, observed: &'a Observed) -> Input<'a> {
        Input {
            apply_set: &survey.apply_set,
            desired: &self.desired,
            observed,
            inventory: &survey.inventory,
            cluster_id: Some(&self.cluster_id),
            approved: self.approved.as_deref(),
            rules: &self.rules,
            hold: self.hold.clone(),
            unproven: self.unproven.clone(),
        }
    }
}

/// Decides what to do next, without writing anything.
///
/// # Errors
/// With the first step that fails; the report holds what was found out until then.
pub async fn prepare(occasion: &Occasion<'_>, world: &World, survey: &Survey, report: &mut Report) -> Result<Prepared, ReconcileError> {
    let config = occasion.config;
    let mut watch = Stopwatch::start();
    let namespace = config.namespace().unwrap_or_default();
    let known = match &survey.inventory.cluster_id {
        Some(fixed) => Some(fixed.clone()),
        None => registered(world).await?,
    };
    let cluster_id = cluster_id(occasion, survey, known)?;

    let objects = gather::connection_objects(&world.reader, &namespace).await?;
    let mut asked = select::asked(&config.spec, &namespace, &objects.iter().map(ResourceExt::name_any).collect())?;
    let mut connections: Vec<Connection> = Vec::new();
    for object in objects.iter().filter(|o| asked.used().contains(o.name_any().as_str())) {
        let mut connection = gather::connection(&world.reader, object).await?;
        connection.drivers = asked.users(&connection.name);
        connections.push(connection);
    }
    report.connections.clone_from(&connections);
    report.preconditions.push(preconditions::trust(&connections));

    report.preconditions.push(snapshots::survey(&world.reader, &config.spec).await);

    let installed = survey.versions();
    let basis = basis::basis(&world.library, config, &installed, &asked).await?;
    let index: &Index = &basis.edition.index;
    asked.leave_to(index);
    upgrade::hold_upgrades(&world.reader, survey, &objects, index, &mut asked).await?;
    report.matrix = (!basis.narrowed).then(|| MatrixStatus {
        source: world.library.to_string(),
        version: i64::try_from(index.version).unwrap_or(i64::MAX),
        digest: basis.edition.digest.to_string(),
    });
    report
        .preconditions
        .push(preconditions::matrix(&basis, &world.library.to_string(), occasion.now));
    let (vcenters, unknown) = match vcenters(&connections, index) {
        Ok(vcenters) => (vcenters, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let query = Query {
        kubernetes: &survey.cluster.version,
        vcenters: &vcenters,
        drivers: &asked.drivers,
        installed: &installed,
        policy: index.policy(policy(config.spec.update_policy), occasion.now),
    };
    if let Some(error) = unknown {
        report.preconditions.extend(preconditions::supported(index, &query, None));
        return Err(error);
    }
    report.upgradeable = (!basis.narrowed).then(|| ahead::upgradeable(index, &query));
    let (told, resolution) = attached::choose(&world.reader, index, &query).await;
    report.preconditions.push(told);
    report
        .preconditions
        .extend(preconditions::supported(index, &query, resolution.as_ref().ok()));
    let resolution = resolution?;

    watch.lap(report, "resolve");
    let mut charts = BTreeMap::new();
    for (driver, pick) in &resolution.picks {
        charts.insert(driver.clone(), world.library.chart(&pick.chart).await?);
    }
    watch.lap(report, "fetch");
    let webhook = match webhook::wanted(occasion, charts.get(CSI).map(AsRef::as_ref)) {
        Some(place) => {
            let (material, told) = webhook::material(occasion, world, survey, &place).await?;
            report.preconditions.push(told);
            Some(material)
        }
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
        cluster_id: &cluster_id,
        apply_set: &survey.apply_set,
        namespace: &namespace,
    };
    let mut desired = desired(&wanted, &world.renders)?;
    let drawn = drawn(&wanted, &desired)?;
    watch.lap(report, "render");
    let missing = prerequisites::missing(world, &mut desired).await?;
    report.troubles.extend(missing.values().map(|wait| Trouble {
        reason: wait.reason,
        class: Class::Wait,
        message: wait.message.clone(),
    }));
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
    tell(report, survey, &resolution, &desired, new.len());
    nobody_else(world, survey, &desired, report).await?;

    let observed = Observed {
        suspect: occasion.suspect.clone(),
        at: occasion.now,
        patience: occasion.patience,
        ..observe(world, survey, &mut desired, &new).await?
    };
    let mut needs = matrix::apart(index, &query, &resolution);
    needs.extend(gates::needs(&workloads, &survey.running));
    let hold = gates::hold_lamed(&workloads, &asked, &connections, &survey.running);
    let hold = hold.or_else(|| gates::hold(&workloads, &survey.cluster, &survey.running, survey.age(CPI, occasion.now)));
    let hold = hold.or_else(|| gates::hold_webhook(&desired, &survey.live));
    let mut prepared = Prepared {
        resolution,
        desired,
        observed,
        drawn,
        plan: Plan::default(),
        cluster_id,
        approved: survey
            .inventory
            .approved
            .clone()
            .filter(|_| config.spec.approval == Approval::Manual),
        rules: config.spec.conflicts.clone(),
        hold,
        unproven: gates::unproven(&survey.running),
        needs,
        held: Held::new(),
        missing,
    };
    prepared.answer(world, occasion, survey).await?;
    report.waiting.clone_from(&prepared.plan.waiting);
    report.skipped.clone_from(&prepared.plan.skipped);
    report.cluster_id = Some(prepared.cluster_id.clone());
    watch.lap(report, "plan");
    Ok(prepared)
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

/// The version of every vCenter in use; an old answer counts while there is no new one, but nothing counts that must not reach
/// a driver.
fn vcenters(connections: &[Connection], index: &Index) -> Result<Vec<(String, VcenterVersion)>, ReconcileError> {
    connections
        .iter()
        .map(|c| match (&c.version, &c.blocked) {
            (Some(version), None) => Ok((c.name.clone(), index.vcenter(version, c.build.as_deref()))),
            (Some(_), Some(because)) => Err(ReconcileError::ConnectionNotReady {
                connection: c.name.clone(),
                message: because.clone(),
            }),
            (None, _) => Err(ReconcileError::ConnectionNotReady {
                connection: c.name.clone(),
                message: c.message.clone(),
            }),
        })
        .collect()
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

fn tell(report: &mut Report, survey: &Survey, resolution: &Resolution, desired: &[Desired], new: usize) {
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
