// SPDX-License-Identifier: Apache-2.0
//! What a command can fix in a vCenter so that the drivers can work there: `disk.EnableUUID` and the hardware version of the nodes' machines,
//! and the tags of zones and regions.
//!
//! ```text
//! plan           what is wrong and can be fixed: each fix with its steps, or with what to do by hand
//! machine        what is done to a machine, by steps or by hand, and whether it is still fit for that
//! tag_placement  which objects get which tag, from the labels of the nodes
//! step           one change in a vCenter, and what makes it undone
//! record         the steps that were made, so that they can be undone
//! undo           for a step that was made: the step back, if the object is still as it was left
//! ```

mod catalog;
mod machine;
mod plan;
mod record;
mod step;
mod tag_placement;
#[cfg(test)]
mod tests;
mod undo;

pub use catalog::{Catalog, Category, Tag};
pub use machine::{ENABLE_UUID, MachineState, Unfit, check_machine};
pub use plan::{Fix, plan};
pub use record::{Entry, Record, RecordError};
pub use step::{MachineRef, Step, Subject};
pub use tag_placement::read_for;
pub use undo::{Undo, undo};
