// SPDX-License-Identifier: Apache-2.0
//! Runs the scenarios in `src/reconcile/scripts/*.txt`: commands to a simulated cluster, each followed by the expected plan.
//!
//! A file is run from its start; the text after a command is what the command has to print. `VDO_SCRIPTS=write` writes the files instead.
//!
//! | command | |
//! |---|---|
//! | `kubernetes VERSION`, `vcenter VERSION` | the platform from now on |
//! | `spec JSON` | changes the specification (JSON merge patch) |
//! | `withdraw DRIVER VERSION`, `forget DRIVER VERSION` | what the matrix says of a version; the matrix no longer has this version |
//! | `node add NAME`, `node ready NAME`, `node lost NAME` | a node joins, is initialised by the cloud provider, is lost |
//! | `pods ready`, `pods fail KIND/NAME` | what the workloads report |
//! | `change KIND/NAME POINTER JSON`, `delete KIND/NAME` | another manager was there |
//! | `volumes COUNT`, `wait MINUTES`, `clock TIME` | volumes of the driver; time passes, or a clock is set |
//! | `retry` | a user wants a change that failed tried again |
//! | `plan` | shows the versions and the whole way |
//! | `apply`, `apply COUNT` | makes the writes that may be made now, until none is left, or the process dies after so many |
//! | `health` | how the drivers are |

mod words;

use crate::reconcile::choose::{self, Choice};
use crate::reconcile::cluster_id::ClusterId;
use crate::reconcile::driver_run::{DriverRuns, Source};
use crate::reconcile::history_record::record;
use crate::reconcile::observe::ClusterState;
use crate::reconcile::observe::assess::Assessment;
use crate::reconcile::planned::{Planned, keep};
use crate::reconcile::render::{RenderCache, RenderInput, render};
use crate::reconcile::requests::requests;
use crate::reconcile::site::Site;
use crate::reconcile::site::tests::connection;
use crate::reconcile::windows;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vdo_api::api::{FINALIZER, RETRY_AT, VDOConfig};
use vdo_api::facts::{Cluster, Connection, Node, Place};
use vdo_api::types::{ById, ObjectId, VcenterVersion};
use vdo_core::chart;
use vdo_core::health::placement;
use vdo_core::manifest::{Object, apply_set_id};
use vdo_core::matrix::{self, Index, Query, State, Verdict};
use vdo_core::plan::{self, Action, Inventory, Lookup, Observed, Step, Volumes};
use vdo_source::fetch::{ChartRepository, MatrixSource, embedded};
use words::{called, cut, failures, json_of, merge, waits};

const NAMESPACE: &str = "vmware-system-vdo";

/// A cluster, what is asked for in it, and the matrix.
struct Story {
    config: VDOConfig,
    index: Index,
    state: ClusterState,
    vcenter: VcenterVersion,
    repository: ChartRepository,
    renders: RenderCache,
    volumes: usize,
    now: Timestamp,
    made: usize,
}

impl Story {
    fn begin() -> Self {
        let config = json!({"apiVersion": "vdo.vmware.com/v1alpha1", "kind": "VDOConfig", "spec": {},
            "metadata": {"name": "vdo", "namespace": NAMESPACE, "generation": 1, "finalizers": [FINALIZER]}});
        Self {
            config: serde_json::from_value(config).expect("a VDOConfig"),
            index: Index::parse(embedded::index()).expect("a matrix"),
            state: ClusterState {
                openshift: None,
                cluster: Cluster {
                    version: "v1.34.4".parse().expect("a version"),
                    uid: "3f1c".into(),
                    nodes: Vec::new(),
                },
                inventory: Inventory::default(),
                recovered: None,
                apply_set: apply_set_id("vdo-inventory", NAMESPACE),
                live: Arc::default(),
                running: BTreeMap::new(),
                installed: BTreeMap::new(),
                progress: BTreeMap::new(),
                unpullable: BTreeMap::new(),
                of_others: Vec::new(),
            },
            vcenter: "8.0.3".parse().expect("a version"),
            repository: ChartRepository::new(MatrixSource::Embedded),
            renders: RenderCache::default(),
            volumes: 0,
            now: "2026-01-01T00:00:00Z".parse().expect("a time"),
            made: 0,
        }
    }

