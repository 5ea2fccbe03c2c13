use super::termination::{blocker, waited};
use super::{Desired, Entry, Gate, Input, Observed, Plan, Skip, Step, Wait};
use crate::drivers::STORAGE;
use crate::manifest::{Object, is_owned};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use vdo_api::api::Reason;
use vdo_api::types::{ById, Ids, ObjectId};

/// Something that must be looked up before something is deleted, because everything that depends on it would be lost or fail.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lookup {
    /// What holds this class or definition?
    HeldBy(ObjectId),
    /// Which volumes does the storage driver have?
    Volumes,
}

/// What has to be looked up for a plan from this input.
#[must_use]
pub fn lookups(input: &Input<'_>) -> BTreeSet<Lookup> {
    let listed = |d: &&Desired| input.inventory.objects.contains_key(d.object.identity());
    if input.desired.iter().filter(listed).count() == input.inventory.objects.len() {
        return BTreeSet::new();
    }
    let wanted: Ids = input.desired.iter().map(|d| d.object.id()).collect();
    let unwanted = Unwanted::of(input, &wanted);
    let guarded = unwanted
        .deleted
        .iter()
        .filter(|(id, _, live)| is_guarded(id) && !live.is_terminating());
    let mut all: BTreeSet<Lookup> = guarded.map(|(id, ..)| Lookup::HeldBy((*id).clone())).collect();
    if leaves_as_a_whole(STORAGE.name, &unwanted.deleted, &input.inventory.objects, &wanted) {
        all.insert(Lookup::Volumes);
    }
    all
}

/// What is in the inventory and no longer wanted.
struct Unwanted<'a> {
    deleted: Vec<(&'a ObjectId, &'a Entry, &'a Object)>,
    released: Vec<(&'a ObjectId, &'a Entry, &'a Object, &'static str)>,
    stays: Vec<Skip>,
}

impl<'a> Unwanted<'a> {
    fn of(input: &Input<'a>, wanted: &Ids) -> Self {
        let mut all = Self {
            deleted: Vec::new(),
            released: Vec::new(),
            stays: Vec::new(),
        };
        let known = |(id, entry): &(&ObjectId, &Entry)| !wanted.contains(*id) && !input.kept.contains(&entry.driver);
        let mut unwanted: Vec<_> = input.inventory.objects.iter().filter(known).collect();
        unwanted.sort_by_key(|(id, _)| *id);
        for (id, entry) in unwanted {
            let Some(live) = input.observed.live.get(id) else { continue };
            match verdict(id, entry, live, input.observed, input.apply_set) {
                Verdict::Stays(message) => all.stays.push(Skip { id: id.clone(), message }),
                Verdict::Released(mark) => all.released.push((id, entry, live, mark)),
                Verdict::Deleted => all.deleted.push((id, entry, live)),
            }
        }
        all
    }
}

