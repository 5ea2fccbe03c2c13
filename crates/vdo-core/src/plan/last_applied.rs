// SPDX-License-Identifier: Apache-2.0
//! Reads from the inventory the objects of a driver as they were applied last, with which the operator repairs a driver that must wait.

use super::{Desired, Entry, Inventory, applied};
use crate::manifest::Object;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vdo_api::types::{DriverName, ObjectId};

impl Inventory {
    /// What was applied last of a driver: of each object the state that the live one says it was given or, where there is none, the one
    /// of the last commit. A Secret is among them when one of `secrets` is that very state. `None` when it is not known.
    #[must_use]
    pub fn last_applied<'a>(
        &self,
        driver: &str,
        live: impl Fn(&ObjectId) -> Option<&'a Object>,
        secrets: &[Object],
    ) -> Option<Vec<Desired>> {
        let revisions = self.history.get(driver)?;
        let mut by_id: BTreeMap<ObjectId, Vec<Object>> = BTreeMap::new();
        for object in revisions.iter().rev().flat_map(|revision| revision.objects.objects()) {
            by_id.entry(object.id()).or_default().push(object);
        }
        let name: Arc<str> = driver.into();
        let mut desired = Vec::new();
        for (id, states) in by_id {
            let Some(entry) = self.objects.get(&id).filter(|entry| entry.driver == driver) else {
                continue;
            };
            let of_live = states
                .iter()
                .find(|state| live(&id).is_some_and(|live| live.applied() == state.applied()));
            let Some(state) = of_live.or_else(|| states.iter().find(|state| entry.was(state))) else {
                continue;
            };
            let object = match state.is_secret() {
                false => Some(state),
                true => secrets
                    .iter()
                    .find(|secret| secret.id() == id && secret.applied() == state.applied()),
            };
            desired.extend(object.map(|object| Desired {
                object: object.clone(),
                driver: name.clone(),
                wave: entry.wave,
            }));
        }
        Some(desired)
    }

    /// The drivers of which anything may exist.
    #[must_use]
    pub fn drivers(&self) -> BTreeSet<DriverName> {
        self.objects.values().map(|entry| entry.driver.clone()).collect()
    }
}

impl Entry {
    /// Whether this is the state that was applied when the driver was in sync last.
    fn was(&self, state: &Object) -> bool {
        self.applied.is_some() && self.applied.as_deref() == applied(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::packed_objects::tests::object;
    use crate::plan::{PackedObjects, Revision};

    fn inventory(driver: &str, kept: &[Object], listed: &[(&Object, bool)]) -> Inventory {
        let entry = |(object, known): &(&Object, bool)| {
            let entry = Entry {
                api_version: "v1".into(),
                driver: driver.into(),
                wave: 2,
                uid: None,
                applied: applied(object).filter(|_| *known).map(str::to_owned),
            };
            (object.id(), entry)
        };
        Inventory {
            objects: listed.iter().map(entry).collect(),
            history: [("d".to_owned(), vec![Revision::of(1, PackedObjects::of(kept.iter()))])].into(),
            ..Inventory::default()
        }
    }

    /// The state that the live object was given; where there is none, the one of the last commit; and what is listed of this driver only.
    #[test]
    fn last_applied_state_is_that_of_live_object_or_last_commit() {
        let (old, new) = (object("ConfigMap", "a", "old"), object("ConfigMap", "a", "new"));
        let secret = object("Secret", "s", "old");
        let other_secret = object("Secret", "s", "new");
        let all = [old.clone(), new.clone(), secret.clone()];
        let find = |inventory: &Inventory, live: &[&Object], secrets: &[Object]| -> Option<Vec<String>> {
            let of = |id: &ObjectId| live.iter().copied().find(|live| live.id() == *id);
            let found = inventory.last_applied("d", of, secrets)?;
            let content = |d: &Desired| format!("{} {}", d.object.name(), d.object.value()["data"]["content"]);
            Some(found.iter().map(content).collect())
        };
        let listed = inventory("d", &all, &[(&old, true), (&secret, true)]);
        let some = |all: &[&str]| Some(all.iter().map(|text| (*text).to_owned()).collect());
        assert_eq!(find(&listed, &[], &[]), some(&["a \"old\""]));
        assert_eq!(find(&inventory("d", &all, &[(&new, true)]), &[], &[]), some(&["a \"new\""]));
        assert_eq!(find(&listed, &[&new], &[]), some(&["a \"new\""]));
        let both = [other_secret.clone(), secret.clone()];
        assert_eq!(find(&listed, &[&new], &both), some(&["a \"new\"", "s \"old\""]));
        assert_eq!(find(&listed, &[&new], &[other_secret]), some(&["a \"new\""]));
        // never committed, and not there: it is not known
        assert_eq!(find(&inventory("d", &all, &[(&old, false)]), &[], &[]), some(&[]));
        assert_eq!(find(&inventory("another", &all, &[(&old, true)]), &[&old], &[]), some(&[]));
        assert_eq!(find(&inventory("d", &all, &[]), &[&old], &[]), some(&[]));
        assert_eq!(find(&Inventory::default(), &[&old], &[]), None);
        assert_eq!(inventory("another", &all, &[(&old, true)]).drivers(), ["another".to_owned()].into());
    }
}
