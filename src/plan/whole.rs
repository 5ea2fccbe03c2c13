use super::build::applies;
use super::{Input, Inventory, Observed, Plan, Question, Step, Volumes, build, remove};
use crate::manifest::Object;
use crate::types::ById;
use std::sync::Arc;

/// Every write on the way to the wanted state, and not only those of the next increment: nothing is waited for, and what
/// is pruned last is there too. For people who ask what would change; it is never carried out.
#[must_use]
pub fn whole(input: &Input<'_>) -> Plan {
    let mut plan = Plan {
        steps: applies(input),
        ..Plan::default()
    };
    // The state that the applies lead to, in which only what nobody wants any more is left to do, wave by wave.
    let mut after = input.observed.clone();
    live(&mut after).retain(|_, live| !live.is_leaving());
    live(&mut after).extend(input.desired.iter().map(|d| (d.object.id(), d.object.clone())));
    through(&mut plan, after, |observed| at_once(input, observed));
    plan
}

/// Every delete on the way to nothing; never carried out either.
#[must_use]
pub fn whole_removal(apply_set: &str, observed: &Observed, inventory: &Inventory) -> Plan {
    let mut plan = Plan::default();
    let mut after = observed.clone();
    live(&mut after).retain(|_, live| !live.is_leaving());
    through(&mut plan, after, |observed| remove(apply_set, observed, inventory));
    plan
}

fn live(observed: &mut Observed) -> &mut ById<Object> {
    Arc::make_mut(&mut observed.live)
}

/// Adds the deletes of one increment after the other, each as if the one before had been carried out.
fn through(plan: &mut Plan, mut after: Observed, next: impl Fn(&Observed) -> Plan) {
    loop {
        let rest = next(&after);
        if !rest.questions.is_empty() {
            // Nobody has looked, because it is not their turn yet: they would go if nothing held them.
            for question in rest.questions {
                plan.questions.insert(question.clone());
                match question {
                    Question::HeldBy(id) => drop(after.held.insert(id, None)),
                    Question::Volumes => after.volumes = Some(Volumes::default()),
                }
            }
            continue;
        }
        let deletes: Vec<Step> = rest.steps.into_iter().filter(|step| matches!(step, Step::Delete { .. })).collect();
        if deletes.is_empty() {
            plan.skipped = rest.skipped;
            plan.blocked = rest.blocked;
            return;
        }
        live(&mut after).retain(|id, _| {
            !deletes
                .iter()
                .any(|step| matches!(step, Step::Delete { id: gone, .. } if gone == id))
        });
        plan.steps.extend(deletes);
    }
}

/// The increment from a state, as if nothing had to be waited for.
fn at_once(input: &Input<'_>, observed: &Observed) -> Plan {
    build(Input {
        observed,
        hold: None,
        unproven: Vec::new(),
        ..*input
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Object, Owner, stamp};
    use crate::plan::{Desired, Entry, Inventory, Wait};
    use crate::types::{ById, ObjectId};
    use serde_json::json;

    fn object(name: &str) -> Object {
        let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n", "uid": name}});
        let mut all = vec![Object::new(value).expect("an object")];
        let owner = Owner {
            apply_set: "set".into(),
            driver: "d".into(),
            version: "1.0.0".into(),
            salt: String::new(),
        };
        stamp(&mut all, &owner);
        all.remove(0)
    }

    #[test]
    fn whole_plan_has_all_applies_and_prunes_without_waits() {
        let entry = || Entry {
            api_version: "v1".into(),
            driver: "d".into(),
            wave: 1,
            adopted: false,
            uid: None,
            applied: None,
        };
        let id = |name: &str| ObjectId::new("", "ConfigMap", "n", name);
        let desired = [Desired {
            object: object("new"),
            driver: "d".into(),
            wave: 1,
        }];
        let observed = Observed {
            live: Arc::new(ById::from_iter([(id("old"), object("old"))])),
            ..Observed::default()
        };
        let inventory = Inventory {
            objects: ById::from_iter([(id("old"), entry())]),
            ..Inventory::default()
        };
        let wait = Wait {
            driver: "d".into(),
            reason: crate::api::Reason::WaitingForPods,
            message: "not yet".into(),
        };
        let plan = whole(&Input {
            apply_set: "set",
            desired: &desired,
            observed: &observed,
            inventory: &inventory,
            cluster_id: None,
            approved: None,
            rules: &[],
            hold: None,
            unproven: vec![wait],
        });
        let steps: Vec<String> = plan
            .steps
            .iter()
            .map(|step| match step {
                Step::Apply { object, .. } => format!("apply {}", object.name()),
                Step::Delete { id, .. } => format!("delete {}", id.name),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(steps, ["apply new", "delete old"]);
        assert!(plan.waiting.is_empty());
    }
}
