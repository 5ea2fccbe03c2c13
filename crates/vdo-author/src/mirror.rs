// SPDX-License-Identifier: Apache-2.0
//! A mirror: a part of a matrix with everything that its versions need, as data.
//!
//! ```text
//!   index --Selection--> versions --charts--> references --images--> Image --Lock--> mirror.yaml
//! ```
//!
//! Pure: the caller reads registries and folders.

mod images;
mod programs;
mod selection;

pub use images::{Wanted, references};
pub use programs::{Program, SUMS, SUMS_SIGNATURE, programs};
pub use selection::{DriverPattern, Selection, SelectionError, Versions};
