// SPDX-License-Identifier: Apache-2.0
//! Reads vCenters, and checks the data that it reads. Nothing in this crate can change a vCenter: such calls are in `vdo-admin`, which the
//! operator's package does not depend on.
//!
//! - [`vcenter`]: sessions, the protocol, and limits on answers.
//! - [`vsphere`]: checks, lockouts and privileges, as functions of the data that was read.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::too_many_lines))]

pub mod vcenter;
pub mod vsphere;
