// SPDX-License-Identifier: Apache-2.0
//! Kubernetes objects as data: identity, ownership, the configuration that they mount, and the differences between two objects.

mod config_checksum;
mod diff;
mod dry_run_objects;
mod field_handover;
mod labels;
mod object;
mod patch;
pub mod pointer;
mod uninitialized_taint;

pub(crate) use config_checksum::consumed_by;
pub use config_checksum::remember_configuration;
pub use diff::{Difference, by_container, changes, differences, object_differences};
pub use dry_run_objects::{DEFAULT_ACCOUNT, TRIAL_POD, changes_pods, successor, trial_pod};
pub use field_handover::{handed_back, handed_over, is_installer};
pub(crate) use labels::reseal;
pub use labels::{Owner, apply_set_id, is_owned, is_sealed, stamp};
pub use object::{CONTENT, ManifestError, Object};
pub use patch::merge_patch;
pub use uninitialized_taint::{UNINITIALIZED, start_early};
