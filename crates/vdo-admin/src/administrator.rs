// SPDX-License-Identifier: Apache-2.0
//! The vCenter session of an administrator, who can change roles, permissions, users, machines and tags with `vdoctl`.
//!
//! The operator does not have such a session: its package does not depend on this one. [`Session`](vdo_vsphere::vcenter::Session) can only read.

mod changes;
mod fix_steps;
mod session;
mod sso;
mod tag_changes;

pub use session::Administrator;
