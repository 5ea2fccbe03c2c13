// SPDX-License-Identifier: Apache-2.0
//! `vdoctl adopt --move`: replaces the drivers of another tool by those of the operator; volumes stay attached, and no two controllers run
//! at the same time (pure).
//!
//! ```text
//! configuration kept -> old workloads stopped, node plugins held -> pods deleted -> the operator installs -> node by node -> old workloads empty
//! ```
//!
//! The cluster is the only record of the progress of a move: [`State::next`] is called again after each step, and returns the same step after
//! a kill.

mod cleanup_commands;
mod dry_run;
mod node_by_node;
mod order;
mod state;
mod step;

pub use state::{Config, New, Node, Old, Pod, Shared, State};
pub use step::{COPIED, Next, Step, Wait, Write};

#[cfg(test)]
mod tests;
