// SPDX-License-Identifier: Apache-2.0
//! The fold that turns whatever a reconcile found, did or failed at into the status of a VDOConfig. It runs on every path.
//!
//! Errors of other modules arrive as [`Failure`].

mod conditions;
mod confirmed;
mod events;
mod fold;
mod preconditions;
mod progress;
mod ready;
mod report;
mod rows;
mod source_changes;

pub use confirmed::{CONFIRMATION, until_confirmation};
pub use events::{Note, config_notes, notes, pace};
pub use fold::fold;
pub use progress::PROGRESS_DEADLINE;
pub use report::{DriverReport, Failure, NewVersion, Precondition, Report, Upgradeable};
pub use source_changes::source_changes;
