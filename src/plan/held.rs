//! One driver is left as it is for a while, and the others go on.

use super::build::applies;
use super::obstacle::obstacles;
use super::{Desired, Input, Inventory, Plan, Step, Wait, build};
use crate::api::Reason;
use crate::types::{DriverName, ObjectId};
use std::collections::{BTreeMap, BTreeSet};

/// Who must not go on while whom is left as it is, and why.
pub type Needs = BTreeMap<(DriverName, DriverName), String>;

/// The drivers that are left as they are, each with what it waits for.
pub type Held = BTreeMap<DriverName, Wait>;

/// Who is left as it is: the drivers of which something is refused, and those that must not go on without them.
#[must_use]
pub fn held(whole: &Plan, inventory: &Inventory, refused: Held, needs: &Needs) -> Held {
    let mut held = refused;
    while !held.is_empty() {
        let mut others = whole
            .steps
            .iter()
            .filter(|step| step.is_transition() && !held.contains_key(step.driver(inventory)));
        match others.find_map(|step| needy(step, whole, inventory, &held, needs)) {
            Some(wait) => drop(held.insert(wait.driver.clone(), wait)),
            None => break,
        }
    }
    held
}

/// What a step waits for because of drivers that are left as they are.
fn needy(step: &Step, whole: &Plan, inventory: &Inventory, held: &Held, needs: &Needs) -> Option<Wait> {
    let driver = step.driver(inventory);
    let wait = |other: &str, why: &str| Wait {
        driver: driver.to_owned(),
        reason: Reason::WaitingForDriver,
        message: format!("{driver} waits for {other}, of which something is refused: {why}"),
    };
    let by_need = held.keys().find_map(|other| {
        let why = needs.get(&(driver.to_owned(), other.clone()))?;
        Some(wait(other, why))
    });
    by_need.or_else(|| {
        obstacles(step, whole).find_map(|obstacle| {
            let other = obstacle.step.driver(inventory);
            let withheld = held.contains_key(other) && obstacle.step.is_transition();
            let id = step.id().filter(|_| withheld)?;
            Some(wait(other, &format!("{id} needs {}", obstacle.id)))
        })
    })
}