/// Lets go of what is in the inventory and no longer wanted, each step with what it waits for: what is still being applied of its
/// driver, its health, a lookup, volumes, and everything of a higher wave.
///
/// An object that is still there long after it was deleted is named in `blocked`, and holds up the other waves no longer: its
/// finalizer may need days.
pub(super) fn prune(plan: &mut Plan, input: &Input<'_>, wanted: &Ids) -> Vec<(Step, Gate)> {
    let (inventory, observed) = (&input.inventory.objects, input.observed);
    let Unwanted { deleted, released, stays } = Unwanted::of(input, wanted);
    plan.skipped.extend(stays);
    let mut steps = Vec::new();
    let successor = |driver: &str| input.desired.iter().any(|d| *d.driver == *driver);
    let proven: BTreeMap<String, Gate> = deleted
        .iter()
        .map(|(_, entry, _)| entry)
        .chain(released.iter().map(|(_, entry, ..)| entry))
        .map(|entry| {
            let gate = match plan.unfinished.contains(&entry.driver) && successor(&entry.driver) {
                true => Gate::Waits(Wait {
                    driver: entry.driver.clone(),
                    reason: Reason::Progressing,
                    message: format!("{} is pruned when everything else of it is applied and healthy", entry.driver),
                }),
                false => Gate::Open,
            };
            (entry.driver.clone(), gate)
        })
        .collect();
    let proven = |driver: &str| proven.get(driver).cloned().unwrap_or_default();
    for (id, entry, live, mark) in released {
        plan.skipped.push(Skip {
            id: id.clone(),
            message: format!("{id} stays and is no longer ours: as its annotation {mark} asks"),
        });
        let step = Step::Release {
            id: id.clone(),
            api_version: entry.api_version.clone(),
            uid: live.uid().to_owned(),
            driver: entry.driver.clone(),
        };
        steps.push((step, proven(&entry.driver)));
    }
    let volumes = leaves_as_a_whole(STORAGE.name, &deleted, inventory, wanted)
        .then(|| in_use(observed))
        .flatten();
    if let Some(Gate::Refused(wait)) = &volumes {
        plan.blocked.push(wait.clone());
    }
    // While volumes of the storage driver are in use, a complete removal does not start: it is one way.
    let stopped = |driver: &str| volumes.clone().filter(|_| driver == STORAGE.name || input.desired.is_empty());

    let stuck = |live: &Object| waited(live, observed.at).is_some_and(|waited| waited > observed.timeout);
    let mut deleted = deleted;
    deleted.sort_by(|one, other| (Reverse(one.1.wave), one.0).cmp(&(Reverse(other.1.wave), other.0)));
    let mut above: Option<(u8, Wait)> = None;
    for (id, entry, live) in deleted {
        let wait = |reason, message| Wait {
            driver: entry.driver.clone(),
            reason,
            message,
        };
        let stopped = stopped(&entry.driver);
        if live.is_terminating() {
            let message = format!("{id} {}", blocker(live));
            if stopped.is_some() {
                continue;
            }
            plan.unfinished.insert(entry.driver.clone());
            if stuck(live) {
                plan.blocked.push(wait(Reason::DeletionBlocked, message));
                continue;
            }
            let wait = wait(Reason::Deleting, message);
            plan.waiting.push(wait.clone());
            above.get_or_insert((entry.wave, wait));
            continue;
        }
        let unknown = || {
            let message = format!("{id} is deleted once it is known what depends on it");
            (is_guarded(id) && !observed.held.contains_key(id)).then(|| Gate::Waits(wait(Reason::Deleting, message)))
        };
        let below = || {
            above
                .as_ref()
                .filter(|(wave, _)| *wave > entry.wave)
                .map(|(_, wait)| Gate::Waits(wait.clone()))
        };
        let gate = stopped.or_else(unknown).or_else(below).unwrap_or_else(|| proven(&entry.driver));
        let step = Step::Delete {
            id: id.clone(),
            api_version: entry.api_version.clone(),
            uid: live.uid().to_owned(),
            wave: entry.wave,
            driver: entry.driver.clone(),
        };
        steps.push((step, gate));
    }
    plan.unfinished.extend(steps.iter().map(|(step, _)| step.driver().to_owned()));
    steps
}

/// What the removal of the storage driver waits for.
fn in_use(observed: &Observed) -> Option<Gate> {
    let wait = |reason, message| Wait {
        driver: STORAGE.name.into(),
        reason,
        message,
    };
    match &observed.volumes {
        Some(volumes) if volumes.count == 0 => None,
        Some(volumes) => Some(Gate::Refused(wait(Reason::VolumesInUse, volumes.to_string()))),
        None => {
            let message = "the driver is removed once it is known which volumes it has".to_owned();
            Some(Gate::Waits(wait(Reason::Deleting, message)))
        }
    }
}

/// What is waited for when these writes are made.
pub fn deleting(steps: &[Step]) -> impl Iterator<Item = Wait> {
    steps.iter().filter_map(|step| match step {
        Step::Delete { id, driver, .. } => Some(Wait {
            driver: driver.clone(),
            reason: Reason::Deleting,
            message: format!("{id} is being deleted"),
        }),
        _ => None,
    })
}