    /// Carries out a command, and gives what it prints.
    fn run(&mut self, command: &str) -> String {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["kubernetes", version] => self.state.cluster.version = version.parse().expect("a version"),
            ["vcenter", version] => self.vcenter = version.parse().expect("a version"),
            ["spec", ..] => self.specify(&json_of(command.trim_start_matches("spec"))),
            ["withdraw", driver, version] => self.withdraw(driver, version),
            ["forget", driver, version] => {
                let known = self.index.drivers.get_mut(*driver).expect("a driver");
                known.versions.retain(|entry| entry.version.to_string() != *version);
            }
            ["node", "add", name] => self.state.cluster.nodes.push(Arc::new(node(name, name.starts_with("cp")))),
            ["node", "ready", name] => self.initialise(name),
            ["node", "lost", name] => self.state.cluster.nodes.retain(|node| node.name != *name),
            ["pods", "ready"] => self.report(|_| true),
            ["pods", "fail", object] => self.report(|id| called(id) != *object),
            ["change", object, pointer, rest @ ..] => {
                let new = json_of(&rest.join(" "));
                self.touch(object, |value| *value.pointer_mut(pointer).expect("a field") = new);
            }
            ["delete", object] => {
                let id = self.find(object);
                Arc::make_mut(&mut self.state.live).shift_remove(&id);
            }
            ["volumes", count] => self.volumes = count.parse().expect("a number"),
            ["wait", minutes] => self.now += SignedDuration::from_mins(minutes.parse().expect("a number")),
            ["clock", time] => self.now = time.parse().expect("a time"),
            ["retry"] => {
                let annotations = self.config.metadata.annotations.get_or_insert_default();
                annotations.insert(RETRY_AT.into(), self.now.to_string());
            }
            ["plan"] => return self.shown(),
            ["apply"] => return self.applied(usize::MAX),
            ["apply", writes] => return self.applied(writes.parse().expect("a number")),
            ["health"] => return self.healths(),
            other => panic!("there is no command {other:?}"),
        }
        String::new()
    }

    fn specify(&mut self, patch: &Value) {
        let mut spec = serde_json::to_value(&self.config.spec).expect("JSON");
        merge(&mut spec, patch);
        self.config.spec = serde_json::from_value(spec).expect("a specification");
        *self.config.metadata.generation.get_or_insert(0) += 1;
    }

    fn withdraw(&mut self, driver: &str, version: &str) {
        let known = self.index.drivers.get_mut(driver).expect("a driver");
        let entry = known.versions.iter_mut().find(|entry| entry.version.to_string() == version);
        let facts = Arc::make_mut(&mut entry.expect("a version").facts);
        facts.state = State::Withdrawn(Verdict {
            reason: "loses data".into(),
            since: None,
            instead: None,
        });
    }

    fn initialise(&mut self, name: &str) {
        let node = self.state.cluster.nodes.iter_mut().find(|node| node.name == name);
        let node = Arc::make_mut(node.expect("a node"));
        node.provider_id = format!("vsphere://{name}");
        node.uninitialized = false;
    }

    /// What the workloads report of their pods: one on each node where they may run, or as many as they ask for. Where the node plugin of the CSI
    /// driver is ready, the driver is registered.
    fn report(&mut self, is_ready: impl Fn(&ObjectId) -> bool) {
        let nodes = &mut self.state.cluster.nodes;
        let workloads = Arc::make_mut(&mut self.state.live).iter_mut();
        for (id, object) in workloads.filter(|(_, object)| object.pod_spec().is_some()) {
            let wanted = match id.kind() {
                "DaemonSet" => nodes.iter().filter(|node| takes(node, object)).count().try_into().expect("few"),
                _ => object.number("/spec/replicas").unwrap_or(1),
            };
            let ready = if is_ready(id) { wanted } else { 0 };
            if id.name == "vsphere-csi-node" {
                nodes.iter_mut().for_each(|node| Arc::make_mut(node).csi_registered = ready > 0);
            }
            let mut value = object.value().clone();
            value["status"] = json!({"observedGeneration": object.number("/metadata/generation"), "desiredNumberScheduled": wanted, "updatedNumberScheduled": wanted,
                "numberReady": ready, "numberAvailable": ready, "replicas": wanted, "updatedReplicas": wanted, "readyReplicas": ready,
                "availableReplicas": ready});
            *object = Object::new(value).expect("an object");
        }
    }

    fn find(&self, object: &str) -> ObjectId {
        let found = self.state.live.keys().find(|id| called(id) == object);
        found.unwrap_or_else(|| panic!("there is no {object}")).clone()
    }

    fn touch(&mut self, object: &str, change: impl FnOnce(&mut Value)) {
        let id = self.find(object);
        let live = &mut Arc::make_mut(&mut self.state.live)[&id];
        let mut value = live.value().clone();
        change(&mut value);
        *live = Object::new(value).expect("an object");
    }

    /// Plans as the operator does, with the pure phases alone.
    fn planned(&mut self) -> Planned {
        self.assess();
        let connections = vec![Connection {
            version: Some(self.vcenter.clone()),
            ..connection("vc1")
        }];
        let mut runs = requests(&self.config.spec, NAMESPACE, &["vc1".to_owned()].into());
        let site = Site {
            namespace: NAMESPACE.into(),
            objects: Vec::new(),
            connections,
            cluster_id: ClusterId {
                id: "cluster".into(),
                used: true,
                doubt: None,
            },
            spec: self.config.spec.clone(),
        };
        let choice = self.choose(&mut runs);
        for run in runs.iter_mut() {
            let Some(pick) = &run.pick else { continue };
            let packed = embedded::chart(&pick.chart).expect("a chart");
            run.source = Some(Source::Chart(Arc::new(chart::open(&packed).expect("a chart"))));
        }
        let input = RenderInput::of(&self.state, &site, &choice, None);
        let random = render(&input, &mut runs, &self.renders);
        keep(&input, &self.state, &mut runs);
        let stored = (&self.repository, &self.renders);
        let record = record(&self.config, stored, &self.state, (&choice, &runs), random);
        let mut planned = Planned::new(&self.config, &self.state, (site, choice, runs), None, record);
        planned.observed = Observed {
            live: self.state.live.clone(),
            at: self.now,
            timeout: Duration::from_secs(300),
            ..Observed::default()
        };
        for lookup in plan::lookups(&planned.input(&self.state)) {
            match lookup {
                Lookup::HeldBy(id) => drop(planned.observed.held.insert(id, None)),
                Lookup::UsedIn(_) => {}
                Lookup::Volumes => {
                    planned.observed.volumes = Some(Volumes {
                        count: self.volumes,
                        named: (1..=self.volumes).map(|number| format!("pv-{number}")).collect(),
                    });
                }
            }
        }
        planned.replan(&self.state);
        planned
    }

    fn choose(&self, runs: &mut DriverRuns) -> Choice {
        let window = windows::closed(&self.config, self.now);
        let mut drivers = choose::undecided(&runs.questions(), runs);
        while !drivers.is_empty() {
            let query = Query {
                kubernetes: &self.state.cluster.version,
                vcenters: &[("vc1".to_owned(), self.vcenter.clone())],
                drivers: &drivers,
                installed: &self.state.versions(),
                policy: choose::policy(self.config.spec.update_policy),
            };
            let held = window
                .as_ref()
                .and_then(|closed| windows::hold(closed, (&self.config, &self.state.inventory, runs), &self.index, &query));
            let query = Query {
                drivers: held.as_ref().unwrap_or(&drivers),
                ..query
            };
            if let Some(needs) = choose::accept(&self.index, &query, matrix::resolve(&self.index, &query), runs) {
                return Choice {
                    window,
                    needs,
                    index: Some(Arc::new(self.index.clone())),
                    ..Choice::default()
                };
            }
            drivers = choose::undecided(&drivers, runs);
        }
        Choice::default()
    }

    /// Which drivers run, and how, as far as the live objects say it.
    fn assess(&mut self) {
        let judged = self.state.judged().into_iter();
        let assess = |(driver, objects): (&str, Vec<&Object>)| Assessment::of(driver, &objects, &[], &[], &self.state.cluster.nodes);
        let assessments = judged.filter_map(assess).collect();
        self.state.judge(assessments);
    }

    fn shown(&mut self) -> String {
        let planned = self.planned();
        let mut text = String::new();
        for run in planned.runs.iter() {
            let version = match (&run.pick, self.state.installed.get(&run.name)) {
                (Some(pick), Some(installed)) if pick.version.to_string() != *installed => format!("{installed} -> {}", pick.version),
                (Some(pick), _) => pick.version.to_string(),
                (None, installed) => installed.cloned().unwrap_or_else(|| "none".into()),
            };
            let because = run.pick.as_ref().map_or("", |pick| pick.because.as_str());
            writeln!(text, "{} {version}  {because}", run.name).expect("written");
        }
        text.push_str(&failures(&planned));
        let items = plan::outline(&planned.plan, &planned.desired);
        let kept = items.iter().filter(|item| item.action == Action::Keep).count();
        for item in items.iter().filter(|item| item.action != Action::Keep) {
            let (action, because) = (format!("{:?}", item.action), format!("{:?}", item.because));
            writeln!(text, "  {action:<8} {because:<9} {} {}", item.wave, item.id).expect("written");
            let changed = item.fields.iter().filter(|field| !field.path.starts_with("metadata"));
            for field in changed.take(3) {
                writeln!(
                    text,
                    "    {}: {} -> {}",
                    field.path,
                    cut(&field.found.to_string(), 100),
                    cut(&field.wanted.to_string(), 100)
                )
                .expect("written");
            }
        }
        writeln!(text, "  Keep     {kept} objects").expect("written");
        text + &waits(&planned)
    }

    /// Makes the writes that may be made now, until none is left; what was deleted is gone, and pods are as they were.
    fn applied(&mut self, most: usize) -> String {
        let (mut text, mut left) = (String::new(), most);
        for _ in 0..10 {
            let planned = self.planned();
            let steps = planned.steps(&self.state);
            plan::check(&steps, &planned.desired, &self.state.inventory).expect("within the rules");
            if steps.is_empty() {
                return text + &failures(&planned) + &waits(&planned);
            }
            let mut made: BTreeMap<&str, usize> = BTreeMap::new();
            for step in steps.iter().take(left) {
                *made.entry(self.carry(step)).or_default() += 1;
            }
            let made: Vec<String> = made.iter().map(|(what, count)| format!("{count} {what}")).collect();
            writeln!(text, "wrote: {}", made.join(", ")).expect("written");
            if steps.len() >= left {
                return text + "the process dies\n";
            }
            left -= steps.len();
            Arc::make_mut(&mut self.state.live).retain(|_, object| !object.is_terminating());
        }
        panic!("it does not come to rest:\n{text}")
    }

    fn carry(&mut self, step: &Step) -> &'static str {
        let live: &mut ById<Object> = Arc::make_mut(&mut self.state.live);
        match step {
            Step::Record(inventory) | Step::Commit(inventory) => {
                self.state.inventory = inventory.clone();
                "inventory"
            }
            Step::Apply { object, .. } => {
                let mut value = object.value().clone();
                let known = live.get(object.identity());
                if let Some(known) = known {
                    for kept in ["uid", "creationTimestamp"] {
                        value["metadata"][kept] = known.value()["metadata"][kept].clone();
                    }
                    value["metadata"]["generation"] = (known.number("/metadata/generation").unwrap_or(1) + 1).into();
                    value["status"] = known.value()["status"].clone();
                } else {
                    self.made += 1;
                    value["metadata"]["uid"] = format!("uid-{}", self.made).into();
                    value["metadata"]["creationTimestamp"] = self.now.to_string().into();
                    value["metadata"]["generation"] = 1.into();
                }
                let created = known.is_none();
                live.insert(object.id(), Object::new(value).expect("an object"));
                if created { "created" } else { "changed" }
            }
            Step::Delete { id, .. } | Step::Replace { id, .. } => {
                let mut value = live[id].value().clone();
                value["metadata"]["deletionTimestamp"] = self.now.to_string().into();
                live[id] = Object::new(value).expect("an object");
                "deleted"
            }
            other => panic!("a story has no {other:?}"),
        }
    }

    fn healths(&mut self) -> String {
        self.assess();
        let mut text = String::new();
        for (driver, version) in &self.state.installed {
            let health = self.state.health(driver).expect("it runs");
            let words = if health.message.is_empty() { "" } else { ": " };
            writeln!(
                text,
                "{driver} {version}  {} {}{words}{}",
                health.pods, health.reason, health.message
            )
            .expect("written");
        }
        text
    }
}

