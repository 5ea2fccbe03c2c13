// SPDX-License-Identifier: Apache-2.0
//! Functions that differ between operating systems: file permissions, signals, process limits, terminals, folders of a user's settings.
//!
//! # Guarantees
//! Every function exists on each system under the same name, so that no other crate asks which system it is on. Where a system lacks a
//! feature, the comment of the function names it, and the function does what is safe. `vdoctl` runs on Linux, macOS and Windows, the operator
//! on Linux (decision 156).
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::too_many_lines))]

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
#[cfg(any(windows, test))]
mod windows_rules;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use system::{
    STANDARD_INPUT, Signals, again_with_memory, columns, config_folder, create_private, create_private_folder, end_children, file_for_one,
    has_other_names, host_name, is_ours, is_ours_or_the_systems, keep_memory_private, kube_home, no_link, no_link_no_waiting, no_waiting,
    prepare_terminal, program, raise_descriptor_limit, readable_by_others, restore_terminal, terminal_settings, was_aborted,
    writable_by_others,
};

/// Why a process is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Ctrl-C.
    Interrupted,
    /// The system, or another program, ends it.
    Terminated,
}

/// The size of a stream's terminal, as a number of columns.
fn width(size: Option<(terminal_size::Width, terminal_size::Height)>) -> Option<usize> {
    size.map(|(width, _)| width.0.into())
}
