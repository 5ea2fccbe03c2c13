//! A vCenter as data: what it says of itself, what is in it, how asking it can fail, and what the drivers require of it.
//!
//! Layer 1: may use `types` and `api`.

mod facts;
mod granted;
mod inventory;
mod probe_error;
mod requirements;
mod session_error;
mod tagging;

pub use facts::{CertificateFacts, VcenterFacts, plain};
pub use granted::Granted;
pub use inventory::{Datastore, Entity, Host, Inventory, Machine, ManagedObject};
pub use probe_error::{Excess, ProbeError, ProbeStage};
pub use requirements::{Feature, Needs, WantedDatastore, WantedPolicy};
pub use session_error::SessionError;
pub use tagging::{Policy, Tagging};
