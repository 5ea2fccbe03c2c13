//! The fold that turns whatever a reconcile found, did or failed at into the status of a VDOConfig. It runs on every path.
//!
//! Layer 1: may use `types`, `api`, `facts`, `health` and `plan`. Errors of other rooms arrive as [`Trouble`].

mod conditions;
mod confirmed;
mod fold;
mod notes;
mod parts;
mod preconditions;
mod progress;
mod report;
mod summary;

pub use confirmed::{CONFIRMATION, until_confirmation};
pub use fold::fold;
pub use notes::{Note, notes, pace, version_changes};
pub use progress::PATIENCE;
pub use report::{DriverReport, NewVersion, Precondition, Report, Trouble, Upgradeable};
