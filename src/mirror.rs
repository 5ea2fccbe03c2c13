//! A mirror: a part of a matrix with everything that its versions need, as data.
//!
//! ```text
//!   index --Selection--> versions --charts--> references --images--> Image --Lock--> mirror.yaml
//!                                                              Lock + prefix --place--> where each image lies in a registry
//! ```
//!
//! The lock says which versions and images a mirror holds. It can only take away: a version that it does not list is not chosen, and an image
//! that it lists is pulled by its digest. It adds neither versions nor images, so it needs no signature of its own.
//!
//! Pure: the caller reads registries and folders.

mod images;
mod lock;
mod pins;
mod place;
mod programs;
mod selection;

pub use images::{Wanted, references};
pub use lock::{FILE, Image, Lock, LockError, Moved};
pub use pins::{outside, pin};
pub use place::{Collision, MATRIX, placed, places};
pub use programs::{Program, SUMS, SUMS_SIGNATURE, programs};
pub use selection::{DriverPattern, Selection, SelectionError, Versions};
