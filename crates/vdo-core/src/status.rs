// SPDX-License-Identifier: Apache-2.0
//! Computes the next status of a VDOConfig from the report of a reconcile, and the events of a change.
//! It runs after every reconcile, also after a failed one.
//!
//! Errors of other modules arrive as [`Failure`].

mod conditions;
mod confirmed;
mod events;
mod fold;
mod matrix_source_events;
mod preconditions;
mod progress_deadline;
mod ready;
mod report;
mod rows;
mod write_pace;

pub use confirmed::{CONFIRMATION, until_confirmation};
pub use events::{Note, config_notes, notes};
pub use fold::fold;
pub use matrix_source_events::source_changes;
pub use progress_deadline::PROGRESS_DEADLINE;
pub use report::{DriverReport, Failure, NewVersion, Precondition, Report, Upgradeable};
pub use write_pace::pace;
