//! The live objects of an inventory, computed once for each change of the inventory or of what the watches show.

use super::super::watch::Watch;
use super::{Cache, lock};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use vdo_api::types::{ById, GroupKind};
use vdo_core::manifest::Object;
use vdo_core::plan::Inventory;

/// The last result and its inputs. Losing it costs time only.
#[derive(Default)]
pub(super) struct LiveMemo(Mutex<Option<Found>>);

struct Found {
    inventory: Arc<Inventory>,
    apply_set: String,
    watches: Arc<BTreeSet<Watch>>,
    /// The states of what the watches of these kinds show.
    states: Vec<(Watch, u64)>,
    live: Arc<ById<Object>>,
}

impl Cache {
    /// The watches that show what is in an inventory; `make` finds them where they are not known.
    pub(in crate::cluster) fn watches_of(
        &self,
        inventory: &Arc<Inventory>,
        apply_set: &str,
        make: impl FnOnce() -> BTreeSet<Watch>,
    ) -> Arc<BTreeSet<Watch>> {
        let last = lock(&self.live.0);
        match last.as_ref().filter(|last| last.is_of(inventory, apply_set)) {
            Some(last) => last.watches.clone(),
            None => Arc::new(make()),
        }
    }

    /// The live objects of an inventory, as [`Self::all`] gives them.
    pub(in crate::cluster) fn alive(
        &self,
        inventory: &Arc<Inventory>,
        apply_set: &str,
        watches: Arc<BTreeSet<Watch>>,
    ) -> Arc<ById<Object>> {
        let kinds: BTreeSet<GroupKind> = watches.iter().map(|watch| watch.id().group_kind().clone()).collect();
        // Before they are read: what changes meanwhile is found by the next one.
        let states = self.states(&kinds);
        let mut last = lock(&self.live.0);
        if let Some(last) = last
            .as_ref()
            .filter(|last| last.is_of(inventory, apply_set) && last.states == states)
            && !self.has_written(|id| inventory.objects.contains_key(id))
        {
            return last.live.clone();
        }
        let live = Arc::new(self.all(inventory.objects.keys()));
        *last = Some(Found {
            inventory: inventory.clone(),
            apply_set: apply_set.to_owned(),
            watches,
            states,
            live: live.clone(),
        });
        live
    }
}

impl Found {
    fn is_of(&self, inventory: &Arc<Inventory>, apply_set: &str) -> bool {
        Arc::ptr_eq(&self.inventory, inventory) && self.apply_set == apply_set
    }
}
