// SPDX-License-Identifier: Apache-2.0
//! Computes and writes a change of one object like `kubectl apply` or `kubectl patch`, after a dry run; shows the changed fields.

use super::context::{Context, now};
use super::views::plan::{ChangeView, FieldView, ObjectView};
use super::{CliError, Exit};
use serde_json::{Value, json};
use vdo::cluster::{ClusterError, Writer, get};
use vdo_api::api::RECONCILE_AT;
use vdo_api::types::from_json;
use vdo_core::install::VDOCTL;
use vdo_core::manifest::{Difference, Object, by_container, changes, merge_patch};
use vdo_core::plan::masked;

/// Where `kubectl apply` keeps what it applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An object as it is and as it would be.
#[derive(Debug, Clone)]
pub(super) struct Change {
    /// As it is; `None` where there is none.
    pub before: Option<Object>,
    /// As the API server would store it.
    pub after: Object,
    /// The merge patch of an object that is there.
    patch: Value,
    /// It is deleted and created with `patch`, because the API server would not let it be changed.
    recreates: bool,
}

impl Change {
    /// As `kubectl apply` changes it: what the object says is set, what it said before and does not say any more is removed, and fields of
    /// others stay.
    pub(super) async fn apply(context: &Context, wanted: &Object) -> Result<Self, CliError> {
        match get(&context.ports.client, wanted.api_version(), wanted.identity()).await? {
            Some(live) => {
                let patch = three_way(wanted.value(), live.value());
                Self::merge(context, live, patch).await
            }
            None => Self::create(context, wanted).await,
        }
    }

    /// Has the operator reconcile an object now.
    pub(super) async fn reconcile(context: &Context, live: Object) -> Result<Self, CliError> {
        let mark = json!({"metadata": {"annotations": {RECONCILE_AT: now().to_string()}}});
        Self::merge(context, live, mark).await
    }

    /// As `kubectl patch --type merge` changes it. A user who may not write gets the patched object, which no server has checked.
    pub(super) async fn merge(context: &Context, live: Object, patch: Value) -> Result<Self, CliError> {
        let tried = writer(context).dry_run_merge(live.api_version(), live.identity(), &patch).await;
        let after = match tried {
            Ok(after) => after,
            Err(ClusterError::Forbidden { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let after = match after {
            Some(after) => after,
            None => patched(&live, &patch)?,
        };
        Ok(Self {
            before: Some(live),
            after,
            patch,
            recreates: false,
        })
    }

    async fn create(context: &Context, wanted: &Object) -> Result<Self, CliError> {
        let after = match writer(context).dry_run(wanted, false).await {
            Ok(tried) => tried.object,
            Err(ClusterError::Forbidden { .. }) => wanted.clone(),
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            before: None,
            after,
            patch: wanted.value().clone(),
            recreates: false,
        })
    }

    /// The same object with a change that only a new one can have.
    pub(super) fn recreate(live: Object, change: &Value) -> Result<Self, CliError> {
        let after = patched(&live, change)?;
        let of_the_server = ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"];
        let mut patch = after.value().clone();
        if let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| !of_the_server.contains(&key.as_str()));
        }
        Ok(Self {
            before: Some(live),
            after,
            patch,
            recreates: true,
        })
    }

    /// Makes it.
    pub(super) async fn make(&self, context: &Context) -> Result<(), CliError> {
        let writer = writer(context);
        let whole = || Object::new(self.patch.clone()).map_err(|error| CliError::internal(&error));
        match &self.before {
            None => drop(writer.apply(&whole()?, false).await?),
            Some(live) if self.recreates => {
                if !writer.delete_as_seen(live.api_version(), live, false).await? {
                    let what = format!("{} was changed just now", live.identity());
                    return Err(CliError::new(Exit::Refused, what, "Run the same command again."));
                }
                drop(writer.apply(&whole()?, false).await?);
            }
            Some(_) if self.fields().is_empty() => {}
            Some(live) => drop(writer.merge(live.api_version(), live.identity(), &self.patch, false).await?),
        }
        Ok(())
    }

