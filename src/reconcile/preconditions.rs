// SPDX-License-Identifier: Apache-2.0
//! The conditions for preconditions of the drivers and of upgrades in the status of a VDOConfig; each file checks one precondition.

mod control_plane_eligible;
pub mod foreign_drivers;
pub(super) mod images;
mod matrix;
mod platform_supported;
pub(super) mod shared_volumes;
pub mod snapshot_controller;
mod trust_consistent;
pub(super) mod upgrade;
pub(super) mod volume_warnings;

pub(super) use control_plane_eligible::control_plane;
pub(super) use matrix::{matrix, matrix_status};
pub(super) use platform_supported::supported;
pub(super) use trust_consistent::trust;

#[cfg(test)]
use vdo_core::status::Precondition;

/// What the tests of the files compare.
#[cfg(test)]
fn reported(found: &[Precondition]) -> Vec<String> {
    found
        .iter()
        .map(|p| format!("{} {:?} {}: {}", p.kind, p.holds, p.reason, p.message))
        .collect()
}