/// Whether a driver that still runs is about to go with nothing in its place.
fn leaves_as_a_whole(driver: &str, going: &[(&ObjectId, &Entry, &Object)], inventory: &ById<Entry>, wanted: &Ids) -> bool {
    let successor = inventory.iter().any(|(id, entry)| entry.driver == driver && wanted.contains(id));
    let runs =
        |(_, entry, live): &(&ObjectId, &Entry, &Object)| entry.driver == driver && live.pod_spec().is_some() && !live.is_terminating();
    !successor && going.iter().any(runs)
}

enum Verdict {
    /// It is deleted.
    Deleted,
    /// It stays, and why.
    Stays(String),
    /// It stays, because the annotation with this key says that we let it go.
    Released(&'static str),
}

fn verdict(id: &ObjectId, entry: &Entry, live: &Object, observed: &Observed, apply_set: &str) -> Verdict {
    let stays = |why: &str| Verdict::Stays(format!("{id} stays: {why}"));
    if !is_owned(live, apply_set) {
        return stays("it no longer has our labels, so another manager owns it now");
    }
    if entry.uid.as_deref().is_some_and(|uid| uid != live.uid()) {
        return stays("another user deleted and recreated it");
    }
    if let Some(mark) = keep_mark(live).filter(|_| !live.is_terminating()) {
        return Verdict::Released(mark);
    }
    if PROTECTED.contains(&id.kind()) {
        return stays("objects of this kind hold data and are never removed implicitly");
    }
    match observed.held.get(id) {
        Some(Some(holder)) => stays(holder),
        Some(None) | None => Verdict::Deleted,
    }
}

/// Whether this live object may be deleted: it is the instance that was planned for, it is ours, and no one has asked to
/// keep it. The last look before a delete.
#[must_use]
pub fn may_go(live: &Object, uid: &str, apply_set: &str) -> bool {
    live.uid() == uid && is_owned(live, apply_set) && keep_mark(live).is_none()
}

/// The annotation by which a user keeps an object when its owner goes, in the words of the tools that people know.
fn keep_mark(live: &Object) -> Option<&'static str> {
    const MARKS: [(&str, &str); 3] = [
        ("cli-utils.sigs.k8s.io/on-remove", "keep"),
        ("client.lifecycle.config.k8s.io/deletion", "detach"),
        ("helm.sh/resource-policy", "keep"),
    ];
    MARKS
        .iter()
        .find(|(key, value)| live.annotation(key) == Some(value))
        .map(|(key, _)| *key)
}

/// Kinds that are never removed implicitly.
pub(super) const PROTECTED: [&str; 4] = [
    "PersistentVolumeClaim",
    "PersistentVolume",
    "VolumeSnapshotContent",
    "VolumeSnapshot",
];

