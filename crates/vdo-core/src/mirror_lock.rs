// SPDX-License-Identifier: Apache-2.0
//! The lock of a mirror (`mirror.yaml`): which versions and images the mirror holds, and where each image is in its registry.
//!
//! The lock can only take away: a version that the lock does not list is not chosen, and an image that the lock lists is pulled by its digest.
//! It adds neither versions nor images, so it needs no signature of its own.

mod file;
mod pinned_images;
mod registry_paths;

pub use file::{FILE, Image, Lock, LockError, Moved};
pub use pinned_images::{outside, pin};
pub use registry_paths::{Collision, MATRIX, placed, places};
