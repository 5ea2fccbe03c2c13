//! The compatibility matrix: which driver version runs on which Kubernetes and vSphere, and which one to choose.
//!
//! ```text
//!   bytes --Index::parse--> Index --resolve--> Resolution, or NoFit with the reason for every version
//! ```
//!
//! Both arrows are pure. An index is checked as a whole before anything in it is believed; choosing needs no network. Nothing that
//! fits is never a reason to remove what runs: the caller keeps it and reports.

mod advice;
mod beside;
mod fields;
mod index;
mod judge;
pub mod lint;
mod original;
mod outlook;
mod parse;
mod raw;
mod rejection;
mod resolve;
mod steps;
mod stream;

pub use beside::apart;
pub use index::{
    BuildFloor, Confidence, Driver, Entry, Facts, Feature, Image, Index, RequiredWhen, Requirement, Source, State, Support, UpgradesFrom,
    Verdict,
};
pub use judge::{MULTI_VCENTER, misfits};
pub use outlook::{Change, Outlook, Stage, Upgradeable, When, next_minor, outlook, upgradeable};
pub use parse::IndexError;
pub use rejection::{Cause, NoFit, Rejected, Rejection};
pub use resolve::{Candidates, DriverRequest, Pick, Query, Resolution, UpdatePolicy, candidates, resolve};
pub use steps::Step;
