// SPDX-License-Identifier: Apache-2.0
//! The compatibility matrix: which driver version runs on which Kubernetes and vSphere, and which version is selected.
//!
//! ```text
//!   bytes --Index::parse--> Index --resolve--> Resolution, or NoFit with the reason for every version
//! ```
//!
//! Both arrows are pure. An index is checked as a whole before anything in it is trusted; the selection needs no network. If no version
//! fits, the installed version is not removed: the caller keeps it and reports the reason.

mod age_and_expiry;
mod difference;
mod driver_pairs;
mod format;
mod index;
mod legacy_format;
pub mod lint;
mod parse;
mod parts;
mod privileges;
mod rejection;
mod release_dates;
mod resolve;
mod schema;
mod stored;
mod stream;
mod suggestion;
mod unsupported_kubernetes;
mod upgrade_path;
mod version_fits;
mod waiting_upgrade;
mod what_if;

pub use age_and_expiry::is_old;
pub use difference::{Choice, Difference, Situation, difference, known_minors, known_vcenters, minors};
pub use driver_pairs::apart;
pub use index::{
    BuildFloor, Confidence, Driver, Entry, Facts, Feature, Image, Index, RequiredWhen, Requirement, Source, State, Support, UpgradesFrom,
    Verdict,
};
pub use parse::{INDEX_LIMIT, IndexError};
pub use parts::{Parts, PartsError, Shelf};
pub use privileges::{PrivilegeRule, PrivilegeRules};
pub use rejection::{Cause, NoFit, Rejected, Rejection};
pub use release_dates::{KUBERNETES, Released, knowledge, known_up_to};
pub use resolve::{Candidates, DriverRequest, Pick, Query, Resolution, UpdatePolicy, candidates, resolve};
pub use stored::{EMBEDDED, StoredMatrix};
pub use unsupported_kubernetes::NotYet;
pub use upgrade_path::Step;
pub use version_fits::{MULTI_VCENTER, misfits};
pub use waiting_upgrade::Held;
pub use what_if::{Change, Outlook, Stage, Upgradeable, When, next_minor, outlook, upgradeable};
