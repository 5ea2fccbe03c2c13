//! The compatibility matrix: which driver version runs on which Kubernetes and vSphere, and which one to choose.
//!
//! ```text
//!   bytes --Index::parse--> Index --resolve--> Resolution, or NoFit with the reason for every version
//! ```
//!
//! Both arrows are pure. An index is checked as a whole before anything in it is believed; choosing needs no network. Nothing that
//! fits is never a reason to remove what runs: the caller keeps it and reports.

mod advice;
mod index;
mod parse;
mod rejection;
mod resolve;

pub use index::{Confidence, Driver, Entry, Feature, Image, Index, Requirement, Source, State, Support, UpgradesFrom, Verdict};
pub use parse::IndexError;
pub use rejection::{Cause, NoFit, Rejected, Rejection};
pub use resolve::{DriverRequest, Pick, Query, Resolution, UpdatePolicy, resolve};
