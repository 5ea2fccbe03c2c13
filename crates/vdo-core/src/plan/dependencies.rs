// SPDX-License-Identifier: Apache-2.0
//! Computes for each step of a plan the earlier steps that must be done before it starts.

use super::waves::WORKLOADS;
use super::{Change, Plan, Skip, Step};
use crate::manifest::Object;

/// For each step, the places of the earlier ones that must be done before it starts:
///
/// * the finalizer, and the inventory, before anything that they cover;
/// * what the API server itself asks for: the definition of an object's kind;
/// * the webhook's certificate, before what is rendered from it;
/// * for pods, and for what the API server asks them from then on, all lower waves of their driver: they are read when pods start;
/// * for an object that is recreated the same, because until then it works as it is;
/// * everything that is applied of its driver and everything of a higher wave, before an object is deleted;
/// * everything at all, before the inventory is narrowed.
#[must_use]
pub fn dependencies<S: AsRef<Step>>(steps: &[S]) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..steps.len()).collect();
    // Few of thousands of steps are what others need by name, and most steps need nothing else.
    let named: Vec<usize> = all.iter().copied().filter(|at| is_named(steps[*at].as_ref())).collect();
    let waits = |at: usize, step: &Step| {
        let candidates = if needs_many(step) { &all } else { &named };
        let earlier = candidates.iter().copied().take_while(|earlier| *earlier < at);
        earlier.filter(|earlier| waits_for(step, steps[*earlier].as_ref())).collect()
    };
    steps.iter().enumerate().map(|(at, step)| waits(at, step.as_ref())).collect()
}

impl AsRef<Step> for Step {
    fn as_ref(&self) -> &Step {
        self
    }
}

/// Whether a step may be what an object needs by name.
fn is_named(step: &Step) -> bool {
    match step {
        Step::SetFinalizer | Step::Record(_) | Step::Store { .. } => true,
        Step::Apply { object, .. } => object.kind() == "CustomResourceDefinition",
        _ => false,
    }
}

/// Whether a step waits for more than what it needs by name.
fn needs_many(step: &Step) -> bool {
    match step {
        Step::Apply { wave, .. } => *wave >= WORKLOADS,
        Step::SetFinalizer | Step::Record(_) | Step::Store { .. } => false,
        Step::Replace { .. } | Step::Delete { .. } | Step::Release { .. } | Step::Commit(_) | Step::Finish => true,
    }
}

/// Whether a step waits for an earlier one.
fn waits_for(step: &Step, earlier: &Step) -> bool {
    match (step, earlier) {
        (_, Step::SetFinalizer) | (Step::Commit(_) | Step::Finish, _) => true,
        (Step::Store { .. }, _) => false,
        (_, Step::Record(_)) => true,
        (Step::SetFinalizer | Step::Record(_), _) => false,
        (_, Step::Store { driver, .. }) => step.driver() == driver,
        (Step::Delete { wave, .. }, Step::Delete { wave: other, .. }) => other > wave,
        (Step::Delete { driver, .. } | Step::Release { driver, .. }, _) => earlier.wave().is_some() && earlier.driver() == driver,
        (Step::Apply { object, .. }, Step::Apply { object: other, .. }) if brings(other, object) => true,
        (Step::Apply { driver, wave, .. } | Step::Replace { driver, wave, .. }, _) => needs_many(step) && is_below(earlier, driver, *wave),
    }
}

/// Whether it is of a lower wave of this driver.
fn is_below(step: &Step, own: &str, of: u8) -> bool {
    matches!(step, Step::Apply { driver, wave, .. } | Step::Replace { driver, wave, .. } if driver == own && *wave < of)
}

/// Whether an object cannot exist before another one does.
pub(super) fn brings(other: &Object, object: &Object) -> bool {
    let group = || object.api_version().rsplit_once('/').map_or("", |(group, _)| group);
    other.kind() == "CustomResourceDefinition" && other.text("/spec/names/kind") == object.kind() && other.text("/spec/group") == group()
}

impl Plan {
    /// Why the server cannot be asked about the step at this place yet: an earlier one creates the definition of its kind.
    #[must_use]
    pub fn deferral(&self, at: usize) -> Option<Skip> {
        let planned = self.steps.get(at)?;
        let Step::Apply { object, .. } = &planned.step else { return None };
        let definition = planned.depends_on.iter().find_map(|earlier| match &self.steps[*earlier].step {
            Step::Apply {
                object: other,
                change: Change::Create | Change::Restore,
                ..
            } if brings(other, object) => Some(other),
            _ => None,
        })?;
        let id = object.id();
        let message = format!("the server-side dry run of {id} waits until {definition} exists");
        Some(Skip { id, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Object;
    use crate::plan::{Change, Inventory, wave};
    use serde_json::{Value, json};
    use vdo_api::types::{DriverRole, ObjectId};

    fn apply(driver: &str, role: DriverRole, value: Value) -> Step {
        let object = Object::new(value).expect("an object");
        Step::Apply {
            wave: wave(object.kind(), role),
            object,
            change: Change::Create,
            driver: driver.into(),
            take: false,
        }
    }

    fn of(driver: &str, kind: &str, namespace: &str, name: &str) -> Step {
        let role = if driver == "cpi" {
            DriverRole::CloudProvider
        } else {
            DriverRole::Storage
        };
        let value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}});
        apply(driver, role, value)
    }

    fn id(kind: &str, name: &str) -> ObjectId {
        ObjectId::new("", kind, "n", name)
    }

