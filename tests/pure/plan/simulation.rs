// SPDX-License-Identifier: Apache-2.0
//! The simulated cluster, and the cases that begin in it.

use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use vdo_api::api::{DeletionPolicy, Reason};
use vdo_api::types::DriverRole as Role;
use vdo_api::types::{ById, Ids, ObjectId};
use vdo_core::drivers::{CPI, CSI};
use vdo_core::manifest::{Object, Owner, apply_set_id, is_owned, stamp};
use vdo_core::plan::{
    Closed, Desired, Entry, Input, Inventory, Last, Lookup, Needs, Observed, Plan, Skip, Step, Volumes, Wait, applied, check, lookups,
    plan, wave,
};

/// Kinds that go only when nothing depends on them.
pub const GUARDED: [&str; 2] = ["StorageClass", "CustomResourceDefinition"];

static SET: OnceLock<String> = OnceLock::new();
static NONE: OnceLock<BTreeSet<String>> = OnceLock::new();

/// Every object that a case may speak of: API version, kind, namespace, name, driver.
pub const UNIVERSE: [(&str, &str, &str, &str, &str); 13] = [
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "crd", CSI),
    ("example.com/v1", "Thing", "csi", "thing", CSI),
    ("v1", "Service", "csi", "webhook", CSI),
    ("v1", "ServiceAccount", "kube-system", "cpi", CPI),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "", "cpi", CPI),
    ("v1", "ConfigMap", "kube-system", "cpi", CPI),
    ("v1", "Secret", "csi", "config", CSI),
    ("storage.k8s.io/v1", "StorageClass", "", "fast", CSI),
    ("v1", "PersistentVolumeClaim", "csi", "data", CSI),
    ("apps/v1", "DaemonSet", "kube-system", "cpi", CPI),
    ("apps/v1", "DaemonSet", "csi", "node", CSI),
    ("apps/v1", "Deployment", "csi", "controller", CSI),
    ("batch/v1", "Job", "csi", "extra", "other"),
];

pub fn set() -> String {
    apply_set_id("inventory", "vdo")
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Live {
    Absent,
    Ours(u8),
    Foreign(u8),
    Leaving(u8),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Listed {
    No,
    WithoutUid,
    SameUid,
    OtherUid,
}

/// What is true of one object of the universe at the start.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    pub wanted: Option<u8>,
    pub live: Live,
    pub listed: Listed,
    pub held: bool,
    /// The API server lets no one change it from what it was at the start.
    pub fixed: bool,
}

pub fn slot() -> impl Strategy<Value = Slot> {
    let live = prop_oneof![3 => Just(Live::Absent), 4 => (0..2u8).prop_map(Live::Ours), 2 => (0..2u8).prop_map(Live::Foreign), 1 => (0..2u8).prop_map(Live::Leaving)];
    let listed = prop_oneof![2 => Just(Listed::No), 1 => Just(Listed::WithoutUid), 4 => Just(Listed::SameUid), 1 => Just(Listed::OtherUid)];
    (prop::option::of(0..2u8), live, listed, any::<bool>(), any::<bool>()).prop_map(|(wanted, live, listed, held, fixed)| Slot {
        wanted,
        live,
        listed,
        held,
        fixed,
    })
}

/// A starting point: a state of the cluster, an inventory, and what is wanted.
#[derive(Debug, Clone)]
pub struct Case {
    pub desired: Vec<Desired>,
    pub world: World,
}

pub fn case() -> impl Strategy<Value = Case> {
    prop::collection::vec(slot(), UNIVERSE.len()).prop_map(|slots| Case::of(&slots))
}

impl Case {
    pub fn of(slots: &[Slot]) -> Self {
        let mut case = Self {
            desired: Vec::new(),
            world: World::default(),
        };
        for (i, slot) in slots.iter().enumerate() {
            let (_, kind, _, _, driver) = UNIVERSE[i];
            if let Some(content) = slot.wanted {
                case.desired.push(Desired {
                    object: object(i, content, true),
                    driver: driver.into(),
                    wave: order(i),
                });
            }
            let live = match slot.live {
                Live::Absent => None,
                Live::Ours(content) => Some(stored(object(i, content, true), "start", false)),
                Live::Foreign(content) => Some(stored(object(i, content, false), "start", false)),
                Live::Leaving(content) => Some(stored(object(i, content, true), "start", true)),
            };
            let id = object(i, 0, false).id();
            case.world.live.extend(live.map(|live| (id.clone(), live)));
            let entry = |uid: Option<&str>| Entry {
                api_version: UNIVERSE[i].0.into(),
                driver: driver.into(),
                wave: order(i),
                uid: uid.map(Into::into),
                applied: uid.and_then(|_| applied(&object(i, slot.wanted.unwrap_or_default(), true)).map(str::to_owned)),
            };
            let entry = match slot.listed {
                Listed::No => None,
                Listed::WithoutUid => Some(entry(None)),
                Listed::SameUid => Some(entry(Some("start"))),
                Listed::OtherUid => Some(entry(Some("another"))),
            };
            case.world.inventory.objects.extend(entry.map(|entry| (id, entry)));
            if slot.fixed {
                case.world.immutable.insert(object(i, 0, false).id());
            }
            if slot.held && GUARDED.contains(&kind) {
                case.world.held.insert(object(i, 0, false).id());
            }
        }
        case
    }

    /// Everything that is wanted with this content, or nothing at all.
    pub fn wanting(case: &Self, content: Option<u8>) -> Vec<Desired> {
        let place = |d: &Desired| {
            UNIVERSE
                .iter()
                .position(|(_, kind, _, name, _)| (*kind, *name) == (d.object.kind(), d.object.name()))
        };
        let with = |content: u8| {
            let desired = |d: &Desired| Desired {
                object: object(place(d).expect("in the universe"), content, true),
                ..d.clone()
            };
            case.desired.iter().map(desired).collect()
        };
        content.map(with).unwrap_or_default()
    }

    pub fn plan(&self, world: &World) -> Increment {
        world.plan(&self.desired, |_| {})
    }

    /// Carries out plan after plan until nothing is written and nothing is waited for; returns the end and the number of
    /// writes. With `kill`, the process dies once after that many writes, in the middle of its plan.
    pub fn converge(&self, kill: Option<usize>) -> (World, usize) {
        let (mut world, mut writes) = (self.world.clone(), 0);
        for _ in 0..12 {
            let plan = self.plan(&world);
            if plan.is_empty() && plan.waiting.is_empty() {
                return (world, writes);
            }
            for step in &plan.steps {
                if kill == Some(writes) {
                    writes += 1;
                    break;
                }
                world.carry(step);
                writes += 1;
            }
            world.tick();
        }
        assert!(
            self.plan(&world).is_empty(),
            "it does not come to rest: {}",
            text(&self.plan(&world))
        );
        (world, writes)
    }
}

pub fn order(i: usize) -> u8 {
    let role = match UNIVERSE[i].4 {
        CPI => Role::CloudProvider,
        CSI => Role::Storage,
        _ => Role::Other,
    };
    wave(UNIVERSE[i].1, role)
}

pub fn object(i: usize, content: u8, ours: bool) -> Object {
    let (api_version, kind, namespace, name, driver) = UNIVERSE[i];
    let mut metadata = json!({"name": name});
    if !namespace.is_empty() {
        metadata["namespace"] = namespace.into();
    }
    let mut value = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "data": {"content": content}});
    if kind == "CustomResourceDefinition" {
        value["spec"] = json!({"group": "example.com", "names": {"kind": "Thing"}});
    }
    let mut all = [Object::new(value).expect("an object")];
    if ours {
        stamp(
            &mut all,
            &Owner {
                apply_set: set(),
                driver: driver.into(),
                version: "1.0.0".into(),
                salt: "uid".into(),
            },
        );
    }
    let [object] = all;
    object
}

