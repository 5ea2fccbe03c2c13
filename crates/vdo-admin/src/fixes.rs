// SPDX-License-Identifier: Apache-2.0
//! The fixes of `vdoctl doctor --fix` in a vCenter: `disk.EnableUUID` and hardware version of machines, tags of zones and regions.
//!
//! ```text
//! plan           the problems that can be fixed: each fix with its steps, or with instructions for a person
//! machine        the steps for a machine, and the check of the machine right before a step
//! tag_placement  which objects get which tag, from the labels of the nodes
//! step           one change in a vCenter, and whether it can be undone
//! record         the steps that were made, so that they can be undone
//! undo           the opposite of a step that was made, if the object is still as the step left it
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
