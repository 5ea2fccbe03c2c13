//! The promises of the planner, held against a small simulated cluster: plain data in which an apply inserts, a delete marks
//! and a tick removes what is marked.

use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use vdo::api::Reason;
use vdo::manifest::{Object, Owner, apply_set_id, is_owned, stamp};
use vdo::plan::{
    Change, Desired, Entry, Hold, Input, Inventory, Observed, Plan, Question, Step, Volumes, Wait, build, check, remove, wave,
};
use vdo::types::DriverRole as Role;
use vdo::types::{CPI, CSI, ObjectId};

const PROTECTED: [&str; 1] = ["PersistentVolumeClaim"];
/// Kinds that go only when nothing depends on them.
const GUARDED: [&str; 3] = ["Namespace", "StorageClass", "CustomResourceDefinition"];

/// Every object that a case may speak of: API version, kind, namespace, name, driver.
const UNIVERSE: [(&str, &str, &str, &str, &str); 13] = [
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "crd", CSI),
    ("v1", "Namespace", "", "csi", CSI),
    ("v1", "Namespace", "", "spare", CSI),
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

fn set() -> String {
    apply_set_id("inventory", "vdo")
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Live {
    Absent,
    Ours(u8),
    Foreign(u8),
    Leaving(u8),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Listed {
    No,
    WithoutUid,
    SameUid,
    OtherUid,
    Adopted,
}

/// What is true of one object of the universe at the start.
#[derive(Debug, Clone, Copy)]
struct Slot {
    wanted: Option<u8>,
    live: Live,
    listed: Listed,
    held: bool,
}

fn slot() -> impl Strategy<Value = Slot> {
    let live = prop_oneof![3 => Just(Live::Absent), 4 => (0..2u8).prop_map(Live::Ours), 2 => (0..2u8).prop_map(Live::Foreign), 1 => (0..2u8).prop_map(Live::Leaving)];
    let listed = prop_oneof![2 => Just(Listed::No), 1 => Just(Listed::WithoutUid), 4 => Just(Listed::SameUid), 1 => Just(Listed::OtherUid), 1 => Just(Listed::Adopted)];
    (prop::option::of(0..2u8), live, listed, any::<bool>()).prop_map(|(wanted, live, listed, held)| Slot {
        wanted,
        live,
        listed,
        held,
    })
}

/// A starting point: a state of the cluster, an inventory, and what is wanted.
#[derive(Debug, Clone)]
struct Case {
    desired: Vec<Desired>,
    world: World,
}

fn case() -> impl Strategy<Value = Case> {
    prop::collection::vec(slot(), UNIVERSE.len()).prop_map(|slots| Case::of(&slots))
}

impl Case {
    fn of(slots: &[Slot]) -> Self {
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
            let entry = |uid: Option<&str>, adopted| Entry {
                api_version: UNIVERSE[i].0.into(),
                driver: driver.into(),
                wave: order(i),
                adopted,
                uid: uid.map(Into::into),
            };
            let entry = match slot.listed {
                Listed::No => None,
                Listed::WithoutUid => Some(entry(None, false)),
                Listed::SameUid => Some(entry(Some("start"), false)),
                Listed::OtherUid => Some(entry(Some("another"), false)),
                Listed::Adopted => Some(entry(None, true)),
            };
            case.world.inventory.objects.extend(entry.map(|entry| (id.clone(), entry)));
            if slot.held && GUARDED.contains(&kind) {
                case.world.held.insert(id.clone());
            }
        }
        case
    }

    fn plan(&self, world: &World) -> Plan {
        world.plan(&self.desired, None, Vec::new())
    }

    /// Carries out plan after plan until nothing is written and nothing is waited for; returns the end and the number of
    /// writes. With `kill`, the process dies once after that many writes, in the middle of its plan.
    fn converge(&self, kill: Option<usize>) -> (World, usize) {
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

fn order(i: usize) -> u8 {
    let role = match UNIVERSE[i].4 {
        CPI => Role::CloudProvider,
        CSI => Role::Storage,
        _ => Role::Other,
    };
    wave(UNIVERSE[i].1, role)
}

fn object(i: usize, content: u8, ours: bool) -> Object {
    let (api_version, kind, namespace, name, driver) = UNIVERSE[i];
    let mut metadata = json!({"name": name});
    if !namespace.is_empty() {
        metadata["namespace"] = namespace.into();
    }
    let mut all = [
        Object::new(json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "data": {"content": content}}))
            .expect("an object"),
    ];
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

fn stored(object: Object, uid: &str, leaving: bool) -> Object {
    let mut value = object.into_value();
    value["metadata"]["uid"] = uid.into();
    if leaving {
        value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    Object::new(value).expect("an object")
}

fn is_leaving(object: &Object) -> bool {
    !object.text("/metadata/deletionTimestamp").is_empty()
}

#[derive(Debug, Clone, Default)]
struct World {
    live: BTreeMap<ObjectId, Object>,
    inventory: Inventory,
    held: BTreeSet<ObjectId>,
    volumes: Volumes,
    at: Timestamp,
    made: usize,
}

impl World {
    fn observed(&self) -> Observed {
        Observed {
            live: self.live.clone(),
            settled: BTreeSet::new(),
            at: self.at,
            patience: Duration::from_secs(300),
            ..Observed::default()
        }
    }

    /// What a plan asks is answered, until it asks nothing.
    fn answered(&self, plan: impl Fn(&Observed) -> Plan) -> Plan {
        let mut observed = self.observed();
        loop {
            let next = plan(&observed);
            for question in &next.questions {
                match question {
                    Question::HeldBy(id) => {
                        let holder = self.held.contains(id).then(|| "somebody holds it".to_owned());
                        assert_eq!(observed.held.insert(id.clone(), holder), None, "{id} was asked for twice");
                    }
                    Question::Volumes => observed.volumes = Some(self.volumes.clone()),
                }
            }
            if next.questions.is_empty() {
                return next;
            }
        }
    }

    fn plan(&self, desired: &[Desired], hold: Option<Hold>, unproven: Vec<Wait>) -> Plan {
        let plan = self.answered(|observed| {
            build(Input {
                apply_set: &set(),
                desired,
                observed,
                inventory: &self.inventory,
                cluster_id: Some("cluster"),
                hold: hold.clone(),
                unproven: unproven.clone(),
            })
        });
        assert_eq!(check(&plan, desired, &self.inventory), Ok(()), "{}", text(&plan));
        plan
    }

    fn remove(&self) -> Plan {
        let plan = self.answered(|observed| remove(&set(), observed, &self.inventory));
        assert_eq!(check(&plan, &[], &self.inventory), Ok(()), "{}", text(&plan));
        plan
    }

    fn carry(&mut self, step: &Step) {
        match step {
            Step::Record(inventory) | Step::Commit(inventory) => self.inventory = inventory.clone(),
            Step::Apply { object, .. } => {
                self.made += 1;
                let uid = self
                    .live
                    .get(&object.id())
                    .map_or_else(|| format!("made-{}", self.made), |live| live.uid().to_owned());
                self.live.insert(object.id(), stored(object.clone(), &uid, false));
            }
            Step::Delete { id, uid, .. } => {
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
    fn tick(&mut self) {
        self.live.retain(|_, object| !is_leaving(object));
    }

    fn unaccounted(&self) -> BTreeSet<ObjectId> {
        let ours = self.live.iter().filter(|(_, object)| is_owned(object, &set()));
        ours.map(|(id, _)| id.clone())
            .filter(|id| !self.inventory.objects.contains_key(id))
            .collect()
    }

    /// Everything but UIDs, which differ from run to run.
    fn shape(&self) -> (Vec<String>, Vec<String>) {
        let live = self
            .live
            .iter()
            .map(|(id, o)| format!("{id} {} {}", is_owned(o, &set()), o.value()["data"]))
            .collect();
        (
            live,
            self.inventory
                .objects
                .iter()
                .map(|(id, e)| format!("{id} {} {}", e.wave, e.adopted))
                .collect(),
        )
    }
}

/// A plan with everything that is in it.
fn text(plan: &Plan) -> String {
    let step = |step: &Step| match step {
        Step::Apply { object, change, wave } => format!("apply {wave} {} {change:?}", object.value()),
        other => format!("{other:?}"),
    };
    format!(
        "{:#?} {:?} {:?}",
        plan.steps.iter().map(step).collect::<Vec<_>>(),
        plan.skipped,
        plan.waiting
    )
}

fn some_wait() -> Vec<Wait> {
    vec![Wait {
        driver: CSI.into(),
        reason: Reason::WaitingForPods,
        message: "pods".into(),
    }]
}

fn config() -> ProptestConfig {
    let regressions = FileFailurePersistence::Direct("tests/plan.regressions");
    ProptestConfig {
        cases: 100,
        failure_persistence: Some(Box::new(regressions)),
        ..ProptestConfig::default()
    }
}

/// Every delete of a plan against the state it was made for.
fn deletes_are_lawful(plan: &Plan, world: &World, desired: &[Desired]) -> Result<(), TestCaseError> {
    for step in &plan.steps {
        let Step::Delete { id, uid, .. } = step else { continue };
        let (live, entry) = (world.live.get(id), world.inventory.objects.get(id));
        prop_assert!(!desired.iter().any(|d| d.object.id() == *id), "{id} is wanted");
        prop_assert!(
            live.is_some_and(|live| live.uid() == uid && is_owned(live, &set())),
            "{id} is not ours, or another instance"
        );
        prop_assert!(
            entry.is_some_and(|e| !e.adopted && e.uid.as_ref().is_none_or(|known| known == uid)),
            "{id} is not in the inventory like this"
        );
        prop_assert!(!PROTECTED.contains(&id.kind()), "{id} is protected");
        prop_assert!(!world.held.contains(id), "{id} is held");
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn carried_out_it_leads_to_what_is_wanted_and_to_rest(case in case()) {
        let (end, _) = case.converge(None);
        for d in &case.desired {
            let live = end.live.get(&d.object.id());
            prop_assert!(live.is_some_and(|live| is_owned(live, &set()) && live.value()["data"] == d.object.value()["data"]), "{} is not as wanted", d.object);
            prop_assert_eq!(end.inventory.objects[&d.object.id()].uid.as_deref(), live.map(Object::uid));
        }
        let again = case.plan(&end);
        prop_assert!(again.is_empty() && again.waiting.is_empty(), "{}", text(&again));
        // What is still there of the inventory and not wanted is there for a reason that is said.
        let wanted: BTreeSet<ObjectId> = case.desired.iter().map(|d| d.object.id()).collect();
        let left: BTreeSet<ObjectId> = end.inventory.objects.keys().filter(|id| !wanted.contains(id)).cloned().collect();
        prop_assert_eq!(left, again.skipped.iter().map(|skip| skip.id.clone()).collect::<BTreeSet<_>>());
    }

    #[test]
    fn input_order_is_irrelevant(case in case(), seed in any::<u64>()) {
        let mut shuffled = case.clone();
        shuffled.desired.sort_by_key(|d| vdo::types::Digest::of(format!("{seed}{}", d.object).as_bytes()).hex());
        prop_assert_eq!(text(&case.plan(&case.world)), text(&shuffled.plan(&case.world)));
    }

    #[test]
    fn killed_after_any_write_it_goes_on_to_the_same_end(case in case()) {
        let (end, writes) = case.converge(None);
        for kill in 0..writes {
            prop_assert_eq!(case.converge(Some(kill)).0.shape(), end.shape(), "killed before write {}", kill);
        }
    }

    #[test]
    fn the_inventory_covers_what_is_ours_after_every_write(case in case()) {
        let mut world = case.world.clone();
        let unaccounted = world.unaccounted();
        for _ in 0..12 {
            for step in case.plan(&world).steps {
                world.carry(&step);
                prop_assert!(world.unaccounted().is_subset(&unaccounted), "{:?}: {:?}", step, world.unaccounted());
            }
            world.tick();
        }
    }

    #[test]
    fn deletes_are_lawful_on_the_way_there_and_back(case in case()) {
        let mut world = case.world.clone();
        for _ in 0..12 {
            let plan = case.plan(&world);
            deletes_are_lawful(&plan, &world, &case.desired)?;
            plan.steps.iter().for_each(|step| world.carry(step));
            world.tick();
        }
        for mut world in [case.world.clone(), world] {
            for _ in 0..12 {
                let plan = world.remove();
                deletes_are_lawful(&plan, &world, &[])?;
                plan.steps.iter().for_each(|step| world.carry(step));
                world.tick();
            }
        }
    }

    #[test]
    fn held_waves_are_not_applied_and_nothing_is_removed_meanwhile(case in case(), from in 0..7u8, silent in any::<bool>()) {
        let waits = if silent { Vec::new() } else { some_wait() };
        let plan = case.world.plan(&case.desired, Some(Hold { from, waits: waits.clone() }), Vec::new());
        for step in &plan.steps {
            prop_assert!(match step {
                Step::Record(_) => true,
                Step::Apply { wave, .. } => *wave < from,
                Step::Delete { .. } | Step::Release { .. } | Step::Commit(_) => false,
            }, "{:?}", step);
        }
        prop_assert!(waits.iter().all(|wait| plan.waiting.contains(wait)));
    }

    #[test]
    fn nothing_is_removed_while_anything_is_unproven(case in case()) {
        let plan = case.world.plan(&case.desired, None, some_wait());
        prop_assert!(!plan.steps.iter().any(|step| matches!(step, Step::Delete { .. } | Step::Commit(_))), "{}", text(&plan));
        prop_assert!(plan.waiting.ends_with(&some_wait()));
    }

    #[test]
    fn removal_goes_wave_by_wave_downwards_and_forgets_everything(case in case(), kill in any::<prop::sample::Index>()) {
        let (mut world, _) = case.converge(None);
        let (mut lowest, mut through) = (u8::MAX, false);
        for _ in 0..12 {
            let plan = world.remove();
            let waves: BTreeSet<u8> = plan.steps.iter().filter_map(|step| match step {
                Step::Delete { id, .. } => Some(world.inventory.objects[id].wave),
                _ => None,
            }).collect();
            prop_assert!(waves.len() <= 1, "{:?} at once", waves);
            for wave in waves {
                prop_assert!(wave <= lowest);
                lowest = wave;
            }
            // A process that dies in between changes nothing about the end.
            let stop = if plan.steps.len() > 1 { kill.index(plan.steps.len()) } else { 1 };
            plan.steps.iter().take(stop.max(1)).for_each(|step| world.carry(step));
            world.tick();
            through |= matches!(plan.steps.as_slice(), [Step::Commit(_)]);
        }
        for _ in 0..12 {
            let plan = world.remove();
            plan.steps.iter().for_each(|step| world.carry(step));
            world.tick();
            through |= matches!(plan.steps.as_slice(), [Step::Commit(_)]);
        }
        prop_assert!(through && world.inventory == Inventory::default());
    }
}

/// Position in [`UNIVERSE`].
fn at(kind: &str, name: &str) -> usize {
    UNIVERSE
        .iter()
        .position(|entry| entry.1 == kind && entry.3 == name)
        .expect("in the universe")
}

const NOTHING: Slot = Slot {
    wanted: None,
    live: Live::Absent,
    listed: Listed::No,
    held: false,
};

/// A case in which only these objects differ from nothing.
fn with(slots: &[(usize, Slot)]) -> Case {
    let mut all = [NOTHING; UNIVERSE.len()];
    for (i, slot) in slots {
        all[*i] = *slot;
    }
    Case::of(&all)
}

#[test]
fn a_namespace_that_was_there_before_stays() {
    let namespace = at("Namespace", "csi");
    let case = with(&[(
        namespace,
        Slot {
            wanted: Some(0),
            live: Live::Foreign(0),
            ..NOTHING
        },
    )]);
    let changes: Vec<Change> = case
        .plan(&case.world)
        .steps
        .into_iter()
        .filter_map(|step| {
            if let Step::Apply { change, .. } = step {
                Some(change)
            } else {
                None
            }
        })
        .collect();
    assert_eq!(changes, [Change::Adopt]);
    let (end, _) = case.converge(None);
    let plan = end.remove();
    assert_eq!(plan.skipped[0].message, "Namespace csi stays: it was there before the driver");
    assert!(matches!(plan.steps.as_slice(), [Step::Commit(inventory)] if *inventory == Inventory::default()));
}

#[test]
fn a_namespace_with_foreign_content_stays() {
    let namespace = at("Namespace", "csi");
    let case = with(&[(
        namespace,
        Slot {
            live: Live::Ours(0),
            listed: Listed::SameUid,
            held: true,
            ..NOTHING
        },
    )]);
    let plan = case.plan(&case.world);
    assert_eq!(plan.skipped[0].message, "Namespace csi stays: somebody holds it");
    assert!(!plan.steps.iter().any(|step| matches!(step, Step::Delete { .. })));
}

#[test]
fn an_adopted_namespace_that_we_had_to_make_again_is_ours() {
    let namespace = at("Namespace", "csi");
    let case = with(&[(
        namespace,
        Slot {
            wanted: Some(0),
            listed: Listed::Adopted,
            ..NOTHING
        },
    )]);
    let (end, _) = case.converge(None);
    assert!(matches!(end.remove().steps.as_slice(), [Step::Delete { .. }]));
}

#[test]
fn what_lives_in_a_leaving_namespace_waits_for_its_successor() {
    let (namespace, node) = (at("Namespace", "csi"), at("DaemonSet", "node"));
    let case = with(&[
        (
            namespace,
            Slot {
                wanted: Some(0),
                live: Live::Leaving(0),
                listed: Listed::SameUid,
                held: false,
            },
        ),
        (
            node,
            Slot {
                wanted: Some(0),
                ..NOTHING
            },
        ),
    ]);
    let plan = case.plan(&case.world);
    assert!(!plan.steps.iter().any(|step| matches!(step, Step::Apply { .. })), "{}", text(&plan));
    assert_eq!(
        plan.waiting[0].message,
        "Namespace csi is being deleted by somebody and is made anew once it is gone"
    );
    assert_eq!(case.converge(None).0.live.len(), 2);
}

#[test]
fn an_object_made_again_by_us_and_then_no_longer_wanted_is_removed_even_after_a_crash() {
    let config = at("ConfigMap", "cpi");
    let mut case = with(&[(
        config,
        Slot {
            wanted: Some(0),
            listed: Listed::SameUid,
            ..NOTHING
        },
    )]);
    let plan = case.plan(&case.world);
    plan.steps.iter().for_each(|step| case.world.carry(step));
    case.desired.clear();
    let (end, _) = case.converge(None);
    assert!(end.live.is_empty() && end.inventory.objects.is_empty());
}

#[test]
fn entries_follow_the_version_and_wave_of_what_is_wanted() {
    let node = at("DaemonSet", "node");
    let mut case = with(&[(
        node,
        Slot {
            wanted: Some(0),
            live: Live::Ours(0),
            listed: Listed::SameUid,
            ..NOTHING
        },
    )]);
    let id = object(node, 0, true).id();
    let entry = case.world.inventory.objects.get_mut(&id).expect("listed");
    (entry.api_version, entry.wave) = ("apps/v1beta2".into(), 9);
    let end = case.converge(None).0;
    assert_eq!(
        (end.inventory.objects[&id].api_version.as_str(), end.inventory.objects[&id].wave),
        ("apps/v1", order(node))
    );
}

/// A plan that is good, what it was made for, and one thing done to it.
fn refused(mutate: impl FnOnce(&mut Plan, &mut Vec<Desired>, &mut Inventory)) -> String {
    let (cpi, node, map) = (at("DaemonSet", "cpi"), at("DaemonSet", "node"), at("ConfigMap", "cpi"));
    let case = with(&[
        (
            cpi,
            Slot {
                wanted: Some(0),
                ..NOTHING
            },
        ),
        (
            node,
            Slot {
                wanted: Some(0),
                ..NOTHING
            },
        ),
        (
            map,
            Slot {
                live: Live::Ours(0),
                listed: Listed::SameUid,
                ..NOTHING
            },
        ),
    ]);
    let (mut desired, mut inventory) = (case.desired.clone(), case.world.inventory.clone());
    inventory.cluster_id = Some("cluster".into());
    let mut plan = case.plan(&case.world);
    assert_eq!(check(&plan, &desired, &inventory), Ok(()), "the baseline is good");
    mutate(&mut plan, &mut desired, &mut inventory);
    check(&plan, &desired, &inventory).map_or_else(|refusal| refusal.to_string(), |()| "accepted".into())
}

fn delete(i: usize, uid: &str) -> Step {
    Step::Delete {
        id: object(i, 0, true).id(),
        api_version: UNIVERSE[i].0.into(),
        uid: uid.into(),
    }
}

#[test]
fn bad_plans_are_refused_each_for_its_own_reason() {
    let (map, node) = (at("ConfigMap", "cpi"), at("DaemonSet", "node"));
    let entry = |i: usize, adopted| Entry {
        api_version: UNIVERSE[i].0.into(),
        driver: CSI.into(),
        wave: 2,
        adopted,
        uid: None,
    };
    let cases: Vec<(String, &str)> = vec![
        (
            refused(|plan, _, _| drop(plan.steps.remove(0))),
            "would be written before it is in the inventory",
        ),
        (refused(|plan, _, _| plan.steps.swap(1, 2)), "would be written after wave"),
        (
            refused(|plan, _, _| plan.steps.push(delete(map, "start"))),
            "would be deleted while something is being written",
        ),
        (
            refused(|plan, _, _| plan.steps.insert(0, delete(map, "start"))),
            "would be written after something was deleted",
        ),
        (
            refused(|plan, _, _| plan.steps = vec![delete(node, "start")]),
            "is wanted and would be deleted",
        ),
        (
            refused(|plan, desired, _| (plan.steps, *desired) = (vec![delete(node, "start")], Vec::new())),
            "is not in the inventory and would be deleted",
        ),
        (
            refused(|plan, _, _| plan.steps = vec![delete(map, "")]),
            "would be deleted without its UID",
        ),
        (
            refused(|plan, _, _| plan.steps = vec![delete(map, "other")]),
            "is another instance than the one in the inventory",
        ),
        (
            refused(|plan, _, inventory| {
                plan.steps = vec![delete(map, "start")];
                inventory.objects.insert(object(map, 0, true).id(), entry(map, true));
            }),
            "was there before the driver and would be deleted",
        ),
        (
            refused(|plan, _, inventory| {
                let claim = at("PersistentVolumeClaim", "data");
                plan.steps = vec![delete(claim, "start")];
                inventory.objects.insert(object(claim, 0, true).id(), entry(claim, false));
            }),
            "holds data and would be deleted",
        ),
        (
            refused(|plan, _, _| {
                if let Step::Record(inventory) = &mut plan.steps[0] {
                    inventory.objects.remove(&object(map, 0, true).id());
                }
            }),
            "would be dropped from the inventory before anything was removed",
        ),
        (
            refused(|plan, _, _| {
                if let Step::Record(inventory) = &mut plan.steps[0] {
                    inventory.cluster_id = None;
                }
            }),
            "the identity of the cluster would change",
        ),
        (
            refused(|plan, _, inventory| plan.steps.push(Step::Commit(inventory.clone()))),
            "would be narrowed before it is known",
        ),
        (
            refused(|plan, _, _| plan.steps = vec![Step::Commit(Inventory::default())]),
            "is wanted and would be dropped from the inventory",
        ),
        (
            refused(|plan, desired, inventory| {
                desired.clear();
                plan.steps = vec![Step::Commit(inventory.clone()), delete(map, "start")];
            }),
            "a step follows the narrowing of the inventory",
        ),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "expected {expected:?}, got {message:?}");
    }
}
