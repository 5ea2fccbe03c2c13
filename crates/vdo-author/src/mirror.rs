// SPDX-License-Identifier: Apache-2.0
//! The content of a mirror, as data: the selected versions of a matrix, and the images and vdoctl archives that the mirror contains.
//!
//! ```text
//!   index --Selection--> versions --charts--> references --images--> Image --Lock--> mirror.yaml
//! ```
//!
//! Pure: the caller reads registries and folders.

mod images;
mod selection;
mod vdoctl_archives;

pub use images::{Wanted, references};
pub use selection::{DriverPattern, Selection, SelectionError, Versions};
pub use vdoctl_archives::{Program, SUMS, SUMS_SIGNATURE, programs};