/// The next increment in which some drivers are left as they are: of theirs only what was reached before is brought back, and
/// nothing at all is removed, because a state in which somebody waits is not the one that is wanted.
#[must_use]
pub fn without(input: Input<'_>, held: &Held) -> Plan {
    if held.is_empty() {
        return build(input);
    }
    let left = |step: &Step| step.is_transition() && held.contains_key(step.driver(input.inventory));
    let left: BTreeSet<ObjectId> = applies(&input).iter().filter(|step| left(step)).filter_map(Step::id).collect();
    let desired: Vec<Desired> = input.desired.iter().filter(|d| !left.contains(&d.object.id())).cloned().collect();
    let mut plan = build(Input {
        desired: &desired,
        unproven: held.values().cloned().chain(input.unproven).collect(),
        ..input
    });
    if plan.changes() == 0 {
        // Nothing is about to exist that would have to be recorded before.
        plan.steps.clear();
    }
    // What else a driver waits for matters less.
    plan.waiting.sort_by_key(|wait| held.get(&wait.driver) != Some(wait));
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Object;
    use crate::plan::{Change, Entry, Hold, Observed};
    use crate::types::{ById, CPI, CSI};
    use serde_json::json;

    fn object(kind: &str, namespace: &str, name: &str) -> Object {
        let value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}});
        Object::new(value).expect("an object")
    }

    fn wanted(kind: &str, namespace: &str, name: &str, driver: &str, wave: u8) -> Desired {
        Desired {
            object: object(kind, namespace, name),
            driver: driver.into(),
            wave,
        }
    }

    fn create(d: &Desired) -> Step {
        Step::Apply {
            object: d.object.clone(),
            change: Change::Create,
            wave: d.wave,
            driver: d.driver.to_string(),
            take: false,
        }
    }

    fn refused(driver: &str) -> Held {
        let wait = Wait {
            driver: driver.into(),
            reason: Reason::AdmissionDenied,
            message: format!("a policy is against {driver}"),
        };
        [(driver.to_owned(), wait)].into()
    }

    fn entry(driver: &str) -> Entry {
        Entry {
            api_version: "v1".into(),
            driver: driver.into(),
            wave: 2,
            adopted: false,
            uid: None,
            applied: None,
        }
    }

    #[test]
    fn held_drivers_dependents_of_refused_driver_wait() {
        let cpi = wanted("DaemonSet", "kube-system", "cpi", CPI, 4);
        let (home, csi) = (wanted("Namespace", "", "csi", CSI, 1), wanted("ConfigMap", "csi", "csi", CSI, 2));
        let other = wanted("ConfigMap", "other", "other", "other", 2);
        let guest = wanted("ConfigMap", "csi", "guest", "guest", 2);
        let delete = Step::Delete {
            id: object("ConfigMap", "kube-system", "old").id(),
            api_version: "v1".into(),
            uid: "u".into(),
        };
        let inventory = Inventory {
            objects: ById::from_iter([(object("ConfigMap", "kube-system", "old").id(), entry(CPI))]),
            ..Inventory::default()
        };
        let all = [&home, &csi, &other, &guest, &cpi].map(create);
        let begins: Needs = [((CSI.into(), CPI.into()), "it initialises the nodes".into())].into();
        for (steps, first, needs, expected) in [
            (all.to_vec(), None, &begins, vec![]),
            (all.to_vec(), Some("other"), &begins, vec!["other"]),
            // What lives in its namespace waits with it.
            (all.to_vec(), Some(CSI), &begins, vec!["guest", CSI]),
            // And with what waits for it.
            (all.to_vec(), Some(CPI), &begins, vec!["guest", CPI, CSI]),
            (all.to_vec(), Some(CPI), &Needs::new(), vec![CPI]),
            // The namespace is there already.
            (all[1..].to_vec(), Some(CSI), &begins, vec![CSI]),
            // Who has nothing to do does not wait.
            (vec![delete.clone(), create(&other)], Some("other"), &begins, vec!["other"]),
            // A removal is a change of the driver that the inventory names.
            (
                vec![delete, create(&other)],
                Some("other"),
                &[((CPI.into(), "other".into()), "it is older".into())].into(),
                vec!["other", CPI],
            ),
        ] {
            let whole = Plan { steps, ..Plan::default() };
            let found = held(&whole, &inventory, first.map(refused).unwrap_or_default(), needs);
            assert_eq!(
                found.keys().map(String::as_str).collect::<Vec<_>>(),
                expected,
                "{first:?} {needs:?}"
            );
            assert!(found.iter().all(|(driver, wait)| *driver == wait.driver));
        }
        let whole = Plan {
            steps: all.to_vec(),
            ..Plan::default()
        };
        let found = held(&whole, &inventory, refused(CPI), &begins);
        let said = |driver: &str| found[driver].message.as_str();
        assert_eq!(said(CPI), "a policy is against vsphere-cpi");
        assert_eq!(
            said(CSI),
            "vsphere-csi waits for vsphere-cpi, of which something is refused: it initialises the nodes"
        );
        assert_eq!(
            said("guest"),
            "guest waits for vsphere-csi, of which something is refused: ConfigMap csi/guest needs Namespace csi"
        );
    }

    #[test]
    fn held_drivers_are_left_out_whole_and_nothing_is_pruned() {
        let desired = [
            wanted("Namespace", "", "csi", CSI, 1),
            wanted("ConfigMap", "kube-system", "cpi", CPI, 2),
            wanted("ConfigMap", "csi", "csi", CSI, 2),
        ];
        let inventory = Inventory {
            objects: ById::from_iter([(object("ConfigMap", "kube-system", "old").id(), entry(CPI))]),
            ..Inventory::default()
        };
        let observed = Observed::default();
        let gate = Wait {
            driver: CSI.into(),
            reason: Reason::WaitingForNodes,
            message: "nodes".into(),
        };
        let input = || Input {
            apply_set: "set",
            desired: &desired,
            observed: &observed,
            inventory: &inventory,
            cluster_id: Some("cluster"),
            approved: None,
            rules: &[],
            hold: Some(Hold {
                from: 5,
                waits: vec![gate.clone()],
            }),
            unproven: Vec::new(),
        };
        for (held, written, waits) in [
            (
                Held::new(),
                "Namespace csi, ConfigMap csi/csi, ConfigMap kube-system/cpi",
                Reason::WaitingForNodes,
            ),
            (refused(CSI), "ConfigMap kube-system/cpi", Reason::AdmissionDenied),
            (refused(CPI), "Namespace csi, ConfigMap csi/csi", Reason::AdmissionDenied),
            (refused(CPI).into_iter().chain(refused(CSI)).collect(), "", Reason::AdmissionDenied),
        ] {
            let plan = without(input(), &held);
            let objects: Vec<String> = plan.steps.iter().filter_map(Step::id).map(|id| id.to_string()).collect();
            assert_eq!(objects.join(", "), written);
            let recorded: BTreeSet<ObjectId> = plan
                .steps
                .iter()
                .filter_map(|step| match step {
                    Step::Record(inventory) => Some(inventory.objects.keys().cloned()),
                    _ => None,
                })
                .flatten()
                .collect();
            assert!(plan.steps.iter().filter_map(Step::id).all(|id| recorded.contains(&id)));
            assert_eq!(
                recorded.len(),
                if objects.is_empty() { 0 } else { objects.len() + 1 },
                "{recorded:?}"
            );
            assert_eq!(plan.waiting[0].reason, waits);
            assert!(plan.waiting.contains(&gate));
            assert_eq!(plan.is_empty(), objects.is_empty(), "nothing is recorded for its own sake");
        }
    }
}
