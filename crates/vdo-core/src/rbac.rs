// SPDX-License-Identifier: Apache-2.0
//! RBAC as data: the namespaces, roles and bindings that the administrator must create for the drivers, and whether they suffice.
//!
//! The operator writes no Role, binding or Namespace: a process that may grant rights holds them. These objects are installed with the operator,
//! and it compares the rights that the charts need with the live roles and bindings.

mod missing_rules;
mod rules;
mod shared;

pub use missing_rules::{Mismatch, is_prerequisite, lacking, union};
pub use rules::{Rules, SingleRule};
pub use shared::{beside_others, binding_handed_back, role_handed_back, shares_a_subject};

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
const VERSION: &str = "rbac.authorization.k8s.io/v1";
