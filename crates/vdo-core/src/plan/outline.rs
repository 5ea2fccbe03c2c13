// SPDX-License-Identifier: Apache-2.0
//! Lists the objects of a plan for `vdoctl plan` and `vdoctl diff`: the action, its reason and the changed fields, with masked Secrets.

use super::{Change, Desired, Plan, Step};
use crate::manifest::{Difference, by_container};
use serde::Serialize;
use std::collections::BTreeSet;
use vdo_api::types::ObjectId;

/// What the plan does with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The object is created.
    Create,
    /// Fields of the object are changed.
    Apply,
    /// The object is adopted from another manager.
    Adopt,
    /// The object is deleted and recreated.
    Recreate,
    /// The object is deleted.
    Prune,
    /// The object is not changed.
    Keep,
}

/// The reason for the action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Because {
    /// The object is new.
    New,
    /// Another manager deleted the object.
    Deleted,
    /// The desired object differs from the object that was applied last.
    Outdated,
    /// Another manager changed the object.
    Drifted,
    /// The object does not have the labels of VDO yet.
    Unmarked,
    /// An immutable field differs.
    Immutable,
    /// The object is no longer desired.
    Unwanted,
    /// The object is in sync.
    AsWanted,
}

/// One object of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// What would become of it.
    pub action: Action,
    /// Why.
    pub because: Because,
    /// The object.
    pub id: ObjectId,
    /// Its API version.
    pub api_version: String,
    /// Its driver.
    pub driver: String,
    /// Its wave.
    pub wave: u8,
    /// The fields that would change, with the content of Secrets masked.
    pub fields: Vec<Difference>,
}

/// Every object of a whole plan, in the order of its steps, and after them those that are kept.
#[must_use]
pub fn outline(plan: &Plan, desired: &[Desired]) -> Vec<Item> {
    let mut items: Vec<Item> = plan.writes().filter_map(item).collect();
    let touched: BTreeSet<ObjectId> = items.iter().map(|item| item.id.clone()).collect();
    let kept = desired.iter().filter(|d| !touched.contains(&d.object.id())).map(|d| Item {
        action: Action::Keep,
        because: Because::AsWanted,
        id: d.object.id(),
        api_version: d.object.api_version().to_owned(),
        driver: d.driver.to_string(),
        wave: d.wave,
        fields: Vec::new(),
    });
    let mut kept: Vec<Item> = kept.collect();
    kept.sort_by(|a, b| (a.wave, &a.id).cmp(&(b.wave, &b.id)));
    items.append(&mut kept);
    items
}

fn item(step: &Step) -> Option<Item> {
    Some(match step {
        Step::Apply {
            object,
            change,
            wave,
            driver,
            ..
        } => {
            let (action, because, fields) = match change {
                Change::Create => (Action::Create, Because::New, &[][..]),
                Change::Restore => (Action::Create, Because::Deleted, &[][..]),
                Change::Update(fields) => (Action::Apply, Because::Outdated, fields.as_slice()),
                Change::Repair(fields) => (Action::Apply, Because::Drifted, fields.as_slice()),
                Change::Adopt(fields) => (Action::Adopt, Because::Unmarked, fields.as_slice()),
            };
            Item {
                action,
                because,
                id: object.id(),
                api_version: object.api_version().to_owned(),
                driver: driver.clone(),
                wave: *wave,
                fields: by_container(masked(&object.id(), fields), object),
            }
        }
        Step::Replace {
            id,
            api_version,
            fields,
            wave,
            driver,
            ..
        } => Item {
            action: Action::Recreate,
            because: Because::Immutable,
            id: id.clone(),
            api_version: api_version.clone(),
            driver: driver.clone(),
            wave: *wave,
            fields: masked(id, fields),
        },
        Step::Delete {
            id,
            api_version,
            wave,
            driver,
            ..
        } => Item {
            action: Action::Prune,
            because: Because::Unwanted,
            id: id.clone(),
            api_version: api_version.clone(),
            driver: driver.clone(),
            wave: *wave,
            fields: Vec::new(),
        },
        // What stays, and what is not of a driver, is shown elsewhere.
        Step::Release { .. } | Step::SetFinalizer | Step::Store { .. } | Step::Record(_) | Step::Commit(_) | Step::Finish => return None,
    })
}

/// The differences of a Secret without what is in it; those of other objects as they are.
#[must_use]
pub fn masked(id: &ObjectId, fields: &[Difference]) -> Vec<Difference> {
    let mut fields = fields.to_vec();
    if id.kind() == "Secret" && id.group().is_empty() {
        // kubectl repeats the whole object in an annotation.
        let content =
            |path: &str| path.starts_with("data") || path.starts_with("stringData") || path.contains("last-applied-configuration");
        for field in fields.iter_mut().filter(|field| content(&field.path)) {
            for value in [&mut field.wanted, &mut field.found].into_iter().filter(|value| !value.is_null()) {
                *value = "******".into();
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn outline_of_secret_shows_no_content() {
        let paths = [
            "data.password",
            "stringData.password",
            "metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]",
            "metadata.labels[a]",
        ];
        let shown = |group: &str, kind: &str, found: Value| -> Vec<String> {
            let difference = |path: &&str| Difference {
                path: (*path).to_owned(),
                wanted: "w".into(),
                found: found.clone(),
            };
            let fields: Vec<Difference> = paths.iter().map(difference).collect();
            let shown = masked(&ObjectId::new(group, kind, "n", "o"), &fields);
            shown.iter().map(|field| format!("{}->{}", field.found, field.wanted)).collect()
        };
        let (open, masked) = ("\"f\"->\"w\"", "\"******\"->\"******\"");
        assert_eq!(shown("", "Secret", json!("f")), [masked, masked, masked, open]);
        let absent = "null->\"******\"";
        assert_eq!(shown("", "Secret", Value::Null), [absent, absent, absent, "null->\"w\""]);
        assert_eq!(shown("", "ConfigMap", json!("f")), [open; 4]);
        assert_eq!(shown("example.com", "Secret", json!("f")), [open; 4]);
    }
}
