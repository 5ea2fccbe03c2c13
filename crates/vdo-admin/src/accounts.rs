// SPDX-License-Identifier: Apache-2.0
//! The accounts of the drivers in a vCenter (`vdoctl users`): the roles and permissions that they need, and the steps that create these.
//!
//! ```text
//! grants         what the features in use need, on which objects
//! vcenter_roles  one role for each set of privileges, named by its content
//! plan           the steps: create, shrink, delete
//! review         what an account lacks, and what it has beyond its needs
//! commands       the same steps for govc and PowerCLI
//! ```
//!
//! A session that writes to a vCenter opens only with a [`Consent`]. The operator's package does not depend on this crate: the operator only
//! reads.

mod account_names;
mod consent;
mod error;
mod govc_powercli;
mod grants;
mod password;
mod plan;
mod principal;
mod review;
mod step;
mod vcenter_roles;

pub use account_names::Mark;
pub use consent::Consent;
pub use error::ChangeError;
pub use govc_powercli::{Language, commands};
pub use grants::{Grant, GrantError, grants, is_covered, is_of_every_role};
pub use password::{PasswordPolicy, PolicyError, password};
pub use plan::{Conflict, Unused, plan_create, plan_delete, plan_shrink};
pub use principal::{ParsePrincipalError, Person, Principal};
pub use review::{Lack, Review, Surplus, Via, held_by_group, review};
pub use step::Step;
pub use vcenter_roles::{Authorization, OwnRole, Permission, Role, role_name};
