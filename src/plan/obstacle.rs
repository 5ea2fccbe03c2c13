//! What a plan itself has to bring before the server can be asked about one of its steps.

use super::{Change, Plan, Skip, Step};
use crate::manifest::Object;
use crate::types::ObjectId;

/// Something that a step needs and an earlier one of the same plan makes.
pub struct Obstacle<'a> {
    /// The step that makes it.
    pub step: &'a Step,
    /// What it makes.
    pub id: ObjectId,
    /// Whether the plan stops when it is there, to ask then. The API server lets nobody bind a role that does not exist, but
    /// stopping once more for bindings would leave their roles behind when it says no.
    pub stops: bool,
}

/// All of them, for one step.
pub(super) fn obstacles<'a>(step: &'a Step, whole: &'a Plan) -> impl Iterator<Item = Obstacle<'a>> {
    let needy = match step {
        Step::Apply { object, .. } => Some(object),
        _ => None,
    };
    needy.into_iter().flat_map(move |object| {
        whole.steps.iter().filter_map(move |step| match step {
            Step::Apply {
                object: other,
                change: Change::Create | Change::Restore,
                ..
            } if brings(other, object) => Some(Obstacle {
                step,
                id: other.id(),
                stops: !binds(object, other),
            }),
            _ => None,
        })
    })
}

/// The one that matters most for a step; `None` when the server can be asked about it.
#[must_use]
pub fn obstacle<'a>(step: &'a Step, whole: &'a Plan) -> Option<Obstacle<'a>> {
    obstacles(step, whole).max_by_key(|obstacle| obstacle.stops)
}

/// Why the server was not asked about a step, if it could not be.
#[must_use]
pub fn deferral(step: &Step, whole: &Plan) -> Option<Skip> {
    let (id, obstacle) = (step.id()?, obstacle(step, whole)?);
    let message = match obstacle.stops {
        true => format!(
            "{id} is tried on the server once {} is there, before anything is written into it",
            obstacle.id
        ),
        false => format!(
            "{id} cannot be tried on the server before {} is there; only the right to write it is known",
            obstacle.id
        ),
    };
    Some(Skip { id, message })
}

/// Whether this is a binding to a role that the plan itself writes before.
#[must_use]
pub fn binds_what_changes(step: &Step, whole: &Plan) -> bool {
    let Step::Apply { object, .. } = step else { return false };
    whole
        .steps
        .iter()
        .any(|other| matches!(other, Step::Apply { object: role, .. } if binds(object, role)))
}

/// Whether an object cannot be there before another one is.
pub(super) fn brings(other: &Object, object: &Object) -> bool {
    match other.kind() {
        "Namespace" => other.name() == object.namespace(),
        "CustomResourceDefinition" => {
            let group = object.api_version().rsplit_once('/').map_or("", |(group, _)| group);
            other.text("/spec/group") == group && other.text("/spec/names/kind") == object.kind()
        }
        "ClusterRole" | "Role" => binds(object, other),
        _ => false,
    }
}

fn binds(binding: &Object, role: &Object) -> bool {
    let names = binding.text("/roleRef/kind") == role.kind() && binding.text("/roleRef/name") == role.name();
    names && (role.namespace().is_empty() || role.namespace() == binding.namespace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn apply(value: Value) -> Step {
        Step::Apply {
            object: Object::new(value).expect("an object"),
            change: Change::Create,
            wave: 0,
            driver: "d".into(),
            take: false,
        }
    }

    #[test]
    fn dry_run_object_needing_planned_one_is_deferred() {
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "xs.g"},
            "spec": {"group": "g", "names": {"kind": "X"}}});
        let plan = Plan {
            steps: vec![
                apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})),
                apply(definition),
                apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "in", "namespace": "new"}})),
                apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "out", "namespace": "old"}})),
                apply(json!({"apiVersion": "g/v1", "kind": "X", "metadata": {"name": "x"}})),
                apply(json!({"apiVersion": "h/v1", "kind": "X", "metadata": {"name": "y"}})),
                apply(json!({"apiVersion": "r/v1", "kind": "ClusterRole", "metadata": {"name": "r"}})),
                apply(
                    json!({"apiVersion": "r/v1", "kind": "RoleBinding", "metadata": {"name": "b", "namespace": "old"}, "roleRef": {"kind": "ClusterRole", "name": "r"}}),
                ),
                apply(
                    json!({"apiVersion": "r/v1", "kind": "RoleBinding", "metadata": {"name": "c", "namespace": "new"}, "roleRef": {"kind": "ClusterRole", "name": "r"}}),
                ),
                apply(
                    json!({"apiVersion": "r/v1", "kind": "RoleBinding", "metadata": {"name": "d", "namespace": "old"}, "roleRef": {"kind": "Role", "name": "r"}}),
                ),
            ],
            ..Plan::default()
        };
        let waiting: Vec<String> = plan
            .steps
            .iter()
            .filter_map(|step| deferral(step, &plan))
            .map(|skip| skip.message)
            .collect();
        assert_eq!(
            waiting,
            [
                "ConfigMap new/in is tried on the server once Namespace new is there, before anything is written into it",
                "X x is tried on the server once CustomResourceDefinition xs.g is there, before anything is written into it",
                "RoleBinding old/b cannot be tried on the server before ClusterRole r is there; only the right to write it is known",
                "RoleBinding new/c is tried on the server once Namespace new is there, before anything is written into it",
            ]
        );
    }
}
