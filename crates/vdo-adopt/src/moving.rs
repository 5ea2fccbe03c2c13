// SPDX-License-Identifier: Apache-2.0
//! A driver of another tool that makes room for the one of the operator, in an order in which volumes stay attached and no two controllers run
//! at the same time (pure).
//!
//! ```text
//! configuration kept -> old workloads stopped, node plugins held -> their pods gone -> the operator installs -> node by node -> old workloads empty
//! ```
//!
//! There is no record of how far a move has come but the cluster: [`State::next`] is asked again after each step, and says the same after a kill.

mod ideal;
mod last;
mod node_by_node;
mod order;
mod state;
mod step;

pub use state::{Config, New, Node, Old, Pod, Shared, State};
pub use step::{COPIED, Next, Step, Wait, Write};

#[cfg(test)]
mod tests;
