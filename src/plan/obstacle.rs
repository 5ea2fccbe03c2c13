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
            } if brings(other, object) => Some(Obstacle { step, id: other.id() }),
            _ => None,
        })
    })
}

/// The first for a step; `None` when the server can be asked about it.
#[must_use]
pub fn obstacle<'a>(step: &'a Step, whole: &'a Plan) -> Option<Obstacle<'a>> {
    obstacles(step, whole).next()
}

/// Why the server was not asked about a step, if it could not be.
#[must_use]
pub fn deferral(step: &Step, whole: &Plan) -> Option<Skip> {
    let (id, obstacle) = (step.id()?, obstacle(step, whole)?);
    let message = format!(
        "{id} is tried on the server once {} is there, before anything is written into it",
        obstacle.id
    );
    Some(Skip { id, message })
}

/// Whether an object cannot be there before another one is.
pub(super) fn brings(other: &Object, object: &Object) -> bool {
    match other.kind() {
        "Namespace" => other.name() == object.namespace(),
        "CustomResourceDefinition" => {
            let group = object.api_version().rsplit_once('/').map_or("", |(group, _)| group);
            other.text("/spec/group") == group && other.text("/spec/names/kind") == object.kind()
        }
        _ => false,
    }
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
            ]
        );
    }
}
