//! Kubernetes objects as data: identity, ownership, what they mount, and how a wanted object differs from a live one.
//!
//! Layer 1: may use `types` and `api` only.

mod compare;
mod managers;
mod object;
mod patch;
mod stamp;

pub use compare::{Difference, changes, differences, unlike};
pub use managers::{handed_over, is_installer};
pub use object::{ManifestError, Object};
pub use patch::merge_patch;
pub use stamp::{Owner, apply_set_id, is_owned, remember_configuration, stamp};
