// SPDX-License-Identifier: Apache-2.0
//! A matrix as its publisher changes it: a version is added, deprecated or withdrawn, and the next index is made of the last one.
//!
//! ```text
//!   package --problems--> nothing is wrong --entry--> Draft::add --Draft::finish--> bytes --writes--> files, in an order that is safe
//! ```
//!
//! Pure: the caller reads and writes the files, and has the clock.

mod breaking;
mod definitions;
mod draft;
mod entry;
mod error;
mod removed_apis;
mod render;
mod writes;

pub use breaking::{Comparison, compare};
pub use draft::{Draft, VALIDITY};
pub use entry::{Facts, entry, images};
pub use error::PublishError;
pub use render::{problems, rendered};
pub use writes::{INDEX, Release, Write, writes};