pub fn stored(object: Object, uid: &str, leaving: bool) -> Object {
    let mut value = object.into_value();
    value["metadata"]["uid"] = uid.into();
    if leaving {
        value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    Object::new(value).expect("an object")
}

/// What may be carried out now of a plan, and what else it says.
#[derive(Debug)]
pub struct Increment {
    pub steps: Vec<Step>,
    pub whole: Plan,
    pub waiting: Vec<Wait>,
    pub skipped: Vec<Skip>,
}

impl Increment {
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

#[derive(Debug, Clone, Default)]
pub struct World {
    pub live: ById<Object>,
    pub inventory: Inventory,
    pub held: BTreeSet<ObjectId>,
    pub volumes: Volumes,
    pub at: Timestamp,
    pub immutable: Ids,
    made: usize,
}

impl World {
    pub fn observed(&self) -> Observed {
        Observed {
            live: Arc::new(self.live.clone()),
            at: self.at,
            timeout: Duration::from_secs(300),
            immutable: self.immutable.clone(),
            ..Observed::default()
        }
    }

    /// What may be done next, with these gates.
    pub fn plan(&self, desired: &[Desired], gates: impl FnOnce(&mut Plan)) -> Increment {
        let observed = self.looked_up(desired);
        self.plan_for(&self.input(desired, &observed), gates)
    }

    /// The same from an input in which more is known than the cluster shows.
    pub fn plan_for(&self, input: &Input<'_>, gates: impl FnOnce(&mut Plan)) -> Increment {
        let mut whole = plan(input);
        gates(&mut whole);
        let last: Last = whole
            .held_drivers()
            .into_iter()
            .filter_map(|driver| {
                let last = self.inventory.last_applied(driver, |id| self.live.get(id), &[])?;
                Some((driver.to_owned(), last))
            })
            .collect();
        let steps = whole.run(input, &last);
        let increment = Increment {
            steps,
            waiting: whole.waiting.clone(),
            skipped: whole.skipped.clone(),
            whole,
        };
        assert_eq!(
            check(&increment.steps, input.desired, &self.inventory),
            Ok(()),
            "{}",
            text(&increment)
        );
        increment
    }

    /// What may be done next while some drivers are held.
    pub fn plan_without(&self, desired: &[Desired], held: &[Wait]) -> Increment {
        self.plan(desired, |plan| {
            plan.close_all(held.iter().cloned().map(Closed::refused), &Needs::new())
        })
    }

    /// Everything that is left to do.
    pub fn whole(&self, desired: &[Desired]) -> Plan {
        let observed = self.looked_up(desired);
        plan(&self.input(desired, &observed))
    }

    pub fn input<'a>(&'a self, desired: &'a [Desired], observed: &'a Observed) -> Input<'a> {
        Input {
            apply_set: SET.get_or_init(set),
            desired,
            observed,
            inventory: &self.inventory,
            cluster_id: Some("cluster"),
            approved: None,
            rules: &[],
            kept: NONE.get_or_init(BTreeSet::new),
            unhealthy: &[],
            record: &vdo_core::plan::NO_RECORD,
            store: None,
            finalizer: true,
            uninstall: None,
        }
    }

    /// What was seen, with everything that has to be looked up for this.
    pub fn looked_up(&self, desired: &[Desired]) -> Observed {
        let mut observed = self.observed();
        for lookup in lookups(&self.input(desired, &observed)) {
            match lookup {
                Lookup::HeldBy(id) => {
                    let holder = self.held.contains(&id).then(|| "someone holds it".to_owned());
                    observed.held.insert(id, holder);
                }
                Lookup::UsedIn(_) => {}
                Lookup::Volumes => observed.volumes = Some(self.volumes.clone()),
            }
        }
        observed
    }

    pub fn uninstall(&self) -> Increment {
        let observed = self.looked_up(&[]);
        let input = Input {
            uninstall: Some(DeletionPolicy::Delete),
            ..self.input(&[], &observed)
        };
        self.plan_for(&input, |_| {})
    }

    pub fn carry(&mut self, step: &Step) {
        match step {
            Step::Record(inventory) | Step::Commit(inventory) => self.inventory = inventory.clone(),
            Step::Finish => self.inventory = Inventory::default(),
            Step::SetFinalizer | Step::Store { .. } => {}
            Step::Apply { object, .. } => {
                self.made += 1;
                let uid = self
                    .live
                    .get(&object.id())
                    .map_or_else(|| format!("made-{}", self.made), |live| live.uid().to_owned());
                self.live.insert(object.id(), stored(object.clone(), &uid, false));
            }
            Step::Delete { id, uid, .. } | Step::Replace { id, uid, .. } => {
                self.immutable.swap_remove(id);
                if let Some(live) = self.live.get_mut(id).filter(|live| live.uid() == uid) {
                    *live = stored(live.clone(), uid, true);
                }
            }
            Step::Release { id, uid, .. } => {
                if let Some(live) = self.live.get_mut(id).filter(|live| live.uid() == uid) {
                    let mut value = live.clone().into_value();
                    value["metadata"]["labels"] = json!({});
                    *live = Object::new(value).expect("an object");
                }
            }
        }
    }

    /// What is marked is gone.
    pub fn tick(&mut self) {
        self.live.retain(|_, object| !object.is_terminating());
    }

    pub fn unaccounted(&self) -> BTreeSet<ObjectId> {
        let ours = self.live.iter().filter(|(_, object)| is_owned(object, &set()));
        ours.map(|(id, _)| id.clone())
            .filter(|id| !self.inventory.objects.contains_key(id))
            .collect()
    }

    /// Everything but UIDs, which differ from run to run.
    pub fn shape(&self) -> (Vec<String>, Vec<String>) {
        let live = self.live.iter();
        let live = live.map(|(id, o)| format!("{id} {} {}", is_owned(o, &set()), o.value()["data"]));
        let listed = self.inventory.objects.iter();
        let listed = listed.map(|(id, e)| format!("{id} {}", e.wave));
        let (mut live, mut listed): (Vec<_>, Vec<_>) = (live.collect(), listed.collect());
        live.sort();
        listed.sort();
        (live, listed)
    }
}