fn node(name: &str, control_plane: bool) -> Node {
    let role = control_plane.then(|| ("node-role.kubernetes.io/control-plane".to_owned(), String::new()));
    let os = ("kubernetes.io/os".to_owned(), "linux".to_owned());
    Node {
        name: name.into(),
        control_plane,
        uninitialized: true,
        linux: true,
        place: Place {
            labels: role.into_iter().chain([os]).collect(),
            taints: Vec::new(),
        },
        ..Node::default()
    }
}

/// Whether pods of a workload may run on a node, as the scheduler judges it.
fn takes(node: &Arc<Node>, workload: &Object) -> bool {
    let mut value = workload.value().clone();
    value["kind"] = "Deployment".into();
    let workload = Object::new(value).expect("an object");
    placement(&workload, std::slice::from_ref(node)).is_some_and(|found| found.eligible == 1)
}

/// A script with what its commands print now.
fn replayed(script: &str) -> String {
    let mut story = Story::begin();
    let mut text = String::new();
    for line in script.lines() {
        match line.strip_prefix("> ") {
            Some(command) => {
                writeln!(text, "{line}").expect("written");
                text.push_str(&story.run(command));
            }
            None if line.starts_with('#') || line.is_empty() => writeln!(text, "{line}").expect("written"),
            // What it printed before.
            None => {}
        }
    }
    text
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test that writes files is asked to by the environment")]
fn scripts_print_what_is_written_in_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/reconcile/scripts");
    let files = std::fs::read_dir(&folder).expect("scripts");
    let mut files: Vec<_> = files.map(|entry| entry.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    let mut wrong = String::new();
    for file in files {
        let script = std::fs::read_to_string(&file).expect("a script");
        let now = replayed(&script);
        if std::env::var("VDO_SCRIPTS").as_deref() == Ok("write") {
            std::fs::write(&file, now).expect("written");
        } else if now != script {
            let difference = similar::TextDiff::from_lines(&script, &now);
            write!(wrong, "{}", difference.unified_diff().header(&file.display().to_string(), "now")).expect("written");
        }
    }
    assert!(wrong.is_empty(), "VDO_SCRIPTS=write writes what is right now:\n{wrong}");
}
