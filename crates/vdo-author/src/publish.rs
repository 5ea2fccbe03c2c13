// SPDX-License-Identifier: Apache-2.0
//! Changes a matrix for its publisher: adds, deprecates or withdraws a version, and makes the next index from the last one.
//!
//! ```text
//!   package --problems--> nothing is wrong --entry--> Draft::add --Draft::finish--> bytes --writes--> files, in an order that is safe
//! ```
//!
//! Pure: the caller reads and writes the files, and has the clock.

mod breaking;
mod chart_check;
mod definitions;
mod draft;
mod entry;
mod error;
mod removed_apis;
mod writes;

pub use breaking::{Comparison, compare};
pub use chart_check::{problems, rendered};
pub use draft::{Draft, VALIDITY};
pub use entry::{Facts, entry, images};
pub use error::PublishError;
pub use writes::{INDEX, Release, Write, writes};
