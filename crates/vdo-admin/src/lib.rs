// SPDX-License-Identifier: Apache-2.0
//! Changes vCenters for a person who asks `vdoctl` to: accounts with least privilege, settings of machines, tags.
//!
//! - [`accounts`]: roles and permissions that a driver needs, as a plan of steps.
//! - [`fixes`]: corrections of machines and tags, with a record that undoes them.
//! - [`administrator`]: the session that makes such a step.
//!
//! A plan is data; each step is one call, made once. The operator's package does not depend on this crate.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::too_many_lines))]

pub mod accounts;
pub mod administrator;
pub mod fixes;
