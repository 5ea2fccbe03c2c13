use super::{Change, Inventory, Plan, Step};

impl Plan {
    /// The part of an increment that only brings back what was reached before. It needs neither an approval nor a rehearsal:
    /// a person approved and the API server accepted the same bytes earlier.
    #[must_use]
    pub fn maintenance(mut self, inventory: &Inventory) -> Self {
        self.steps.retain(|step| {
            matches!(
                step,
                Step::Apply {
                    change: Change::Repair(_) | Change::Restore,
                    ..
                }
            )
        });
        let mut recorded = inventory.clone();
        for step in &self.steps {
            // The next instance of what is made again has another UID.
            if let Step::Apply {
                object,
                change: Change::Restore,
                ..
            } = step
                && let Some(entry) = recorded.objects.get_mut(&object.id())
            {
                entry.uid = None;
            }
        }
        if recorded != *inventory {
            self.steps.insert(0, Step::Record(recorded));
        }
        self
    }
}