    fn delete(name: &str) -> Step {
        Step::Delete {
            id: id("ConfigMap", name),
            api_version: "v1".into(),
            uid: "u".into(),
            wave: 2,
            driver: "csi".into(),
        }
    }

    fn release(name: &str) -> Step {
        Step::Release {
            id: id("ConfigMap", name),
            api_version: "v1".into(),
            uid: "u".into(),
            driver: "csi".into(),
        }
    }

    fn replace(driver: &str, wave: u8) -> Step {
        Step::Replace {
            id: id("Service", "s"),
            api_version: "v1".into(),
            uid: "u".into(),
            keep_pods: false,
            digest: String::new(),
            fields: Vec::new(),
            wave,
            driver: driver.into(),
        }
    }

    fn record() -> Step {
        Step::Record(Inventory::default())
    }

    fn delete_of(driver: &str, of: u8) -> Step {
        let mut step = delete("d");
        if let Step::Delete { driver: own, wave, .. } = &mut step {
            (*own, *wave) = (driver.into(), of);
        }
        step
    }

    fn store(driver: &str) -> Step {
        let value = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "vdo"}});
        Step::Store {
            object: Object::new(value).expect("an object"),
            driver: driver.into(),
            first: true,
        }
    }

    fn commit() -> Step {
        Step::Commit(Inventory::default())
    }

    /// What it shows, the steps, and which of them each waits for.
    type Case<'a> = (&'a str, Vec<Step>, Vec<&'a [usize]>);

    #[test]
    fn dependencies_each_step_waits_only_for_its_needs() {
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "xs.g"},
            "spec": {"group": "g", "names": {"kind": "X"}}});
        let definition = || apply("csi", DriverRole::Storage, definition.clone());
        let instance = |api_version: &str| {
            let value = json!({"apiVersion": api_version, "kind": "X", "metadata": {"name": "x"}});
            apply("csi", DriverRole::Storage, value)
        };
        let cases: Vec<Case<'_>> = vec![
            (
                "the inventory comes first",
                vec![record(), of("csi", "Secret", "n", "s"), delete("d"), release("r")],
                vec![&[], &[0], &[0, 1], &[0, 1]],
            ),
            (
                "a definition, for its kind",
                vec![definition(), of("csi", "Service", "n", "n"), instance("g/v1"), instance("h/v1")],
                vec![&[], &[], &[0], &[]],
            ),
            (
                "pods, for all of their driver",
                vec![
                    record(),
                    of("csi", "ConfigMap", "n", "c"),
                    of("cpi", "ServiceAccount", "n", "a"),
                    of("csi", "Service", "n", "b"),
                    of("cpi", "DaemonSet", "n", "w"),
                    of("csi", "Deployment", "n", "w"),
                    of("csi", "DaemonSet", "n", "w"),
                    of("csi", "ValidatingWebhookConfiguration", "", "v"),
                ],
                vec![&[], &[0], &[0], &[0], &[0, 2], &[0, 1, 3], &[0, 1, 3], &[0, 1, 3, 5, 6]],
            ),
            (
                "what is recreated, like pods",
                vec![
                    definition(),
                    of("cpi", "Secret", "n", "s"),
                    replace("csi", 2),
                    of("csi", "Secret", "n", "t"),
                ],
                vec![&[], &[], &[0], &[]],
            ),
            (
                "what is deleted, for what is applied of its driver",
                vec![
                    of("cpi", "Secret", "n", "s"),
                    replace("csi", 5),
                    delete("d"),
                    release("r"),
                    commit(),
                ],
                vec![&[], &[], &[1], &[1], &[0, 1, 2, 3]],
            ),
            (
                "what is deleted, for higher waves of any driver",
                vec![delete_of("cpi", 5), delete_of("csi", 5), delete_of("csi", 4), Step::Finish],
                vec![&[], &[], &[0, 1], &[0, 1, 2]],
            ),
            (
                "the finalizer first, and the certificate for what is rendered from it",
                vec![
                    Step::SetFinalizer,
                    record(),
                    store("csi"),
                    of("csi", "Secret", "n", "s"),
                    of("cpi", "Secret", "n", "s"),
                ],
                vec![&[], &[0], &[0], &[0, 1, 2], &[0, 1]],
            ),
        ];
        for (what, steps, expected) in cases {
            assert_eq!(dependencies(&steps), expected, "{what}");
        }
    }

    #[test]
    fn dry_run_of_instance_is_deferred_until_definition_exists() {
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "xs.g"},
            "spec": {"group": "g", "names": {"kind": "X"}}});
        let steps = [
            apply("csi", DriverRole::Storage, definition),
            apply(
                "csi",
                DriverRole::Storage,
                json!({"apiVersion": "g/v1", "kind": "X", "metadata": {"name": "x"}}),
            ),
            apply(
                "csi",
                DriverRole::Storage,
                json!({"apiVersion": "h/v1", "kind": "X", "metadata": {"name": "y"}}),
            ),
            // it waits for all of these, and can be tried before
            of("csi", "DaemonSet", "n", "d"),
        ];
        let planned = steps.iter().cloned().zip(dependencies(&steps));
        let planned = planned.map(|(step, depends_on)| crate::plan::PlannedStep {
            step,
            depends_on,
            gate: crate::plan::Gate::Open,
        });
        let plan = Plan {
            steps: planned.collect(),
            ..Plan::default()
        };
        let said: Vec<String> = (0..steps.len())
            .filter_map(|at| plan.deferral(at))
            .map(|skip| skip.message)
            .collect();
        assert_eq!(
            said,
            ["the server-side dry run of X x waits until CustomResourceDefinition xs.g exists"]
        );
    }
}