    /// The fields that change, without the content of Secrets. All of a new object's fields are new, and not listed.
    pub(super) fn fields(&self) -> Vec<Difference> {
        let Some(before) = &self.before else { return Vec::new() };
        let mut fields = changes(&self.after, before);
        fields.retain(|field| !field.path.contains(LAST_APPLIED));
        by_container(masked(before.identity(), &fields), &self.after)
    }

    /// Whether the object is deleted and created again.
    pub(super) fn recreates(&self) -> bool {
        self.recreates
    }

    /// Whether nothing changes.
    pub(super) fn is_none(&self) -> bool {
        self.before.is_some() && self.fields().is_empty()
    }

    /// What is shown to programs.
    pub(super) fn view(&self) -> ChangeView {
        let after = &self.after;
        ChangeView {
            action: match &self.before {
                None => "create",
                Some(_) if self.recreates => "recreate",
                Some(_) if self.is_none() => "keep",
                Some(_) => "apply",
            }
            .to_owned(),
            object: ObjectView {
                api_version: after.api_version().to_owned(),
                kind: after.kind().to_owned(),
                namespace: after.namespace().to_owned(),
                name: after.name().to_owned(),
            },
            fields: self.fields().iter().map(FieldView::from).collect(),
        }
    }
}

fn writer(context: &Context) -> Writer {
    context.ports.writer.clone().named(VDOCTL)
}

/// The merge patch of `kubectl apply`: from what was applied last to what is wanted, over what is there.
fn three_way(wanted: &Value, live: &Value) -> Value {
    let last = live.pointer("/metadata/annotations").and_then(|all| all[LAST_APPLIED].as_str());
    let last: Value = last.and_then(|text| from_json(text).ok()).unwrap_or_else(|| json!({}));
    let wanted = own(wanted);
    let mut patch = merge_patch(&own(&last), &wanted);
    set(&mut patch, wanted);
    patch
}

/// What a person writes of an object: not what the server adds to it, nor what others report in it.
fn own(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|key, _| !matches!(key.as_str(), "apiVersion" | "kind" | "status"));
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| matches!(key.as_str(), "labels" | "annotations"));
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.remove(LAST_APPLIED);
            }
        }
    }
    object
}

/// Sets in a patch what is wanted, and leaves its nulls.
pub(super) fn set(patch: &mut Value, wanted: Value) {
    match (patch, wanted) {
        (Value::Object(patch), Value::Object(wanted)) => {
            for (key, value) in wanted {
                set(patch.entry(key).or_insert_with(|| json!({})), value);
            }
        }
        (patch, wanted) => *patch = wanted,
    }
}

/// An object with a merge patch.
fn patched(object: &Object, patch: &Value) -> Result<Object, CliError> {
    let mut value = object.value().clone();
    vdo_core::chart::values::merge(&mut value, patch);
    Object::new(value).map_err(|error| CliError::internal(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_patch_removes_what_was_applied_before_and_keeps_fields_of_others() {
        let last = json!({"spec": {"a": 1, "b": {"c": 1, "d": 1}}, "metadata": {"annotations": {"x": "y"}}}).to_string();
        let live = json!({
            "metadata": {"annotations": {LAST_APPLIED: last, "x": "y"}, "uid": "u"},
            "spec": {"a": 2, "b": {"c": 1, "d": 1}, "other": 3}, "status": {"ready": true},
        });
        let wanted = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "uid": "old"}, "spec": {"a": 1, "b": {"c": 2}}, "status": {}});
        assert_eq!(
            three_way(&wanted, &live),
            json!({"metadata": {"annotations": null}, "spec": {"a": 1, "b": {"c": 2, "d": null}}})
        );
        // Nothing is known of what was applied before: nothing is removed.
        let bare = json!({"metadata": {}, "spec": {"other": 3}});
        assert_eq!(three_way(&wanted, &bare), json!({"metadata": {}, "spec": {"a": 1, "b": {"c": 2}}}));
    }
}