/// Kinds that go only when nothing depends on them, which has to be looked up first.
fn is_guarded(id: &ObjectId) -> bool {
    matches!(id.kind(), "StorageClass" | "CustomResourceDefinition")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::CSI;
    use crate::manifest::{Owner, stamp};
    use crate::plan::{Inventory, Last, Volumes, check};
    use k8s_openapi::jiff::Timestamp;
    use serde_json::{Value, json};
    use std::sync::Arc;
    use std::time::Duration;

    const MINUTE: i64 = 60;

    /// An object of ours with this metadata on top, listed in the inventory.
    struct Cluster {
        observed: Observed,
        inventory: Inventory,
    }

    impl Cluster {
        fn new() -> Self {
            let observed = Observed {
                at: "2026-01-01T00:10:00Z".parse().expect("a time"),
                timeout: Duration::from_secs(5 * 60),
                volumes: Some(Volumes::default()),
                ..Observed::default()
            };
            Self {
                observed,
                inventory: Inventory::default(),
            }
        }

        fn with(mut self, kind: &str, name: &str, (driver, wave): (&str, u8), metadata: &Value, pods: bool) -> Self {
            let mut value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "uid": "u", "annotations": {}}});
            for (key, more) in metadata.as_object().into_iter().flatten() {
                value["metadata"][key] = more.clone();
            }
            if pods {
                value["spec"] = json!({"template": {"spec": {}}});
            }
            let owner = Owner {
                apply_set: "set".into(),
                driver: driver.into(),
                version: "1.0.0".into(),
                salt: String::new(),
            };
            let mut all = [Object::new(value).expect("an object")];
            stamp(&mut all, &owner);
            let [object] = all;
            let entry = Entry {
                api_version: "v1".into(),
                driver: driver.into(),
                wave,
                uid: Some("u".into()),
                applied: None,
            };
            self.inventory.objects.insert(object.id(), entry);
            Arc::make_mut(&mut self.observed.live).insert(object.id(), object);
            self
        }

        fn leaving(self, name: &str, wave: u8, minutes: i64, finalizers: &Value) -> Self {
            let since = self.observed.at.as_second() - minutes * MINUTE;
            let since = Timestamp::from_second(since).expect("a time").to_string();
            let metadata = json!({"deletionTimestamp": since, "finalizers": finalizers});
            self.with("Deployment", name, (CSI, wave), &metadata, true)
        }

        fn input<'a>(&'a self, kept: &'a BTreeSet<String>) -> Input<'a> {
            Input {
                apply_set: "set",
                desired: &[],
                observed: &self.observed,
                inventory: &self.inventory,
                cluster_id: None,
                approved: None,
                rules: &[],
                kept,
                unhealthy: &[],
                record: &crate::plan::NO_RECORD,
                store: None,
                finalizer: true,
                uninstall: Some(vdo_api::api::DeletionPolicy::Delete),
            }
        }

        /// The plan in one line.
        fn plan(&self) -> String {
            let kept = BTreeSet::new();
            let input = self.input(&kept);
            let plan = crate::plan::plan(&input);
            let run = plan.run(&input, &Last::new());
            assert_eq!(check(&run, &[], &self.inventory), Ok(()));
            let steps = run.iter().map(|step| match step {
                Step::Delete { id, .. } => format!("delete {}", id.name),
                Step::Release { id, .. } => format!("release {}", id.name),
                Step::Finish => "done".into(),
                other => format!("{other:?}"),
            });
            let blocked = plan.blocked.iter().map(|wait| format!("{}: {}", wait.reason, wait.message));
            steps.chain(blocked).collect::<Vec<_>>().join(" | ")
        }

        fn lookups(&self) -> Vec<String> {
            let kept = BTreeSet::new();
            let input = self.input(&kept);
            lookups(&input).iter().map(|lookup| format!("{lookup:?}")).collect()
        }
    }

    fn both() -> Cluster {
        let none = json!({});
        Cluster::new()
            .with("DaemonSet", "cpi", (crate::drivers::CPI, 4), &none, true)
            .with("Deployment", "csi", (CSI, 5), &none, true)
            .with("ConfigMap", "settings", (CSI, 2), &none, false)
    }

    #[test]
    fn uninstall_with_volumes_keeps_storage_driver() {
        let mut cluster = both();
        assert_eq!(cluster.plan(), "delete csi");
        cluster.observed.volumes = None;
        assert_eq!((cluster.plan(), cluster.lookups()), (String::new(), vec!["Volumes".to_owned()]));
        let named = vec!["pv-1".to_owned()];
        cluster.observed.volumes = Some(Volumes { count: 1, named });
        let said = cluster.plan();
        assert!(
            said.starts_with("VolumesInUse: the storage driver stays") && said.contains("pv-1") && !said.contains("delete c"),
            "{said}"
        );
        // What is left when the workloads are gone needs no look any more.
        Arc::make_mut(&mut cluster.observed.live).retain(|id, _| id.name != "csi");
        assert_eq!(cluster.plan(), "delete cpi");
    }

    #[test]
    fn uninstall_object_terminating_shortly_holds_wave_below() {
        let fresh = both().leaving("slow", 6, 1, &json!(["example.com/keep"]));
        assert_eq!(fresh.plan(), "", "the wave below waits");
    }

    #[test]
    fn uninstall_stuck_finalizer_is_reported_and_rest_goes_on() {
        let stuck = both().leaving("slow", 6, 9, &json!(["example.com/keep", "foregroundDeletion"]));
        assert_eq!(
            stuck.plan(),
            "delete csi | DeletionBlocked: Deployment slow is being deleted since 2026-01-01T00:01:00Z: the manager of its finalizers \
             example.com/keep must remove them; if that manager no longer exists, remove them by hand; its pods have to end; look for \
             pods that stay Terminating, mostly on a node that is lost"
        );
    }

    #[test]
    fn uninstall_last_stuck_object_is_not_done() {
        // It is not through before that one is gone, too.
        let last = Cluster::new().leaving("slow", 6, 9, &json!(["example.com/keep"]));
        assert!(last.plan().starts_with("DeletionBlocked"), "{}", last.plan());
    }

    #[test]
    fn uninstall_object_with_keep_annotation_is_released() {
        for (key, value, expected) in [
            ("cli-utils.sigs.k8s.io/on-remove", "keep", "release o"),
            ("client.lifecycle.config.k8s.io/deletion", "detach", "release o"),
            ("helm.sh/resource-policy", "keep", "release o"),
            ("helm.sh/resource-policy", "delete", "delete o"),
        ] {
            let cluster = Cluster::new().with("ConfigMap", "o", (CSI, 2), &json!({"annotations": {key: value}}), false);
            assert_eq!(cluster.plan(), expected, "{key}={value}");
            let (id, live) = cluster.observed.live.first().expect("one object");
            assert_eq!(may_go(live, "u", "set"), expected.starts_with("delete"), "{id}");
            assert!(!may_go(live, "another", "set") && !may_go(live, "u", "another"));
        }
    }

    #[test]
    fn uninstall_object_in_use_is_kept() {
        for kind in ["StorageClass", "CustomResourceDefinition"] {
            let mut cluster = Cluster::new().with(kind, "o", (CSI, 1), &json!({}), false);
            let id = cluster.inventory.objects.keys().next().expect("one").clone();
            assert!(cluster.lookups()[0].starts_with("HeldBy"), "{:?}", cluster.lookups());
            assert_eq!(cluster.plan(), "", "it is not known yet");
            cluster.observed.held.insert(id.clone(), Some("it is used".into()));
            assert_eq!(cluster.plan(), "release o | done");
            cluster.observed.held.insert(id, None);
            assert_eq!(cluster.plan(), "delete o");
        }
    }

    #[test]
    fn uninstall_protected_kind_is_never_deleted() {
        for kind in PROTECTED {
            assert_eq!(
                Cluster::new().with(kind, "o", (CSI, 1), &json!({}), false).plan(),
                "release o | done",
                "{kind}"
            );
        }
    }

    /// Neither the last second of the timeout nor an object of the same wave holds anything up.
    #[test]
    fn uninstall_terminating_object_holds_only_lower_waves_and_for_its_time() {
        for (wave, minutes, expected) in [(6, 5, ""), (5, 1, "delete csi"), (4, 1, "delete csi")] {
            assert_eq!(both().leaving("a", wave, minutes, &json!([])).plan(), expected, "{wave} {minutes}");
        }
    }

    #[test]
    fn lookups_ask_only_for_what_is_about_to_go() {
        let leaving = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        let class = |metadata| Cluster::new().with("StorageClass", "c", (CSI, 2), metadata, false).lookups().len();
        assert_eq!((class(&json!({})), class(&leaving)), (1, 0));
        assert!(Cluster::new().leaving("slow", 5, 1, &json!([])).lookups().is_empty());
        let cpi = Cluster::new().with("DaemonSet", "cpi", (crate::drivers::CPI, 4), &json!({}), true);
        assert!(cpi.lookups().is_empty(), "another driver has no volumes");
    }

    #[test]
    fn deleting_names_what_is_deleted() {
        let cluster = both();
        let kept = BTreeSet::new();
        let input = cluster.input(&kept);
        let steps = crate::plan::plan(&input).run(&input, &Last::new());
        let said: Vec<String> = deleting(&steps)
            .map(|wait| format!("{} {}: {}", wait.driver, wait.reason, wait.message))
            .collect();
        assert_eq!(said, ["vsphere-csi Deleting: Deployment csi is being deleted"]);
        assert_eq!(deleting(&[Step::Finish]).count(), 0);
    }
}
