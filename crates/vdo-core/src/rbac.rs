// SPDX-License-Identifier: Apache-2.0
//! Rights as data: what the administrator brings for the drivers, and whether it is enough.
//!
//! The operator writes no Role, binding or Namespace: a process that may grant rights holds them. These objects are installed with it, and it
//! compares what the charts ask for with what is there.

mod missing_rules;
mod rules;
mod shared;

pub use missing_rules::{Mismatch, is_prerequisite, lacking, union};
pub use rules::{Rules, SingleRule};
pub use shared::{beside_others, binding_handed_back, role_handed_back, shares_a_subject};

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
const VERSION: &str = "rbac.authorization.k8s.io/v1";
