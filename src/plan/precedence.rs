use super::Step;
use super::obstacle::brings;
use super::order::WORKLOADS;

/// For each step, the earlier ones that must be done before it is started:
///
/// * the inventory, before anything that it covers;
/// * what the API server itself asks for: the namespace that an object lives in, the definition of its kind;
/// * for pods, and for what the API server asks them from then on, all lower waves of their driver: they are read when pods start;
/// * for an object that is made anew the same, because until then it works as it is;
/// * everything that is written, before anything goes; and everything at all, before the inventory is narrowed.
#[must_use]
pub fn precedence(steps: &[Step]) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..steps.len()).collect();
    // Few of thousands of steps are what others need by name, and most steps need nothing else.
    let named: Vec<usize> = all.iter().copied().filter(|at| is_named(&steps[*at])).collect();
    let waits = |at: usize, step: &Step| {
        let candidates = if needs_many(step) { &all } else { &named };
        let earlier = candidates.iter().copied().take_while(|earlier| *earlier < at);
        earlier.filter(|earlier| waits_for(step, &steps[*earlier])).collect()
    };
    steps.iter().enumerate().map(|(at, step)| waits(at, step)).collect()
}

/// Whether a step may be what an object needs by name.
fn is_named(step: &Step) -> bool {
    match step {
        Step::Record(_) => true,
        Step::Apply { object, .. } => matches!(object.kind(), "Namespace" | "CustomResourceDefinition"),
        Step::Replace { .. } | Step::Delete { .. } | Step::Release { .. } | Step::Commit(_) => false,
    }
}

/// Whether a step waits for more than what it needs by name.
fn needs_many(step: &Step) -> bool {
    match step {
        Step::Apply { wave, .. } => *wave >= WORKLOADS,
        Step::Record(_) => false,
        Step::Replace { .. } | Step::Delete { .. } | Step::Release { .. } | Step::Commit(_) => true,
    }
}

/// Whether a step waits for an earlier one.
fn waits_for(step: &Step, earlier: &Step) -> bool {
    match (step, earlier) {
        (_, Step::Record(_)) | (Step::Commit(_), _) => true,
        (Step::Record(_), _) => false,
        (Step::Delete { .. } | Step::Release { .. }, _) => earlier.wave().is_some(),
        (Step::Apply { object, .. }, Step::Apply { object: other, .. }) if brings(other, object) => true,
        (Step::Apply { driver, wave, .. } | Step::Replace { driver, wave, .. }, _) => needs_many(step) && is_below(earlier, driver, *wave),
    }
}

/// Whether it is of a lower wave of this driver.
fn is_below(step: &Step, own: &str, of: u8) -> bool {
    matches!(step, Step::Apply { driver, wave, .. } | Step::Replace { driver, wave, .. } if driver == own && *wave < of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Object;
    use crate::plan::{Change, Inventory, wave};
    use crate::types::{DriverRole, ObjectId};
    use serde_json::{Value, json};

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
        }
    }

    fn release(name: &str) -> Step {
        Step::Release {
            id: id("ConfigMap", name),
            api_version: "v1".into(),
            uid: "u".into(),
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

    fn commit() -> Step {
        Step::Commit(Inventory::default())
    }

    /// What it shows, the steps, and which of them each waits for.
    type Case<'a> = (&'a str, Vec<Step>, Vec<&'a [usize]>);

    #[test]
    fn precedence_each_step_waits_only_for_its_needs() {
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
                "a namespace, for what lives in it",
                vec![
                    of("csi", "Namespace", "", "n"),
                    of("csi", "Namespace", "", "m"),
                    of("csi", "Secret", "n", "s"),
                    of("csi", "ClusterRole", "", "r"),
                    of("cpi", "DaemonSet", "n", "w"),
                ],
                vec![&[], &[], &[0], &[], &[0]],
            ),
            (
                "a definition, for its kind",
                vec![definition(), of("csi", "Namespace", "", "n"), instance("g/v1"), instance("h/v1")],
                vec![&[], &[], &[0], &[]],
            ),
            (
                "pods, for all of their driver",
                vec![
                    record(),
                    of("csi", "ConfigMap", "n", "c"),
                    of("cpi", "ServiceAccount", "n", "a"),
                    of("csi", "RoleBinding", "n", "b"),
                    of("cpi", "DaemonSet", "n", "w"),
                    of("csi", "Deployment", "n", "w"),
                    of("csi", "DaemonSet", "n", "w"),
                    of("csi", "ValidatingWebhookConfiguration", "", "v"),
                ],
                vec![&[], &[0], &[0], &[0], &[0, 2], &[0, 1, 3], &[0, 1, 3], &[0, 1, 3, 5, 6]],
            ),
            (
                "what is made anew, like pods",
                vec![
                    of("csi", "Namespace", "", "m"),
                    of("cpi", "Secret", "n", "s"),
                    replace("csi", 2),
                    of("csi", "Secret", "n", "t"),
                ],
                vec![&[], &[], &[0], &[]],
            ),
            (
                "what goes, for what comes",
                vec![
                    of("cpi", "Secret", "n", "s"),
                    replace("csi", 5),
                    delete("d"),
                    release("r"),
                    commit(),
                ],
                vec![&[], &[], &[0, 1], &[0, 1], &[0, 1, 2, 3]],
            ),
        ];
        for (what, steps, expected) in cases {
            assert_eq!(precedence(&steps), expected, "{what}");
        }
    }
}
