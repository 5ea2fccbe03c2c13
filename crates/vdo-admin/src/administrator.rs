// SPDX-License-Identifier: Apache-2.0
//! A session with a vCenter that can change roles, permissions, users, machines and tags, for a person who asks `vdoctl` to.
//!
//! The operator does not have such a session: its package does not depend on this one. [`Session`](vdo_vsphere::vcenter::Session) can only read.

mod changes;
mod repairs;
mod session;
mod sso;
mod tag_changes;

pub use session::Administrator;
