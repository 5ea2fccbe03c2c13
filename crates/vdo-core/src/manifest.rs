// SPDX-License-Identifier: Apache-2.0
//! Kubernetes objects as data: identity, ownership, what they mount, and how a wanted object differs from a live one.

mod diff;
mod early_start;
mod labels;
mod managed_fields;
mod object;
mod patch;
pub mod pointer;
mod trial;

pub use diff::{Difference, by_container, changes, differences, object_differences};
pub use early_start::{UNINITIALIZED, start_early};
pub use labels::{Owner, apply_set_id, is_owned, is_sealed, remember_configuration, stamp};
pub(crate) use labels::{consumed_by, reseal};
pub use managed_fields::{handed_back, handed_over, is_installer};
pub use object::{CONTENT, ManifestError, Object};
pub use patch::merge_patch;
pub use trial::{DEFAULT_ACCOUNT, TRIAL_POD, changes_pods, successor, trial_pod};