/// A plan with everything that is in it.
pub fn text(plan: &Increment) -> String {
    let step = |step: &Step| match step {
        Step::Apply { object, change, wave, .. } => format!("apply {wave} {} {change:?}", object.value()),
        other => format!("{other:?}"),
    };
    format!(
        "{:#?} {:?} {:?}",
        plan.steps.iter().map(step).collect::<Vec<_>>(),
        plan.skipped,
        plan.waiting
    )
}

pub fn some_wait() -> Vec<Wait> {
    vec![Wait {
        driver: CSI.into(),
        reason: Reason::WaitingForPods,
        message: "pods".into(),
    }]
}

/// Position in [`UNIVERSE`].
pub fn at(kind: &str, name: &str) -> usize {
    UNIVERSE
        .iter()
        .position(|entry| entry.1 == kind && entry.3 == name)
        .expect("in the universe")
}

pub const NOTHING: Slot = Slot {
    wanted: None,
    live: Live::Absent,
    listed: Listed::No,
    held: false,
    fixed: false,
};

/// A case in which only these objects differ from nothing.
pub fn with(slots: &[(usize, Slot)]) -> Case {
    let mut all = [NOTHING; UNIVERSE.len()];
    for (i, slot) in slots {
        all[*i] = *slot;
    }
    Case::of(&all)
}
